/* SPDX-License-Identifier: Apache-2.0 */
/* src/model/tokenizer: every reference case of the goldens (ids and text exact), and odd texts. */
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/tokenizer/tokenizer.h"
#include "tests/tap.h"
#include "tests/unit/base64.h"
#include "tests/unit/scratch.h"
#include "tests/unit/tokenizer_golden.h"

/* ---- helpers ---- */

static struct sh_tokenizer *open_golden(const char *kind)
{
    struct sh_err e = {0};
    char *folder = tokenizer_golden(kind);
    struct sh_tokenizer *t = sh_tokenizer_open(folder, &e);
    if (!t)
        printf("# %s\n", e.text);
    free(folder);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    return t;
}

static int same_ids(const struct sh_ids *got, const json_t *ids, int front)
{
    size_t skip = front >= 0;
    if (got->n != json_array_size(ids) + skip || (skip && got->at[0] != front))
        return 0;
    for (size_t i = skip; i < got->n; i++)
        if (got->at[i] != json_integer_value(json_array_get(ids, i - skip)))
            return 0;
    return 1;
}

/* Encodes and decodes one text; what differs from the reference is said in a comment. */
static int agrees(const struct sh_tokenizer *t, const char *text, size_t n, const json_t *ids,
                  const char *back, size_t n_back)
{
    struct sh_ids got = {0};
    struct sh_err e = {0};
    size_t bytes = 0;
    int fine = sh_tokenizer_encode(t, text, n, 0, &got, &e) == 0 && same_ids(&got, ids, -1);
    if (!fine)
        printf("# ids differ for \"%.60s\" %s\n", text, e.text);
    if (fine && back) {
        char *decoded = sh_tokenizer_decode(t, got.at, got.n, &bytes);
        fine = bytes == n_back && !memcmp(decoded, back, bytes);
        if (!fine)
            printf("# decoded differs for \"%.60s\": \"%.60s\"\n", text, decoded);
        free(decoded);
    }
    free(got.at);
    return fine;
}

static struct sh_tokenizer *open_text(const char *tokenizer_json, struct sh_err *e)
{
    scratch_write("tokenizer.json", tokenizer_json, strlen(tokenizer_json));
    return sh_tokenizer_open(scratch_folder(), e);
}

/* ---- references ---- */

static void reference(const char *kind)
{
    static char text[1 << 16], back[1 << 16];
    char *name = xasprintf("%s/cases.json", kind);
    json_t *root = tokenizer_golden_json(name), *one, *bos = json_object_get(root, "bos_id");
    struct sh_tokenizer *t = open_golden(kind);
    size_t i, n_bad = 0;
    CU_ASSERT(sh_tokenizer_size(t) == json_integer_value(json_object_get(root, "vocab_size")));
    CU_ASSERT(tokenizer_bos(t) == (json_is_integer(bos) ? json_integer_value(bos) : -1));
    CU_ASSERT_FATAL(json_array_size(json_object_get(root, "cases")) > 300);
    json_array_foreach(json_object_get(root, "cases"), i, one) {
        const json_t *decoded = json_object_get(one, "decoded");
        size_t n = from_base64(json_string_value(json_object_get(one, "b64")), text), n_back = n;
        memcpy(back, text, n);
        if (decoded) {
            n_back = json_string_length(decoded);
            memcpy(back, json_string_value(decoded), n_back);
        }
        text[n] = '\0';
        n_bad += !agrees(t, text, n, json_object_get(one, "ids"), back, n_back);
    }
    CU_ASSERT(n_bad == 0);
    sh_tokenizer_free(t);
    json_decref(root);
    free(name);
}

static void reference_gpt2(void) { reference("gpt2_bpe"); }
static void reference_llama3(void) { reference("llama3_bpe"); }
static void reference_llama2(void) { reference("llama2_sp"); }
static void reference_opt(void) { reference("opt_bpe"); }
static void reference_qwen2(void) { reference("qwen2_bpe"); }
static void reference_neox(void) { reference("neox_bpe"); }
static void reference_gemma(void) { reference("gemma_sp"); }
static void reference_unigram(void) { reference("unigram_sp"); }

static void opt_end_to_end(void)
{
    json_t *root = tokenizer_golden_json("e2e_opt/ref_text.json"), *one;
    struct sh_tokenizer *t = open_golden("opt_bpe");
    size_t i, n = 0;
    CU_ASSERT(tokenizer_bos(t) == 2);
    json_array_foreach(json_object_get(root, "cases"), i, one) {
        const json_t *text = json_object_get(one, "text"), *greedy = json_object_get(one, "greedy");
        const json_t *continuation = json_object_get(one, "greedy_text");
        struct sh_ids ids = {0}, more = {0};
        struct sh_err e;
        CU_ASSERT(!sh_tokenizer_encode(t, json_string_value(text), json_string_length(text), 1,
                                       &ids, &e));
        CU_ASSERT(same_ids(&ids, json_object_get(one, "ids"), -1));
        more.n = json_array_size(greedy);
        more.at = xcalloc(more.n + 1, sizeof *more.at);
        for (size_t k = 0; k < more.n; k++)
            more.at[k] = (int32_t)json_integer_value(json_array_get(greedy, k));
        char *back = sh_tokenizer_decode(t, more.at, more.n, &n);
        CU_ASSERT(n == json_string_length(continuation) &&
                  !memcmp(back, json_string_value(continuation), n));
        free(back);
        free(ids.at);
        free(more.at);
    }
    CU_ASSERT(i > 0);
    sh_tokenizer_free(t);
    json_decref(root);
}

/* With the tokens before and after. */
static int agrees_special(const struct sh_tokenizer *t, const json_t *text, const json_t *ids)
{
    struct sh_ids got = {0};
    struct sh_err e = {0};
    int fine = !sh_tokenizer_encode(t, json_string_value(text), json_string_length(text), 1, &got,
                                    &e) && same_ids(&got, ids, -1);
    free(got.at);
    return fine;
}

static void run_variant(const json_t *variant, size_t *n_bad)
{
    const char *base = json_string_value(json_object_get(variant, "base"));
    char *name = xasprintf("%s/tokenizer.json", base);
    json_t *root = tokenizer_golden_json(name), *patch = json_object_get(variant, "patch"), *one;
    size_t i;
    struct sh_err e = {0};
    json_object_update(json_object_get(root, "model"), json_object_get(patch, "model"));
    json_object_del(patch, "model");
    json_object_update(root, patch);
    char *whole = json_dumps(root, 0);
    struct sh_tokenizer *t = open_text(whole, &e);
    if (!t)
        printf("# %s\n", e.text);
    *n_bad += !t;
    json_array_foreach(json_object_get(variant, "cases"), i, one) {
        const json_t *text = json_object_get(one, "text"), *back = json_object_get(one, "decoded"),
                     *special = json_object_get(one, "special");
        *n_bad += t && special && !agrees_special(t, text, special);
        *n_bad += t && !agrees(t, json_string_value(text), json_string_length(text),
                               json_object_get(one, "ids"), json_string_value(back),
                               json_string_length(back));
    }
    sh_tokenizer_free(t);
    free(whole);
    json_decref(root);
    free(name);
}

static void variants(void)
{
    json_t *all = tokenizer_golden_json("variants.json"), *one;
    size_t i, n_bad;
    CU_ASSERT(json_array_size(all) >= 66);
    json_array_foreach(all, i, one) {
        n_bad = 0;
        run_variant(one, &n_bad);
        if (n_bad)
            printf("# variant \"%s\": %zu differ\n",
                   json_string_value(json_object_get(one, "name")), n_bad);
        CU_ASSERT(n_bad == 0);
    }
    json_decref(all);
    scratch_clear();
}

/* ---- texts ---- */

static void bad_utf8(void)
{
    static const struct { const char *text; size_t n, at; } bad[] = {
        {"\x80", 1, 0}, {"ab\xc3", 3, 2}, {"\xc0\x80", 2, 0},
        {"x\xe0\x80\x80", 4, 1}, {"\xed\xa0\x80", 3, 0},
        {"\0\xf4\x90\x80\x80", 5, 1}, {"\xf0\x8f\xbf\xbf", 4, 0},
        {"\xc3\xa9\xff", 3, 2}, {"\xe2\x82", 2, 0},
        {"a\xe2\x82" "b", 4, 1}, {"\xf5\x80\x80\x80", 4, 0}};
    struct sh_tokenizer *t = open_golden("gpt2_bpe");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct sh_ids ids = {0};
        struct sh_err e = {0};
        char where[32];
        snprintf(where, sizeof where, "offset %zu ", bad[i].at);
        CU_ASSERT(sh_tokenizer_encode(t, bad[i].text, bad[i].n, 1, &ids, &e) == -1);
        CU_ASSERT(strstr(e.text, where) != NULL && ids.n == 0);
        free(ids.at);
    }
    sh_tokenizer_free(t);
}

/* 300 kB without a break take well under a second; quadratic merging would take hours. */
static void long_pieces_of(const char *name)
{
    struct sh_tokenizer *t = open_golden(name);
    size_t n = 300000, bytes;
    char *text = xmalloc(n + 1);
    for (int kind = 0; kind < 3; kind++) {
        for (size_t i = 0; i < n; i++)
            text[i] = kind == 0 ? ' ' : kind == 1 ? '*' : (char)('a' + sh_rng(1, i) % 26);
        text[n] = '\0';
        struct sh_ids ids = {0};
        struct sh_err e;
        CU_ASSERT(sh_tokenizer_encode(t, text, n, 0, &ids, &e) == 0);
        char *back = sh_tokenizer_decode(t, ids.at, ids.n, &bytes);
        CU_ASSERT(bytes == n && !memcmp(back, text, n) && ids.n < n);
        free(back);
        free(ids.at);
    }
    free(text);
    sh_tokenizer_free(t);
}

static void long_pieces(void)
{
    long_pieces_of("gpt2_bpe");
    long_pieces_of("llama2_sp");
}

static void decode_odd_ids(void)
{
    struct sh_tokenizer *t = open_golden("llama3_bpe");
    const int32_t ids[] = {-1, 64, 1 << 30, INT32_MIN, 258, 100000};
    size_t n;
    char *text = sh_tokenizer_decode(t, ids, 6, &n);
    CU_ASSERT(n == 3 && !memcmp(text, "a a", 4));
    free(text);
    text = sh_tokenizer_decode(t, ids, 0, &n);
    CU_ASSERT(n == 0 && text[0] == '\0');
    free(text);
    sh_tokenizer_free(t);
}

static void labels(void)
{
    struct sh_tokenizer *t = open_golden("llama3_bpe");
    CU_ASSERT_STRING_EQUAL(sh_tokenizer_piece(t, 64), "a");
    CU_ASSERT_STRING_EQUAL(sh_tokenizer_piece(t, 258), "\xc2\xb7" "a");
    CU_ASSERT_STRING_EQUAL(sh_tokenizer_piece(t, 198), "\\n");
    CU_ASSERT_STRING_EQUAL(sh_tokenizer_piece(t, 639), "<|begin_of_text|>");
    CU_ASSERT_PTR_NULL(sh_tokenizer_piece(t, -1));
    CU_ASSERT_PTR_NULL(sh_tokenizer_piece(t, 644));
    int raw = 0, nul = 0;
    for (int i = 0; i < sh_tokenizer_size(t); i++) {
        raw += !strcmp(sh_tokenizer_piece(t, i), "\\xC3");
        nul += !strcmp(sh_tokenizer_piece(t, i), "\\x00");
    }
    CU_ASSERT(raw == 1 && nul == 1);
    sh_tokenizer_free(t);
    t = open_golden("llama2_sp");
    CU_ASSERT_STRING_EQUAL(sh_tokenizer_piece(t, 279), "\xc2\xb7\xc2\xb7");
    sh_tokenizer_free(t);
}

struct job { const struct sh_tokenizer *t; struct sh_ids ids; int bad; };

static void *encode_many(void *at)
{
    static const char text[] = "The work, under this license; Voil\xc3\xa0 12345 copies.\n\n  "
                               "\xe4\xb8\x96\xe7\x95\x8c";
    struct job *job = at;
    struct sh_err e;
    for (int i = 0; i < 200; i++)
        job->bad |= sh_tokenizer_encode(job->t, text, sizeof text - 1, 1, &job->ids, &e);
    return NULL;
}

static void threads(void)
{
    struct job job[4] = {{0}};
    pthread_t thread[4];
    struct sh_tokenizer *t = open_golden("qwen2_bpe");
    for (int i = 0; i < 4; i++) {
        job[i].t = t;
        CU_ASSERT_FATAL(pthread_create(&thread[i], NULL, encode_many, &job[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        CU_ASSERT(!job[i].bad && job[i].ids.n == job[0].ids.n && job[i].ids.n > 1000);
        CU_ASSERT(!memcmp(job[i].ids.at, job[0].ids.at, job[0].ids.n * sizeof(int32_t)));
    }
    for (int i = 0; i < 4; i++)
        free(job[i].ids.at);
    sh_tokenizer_free(t);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"gpt2: every reference case", reference_gpt2},
        {"llama3: every reference case", reference_llama3},
        {"llama2 (byte fallback): every reference case", reference_llama2},
        {"opt (vocab.json, merges.txt): every reference case", reference_opt},
        {"qwen2: every reference case", reference_qwen2},
        {"neox: every reference case", reference_neox},
        {"gemma (byte fallback): every reference case", reference_gemma},
        {"unigram (byte fallback): every reference case", reference_unigram},
        {"opt: text to ids with </s> in front, greedy ids to text", opt_end_to_end},
        {"other pre-tokenizers, normalizers, decoders: reference cases", variants},
        {"text that is not UTF-8 is refused with its offset", bad_utf8},
        {"300 kB without a break", long_pieces},
        {"ids that no token has decode to nothing", decode_odd_ids},
        {"labels of tokens", labels},
        {"four threads share a tokenizer", threads},
        {0}};
    return tap_run("tokenizer", tests);
}
