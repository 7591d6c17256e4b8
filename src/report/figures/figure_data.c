/* SPDX-License-Identifier: Apache-2.0 */
/* See figure_data.h: what comes out of persistence figures. One study per store serves all needs. */
#include "src/report/figures/figure_data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/app/persistence/study.h"

enum { ALPHAS = 4, RECENTS = 4, BEYOND_RECENT = 10 };

static const char *const alpha_name[ALPHAS] = {"row", "2/t", "5/t", "10/t"};
static const char *const alpha_shown[ALPHAS] = {"1/t", "2/t", "5/t", "10/t"};
static const int recent_value[RECENTS] = {0, 1, 10, 50};

struct source {                         /* one store */
    struct sh_study study;
    int cell[ALPHAS][RECENTS];          /* -1: the store cannot answer it */
    char *label;
};

struct sh_figure_data {
    struct source *source;
    int n_source;
    void **kept;
    int n_kept;
};

static void *keep(void *keeper, void *at)
{
    struct sh_figure_data *d = keeper;
    d->kept = xreallocarray(d->kept, (size_t)d->n_kept + 1, sizeof *d->kept);
    return d->kept[d->n_kept++] = at;
}

static double *numbers(struct sh_figure_data *d, size_t n)
{
    double *at = keep(d, xmalloc(n * sizeof *at));
    for (size_t i = 0; i < n; i++)
        at[i] = NAN;
    return at;
}

static int study(struct source *src, const struct sh_figure_request *q, const char *path, struct sh_err *e)
{
    struct sh_study *y = &src->study;
    y->window = 400;
    y->threads = q->threads;
    y->quiet = q->quiet;
    y->run = q->run;
    struct sh_store *s = sh_store_open(path, e);
    if (!s)
        return -1;
    int bad = 0;
    for (int i = 0; i < ALPHAS && !bad; i++)
        for (int r = 0; r < RECENTS && !bad; r++) {
            struct sh_persistence_cell c = {.recent = recent_value[r], .split = q->split};
            sh_alpha_parse(alpha_name[i], &c.alpha, e);
            bad = sh_study_add_if(y, s, &c, &src->cell[i][r], e);
        }
    struct sh_alpha literal;
    sh_alpha_parse("row", &literal, e);
    struct sh_persistence_cell c = {literal, 0, q->split};
    bad = bad || (!y->n_cell && sh_gather_can(s, q->run, &c, y->window, e)) || sh_study_run(y, s, e);
    sh_store_close(s);
    if (!bad) {
        const struct sh_gather *g = &y->part[0];
        src->label = strncmp(g->weights, "random", 6) ? xstrdup(g->model) : xasprintf("%s, random weights", g->model);
    }
    return bad;
}

static const struct sh_persistence *heads_of(const struct source *src)
{
    return src->study.part[0].p;
}

/* One line of a persistence panel. Layers that were not recorded have no value. */
static struct sh_fig_series series(struct sh_figure_data *d, const struct source *src, int cell)
{
    const struct sh_persistence *p = heads_of(src);
    int n = src->study.part[0].n_layer;
    double *v[4];
    for (int i = 0; i < 4; i++)
        v[i] = numbers(d, (size_t)n);
    for (int i = 0; cell >= 0 && i < sh_persistence_n_layer(p); i++) {
        int layer = sh_persistence_layer_at(p, i);
        const double *f = sh_study_layer(&src->study, cell, i);
        v[0][layer] = f[SH_RATIO];
        v[1][layer] = f[SH_DENSITY];
        for (int h = 0; h < sh_persistence_n_head(p, i); h++) {
            double ratio = sh_study_head(&src->study, cell, i, h)[SH_RATIO];
            v[2][layer] = fmin(v[2][layer], ratio);             /* fmin and fmax pass over NaN */
            v[3][layer] = fmax(v[3][layer], ratio);
        }
    }
    return (struct sh_fig_series){.label = src->label, .n_layers = n, .ratio = v[0], .density = v[1],
                                  .min_head = v[2], .max_head = v[3]};
}

static const struct { int alpha, recent; const char *title; } panel[2] = {
    {0, 0, "literal: alpha 1/t, every pair"}, {2, 2, "beyond recency: alpha 5/t, query - key >= 10"}};

static void panels(struct sh_figure_data *d, struct sh_fig_data *out)
{
    struct sh_fig_panel *p = keep(d, xcalloc(2, sizeof *p));
    for (int i = 0; i < 2; i++) {
        struct sh_fig_series *s = keep(d, xcalloc((size_t)d->n_source, sizeof *s));
        for (int k = 0; k < d->n_source; k++)
            s[k] = series(d, &d->source[k], d->source[k].cell[panel[i].alpha][panel[i].recent]);
        p[i] = (struct sh_fig_panel){.title = panel[i].title, .n_series = d->n_source, .series = s};
    }
    out->panels = p;
    out->n_panels = 2;
}

static void grids(struct sh_figure_data *d, struct sh_fig_data *out)
{
    struct sh_fig_grid *g = keep(d, xcalloc((size_t)d->n_source, sizeof *g));
    for (int k = 0; k < d->n_source; k++) {
        double *lift = numbers(d, ALPHAS * RECENTS);
        for (int i = 0; i < ALPHAS; i++)
            for (int r = 0; r < RECENTS; r++)
                if (d->source[k].cell[i][r] >= 0)
                    lift[i * RECENTS + r] = sh_study_all(&d->source[k].study, d->source[k].cell[i][r])[SH_LIFT];
        g[k] = (struct sh_fig_grid){.title = d->source[k].label, .n_alphas = ALPHAS, .n_recents = RECENTS,
                                    .alpha = alpha_shown, .recent = recent_value, .lift = lift};
    }
    out->grids = g;
    out->n_grids = d->n_source;
}

static void heads(struct sh_figure_data *d, struct sh_fig_data *out)
{
    struct sh_fig_heads *m = keep(d, xcalloc((size_t)d->n_source, sizeof *m));
    for (int k = 0; k < d->n_source; k++) {
        const struct source *src = &d->source[k];
        const struct sh_persistence *p = heads_of(src);
        int n_layer = src->study.part[0].n_layer, n_head = src->study.part[0].n_head;
        size_t n_value = (size_t)n_layer * (size_t)n_head;
        double *ratio = numbers(d, n_value), *lift = numbers(d, n_value);
        for (int i = 0; i < sh_persistence_n_layer(p); i++)
            for (int h = 0; h < sh_persistence_n_head(p, i); h++) {
                int at = sh_persistence_layer_at(p, i) * n_head + sh_persistence_head_at(p, i, h);
                if (src->cell[0][0] >= 0)
                    ratio[at] = sh_study_head(&src->study, src->cell[0][0], i, h)[SH_RATIO];
                if (src->cell[2][2] >= 0)
                    lift[at] = sh_study_head(&src->study, src->cell[2][2], i, h)[SH_LIFT];
            }
        m[k] = (struct sh_fig_heads){.title = src->label, .n_layers = n_layer, .n_heads = n_head, .ratio = ratio,
                                     .lift = lift};
    }
    out->heads = m;
    out->n_heads = d->n_source;
    out->ratio_settings = "alpha 1/t";
    out->lift_settings = "alpha 5/t, R 10";
}

/* Stores of one model say which they are. */
static void tell_apart(struct sh_figure_data *d, const struct sh_figure_request *q)
{
    char **plain = xcalloc((size_t)d->n_source + 1, sizeof *plain);
    for (int i = 0; i < d->n_source; i++)
        plain[i] = xstrdup(d->source[i].label);
    for (int i = 0; i < d->n_source; i++) {
        const char *slash = strrchr(q->db[i], '/');
        int n = 0;
        for (int k = 0; k < d->n_source; k++)
            n += !strcmp(plain[k], plain[i]);
        if (n < 2)
            continue;
        free(d->source[i].label);
        d->source[i].label = xasprintf("%s (%s)", plain[i], slash ? slash + 1 : q->db[i]);
    }
    for (int i = 0; i < d->n_source; i++)
        free(plain[i]);
    free(plain);
}

/* "split 0.5, 2 sequences, 782 tokens", when that is so of every store. */
static char *studied(const struct sh_figure_data *d, double split)
{
    const struct sh_gather *g = &d->source[0].study.part[0];
    for (int i = 1; i < d->n_source; i++) {
        const struct sh_gather *other = &d->source[i].study.part[0];
        if (other->n_sequence != g->n_sequence || other->n_tokens != g->n_tokens)
            return xasprintf("split %g; each store has its own number of tokens", split);
    }
    return xasprintf("split %g, %d sequence%s, %lld tokens", split, g->n_sequence, g->n_sequence == 1 ? "" : "s",
                     g->n_tokens);
}

static int studies(struct sh_figure_data *d, const struct sh_figure_request *q, struct sh_fig_data *out,
                   struct sh_err *e)
{
    d->source = xcalloc((size_t)q->n_db, sizeof *d->source);
    for (int i = 0; i < q->n_db; i++, d->n_source++)
        if (study(&d->source[i], q, q->db[i], e)) {
            d->n_source++;
            return -1;
        }
    const struct sh_gather *g = &d->source[0].study.part[0];
    int is_one = 1;
    for (int i = 1; i < d->n_source; i++)
        is_one &= !strcmp(d->source[i].study.part[0].model, g->model);
    out->title = keep(d, is_one ? xasprintf("%s: persistence of importance", g->model)
                                : xstrdup("persistence of importance"));
    out->settings = keep(d, studied(d, q->split));
    tell_apart(d, q);
    return 0;
}

const struct sh_study *sh_figure_study(const struct sh_figure_data *d, int i_db, const char **label)
{
    *label = d->source[i_db].label;
    return &d->source[i_db].study;
}

int sh_figure_cell(const struct sh_figure_data *d, int i_db, int beyond)
{
    return d->source[i_db].cell[panel[beyond].alpha][panel[beyond].recent];
}

struct sh_figure_data *sh_figure_data_new(int needs, const struct sh_figure_request *q, struct sh_fig_data *out,
                                          struct sh_err *e)
{
    struct sh_figure_data *d = xcalloc(1, sizeof *d);
    *out = (struct sh_fig_data){0};
    int bad = needs & SH_FIG_MAPS      ? sh_figure_maps(q, out, keep, d, e)
              : needs & SH_FIG_CURVES  ? sh_figure_curves(q, out, keep, d, e)
              : needs & SH_FIG_DROPPED ? sh_figure_dropped(q, out, keep, d, e)
              : needs & SH_FIG_PLANS   ? sh_figure_plans(q, out, keep, d, e)
              : needs & (SH_FIG_COMPRESSION | SH_FIG_QUANT) ? sh_figure_of_evals(needs, q, out, keep, d, e)
              : needs & (SH_FIG_DRIFT | SH_FIG_CHANGES)     ? sh_figure_of_drift(needs, q, out, keep, d, e)
                                       : studies(d, q, out, e);
    if (bad) {
        sh_figure_data_free(d);
        return NULL;
    }
    if (needs & SH_FIG_PANELS)
        panels(d, out);
    if (needs & SH_FIG_GRIDS)
        grids(d, out);
    if (needs & SH_FIG_HEADS)
        heads(d, out);
    return d;
}

void sh_figure_data_free(struct sh_figure_data *d)
{
    if (!d)
        return;
    for (int i = 0; i < d->n_source; i++) {
        sh_study_free(&d->source[i].study);
        free(d->source[i].label);
    }
    for (int i = 0; i < d->n_kept; i++)
        free(d->kept[i]);
    free(d->kept);
    free(d->source);
    free(d);
}
