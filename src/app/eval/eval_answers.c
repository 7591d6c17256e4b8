/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of an answer are found by tokenizing the text up to its beginning and up to its end;
 * the former must be a prefix of the whole text's tokens. */
#include "src/app/eval/eval_job.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"

struct document {
    const struct sh_text_source *s;
    const char *text;
    size_t bytes;
    struct sh_ids ids;
    int n_start;                        /* start tokens before the text                           */
};

/* Tokens that the text's first `bytes` bytes and the whole have in common; *all: how many the former are. */
static int common(const struct document *d, size_t bytes, int *all, struct sh_err *e)
{
    struct sh_ids part = {0};
    size_t n = 0;
    int bad = sh_tokenizer_encode(d->s->tokenizer, d->text, bytes, 0, &part, e);
    while (n < part.n && n < d->ids.n && part.at[n] == d->ids.at[n])
        n++;
    *all = (int)part.n;
    free(part.at);
    return bad ? -1 : (int)n;
}

/* "at" or "said_at", within the text. */
static int read_place(const struct document *d, const json_t *o, const char *key, size_t most, size_t *to,
                      struct sh_err *e)
{
    const json_t *v = json_object_get(o, key);
    if (!json_is_integer(v) || json_integer_value(v) < 0 || (unsigned long long)json_integer_value(v) > most)
        return sh_fail(e, "\"%s\": expected a byte position, a whole number from 0 to %zu", key, most);
    *to = (size_t)json_integer_value(v);
    if (*to < d->bytes && ((unsigned char)d->text[*to] & 0xC0) == 0x80)
        return sh_fail(e, "\"%s\": byte %zu is inside a character", key, *to);
    return 0;
}

static int read_answer(const struct document *d, const json_t *o, struct sh_eval_answer *a, struct sh_err *e)
{
    const json_t *text = json_object_get(o, "answer");
    size_t at, said, bytes = json_string_length(text);
    int all;
    *a = (struct sh_eval_answer){.said = -1};
    if (!json_is_string(text) || !bytes)
        return sh_fail(e, "\"answer\" is missing, expected an object with \"at\" and \"answer\"");
    if (read_place(d, o, "at", d->bytes, &at, e))
        return -1;
    if (bytes > d->bytes - at || memcmp(d->text + at, json_string_value(text), bytes))
        return sh_fail(e, "\"%.60s\" is not at byte %zu of the text", json_string_value(text), at);
    int from = common(d, at, &all, e);
    if (from < 0)
        return -1;
    if (from != all)
        return sh_fail(e, "\"%.60s\" at byte %zu does not begin at a token boundary (include its leading space?)",
                       json_string_value(text), at);
    int to = common(d, at + bytes, &all, e);
    if (to < 0)
        return -1;
    a->from = from + d->n_start;
    a->to = (to < all || to == from ? to + 1 : to) + d->n_start;
    if (json_object_get(o, "said_at")) {
        if (read_place(d, o, "said_at", at, &said, e) || (a->said = common(d, said, &all, e)) < 0)
            return -1;
        a->said += d->n_start;
    }
    return a->from ? 0 : sh_fail(e, "the answer is the text's first token, so nothing predicts it");
}

static int read_list(const struct document *d, const json_t *list, int n_token, struct sh_eval_answers *out, int text,
                     struct sh_err *e)
{
    size_t n = json_array_size(list);
    struct sh_eval_answer *a = xcalloc(n + 1, sizeof *a);
    int kept = 0, before = 0;
    out->of[text] = a;
    for (size_t i = 0; i < n; i++) {
        if (read_answer(d, json_array_get(list, i), &a[kept], e))
            return sh_err_prefix(e, "answer %zu", i + 1);
        if (a[kept].from < before)
            return sh_fail(e, "answer %zu begins before the end of the previous one", i + 1);
        before = a[kept].to;
        if (a[kept].to <= n_token)
            kept++;
        else
            out->cut++;
    }
    out->n[text] = kept;
    out->all += kept;
    return 0;
}

/* A document of the file is the source's next text, unless the source skipped it. */
static int read_line(const struct sh_text_source *s, const json_t *item, const char *field, struct sh_eval_answers *out,
                     int *text, struct sh_err *e)
{
    const json_t *words = json_object_get(item, s->field), *list = json_object_get(item, field);
    struct document d = {.s = s, .text = json_string_value(words), .bytes = json_string_length(words),
                         .n_start = sh_tokenizer_start(s->tokenizer, NULL)};
    if (!d.text)
        return sh_fail(e, "field \"%s\" has no text", s->field);
    if (!json_is_array(list))
        return sh_fail(e, "field \"%s\" has no list, expected [{\"at\": byte, \"answer\": text}, ...]", field);
    int bad = sh_tokenizer_encode(s->tokenizer, d.text, d.bytes, 0, &d.ids, e);
    if (!bad && sh_texts_takes(&s->texts, d.ids.n)) {
        bad = read_list(&d, list, s->texts.sequence[*text].n_tokens, out, *text, e);
        ++*text;
    }
    free(d.ids.at);
    return bad;
}

int sh_eval_answers_read(struct sh_eval_answers *a, const struct sh_text_source *s, const char *field, struct sh_err *e)
{
    FILE *f = sh_stream_open(s->jsonl, NULL);
    char *line = NULL;
    size_t cap = 0;
    ssize_t got;
    int number = 0, text = 0, bad = 0;
    if (!f)
        return sh_fail(e, "%s: cannot be read: %s", s->jsonl, strerror(errno));
    a->texts = s->texts.n;
    a->of = xcalloc((size_t)a->texts, sizeof *a->of);
    a->n = xcalloc((size_t)a->texts, sizeof *a->n);
    while (!bad && text < a->texts && (got = xgetline(&line, &cap, SH_MOST_TEXT, f)) >= 0) {
        number++;
        size_t mark = number == 1 ? sh_utf8_mark(line, (size_t)got) : 0;
        json_t *item = json_loadb(line + mark, (size_t)got - mark, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
        if (item && read_line(s, item, field, a, &text, e))     /* blank lines make no item */
            bad = sh_err_prefix(e, "%s: line %d", s->jsonl, number);
        json_decref(item);
    }
    if (!bad && ferror(f))
        bad = sh_fail(e, "%s: cannot be read: %s", s->jsonl, strerror(errno));
    free(line);
    fclose(f);
    if (!bad && !a->all)
        bad = sh_fail(e, "%s: field \"%s\": no answer is within the tokens read", s->jsonl, field);
    return bad;
}

void sh_eval_answers_free(struct sh_eval_answers *a)
{
    for (int i = 0; i < a->texts; i++)
        free(a->of[i]);
    free(a->of);
    free(a->n);
    *a = (struct sh_eval_answers){0};
}

/* FNV-1a */
uint64_t sh_eval_answers_hash(const struct sh_eval_answers *a)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = 0; i < a->texts; i++)
        for (int k = 0; k < a->n[i]; k++) {
            const int word[] = {i, a->of[i][k].from, a->of[i][k].to, a->of[i][k].said};
            for (int w = 0; w < 4; w++)
                h = (h ^ (uint32_t)word[w]) * 0x100000001b3u;
        }
    return h ? h : 1;
}
