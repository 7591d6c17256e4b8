/* SPDX-License-Identifier: Apache-2.0 */
/* src/tracer/texts: how texts, documents and lists of ids become sequences. Ids of whole texts come
 * from the tokenizer, which has its own tests; where they are cut is what is looked at here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/tracer/texts.h"
#include "tests/tap.h"
#include "tests/unit/scratch.h"
#include "tests/unit/tokenizer_golden.h"

static struct sh_err e;

static const char text[] =
    "The quick brown fox jumps over the lazy dog. It was the best of times, it was the worst of times; "
    "call me Ishmael, he said, and went on to count: one, two, three, 4, 5, 6.\n";

struct with {                                           /* a tokenizer and what it makes of `text` */
    struct sh_tokenizer *tokenizer;
    struct sh_ids ids;
    int bos;
};

static struct with with_new(const char *kind)
{
    struct with w = {0};
    char name[64];
    snprintf(name, sizeof name, "tokenizers/%s", kind);
    const char *folder = tap_golden(name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
    w.tokenizer = sh_tokenizer_open(folder, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w.tokenizer);
    CU_ASSERT_FATAL(sh_tokenizer_encode(w.tokenizer, text, strlen(text), 0, &w.ids, &e) == 0 && w.ids.n > 50);
    w.bos = tokenizer_bos(w.tokenizer);
    return w;
}

static void with_free(struct with *w)
{
    sh_tokenizer_free(w->tokenizer);
    free(w->ids.at);
}

static struct sh_texts texts_of(const struct with *w, int length, int most)
{
    return (struct sh_texts){.tokenizer = w ? w->tokenizer : NULL, .length = length, .max_pos = 64, .n_vocab = 4000,
                             .most = most};
}

/* Sequence i: the start token if there is one, then n ids of the text from `from` on. */
static int is_cut(const struct sh_texts *t, int i, const char *source, const struct with *w, size_t from, int n)
{
    const struct sh_trace_sequence *q = &t->sequence[i];
    int has_bos = w->bos >= 0, same = q->n_tokens == n + has_bos && !strcmp(q->source, source);
    same = same && (!has_bos || q->tokens[0] == w->bos);
    return same && !memcmp(q->tokens + has_bos, w->ids.at + from, (size_t)n * sizeof *q->tokens);
}

/* Consecutive whole sequences; what is left at the end is dropped. */
static void cut_text(const char *kind, int bos)
{
    struct with w = with_new(kind);
    CU_ASSERT_FATAL((w.bos >= 0) == bos);
    char *path = xstrdup(scratch_write("a.txt", text, strlen(text)));
    int length = 16, ids = length - bos, whole = (int)w.ids.n / ids;
    struct sh_texts t = texts_of(&w, length, 0);
    CU_ASSERT(sh_texts_text(&t, path, &e) == 0 && t.n == whole);
    for (int i = 0; i < t.n; i++) {
        char source[32];
        snprintf(source, sizeof source, "a.txt:%d", i);
        CU_ASSERT(is_cut(&t, i, source, &w, (size_t)(i * ids), ids));
    }
    CU_ASSERT(sh_texts_text(&t, path, &e) == 0 && t.n == 2 * whole);        /* files add up           */
    CU_ASSERT(is_cut(&t, whole, "a.txt:0", &w, 0, ids));
    sh_sequences_free(t.sequence, t.n);

    t = texts_of(&w, length, 3);                                            /* never more than asked  */
    CU_ASSERT(sh_texts_text(&t, path, &e) == 0 && t.n == 3);
    CU_ASSERT(sh_texts_text(&t, "/not/read", &e) == 0 && t.n == 3);
    sh_sequences_free(t.sequence, t.n);

    t = texts_of(&w, 0, 0);                                                 /* the model's positions  */
    CU_ASSERT(sh_texts_text(&t, path, &e) == 0 && t.n == (int)w.ids.n / (64 - bos));
    CU_ASSERT(is_cut(&t, 0, "a.txt:0", &w, 0, 64 - bos));
    sh_sequences_free(t.sequence, t.n);

    t = texts_of(&w, (int)w.ids.n + bos, 0);                                /* just all of it         */
    CU_ASSERT(sh_texts_text(&t, path, &e) == 0 && t.n == 1 && is_cut(&t, 0, "a.txt:0", &w, 0, (int)w.ids.n));
    sh_sequences_free(t.sequence, t.n);

    t = texts_of(&w, 4000, 0);                                              /* too short: all there is */
    CU_ASSERT(sh_texts_text(&t, path, &e) == 0 && t.n == 1 && is_cut(&t, 0, "a.txt:0", &w, 0, (int)w.ids.n));
    sh_sequences_free(t.sequence, t.n);
    free(path);
    with_free(&w);
}

static void text_with_start(void) { cut_text("opt_bpe", 1); }
static void text_without_start(void) { cut_text("gpt2_bpe", 0); }

/* Sequences of one token: without a start token each id is one; with one there is no room for any. */
static void one_token(void)
{
    struct with plain = with_new("gpt2_bpe"), started = with_new("opt_bpe");
    char *path = xstrdup(scratch_write("a.txt", text, strlen(text)));
    struct sh_texts t = texts_of(&plain, 1, 10);
    CU_ASSERT(sh_texts_text(&t, path, &e) == 0 && t.n == 10 && is_cut(&t, 9, "a.txt:9", &plain, 9, 1));
    sh_sequences_free(t.sequence, t.n);
    t = texts_of(&plain, 1, 0);
    CU_ASSERT(sh_texts_text(&t, path, &e) == 0 && t.n == (int)plain.ids.n);     /* the last one is whole */
    sh_sequences_free(t.sequence, t.n);
    t = texts_of(&started, 1, 10);
    CU_ASSERT(sh_texts_text(&t, path, &e) == -1 && t.n == 0 && e.status == SH_MISUSED);
    CU_ASSERT(strstr(e.text, "start token") != NULL);
    free(path);
    with_free(&plain);
    with_free(&started);
}

static int text_fails(const void *content, size_t bytes, const char *why)
{
    struct with w = with_new("opt_bpe");
    struct sh_texts t = texts_of(&w, 16, 0);
    const char *path = content ? scratch_write("bad.txt", content, bytes) : scratch_path("none.txt");
    int fine = sh_texts_text(&t, path, &e) == -1 && t.n == 0 && tap_says(e.text, why) && tap_says(e.text, path);
    sh_sequences_free(t.sequence, t.n);
    with_free(&w);
    return fine;
}

static void bad_texts(void)
{
    CU_ASSERT(text_fails(NULL, 0, "No such file"));
    CU_ASSERT(text_fails("", 0, "found no text"));
    CU_ASSERT(text_fails("fine \xff", 6, "UTF-8"));
}

/* One sequence for each document, cut to the length, a short one as it is, an empty one left out. */
static void documents(void)
{
    struct with w = with_new("opt_bpe");
    char *lines = xasprintf("{\"text\": \"%.*s\", \"id\": 1}\n\n  \n{\"text\": \"\"}\n{\"text\":\"The\"}\n", 97, text);
    char *path = xstrdup(scratch_write("d.jsonl", lines, strlen(lines)));
    struct sh_ids first = {0}, the = {0};
    CU_ASSERT_FATAL(!sh_tokenizer_encode(w.tokenizer, text, 97, 0, &first, &e) && first.n > 16);
    CU_ASSERT_FATAL(!sh_tokenizer_encode(w.tokenizer, "The", 3, 0, &the, &e));
    struct sh_texts t = texts_of(&w, 16, 0);
    CU_ASSERT(sh_texts_jsonl(&t, path, "text", &e) == 0 && t.n == 2);
    CU_ASSERT(t.sequence[0].n_tokens == 16 && t.sequence[0].tokens[0] == w.bos);
    CU_ASSERT(!memcmp(t.sequence[0].tokens + 1, first.at, 15 * sizeof *first.at));
    CU_ASSERT(t.sequence[1].n_tokens == (int)the.n + 1 && t.sequence[1].tokens[1] == the.at[0]);
    CU_ASSERT_STRING_EQUAL(t.sequence[0].source, "d.jsonl:0");
    CU_ASSERT_STRING_EQUAL(t.sequence[1].source, "d.jsonl:4");  /* the line, counted from 0 */
    sh_sequences_free(t.sequence, t.n);
    t = texts_of(&w, 16, 1);
    CU_ASSERT(sh_texts_jsonl(&t, path, "text", &e) == 0 && t.n == 1);
    sh_sequences_free(t.sequence, t.n);
    t = texts_of(&w, 16, 0);
    CU_ASSERT(sh_texts_jsonl(&t, path, "id", &e) == -1 && strstr(e.text, "line 1") && strstr(e.text, "\"id\""));
    sh_sequences_free(t.sequence, t.n);
    free(lines);
    free(path);
    free(first.at);
    free(the.at);
    with_free(&w);
}

/* All of a line, or its beginning when a length was asked for. No tokenizer is needed. */
static void ids(void)
{
    static const char lines[] = "[1, 2, 3, 3999]\n{\"tokens\": [7]}\n\n{\"ids\": [0, 5]}\r\n";
    char *path = xstrdup(scratch_write("i.jsonl", lines, strlen(lines)));
    for (int length = 0; length <= 4; length++) {
        struct sh_texts t = texts_of(NULL, length, 0);
        CU_ASSERT(sh_texts_tokens(&t, path, &e) == 0 && t.n == 3);
        CU_ASSERT(t.sequence[0].n_tokens == (length ? length : 4) && t.sequence[0].tokens[0] == 1);
        CU_ASSERT(length % 4 || t.sequence[0].tokens[3] == 3999);
        CU_ASSERT(t.sequence[1].n_tokens == 1 && t.sequence[1].tokens[0] == 7);
        CU_ASSERT(t.sequence[2].n_tokens == (length == 1 ? 1 : 2) && t.sequence[2].tokens[0] == 0);
        CU_ASSERT_STRING_EQUAL(t.sequence[2].source, "i.jsonl:3");
        sh_sequences_free(t.sequence, t.n);
    }
    struct sh_texts t = texts_of(NULL, 0, 2);
    CU_ASSERT(sh_texts_tokens(&t, path, &e) == 0 && t.n == 2);
    sh_sequences_free(t.sequence, t.n);
    free(path);
}

static int ids_fail(const char *lines, int max_pos, const char *why)
{
    struct sh_texts t = texts_of(NULL, 0, 0);
    t.max_pos = max_pos;
    const char *path = scratch_write("bad.jsonl", lines, strlen(lines));
    int fine = sh_texts_tokens(&t, path, &e) == -1 && tap_says(e.text, why) && tap_says(e.text, path);
    sh_sequences_free(t.sequence, t.n);
    return fine;
}

static void bad_ids(void)
{
    CU_ASSERT(ids_fail("", 64, "expected one JSON value per line"));
    CU_ASSERT(ids_fail("\n \n", 64, "expected one JSON value per line"));
    CU_ASSERT(ids_fail("[1]\n[1, 2", 64, "line 2 is not JSON"));
    CU_ASSERT(ids_fail("[1]\n[]", 64, "line 2: expected a JSON array"));
    CU_ASSERT(ids_fail("{\"tokens\": 5}", 64, "line 1: expected a JSON array"));
    CU_ASSERT(ids_fail("{}", 64, "line 1: expected a JSON array"));
    CU_ASSERT(ids_fail("[1, 4000]", 64, "line 1: element 1"));
    CU_ASSERT(ids_fail("[-1]", 64, "line 1: element 0"));
    CU_ASSERT(ids_fail("[1, 2.5]", 64, "element 1"));
    CU_ASSERT(ids_fail("[1, \"2\"]", 64, "element 1"));
    CU_ASSERT(ids_fail("[18446744073709551615]", 64, "line 1"));
    CU_ASSERT(ids_fail("[4294967296]", 64, "element 0"));
    CU_ASSERT(ids_fail("[1, 2, 3, 4]", 3, "found 4 tokens, expected at most 3"));
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"text: consecutive whole sequences after the start token", text_with_start},
        {"text: the same without a start token", text_without_start},
        {"text: sequences of one token", one_token},
        {"text: missing, empty, not UTF-8", bad_texts},
        {"jsonl: a sequence for each document", documents},
        {"ids: a sequence for each line", ids},
        {"ids: what is no list of tokens is refused with its place", bad_ids},
        {0}};
    return tap_run("texts", tests);
}
