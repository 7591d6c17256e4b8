/* SPDX-License-Identifier: Apache-2.0 */
/* Report: how a server would fare, whole and with budgets: what shears simulate --db left in the stores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/cli/report_results.h"
#include "src/cli/time_unit.h"

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

/* The unit of two metrics over all rows, limits not counted. */
static struct sh_time_unit unit_of(const struct sh_results *all, const char *p50, const char *p99)
{
    double *at = xcalloc(2 * (size_t)all->n, sizeof *at);
    for (int i = 0; i < all->n; i++) {
        at[2 * i] = sh_result(&all->row[i], p50, -1);
        at[2 * i + 1] = sh_result(&all->row[i], p99, -1);
    }
    struct sh_time_unit u = sh_time_unit(at, 2 * all->n);
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

static void table(struct sh_report *r, const struct sh_results *all)
{
    struct sh_time_unit ttft = unit_of(all, "ttft_s.p50", "ttft_s.p99"),
                        tpot = unit_of(all, "tpot_s.p50", "tpot_s.p99");
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "simulate", "requests served with the whole cache and with smaller ones; p50: the middle, p99: all "
                "but the slowest hundredth");
    for (int i = 0; i < all->n; i++) {
        const struct sh_result_row *row = &all->row[i];
        char *what = workload(row);
        sh_out_item(o);
        sh_out_link(o, "#fig-latency");
        sh_out_text(o, "plan", "cache", base(sh_result_text(row, "plan")));
        sh_out_text(o, "model", "model", base(sh_result_text(row, "model")));
        sh_out_text(o, "gpu", "GPU", sh_result_text(row, "gpu"));
        sh_out_text(o, "workload", "tokens of a request", what);
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
        sh_out_real(o, "occupancy", "cache in use, %", 100 * sh_result(row, "kv_occupancy_mean", -1), 4);
        sh_out_text(o, "evidence", "quality", sh_result_text(row, "evidence"));
        free(what);
    }
    sh_out_end(o);
    sh_report_table(r, NULL, o);
}

/* ---- the figure: of the first rows that differ in nothing but cache and rate ---- */

/* Settings without the cache and the rate; for free(). */
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

static int by_rate(const void *x, const void *y)
{
    const struct sh_result_row *const *a = x, *const *b = y;
    double u = sh_result(*a, "rate_requests_per_s", -1), v = sh_result(*b, "rate_requests_per_s", -1);
    return (u > v) - (u < v);
}

struct lines {
    const struct sh_result_row **row;   /* [n] of one group and cache, by rate                    */
    int n;
    double *xy;                         /* all numbers that lines are made of, in use             */
    int used, look;
    struct sh_time_unit unit[2];        /* TTFT, TPOT                                             */
    struct sh_fig_line *line[2];        /* time to the first token, of each further one           */
    char (*label)[LABEL];
    int n_line;
};

/* The p50 and the p99 of one cache. */
static void add_lines(struct lines *l)
{
    static const char *const metric[2][2] = {{"ttft_s.p50", "ttft_s.p99"}, {"tpot_s.p50", "tpot_s.p99"}};
    double *x = l->xy + l->used;
    l->used += l->n;
    for (int i = 0; i < l->n; i++)
        x[i] = sh_result(l->row[i], "rate_requests_per_s", -1);
    for (int q = 0; q < 2; q++, l->n_line++) {
        snprintf(l->label[l->n_line], LABEL, "%.80s, %s", base(sh_result_text(l->row[0], "plan")), q ? "p99" : "p50");
        for (int k = 0; k < 2; k++) {
            double *y = l->xy + l->used;
            l->used += l->n;
            for (int i = 0; i < l->n; i++)
                y[i] = sh_result(l->row[i], metric[k][q], -1) * l->unit[k].per_s;
            l->line[k][l->n_line] = (struct sh_fig_line){l->label[l->n_line], l->n, l->look, q, x, y};
        }
    }
    l->look++;
}

static int is_first_of_cache(const struct sh_results *all, char **group, int i)
{
    for (int k = 0; k < i; k++)
        if (!strcmp(group[k], group[i]) &&
            !strcmp(sh_result_text(&all->row[k], "plan"), sh_result_text(&all->row[i], "plan")))
            return 0;
    return !strcmp(group[0], group[i]);
}

static void gather(struct lines *l, const struct sh_results *all, char **group)
{
    for (int i = 0; i < all->n; i++) {
        if (!is_first_of_cache(all, group, i))
            continue;
        l->n = 0;
        for (int k = i; k < all->n; k++)
            if (!strcmp(group[k], group[i]) &&
                !strcmp(sh_result_text(&all->row[k], "plan"), sh_result_text(&all->row[i], "plan")))
                l->row[l->n++] = &all->row[k];
        qsort(l->row, (size_t)l->n, sizeof *l->row, by_rate);
        add_lines(l);
    }
}

static int draw(struct sh_report *r, const struct sh_results *all, struct sh_err *e)
{
    size_t n = (size_t)all->n;
    char **group = xcalloc(n, sizeof *group);
    struct lines l = {.row = xcalloc(n, sizeof *l.row), .xy = xcalloc(5 * n, sizeof *l.xy),
                      .line = {xcalloc(2 * n, sizeof **l.line), xcalloc(2 * n, sizeof **l.line)},
                      .label = xcalloc(2 * n, sizeof *l.label),
                      .unit = {unit_of(all, "ttft_s.p50", "ttft_s.p99"), unit_of(all, "tpot_s.p50", "tpot_s.p99")}};
    for (int i = 0; i < all->n; i++)
        group[i] = group_of(&all->row[i]);
    gather(&l, all, group);
    const struct sh_result_row *first = &all->row[0];
    json_t *ttft = json_object_get(first->settings, "slo_ttft_s"), *tpot = json_object_get(first->settings,
                                                                                         "slo_tpot_s");
    char *what = workload(first), *title = xasprintf("%s on %s", base(sh_result_text(first, "model")),
                                                     sh_result_text(first, "gpu"));
    struct sh_fig_chart chart[2] = {
        {"time to the first token", "requests a second", l.unit[0].whole, 1, 0,
         ttft ? json_number_value(ttft) * l.unit[0].per_s : (double)NAN, "limit", l.n_line, l.line[0]},
        {"time of each further token", "requests a second", l.unit[1].whole, 1, 0,
         tpot ? json_number_value(tpot) * l.unit[1].per_s : (double)NAN, "limit", l.n_line, l.line[1]}};
    struct sh_fig_data data = {.title = title, .settings = what, .n_charts = 2, .charts = chart};
    int bad = sh_report_figure(r, "latency", &data, e);
    for (int i = 0; i < all->n; i++)
        free(group[i]);
    free(group);
    free(l.row);
    free(l.xy);
    free(l.line[0]);
    free(l.line[1]);
    free(l.label);
    free(title);
    free(what);
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
    table(r, &all);
    int bad = draw(r, &all, e);
    sh_results_free(&all);
    for (int i = 0; i < r->n_store && !bad; i++)
        bad = sh_report_typed(r, i, "simulate", e);
    return bad ? -1 : 0;
}

const struct sh_report_part sh_report_serving = {"serving", "A server under load", write};
