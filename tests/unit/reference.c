/* SPDX-License-Identifier: Apache-2.0 */
/* See reference.h. */
#include "tests/unit/reference.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/weights.h"
#include "tests/tap.h"

enum { MOST = 8 };                                      /* sequences; tensors that are asked for  */

struct reference {
    char *folder;
    struct sh_weights *file;
    int n, n_token[MOST], n_copy;
    int32_t *token[MOST];
    float *copy[8 * MOST];
};

static void read_tokens(struct reference *r, const char *path)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error), *list = json_object_get(root, "sequences");
    CU_ASSERT_FATAL(json_array_size(list) > 0 && json_array_size(list) <= MOST);
    r->n = (int)json_array_size(list);
    for (int i = 0; i < r->n; i++) {
        const json_t *ids = json_object_get(json_array_get(list, (size_t)i), "tokens");
        r->n_token[i] = (int)json_array_size(ids);
        CU_ASSERT_FATAL(r->n_token[i] > 0);
        r->token[i] = xcalloc((size_t)r->n_token[i], sizeof **r->token);
        for (int k = 0; k < r->n_token[i]; k++)
            r->token[i][k] = (int32_t)json_integer_value(json_array_get(ids, (size_t)k));
    }
    json_decref(root);
}

struct reference *reference_open(const char *name)
{
    struct sh_err e;
    char *golden = xasprintf("checkpoints/%s/ref.json", name), *shared = xasprintf("%s/ref.json", name);
    const char *path = tap_golden(golden) ? tap_golden(golden) : tap_fixture(shared);
    free(golden);
    free(shared);
    if (!path)
        return NULL;
    struct reference *r = xcalloc(1, sizeof *r);
    read_tokens(r, path);
    r->folder = xstrdup(path);
    *strrchr(r->folder, '/') = '\0';
    char *tensors = xasprintf("%s/ref.safetensors", r->folder);
    r->file = sh_weights_open(tensors, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r->file);
    free(tensors);
    return r;
}

void reference_close(struct reference *r)
{
    sh_weights_close(r->file);
    for (int i = 0; i < r->n; i++)
        free(r->token[i]);
    for (int i = 0; i < r->n_copy; i++)
        free(r->copy[i]);
    free(r->folder);
    free(r);
}

const char *reference_folder(const struct reference *r)
{
    return r->folder;
}

int reference_count(const struct reference *r)
{
    return r->n;
}

int reference_tokens(const struct reference *r, int sequence, const int32_t **tokens)
{
    *tokens = r->token[sequence];
    return r->n_token[sequence];
}

const float *reference_tensor(struct reference *r, int sequence, const char *what, size_t n)
{
    char name[64];
    snprintf(name, sizeof name, "s%d.%s", sequence, what);
    const struct sh_stored *t = sh_weights_find(r->file, name);
    if (!t)
        return NULL;
    CU_ASSERT_FATAL(!strcmp(t->dtype, "F32") && t->bytes == n * sizeof(float) && r->n_copy < 8 * MOST);
    float *copy = r->copy[r->n_copy++] = xmalloc(t->bytes);
    memcpy(copy, t->at, t->bytes);
    return copy;
}
