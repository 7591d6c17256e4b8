/* SPDX-License-Identifier: Apache-2.0 */
/* See simulate_plot.h: latency over the rate, occupancy over time. */
#include "src/report/figures/simulate_plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/chart.h"
#include "plots/figure.h"
#include "src/base/mem.h"
#include "src/base/time_unit.h"

enum { LABEL = 160 };

static int by_rate(const void *x, const void *y)
{
    const struct sh_sim_row *const *a = x, *const *b = y;
    return (*a)->speed < (*b)->speed ? -1 : (*a)->speed > (*b)->speed;
}

/* The rows of one cache, sorted by speed. For free(). */
static const struct sh_sim_row **rows_of(const struct sh_sim_study *s, int variant)
{
    const struct sh_sim_row **row = xcalloc((size_t)s->source.n, sizeof *row);
    for (int i = 0; i < s->source.n; i++)
        row[i] = &s->row[variant * s->source.n + i];
    qsort(row, (size_t)s->source.n, sizeof *row, by_rate);
    return row;
}

/* The name of a plan without its folder. */
static const char *base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

struct latency {
    struct sh_time_unit unit[2];        /* TTFT, TPOT                                             */
    int n_variant, n_speed;
    double *x;                          /* [variant][speed]                                       */
    double *y;                          /* [TTFT, TPOT][variant][p50, p99][speed]                  */
    struct sh_fig_line *line;           /* [TTFT, TPOT][variant][p50, p99]                         */
    char (*label)[LABEL];               /* [variant][p50, p99]                                    */
};

/* Both figures in units of their size. */
static void scale(struct latency *d)
{
    int n = 2 * d->n_variant * d->n_speed;
    for (int k = 0; k < 2; k++) {
        d->unit[k] = sh_time_unit(d->y + k * n, n);
        for (int i = 0; i < n; i++)
            d->y[k * n + i] *= d->unit[k].per_s;
    }
}

static void latency_lines(const struct sh_sim_study *s, struct latency *d)
{
    static const int quantile[2] = {0, 2};              /* p50, p99 */
    for (int v = 0; v < d->n_variant; v++) {
        const struct sh_sim_row **row = rows_of(s, v);
        double *x = d->x + v * d->n_speed;
        for (int i = 0; i < d->n_speed; i++)
            x[i] = row[i]->at[SH_S_RATE];
        for (int k = 0; k < 4; k++) {
            int which = k / 2, q = k % 2, at = (which * d->n_variant + v) * 2 + q;
            double *y = d->y + at * d->n_speed;
            for (int i = 0; i < d->n_speed; i++)
                y[i] = row[i]->at[(which ? SH_S_TPOT : SH_S_TTFT) + quantile[q]];
            snprintf(d->label[v * 2 + q], LABEL, "%.80s%.64s, %s", base(row[0]->cache->name), row[0]->cache->on,
                     q ? "p99" : "p50");
            d->line[at] = (struct sh_fig_line){d->label[v * 2 + q], d->n_speed, v, q, x, y};
        }
        free(row);
    }
}

static void heading(const struct sh_sim_study *s, char title[LABEL], char settings[LABEL])
{
    if (s->n_board > 1 || s->settings.tp.n > 1)
        snprintf(title, LABEL, "%.60s", s->model.f.name);
    else
        snprintf(title, LABEL, "%.60s on %d x %.40s", s->model.f.name, s->cache[0].tp, s->board[0].name);
    if (s->source.is_file)
        snprintf(settings, LABEL, "%.80s, %.0f requests", base(s->args->workload), s->row[0].at[SH_S_REQUESTS]);
    else
        snprintf(settings, LABEL, "%lld requests, prompts %.40s, answers %.40s", s->source.requests, s->args->prompt,
                 s->args->output);
}

int sh_sim_plot_latency(const struct sh_sim_study *s, const char *path, struct sh_err *e)
{
    struct latency d = {.n_speed = s->source.n, .n_variant = s->n_cache};
    char title[LABEL], settings[LABEL];
    size_t n = (size_t)(4 * d.n_variant);
    d.x = xcalloc(n * (size_t)d.n_speed, sizeof *d.x);
    d.y = xcalloc(n * (size_t)d.n_speed, sizeof *d.y);
    d.line = xcalloc(n, sizeof *d.line);
    d.label = xcalloc(n, sizeof *d.label);
    latency_lines(s, &d);
    scale(&d);
    heading(s, title, settings);
    double ttft = s->args->slo_ttft >= 0 ? s->args->slo_ttft * d.unit[0].per_s : (double)NAN;
    double tpot = s->args->slo_tpot >= 0 ? s->args->slo_tpot * d.unit[1].per_s : (double)NAN;
    struct sh_fig_chart chart[2] = {
        {"time to the first token", "requests a second", d.unit[0].whole, 1, 0, ttft, "limit", 2 * d.n_variant, d.line},
        {"time of each further token", "requests a second", d.unit[1].whole, 1, 0, tpot, "limit", 2 * d.n_variant,
         d.line + 2 * d.n_variant}};
    struct sh_fig_charts charts = {2, chart};
    struct sh_fig_data data = {.title = title, .settings = settings, .latency = &charts};
    const struct sh_figure *f = sh_figure_find("latency", e);
    int bad = !f || sh_figure_plot(f, &data, path, 0, 0, 0, e);
    free(d.x);
    free(d.y);
    free(d.line);
    free(d.label);
    return bad ? -1 : 0;
}

/* The cache of each run, as steps' means over equal stretches. */
int sh_sim_plot_occupancy(const struct sh_sim_study *s, const char *path, struct sh_err *e)
{
    char title[LABEL], settings[LABEL];
    double *xy = xcalloc((size_t)s->n_row * 2 * SH_TIMELINE_BINS, sizeof *xy);
    struct sh_fig_line *line = xcalloc((size_t)s->n_row, sizeof *line);
    char (*label)[LABEL] = xcalloc((size_t)s->n_row, sizeof *label);
    for (int i = 0; i < s->n_row; i++) {
        const struct sh_sim_row *r = &s->row[i];
        double *x = xy + 2 * i * SH_TIMELINE_BINS, *y = x + SH_TIMELINE_BINS;
        int n = sh_timeline_count(r->occupancy);
        for (int k = 0; k < n; k++) {
            x[k] = (k + 0.5) * r->occupancy->width;
            y[k] = 100 * sh_timeline_mean(r->occupancy, k);
        }
        snprintf(label[i], LABEL, s->source.n > 1 ? "%.60s%.60s, %.3g/s" : "%.60s%.60s", base(r->cache->name),
                 r->cache->on, r->at[SH_S_RATE]);
        line[i] = (struct sh_fig_line){label[i], n, i, i >= SH_GP_COLOURS, x, y};
    }
    heading(s, title, settings);
    struct sh_fig_chart chart = {"cache in use", "seconds since the first request", "% of the cache's memory", 0, 0,
                                 100, NULL, s->n_row, line};
    struct sh_fig_charts charts = {1, &chart};
    struct sh_fig_data data = {.title = title, .settings = settings, .occupancy = &charts};
    const struct sh_figure *f = sh_figure_find("occupancy", e);
    int bad = !f || sh_figure_plot(f, &data, path, 0, 0, 0, e);
    free(xy);
    free(line);
    free(label);
    return bad ? -1 : 0;
}
