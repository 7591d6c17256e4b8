/* SPDX-License-Identifier: Apache-2.0 */
/* See capacity_plot.h: stacked memory, and what budgets buy and cost. */
#include "src/report/figures/capacity_plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/app/capacity/capacity_quality.h"

enum { LABEL = 96, BARS = 64, LINES = 48, TOLD_APART = 8, BEST = 6, FAR = 10 };

static double gib(uint64_t bytes)
{
    return (double)bytes / 0x1p30;
}

enum setting { MODEL, GPU, TP, KV, N_SETTING };

/* Does it differ from the first row anywhere? Only that is in the names. */
static int varies(const struct sh_capacity_row *r, int n, enum setting what)
{
    for (int i = 1; i < n; i++)
        if ((what == MODEL && strcmp(r[i].model, r[0].model)) || (what == GPU && strcmp(r[i].gpu, r[0].gpu)) ||
            (what == TP && r[i].tp != r[0].tp) || (what == KV && strcmp(r[i].kv, r[0].kv)))
            return 1;
    return 0;
}

static void name(const struct sh_capacity_row *rows, int n, const struct sh_capacity_row *r, char to[LABEL])
{
    char number[24];
    snprintf(number, sizeof number, "tp %d", r->tp);
    const char *const word[N_SETTING] = {r->model, r->gpu, number, r->kv};
    int used = 0;
    to[0] = '\0';
    for (int what = 0; what < N_SETTING && used < LABEL; what++)
        if (varies(rows, n, what))
            used += snprintf(to + used, (size_t)(LABEL - used), "%.24s ", word[what]);
}

static void head(struct sh_figure_data *d, const struct sh_capacity_row *rows, int n, const char *of, const char *more)
{
    int is_one = !varies(rows, n, KV);
    d->out.title = sh_figure_keep(d, xasprintf("%.60s%s on %.40s%s: %s", rows->model,
                                               varies(rows, n, MODEL) ? " and others" : "", rows->gpu,
                                               varies(rows, n, GPU) ? " and others" : "", of));
    d->out.settings = sh_figure_keep(d, xasprintf("%llu tokens per sequence%s%.30s%s", (unsigned long long)rows->length,
                                                  is_one ? ", cache " : "", is_one ? rows->kv : "", more));
}

static struct sh_fig_stack stack(struct sh_figure_data *d, const struct sh_capacity_row *rows, int n,
                                 const struct sh_capacity_row *r)
{
    char what[LABEL];
    double each = ceil((double)r->batch / r->ep), used = gib(r->sequence) * each;
    double prefix = each > 0 ? gib(r->prefix) : 0, room = gib(r->room) - used - prefix;
    name(rows, n, r, what);
    char *label = xasprintf("%.60s%s%.30s", what, *what || !r->budget ? "" : "budget ", r->budget ? r->budget :
                            "full cache"),
         *remark = r->fits ? xasprintf("%llu sequences", (unsigned long long)r->batch)
                           : xasprintf("%.1f GiB short", gib(r->shortfall));
    return (struct sh_fig_stack){sh_figure_keep(d, label),
                                 {gib(r->weights_bytes), gib(r->overhead), prefix, used, r->fits ? room : 0},
                                 gib(r->limit), gib(r->memory), sh_figure_keep(d, remark)};
}

int sh_capacity_plot_memory(const struct sh_capacity_row *rows, int n, const char *path, const struct sh_gp_look *look,
                            struct sh_err *e)
{
    static const char *const part[] = {"weights", "overhead", "shared prefix", "cache", "left over"};
    struct sh_figure_data *d = sh_figure_data_empty();
    struct sh_fig_stack *bar = sh_figure_keep(d, xcalloc(BARS, sizeof *bar));
    int shown = 0;
    for (int i = 0; i < n && shown < BARS; i++) {
        int k = 0;                      /* one budget may be there under several policies: one bar */
        bar[shown] = stack(d, rows, n, &rows[i]);
        while (k < shown && strcmp(bar[k].label, bar[shown].label))
            k++;
        shown += k == shown;
    }
    head(d, rows, n, "memory of one GPU", shown == BARS ? "; the first 64 settings" : "");
    d->out.capacity = &(struct sh_fig_stacks){shown, 5, part, bar};
    int bad = sh_figure_plot(&sh_figure_capacity, &d->out, path, 0, look, e);
    sh_figure_data_free(d);
    return bad;
}

/* ---- frontier ---- */

/* What a line is of: a budget buys the same under any policy, and costs the same on any GPU; what it costs is of one
 * policy with one set of knobs, measured in one way. */
enum { BATCH, RATE, PPL, RECALL, N_CHART };

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

/* Each plan is a point of its own, named without its texts and settings, for which a legend has no room. */
static char *name_measured(const struct sh_quality_point *const *all, int n, const struct sh_quality_point *p)
{
    return p->is_plan ? xasprintf("plan, %.3g %%, %s", 100 * strtod(p->budget, NULL), p->policy)
                      : sh_quality_name(all, n, p);
}

/* The line of each row on that chart, "" where it is not on it; for free(). */
static char (*line_names(const struct sh_capacity_row *rows, int n, int chart))[LABEL]
{
    char (*label)[LABEL] = xcalloc((size_t)n, sizeof *label);
    const struct sh_quality_point **point = xcalloc((size_t)n, sizeof *point);
    int n_point = 0, is_kv = varies(rows, n, KV);
    for (int i = 0; i < n; i++)
        if (is_on(&rows[i], chart) && !(rows[i].measured && rows[i].measured->is_plan))
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
        char *policy = name_measured(point, n_point, rows[i].measured);
        snprintf(label[i], LABEL, "%.*s%.*s%.*s", is_kv ? 24 : 0, rows[i].kv, is_kv, " ", LABEL - 32, policy);
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

/* The mass is shown as what is lost of it: kept masses crowd below 1. Less than a ten-thousandth is not shown. */
static double value(const struct sh_capacity_row *r, int chart)
{
    if (chart == BATCH || chart == RATE)
        return chart == BATCH ? (double)r->max_batch : r->decode_rate;
    double lost = 1 - r->measured->value;
    return chart == PPL ? 100 * r->measured->value : lost >= 1e-4 ? lost : (double)NAN;
}

static struct sh_fig_line line_of(struct sh_figure_data *d, const struct sh_capacity_row *rows, int n, int chart,
                                  char (*label)[LABEL], const char *name)
{
    struct at *at = xcalloc((size_t)n, sizeof *at);
    int found = 0;
    for (int i = 0; i < n; i++)
        if (!strcmp(label[i], name))
            at[found++] = (struct at){share(&rows[i]), value(&rows[i], chart)};
    qsort(at, (size_t)found, sizeof *at, by_x);
    double *x = sh_figure_keep(d, xcalloc(2 * (size_t)found + 1, sizeof *x)), *y = x + found;
    struct sh_fig_line line = {.label = sh_figure_keep(d, xstrdup(name)), .x = x, .y = y};
    for (int i = 0; i < found; i++)     /* one point on several GPUs, or of several policies, once */
        if (!i || at[i].x != at[i - 1].x || at[i].y != at[i - 1].y) {
            x[line.n] = at[i].x;
            y[line.n++] = at[i].y;
        }
    free(at);
    return line;
}

static int find_lines(struct sh_figure_data *d, const struct sh_capacity_row *rows, int n, int chart,
                      struct sh_fig_line line[LINES])
{
    char (*label)[LABEL] = line_names(rows, n, chart);
    int n_line = 0;
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (k < n_line && strcmp(line[k].label, label[i]))
            k++;
        if (!*label[i] || k < n_line || n_line == LINES)
            continue;
        line[n_line] = line_of(d, rows, n, chart, label, label[i]);
        n_line++;
    }
    free(label);
    return n_line;
}

static double mean(const struct sh_fig_line *l)
{
    double sum = 0;
    int n = 0;
    for (int k = 0; k < l->n; k++)
        if (isfinite(l->y[k])) {
            sum += l->y[k];
            n++;
        }
    return n ? sum / n : (double)NAN;
}

/* Of more lines than can be told apart the best keep their colours, and the window, which others are compared with. */
static void keep_best(struct sh_fig_line *line, int n, int is_less_better)
{
    for (int i = 0; i < n; i++) {
        int better = 0;
        for (int k = 0; k < n; k++)
            better += is_less_better ? mean(&line[k]) < mean(&line[i]) : mean(&line[k]) > mean(&line[i]);
        line[i].is_grey = better >= BEST && strncmp(line[i].label, "window", 6) != 0;
    }
}

/* What has a colour in one chart has one in the other; the rest is grey there, if that leaves any. */
static void keep_shared(struct sh_fig_line *line, int n, const struct sh_fig_line *other, int n_other)
{
    int *shared = xcalloc((size_t)n + 1, sizeof *shared), any = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n_other && !shared[i]; k++)
            any |= shared[i] = !other[k].is_grey && !strcmp(other[k].label, line[i].label);
    for (int i = 0; i < n && any; i++)
        line[i].is_grey = !shared[i];
    free(shared);
}

enum { BLACK = 6 };                     /* the colour of plans, which are points                  */

static int is_plan(const struct sh_fig_line *l)
{
    return !strncmp(l->label, "plan, ", 6);
}

/* One look for a name in all charts, which share a legend. */
static void set_looks(struct sh_fig_chart *chart, struct sh_fig_line *const *line, int n)
{
    int n_look = 0, has_plan = 0;
    for (int c = 0; c < n; c++)
        for (int i = 0; i < chart[c].n_lines; i++)
            has_plan |= is_plan(&line[c][i]);
    for (int c = 0; c < n; c++)
        for (int i = 0; i < chart[c].n_lines; i++) {
            int look = is_plan(&line[c][i]) ? BLACK : -1;
            if (line[c][i].is_grey || line[c][i].is_plain)
                continue;
            for (int b = 0; b < c && look < 0; b++)
                for (int k = 0; k < chart[b].n_lines && look < 0; k++)
                    look = strcmp(line[b][k].label, line[c][i].label) || line[b][k].is_grey ? -1 : line[b][k].look;
            n_look += look < 0 && has_plan && n_look == BLACK;
            line[c][i].look = look < 0 ? n_look++ : look;
            line[c][i].dash = line[c][i].look / SH_GP_COLOURS;
        }
}

/* The limit of a chart of increases, in per cent, and where its axis ends; 0: none. */
static void set_limit(struct sh_figure_data *d, struct sh_fig_chart *c, double limit)
{
    if (!(limit > 0))
        return;
    c->limit = 100 * limit;
    c->limit_label = sh_figure_keep(d, xasprintf("limit, %.3g %%", c->limit));
    c->most = FAR * c->limit;
    for (int i = 0; i < c->n_lines; i++)
        for (int k = 0; k < c->lines[i].n; k++)
            if (c->lines[i].y[k] > c->most)
                c->y = sh_figure_keep(d, xasprintf("increase, %% (cut off at %.3g)", c->most));
}

struct sh_figure_data *sh_capacity_frontier(const struct sh_capacity_row *rows, int n, double limit)
{
    static const struct { const char *title, *y; int is_log; } is[N_CHART] = {
        [BATCH] = {"sequences that fit", "sequences", 1}, [RATE] = {"highest decoding speed", "tokens per second", 1},
        [PPL] = {"perplexity, measured", "increase, %", 0},
        [RECALL] = {"attention, measured", "mass lost (1 − kept)", 1}};
    struct sh_figure_data *d = sh_figure_data_empty();
    struct sh_fig_charts *all = sh_figure_keep(d, xcalloc(1, sizeof *all));
    struct sh_fig_chart *chart = sh_figure_keep(d, xcalloc(N_CHART, sizeof *chart));
    struct sh_fig_chart *ppl = NULL;
    struct sh_fig_line *of[N_CHART];
    for (int c = 0; c < N_CHART; c++) {
        struct sh_fig_line *line = of[all->n] = sh_figure_keep(d, xcalloc(LINES, sizeof *line));
        int n_line = find_lines(d, rows, n, c, line);
        if (n_line)
            chart[all->n++] = (struct sh_fig_chart){is[c].title, "% of tokens kept", is[c].y, is[c].is_log,
                                                    0, (double)NAN, NULL, n_line, line, 0};
        if (n_line > TOLD_APART)
            keep_best(line, n_line, c == PPL || c == RECALL);
        if (n_line > TOLD_APART && c == RECALL && ppl)
            keep_shared(line, n_line, ppl->lines, ppl->n_lines);
        line->is_plain = n_line == 1 && (c == BATCH || c == RATE);
        if (n_line && c == PPL)
            set_limit(d, ppl = &chart[all->n - 1], limit);
    }
    set_looks(chart, of, all->n);
    head(d, rows, n, "what a budget buys", "");
    all->chart = chart;
    d->out.frontier = all;
    return d;
}

int sh_capacity_plot_frontier(const struct sh_capacity_row *rows, int n, const char *path,
                              const struct sh_gp_look *look, struct sh_err *e)
{
    struct sh_figure_data *d = sh_capacity_frontier(rows, n, 0);
    int bad = sh_figure_plot(&sh_figure_frontier, &d->out, path, 0, look, e);
    sh_figure_data_free(d);
    return bad;
}
