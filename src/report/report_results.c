/* SPDX-License-Identifier: Apache-2.0 */
/* See report_results.h. */
#include "src/report/report_results.h"

#include <stdlib.h>
#include <string.h>

#include "src/app/store/measured.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/report/figures/figure_data.h"

static int has_texts(const char *command)
{
    return !strcmp(command, "eval") || !strcmp(command, "replay");
}

/* Rows of other texts from `first` on. */
static void leave_out(struct sh_results *all, int first, const char *text)
{
    int n = first;
    for (int i = first; i < all->n; i++)
        if (sh_text_answers(&all->row[i].on, text))
            all->row[n++] = all->row[i];
        else
            sh_result_free(&all->row[i]);
    all->n = n;
}

int sh_results_read(const struct sh_report *r, const char *command, struct sh_results *out, struct sh_err *e)
{
    int bad = 0;
    *out = (struct sh_results){0};
    for (int i = 0; i < r->n_store && !bad; i++) {
        int before = out->n;
        struct sh_store *s = sh_store_open(r->store[i].path, e);
        bad = !s || sh_results_load(s, command, out, e);
        sh_store_close(s);
        if (r->measured_on && has_texts(command))
            leave_out(out, before, r->measured_on);
        while (before < out->n)
            out->row[before++].store = i;
    }
    if (bad)
        sh_results_free(out);
    return bad ? -1 : 0;
}

/* ---- texts ---- */

static struct sh_texts_met meet(const struct sh_results *s, int store)
{
    struct sh_texts_met met = {0};
    for (int i = 0; i < s->n; i++)
        if (store < 0 || s->row[i].store == store)
            sh_texts_meet(&met, &s->row[i].on);
    return met;
}

int sh_report_texts(const struct sh_report *r, const struct sh_results *s, char ***label)
{
    int several = 0;
    struct sh_texts_met all = meet(s, -1);
    for (int i = 0; i < r->n_store && !r->measured_on; i++) {
        struct sh_texts_met own = meet(s, i);
        several |= own.n > 1;
        free(own.at);
    }
    int n = several ? all.n : 1;
    *label = xcalloc((size_t)n, sizeof **label);
    if (r->measured_on)
        **label = xstrdup(r->measured_on);
    for (int i = 0; i < n && several; i++)
        (*label)[i] = sh_text_label(&all, all.at[i]);
    free(all.at);
    return n;
}

void sh_report_texts_free(char **label, int n)
{
    while (n)
        free(label[--n]);
    free(label);
}

int sh_report_stores_of(const struct sh_report *r, const struct sh_results *s, const char *text, const char **db)
{
    int n = 0, last = -1;
    for (int i = 0; i < s->n; i++)              /* rows of one store are together */
        if (s->row[i].store != last && (!text || sh_text_answers(&s->row[i].on, text))) {
            last = s->row[i].store;
            db[n++] = r->store[last].path;
        }
    return n;
}

int sh_report_check_text(const struct sh_report *r, struct sh_err *e)
{
    struct sh_results all[2] = {{0}};
    struct sh_report every = *r;
    struct sh_texts_met met = {0};
    int found = !r->measured_on, bad = 0;
    every.measured_on = NULL;
    for (int k = 0; k < 2 && !found && !bad; k++) {
        bad = sh_results_read(&every, k ? "replay" : "eval", &all[k], e);
        for (int i = 0; i < all[k].n; i++) {
            found |= sh_text_answers(&all[k].row[i].on, r->measured_on);
            sh_texts_meet(&met, &all[k].row[i].on);
        }
    }
    if (!found && !bad)
        bad = met.n ? !sh_text_choose(&met, r->measured_on, "the report", e)
                    : sh_fail(e, "--measured-on %.80s: the stores have no evaluation and no replay", r->measured_on);
    sh_results_free(&all[0]);
    sh_results_free(&all[1]);
    free(met.at);
    return bad ? -1 : 0;
}

int sh_results_mixed(const struct sh_results *s)
{
    return s->n > 0 && s->row[0].store != s->row[s->n - 1].store;      /* rows of one store are together */
}

char *sh_result_weights(const struct sh_result_row *r)
{
    double prune = 100 * sh_result_real(r, "weight_prune");
    long long bits = sh_result_int(r, "weight_bits");
    if (sh_result_int(r, "activation_bits") == 8)       /* then they are neither pruned nor recoded */
        return xstrdup("as stored, 8-bit activations");
    if (prune > 0)
        return bits < 16 ? xasprintf("%g %% pruned, %lld bits", prune, bits) : xasprintf("%g %% pruned", prune);
    return bits < 16 ? xasprintf("%lld bits", bits) : xstrdup("as stored");
}

const char *sh_result_budget(const struct sh_result_row *r)
{
    return strcmp(sh_result_text(r, "policy"), "full") ? sh_result_text(r, "budget") : "all";
}

/* Whether the figure has something to show of that one store. What it lacks is in *why; -1: e ends the command. */
static int has_figure(const struct sh_report *r, const struct sh_figure *f, const char *db, const char *text,
                      struct sh_err *why, struct sh_err *e)
{
    struct sh_figure_request q = {.db = &db, .n_db = 1, .measured_on = text, .split = 0.5, .threads = r->threads,
                                  .quiet = 1};
    struct sh_err lacks = {0};
    struct sh_figure_data *d = sh_figure_data_new(1u << f->number, &q, &lacks);
    if (d) {
        sh_figure_data_free(d);
        return 1;
    }
    int ends = sh_interrupted() || lacks.is_io || lacks.status == SH_ABSENT;
    *(ends ? e : why) = lacks;
    return ends ? -1 : 0;
}

/* 1: drawn; 0: there is nothing to show, *why. */
static int draw(struct sh_report *r, const struct sh_results *s, const struct sh_figure *f, const char *text,
                const char *id, struct sh_err *why, struct sh_err *e)
{
    const char *all[SH_REPORT_STORES], *db[SH_REPORT_STORES];
    int n_all = sh_report_stores_of(r, s, text, all), n = 0;
    for (int i = 0; i < n_all; i++) {
        int found = has_figure(r, f, all[i], text, why, e);
        if (found < 0)
            return -1;
        if (found)
            db[n++] = all[i];
    }
    if (!n)
        return 0;
    if (text)
        sh_report_say(r, "Measured on %s:", text);
    struct sh_figure_request q = {.db = db, .n_db = n, .measured_on = text, .split = 0.5, .threads = r->threads,
                                  .quiet = r->quiet};
    struct sh_figure_data *d = sh_figure_data_new(1u << f->number, &q, e);
    int bad = d ? sh_report_figure(r, f, id, &d->out, e) : sh_report_lacks(r, NULL, e);
    sh_figure_data_free(d);
    return bad ? -1 : 1;
}

int sh_results_figure(struct sh_report *r, const struct sh_results *s, const struct sh_figure *f, struct sh_err *e)
{
    int by_text = f == &sh_figure_compression || f == &sh_figure_quant, drawn = 0, bad = 0;
    char **text;
    struct sh_err why = {0};
    int n = by_text ? sh_report_texts(r, s, &text) : 1;
    for (int i = 0; i < n && !bad; i++) {
        char *id = drawn ? xasprintf("%s-%d", f->name, drawn + 1) : NULL;
        int done = draw(r, s, f, by_text ? text[i] : NULL, id, &why, e);
        drawn += done > 0;
        bad = done < 0;
        free(id);
    }
    if (by_text)
        sh_report_texts_free(text, n);
    if (drawn || bad)
        return bad ? -1 : 0;
    *e = why;
    return sh_report_lacks(r, NULL, e);
}

/* ---- tables ---- */

static int has_coarse_weights(const struct sh_results *all)
{
    for (int i = 0; i < all->n; i++)
        if (!sh_result_is_of_model(&all->row[i]))
            return 1;
    return 0;
}

/* Of a plan, the mean of its heads. */
static void put_budget(struct sh_out *o, const struct sh_result_row *row)
{
    char text[48];
    const char *budget = sh_result_budget(row);
    if (json_object_get(row->settings, "plan")) {
        snprintf(text, sizeof text, "plan, %.3g %%", 100 * strtod(budget, NULL));
        budget = text;
    }
    sh_out_text(o, "budget", "budget", budget);
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
    struct sh_texts_met met;
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
    case SH_CELL_ON:
        met = meet(at->all, -1);
        put_own(o, "text", sh_text_label(&met, &row->on));
        free(met.at);
        break;
    case SH_CELL_POLICY:
        put_own(o, "policy", sh_result_policy(row));
        break;
    case SH_CELL_BUDGET:
        put_budget(o, row);
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

void sh_report_rows(struct sh_report *r, const struct sh_results *all, const struct sh_report_table *t)
{
    struct sh_out *o = sh_out_new();
    sh_out_list(o, t->key, t->title);
    for (int i = 0; i < all->n; i++) {
        struct sh_report_at at = {all, &all->row[i], -1, t->more};
        if (t->is_shown && !t->is_shown(&at))
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
        if (!t->is_shown || t->is_shown(&(struct sh_report_at){all, &all->row[i], -1, t->more}))
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
        if (p->verdict)
            p->verdict(r, &all);
        sh_report_rows(r, &all, p->table);
        bad = (p->figure && sh_results_figure(r, &all, p->figure, e)) ||
              (p->has_commands && sh_report_typed(r, p->command, e));
    }
    sh_results_free(&all);
    return bad ? -1 : 0;
}
