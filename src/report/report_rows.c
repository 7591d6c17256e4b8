/* SPDX-License-Identifier: Apache-2.0 */
/* See report_rows.h. */
#include "src/report/report_rows.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/report/figures/figure_data.h"

static int has_coarse_weights(const struct sh_results *all)
{
    for (int i = 0; i < all->n; i++)
        if (sh_result_int(&all->row[i], "weight_bits") < 16 || json_object_get(all->row[i].settings, "weight_prune"))
            return 1;
    return 0;
}

/* Text that was made for this cell. */
static void put_own(struct sh_out *o, const char *key, char *text)
{
    sh_out_text(o, key, key, text);
    free(text);
}

static void put(struct sh_out *o, const struct sh_report_column *c, const struct sh_report_at *at)
{
    const struct sh_result_row *row = at->row;
    switch (c->kind) {
    case SH_CELL_METRIC:
        sh_out_real(o, c->key, c->label, sh_result(row, c->key, at->layer) * (c->scale > 0 ? c->scale : 1), c->digits);
        break;
    case SH_CELL_VALUE:
        sh_out_real(o, c->key, c->label, c->value(at), c->digits);
        break;
    case SH_CELL_INT:
        sh_out_int(o, c->key, c->label, sh_result_int(row, c->key));
        break;
    case SH_CELL_TEXT:
        sh_out_text(o, c->key, c->label, sh_result_text(row, c->key));
        break;
    case SH_CELL_FILE:
        sh_out_text(o, c->key, c->label, sh_figure_file(sh_result_text(row, c->key)));
        break;
    case SH_CELL_POLICY:
        put_own(o, "policy", sh_result_policy(row));
        break;
    case SH_CELL_BUDGET:
        sh_out_text(o, "budget", "budget", sh_result_budget(row));
        break;
    case SH_CELL_WEIGHTS:
        if (has_coarse_weights(at->all))
            put_own(o, "weights", sh_result_weights(row));
        break;
    case SH_CELL_LAYER:
        sh_out_int(o, "layer", "layer", at->layer);
        break;
    case SH_CELL_END:
        break;
    }
}

static int last_layer(const struct sh_result_row *row)
{
    int last = -1;
    for (int i = 0; i < row->n; i++)
        last = row->at[i].layer > last ? row->at[i].layer : last;
    return last;
}

static int is_shown(const struct sh_report_table *t, const struct sh_report_at *at)
{
    return !t->is_shown || t->is_shown(at);
}

void sh_report_rows(struct sh_report *r, const struct sh_results *all, const struct sh_report_table *t)
{
    struct sh_out *o = sh_out_new();
    sh_out_list(o, t->key, t->title);
    for (int i = 0; i < all->n; i++) {
        struct sh_report_at at = {all, &all->row[i], -1, t->more};
        if (!is_shown(t, &at))
            continue;
        int last = t->by_layer ? last_layer(at.row) : 0;
        for (int l = 0; l <= last; l++) {
            at.layer = t->by_layer ? l : -1;
            sh_out_item(o);
            const char *link = t->link ? t->link(&at) : NULL;
            if (link)
                sh_out_link(o, link);
            if (sh_results_mixed(all))
                sh_out_text(o, "store", "store", r->store[at.row->store].path);
            for (const struct sh_report_column *c = t->column; c->kind != SH_CELL_END; c++)
                put(o, c, &at);
        }
    }
    sh_out_end(o);
    sh_report_table(r, NULL, o);
}

static int has_rows(const struct sh_results *all, const struct sh_report_table *t)
{
    for (int i = 0; i < all->n; i++)
        if (is_shown(t, &(struct sh_report_at){all, &all->row[i], -1, t->more}))
            return 1;
    return 0;
}

int sh_report_results_part(struct sh_report *r, const struct sh_report_part *p, struct sh_err *e)
{
    struct sh_results all;
    int bad = 0;
    if (sh_results_read(r, p->command, &all, e))
        return -1;
    if (!has_rows(&all, p->table)) {
        sh_report_fill(r, p->fill, p->missing);
    } else {
        sh_report_say(r, "%s", p->says);
        sh_report_rows(r, &all, p->table);
        bad = (p->figure && sh_results_figure(r, &all, p->figure, e)) ||
              (p->has_commands && sh_report_typed(r, p->command, e));
    }
    sh_results_free(&all);
    return bad ? -1 : 0;
}
