/* SPDX-License-Identifier: Apache-2.0 */
/* The data of persistence, persistence-grid and heads: one study of each store serves all three. */
#include "src/report/figures/figure_persistence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/report/figures/figure_data.h"

enum { ALPHAS = SH_FIGURE_ALPHAS, RECENTS = SH_FIGURE_RECENTS, WINDOW = 400 };

static const char *const alpha_name[ALPHAS] = {"row", "2/t", "5/t", "10/t"};
static const char *const alpha_shown[ALPHAS] = {"1/t", "2/t", "5/t", "10/t"};
static const int recent_value[RECENTS] = {0, 1, 10, 50};

struct traces {                         /* of all stores */
    int n;
    struct sh_figure_trace *at;         /* [n] */
};

static void release(void *at)
{
    struct traces *t = at;
    for (int i = 0; i < t->n; i++) {
        sh_study_free(&t->at[i].study);
        free(t->at[i].label);
    }
    free(t->at);
    free(t);
}

static double *numbers(struct sh_figure_data *d, size_t n)
{
    double *at = sh_figure_keep(d, xmalloc(n * sizeof *at));
    for (size_t i = 0; i < n; i++)
        at[i] = NAN;
    return at;
}

static int study(struct sh_figure_trace *t, const struct sh_figure_request *q, const char *path, struct sh_err *e)
{
    struct sh_study *y = &t->study;
    y->window = WINDOW;
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
            bad = sh_study_add_if(y, s, &c, &t->cell[i][r], e);
        }
    struct sh_alpha literal;
    sh_alpha_parse("row", &literal, e);
    struct sh_persistence_cell c = {literal, 0, q->split};
    bad = bad || (!y->n_cell && sh_collect_can(s, q->run, &c, y->window, e)) || sh_study_run(y, s, e);
    sh_store_close(s);
    if (!bad)
        t->label = sh_figure_named(q, path, sh_figure_label(y->part[0].model, y->part[0].weights));
    return bad;
}

/* One line of a persistence panel. Layers that were not recorded have no value. */
static struct sh_fig_series series(struct sh_figure_data *d, const struct sh_figure_trace *t, int cell)
{
    const struct sh_persistence *p = t->study.part[0].p;
    int n = t->study.part[0].n_layer;
    double *v[4];
    for (int i = 0; i < 4; i++)
        v[i] = numbers(d, (size_t)n);
    for (int i = 0; cell >= 0 && i < sh_persistence_n_layer(p); i++) {
        int layer = sh_persistence_layer_at(p, i);
        const double *f = sh_study_layer(&t->study, cell, i);
        v[0][layer] = f[SH_RATIO];
        v[1][layer] = f[SH_DENSITY];
        for (int h = 0; h < sh_persistence_n_head(p, i); h++) {
            double ratio = sh_study_head(&t->study, cell, i, h)[SH_RATIO];
            v[2][layer] = fmin(v[2][layer], ratio);             /* fmin and fmax pass over NaN */
            v[3][layer] = fmax(v[3][layer], ratio);
        }
    }
    return (struct sh_fig_series){.label = t->label, .n_layers = n, .ratio = v[0], .density = v[1],
                                  .min_head = v[2], .max_head = v[3]};
}

static const struct { int alpha, recent; const char *title; } panel[2] = {
    {0, 0, "literal: α = 1/t, every pair"}, {2, 2, "beyond recency: α = 5/t, query − key ≥ 10"}};

int sh_figure_cell(const struct sh_figure_trace *t, int beyond)
{
    return t->cell[panel[beyond].alpha][panel[beyond].recent];
}

static void panels(struct sh_figure_data *d, const struct traces *all)
{
    struct sh_fig_panel *p = sh_figure_keep(d, xcalloc(2, sizeof *p));
    struct sh_fig_panels *out = sh_figure_keep(d, xcalloc(1, sizeof *out));
    for (int i = 0; i < 2; i++) {
        struct sh_fig_series *s = sh_figure_keep(d, xcalloc((size_t)all->n, sizeof *s));
        for (int k = 0; k < all->n; k++)
            s[k] = series(d, &all->at[k], sh_figure_cell(&all->at[k], i));
        p[i] = (struct sh_fig_panel){.title = panel[i].title, .n_series = all->n, .series = s};
    }
    *out = (struct sh_fig_panels){2, p};
    d->out.persistence = out;
}

static void grids(struct sh_figure_data *d, const struct traces *all)
{
    struct sh_fig_grid *g = sh_figure_keep(d, xcalloc((size_t)all->n, sizeof *g));
    struct sh_fig_grids *out = sh_figure_keep(d, xcalloc(1, sizeof *out));
    for (int k = 0; k < all->n; k++) {
        const struct sh_figure_trace *t = &all->at[k];
        double *lift = numbers(d, ALPHAS * RECENTS);
        for (int i = 0; i < ALPHAS; i++)
            for (int r = 0; r < RECENTS; r++)
                if (t->cell[i][r] >= 0)
                    lift[i * RECENTS + r] = sh_study_all(&t->study, t->cell[i][r])[SH_LIFT];
        g[k] = (struct sh_fig_grid){.title = t->label, .n_alphas = ALPHAS, .n_recents = RECENTS, .alpha = alpha_shown,
                                    .recent = recent_value, .lift = lift};
    }
    *out = (struct sh_fig_grids){all->n, g};
    d->out.persistence_grid = out;
}

static void heads(struct sh_figure_data *d, const struct traces *all)
{
    struct sh_fig_heads *m = sh_figure_keep(d, xcalloc((size_t)all->n, sizeof *m));
    struct sh_fig_head_maps *out = sh_figure_keep(d, xcalloc(1, sizeof *out));
    for (int k = 0; k < all->n; k++) {
        const struct sh_figure_trace *t = &all->at[k];
        const struct sh_persistence *p = t->study.part[0].p;
        int n_layer = t->study.part[0].n_layer, n_head = t->study.part[0].n_head, literal = sh_figure_cell(t, 0),
            beyond = sh_figure_cell(t, 1);
        size_t n_value = (size_t)n_layer * (size_t)n_head;
        double *ratio = numbers(d, n_value), *lift = numbers(d, n_value);
        for (int i = 0; i < sh_persistence_n_layer(p); i++)
            for (int h = 0; h < sh_persistence_n_head(p, i); h++) {
                int at = sh_persistence_layer_at(p, i) * n_head + sh_persistence_head_at(p, i, h);
                if (literal >= 0)
                    ratio[at] = sh_study_head(&t->study, literal, i, h)[SH_RATIO];
                if (beyond >= 0)
                    lift[at] = sh_study_head(&t->study, beyond, i, h)[SH_LIFT];
            }
        m[k] = (struct sh_fig_heads){.title = t->label, .n_layers = n_layer, .n_heads = n_head, .ratio = ratio,
                                     .lift = lift};
    }
    *out = (struct sh_fig_head_maps){all->n, m, "α = 1/t", "α = 5/t, R = 10"};
    d->out.heads = out;
}

/* Stores of one model get their file names. */
static void tell_apart(const struct traces *all, const struct sh_figure_request *q)
{
    char **plain = xcalloc((size_t)all->n + 1, sizeof *plain);
    for (int i = 0; i < all->n; i++)
        plain[i] = xstrdup(all->at[i].label);
    for (int i = 0; i < all->n; i++) {
        int n = 0;
        for (int k = 0; k < all->n; k++)
            n += !strcmp(plain[k], plain[i]);
        if (n < 2)
            continue;
        free(all->at[i].label);
        all->at[i].label = xasprintf("%s (%s)", plain[i], sh_figure_file(q->db[i]));
    }
    for (int i = 0; i < all->n; i++)
        free(plain[i]);
    free(plain);
}

/* "split 0.5, 2 sequences, 782 tokens", when that is so of every store. */
static char *studied(const struct traces *all, double split)
{
    const struct sh_collect *g = &all->at[0].study.part[0];
    for (int i = 1; i < all->n; i++) {
        const struct sh_collect *other = &all->at[i].study.part[0];
        if (other->n_sequence != g->n_sequence || other->n_tokens != g->n_tokens)
            return xasprintf("split %g; each store has its own number of tokens", split);
    }
    return xasprintf("split %g, %d sequence%s, %lld tokens", split, g->n_sequence, g->n_sequence == 1 ? "" : "s",
                     g->n_tokens);
}

/* Of stores of one model that begins with its name; of stores that --name calls something, with their names. */
static char *title(const struct traces *all, const struct sh_figure_request *q)
{
    const char *model = all->at[0].study.part[0].model;
    char *names = xstrdup(all->at[0].label);
    int is_one = 1, is_named = 0;
    for (int i = 0; i < all->n; i++) {
        char *named = sh_figure_named(q, q->db[i], xstrdup("")), *more = names;
        is_named |= *named != '\0';
        is_one &= !strcmp(all->at[i].study.part[0].model, model);
        free(named);
        if (i) {
            names = xasprintf("%s, %s", more, all->at[i].label);
            free(more);
        }
    }
    char *text = is_named || all->n == 1 ? xasprintf("%s: persistence of importance", names)
                 : is_one ? xasprintf("%s: persistence of importance", model) : xstrdup("persistence of importance");
    free(names);
    return text;
}

static int load(struct sh_figure_data *d, unsigned figures, const struct sh_figure_request *q, struct sh_err *e)
{
    struct traces *all = sh_figure_keep_by(d, xcalloc(1, sizeof *all), release);
    all->at = xcalloc((size_t)q->n_db, sizeof *all->at);
    for (int i = 0; i < q->n_db; i++) {
        all->n++;
        if (study(&all->at[i], q, q->db[i], e))
            return -1;
    }
    d->out.title = sh_figure_keep(d, title(all, q));
    d->out.settings = sh_figure_keep(d, studied(all, q->split));
    d->trace = all->at;
    tell_apart(all, q);
    if (figures & SH_FIG_BIT(persistence))
        panels(d, all);
    if (figures & SH_FIG_BIT(persistence_grid))
        grids(d, all);
    if (figures & SH_FIG_BIT(heads))
        heads(d, all);
    return 0;
}

const struct sh_figure_loader sh_figure_load_persistence = {
    .figures = SH_FIG_BIT(persistence) | SH_FIG_BIT(persistence_grid) | SH_FIG_BIT(heads), .load = load};
