/* SPDX-License-Identifier: Apache-2.0 */
/* See tok.h: the steps of tokenizer.json's normalizer. */
#include "src/tokenizer/tok.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "src/tokenizer/tok_regex.h"

enum { FORM, PREPEND, REPLACE, LOWERCASE, STRIP, SENTENCEPIECE };    /* STRIP: start and stop are flags */

static const struct { const char *name; int form; } forms[] = {
    {"NFC", UTF8PROC_STABLE | UTF8PROC_COMPOSE},
    {"NFD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE},
    {"NFKC", UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
    {"NFKD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT}};

void sh_normal_sentencepiece(struct sh_steps *s, struct sh_sp_normal *sp)
{
    sh_steps_add(s, SENTENCEPIECE)->sp = sp;
}

static int read_strip(struct sh_step *to, const json_t *from, struct sh_err *e)
{
    int left, right;
    if (sh_tok_flag(from, "strip_left", 1, &left, e) || sh_tok_flag(from, "strip_right", 1, &right, e))
        return -1;
    to->start = left;
    to->stop = right;
    return 0;
}

static int read_prepend(struct sh_step *to, const json_t *from, struct sh_err *e)
{
    return sh_tok_text(from, "prepend", &to->text, e);
}

static const struct {
    const char *type;
    int kind;
    int (*read)(struct sh_step *to, const json_t *from, struct sh_err *e);
} readers[] = {{"Prepend", PREPEND, read_prepend}, {"Replace", REPLACE, sh_tok_replace}, {"Strip", STRIP, read_strip},
               {"Lowercase", LOWERCASE, NULL}};

int sh_normal_step(void *to, const char *type, const json_t *from, struct sh_err *e)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!strcmp(type, forms[i].name)) {
            sh_steps_add(to, FORM)->form = forms[i].form;
            return 0;
        }
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (!strcmp(type, readers[i].type)) {
            struct sh_step *new = sh_steps_add(to, readers[i].kind);
            return readers[i].read ? readers[i].read(new, from, e) : 0;
        }
    return SH_TOK_NO_STEP;
}

static int is_ascii(const char *text, size_t n)
{
    unsigned char all = 0;
    for (size_t i = 0; i < n; i++)
        all |= (unsigned char)text[i];
    return all < 0x80;
}

/* Each character by its full lower case; of those only U+0130 has more than one character. */
static void lowercase(const char *text, size_t n, struct sh_text *out)
{
    int length;
    for (size_t i = 0; i < n; i += (size_t)length) {
        char to[4];
        uint32_t code;
        length = sh_utf8_get(text + i, &code);
        utf8proc_int32_t lower = code == 0x130 ? 'i' : utf8proc_tolower((utf8proc_int32_t)code);
        sh_text_add(out, to, (size_t)sh_utf8_put(to, (uint32_t)lower));
        if (code == 0x130)
            sh_text_add(out, "\xcc\x87", 2);
    }
}

static int run_form(const struct sh_step *s, const char *text, size_t n, struct sh_text *out, struct sh_err *e)
{
    if (is_ascii(text, n)) {            /* ASCII is the same in all four forms */
        sh_text_add(out, text, n);
        return 0;
    }
    utf8proc_uint8_t *mapped = NULL;
    utf8proc_ssize_t length = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, &mapped,
                                            (utf8proc_option_t)s->form);
    if (length < 0)
        return sh_fail(e, "normalising the text: %s", utf8proc_errmsg(length));
    sh_text_add(out, (const char *)mapped, (size_t)length);
    free(mapped);
    return 0;
}

static int run_step(const struct sh_step *s, const char *text, size_t n, int at_start,
                    struct sh_text *out, struct sh_watch *watch, struct sh_err *e)
{
    size_t begin, end;
    switch (s->kind) {
    case FORM: return run_form(s, text, n, out, e);
    case REPLACE: return sh_regex_replace(s->regex, text, n, &s->text, out, watch, e);
    case SENTENCEPIECE: return sh_sp_normal_run(s->sp, text, n, at_start, out, e);
    case LOWERCASE: lowercase(text, n, out); return 0;
    case STRIP:
        begin = s->start ? sh_spaces_end(text, 0, n) : 0;
        end = s->stop ? sh_spaces_begin(text, begin, n) : n;
        sh_text_add(out, text + begin, end - begin);
        return 0;
    default:                            /* PREPEND */
        if (n)
            sh_text_add(out, s->text.at, s->text.n);
        sh_text_add(out, text, n);
        return 0;
    }
}

int sh_normal_run(const struct sh_steps *s, const char *text, size_t n, int at_start,
                  struct sh_text *out, struct sh_watch *watch, struct sh_err *e)
{
    struct sh_text now = {.limit = SH_TOK_GROWTH(n)}, next = {.limit = SH_TOK_GROWTH(n)};
    int bad = 0;
    sh_text_add(&now, text, n);
    for (int i = 0; i < s->n && !bad; i++) {
        next.n = 0;
        bad = run_step(&s->at[i], now.at, now.n, at_start, &next, watch, e);
        struct sh_text old = now;
        now = next;
        next = old;
    }
    if (!bad)
        sh_text_add(out, now.at, now.n);
    free(now.at);
    free(next.at);
    return bad;
}
