/* SPDX-License-Identifier: Apache-2.0 */
#include "src/engine/text_stream.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/tokenizer/tok_text.h"

enum {
    MOST_OPEN = 3,                      /* marks that an unfinished character may be written as   */
    CONTEXT = 8,                        /* tokens before it, so that it is not the beginning of a text    */
    WINDOW = 64                         /* tokens that are decoded again                          */
};

static void append(struct sh_ids *ids, const int32_t *from, size_t n)
{
    sh_ids_reserve(ids, n);
    if (n)
        memcpy(ids->at + ids->n, from, n * sizeof *from);
    ids->n += n;
}

static void decode(struct sh_text_stream *s)
{
    free(s->text);
    s->text = sh_tokenizer_decode(s->tokenizer, s->ids.at + s->from, s->ids.n - s->from, &s->bytes);
}

void sh_text_stream_begin(struct sh_text_stream *s, const struct sh_tokenizer *t, const int32_t *prompt, size_t n)
{
    size_t context = n < CONTEXT ? n : CONTEXT;
    *s = (struct sh_text_stream){.tokenizer = t};
    if (n)
        append(&s->ids, prompt + n - context, context);
    decode(s);
}

void sh_text_stream_end(struct sh_text_stream *s)
{
    free(s->ids.at);
    free(s->text);
    *s = (struct sh_text_stream){0};
}

/* Bytes at the end of the text that the next token may still change. */
static size_t open_bytes(const struct sh_text_stream *s)
{
    size_t n = 0;
    while (n < 3 * MOST_OPEN && s->bytes >= n + 3 && !memcmp(s->text + s->bytes - n - 3, "\xEF\xBF\xBD", 3))
        n += 3;
    return n;
}

/* Drops old tokens; what is held back stays at the end. */
static void forget(struct sh_text_stream *s)
{
    size_t n = s->ids.n;
    if (n - s->from <= WINDOW)
        return;
    s->ids.n = CONTEXT;
    memmove(s->ids.at, s->ids.at + n - CONTEXT, CONTEXT * sizeof *s->ids.at);
    s->from = 0;
    decode(s);
    s->held = s->held < s->bytes ? s->held : s->bytes;
}

/* a and b in one text, which ends with a NUL. */
static char *join(const char *a, size_t n_a, const char *b, size_t n_b)
{
    char *text = xmalloc(n_a + n_b + 1);
    memcpy(text, a, n_a);
    memcpy(text + n_a, b, n_b);
    text[n_a + n_b] = '\0';
    return text;
}

char *sh_text_stream_add(struct sh_text_stream *s, int32_t id, size_t *bytes)
{
    char *before = s->text, *out;
    size_t shown = s->bytes - s->held, held = s->held;
    s->text = NULL;
    append(&s->ids, &id, 1);
    decode(s);
    if (s->bytes < shown || memcmp(s->text, before, shown)) {
        /* the token changes what is already out: a byte that, until more follow, makes the bytes before it invalid; it
         * begins a text of its own, after what was held back */
        s->from = s->ids.n - 1;
        decode(s);
        s->held = open_bytes(s);
        *bytes = held + s->bytes - s->held;
        out = join(before + shown, held, s->text, s->bytes - s->held);
    } else {
        s->held = open_bytes(s);
        s->held = s->held < s->bytes - shown ? s->held : s->bytes - shown;
        *bytes = s->bytes - s->held - shown;
        out = join("", 0, s->text + shown, *bytes);
    }
    free(before);
    forget(s);
    return out;
}

char *sh_text_stream_rest(struct sh_text_stream *s, size_t *bytes)
{
    *bytes = s->held;
    s->held = 0;
    return join("", 0, s->text + s->bytes - *bytes, *bytes);
}
