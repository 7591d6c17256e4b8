/* SPDX-License-Identifier: Apache-2.0 */
/* See tokenizer_golden.h. */
#include "tests/unit/tokenizer_golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "tests/tap.h"

char *tokenizer_golden(const char *name)
{
    char *path = xasprintf("tokenizers/%s", name);
    const char *found = tap_golden(path);
    free(path);
    CU_ASSERT_PTR_NOT_NULL_FATAL(found);
    return xstrdup(found);
}

json_t *tokenizer_golden_json(const char *name)
{
    json_error_t error;
    char *path = tokenizer_golden(name);
    json_t *root = json_load_file(path, JSON_ALLOW_NUL, &error);
    free(path);
    CU_ASSERT_PTR_NOT_NULL_FATAL(root);
    return root;
}

int tokenizer_same_text(const char *got, size_t n, const json_t *wanted)
{
    return n == json_string_length(wanted) && !memcmp(got, json_string_value(wanted), n);
}

int tokenizer_agrees(const struct sh_tokenizer *t, const char *text, size_t n, const json_t *one)
{
    const json_t *wanted = json_object_get(one, "ids"), *decoded = json_object_get(one, "decoded");
    struct sh_ids ids = {0};
    struct sh_err e = {0};
    size_t bytes;
    int fine = !sh_tokenizer_encode(t, text, n, 0, &ids, &e) && ids.n == json_array_size(wanted);
    for (size_t i = 0; fine && i < ids.n; i++)
        fine = ids.at[i] == json_integer_value(json_array_get(wanted, i));
    if (!fine)
        printf("# ids differ for \"%.60s\" %s\n", text, e.text);
    if (fine) {
        char *back = sh_tokenizer_decode(t, ids.at, ids.n, &bytes);
        fine = decoded ? tokenizer_same_text(back, bytes, decoded)
                       : bytes == n && !memcmp(back, text, n);
        if (!fine)
            printf("# decoded differs for \"%.60s\": \"%.60s\"\n", text, back);
        free(back);
    }
    free(ids.at);
    return fine;
}

int tokenizer_refuses(const char *folder, const char *why)
{
    struct sh_err e = {0};
    struct sh_tokenizer *t = sh_tokenizer_open(folder, &e);
    int fine = !t && strstr(e.text, why) && strstr(e.text, folder);
    if (!fine)
        printf("# expected \"%s\", found \"%s\"\n", why, t ? "an open tokenizer" : e.text);
    sh_tokenizer_free(t);
    return fine;
}

int tokenizer_tried(const char *folder, const char *text)
{
    struct sh_err e = {.text = ""};
    struct sh_ids ids = {0};
    size_t bytes;
    struct sh_tokenizer *t = sh_tokenizer_open(folder, &e);
    CU_ASSERT(t != NULL || e.text[0]);
    if (t && sh_tokenizer_encode(t, text, strlen(text), 1, &ids, &e) == 0)
        free(sh_tokenizer_decode(t, ids.at, ids.n, &bytes));
    free(ids.at);
    sh_tokenizer_free(t);
    return t != NULL;
}
