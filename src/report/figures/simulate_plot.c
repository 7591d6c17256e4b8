/* SPDX-License-Identifier: Apache-2.0 */
/* See simulate_plot.h: latency over the rate, occupancy over time. */
#include "src/report/figures/simulate_plot.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "plots/figure.h"
#include "src/base/mem.h"
#include "src/report/figures/latency.h"

/* A cache's name in a legend, kept by d: "full", "budget 0.2", a plan's file; `on` follows it. */
static const char *cache_name(struct sh_figure_data *d, const char *name, const char *on)
{
    const char *file = sh_figure_file(name);
    return sh_figure_keep(d, xasprintf("%s%.80s%.64s", isdigit((unsigned char)*file) ? "budget " : "", file, on));
}

static struct sh_figure_data *begin(const struct sh_sim_study *s)
{
    struct sh_figure_data *d = sh_figure_data_empty();
    int is_one = s->n_board <= 1 && s->settings.tp.n <= 1;
    d->out.title = sh_figure_keep(d, is_one ? xasprintf("%.60s on %d x %.40s", s->model.f.name, s->cache[0].tp,
                                                        s->board[0].name)
                                            : xasprintf("%.60s", s->model.f.name));
    d->out.settings = sh_figure_keep(
        d, s->source.is_file ? xasprintf("%.80s, %.0f requests", sh_figure_file(s->args->workload),
                                         s->row[0].at[SH_S_REQUESTS])
                             : xasprintf("%lld requests, prompts %.40s, answers %.40s", s->source.requests,
                                         s->args->prompt, s->args->output));
    return d;
}

static int by_rate(const void *x, const void *y)
{
    const struct sh_latency *a = x, *b = y;
    if (a->cache != b->cache)
        return a->cache - b->cache;
    return (a->rate > b->rate) - (a->rate < b->rate);
}

/* Draws it; frees both. */
static int plot(const struct sh_sim_study *s, struct sh_figure_data *d, struct sh_latency *at, int n, const char *load,
                const char *path, const struct sh_gp_look *look, struct sh_err *e)
{
    const double limit[SH_N_LATENCY] = {s->args->slo_ttft >= 0 ? s->args->slo_ttft : (double)NAN,
                                        s->args->slo_tpot >= 0 ? s->args->slo_tpot : (double)NAN};
    sh_latency_fill(d, at, n, load, limit);
    int bad = sh_figure_plot(&sh_figure_latency, &d->out, path, 0, look, e);
    sh_figure_data_free(d);
    free(at);
    return bad;
}

int sh_sim_plot_latency(const struct sh_sim_study *s, const char *path, const struct sh_gp_look *look,
                        struct sh_err *e)
{
    static const int metric[SH_N_LATENCY] = {[SH_TTFT] = SH_S_TTFT, [SH_TPOT] = SH_S_TPOT},
                     quantile[SH_N_QUANTILE] = {[SH_P50] = 0, [SH_P99] = 2};
    struct sh_latency *at = xcalloc((size_t)s->n_row, sizeof *at);
    struct sh_figure_data *d = begin(s);
    for (int i = 0; i < s->n_row; i++) {
        const struct sh_sim_row *row = &s->row[i];
        const char *name = cache_name(d, row->cache->name, row->cache->on);
        at[i] = (struct sh_latency){i / s->source.n, name, row->at[SH_S_RATE], {{0}}};
        for (int k = 0; k < SH_N_LATENCY * SH_N_QUANTILE; k++)
            at[i].seconds[k / SH_N_QUANTILE][k % SH_N_QUANTILE] =
                row->at[metric[k / SH_N_QUANTILE] + quantile[k % SH_N_QUANTILE]];
    }
    qsort(at, (size_t)s->n_row, sizeof *at, by_rate);
    return plot(s, d, at, s->n_row, "requests per second", path, look, e);
}

int sh_closed_plot_latency(const struct sh_sim_study *s, const struct sh_closed *c, const char *path,
                           const struct sh_gp_look *look, struct sh_err *e)
{
    struct sh_latency *at = xcalloc((size_t)c->n, sizeof *at);
    struct sh_figure_data *d = sh_figure_data_empty();
    d->out.title = sh_figure_keep(d, xasprintf("%.60s on %d x %.40s", s->model.f.name, c->gpus, s->board[0].name));
    d->out.settings = sh_figure_keep(d, s->source.is_file ? xasprintf("%.80s", sh_figure_file(s->args->workload))
                                                          : xasprintf("prompts %.40s, answers %.40s", s->args->prompt,
                                                                      s->args->output));
    for (int i = 0; i < c->n; i++) {
        const struct sh_closed_row *r = &c->row[i];
        at[i] = (struct sh_latency){i / c->clients, cache_name(d, r->cache, ""), r->concurrency,
                                    {{r->ttft[0], r->ttft[2]}, {r->tpot[0], r->tpot[2]}}};
    }
    qsort(at, (size_t)c->n, sizeof *at, by_rate);
    return plot(s, d, at, c->n, "clients", path, look, e);
}

/* The cache of each run, as steps' means over equal stretches: a colour for each cache, a panel for each rate. */
int sh_sim_plot_occupancy(const struct sh_sim_study *s, const char *path, const struct sh_gp_look *look,
                          struct sh_err *e)
{
    struct sh_figure_data *d = begin(s);
    int n_rate = s->source.n, n_cache = s->n_row / n_rate;
    struct sh_fig_line *line = sh_figure_keep(d, xcalloc((size_t)s->n_row, sizeof *line));
    struct sh_fig_chart *chart = sh_figure_keep(d, xcalloc((size_t)n_rate, sizeof *chart));
    for (int i = 0; i < s->n_row; i++) {
        const struct sh_sim_row *r = &s->row[i];
        double *x = sh_figure_keep(d, xcalloc(2 * SH_TIMELINE_BINS, sizeof *x)), *y = x + SH_TIMELINE_BINS;
        int n = sh_timeline_count(r->occupancy), cache = i / n_rate;
        for (int k = 0; k < n; k++) {
            x[k] = (k + 0.5) * r->occupancy->width;
            y[k] = 100 * sh_timeline_mean(r->occupancy, k);
        }
        line[i % n_rate * n_cache + cache] =
            (struct sh_fig_line){cache_name(d, r->cache->name, r->cache->on), n, cache, cache / SH_GP_COLOURS, x, y, 0,
                                 0};
        chart[i % n_rate] = (struct sh_fig_chart){
            n_rate < 2 ? "cache in use" :
            sh_figure_keep(d, s->source.is_file
                                  ? xasprintf("%g times as fast", s->source.speed[i % n_rate])
                                  : xasprintf("%g requests/s", s->source.rate * s->source.speed[i % n_rate])),
            "seconds since the first request", "cache in use (%)", 0, 0, 100, NULL, n_cache,
            line + i % n_rate * n_cache, 0};
    }
    d->out.occupancy = &(struct sh_fig_charts){n_rate, chart};
    int bad = sh_figure_plot(&sh_figure_occupancy, &d->out, path, 0, look, e);
    sh_figure_data_free(d);
    return bad;
}
