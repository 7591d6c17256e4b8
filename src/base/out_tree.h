/* SPDX-License-Identifier: Apache-2.0 */
/* What out.h's writers share: the description as a tree, and its lists as rows. No other file looks inside. */
#ifndef SH_BASE_OUT_TREE_H
#define SH_BASE_OUT_TREE_H

#include "src/base/out.h"

enum sh_node_kind { SH_NODE_INT, SH_NODE_REAL, SH_NODE_TEXT, SH_NODE_BOOL, SH_NODE_LIST, SH_NODE_OBJECT };

struct sh_node {
    enum sh_node_kind kind;
    char *key, *label, *text;
    char *link;                         /* where an item's row leads to; NULL: nowhere            */
    long long whole;
    double real;
    int digits;
    int is_compact;                     /* a list on one line of JSON                             */
    char *shown;                        /* what text tables show instead; NULL: the value         */
    int is_detail;                      /* a column that text tables show only if it is named     */
    const struct sh_node *group;        /* group that it is in; NULL: none                        */
    struct sh_node **child;
    int n_child;
};

struct sh_out {
    struct sh_node root;
    struct sh_node *open[16];           /* the object or list being filled, outermost first */
    int depth;
    char *show, *columns;
    char **note;
    int n_note;
};

/* The rows of a list as arrays of scalar nodes: its items, or the shown inner items with the first
 * value of their parent in front. */
struct sh_rows {
    const struct sh_node ***row;
    const char **link;                  /* [n_row] or NULL each                                   */
    int n_row, n_col;
};

struct sh_rows sh_rows_of(const struct sh_node *list, const char *show);
void sh_rows_free(struct sh_rows *r);

/* Only these columns "a,b,group.c", in this order; there may be none left. */
void sh_rows_pick(struct sh_rows *r, const char *columns);

/* What text and CSV show of a list, no rows: nothing; and whether they show a scalar. With columns named: the
 * lists that have most of them, and scalars of those names: all of them where every name is a scalar's, else those
 * that no such list has. */
struct sh_rows sh_out_rows(const struct sh_out *o, const struct sh_node *list);
int sh_out_shows(const struct sh_out *o, const struct sh_node *scalar);

enum { SH_NODE_NAME = 128 };
void sh_node_name(const struct sh_node *n, char name[SH_NODE_NAME]);    /* "key", "group.key" */

/* The scalars of an object, those of its groups in their places; `to` NULL: how many. */
int sh_node_scalars(const struct sh_node *object, const struct sh_node **to);

/* A cell as the reader sees it; csv keeps every digit. */
void sh_node_cell(char *buffer, size_t bytes, const struct sh_node *n, int csv);

void sh_out_html(const struct sh_out *o, FILE *to);

#endif
