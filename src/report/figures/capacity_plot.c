/* SPDX-License-Identifier: Apache-2.0 */
/* See capacity_plot.h: stacked memory, and what budgets buy and cost. */
#include "src/report/figures/capacity_plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/figure.h"
#include "src/base/mem.h"
#include "src/app/capacity/capacity_quality.h"

enum { LABEL = 96, BARS = 64, LINES = 48 };

static double gib(uint64_t bytes)
{
    return (double)bytes / 0x1p30;
}

/* Does anything differ from the first row? Only that is in the names. */
static int varies(const struct sh_capacity_row *r, int n, int what)
{
    for (int i = 1; i < n; i++)
        if ((what == 0 && strcmp(r[i].model, r[0].model)) || (what == 1 && strcmp(r[i].gpu, r[0].gpu)) ||
            (what == 2 && r[i].tp != r[0].tp) || (what == 3 && strcmp(r[i].kv, r[0].kv)))
            return 1;
    return 0;
}

static void name(const struct sh_capacity_row *rows, int n, const struct sh_capacity_row *r, char to[LABEL])
{
    int used = 0;
    to[0] = '\0';
    for (int what = 0; what < 4 && used < LABEL; what++) {
        char number[24];
        snprintf(number, sizeof number, "tp %d", r->tp);
        const char *const word[4] = {r->model, r->gpu, number, r->kv};
        if (varies(rows, n, what))
            used += snprintf(to + used, (size_t)(LABEL - used), "%.24s ", word[what]);
    }
}

static void stack(const struct sh_capacity_row *rows, int n, const struct sh_capacity_row *r, char label[LABEL],
                  char remark[LABEL], struct sh_fig_stack *to)
{
    char what[LABEL];
    double each = ceil((double)r->batch / r->ep), used = gib(r->sequence) * each;
    double room = gib(r->room) - used - (each > 0 ? gib(r->prefix) : 0);
    name(rows, n, r, what);
    snprintf(label, LABEL, "%.60s%.30s", what, r->budget ? r->budget : "whole cache");
    if (r->fits)
        snprintf(remark, LABEL, "%llu sequences", (unsigned long long)r->batch);
    else
        snprintf(remark, LABEL, "%.1f GiB short", gib(r->shortfall));
    *to = (struct sh_fig_stack){label, {gib(r->weights_bytes), gib(r->overhead), each > 0 ? gib(r->prefix) : 0, used,
                                        r->fits ? room : 0}, gib(r->limit), gib(r->memory), remark};
}

int sh_capacity_plot_memory(const struct sh_capacity_row *rows, int n, const char *path, struct sh_err *e)
{
    static const char *const part[] = {"weights", "overhead", "shared prefix", "cache", "left over"};
    char title[160], settings[160];
    int shown = 0;
    struct sh_fig_stack *bar = xcalloc(BARS, sizeof *bar);
    char (*label)[LABEL] = xcalloc(BARS, sizeof *label), (*remark)[LABEL] = xcalloc(BARS, sizeof *remark);
    for (int i = 0; i < n && shown < BARS; i++) {
        int k = 0;                      /* one budget may be there under several policies: one bar */
        stack(rows, n, &rows[i], label[shown], remark[shown], &bar[shown]);
        while (k < shown && strcmp(label[k], label[shown]))
            k++;
        shown += k == shown;
    }
    snprintf(title, sizeof title, "%.60s%s on %.40s%s: memory of one GPU", rows->model,
             varies(rows, n, 0) ? " and others" : "", rows->gpu, varies(rows, n, 1) ? " and others" : "");
    snprintf(settings, sizeof settings, "%llu tokens per sequence%s%.30s%s", (unsigned long long)rows->length,
             varies(rows, n, 3) ? "" : ", cache ", varies(rows, n, 3) ? "" : rows->kv,
             shown == BARS ? "; the first 64 settings" : "");
    struct sh_fig_stacks s = {shown, 5, part, bar};
    struct sh_fig_data d = {.title = title, .settings = settings, .capacity = &s};
    const struct sh_figure *f = sh_figure_find("capacity", e);
    int bad = !f || sh_figure_plot(f, &d, path, 0, 0, 0, e);
    free(bar);
    free(label);
    free(remark);
    return bad ? -1 : 0;
}

/* ---- frontier ---- */

/* What a line is of: a budget buys the same under any policy, and costs the same on any GPU; what it costs is of one
 * policy with one set of knobs, measured in one way. */
enum { BATCH, RATE, PPL, RECALL, N_CHART };

struct line {
    char label[LABEL];
    int n;
    double *x, *y;                      /* [n], sorted by x                                       */
};

struct at { double x, y; };

static int by_x(const void *a, const void *b)
{
    const struct at *p = a, *q = b;
    return p->x != q->x ? (p->x < q->x ? -1 : 1) : p->y < q->y ? -1 : p->y > q->y;
}

static int is_on(const struct sh_capacity_row *r, int chart)
{
    return chart == BATCH || chart == RATE ||
           (r->measured && r->measured->kind == (chart == PPL ? SH_QUALITY_PPL : SH_QUALITY_RECALL));
}

/* The line of each row on that chart, "" where it is not on it; for free(). */
static char (*line_names(const struct sh_capacity_row *rows, int n, int chart))[LABEL]
{
    char (*label)[LABEL] = xcalloc((size_t)n, sizeof *label);
    const struct sh_quality_point **point = xcalloc((size_t)n, sizeof *point);
    int n_point = 0;
    for (int i = 0; i < n; i++)
        if (is_on(&rows[i], chart))
            point[n_point++] = rows[i].measured;
    for (int i = 0; i < n; i++) {
        if (!is_on(&rows[i], chart))
            continue;
        if (chart == BATCH || chart == RATE) {
            name(rows, n, &rows[i], label[i]);
            if (!*label[i])
                snprintf(label[i], LABEL, "%.60s", rows[i].gpu);
            continue;
        }
        char *policy = sh_quality_name(point, n_point, rows[i].measured);
        snprintf(label[i], LABEL, "%.*s%s%.*s", varies(rows, n, 3) ? 24 : 0, rows[i].kv, varies(rows, n, 3) ? " " : "",
                 LABEL - 32, policy);
        free(policy);
    }
    free(point);
    return label;
}

/* Per cent of the length that is kept: what bytes and time say of any kind of budget. */
static double share(const struct sh_capacity_row *r)
{
    if (r->measured)
        return 100 * sh_quality_kept(r->measured, r->length) / (double)r->length;
    if (!r->budget)
        return 100;
    double kept = ((double)r->sequence - (double)r->states) / (double)r->token;
    return 100 * kept / (double)r->length;
}

static double value(const struct sh_capacity_row *r, int chart)
{
    if (chart == BATCH || chart == RATE)
        return chart == BATCH ? (double)r->max_batch : r->decode_rate;
    return r->measured->value * (chart == PPL ? 100 : 1);
}

static void collect(const struct sh_capacity_row *rows, int n, int chart, char (*label)[LABEL], struct line *l)
{
    struct at *at = xcalloc((size_t)n, sizeof *at);
    int found = 0;
    for (int i = 0; i < n; i++)
        if (!strcmp(label[i], l->label))
            at[found++] = (struct at){share(&rows[i]), value(&rows[i], chart)};
    qsort(at, (size_t)found, sizeof *at, by_x);
    l->x = xcalloc(2 * (size_t)found + 1, sizeof *l->x);
    l->y = l->x + found;
    for (int i = 0; i < found; i++)     /* one point on several GPUs, or of several policies, once */
        if (!i || at[i].x != at[i - 1].x || at[i].y != at[i - 1].y) {
            l->x[l->n] = at[i].x;
            l->y[l->n++] = at[i].y;
        }
    free(at);
}

static int find_lines(const struct sh_capacity_row *rows, int n, int chart, struct line *line)
{
    char (*label)[LABEL] = line_names(rows, n, chart);
    int n_line = 0;
    for (int i = 0; i < n; i++) {
        int k = 0;
        if (!*label[i])
            continue;
        while (k < n_line && strcmp(line[k].label, label[i]))
            k++;
        if (k < n_line || n_line == LINES)
            continue;
        snprintf(line[k].label, LABEL, "%s", label[i]);
        collect(rows, n, chart, label, &line[n_line++]);
    }
    free(label);
    return n_line;
}

/* The charts of what there is. */
static int charts(const struct sh_capacity_row *rows, int n, struct line line[N_CHART][LINES],
                  struct sh_fig_line part[N_CHART][LINES], struct sh_fig_chart out[N_CHART])
{
    static const struct { const char *title, *y; int is_log; } is[N_CHART] = {
        [BATCH] = {"sequences that fit", "sequences", 1}, [RATE] = {"decoding, at most", "tokens per second", 1},
        [PPL] = {"perplexity, measured", "increase, %", 0}, [RECALL] = {"attention, measured", "kept mass", 0}};
    int n_chart = 0;
    for (int c = 0; c < N_CHART; c++) {
        int n_line = find_lines(rows, n, c, line[c]);
        for (int i = 0; i < n_line; i++)
            part[c][i] = (struct sh_fig_line){line[c][i].label, line[c][i].n, i, i / SH_GP_COLOURS, line[c][i].x,
                                              line[c][i].y};
        if (n_line)
            out[n_chart++] = (struct sh_fig_chart){is[c].title, "kept tokens, % of the length", is[c].y, is[c].is_log,
                                                   c == RECALL, (double)NAN, NULL, n_line, part[c]};
    }
    return n_chart;
}

int sh_capacity_frontier(const struct sh_capacity_row *rows, int n,
                         int (*draw)(void *to, const struct sh_fig_data *d, struct sh_err *e), void *to,
                         struct sh_err *e)
{
    char title[160], settings[160];
    struct line (*line)[LINES] = xcalloc(N_CHART, sizeof *line);
    struct sh_fig_line (*part)[LINES] = xcalloc(N_CHART, sizeof *part);
    struct sh_fig_chart chart[N_CHART];
    snprintf(title, sizeof title, "%.60s%s on %.40s%s: what a budget buys", rows->model,
             varies(rows, n, 0) ? " and others" : "", rows->gpu, varies(rows, n, 1) ? " and others" : "");
    snprintf(settings, sizeof settings, "%llu tokens per sequence%s%.30s", (unsigned long long)rows->length,
             varies(rows, n, 3) ? "" : ", cache ", varies(rows, n, 3) ? "" : rows->kv);
    struct sh_fig_charts all = {charts(rows, n, line, part, chart), chart};
    struct sh_fig_data d = {.title = title, .settings = settings, .frontier = &all};
    int bad = draw(to, &d, e);
    for (int i = 0; i < N_CHART * LINES; i++)
        free(line[i / LINES][i % LINES].x);
    free(line);
    free(part);
    return bad ? -1 : 0;
}

static int plot_frontier(void *to, const struct sh_fig_data *d, struct sh_err *e)
{
    const struct sh_figure *f = sh_figure_find("frontier", e);
    return f ? sh_figure_plot(f, d, to, 0, 0, 0, e) : -1;
}

int sh_capacity_plot_frontier(const struct sh_capacity_row *rows, int n, const char *path, struct sh_err *e)
{
    char *to = xstrdup(path);
    int bad = sh_capacity_frontier(rows, n, plot_frontier, to, e);
    free(to);
    return bad;
}
