/* SPDX-License-Identifier: Apache-2.0 */
/* Report: how a server performs with the full cache and with budgets: the results of shears simulate --db. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/report/figures/latency.h"
#include "src/report/report_results.h"

static char *workload(const struct sh_result_row *row)
{
    const char *file = sh_result_text(row, "workload");
    return *file ? xstrdup(sh_figure_file(file)) : xasprintf("prompt %s, answer %s", sh_result_text(row, "prompt"),
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

enum { FULL = 90 };                     /* % of the memory in use at its peak: then requests wait for it */

struct run {
    struct sh_result_row row;           /* as in the results that it is of                        */
    char *group;
};

static int is_whole(const struct run *r)
{
    return !strcmp(sh_result_text(&r->row, "plan"), "full");
}

/* Group by group, in each the full cache first, in each cache by rate. */
static int in_order(const void *x, const void *y)
{
    const struct run *a = x, *b = y;
    int way = strcmp(a->group, b->group);
    way = way ? way : is_whole(b) - is_whole(a);
    way = way ? way : strcmp(sh_result_text(&a->row, "plan"), sh_result_text(&b->row, "plan"));
    double u = sh_result(&a->row, "rate_requests_per_s", -1), v = sh_result(&b->row, "rate_requests_per_s", -1);
    return way ? way : (u > v) - (u < v);
}

static const char *const metric[SH_N_LATENCY][SH_N_QUANTILE] = {
    [SH_TTFT] = {[SH_P50] = "ttft_s.p50", [SH_P99] = "ttft_s.p99"},
    [SH_TPOT] = {[SH_P50] = "tpot_s.p50", [SH_P99] = "tpot_s.p99"}};

/* The times of a group; for free(). */
static struct sh_latency *times(const struct sh_results *of)
{
    struct sh_latency *at = xcalloc((size_t)of->n, sizeof *at);
    for (int i = 0; i < of->n; i++) {
        const struct sh_result_row *row = &of->row[i];
        const char *plan = sh_result_text(row, "plan");
        int is_new = i && strcmp(plan, sh_result_text(&of->row[i - 1], "plan"));
        at[i] = (struct sh_latency){i ? at[i - 1].cache + is_new : 0, sh_figure_file(plan),
                                    sh_result(row, "rate_requests_per_s", -1), {{0}}};
        for (int k = 0; k < SH_N_LATENCY; k++)
            for (int q = 0; q < SH_N_QUANTILE; q++)
                at[i].seconds[k][q] = sh_result(row, metric[k][q], -1);
    }
    return at;
}

static double good_share(const struct sh_report_at *at)
{
    const json_t *s = at->row->settings;
    int has_limit = json_object_get(s, "slo_ttft_s") || json_object_get(s, "slo_tpot_s");
    return has_limit ? sh_result(at->row, "good_share", -1) : (double)NAN;
}

static const char *link(const struct sh_report_at *at)
{
    return at->more;
}

/* Digits of the share of a cache that tiny models hardly fill. */
static int digits_of_use(const struct sh_results *of)
{
    double most = 0;
    for (int i = 0; i < of->n; i++)
        most = fmax(most, sh_result(&of->row[i], "kv_occupancy_mean", -1));
    return most >= 0.01 ? 2 : 4;
}

static void table(struct sh_report *r, struct sh_figure_data *d, const struct sh_results *of,
                  const struct sh_latency *at, const char *what, const char *id)
{
    struct sh_time_unit ttft = sh_latency_unit(at, of->n, SH_TTFT), tpot = sh_latency_unit(at, of->n, SH_TPOT);
    const char *first = sh_figure_keep(d, xasprintf("first token: p50, %s", ttft.name)),
               *first_99 = sh_figure_keep(d, xasprintf("first token: p99, %s", ttft.name)),
               *further = sh_figure_keep(d, xasprintf("further tokens: p50, %s", tpot.name)),
               *further_99 = sh_figure_keep(d, xasprintf("further tokens: p99, %s", tpot.name));
    char *title = xasprintf("%s on %s, tokens per request: %s; p50 is the median, and 99 %% of the requests do not "
                            "exceed p99",
                            sh_figure_file(sh_result_text(of->row, "model")), sh_result_text(of->row, "gpu"), what);
    const struct sh_report_column columns[] = {
        SH_COL_SETTING(FILE, "plan", "cache"), SH_COL_METRIC("rate_requests_per_s", "offered requests/s", 3),
        SH_COL_METRIC("throughput_tokens_per_s", "tokens/s", 1),
        SH_COL_VALUE("good_share", "share within the limits", 4, good_share),
        SH_COL_METRIC("max_rate_requests_per_s", "max requests/s within the limits", 3),
        SH_COL_SCALED(metric[SH_TTFT][SH_P50], first, ttft.digits, ttft.per_s),
        SH_COL_SCALED(metric[SH_TTFT][SH_P99], first_99, ttft.digits, ttft.per_s),
        SH_COL_SCALED(metric[SH_TPOT][SH_P50], further, tpot.digits, tpot.per_s),
        SH_COL_SCALED(metric[SH_TPOT][SH_P99], further_99, tpot.digits, tpot.per_s),
        SH_COL_METRIC("preemptions", "preemptions", 0),
        SH_COL_SCALED("kv_occupancy_mean", "cache in use, %", digits_of_use(of), 100), SH_COL_END};
    const struct sh_report_table t = {.key = "simulate", .title = sh_figure_keep(d, title), .column = columns,
                                      .link = link, .more = sh_figure_keep(d, xasprintf("#fig-%s", id))};
    sh_report_rows(r, of, &t);
}

/* The last row with the full cache of which this cache has one under the same load; *own: that one. NULL: none. */
static const struct sh_result_row *busiest(const struct sh_results *of, const char *plan,
                                           const struct sh_result_row **own)
{
    const struct sh_result_row *full = NULL;
    for (int i = 0; i < of->n; i++)
        for (int k = 0; k < of->n && !strcmp(sh_result_text(&of->row[i], "plan"), "full"); k++)
            if (!strcmp(sh_result_text(&of->row[k], "plan"), plan) &&
                fabs(sh_result(&of->row[k], "rate_requests_per_s", -1) /
                     sh_result(&of->row[i], "rate_requests_per_s", -1) - 1) < 1e-6) {
                full = &of->row[i];
                *own = &of->row[k];
            }
    return full;
}

/* How the smaller cache changes a metric: "falls from 2.3 to 1.9 ms", or "stays about the same". For free(). */
static char *changes(double from, double to, double scale, int digits, const char *unit)
{
    if (fabs(to / from - 1) < 0.02)
        return xstrdup("stays about the same");
    return xasprintf("%s from %.*f to %.*f %s", to < from ? "falls" : "rises", digits, scale * from, digits, scale * to,
                     unit);
}

/* Does the server use the memory that a smaller cache saves? Not if the full cache leaves most of it free. */
static void say_use(struct sh_report *r, const struct sh_result_row *full, const struct sh_result_row *own,
                    const struct sh_time_unit *unit)
{
    const char *plan = sh_result_text(own, "plan");
    double used = 100 * sh_result(full, "kv_occupancy_mean", -1), left = 100 * sh_result(own, "kv_occupancy_mean", -1),
           waits = sh_result(full, "preemptions", -1), requests = sh_result(full, "rate_requests_per_s", -1),
           before = sh_result(full, metric[SH_TPOT][SH_P50], -1), after = sh_result(own, metric[SH_TPOT][SH_P50], -1);
    int is_full = 100 * sh_result(full, "kv_occupancy_peak", -1) >= FULL || waits > 0;
    char *rate = changes(sh_result(full, "throughput_tokens_per_s", -1), sh_result(own, "throughput_tokens_per_s", -1),
                         1, 0, "tokens per second"),
         *time = changes(before, after, unit->per_s, unit->digits, unit->name);
    sh_report_say(r, "With %s%s, at %.*f requests per second: %s%s Memory in use falls from %.2g %% of that for the "
                     "cache to %.2g %%, on average. The output %s, and the median time per further token %s.",
                  isdigit((unsigned char)*plan) ? "a budget of " : "", sh_figure_file(plan),
                  requests < 100 ? 2 : 0, requests,
                  is_full ? "the full cache fills the memory at times, so that requests wait for it, and a smaller "
                            "one lets more of them in at once."
                          : "the server cannot use the memory that the smaller cache saves, since requests do not wait "
                            "for memory with the full cache either.",
                  !is_full && after < 0.98 * before ? " Steps only get faster, as they read less." : "", used, left,
                  rate, time);
    free(rate);
    free(time);
}

/* What the smaller caches of a group change for the server, and how their quality was measured. */
static void say_caches(struct sh_report *r, const struct sh_results *of, const struct sh_time_unit *unit)
{
    for (int i = 0; i < of->n; i++) {
        const char *plan = sh_result_text(&of->row[i], "plan"), *evidence = sh_result_text(&of->row[i], "evidence");
        const struct sh_result_row *own = NULL, *full = busiest(of, plan, &own);
        if (!strcmp(plan, "full") || (i && !strcmp(plan, sh_result_text(&of->row[i - 1], "plan"))))
            continue;
        if (full)
            say_use(r, full, own, unit);
        if (*evidence)
            sh_report_say(r, "Quality of %s: %s.", sh_figure_file(plan), evidence);
    }
}

/* A limit of the first run, in seconds. */
static double limit(const struct sh_results *of, const char *key)
{
    const json_t *at = json_object_get(of->row->settings, key);
    return at ? json_number_value(at) : (double)NAN;
}

/* The table and the figure of runs that differ in nothing but cache and rate. */
static int group(struct sh_report *r, const struct sh_results *of, const char *id, struct sh_err *e)
{
    const double limits[SH_N_LATENCY] = {limit(of, "slo_ttft_s"), limit(of, "slo_tpot_s")};
    struct sh_latency *at = times(of);
    struct sh_figure_data *d = sh_figure_data_empty();
    char *what = sh_figure_keep(d, workload(of->row));
    table(r, d, of, at, what, id);
    struct sh_time_unit unit = sh_latency_unit(at, of->n, SH_TPOT);
    say_caches(r, of, &unit);
    sh_latency_fill(d, at, of->n, "requests per second", limits);
    d->out.title = sh_figure_keep(d, xasprintf("%s on %s", sh_figure_file(sh_result_text(of->row, "model")),
                                               sh_result_text(of->row, "gpu")));
    d->out.settings = what;
    int bad = sh_report_figure(r, &sh_figure_latency, id, &d->out, e);
    sh_figure_data_free(d);
    free(at);
    return bad;
}

static int groups(struct sh_report *r, const struct sh_results *all, struct sh_err *e)
{
    struct run *run = xcalloc((size_t)all->n, sizeof *run);
    struct sh_result_row *row = xcalloc((size_t)all->n, sizeof *row);
    int bad = 0, n_group = 0;
    for (int i = 0; i < all->n; i++)
        run[i] = (struct run){all->row[i], group_of(&all->row[i])};
    qsort(run, (size_t)all->n, sizeof *run, in_order);
    for (int i = 0; i < all->n; i++)
        row[i] = run[i].row;
    for (int i = 0, from = 0; i <= all->n && !bad; i++)
        if (i == all->n || strcmp(run[from].group, run[i].group)) {
            char *id = n_group++ ? xasprintf("latency-%d", n_group) : xstrdup("latency");
            bad = group(r, &(struct sh_results){row + from, i - from}, id, e);
            free(id);
            from = i;
        }
    for (int i = 0; i < all->n; i++)
        free(run[i].group);
    free(run);
    free(row);
    return bad;
}

#define SERVE " --gpu H100-SXM --rate 4,8 --prompt 1000 --output 200 --budget 0.2 --db STORE"

static int write(struct sh_report *r, struct sh_err *e)
{
    struct sh_results all;
    if (sh_results_read(r, "simulate", &all, e))
        return -1;
    if (!all.n) {
        sh_report_fill(r, "simulate --model MODEL" SERVE, "a server under load: no requests were simulated.");
        return 0;
    }
    sh_report_say(r, "The same requests arrive at a simulated server with the full cache and with smaller caches (a "
                     "share of each sequence, or a plan). How long do they wait for their first token and for each "
                     "further token? The server batches continuously, splits prompts into chunks and pages its cache. "
                     "A step takes the least time that the GPU's memory and arithmetic allow, unless an efficiency "
                     "was given; real steps take longer. The server evicts after a whole prompt (--evict), but costs "
                     "in quality are those of texts that were read token by token, unless they were measured with "
                     "--prefill.");
    int bad = groups(r, &all, e);
    sh_results_free(&all);
    return bad || sh_report_typed(r, "simulate", e) ? -1 : 0;
}

const struct sh_report_part sh_report_serving = {
    .name = "serving", .title = "A server under load", .write = write};
