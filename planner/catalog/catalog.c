/* SPDX-License-Identifier: Apache-2.0 */
/* See catalog.h. */
#include "planner/catalog/catalog.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "planner/catalog/gpus.inc"
#include "planner/catalog/models.inc"
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
