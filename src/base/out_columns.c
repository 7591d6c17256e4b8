/* SPDX-License-Identifier: Apache-2.0 */
/* See out.h: tables of some columns only. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/mem.h"
#include "src/base/out_tree.h"

void sh_node_name(const struct sh_node *n, char name[SH_NODE_NAME])
{
    snprintf(name, SH_NODE_NAME, "%s%s%s", n->group ? n->group->key : "", n->group ? "." : "", n->key);
}

/* The next name of a comma-separated list; 0: there is none. */
static int next(const char **list, char name[SH_NODE_NAME])
{
    size_t n = strcspn(*list, ",");
    if (!**list)
        return 0;
    snprintf(name, SH_NODE_NAME, "%.*s", (int)(n < SH_NODE_NAME ? n : SH_NODE_NAME - 1), *list);
    *list += n + ((*list)[n] == ',');
    return 1;
}

static int is_called(const struct sh_node *n, const char *name)
{
    char own[SH_NODE_NAME];
    sh_node_name(n, own);
    return !strcmp(own, name);
}

/* How many of the columns a list has. */
static int count_in(const struct sh_out *o, const struct sh_node *list, const char *columns)
{
    struct sh_rows r = sh_rows_of(list, o->show);
    sh_rows_pick(&r, columns);
    int n = r.n_col;
    sh_rows_free(&r);
    return n;
}

static int most_in_a_list(const struct sh_out *o, const char *columns)
{
    int most = 0;
    for (int i = 0; i < o->root.n_child; i++) {
        int n = o->root.child[i]->kind == SH_NODE_LIST ? count_in(o, o->root.child[i], columns) : 0;
        most = n > most ? n : most;
    }
    return most;
}

struct sh_rows sh_out_rows(const struct sh_out *o, const struct sh_node *list)
{
    struct sh_rows r = sh_rows_of(list, o->show);
    if (!o->columns)
        return r;
    sh_rows_pick(&r, o->columns);
    if (!r.n_col || r.n_col < most_in_a_list(o, o->columns))
        sh_rows_free(&r);
    return r;
}

static int has_single(const struct sh_node *n, const char *name)
{
    int found = n->kind != SH_NODE_OBJECT && n->kind != SH_NODE_LIST && is_called(n, name);
    for (int i = 0; n->kind == SH_NODE_OBJECT && i < n->n_child && !found; i++)
        found = has_single(n->child[i], name);
    return found;
}

/* Does every column name a single value? Then those are shown, even if a table has columns of that name. */
static int are_all_single(const struct sh_out *o, const char *columns)
{
    char name[SH_NODE_NAME];
    int all = 1;
    while (all && next(&columns, name))
        all = has_single(&o->root, name);
    return all;
}

int sh_out_shows(const struct sh_out *o, const struct sh_node *scalar)
{
    char name[SH_NODE_NAME];
    const char *at = o->columns;
    int wanted = !at, most = at ? most_in_a_list(o, at) : 0;
    while (at && next(&at, name))
        wanted |= is_called(scalar, name);
    if (!o->columns || !wanted || are_all_single(o, o->columns))
        return wanted;
    sh_node_name(scalar, name);
    for (int i = 0; i < o->root.n_child && wanted; i++) {
        const struct sh_node *n = o->root.child[i];
        if (n->kind == SH_NODE_LIST && count_in(o, n, o->columns) == most && count_in(o, n, name))
            wanted = 0;
    }
    return wanted;
}

void sh_rows_pick(struct sh_rows *r, const char *columns)
{
    char name[SH_NODE_NAME];
    int *from = xcalloc((size_t)r->n_col + 1, sizeof *from), n = 0;
    while (r->n_row && next(&columns, name))
        for (int c = 0; c < r->n_col && n < r->n_col; c++)
            if (is_called(r->row[0][c], name))
                from[n++] = c;
    for (int i = 0; i < r->n_row; i++) {
        const struct sh_node **cells = xcalloc((size_t)n + 1, sizeof *cells);
        for (int c = 0; c < n; c++)
            cells[c] = r->row[i][from[c]];
        free(r->row[i]);
        r->row[i] = cells;
    }
    r->n_col = n;
    free(from);
}

/* Adds a name to `all`, one per line, unless it is there; line breaks delimit the names. */
static void add_name(char **all, const struct sh_node *n)
{
    char name[SH_NODE_NAME + 2], *longer;
    name[0] = '\n';
    sh_node_name(n, name + 1);
    strncat(name, "\n", sizeof name - strlen(name) - 1);
    if (strstr(*all, name))
        return;
    longer = xasprintf("%s%s", *all, name + 1);
    free(*all);
    *all = longer;
}

/* Those of all columns and single values in a node. */
static void add_names(char **all, const struct sh_node *n, const char *show)
{
    struct sh_rows r = {0};
    if (n->kind == SH_NODE_LIST)
        r = sh_rows_of(n, show);
    else if (n->kind != SH_NODE_OBJECT)
        add_name(all, n);
    for (int c = 0; r.n_row && c < r.n_col; c++)
        add_name(all, r.row[0][c]);
    for (int i = 0; n->kind == SH_NODE_OBJECT && i < n->n_child; i++)
        add_names(all, n->child[i], show);
    sh_rows_free(&r);
}

int sh_out_check_columns(const struct sh_out *o, struct sh_err *e)
{
    char *all = xstrdup("\n"), name[SH_NODE_NAME], line[SH_NODE_NAME + 2];
    const char *at = o->columns;
    int bad = 0;
    add_names(&all, &o->root, o->show);
    while (at && !bad && next(&at, name)) {
        snprintf(line, sizeof line, "\n%s\n", name);
        if (strstr(all, line))
            continue;
        bad = sh_misused(e, "--columns: unknown column \"%s\"", name);
        sh_hint_near(e, name, strlen(name), all + 1, "--json shows all names");
    }
    free(all);
    return bad;
}

void sh_out_columns(struct sh_out *o, const char *columns)
{
    free(o->columns);
    o->columns = columns ? xstrdup(columns) : NULL;
}
