/* SPDX-License-Identifier: Apache-2.0 */
/* A description (out.h) as tables of columns. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/out_tree.h"
#include "src/lib/lib.h"

struct item {                           /* a row, while tables are made                           */
    const struct sh_node **value;       /* [n]                                                    */
    int n;
    int64_t parent;
};

struct shears_table {
    char *name;
    struct item *item;                  /* [n_row]; NULL once the columns are made                */
    size_t n_row, room;
    int has_parent;
    struct shears_column *column;       /* [n_column]; names and arrays are owned                 */
    size_t n_column;
};

enum { FORMATS = 4 };

struct shears_result {
    struct sh_out *out;
    struct shears_table **table;        /* [n]                                                    */
    size_t n;
    char *text[FORMATS];                /* as asked for, by enum sh_out_format                    */
};

/* ---- rows ---- */

static struct shears_table *table_of(struct shears_result *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (!strcmp(r->table[i]->name, name))
            return r->table[i];
    struct shears_table *t = xcalloc(1, sizeof *t);
    t->name = xstrdup(name);
    r->table = xreallocarray(r->table, r->n + 1, sizeof *r->table);
    return r->table[r->n++] = t;
}

static void add_list(struct shears_result *r, const char *name, const struct sh_node *list, int64_t parent);

/* An object as a row, and the lists in it as tables whose names begin with `prefix`. */
static void add_item(struct shears_result *r, struct shears_table *t, const struct sh_node *object, int64_t parent)
{
    if (t->n_row == t->room)
        t->item = xreallocarray(t->item, t->room = t->room ? 2 * t->room : 16, sizeof *t->item);
    size_t row = t->n_row++;
    struct item *i = &t->item[row];
    *i = (struct item){.n = sh_node_scalars(object, NULL), .parent = parent};
    i->value = xcalloc((size_t)i->n + 1, sizeof *i->value);
    sh_node_scalars(object, i->value);
    t->has_parent |= parent >= 0;
    for (int k = 0; k < object->n_child; k++)
        if (object->child[k]->kind == SH_NODE_LIST) {
            char *name = xasprintf("%s%s%s", t->name, *t->name ? "." : "", object->child[k]->key);
            add_list(r, name, object->child[k], *t->name ? (int64_t)row : -1);
            free(name);
        }
}

static void add_list(struct shears_result *r, const char *name, const struct sh_node *list, int64_t parent)
{
    struct shears_table *t = table_of(r, name);
    for (int i = 0; i < list->n_child; i++)
        add_item(r, t, list->child[i], parent);
}

/* ---- columns ---- */

static int is_null(const struct sh_node *n)
{
    return !n || (n->kind == SH_NODE_TEXT && !n->text);
}

static int is_called(const struct sh_node *n, const char *name)
{
    char own[SH_NODE_NAME];
    sh_node_name(n, own);
    return !strcmp(own, name);
}

/* The value of that name; rows mostly have it at the same place. */
static const struct sh_node *value_of(const struct item *i, const char *name, int guess)
{
    if (guess < i->n && is_called(i->value[guess], name))
        return i->value[guess];
    for (int k = 0; k < i->n; k++)
        if (is_called(i->value[k], name))
            return i->value[k];
    return NULL;
}

static enum shears_kind kind_of(const struct sh_node *n)
{
    return n->kind == SH_NODE_INT ? SHEARS_INT : n->kind == SH_NODE_REAL ? SHEARS_REAL
           : n->kind == SH_NODE_BOOL ? SHEARS_BOOL : SHEARS_TEXT;
}

/* One kind for the values of a column: whole and real numbers are real, also whole ones where some are missing; numbers
 * next to texts are texts. */
static enum shears_kind common_kind(const struct sh_node *const *value, size_t n)
{
    int kinds = 0, nulls = 0;
    for (size_t i = 0; i < n; i++)
        if (is_null(value[i]))
            nulls = 1;
        else
            kinds |= 1 << kind_of(value[i]);
    if (!kinds || kinds & 1 << SHEARS_TEXT)
        return SHEARS_TEXT;
    if (nulls || kinds & 1 << SHEARS_REAL)
        return SHEARS_REAL;
    return kinds == 1 << SHEARS_BOOL ? SHEARS_BOOL : SHEARS_INT;
}

static char *text_of(const struct sh_node *n)
{
    char cell[256];
    if (is_null(n))
        return NULL;
    if (n->kind == SH_NODE_TEXT)
        return xstrdup(n->text);
    sh_node_cell(cell, sizeof cell, n, 1);
    return xstrdup(cell);
}

static double real_of(const struct sh_node *n)
{
    return is_null(n) ? (double)NAN : n->kind == SH_NODE_REAL ? n->real : (double)n->whole;
}

static void add_column(struct shears_table *t, const char *name, const struct sh_node *const *value)
{
    struct shears_column c = {.name = xstrdup(name), .kind = common_kind(value, t->n_row)};
    char **texts = c.kind == SHEARS_TEXT ? xcalloc(t->n_row, sizeof *texts) : NULL;
    double *reals = c.kind == SHEARS_REAL ? xcalloc(t->n_row, sizeof *reals) : NULL;
    int64_t *ints = !texts && !reals ? xcalloc(t->n_row, sizeof *ints) : NULL;
    for (size_t i = 0; i < t->n_row; i++)
        if (texts)
            texts[i] = text_of(value[i]);
        else if (reals)
            reals[i] = real_of(value[i]);
        else
            ints[i] = value[i]->whole;
    c.texts = (const char *const *)texts;
    c.reals = reals;
    c.ints = ints;
    t->column = xreallocarray(t->column, t->n_column + 1, sizeof *t->column);
    t->column[t->n_column++] = c;
}

static void add_parents(struct shears_table *t)
{
    int64_t *ints = xcalloc(t->n_row, sizeof *ints);
    for (size_t i = 0; i < t->n_row; i++)
        ints[i] = t->item[i].parent;
    t->column = xcalloc(1, sizeof *t->column);
    t->column[t->n_column++] = (struct shears_column){.name = xstrdup("parent"), .kind = SHEARS_INT, .ints = ints};
}

static void make_columns(struct shears_table *t)
{
    const struct sh_node **value = xcalloc(t->n_row + 1, sizeof *value);
    char name[SH_NODE_NAME];
    if (t->has_parent)
        add_parents(t);
    for (size_t i = 0; i < t->n_row; i++)
        for (int k = 0; k < t->item[i].n; k++) {
            sh_node_name(t->item[i].value[k], name);
            size_t at = (size_t)(t->has_parent + k);
            if ((at < t->n_column && !strcmp(t->column[at].name, name)) || shears_column(t, name))
                continue;
            for (size_t row = 0; row < t->n_row; row++)
                value[row] = value_of(&t->item[row], name, k);
            add_column(t, name, value);
        }
    free(value);
    for (size_t i = 0; i < t->n_row; i++)
        free(t->item[i].value);
    free(t->item);
    t->item = NULL;
}

/* ---- the object ---- */

struct shears_result *sh_lib_result(struct sh_out *o)
{
    struct shears_result *r = xcalloc(1, sizeof *r);
    r->out = o;
    add_item(r, table_of(r, ""), &o->root, -1);
    for (size_t i = 0; i < r->n; i++)
        make_columns(r->table[i]);
    return r;
}

static void free_table(struct shears_table *t)
{
    for (size_t i = 0; i < t->n_column; i++) {
        struct shears_column *c = &t->column[i];
        for (size_t k = 0; c->texts && k < t->n_row; k++)
            free((char *)c->texts[k]);
        free((void *)c->texts);
        free((void *)c->reals);
        free((void *)c->ints);
        free((char *)c->name);
    }
    free(t->column);
    free(t->name);
    free(t);
}

void shears_result_free(struct shears_result *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n; i++)
        free_table(r->table[i]);
    for (int i = 0; i < FORMATS; i++)
        free(r->text[i]);
    sh_out_free(r->out);
    free(r->table);
    free(r);
}

size_t shears_result_tables(const struct shears_result *r)
{
    return r ? r->n : 0;
}

const struct shears_table *shears_result_table(const struct shears_result *r, size_t i)
{
    return r && i < r->n ? r->table[i] : NULL;
}

const struct shears_table *shears_table(const struct shears_result *r, const char *name)
{
    for (size_t i = 0; r && name && i < r->n; i++)
        if (!strcmp(r->table[i]->name, name))
            return r->table[i];
    return NULL;
}

const char *shears_table_name(const struct shears_table *t)
{
    return t ? t->name : "";
}

size_t shears_table_rows(const struct shears_table *t)
{
    return t ? t->n_row : 0;
}

size_t shears_table_columns(const struct shears_table *t)
{
    return t ? t->n_column : 0;
}

const struct shears_column *shears_table_column(const struct shears_table *t, size_t i)
{
    return t && i < t->n_column ? &t->column[i] : NULL;
}

const struct shears_column *shears_column(const struct shears_table *t, const char *name)
{
    for (size_t i = 0; t && name && i < t->n_column; i++)
        if (!strcmp(t->column[i].name, name))
            return &t->column[i];
    return NULL;
}

const char *shears_result_text(struct shears_result *r, const char *format, struct shears_error **e)
{
    static const char *const names[FORMATS] = {"text", "json", "csv", "html"};
    struct sh_err why;
    size_t bytes;
    int f = 0;
    if (sh_lib_given(e, "shears_result_text", "a result", r))
        return NULL;
    while (f < FORMATS && format && strcmp(format, names[f]))
        f++;
    if (!format || f == FORMATS) {
        sh_lib_misused(e, "shears_result_text: found format \"%.40s\", expected text, json, csv or html",
                       format ? format : "NULL");
        return NULL;
    }
    if (!r->text[f]) {
        FILE *to = xmemstream(&r->text[f], &bytes);
        int bad = sh_out_write(r->out, (enum sh_out_format)f, to, &why);
        xmemclose(to, &r->text[f], &bytes);
        if (bad) {
            free(r->text[f]);
            r->text[f] = NULL;
            sh_lib_fail(e, &why);
        }
    }
    return r->text[f];
}

const char *shears_result_remark(const struct shears_result *r, size_t i)
{
    return r && i < (size_t)r->out->n_note ? r->out->note[i] : NULL;
}
