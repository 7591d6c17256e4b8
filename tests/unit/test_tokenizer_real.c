/* SPDX-License-Identifier: Apache-2.0 */
/* src/model/tokenizer with published vocabularies on whole texts, against what the published
 * libraries gave: number, first ids, and checksums of all ids and of the decoded text. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/tokenizer/tokenizer.h"
#include "tests/tap.h"
#include "tests/unit/scratch.h"

static char *data_path(const char *name)
{
    const char *top = getenv("SH_TOP");
    return xasprintf("%s/../shared/data/%s", top ? top : ".", name);
}

/* NULL when it is not there. */
static char *read_data(const char *name, size_t *n)
{
    char *path = data_path(name), *at = NULL;
    FILE *f = fopen(path, "rb");
    if (f) {
        at = xmalloc(8 << 20);
        *n = fread(at, 1, 8 << 20, f);
        fclose(f);
    }
    free(path);
    return at;
}

static void fnv(const void *at, size_t n, char text[17])
{
    const unsigned char *s = at;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ s[i]) * 0x100000001b3u;
    snprintf(text, 17, "%016llx", (unsigned long long)h);
}

/* The published folder of OPT's files has other names for them. */
static struct sh_tokenizer *open_gpt2(struct sh_err *e)
{
    static const char *const names[2][2] = {{"gpt2-vocab.json", "vocab.json"},
                                            {"gpt2-merges.txt", "merges.txt"}};
    for (int i = 0; i < 2; i++) {
        char *name = xasprintf("tokenizers/opt-gpt2/%s", names[i][0]);
        size_t n;
        char *at = read_data(name, &n);
        CU_ASSERT_PTR_NOT_NULL_FATAL(at);
        scratch_write(names[i][1], at, n);
        free(at);
        free(name);
    }
    return sh_tokenizer_open(scratch_folder(), e);
}

static struct sh_tokenizer *open_one(const char *name)
{
    struct sh_err e = {0};
    char *sub = xasprintf("tokenizers/%s", name), *folder = data_path(sub);
    struct sh_tokenizer *t = strcmp(name, "opt-gpt2") ? sh_tokenizer_open(folder, &e)
                                                      : open_gpt2(&e);
    if (!t)
        printf("# %s\n", e.text);
    free(folder);
    free(sub);
    CU_ASSERT_PTR_NOT_NULL_FATAL(t);
    return t;
}

static int is_string(const json_t *o, const char *key, const char *text)
{
    return !strcmp(json_string_value(json_object_get(o, key)), text);
}

static void one_case(const struct sh_tokenizer *t, const json_t *one, const char *text, size_t n)
{
    const json_t *first = json_object_get(one, "first");
    struct sh_ids ids = {0};
    struct sh_err e = {0};
    size_t bytes;
    char sum[17];
    CU_ASSERT_FATAL(sh_tokenizer_encode(t, text, n, 0, &ids, &e) == 0);
    CU_ASSERT_FATAL((json_int_t)ids.n == json_integer_value(json_object_get(one, "n")));
    for (size_t i = 0; i < json_array_size(first); i++)
        CU_ASSERT(ids.at[i] == json_integer_value(json_array_get(first, i)));
    fnv(ids.at, ids.n * sizeof *ids.at, sum);
    CU_ASSERT(is_string(one, "ids", sum));
    char *back = sh_tokenizer_decode(t, ids.at, ids.n, &bytes);
    fnv(back, bytes, sum);
    CU_ASSERT(is_string(one, "decoded", sum));
    free(back);
    free(ids.at);
}

static void run(const char *name)
{
    json_error_t error;
    size_t i, n, n_run = 0;
    char *probe = read_data("text/tinyshakespeare/input.txt", &n);
    free(probe);
    if (!probe) {
        tap_skip("the published vocabularies and texts are not there");
        return;
    }
    json_t *root = json_load_file(tap_golden("tokenizers/real.json"), 0, &error), *one;
    CU_ASSERT_PTR_NOT_NULL_FATAL(root);
    struct sh_tokenizer *t = open_one(name);
    json_array_foreach(json_object_get(root, "cases"), i, one) {
        if (!is_string(one, "tokenizer", name))
            continue;
        char *path = xasprintf("text/%s", json_string_value(json_object_get(one, "text")));
        char *text = read_data(path, &n);
        CU_ASSERT_PTR_NOT_NULL_FATAL(text);
        one_case(t, one, text, n);
        n_run++;
        free(text);
        free(path);
    }
    CU_ASSERT(n_run == 4);
    sh_tokenizer_free(t);
    json_decref(root);
    scratch_clear();
}

static void gpt2(void) { run("opt-gpt2"); }
static void mistral(void) { run("mistral"); }
static void llama2(void) { run("llama2"); }

int main(void)
{
    static const struct tap_test tests[] = {
        {"GPT-2 and OPT (vocab.json, merges.txt)", gpt2},
        {"Mistral (tokenizer.json)", mistral},
        {"LLaMA-2 (tokenizer.model)", llama2},
        {0}};
    return tap_run("tokenizer_real", tests);
}
