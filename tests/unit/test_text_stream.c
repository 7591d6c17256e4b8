/* SPDX-License-Identifier: Apache-2.0 */
/* src/engine/text_stream.h: text token by token is the text as a whole, and never half a character. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "src/engine/text_stream.h"
#include "src/tokenizer/tok_text.h"
#include "tests/tap.h"

static struct sh_err e;

struct tally { int cases, other, torn; };

/* Ids [0, cut) are the prompt. The pieces must make what the tokens decode to after it. */
static void play(const struct sh_tokenizer *t, const int32_t *ids, size_t n, size_t cut, struct tally *tally)
{
    struct sh_text_stream s;
    struct sh_text text = {0};
    size_t bytes, all, before;
    sh_text_stream_begin(&s, t, ids, cut);
    for (size_t i = cut; i <= n; i++) {
        char *piece = i < n ? sh_text_stream_add(&s, ids[i], &bytes) : sh_text_stream_rest(&s, &bytes);
        tally->torn += sh_utf8_valid(piece, bytes) != bytes || piece[bytes] != '\0';
        sh_text_add(&text, piece, bytes);
        free(piece);
    }
    sh_text_stream_end(&s);
    char *whole = sh_tokenizer_decode(t, ids, n, &all), *prompt = sh_tokenizer_decode(t, ids, cut, &before);
    int is_cut = before > all || memcmp(whole, prompt, before) != 0;    /* the prompt ends in half a character */
    if (!is_cut) {
        tally->cases++;
        tally->other += text.n != all - before || memcmp(text.at ? text.at : "", whole + before, text.n) != 0;
    }
    free(whole);
    free(prompt);
    free(text.at);
}

static void every_case(const char *kind)
{
    char path[128];
    json_error_t error;
    struct tally tally = {0};
    snprintf(path, sizeof path, "tokenizers/%s/cases.json", kind);
    json_t *root = json_load_file(tap_golden(path), JSON_ALLOW_NUL, &error), *c, *id;
    const json_t *cases = json_object_get(root, "cases");
    size_t i, k;
    snprintf(path, sizeof path, "tokenizers/%s", kind);
    struct sh_tokenizer *t = sh_tokenizer_open(tap_golden(path), &e);
    CU_ASSERT_FATAL(json_is_array(cases) && t);
    json_array_foreach(cases, i, c) {
        json_t *list = json_object_get(c, "ids");
        int32_t *ids = calloc(json_array_size(list) + 1, sizeof *ids);
        json_array_foreach(list, k, id)
            ids[k] = (int32_t)json_integer_value(id);
        for (size_t cut = 0; cut < 4 && cut <= json_array_size(list); cut++)
            play(t, ids, json_array_size(list), cut, &tally);
        free(ids);
    }
    CU_ASSERT(tally.cases > 20);
    CU_ASSERT_EQUAL(tally.torn, 0);
    CU_ASSERT_EQUAL(tally.other, 0);
    sh_tokenizer_free(t);
    json_decref(root);
}

static void gpt2(void) { every_case("gpt2_bpe"); }
static void llama2(void) { every_case("llama2_sp"); }
static void llama3(void) { every_case("llama3_bpe"); }
static void opt(void) { every_case("opt_bpe"); }

/* Bytes that make no character for a long time: shown as U+FFFD, none lost, none kept back for ever. */
static void bytes_without_end(void)
{
    struct sh_tokenizer *t = sh_tokenizer_open(tap_golden("tokenizers/gpt2_bpe"), &e);
    struct sh_ids ids = {0};
    struct sh_text_stream s;
    size_t bytes, shown = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    CU_ASSERT_EQUAL_FATAL(sh_tokenizer_encode(t, "\xE2\x82\xAC", 3, 0, &ids, &e), 0);
    sh_text_stream_begin(&s, t, NULL, 0);
    for (int i = 0; i < 50; i++) {
        free(sh_text_stream_add(&s, ids.at[0], &bytes));        /* a start, and never what follows */
        shown += bytes;
        CU_ASSERT(shown + 9 >= 3 * (size_t)(i + 1));
    }
    free(sh_text_stream_rest(&s, &bytes));
    CU_ASSERT_EQUAL(shown + bytes, 150);
    sh_text_stream_end(&s);
    free(ids.at);
    sh_tokenizer_free(t);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"byte-level BPE", gpt2},
        {"SentencePiece with byte fallback", llama2},
        {"byte-level BPE, another regex", llama3},
        {"OPT's files", opt},
        {"bytes that make no character", bytes_without_end},
        {0}};
    return tap_run("text_stream", tests);
}
