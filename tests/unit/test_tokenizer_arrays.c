/* SPDX-License-Identifier: Apache-2.0 */
/* src/model/tok_arrays: vocabularies as arrays, made up ones and those of reference tokenizers. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/tokenizer/tok.h"
#include "tests/tap.h"
#include "tests/unit/base64.h"
#include "tests/unit/tokenizer_golden.h"

#define S(text) {text, sizeof text - 1}

static struct sh_tokenizer *from_arrays(const struct sh_tok_arrays *a, struct sh_err *e)
{
    struct sh_tokenizer *t = xcalloc(1, sizeof *t);
    if (!sh_tok_read_arrays(t, a, e))
        return t;
    sh_tokenizer_free(t);
    return NULL;
}

/* As in llama.cpp: whatever is cut out of the text, user-defined tokens too (here one of two spaces), a space is put
 * before what follows it and before nothing else. */
static void scores(void)
{
    static const struct sh_tok_string token[] = {S("<unk>"), S("<s>"), S("a"), S("b"), S("ab"), S("bb"),
                                                 S("\xe2\x96\x81"), S("[x]"), S("  "),
                                                 S("\xe2\x96\x81" "c\xe2\x96\x81")};
    static const float score[] = {0, 0, 0, 0, -2, -1, 0, 0, 0, 0};
    static const int32_t type[] = {2, 3, 1, 1, 1, 1, 1, 4, 4, 4};
    struct sh_tok_arrays a = {.model = SH_TOK_SCORES, .n = 10, .token = token, .score = score,
                              .type = type, .bos = 1, .eos = -1, .add_bos = 1, .add_prefix = 1,
                              .escape = 1, .specials_in_text = 1, .unknown_text = S("?")};
    static const char text[] = "[x]abb[x]bzz<s>ab   <unk>a c a";
    static const int32_t wanted[] = {1, 7, 6, 2, 5, 7, 6, 3, 0, 1, 6, 4, 8, 6, 6, 0, 6, 2, 9, 2};
    const size_t n = sizeof wanted / sizeof *wanted;
    struct sh_err e = {0};
    struct sh_ids ids = {0};
    size_t bytes;
    struct sh_tokenizer *t = from_arrays(&a, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    CU_ASSERT(sh_tokenizer_encode(t, text, sizeof text - 1, 1, &ids, &e) == 0);
    CU_ASSERT(ids.n == n && !memcmp(ids.at, wanted, sizeof wanted));
    char *back = sh_tokenizer_decode(t, ids.at, ids.n, &bytes);
    CU_ASSERT_STRING_EQUAL(back, "[x] abb[x] b? ab    ? a c a");
    free(back);
    free(ids.at);
    sh_tokenizer_free(t);
    a.bos = 10;
    CU_ASSERT(from_arrays(&a, &e) == NULL && strstr(e.text, "bos: id 10"));
    a.bos = -1;
    CU_ASSERT(from_arrays(&a, &e) == NULL && strstr(e.text, "bos: id -1"));
}

static void merges(void)
{
    static const struct sh_tok_string token[] = {S("a"), S("b"), S("ab"), S("\xc4\xa0"), S("1"),
                                                 S("11"), S("<|end|>"), S("[PAD0]"), S("[PAD0]")};
    static const struct sh_tok_string merge[] = {S("a b"), S("1 1")};
    static const int32_t type[] = {1, 1, 1, 1, 1, 1, 3, 5, 5};
    struct sh_tok_arrays a = {.model = SH_TOK_MERGES, .n = 9, .token = token, .type = type,
                              .n_merge = 2, .merge = merge, .pre = "smollm", .bos = 6, .eos = 6,
                              .add_eos = 1};
    static const int32_t wanted[] = {2, 3, 4, 4, 6, 6};
    struct sh_err e = {0};
    struct sh_ids ids = {0};
    struct sh_tokenizer *t = from_arrays(&a, &e);
    if (!t)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    CU_ASSERT(sh_tokenizer_encode(t, "ab 11<|end|>", 12, 1, &ids, &e) == 0);
    CU_ASSERT(ids.n == 6 && !memcmp(ids.at, wanted, sizeof wanted));
    sh_tokenizer_free(t);
    ids.n = 0;
    a.pre = "qwen2";
    t = from_arrays(&a, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    CU_ASSERT(sh_tokenizer_encode(t, "11", 2, 0, &ids, &e) == 0 && ids.n == 2);
    sh_tokenizer_free(t);
    free(ids.at);
    a.pre = "nobody";
    CU_ASSERT(from_arrays(&a, &e) == NULL && strstr(e.text, "nobody is not"));
    a.pre = NULL;
    CU_ASSERT(from_arrays(&a, &e) == NULL && strstr(e.text, "unnamed"));
}

/* Each pre-tokenizer that a GGUF file may name cuts "Ab1234 c!" its own way. */
static void pre_names(void)
{
    static const struct { const char *name; size_t n; } names[] = {
        {"gpt-2", 4}, {"mpt", 4}, {"olmo", 4}, {"jais", 4}, {"starcoder", 7}, {"refact", 7},
        {"command-r", 7}, {"smollm", 7}, {"codeshell", 7}, {"llama-bpe", 5}, {"llama3", 5},
        {"llama-v3", 5}, {"dbrx", 5}, {"smaug-bpe", 5}, {"qwen2", 7}, {"deepseek-r1-qwen", 7},
        {"stablelm2", 7}, {"gpt-4o", 5}, {"llama4", 5}, {"tekken", 7}, {"bloom", 3}, {"phi-2", 4},
        {"exaone4", 4}, {"exaone", 7}, {"falcon3", 5}, {"lfm2", 5}, {"glm4", 5}, {"chatglm-bpe", 5}, {"minimax-m2", 5},
        {"hunyuan", 7}, {"solar-open", 7}, {"qwen35", 7}, {"seed-coder", 7}, {"falcon", 5}, {"default", 5},
        {"deepseek-coder", 7}, {"deepseek-v3", 5}, {"hunyuan-dense", 5}};
    static const struct sh_tok_string token[] = {
        S("A"), S("b"), S("1"), S("2"), S("3"), S("4"), S("c"), S("!"), S("\xc4\xa0"), S("Ab"),
        S("12"), S("34"), S("1234"), S("123"), S("\xc4\xa0" "c"), S("Ab1234"), S("Ab123")};
    static const struct sh_tok_string merge[] = {S("A b"), S("1 2"), S("12 3"), S("123 4"),
                                                 S("\xc4\xa0 c"), S("Ab 1234")};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct sh_tok_arrays a = {.model = SH_TOK_MERGES, .n = 17, .token = token, .n_merge = 6,
                                  .merge = merge, .pre = names[i].name, .bos = -1, .eos = -1};
        struct sh_err e = {0};
        struct sh_ids ids = {0};
        struct sh_tokenizer *t = from_arrays(&a, &e);
        if (!t)
            printf("# %s: %s\n", names[i].name, e.text);
        CU_ASSERT_PTR_NOT_NULL_FATAL(t);
        CU_ASSERT(sh_tokenizer_encode(t, "Ab1234 c!", 9, 0, &ids, &e) == 0);
        if (ids.n != names[i].n)
            printf("# %s: %zu ids\n", names[i].name, ids.n);
        CU_ASSERT(ids.n == names[i].n);
        free(ids.at);
        sh_tokenizer_free(t);
    }
}

/* A tokenizer.json taken apart into arrays, as a GGUF file has them. */
struct taken { json_t *root, *joined; struct sh_tok_string *token, *merge; int32_t *type; };

static struct sh_tok_string string_of(const json_t *s)
{
    return (struct sh_tok_string){json_string_value(s), json_string_length(s)};
}

static void take_merges(struct taken *t, struct sh_tok_arrays *a, json_t *merges)
{
    t->joined = json_array();
    a->n_merge = json_array_size(merges);
    t->merge = xcalloc(a->n_merge, sizeof *t->merge);
    for (size_t i = 0; i < a->n_merge; i++) {
        json_t *one = json_array_get(merges, i);
        one = json_is_string(one)
                  ? json_incref(one)
                  : json_sprintf("%s %s", json_string_value(json_array_get(one, 0)),
                                 json_string_value(json_array_get(one, 1)));
        json_array_append_new(t->joined, one);
        t->merge[i] = string_of(one);
    }
    a->merge = t->merge;
}

static void take(struct taken *t, struct sh_tok_arrays *a, const char *kind)
{
    json_error_t error;
    json_t *one, *id;
    const char *key;
    size_t i, cap = 5000;
    char *name = xasprintf("%s/tokenizer.json", kind), *path = tokenizer_golden(name);
    t->root = json_load_file(path, 0, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t->root);
    json_t *model = json_object_get(t->root, "model");
    t->token = xcalloc(cap, sizeof *t->token);
    t->type = xcalloc(cap, sizeof *t->type);
    json_object_foreach(json_object_get(model, "vocab"), key, id) {
        size_t k = (size_t)json_integer_value(id);
        t->token[k] = (struct sh_tok_string){key, strlen(key)};
        t->type[k] = SH_TOK_NORMAL;
        a->n = k >= a->n ? k + 1 : a->n;
    }
    json_array_foreach(json_object_get(t->root, "added_tokens"), i, one) {
        size_t k = (size_t)json_integer_value(json_object_get(one, "id"));
        t->token[k] = string_of(json_object_get(one, "content"));
        t->type[k] = json_is_true(json_object_get(one, "special")) ? SH_TOK_CONTROL : SH_TOK_USER;
        a->n = k >= a->n ? k + 1 : a->n;
    }
    take_merges(t, a, json_object_get(model, "merges"));
    a->token = t->token;
    a->type = t->type;
    free(name);
    free(path);
}

/* The reference cases of a tokenizer.json hold for its arrays. */
static void like_json(const char *kind, const char *pre)
{
    static char text[1 << 16];
    struct taken taken = {0};
    struct sh_tok_arrays a = {.model = SH_TOK_MERGES, .pre = pre, .bos = -1, .eos = -1};
    struct sh_err e = {0};
    json_error_t error;
    json_t *one;
    size_t i, n_bad = 0;
    char *name = xasprintf("%s/cases.json", kind), *path = tokenizer_golden(name);
    json_t *root = json_load_file(path, JSON_ALLOW_NUL, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(root);
    take(&taken, &a, kind);
    struct sh_tokenizer *t = from_arrays(&a, &e);
    if (!t)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    json_array_foreach(json_object_get(root, "cases"), i, one) {
        size_t n = from_base64(json_string_value(json_object_get(one, "b64")), text);
        text[n] = '\0';
        n_bad += !tokenizer_agrees(t, text, n, one);
    }
    CU_ASSERT(i > 300 && n_bad == 0);
    sh_tokenizer_free(t);
    json_decref(taken.root);
    json_decref(taken.joined);
    free(taken.token);
    free(taken.type);
    free(taken.merge);
    json_decref(root);
    free(name);
    free(path);
}

static void gpt2(void) { like_json("gpt2_bpe", "gpt-2"); }
static void llama3(void) { like_json("llama3_bpe", "llama-bpe"); }
static void qwen2(void) { like_json("qwen2_bpe", "qwen2"); }

int main(void)
{
    static const struct tap_test tests[] = {
        {"arrays with scores", scores},
        {"arrays with merges and a named pre-tokenizer", merges},
        {"named pre-tokenizers", pre_names},
        {"gpt2's arrays: every reference case", gpt2},
        {"llama3's arrays: every reference case", llama3},
        {"qwen2's arrays: every reference case", qwen2},
        {0}};
    return tap_run("tokenizer_arrays", tests);
}
