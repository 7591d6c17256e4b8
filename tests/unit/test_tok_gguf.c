/* SPDX-License-Identifier: Apache-2.0 */
/* src/model/tok_gguf: tokenizers in the metadata of GGUF files. Those of reference tokenizers
 * (tests/oracle/gguf_files.py) and of SentencePiece's give the reference ids; arrays that do not fit together are
 * refused by their key. */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/files/gguf.h"
#include "src/tokenizer/tok.h"
#include "tests/tap.h"
#include "tests/unit/base64.h"
#include "tests/unit/scratch.h"
#include "tests/unit/tokenizer_golden.h"

#define KEY "tokenizer.ggml."

static struct sh_err e;

static json_t *golden_json(const char *name)
{
    json_error_t error;
    char *path = tokenizer_golden(name);
    json_t *root = json_load_file(path, JSON_ALLOW_NUL, &error);
    CU_ASSERT_PTR_NOT_NULL_FATAL(root);
    free(path);
    return root;
}

static struct sh_tokenizer *opened(const char *path)
{
    struct sh_tokenizer *t = sh_tokenizer_open(path, &e);
    if (!t)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    return t;
}

static size_t text_of(const json_t *b64, char *text)
{
    size_t n = from_base64(json_string_value(b64), text);
    text[n] = '\0';
    return n;
}

/* ---- reference tokenizers ---- */

static int same_ids(const struct sh_tokenizer *t, const char *text, size_t n, const json_t *wanted)
{
    struct sh_ids ids = {0};
    int fine = !sh_tokenizer_encode(t, text, n, 0, &ids, &e) && ids.n == json_array_size(wanted);
    for (size_t i = 0; fine && i < ids.n; i++)
        fine = ids.at[i] == json_integer_value(json_array_get(wanted, i));
    free(ids.at);
    return fine;
}

/* tokenizer.json's control tokens are written out again, those of a vocabulary with scores are not. */
static int agrees(const struct sh_tokenizer *t, const char *text, size_t n, const json_t *one)
{
    int silent = tokenizer_bos(t) == 1 && (strstr(text, "<s>") || strstr(text, "</s>"));
    return silent ? same_ids(t, text, n, json_object_get(one, "ids")) : tokenizer_agrees(t, text, n, one);
}

static void like_json(const char *kind)
{
    static char text[1 << 16];
    char *name = xasprintf("gguf/tok_%s.gguf", kind), *cases = xasprintf("%s/cases.json", kind);
    CU_ASSERT_PTR_NOT_NULL_FATAL(tap_golden(name));
    struct sh_tokenizer *t = opened(tap_golden(name));
    json_t *root = golden_json(cases), *one;
    const json_t *bos = json_object_get(root, "bos_id");
    size_t i, n_bad = 0;
    json_array_foreach(json_object_get(root, "cases"), i, one) {
        size_t n = text_of(json_object_get(one, "b64"), text);
        n_bad += !agrees(t, text, n, one);
    }
    CU_ASSERT(i > 300 && n_bad == 0);
    CU_ASSERT(tokenizer_bos(t) == (json_is_integer(bos) ? json_integer_value(bos) : -1));
    CU_ASSERT(sh_tokenizer_eos(t) == -1);
    CU_ASSERT(sh_tokenizer_size(t) == json_integer_value(json_object_get(root, "vocab_size")));
    sh_tokenizer_free(t);
    json_decref(root);
    free(cases);
    free(name);
}

static void gpt2(void) { like_json("gpt2_bpe"); }
static void llama2(void) { like_json("llama2_sp"); }
static void qwen2(void) { like_json("qwen2_bpe"); }
static void llama3(void) { like_json("llama3_bpe"); }

/* ---- a file, value by value ---- */

static struct { unsigned char at[1 << 20]; size_t n; uint64_t n_value; } file;

static void put(const void *at, size_t n)
{
    CU_ASSERT_FATAL(n <= sizeof file.at - file.n);
    memcpy(file.at + file.n, at, n);
    file.n += n;
}

static void u32(uint32_t x) { put(&x, sizeof x); }
static void u64(uint64_t x) { put(&x, sizeof x); }

static void string(const char *at, size_t n)
{
    u64(n);
    put(at, n);
}

static void begin(void)
{
    file.n = file.n_value = 0;
    put("GGUF", 4);
    u32(3);
    u64(0);
    u64(0);
}

static void key(const char *name, enum sh_gguf_kind kind)
{
    char *whole = xasprintf(KEY "%s", name);
    string(whole, strlen(whole));
    u32(kind);
    file.n_value++;
    free(whole);
}

static void array(const char *name, enum sh_gguf_kind item, size_t n)
{
    key(name, SH_GGUF_ARRAY);
    u32(item);
    u64(n);
}

static void word(const char *name, const char *text)
{
    key(name, SH_GGUF_STRING);
    string(text, strlen(text));
}

static void number(const char *name, uint32_t x)
{
    key(name, SH_GGUF_U32);
    u32(x);
}

static void flag(const char *name, int on)
{
    unsigned char byte = (unsigned char)on;
    key(name, SH_GGUF_BOOL);
    put(&byte, 1);
}

static void strings(const char *name, const struct sh_tok_string *at, size_t n)
{
    array(name, SH_GGUF_STRING, n);
    for (size_t i = 0; i < n; i++)
        string(at[i].at, at[i].n);
}

static const char *written(const char *name)
{
    memcpy(file.at + 16, &file.n_value, sizeof file.n_value);
    return scratch_write(name, file.at, file.n);
}

/* ---- SentencePiece's models ---- */

static void write_sp(const struct sh_tok_arrays *a)
{
    begin();
    word("model", a->model == SH_TOK_UNIGRAM ? "t5" : "llama");
    strings("tokens", a->token, a->n);
    array("scores", SH_GGUF_F32, a->n);
    put(a->score, a->n * sizeof *a->score);
    array("token_type", SH_GGUF_I32, a->n);
    put(a->type, a->n * sizeof *a->type);
    flag("add_space_prefix", a->add_prefix);
    flag("remove_extra_whitespaces", a->squeeze);
    flag("add_eos_token", 0);
    if (a->charsmap.n) {
        array("precompiled_charsmap", SH_GGUF_U8, a->charsmap.n);
        put(a->charsmap.at, a->charsmap.n);
    }
    written("m.gguf");
}

/* A user-defined token as texts have it: with spaces for U+2581. */
static size_t user_text(const struct sh_tok_string *token, char text[256])
{
    size_t n = 0;
    for (size_t i = 0; i < token->n && n < 256; n++)
        if (token->n - i >= 3 && !memcmp(token->at + i, "\xe2\x96\x81", 3)) {
            text[n] = ' ';
            i += 3;
        } else {
            text[n] = token->at[i++];
        }
    return n;
}

static int has_user_token(const struct sh_tok_arrays *a, const char *text, size_t n)
{
    char user[256];
    for (size_t i = 0; i < a->n; i++)
        if (a->type[i] == SH_TOK_USER && memmem(text, n, user, user_text(&a->token[i], user)))
            return 1;
    return 0;
}

/* Texts with the name of a control token or a user-defined one are left out: a GGUF file's are cut out of texts as they
 * come, SentencePiece's not or out of normalised texts. */
static int like_sp(const char *kind, const json_t *texts, const json_t *cases)
{
    static char text[1 << 16];
    struct sh_sp_model model;
    int n_bad = 0;
    char *name = xasprintf("sentencepiece/%s/tokenizer.model", kind), *path = tokenizer_golden(name);
    CU_ASSERT_FATAL(sh_sp_model_open(&model, path, &e) == 0);
    int same = model.arrays.escape && model.arrays.unknown_text.n == 5;     /* GGUF cannot say otherwise */
    if (same) {
        scratch_clear();
        write_sp(&model.arrays);
        struct sh_tokenizer *t = opened(scratch_path("m.gguf"));
        for (size_t i = 0; i < json_array_size(texts); i++) {
            size_t n = text_of(json_array_get(texts, i), text);
            if (!memchr(text, '<', n) && !has_user_token(&model.arrays, text, n))
                n_bad += !tokenizer_agrees(t, text, n, json_array_get(cases, i));
        }
        if (n_bad)
            printf("# %s: %d texts differ\n", kind, n_bad);
        CU_ASSERT(n_bad == 0);
        CU_ASSERT(tokenizer_bos(t) == (model.arrays.model == SH_TOK_UNIGRAM ? -1 : 1));
        sh_tokenizer_free(t);
    }
    sh_sp_model_close(&model);
    free(name);
    free(path);
    return same;
}

static void sentencepiece(void)
{
    json_t *root = golden_json("sentencepiece/cases.json"), *model;
    const char *kind;
    int n = 0;
    json_object_foreach(json_object_get(root, "models"), kind, model)
        n += like_sp(kind, json_object_get(root, "texts"), json_object_get(model, "cases"));
    CU_ASSERT(n >= 6);
    json_decref(root);
}

/* ---- what is said, what is not said, what is refused ---- */

#define S(text) {text, sizeof text - 1}

/* A file that is sound until something is changed. */
struct story {
    const char *model, *pre;
    size_t n_token, n_score, n_type, n_merge;   /* 0: the key is left out */
    enum sh_gguf_kind score_item, type_item;
    int32_t type[8];
    struct sh_tok_string token[8], merge[2];
    int64_t bos, eos, unknown;                  /* -1: left out */
    int add_bos, add_eos, prefix;               /* -1: left out */
};

static const struct story with_scores = {
    "llama", NULL, 7, 7, 7, 0, SH_GGUF_F32, SH_GGUF_I32, {2, 3, 3, 1, 1, 1, 1},
    {S("<unk>"), S("<s>"), S("</s>"), S("a"), S("b"), S("ab"), S("\xe2\x96\x81")}, {{0}}, -1, -1, -1, -1, -1, -1};
static const struct story with_merges = {
    "gpt2", "gpt-2", 7, 0, 7, 1, SH_GGUF_F32, SH_GGUF_I32, {1, 1, 1, 1, 3, 3, 5},
    {S("a"), S("b"), S("ab"), S("\xc4\xa0"), S("<s>"), S("</s>"), S("[PAD6]")}, {S("a b")}, -1, -1, -1, -1, -1, -1};

static void write_story(const struct story *s)
{
    begin();
    if (s->model)
        word("model", s->model);
    if (s->pre)
        word("pre", s->pre);
    if (s->n_token)
        strings("tokens", s->token, s->n_token);
    if (s->n_score)
        array("scores", s->score_item, s->n_score);
    for (size_t i = 0; i < s->n_score; i++)
        put(&(float){0}, sizeof(float));
    if (s->n_type)
        array("token_type", s->type_item, s->n_type);
    for (size_t i = 0; i < s->n_type; i++)
        put(&s->type[i], sizeof *s->type);
    if (s->n_merge)
        strings("merges", s->merge, s->n_merge);
    if (s->bos >= 0)
        number("bos_token_id", (uint32_t)s->bos);
    if (s->eos >= 0)
        number("eos_token_id", (uint32_t)s->eos);
    if (s->unknown >= 0)
        number("unknown_token_id", (uint32_t)s->unknown);
    if (s->add_bos >= 0)
        flag("add_bos_token", s->add_bos);
    if (s->add_eos >= 0)
        flag("add_eos_token", s->add_eos);
    if (s->prefix >= 0)
        flag("add_space_prefix", s->prefix);
    scratch_clear();
    written("m.gguf");
}

/* The ids of "ab<s>a" with what is put before and after it; the list ends with -1. */
static int gives(const struct story *s, const int32_t *wanted)
{
    struct sh_ids ids = {0};
    size_t n = 0;
    write_story(s);
    struct sh_tokenizer *t = opened(scratch_path("m.gguf"));
    CU_ASSERT(sh_tokenizer_encode(t, "ab<s>a", 6, 1, &ids, &e) == 0);
    while (wanted[n] >= 0)
        n++;
    int fine = ids.n == n && !memcmp(ids.at, wanted, n * sizeof *wanted);
    for (size_t i = 0; !fine && i < ids.n; i++)
        printf("# id %zu: %d\n", i, (int)ids.at[i]);
    free(ids.at);
    sh_tokenizer_free(t);
    return fine;
}

static void defaults(void)
{
    struct story s = with_scores;
    CU_ASSERT(gives(&s, (int32_t[]){1, 6, 5, 1, 6, 3, -1}));
    s.prefix = s.add_bos = 0;
    CU_ASSERT(gives(&s, (int32_t[]){5, 1, 3, -1}));
    s.add_eos = 1;
    CU_ASSERT(gives(&s, (int32_t[]){5, 1, 3, 2, -1}));
    s.eos = 3;
    CU_ASSERT(gives(&s, (int32_t[]){5, 1, 3, 3, -1}));
    s.type[0] = SH_TOK_CONTROL;
    s.unknown = 0;
    CU_ASSERT(gives(&s, (int32_t[]){5, 1, 3, 3, -1}));
    s = with_scores;                    /* padding of type unknown, and no "b", as Phi-3 is published */
    s.token[4] = (struct sh_tok_string)S("[PAD4]");
    s.type[4] = s.type[5] = SH_TOK_UNKNOWN;
    CU_ASSERT(gives(&s, (int32_t[]){1, 6, 3, 0, 1, 6, 3, -1}));
    s.type[0] = SH_TOK_CONTROL;
    s.unknown = 0;
    CU_ASSERT(gives(&s, (int32_t[]){1, 6, 3, 0, 1, 6, 3, -1}));
    s = with_scores;
    s.model = "t5";
    s.eos = 2;
    CU_ASSERT(gives(&s, (int32_t[]){6, 5, 1, 6, 3, 2, -1}));
    s = with_merges;
    CU_ASSERT(gives(&s, (int32_t[]){2, 4, 0, -1}));
    s.bos = 4;
    s.eos = 5;
    CU_ASSERT(gives(&s, (int32_t[]){2, 4, 0, -1}));
    s.pre = "llama-bpe";
    CU_ASSERT(gives(&s, (int32_t[]){4, 2, 4, 0, -1}));
    s.add_bos = 0;
    s.add_eos = 1;
    CU_ASSERT(gives(&s, (int32_t[]){2, 4, 0, 5, -1}));
}

/* Without types all tokens are normal: "<s>" is not cut out of texts, and '<' is not in this vocabulary. */
static void no_types(void)
{
    struct sh_ids ids = {0};
    struct story s = with_merges;
    s.n_type = 0;
    write_story(&s);
    struct sh_tokenizer *t = opened(scratch_path("m.gguf"));
    CU_ASSERT(sh_tokenizer_encode(t, "abb", 3, 0, &ids, &e) == 0 && ids.n == 2 && ids.at[0] == 2 && ids.at[1] == 1);
    CU_ASSERT(sh_tokenizer_encode(t, "<s>", 3, 0, &ids, &e) == -1 && ids.n == 2);
    free(ids.at);
    sh_tokenizer_free(t);
}

/* Unused tokens pad the embedding: their names are text like any other, here one that has no tokens. */
static void padding(void)
{
    struct sh_ids ids = {0};
    write_story(&with_merges);
    struct sh_tokenizer *t = opened(scratch_path("m.gguf"));
    CU_ASSERT(sh_tokenizer_size(t) == 6 && sh_tokenizer_piece(t, 6) == NULL);
    CU_ASSERT(sh_tokenizer_encode(t, "[PAD6]", 6, 0, &ids, &e) == -1 && ids.n == 0);
    free(ids.at);
    sh_tokenizer_free(t);
}

static int refuses(const struct story *s, const char *why)
{
    write_story(s);
    struct sh_tokenizer *t = sh_tokenizer_open(scratch_path("m.gguf"), &e);
    int fine = !t && strstr(e.text, why) && strstr(e.text, "m.gguf");
    if (!fine)
        printf("# expected \"%s\", found \"%s\"\n", why, t ? "an open tokenizer" : e.text);
    sh_tokenizer_free(t);
    return fine;
}

#define REFUSED(from, change, why) do { \
        struct story s = from; \
        change; \
        CU_ASSERT(refuses(&s, why)); \
    } while (0)

static void refused_scores(void)
{
    REFUSED(with_scores, s.model = NULL, "'tokenizer.ggml.model': found nothing, expected llama, t5, gpt2 or gemma4");
    REFUSED(with_scores, s.model = "bert", "'tokenizer.ggml.model': found 'bert', expected llama");
    REFUSED(with_scores, s.n_token = 0, "'tokenizer.ggml.tokens': found nothing, expected an array of strings");
    REFUSED(with_scores, s.n_score = 6, "'tokenizer.ggml.scores': found 6 elements, expected one for each of the 7");
    REFUSED(with_scores, s.n_score = 0, "'tokenizer.ggml.scores': found nothing, expected an array of f32");
    REFUSED(with_scores, s.score_item = SH_GGUF_I32, "scores': found an array of 7 elements of kind i32");
    REFUSED(with_scores, s.n_type = 8, "'tokenizer.ggml.token_type': found 8 elements, expected one for each of the 7");
    REFUSED(with_scores, s.n_type = 0, "'tokenizer.ggml.token_type': found nothing, expected an array of whole");
    REFUSED(with_scores, s.type_item = SH_GGUF_F32, "token_type': found an array of 7 elements of kind f32");
    REFUSED(with_scores, s.type[3] = 0, "'tokenizer.ggml.token_type': token 3 is of type 0, expected 1 to 6");
    REFUSED(with_scores, s.type[3] = 7, "'tokenizer.ggml.token_type': token 3 is of type 7, expected 1 to 6");
    REFUSED(with_scores, s.type[3] = 6, "token 3, \"a\", is of type byte, but its text is not <0xXX>");
    REFUSED(with_scores, (s.type[3] = s.type[4] = 2, s.type[0] = 1),
            "unknown_token_id': found nothing, expected the id of one of the 2 tokens of type unknown");
    REFUSED(with_scores, s.bos = 7, "'tokenizer.ggml.bos_token_id': found 7, expected a whole number from 0 to 6");
    REFUSED(with_scores, s.eos = UINT32_MAX, "'tokenizer.ggml.eos_token_id': found 4294967295, expected");
    REFUSED(with_scores, s.unknown = 7, "'tokenizer.ggml.unknown_token_id': found 7, expected a whole number from 0");
    REFUSED(with_scores, s.unknown = 3, "'tokenizer.ggml.unknown_token_id': found 3, expected 0");
    REFUSED(with_scores, s.type[0] = 1, "found neither an unknown token nor a token for each byte");
    REFUSED(with_scores, s.token[4] = s.token[3], "token 4: \"a\" is a duplicate");
    REFUSED(with_scores, s.token[3].n = 0, "token 3 has 0 bytes");
    REFUSED(with_scores, s.token[3].at = "\xff", "token 3 is not valid UTF-8");
    REFUSED(with_scores, (s.model = "t5", s.n_token = s.n_score = s.n_type = 1), "eos: id 1, expected 0 to 0");
}

static void refused_merges(void)
{
    REFUSED(with_merges, s.pre = NULL, "'tokenizer.ggml.pre': found nothing, expected the name of a pre-tokenizer");
    REFUSED(with_merges, s.pre = "odd", "pre-tokenizer: odd is not supported");
    REFUSED(with_merges, s.n_merge = 0, "'tokenizer.ggml.merges': found nothing, expected an array of strings");
    REFUSED(with_merges, s.n_type = 6, "'tokenizer.ggml.token_type': found 6 elements, expected one for each of the 7");
    REFUSED(with_merges, (s.merge[0].at = "a c"), "merge");
    REFUSED(with_merges, (s.merge[0].at = "b a"), "merge");
    REFUSED(with_merges, (s.merge[0].at = "abc"), "merge");
    REFUSED(with_merges, (s.merge[0].at = "a\xff" "b"), "merge 0 is not valid UTF-8");
    REFUSED(with_merges, s.add_bos = 1, "bos: id -1, expected 0 to 6");
    REFUSED(with_merges, s.bos = 7, "'tokenizer.ggml.bos_token_id': found 7, expected a whole number from 0 to 6");
    REFUSED(with_merges, s.token[1] = s.token[0], "token 1: \"a\" is a duplicate");
}

/* ---- pre-tokenizers by name (tests/oracle/tokenizer_pre.py) ---- */

static void put_words(const char *name, const json_t *list)
{
    array(name, SH_GGUF_STRING, json_array_size(list));
    for (size_t i = 0; i < json_array_size(list); i++)
        string(json_string_value(json_array_get(list, i)), json_string_length(json_array_get(list, i)));
}

static void named_pre_tokenizers(void)
{
    json_t *root = golden_json("pre.json"), *texts = json_object_get(root, "texts"), *of_name;
    const char *name;
    CU_ASSERT(json_object_size(json_object_get(root, "ids")) >= 70);
    json_object_foreach(json_object_get(root, "ids"), name, of_name) {
        int is_gemma = !strcmp(name, "gemma4"), is_raw = is_gemma || !strcmp(name, "sarvam-moe");
        const json_t *model = json_object_get(root, is_raw ? "raw" : "bytes"), *types = json_object_get(model, "types");
        begin();
        word("model", is_gemma ? "gemma4" : "gpt2");
        if (!is_gemma)
            word("pre", name);
        put_words("tokens", json_object_get(model, "tokens"));
        put_words("merges", json_object_get(model, "merges"));
        array("token_type", SH_GGUF_I32, json_array_size(types));
        for (size_t i = 0; i < json_array_size(types); i++)
            u32((uint32_t)json_integer_value(json_array_get(types, i)));
        number("bos_token_id", 2);
        if (is_gemma)
            flag("add_bos_token", 0);           /* as its first files say, wrongly */
        scratch_clear();
        written("m.gguf");
        struct sh_tokenizer *t = opened(scratch_path("m.gguf"));
        CU_ASSERT(!is_gemma || tokenizer_bos(t) == 2);
        for (size_t i = 0; i < json_array_size(texts); i++) {
            const json_t *text = json_array_get(texts, i);
            int same = same_ids(t, json_string_value(text), json_string_length(text), json_array_get(of_name, i));
            if (!same)
                printf("# %s, text %zu: other ids\n", name, i);
            CU_ASSERT(same);
        }
        sh_tokenizer_free(t);
    }
    json_decref(root);
}

/* ---- what the model's name tells ---- */

enum { N_BYTE = 256, N_PHI = N_BYTE + 11 };

static void write_phi(const char *name)
{
    static const struct sh_tok_string first[] = {S("<unk>"), S("<s>"), S("</s>")}, last[] = {
        S("\xe2\x96\x81"), S("a"), S("b"), S("\xe2\x96\x81" "a"), S("ab"), S("<|endoftext|>"), S("<|user|>"),
        S("<|end|>")};
    static char text[N_BYTE][8];
    struct sh_tok_string all[N_PHI];
    begin();
    string("general.name", 12);
    u32(SH_GGUF_STRING);
    string(name, strlen(name));
    file.n_value++;
    for (size_t i = 0; i < N_PHI; i++) {
        if (i >= 3 && i < 3 + N_BYTE)
            snprintf(text[i - 3], sizeof *text, "<0x%02X>", (unsigned)(i - 3));
        all[i] = i < 3 ? first[i] : i < 3 + N_BYTE ? (struct sh_tok_string){text[i - 3], 6} : last[i - 3 - N_BYTE];
    }
    word("model", "llama");
    strings("tokens", all, N_PHI);
    array("scores", SH_GGUF_F32, N_PHI);
    for (size_t i = 0; i < N_PHI; i++)
        put(&(float){i < 3 + N_BYTE || i > 263 ? 0 : 258 - (float)i}, sizeof(float));
    array("token_type", SH_GGUF_I32, N_PHI);
    for (size_t i = 0; i < N_PHI; i++)
        u32(!i ? SH_TOK_UNKNOWN : i < 3 ? SH_TOK_CONTROL : i < 3 + N_BYTE ? SH_TOK_BYTE : i < 264 ? SH_TOK_NORMAL
            : i < 266 ? SH_TOK_CONTROL : SH_TOK_USER);
    scratch_clear();
    written("m.gguf");
}

/* Phi-3's tokens take the white space after them, but for three; llama.cpp gave these ids. */
static void names(void)
{
    static const char text[] = "<|user|> \n a<|end|>\n b<|endoftext|> \n a<s> a</s>  a";
    static const int32_t plain[] = {1, 265, 259, 259, 13, 262, 266, 259, 13, 259, 261, 264, 259, 259, 13, 262, 1, 259,
                                    262, 2, 259, 259, 262};
    static const int32_t taken[] = {1, 265, 262, 266, 259, 261, 264, 259, 259, 13, 262, 1, 259, 262, 2, 262};
    static const struct { const char *name; int takes; } models[] = {
        {"Microsoft Phi-3 mini", 1}, {"PHI3", 1}, {"Phi 3 Mini", 0}, {"Phi-4", 0}, {"phi-", 0}, {"", 0}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct sh_ids ids = {0};
        write_phi(models[i].name);
        struct sh_tokenizer *t = opened(scratch_path("m.gguf"));
        CU_ASSERT(sh_tokenizer_encode(t, text, sizeof text - 1, 1, &ids, &e) == 0);
        const int32_t *wanted = models[i].takes ? taken : plain;
        size_t n = models[i].takes ? sizeof taken / sizeof *taken : sizeof plain / sizeof *plain;
        CU_ASSERT(ids.n == n && !memcmp(ids.at, wanted, n * sizeof *wanted));
        free(ids.at);
        sh_tokenizer_free(t);
    }
}

/* ---- which file ---- */

static void places(void)
{
    static const char empty[] = "{}";
    write_story(&with_scores);
    struct sh_tokenizer *t = opened(scratch_folder());
    CU_ASSERT(sh_tokenizer_size(t) == 7);
    sh_tokenizer_free(t);
    scratch_write("config.json", empty, 2);
    CU_ASSERT(sh_tokenizer_open(scratch_folder(), &e) == NULL && strstr(e.text, "found no tokenizer"));
    t = opened(scratch_path("m.gguf"));
    sh_tokenizer_free(t);
    write_story(&with_scores);
    scratch_write("tokenizer.json", empty, 2);
    CU_ASSERT(sh_tokenizer_open(scratch_folder(), &e) == NULL && strstr(e.text, "tokenizer.json"));
    write_story(&with_scores);
    written("n.gguf");
    CU_ASSERT(sh_tokenizer_open(scratch_folder(), &e) == NULL && strstr(e.text, "found 2 GGUF models"));
    CU_ASSERT(sh_tokenizer_open(scratch_path("absent.gguf"), &e) == NULL && strstr(e.text, "cannot be opened"));
    scratch_write("m.gguf", "GGUF", 4);
    CU_ASSERT(sh_tokenizer_open(scratch_path("m.gguf"), &e) == NULL && strstr(e.text, "not a GGUF file"));
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"gpt2 in GGUF: every reference case", gpt2},
        {"llama2 in GGUF: every reference case", llama2},
        {"qwen2 in GGUF: every reference case", qwen2},
        {"llama3 in GGUF: every reference case", llama3},
        {"SentencePiece's models in GGUF", sentencepiece},
        {"what the file does not say", defaults},
        {"a file without types", no_types},
        {"tokens that pad the embedding", padding},
        {"faulty metadata with scores", refused_scores},
        {"faulty metadata with merges", refused_merges},
        {"pre-tokenizers by their names", named_pre_tokenizers},
        {"Phi-3 by its name", names},
        {"a file, a folder, files next to it", places},
        {0}};
    return tap_run("tok_gguf", tests);
}
