/* SPDX-License-Identifier: Apache-2.0 */
/* See heads.h. */
#include "tests/unit/heads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "tests/tap.h"

static const char *path_of(const char *name)
{
    char *relative = xasprintf("persistence/%s", name);
    const char *path = tap_golden(relative);
    free(relative);
    CU_ASSERT_PTR_NOT_NULL_FATAL(path);
    return path;
}

float *heads_floats(const char *name, size_t *n)
{
    FILE *from = fopen(path_of(name), "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    fseek(from, 0, SEEK_END);
    *n = (size_t)ftell(from) / sizeof(float);
    rewind(from);
    float *x = xcalloc(*n, sizeof *x);
    CU_ASSERT_FATAL(fread(x, sizeof *x, *n, from) == *n);
    fclose(from);
    return x;
}

json_t *heads_json(const char *name)
{
    json_error_t why;
    json_t *root = json_load_file(path_of(name), 0, &why);
    CU_ASSERT_PTR_NOT_NULL_FATAL(root);
    return root;
}

int heads_row(int q, int context, int *first_key)
{
    *first_key = context && q >= context ? q - context + 1 : 0;
    return q - *first_key + 1;
}

const float *heads_feed(struct sh_stats *s, const float *packed, int context)
{
    for (int q = 0; q < s->length; q++) {
        int first_key, n = heads_row(q, context, &first_key);
        CU_ASSERT_FATAL(sh_stats_row(s, q, first_key, packed, n) == 0);
        packed += n;
    }
    return packed;
}

struct sh_stats_spec heads_spec(const json_t *object)
{
    struct sh_stats_spec spec;
    struct sh_err e;
    char *text = json_dumps(json_object_get(object, "spec"), 0);
    CU_ASSERT_FATAL(text && sh_stats_spec_parse(text, &spec, &e) == 0);
    free(text);
    return spec;
}

int heads_int(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    CU_ASSERT_FATAL(json_is_integer(value));
    return (int)json_integer_value(value);
}

double heads_real(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    CU_ASSERT_PTR_NOT_NULL_FATAL(value);
    return json_is_null(value) ? NAN : json_number_value(value);
}

int heads_near(double found, double expected, double tolerance)
{
    if (isnan(found) || isnan(expected))
        return isnan(found) && isnan(expected);
    return fabs(found - expected) <= tolerance * fmax(fabs(expected), 1e-3);
}
