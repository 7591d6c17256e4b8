/* SPDX-License-Identifier: Apache-2.0 */
/* See catalog.h. */
#include "planner/catalog/catalog.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "planner/capacity/kv_shape.h"
#include "planner/catalog/gpus.inc"
#include "planner/catalog/models.inc"
#include "planner/catalog/sglang.inc"
#include "planner/catalog/trtllm.inc"
#include "planner/catalog/vllm.inc"
#include "src/base/mem.h"

static size_t name_length(const char *row)
{
    row += strspn(row, " \t");
    return strcspn(row, " \t|\r\n");
}

static int is_row(const char *row)
{
    row += strspn(row, " \t\r\n");
    return *row && *row != '#';
}

static const char *find_in(const char *const *rows, const char *name, size_t n, int *line)
{
    for (int i = 0; rows && rows[i]; i++)
        if (is_row(rows[i]) && name_length(rows[i]) == n && !strncasecmp(rows[i] + strspn(rows[i], " \t"), name, n)) {
            *line = i + 1;
            return rows[i];
        }
    return NULL;
}

const char *sh_catalog_find(const struct sh_catalog *c, const char *name, char at[256])
{
    int line = 0;
    const char *row = find_in(c->own, name, strlen(name), &line);
    if (row) {
        snprintf(at, 256, "%.200s: line %d", c->own_path, line);
        return row;
    }
    snprintf(at, 256, "built-in catalogue");
    return find_in(c->built_in, name, strlen(name), &line);
}

const char *sh_catalog_row(const struct sh_catalog *c, int i, char at[256])
{
    int line = 0;
    for (int k = 0; c->own && c->own[k]; k++)
        if (is_row(c->own[k]) && !i--) {
            snprintf(at, 256, "%.200s: line %d", c->own_path, k + 1);
            return c->own[k];
        }
    snprintf(at, 256, "built-in catalogue");
    for (int k = 0; c->built_in[k]; k++) {
        const char *row = c->built_in[k];
        if (is_row(row) && !find_in(c->own, row, name_length(row), &line) && !i--)
            return row;
    }
    return NULL;
}

char *sh_catalog_names(const struct sh_catalog *c)
{
    char at[256], *all;
    size_t bytes;
    const char *row;
    FILE *to = xmemstream(&all, &bytes);
    for (int i = 0; (row = sh_catalog_row(c, i, at)); i++)
        fprintf(to, "%.*s\n", (int)name_length(row), row + strspn(row, " \t"));
    xmemclose(to, &all, &bytes);
    return all;
}

void sh_catalog_remark(const char *row, int n, char *to, size_t bytes)
{
    for (; n && row; n--) {
        row = strchr(row, '|');
        row = row ? row + 1 : NULL;
    }
    row = row ? row + strspn(row, " \t") : "";
    size_t len = strcspn(row, "|\r\n");
    while (len && (row[len - 1] == ' ' || row[len - 1] == '\t'))
        len--;
    snprintf(to, bytes, "%.*s", (int)(len < bytes ? len : bytes - 1), row);
}

/* ---- GPUs ---- */

#define F(name) offsetof(struct sh_gpu, name)

static const struct { const char *key; size_t field; double max; } keys[] = {
    {"gb", F(gb), 1e6}, {"mib", F(mib), 1e9}, {"visible", F(visible), 1e6}, {"gbps", F(gbps), 1e6},
    {"f16", F(f16), 1e6}, {"f8", F(f8), 1e6}, {"f4", F(f4), 1e6}, {"link", F(link), 1e6}, {"watts", F(watts), 1e6},
    {"price", F(price), 1e6}};

static int set(struct sh_gpu *b, const char *key, const char *value, struct sh_err *e)
{
    char *end;
    double x = strtod(value, &end);
    if (!strcmp(key, "aka"))
        return 0;                       /* see spelling.c */
    if (!strcmp(key, "gen")) {
        if (*b->generation)
            return sh_fail(e, "gen: found twice");
        int n = snprintf(b->generation, sizeof b->generation, "%s", value);
        return n < 1 || n >= (int)sizeof b->generation ? sh_fail(e, "gen: found \"%.40s\", expected a word of at most "
                                                                 "%d letters", value, (int)sizeof b->generation - 1)
                                                       : 0;
    }
    if (!strcmp(key, "dies")) {
        b->dies = x >= 1 && x <= 64 ? (int)x : 0;
        return end == value || *end || b->dies < 1 || b->dies != x
                   ? sh_fail(e, "dies: found \"%.40s\", expected a whole number from 1 to 64", value) : 0;
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(key, keys[i].key)) {
            if (end == value || *end || !(x > 0) || x > keys[i].max)
                return sh_fail(e, "%s: found \"%.40s\", expected a number above 0, at most %g", key, value,
                               keys[i].max);
            double *to = (double *)((char *)b + keys[i].field);
            if (*to > 0)
                return sh_fail(e, "%s: found twice", key);
            *to = x;
            return 0;
        }
    return sh_fail(e, "unknown key \"%.40s\", expected one of gb, mib, visible, gbps, f16, f8, f4, gen, link, "
                   "watts, price, dies, aka", key);
}

int sh_gpu_row(const char *row, const char *at, struct sh_gpu *out, struct sh_err *e)
{
    struct sh_gpu b = {.dies = 1};
    char word[sizeof b.name];
    int got = sh_row_word(&row, word, sizeof word, e);
    if (got <= 0 || strchr(word, '='))
        return sh_fail(e, "%s: expected a name at the beginning", at);
    memcpy(b.name, word, sizeof b.name);
    while ((got = sh_row_word(&row, word, sizeof word, e)) > 0) {
        char *is = strchr(word, '=');
        if (!is)
            return sh_fail(e, "%s: %s: found \"%s\", expected key=value", at, b.name, word);
        *is++ = '\0';
        if (set(&b, word, is, e))
            return sh_err_prefix(e, "%s: %s", at, b.name);
    }
    if (got < 0)
        return sh_err_prefix(e, "%s: %s", at, b.name);
    if (!(b.gb > 0 || b.mib > 0) || !(b.gbps > 0) || !(b.f16 > 0))
        return sh_fail(e, "%s: %s: expected gb= or mib=, and gbps= and f16=", at, b.name);
    *out = b;
    return 0;
}

uint64_t sh_gpu_bytes(const struct sh_gpu *b)
{
    return (uint64_t)floor((b->mib > 0 ? b->mib * 0x1p20 : b->gb * 1e9) / b->dies);
}
