/* SPDX-License-Identifier: Apache-2.0 */
/* src/tokenizer/tok_ranks, tok_tekken: rank lists as the tiktoken library reads them, and lists that are not. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/tokenizer/tokenizer.h"
#include "tests/tap.h"
#include "tests/unit/base64.h"
#include "tests/unit/scratch.h"
#include "tests/unit/tokenizer_golden.h"

static void as_tiktoken(const char *name)
{
    char *folder = xasprintf("ranks/%s", name), *file = xasprintf("ranks/%s/cases.json", name);
    char *path = tokenizer_golden(folder);
    json_t *root = tokenizer_golden_json(file), *one;
    struct sh_err e = {0};
    struct sh_tokenizer *t = sh_tokenizer_open(path, &e);
    if (!t)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    size_t i, wrong = 0;
    json_array_foreach(json_object_get(root, "cases"), i, one) {
        const char *b64 = json_string_value(json_object_get(one, "b64"));
        char *text = xmalloc(strlen(b64) + 1);
        size_t n = from_base64(b64, text);
        text[n] = 0;
        wrong += !tokenizer_agrees(t, text, n, one);
        free(text);
    }
    CU_ASSERT(i > 100 && !wrong);
    const json_t *start = json_object_get(root, "start");
    const int32_t *got;
    size_t n = (size_t)sh_tokenizer_start(t, &got);
    CU_ASSERT(n == json_array_size(start));
    for (i = 0; i < n && i < json_array_size(start); i++)
        CU_ASSERT(got[i] == json_integer_value(json_array_get(start, i)));
    sh_tokenizer_free(t);
    json_decref(root);
    free(path);
    free(file);
    free(folder);
}

static void kimi(void) { as_tiktoken("kimi"); }
static void qwen(void) { as_tiktoken("qwen"); }
static void glm(void) { as_tiktoken("glm"); }
static void tekken(void) { as_tiktoken("tekken"); }

/* ---- faults ---- */

static void write_text(const char *name, const char *text)
{
    scratch_write(name, text, strlen(text));
}

static int refuses(const char *why)
{
    return tokenizer_refuses(scratch_folder(), why);
}

static const struct { const char *lines, *why; } bad[] = {
    {"IQ== 0\nIg==\n", "line 2: found \"Ig==\", expected base64"},
    {"IQ== 0\nIg== x\n", "line 2: found \"Ig== x\""},
    {"IQ== 0\nIg== \n", "line 2: found"},
    {"IQ== 0\nIg== -1\n", "line 2: found"},
    {"IQ== 0\nIg== 4194304\n", "line 2: found"},
    {"IQ== 0\nIg== 99999999999999999999\n", "line 2: found"},
    {"IQ== 0\nI 1\n", "line 2: found"},
    {"IQ== 0\n==== 1\n", "line 2: found"},
    {"IQ== 0\nI=g= 1\n", "line 2: found"},
    {"IQ== 0\nIh== 1\n", "line 2: found"},               /* bits left over */
    {"IQ== 0\nI*== 1\n", "line 2: found"},
    {"IQ== 0\nIg== 0\n", "line 2: the rank is there already"},
    {"IQ== 0\nIQ== 1\n", "line 2: the token is there already"},
    {"IQ== 0\n\nIg== 1\n", "no token is the byte 0x00 alone"}};

static void refused_lines(void)
{
    write_text("tokenizer_config.json", "{\"tokenizer_class\":\"TikTokenTokenizer\"}");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_text("tiktoken.model", bad[i].lines);
        CU_ASSERT(refuses(bad[i].why));
    }
    scratch_clear();
}

static void refused_classes(void)
{
    write_text("tiktoken.model", "IQ== 0\nIg== 1\n");
    CU_ASSERT(refuses("tokenizer_class nothing is not known"));
    write_text("tokenizer_config.json", "{\"tokenizer_class\":\"QWenTokenizer\"}");
    CU_ASSERT(refuses("tokenizer_class QWenTokenizer is not known: expected TikTokenTokenizer with tiktoken.model"));
    write_text("tokenizer_config.json", "{\"tokenizer_class\":7.5}");
    CU_ASSERT(refuses("tokenizer_class a real number is not known"));
    scratch_clear();
}

/* All bytes, and no [gMASK]. */
static void refused_beginning(void)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[256 * 12], *to = text;
    for (int i = 0; i < 256; i++)
        to += snprintf(to, 12, "%c%c== %d\n", digits[i >> 2], digits[(i & 3) << 4], i);
    write_text("tokenizer.model", text);
    write_text("tokenizer_config.json", "{\"tokenizer_class\":\"ChatGLM4Tokenizer\"}");
    CU_ASSERT(refuses("found no token [gMASK], which begins each text"));
    write_text("tokenizer_config.json", "{\"tokenizer_class\":\"ChatGLM4Tokenizer\",\"added_tokens_decoder\":"
                                        "{\"256\":{\"content\":\"[gMASK]\"},\"257\":{\"content\":\"<sop>\"}}}");
    struct sh_err e = {0};
    struct sh_tokenizer *t = sh_tokenizer_open(scratch_folder(), &e);
    CU_ASSERT_PTR_NOT_NULL(t);
    CU_ASSERT(!t || tokenizer_bos(t) == 256);
    sh_tokenizer_free(t);
    scratch_clear();
}

/* A tekken.json of all bytes, with some of its parts changed; `find` occurs in it. */
static int refuses_tekken(const char *find, const char *put, const char *why)
{
    char *path = tokenizer_golden("ranks/tekken/tekken.json");
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    char *text = json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS), *at = text ? strstr(text, find) : NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    char *changed = xasprintf("%.*s%s%s", (int)(at - text), text, put, at + strlen(find));
    write_text("tekken.json", changed);
    free(changed);
    free(text);
    free(path);
    json_decref(root);
    return tokenizer_refuses(scratch_folder(), why);
}

static void refused_tekken(void)
{
    static const struct { const char *find, *put, *why; } wrong[] = {
        {"\"config\":{", "\"config\":7,\"other\":{", "tekken.json: config: found an integer, expected an object"},
        {"\"vocab\":[", "\"vocab\":7,\"other\":[", "tekken.json: vocab: found an integer, expected an array"},
        {"\"pattern\":\"", "\"pattern\":7,\"other\":\"", "config: pattern: found an integer, expected a string"},
        {"\"pattern\":\"", "\"pattern\":\"(", "tekken.json: pre_tokenizer"},
        {"\"default_num_special_tokens\":24", "\"default_num_special_tokens\":-1",
         "config: default_num_special_tokens: found -1, expected 0 to 65536"},
        {"\"default_num_special_tokens\":24", "\"default_num_special_tokens\":4",
         "special_tokens: found 5, expected at most default_num_special_tokens, 4"},
        {"\"default_vocab_size\":934", "\"default_vocab_size\":270", "default_vocab_size: found 270, expected 280 to"},
        {"\"default_vocab_size\":934", "\"default_vocab_size\":9999",
         "default_vocab_size: found 9999, expected at most"},
        {"\"rank\":3,\"token_bytes\"", "\"rank\":4,\"token_bytes\"", "vocab[3]: rank: found 4, expected 3 to 3"},
        {"\"Aw==\"", "\"Aw=\"", "vocab[3]: token_bytes: found \"Aw=\", expected base64"},
        {"\"Aw==\"", "\"Ag==\"", "vocab[3]: the token is there already"},
        {"\"Aw==\"", "\"AwMDAwMDAwMD\"", "vocab: no token is the byte 0x03 alone"},
        {"\"special_tokens\":[", "\"special_tokens\":7,\"other\":[", "special_tokens: found an integer, expected an"},
        {"\"special_tokens\":[", "\"other\":[", "of versions v1, v2, v3 and v7 may have none, and this is v11"},
        {"\"token_str\":\"[INST]\"", "\"token_str\":\"\"", "special_tokens[1]: token_str is empty"},
        {"\"token_str\":\"[INST]\"", "\"token_str\":\"[INST]\\u0000\"",
         "special_tokens[1]: token_str: found U+0000 in it"},
        {"\"pattern\":\"", "\"pattern\":\"\\u0000", "config: pattern: found U+0000 in it"},
        {"\"token_str\":\"[INST]\"", "\"token_str\":\"<s>\"", "special_tokens: two tokens are \"<s>\""},
        {"\"token_str\":\"[INST]\"", "\"token_str\":\"<SPECIAL_7>\"", "two tokens are \"<SPECIAL_7>\""},
        {"\"rank\":3,\"token_str\"", "\"rank\":4,\"token_str\"", "special_tokens[1]: the rank is there already"},
        {"\"rank\":3,\"token_str\"", "\"rank\":5,\"token_str\"", "special_tokens[1]: rank: found 5, expected 0 to 4"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CU_ASSERT(refuses_tekken(wrong[i].find, wrong[i].put, wrong[i].why));
    scratch_clear();
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"Kimi's list: ids as tiktoken's", kimi},
        {"Qwen's list: ids as tiktoken's", qwen},
        {"GLM-4's list: ids as tiktoken's", glm},
        {"Mistral's tekken.json: ids as tiktoken's", tekken},
        {"faulty lines are refused", refused_lines},
        {"lists of unknown classes are refused", refused_classes},
        {"a faulty tekken.json is refused", refused_tekken},
        {"a class whose first tokens are missing is refused", refused_beginning},
        {0}};
    return tap_run("tokenizer_ranks", tests);
}
