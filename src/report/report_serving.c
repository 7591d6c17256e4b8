/* SPDX-License-Identifier: Apache-2.0 */
/* Report: how a server would fare, whole and with budgets: what shears simulate --db left in the stores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/chart.h"
#include "src/base/mem.h"
#include "src/report/report_results.h"
#include "src/base/time_unit.h"

enum { LABEL = 96 };

/* The name of a plan without its folder. */
static const char *base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static char *workload(const struct sh_result_row *row)
{
    const char *file = sh_result_text(row, "workload");
    return *file ? xstrdup(base(file)) : xasprintf("prompts %s, answers %s", sh_result_text(row, "prompt"),
                                                    sh_result_text(row, "output"));
}

/* Settings without the cache and the rate: rows that agree in them are of one comparison; for free(). */
static char *group_of(const struct sh_result_row *row)
{
    static const char *const apart[] = {"plan", "evidence", "costs", "speed"};
    json_t *copy = json_copy(row->settings);
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        json_object_del(copy, apart[i]);
    char *group = json_dumps(copy, JSON_SORT_KEYS);
    json_decref(copy);
    return group ? group : xstrdup("");
}

struct run {
    const struct sh_result_row *row;
    char *group;
};

static int is_whole(const struct run *r)
{
    return !strcmp(sh_result_text(r->row, "plan"), "full");
}

/* Group by group, in each the whole cache first, in each cache by rate. */
static int in_order(const void *x, const void *y)
{
    const struct run *a = x, *b = y;
    int way = strcmp(a->group, b->group);
    way = way ? way : is_whole(b) - is_whole(a);
    way = way ? way : strcmp(sh_result_text(a->row, "plan"), sh_result_text(b->row, "plan"));
    double u = sh_result(a->row, "rate_requests_per_s", -1), v = sh_result(b->row, "rate_requests_per_s", -1);
    return way ? way : (u > v) - (u < v);
}

static int is_same_cache(const struct run *a, const struct run *b)
{
    return !strcmp(sh_result_text(a->row, "plan"), sh_result_text(b->row, "plan"));
}

/* The unit of two metrics over all runs, limits not counted. */
static struct sh_time_unit unit_of(const struct run *run, int n, const char *p50, const char *p99)
{
    double *at = xcalloc(2 * (size_t)n, sizeof *at);
    for (int i = 0; i < n; i++) {
        at[2 * i] = sh_result(run[i].row, p50, -1);
        at[2 * i + 1] = sh_result(run[i].row, p99, -1);
    }
    struct sh_time_unit u = sh_time_unit(at, 2 * n);
    free(at);
    return u;
}

static void put_time(struct sh_out *o, const struct sh_result_row *row, const char *metric, const char *what,
                     const struct sh_time_unit *u)
{
    char *label = xasprintf("%s, %s", what, u->name);
    sh_out_real(o, metric, label, sh_result(row, metric, -1) * u->per_s, u->digits);
    free(label);
}

static int has_limit(const struct sh_result_row *row)
{
    return json_object_get(row->settings, "slo_ttft_s") || json_object_get(row->settings, "slo_tpot_s");
}

/* Digits of the share of a cache that tiny models hardly fill. */
static int digits_of_use(const struct run *run, int n)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, sh_result(run[i].row, "kv_occupancy_mean", -1));
    return most >= 0.01 ? 2 : 4;
}

static void table(struct sh_report *r, const struct run *run, int n, const char *id)
{
    const struct sh_result_row *first = run[0].row;
    struct sh_time_unit ttft = unit_of(run, n, "ttft_s.p50", "ttft_s.p99"),
                        tpot = unit_of(run, n, "tpot_s.p50", "tpot_s.p99");
    int digits = digits_of_use(run, n);
    char *what = workload(first), *link = xasprintf("#fig-%s", id),
         *title = xasprintf("%s on %s, tokens of a request: %s; p50 is the middle, p99 all but the slowest hundredth",
                            base(sh_result_text(first, "model")), sh_result_text(first, "gpu"), what);
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "simulate", title);
    for (int i = 0; i < n; i++) {
        const struct sh_result_row *row = run[i].row;
        sh_out_item(o);
        sh_out_link(o, link);
        sh_out_text(o, "plan", "cache", base(sh_result_text(row, "plan")));
        sh_out_real(o, "rate", "requests/s", sh_result(row, "rate_requests_per_s", -1), 3);
        sh_out_real(o, "throughput", "tokens/s", sh_result(row, "throughput_tokens_per_s", -1), 1);
        sh_out_real(o, "good_share", "share within the limits",
                    has_limit(row) ? sh_result(row, "good_share", -1) : (double)NAN, 4);
        sh_out_real(o, "max_rate", "most requests/s within them", sh_result(row, "max_rate_requests_per_s", -1), 3);
        put_time(o, row, "ttft_s.p50", "first token p50", &ttft);
        put_time(o, row, "ttft_s.p99", "p99", &ttft);
        put_time(o, row, "tpot_s.p50", "each further p50", &tpot);
        put_time(o, row, "tpot_s.p99", "p99", &tpot);
        sh_out_real(o, "preemptions", "preemptions", sh_result(row, "preemptions", -1), 0);
        sh_out_real(o, "occupancy", "cache in use, %", 100 * sh_result(row, "kv_occupancy_mean", -1), digits);
        sh_out_text(o, "evidence", "quality", sh_result_text(row, "evidence"));
    }
    sh_out_end(o);
    sh_report_table(r, NULL, o);
    free(what);
    free(link);
    free(title);
}

/* ---- the figure ---- */

struct lines {
    double *xy;                         /* all numbers that lines are made of, in use             */
    int used, look;
    struct sh_time_unit unit[2];        /* TTFT, TPOT                                             */
    struct sh_fig_line *line[2];        /* time to the first token, of each further one           */
    char (*label)[LABEL];
    int n_line;
};

/* The p50 and the p99 of one cache, n rates. */
static void add_lines(struct lines *l, const struct run *run, int n)
{
    static const char *const metric[2][2] = {{"ttft_s.p50", "ttft_s.p99"}, {"tpot_s.p50", "tpot_s.p99"}};
    double *x = l->xy + l->used;
    l->used += n;
    for (int i = 0; i < n; i++)
        x[i] = sh_result(run[i].row, "rate_requests_per_s", -1);
    for (int q = 0; q < 2; q++, l->n_line++) {
        snprintf(l->label[l->n_line], LABEL, "%.80s, %s", base(sh_result_text(run->row, "plan")), q ? "p99" : "p50");
        for (int k = 0; k < 2; k++) {
            double *y = l->xy + l->used;
            l->used += n;
            for (int i = 0; i < n; i++)
                y[i] = sh_result(run[i].row, metric[k][q], -1) * l->unit[k].per_s;
            l->line[k][l->n_line] = (struct sh_fig_line){l->label[l->n_line], n, l->look, q, x, y};
        }
    }
    l->look++;
}

/* A limit of the first run, in that unit. */
static double limit(const struct run *run, const char *key, const struct sh_time_unit *u)
{
    const json_t *at = json_object_get(run->row->settings, key);
    return at ? json_number_value(at) * u->per_s : (double)NAN;
}

static int draw(struct sh_report *r, const struct run *run, int n_run, const char *id, struct sh_err *e)
{
    size_t n = (size_t)n_run;
    struct lines l = {.xy = xcalloc(5 * n, sizeof *l.xy),
                      .line = {xcalloc(2 * n, sizeof **l.line), xcalloc(2 * n, sizeof **l.line)},
                      .label = xcalloc(2 * n, sizeof *l.label),
                      .unit = {unit_of(run, n_run, "ttft_s.p50", "ttft_s.p99"),
                               unit_of(run, n_run, "tpot_s.p50", "tpot_s.p99")}};
    for (int i = 0, from = 0; i <= n_run; i++)
        if (i == n_run || !is_same_cache(&run[from], &run[i])) {
            add_lines(&l, run + from, i - from);
            from = i;
        }
    char *what = workload(run->row), *title = xasprintf("%s on %s", base(sh_result_text(run->row, "model")),
                                                        sh_result_text(run->row, "gpu"));
    struct sh_fig_chart chart[2] = {
        {"time to the first token", "requests a second", l.unit[0].whole, 1, 0, limit(run, "slo_ttft_s", &l.unit[0]),
         "limit", l.n_line, l.line[0]},
        {"time of each further token", "requests a second", l.unit[1].whole, 1, 0, limit(run, "slo_tpot_s", &l.unit[1]),
         "limit", l.n_line, l.line[1]}};
    struct sh_fig_charts charts = {2, chart};
    struct sh_fig_data data = {.title = title, .settings = what, .latency = &charts};
    int bad = sh_report_figure_as(r, "latency", id, &data, e);
    free(l.xy);
    free(l.line[0]);
    free(l.line[1]);
    free(l.label);
    free(title);
    free(what);
    return bad;
}

/* Tables and figures of runs that differ in nothing but cache and rate. */
static int groups(struct sh_report *r, const struct sh_results *all, struct sh_err *e)
{
    struct run *run = xcalloc((size_t)all->n, sizeof *run);
    int bad = 0, n_group = 0;
    for (int i = 0; i < all->n; i++)
        run[i] = (struct run){&all->row[i], group_of(&all->row[i])};
    qsort(run, (size_t)all->n, sizeof *run, in_order);
    for (int i = 0, from = 0; i <= all->n && !bad; i++)
        if (i == all->n || strcmp(run[from].group, run[i].group)) {
            char *id = n_group++ ? xasprintf("latency-%d", n_group) : xstrdup("latency");
            table(r, run + from, i - from, id);
            bad = draw(r, run + from, i - from, id, e);
            free(id);
            from = i;
        }
    for (int i = 0; i < all->n; i++)
        free(run[i].group);
    free(run);
    return bad;
}

static int write(struct sh_report *r, struct sh_err *e)
{
    struct sh_results all;
    if (sh_results_read(r, "simulate", &all, e))
        return -1;
    if (!all.n) {
        char *line = xasprintf("simulate --model %s --gpu H100-SXM --rate 4,8 --prompt 1000 --output 200 --budget 0.2 "
                               "--db %s", r->model ? r->model : "NAME", r->store[0].path);
        sh_report_missing(r, line, "a server under load: no requests were simulated.");
        free(line);
        return 0;
    }
    sh_report_say(r, "The same requests come to a simulated server with the whole cache and with smaller ones (a share "
                  "of each sequence, or a plan): how long they wait for their first token and for each further one. "
                  "Continuous batching, chunked prompts, a paged cache; a step takes the least time that the board's "
                  "memory and arithmetic allow, unless an efficiency was given, and real ones take longer.");
    int bad = groups(r, &all, e);
    sh_results_free(&all);
    for (int i = 0; i < r->n_store && !bad; i++)
        bad = sh_report_typed(r, i, "simulate", e);
    return bad ? -1 : 0;
}

const struct sh_report_part sh_report_serving = {"serving", "A server under load", write};
