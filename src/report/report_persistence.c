/* SPDX-License-Identifier: Apache-2.0 */
/* Report: persistence of importance per layer and head, with random weights as the control. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/report/figures/figure_data.h"
#include "src/report/figures/figure_persistence.h"
#include "src/report/report.h"

enum level { MODEL, LAYER, HEAD };

/* The metrics of both panels as columns, of the whole model, a layer or a head; NaN where the store cannot answer. */
static void columns(struct sh_out *o, const struct sh_figure_trace *t, enum level level, int layer, int head)
{
    static const struct { const char *group, *ratio, *density, *lift, *auc; } name[2] = {
        {"literal", "ratio", "chance", "lift", "AUC"},
        {"beyond_recency", "ratio, beyond recency", "chance, beyond recency",
         "lift, beyond recency", "AUC, beyond recency"}};
    static const double none[SH_N_FIGURE] = {[SH_RATIO] = NAN, [SH_DENSITY] = NAN, [SH_LIFT] = NAN, [SH_AUC] = NAN};
    for (int beyond = 0; beyond < 2; beyond++) {
        int cell = sh_figure_cell(t, beyond);
        const double *f = cell < 0         ? none
                          : level == MODEL ? sh_study_all(&t->study, cell)
                          : level == LAYER ? sh_study_layer(&t->study, cell, layer)
                                           : sh_study_head(&t->study, cell, layer, head);
        sh_out_group(o, name[beyond].group);
        sh_out_real(o, "ratio", name[beyond].ratio, f[SH_RATIO], 4);
        sh_out_real(o, "density", name[beyond].density, f[SH_DENSITY], 4);
        sh_out_real(o, "lift", name[beyond].lift, f[SH_LIFT], 3);
        sh_out_real(o, "auc", name[beyond].auc, f[SH_AUC], 3);
        sh_out_group_end(o);
    }
}

static void row(struct sh_out *o, const struct sh_figure_trace *t, enum level level, int layer, int head,
                const char *link)
{
    const struct sh_persistence *p = t->study.part[0].p;
    sh_out_item(o);
    if (link)
        sh_out_link(o, link);
    sh_out_text(o, "trace", "trace", t->label);
    if (level >= LAYER)
        sh_out_int(o, "layer", "layer", sh_persistence_layer_at(p, layer));
    if (level >= HEAD)
        sh_out_int(o, "head", "head", sh_persistence_head_at(p, layer, head));
    columns(o, t, level, layer, head);
}

/* Does no head have a lift? */
static int is_grey(const struct sh_fig_heads *h)
{
    for (int k = 0; k < h->n_layers * h->n_heads; k++)
        if (!h->lift || isfinite(h->lift[k]))
            return 0;
    return 1;
}

/* Has the figure a map of this trace? One that would be all grey is left out, if others are left. */
static int is_mapped(const struct sh_fig_head_maps *all, int i)
{
    int n_grey = 0;
    for (int k = 0; k < all->n; k++)
        n_grey += is_grey(&all->trace[k]);
    return n_grey == all->n || !is_grey(&all->trace[i]);
}

static void table(struct sh_report *r, const struct sh_figure_data *d, int n_db, enum level level)
{
    static const struct { const char *key, *label, *folded; } is[] = {
        [MODEL] = {"models", "whole models: mean over layers", NULL}, [LAYER] = {"layers", NULL, "Layer by layer"},
        [HEAD] = {"heads", NULL, "Head by head"}};
    struct sh_out *o = sh_out_new();
    sh_out_list(o, is[level].key, is[level].label);
    for (int i = 0; i < n_db; i++) {
        const struct sh_persistence *p = d->trace[i].study.part[0].p;
        const char *link = level < HEAD ? "#fig-persistence" : is_mapped(d->out.heads, i) ? "#fig-heads" : NULL;
        for (int l = 0; l < (level >= LAYER ? sh_persistence_n_layer(p) : 1); l++)
            for (int h = 0; h < (level >= HEAD ? sh_persistence_n_head(p, l) : 1); h++)
                row(o, &d->trace[i], level, l, h, link);
    }
    sh_out_end(o);
    sh_report_table(r, is[level].folded, o);
}

/* Random weights of the same shape show what of the ratio is mere arithmetic. */
static void control(struct sh_report *r, int first)
{
    for (int i = 0; i < r->n_store; i++)
        if (r->store[i].n_run && sh_report_is_random(&r->store[i].run[0]))
            return;
    sh_report_trace(r, first, "random.db", " --random-weights", "the control. Random weights of the same shape show "
                    "how much of the ratio is plain arithmetic. Trace them, then name both stores with --db.");
}

/* The maps of heads; traces without one are said in a sentence instead. */
static int maps(struct sh_report *r, const struct sh_figure_data *d, struct sh_err *e)
{
    const struct sh_fig_head_maps *all = d->out.heads;
    struct sh_fig_heads *shown = xcalloc((size_t)all->n + 1, sizeof *shown);
    struct sh_fig_head_maps some = *all;
    struct sh_fig_data out = d->out;
    some.n = 0;
    for (int i = 0; i < all->n; i++)
        if (is_mapped(all, i))
            shown[some.n++] = all->trace[i];
    some.trace = shown;
    out.heads = &some;
    for (int i = 0; i < all->n; i++)
        if (!is_mapped(all, i))
            sh_report_say(r, "The maps below leave out %s: beyond recency, no token matters to any of its heads.",
                          all->trace[i].title);
    int bad = sh_report_figure(r, &sh_figure_heads, NULL, &out, e);
    free(shown);
    return bad;
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
        sh_report_trace(r, 0, "traces.db", "", "recorded attention: the stores have results only.");
        return 0;
    }
    struct sh_figure_request q = {.db = db, .n_db = n, .split = 0.5, .threads = r->threads, .quiet = r->quiet};
    struct sh_figure_data *d = sh_figure_data_new(
        SH_FIG_BIT(persistence) | SH_FIG_BIT(persistence_grid) | SH_FIG_BIT(heads), &q, e);
    if (!d)
        return sh_report_lacks(r, NULL, e);
    sh_report_say(r, "What share of the tokens that matter late in a text already mattered early? The ratio is that "
                     "share. Chance is the ratio for tokens drawn at random. Lift is ratio / chance, computed for "
                     "each layer and head and then averaged, so it is not the quotient of the two means in this "
                     "table. AUC says how well a token's early scores predict whether it matters late (0.5: not at "
                     "all). With the paper's literal definition (a score above 1/t, where t is the number of keys "
                     "that the query sees; every pair of query and key), nearly every token matters at least once: "
                     "when it is the newest. What an eviction policy can use is persistence beyond recency (a score "
                     "above 5/t, query and key at least 10 tokens apart).");
    table(r, d, n, MODEL);
    control(r, first);
    int bad = sh_report_figure(r, &sh_figure_persistence, NULL, &d->out, e);
    if (!bad) {
        table(r, d, n, LAYER);
        bad = maps(r, d, e);
    }
    if (!bad) {
        table(r, d, n, HEAD);
        bad = sh_report_figure(r, &sh_figure_persistence_grid, NULL, &d->out, e);
    }
    for (int i = 0; i < n && !bad; i++)
        sh_report_command(r, "persistence --db %s --alpha 5/t --recent 10 --per head", db[i]);
    sh_figure_data_free(d);
    return bad;
}

const struct sh_report_part sh_report_persistence = {
    .name = "persistence", .title = "Persistence of importance", .write = write};
