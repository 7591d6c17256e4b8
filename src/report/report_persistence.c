/* SPDX-License-Identifier: Apache-2.0 */
/* Report: persistence of importance per layer and head, beside random weights. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/report/figures/figure_data.h"
#include "src/report/figures/figure_persistence.h"
#include "src/report/report.h"

typedef const double *at_fn(const struct sh_study *y, int cell, int layer, int head);

static const double *of_all(const struct sh_study *y, int cell, int layer, int head)
{
    (void)layer, (void)head;
    return sh_study_all(y, cell);
}

static const double *of_layer(const struct sh_study *y, int cell, int layer, int head)
{
    (void)head;
    return sh_study_layer(y, cell, layer);
}

/* The figures of both panels as columns; a store that cannot answer one leaves it out. */
static void columns(struct sh_out *o, const struct sh_figure_trace *t, at_fn *at, int layer, int head)
{
    static const struct { const char *group, *ratio, *density, *lift, *auc; } name[2] = {
        {"literal", "ratio", "chance", "lift", "AUC"},
        {"beyond_recency", "ratio, beyond", "chance, beyond", "lift, beyond", "AUC, beyond"}};
    for (int beyond = 0; beyond < 2; beyond++) {
        int cell = sh_figure_cell(t, beyond);
        const double *f = cell < 0 ? NULL : at(&t->study, cell, layer, head);
        sh_out_group(o, name[beyond].group);
        sh_out_real(o, "ratio", name[beyond].ratio, f ? f[SH_RATIO] : (double)NAN, 4);
        sh_out_real(o, "density", name[beyond].density, f ? f[SH_DENSITY] : (double)NAN, 4);
        sh_out_real(o, "lift", name[beyond].lift, f ? f[SH_LIFT] : (double)NAN, 3);
        sh_out_real(o, "auc", name[beyond].auc, f ? f[SH_AUC] : (double)NAN, 3);
        sh_out_group_end(o);
    }
}

static void whole(struct sh_report *r, const struct sh_figure_data *d, int n_db)
{
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "models", "whole models: mean over layers");
    for (int i = 0; i < n_db; i++) {
        sh_out_item(o);
        sh_out_link(o, "#fig-persistence");
        sh_out_text(o, "trace", "trace", d->trace[i].label);
        columns(o, &d->trace[i], of_all, 0, 0);
    }
    sh_out_end(o);
    sh_report_table(r, NULL, o);
}

static void layers(struct sh_report *r, const struct sh_figure_data *d, int n_db)
{
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "layers", NULL);
    for (int i = 0; i < n_db; i++) {
        const struct sh_persistence *p = d->trace[i].study.part[0].p;
        for (int l = 0; l < sh_persistence_n_layer(p); l++) {
            sh_out_item(o);
            sh_out_link(o, "#fig-persistence");
            sh_out_text(o, "trace", "trace", d->trace[i].label);
            sh_out_int(o, "layer", "layer", sh_persistence_layer_at(p, l));
            columns(o, &d->trace[i], of_layer, l, 0);
        }
    }
    sh_out_end(o);
    sh_report_table(r, "Layer by layer", o);
}

static void heads(struct sh_report *r, const struct sh_figure_data *d, int n_db)
{
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "heads", NULL);
    for (int i = 0; i < n_db; i++) {
        const struct sh_persistence *p = d->trace[i].study.part[0].p;
        for (int l = 0; l < sh_persistence_n_layer(p); l++)
            for (int h = 0; h < sh_persistence_n_head(p, l); h++) {
                sh_out_item(o);
                sh_out_link(o, "#fig-heads");
                sh_out_text(o, "trace", "trace", d->trace[i].label);
                sh_out_int(o, "layer", "layer", sh_persistence_layer_at(p, l));
                sh_out_int(o, "head", "head", sh_persistence_head_at(p, l, h));
                columns(o, &d->trace[i], sh_study_head, l, h);
            }
    }
    sh_out_end(o);
    sh_report_table(r, "Head by head", o);
}

/* Random weights of the same shape show what of the ratio is mere arithmetic. */
static void control(struct sh_report *r, int first)
{
    for (int i = 0; i < r->n_store; i++)
        if (r->store[i].n_run && sh_report_is_random(&r->store[i].run[0]))
            return;
    char *again = sh_report_trace_again(r, first, "random.db", " --random-weights");
    sh_report_missing(r, again, "the control. Random weights of the same shape show how much of the ratio is mere "
                      "arithmetic; trace them and name both stores with --db.");
    free(again);
}

static int write(struct sh_report *r, struct sh_err *e)
{
    const char *db[SH_REPORT_STORES];
    int n = 0, first = 0;
    for (int i = 0; i < r->n_store; i++)
        if (sh_report_is_causal(&r->store[i])) {
            first = n ? first : i;
            db[n++] = r->store[i].path;
        }
    if (!n) {
        char *again = sh_report_trace_again(r, 0, "traces.db", "");
        sh_report_missing(r, again, "recorded attention: the stores hold results only.");
        free(again);
        return 0;
    }
    struct sh_figure_request q = {.db = db, .n_db = n, .split = 0.5, .threads = r->threads, .quiet = r->quiet};
    struct sh_figure_data *d = sh_figure_data_new(
        SH_FIG_BIT(persistence) | SH_FIG_BIT(persistence_grid) | SH_FIG_BIT(heads), &q, e);
    if (!d)
        return sh_report_lacks(r, NULL, e);
    sh_report_say(r, "Of the tokens that matter late in a text, how many mattered early? The ratio says it; chance is "
                  "what it would be for tokens drawn at random, and lift their quotient. Taken literally (score above "
                  "1/t, every pair) nearly every token matters once, when it is the newest; beyond recency (above 5/t, "
                  "at least 10 apart) is what an eviction policy can use.");
    whole(r, d, n);
    control(r, first);
    int bad = sh_report_figure(r, "persistence", &d->out, e);
    if (!bad) {
        layers(r, d, n);
        bad = sh_report_figure(r, "heads", &d->out, e);
    }
    if (!bad) {
        heads(r, d, n);
        bad = sh_report_figure(r, "persistence-grid", &d->out, e);
    }
    for (int i = 0; i < n && !bad; i++) {
        char *line = xasprintf("persistence --db %s --alpha 5/t --recent 10 --per head", db[i]);
        sh_report_command(r, line);
        free(line);
    }
    sh_figure_data_free(d);
    return bad;
}

const struct sh_report_part sh_report_persistence = {"persistence", "Persistence of importance", write};
