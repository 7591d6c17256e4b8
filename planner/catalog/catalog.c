/* SPDX-License-Identifier: Apache-2.0 */
/* See catalog.h. */
#include "planner/catalog/catalog.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "planner/catalog/gpus.inc"
#include "planner/catalog/models.inc"

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

static int same(const char *row, const char *name, size_t n)
{
    row += strspn(row, " \t");
    return name_length(row) == n && !strncasecmp(row, name, n);
}

static const char *find_in(const char *const *rows, const char *name, size_t n, int *line)
{
    for (int i = 0; rows && rows[i]; i++)
        if (is_row(rows[i]) && same(rows[i], name, n)) {
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

enum { LONGEST = 63 };                  /* letters of a name that are compared */

/* Changes of letters that make one name of the other, letters left out at the end counted a quarter. */
static int distance(const char *a, size_t n_a, const char *b, size_t n_b)
{
    int row[LONGEST + 1];
    n_a = n_a > LONGEST ? LONGEST : n_a;
    n_b = n_b > LONGEST ? LONGEST : n_b;
    for (size_t j = 0; j <= n_b; j++)
        row[j] = (int)j * 4;
    int best = row[n_b];
    for (size_t i = 1; i <= n_a; i++) {
        int corner = row[0];
        row[0] = (int)i * 4;
        for (size_t j = 1; j <= n_b; j++) {
            int change = corner + (strncasecmp(a + i - 1, b + j - 1, 1) ? 4 : 0);
            int drop = row[j] + 4, put = row[j - 1] + 4;
            corner = row[j];
            row[j] = change < drop ? change < put ? change : put : drop < put ? drop : put;
        }
        int rest = row[n_b] + (int)(n_a - i);
        best = rest < best ? rest : best;
    }
    return best;
}

void sh_catalog_near(const struct sh_catalog *c, const char *name, char *to, size_t bytes)
{
    struct { const char *row; int far; } best[3] = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    char at[256];
    const char *row;
    for (int i = 0; (row = sh_catalog_row(c, i, at)); i++) {
        row += strspn(row, " \t");
        int far = distance(row, name_length(row), name, strlen(name)), k = 2;
        if (best[2].row && best[2].far <= far)
            continue;
        for (; k > 0 && (!best[k - 1].row || best[k - 1].far > far); k--)
            best[k] = best[k - 1];
        best[k].row = row;
        best[k].far = far;
    }
    size_t used = 0;
    to[0] = '\0';
    for (int k = 0; k < 3 && best[k].row && used < bytes; k++)
        used += (size_t)snprintf(to + used, bytes - used, "%s%.*s", k ? ", " : "", (int)name_length(best[k].row),
                                 best[k].row);
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
