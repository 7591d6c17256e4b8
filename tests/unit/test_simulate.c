/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator against a second one in Python (tests/golden/simulate.json, made by tests/oracle/simulate.py), event
 * by event; against queueing theory; and its parts against what they promise. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/simulate/simulate_cost.h"
#include "planner/simulate/simulate.h"
#include "planner/simulate/workload.h"
#include "src/base/mem.h"
#include "src/base/rng.h"
#include "tests/tap.h"

static struct sh_err e;
static json_t *golden;
static struct sh_kv_shape shape;
static const struct sh_sim_efficiency bound = {1, 1, 1, 1, 1, 0};

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static void open_golden(void)
{
    struct sh_kv_facts f;
    if (golden)
        return;
    golden = json_load_file(tap_golden("simulate.json"), 0, NULL);
    CU_ASSERT_FATAL(golden && !sh_kv_facts_row(json_string_value(json_object_get(golden, "model")), "here", &f, &e) &&
                    !sh_kv_shape_build(&f, &shape, &e));
}

/* The small model with room for `pool` bytes of cache. */
static struct sh_capacity_ask ask(uint64_t pool)
{
    struct sh_capacity_ask a = {.shape = &shape, .tp = 1, .pp = 1, .ep = 1, .util = 1, .length = 1,
                                .rule = {.page = 1}};
    CU_ASSERT_FATAL(!sh_kv_type_parse("f16", &a.rule.k, &e) && !sh_kv_type_parse("f16", &a.weights.matrices, &e));
    a.rule.v = a.rule.k;
    a.weights.experts = a.weights.matrices;
    a.memory = (uint64_t)number(golden, "weights") + pool;
    a.bandwidth = number(golden, "bandwidth");
    a.peak = number(golden, "peak");
    return a;
}

/* Requests from an array. */
struct listed {
    struct sh_workload base;
    const json_t *rows;
    size_t at;
};

static int next_listed(struct sh_workload *w, struct sh_request *out, struct sh_err *err)
{
    struct listed *l = (struct listed *)w;
    const json_t *r = json_array_get(l->rows, l->at++);
    (void)err;
    if (!r)
        return 0;
    *out = (struct sh_request){json_number_value(json_array_get(r, 0)),
                               (uint32_t)json_integer_value(json_array_get(r, 1)),
                               (uint32_t)json_integer_value(json_array_get(r, 2))};
    return 1;
}

struct watch {
    const json_t *events;
    int n, bad;
};

static int differs(const json_t *row, size_t i, double found)
{
    double expected = json_number_value(json_array_get(row, i));
    return !(fabs(found - expected) <= 1e-9 * (1 + fabs(expected)));
}

static void compare(void *to, const struct sh_sim_done *d)
{
    struct watch *w = to;
    const json_t *row = json_array_get(w->events, d->number);
    w->n++;
    if (d->is_refused)
        w->bad += !json_is_null(row);
    else
        w->bad += !json_is_array(row) || differs(row, 0, d->admitted_s) || differs(row, 1, d->first_s) ||
                  differs(row, 2, d->finished_s) || differs(row, 3, d->preemptions);
}

static void set_rule(const json_t *c, struct sh_kv_rule *r)
{
    const char *budget = json_string_value(json_object_get(c, "budget"));
    r->page = (uint64_t)number(c, "page");
    r->headroom = (uint64_t)number(c, "headroom");
    if (!budget)
        return;
    r->budget = strchr(budget, '.') ? SH_BUDGET_SHARE : SH_BUDGET_TOKENS;
    r->share = strtod(budget, NULL);
    r->tokens = (uint64_t)r->share;
}

static void same_events(const json_t *c, struct sh_sim_result *r)
{
    const json_t *f = json_object_get(c, "efficiency");
    struct sh_sim_efficiency slow = {number(f, "weights"), number(f, "cache"), number(f, "products"),
                                     number(f, "attention"), number(f, "link"), number(f, "overhead_s")};
    struct sh_capacity_ask a = ask((uint64_t)number(c, "pool"));
    struct listed w = {{.next = next_listed}, json_object_get(c, "requests"), 0};
    struct watch watch = {json_object_get(c, "events"), 0, 0};
    struct sh_sim_cost cost;
    struct sh_sim_ask q = {.step_tokens = (uint32_t)number(c, "step_tokens"),
                           .max_running = (uint32_t)number(c, "max_running"), .slo_ttft_s = 1, .slo_tpot_s = 1,
                           .speed = 1, .done = compare, .to = &watch};
    set_rule(c, &a.rule);
    q.memory = strcmp(json_string_value(json_object_get(c, "memory")), "slots") ? SH_SIM_PAGED : SH_SIM_SLOTS;
    q.evict = strcmp(json_string_value(json_object_get(c, "evict")), "chunk") ? SH_EVICT_PROMPT : SH_EVICT_CHUNK;
    CU_ASSERT_FATAL(!sh_sim_cost(&a, &slow, &cost, &e));
    CU_ASSERT_EQUAL(cost.pool, (uint64_t)number(c, "pool"));
    int bad = sh_simulate(&q, &cost, &w.base, r, &e);
    sh_sim_cost_clear(&cost);
    if (bad || watch.bad || watch.n != (int)json_array_size(watch.events) || r->steps != (uint64_t)number(c, "steps"))
        printf("# %s: %s, %d of %d events differ, %llu steps for %.0f\n",
               json_string_value(json_object_get(c, "name")), bad ? e.text : "ran", watch.bad, watch.n,
               (unsigned long long)r->steps, number(c, "steps"));
    CU_ASSERT(!bad && !watch.bad && watch.n == (int)json_array_size(watch.events));
    CU_ASSERT_EQUAL(r->steps, (uint64_t)number(c, "steps"));
}

static void events(void)
{
    size_t i;
    json_t *c;
    open_golden();
    struct sh_sim_result *r = xmalloc(sizeof *r);
    CU_ASSERT(json_array_size(json_object_get(golden, "cases")) >= 20);
    json_array_foreach(json_object_get(golden, "cases"), i, c)
        same_events(c, r);
    free(r);
}

/* One step of a second for each request, one at a time: a queue with Poisson arrivals and fixed service, whose mean
 * wait is rho / (2 (1 - rho)) services (Pollaczek and Khinchine). */
static void md1(void)
{
    open_golden();
    struct sh_capacity_ask a = ask(1 << 20);
    struct sh_sim_cost cost;
    struct sh_sim_result *r = xmalloc(sizeof *r);
    static const double rho[] = {0.3, 0.5, 0.8};
    a.bandwidth = a.peak = 1e30;
    struct sh_sim_efficiency second = bound;
    second.overhead_s = 1;
    CU_ASSERT_FATAL(!sh_sim_cost(&a, &second, &cost, &e));
    for (int i = 0; i < 3; i++) {
        struct sh_workload_random w = {.prompt = {SH_SPREAD_FIXED, 1, 0}, .output = {SH_SPREAD_FIXED, 1, 0}};
        struct sh_sim_ask q = {.step_tokens = 1, .max_running = 1, .slo_ttft_s = 1, .slo_tpot_s = 1, .speed = 1};
        sh_workload_random(&w, rho[i], 2000000, 7);
        CU_ASSERT_FATAL(!sh_simulate(&q, &cost, &w.base, r, &e));
        double wait = sh_quantile_mean(&r->queue), theory = rho[i] / (2 * (1 - rho[i]));
        printf("# rho %.1f: mean wait %.4f, theory %.4f\n", rho[i], wait, theory);
        CU_ASSERT(fabs(wait / theory - 1) < 0.02);
        CU_ASSERT(fabs(r->busy_s / (r->end_s - r->start_s) / rho[i] - 1) < 0.02);
    }
    sh_sim_cost_clear(&cost);
    free(r);
}

static void add_residence(void *to, const struct sh_sim_done *d)
{
    *(double *)to += d->finished_s - d->admitted_s;
}

/* L = lambda W of what is being served: the time-weighted mean of running sequences, step by step, against the
 * requests' own times; exact here, since the run begins and ends empty and nobody is preempted. */
static void little(void)
{
    open_golden();
    struct sh_capacity_ask a = ask(1 << 24);
    struct sh_sim_cost cost;
    struct sh_sim_result *r = xmalloc(sizeof *r);
    double residence = 0;
    struct sh_workload_random w = {.prompt = {SH_SPREAD_EXPONENTIAL, 40, 0}, .output = {SH_SPREAD_UNIFORM, 5, 60}};
    struct sh_sim_ask q = {.step_tokens = 256, .max_running = 64, .slo_ttft_s = 1, .slo_tpot_s = 1, .speed = 1,
                           .done = add_residence, .to = &residence};
    CU_ASSERT_FATAL(!sh_sim_cost(&a, &bound, &cost, &e));
    sh_workload_random(&w, 600, 50000, 3);
    CU_ASSERT_FATAL(!sh_simulate(&q, &cost, &w.base, r, &e));
    double rate = (double)r->finished / (r->end_s - r->start_s), mean = residence / (double)r->finished;
    printf("# mean batch %.4f, lambda W %.4f, %llu preemptions\n", r->running_mean, rate * mean,
           (unsigned long long)r->preemptions);
    CU_ASSERT(r->running_mean > 2 && !r->preemptions);
    CU_ASSERT(fabs(r->running_mean / (rate * mean) - 1) < 1e-6);
    CU_ASSERT_EQUAL(r->tokens_fed, r->tokens_in + r->tokens_out - r->finished);
    sh_sim_cost_clear(&cost);
    free(r);
}

/* The same seed gives the same bits, whatever ran before; another seed others. */
static void deterministic(void)
{
    open_golden();
    struct sh_capacity_ask a = ask(1 << 19);
    struct sh_sim_cost cost;
    struct sh_sim_result *r[3];
    struct sh_sim_ask q = {.step_tokens = 64, .max_running = 64, .slo_ttft_s = 1, .slo_tpot_s = 1, .speed = 1};
    CU_ASSERT_FATAL(!sh_sim_cost(&a, &bound, &cost, &e));
    for (int i = 0; i < 3; i++) {
        struct sh_workload_random w = {.prompt = {SH_SPREAD_LOGNORMAL, 40, 0.8},
                                       .output = {SH_SPREAD_EXPONENTIAL, 30, 0}};
        r[i] = xcalloc(1, sizeof *r[i]);
        sh_workload_random(&w, 3000, 3000, i < 2 ? 5 : 6);
        CU_ASSERT_FATAL(!sh_simulate(&q, &cost, &w.base, r[i], &e));
    }
    CU_ASSERT(r[0]->preemptions > 0);
    CU_ASSERT(!memcmp(r[0], r[1], sizeof *r[0]));
    CU_ASSERT(r[0]->end_s != r[2]->end_s);
    for (int i = 0; i < 3; i++)
        free(r[i]);
    sh_sim_cost_clear(&cost);
}

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

static void quantiles(void)
{
    enum { N = 10000 };
    struct sh_quantile *q = xcalloc(1, sizeof *q);
    double *all = xcalloc(N, sizeof *all);
    CU_ASSERT(isnan(sh_quantile_at(q, 0.5)) && isnan(sh_quantile_mean(q)));
    for (int i = 0; i < N; i++) {
        all[i] = exp(4 * sh_rng_normal(1, (uint64_t)i) - 3);
        sh_quantile_add(q, all[i]);
    }
    qsort(all, N, sizeof *all, ascending);
    for (int p = 1; p <= 100; p++) {
        double exact = all[p * N / 100 - 1], found = sh_quantile_at(q, p / 100.0);
        CU_ASSERT(exact < 1e-6 || fabs(found / exact - 1) <= 0.0005001);
    }
    CU_ASSERT_EQUAL(sh_quantile_at(q, 1), all[N - 1]);
    sh_quantile_add(q, 0);
    CU_ASSERT_EQUAL(q->least, 0);
    sh_quantile_add(q, 1e300);
    CU_ASSERT_EQUAL(sh_quantile_at(q, 1), 1e300);
    free(all);
    free(q);
}

/* The integral survives however often stretches are merged. */
static void timeline(void)
{
    struct sh_timeline *t = xmalloc(sizeof *t);
    double sum = 0, whole = 0, at = 0;
    sh_timeline_start(t, 0.01);
    CU_ASSERT_EQUAL(sh_timeline_count(t), 0);
    for (uint64_t i = 0; i < 20000; i++) {
        double to = at + 0.1 * sh_rng_uniform(2, i) * sh_rng_uniform(3, i), value = sh_rng_uniform(4, i);
        sh_timeline_add(t, at, to, value);
        whole += (to - at) * value;
        at = to;
    }
    int n = sh_timeline_count(t);
    for (int i = 0; i < n; i++)
        sum += sh_timeline_mean(t, i) * (i + 1 < n ? t->width : at - i * t->width);
    CU_ASSERT(n > SH_TIMELINE_BINS / 2 - 1 && n <= SH_TIMELINE_BINS);
    CU_ASSERT(fabs(sum / whole - 1) < 1e-9);
    free(t);
}

static void lengths(void)
{
    static const char *const bad[] = {"", "0", "-5", "1.5", "9-3", "exp:", "exp:0", "lognormal:5", "lognormal:5:x",
                                      "lognormal:5:9", "5x", "1e9", "nan", "exp:nan", "3-", "-", "inf"};
    static const struct { const char *text; double mean; } good[] = {
        {"512", 512}, {"100-900", 500}, {"exp:512", 512.5}, {"lognormal:512:0.8", 512.5}};
    struct sh_lengths l;
    struct sh_request q;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT(sh_lengths_parse("--prompt", bad[i], &l, &e) == -1 && e.status == SH_MISUSED &&
                  strstr(e.text, "--prompt"));
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct sh_workload_random w = {.output = {SH_SPREAD_FIXED, 1, 0}};
        double sum = 0;
        CU_ASSERT_FATAL(!sh_lengths_parse("--prompt", good[i].text, &w.prompt, &e));
        sh_workload_random(&w, 10, 100000, 9);
        while (w.base.next(&w.base, &q, &e) == 1)
            sum += q.prompt;
        CU_ASSERT(fabs(sum / 100000 / good[i].mean - 1) < 0.01);
        CU_ASSERT(fabs(100000 / q.arrival_s / 10 - 1) < 0.02);
    }
}

/* Efficiencies that made the points are found again. */
static void fit(void)
{
    open_golden();
    struct sh_capacity_ask a = ask(1 << 24);
    struct sh_sim_cost cost;
    struct sh_sim_efficiency truth = {0.7, 0.7, 0.4, 0.4, 1, 0.0008};
    struct sh_sim_point p[12];
    struct sh_sim_fit f;
    CU_ASSERT_FATAL(!sh_sim_cost(&a, &truth, &cost, &e));
    for (uint32_t i = 0; i < 12; i++) {
        p[i] = (struct sh_sim_point){i % 3 ? 0 : 100 * i + 50, i % 3 ? 4 * i : 0, 100 * i + 20, 0};
        p[i].seconds = sh_sim_point_seconds(&cost, &p[i]);
    }
    CU_ASSERT_FATAL(!sh_sim_fit(&cost, p, 12, &f, &e));
    printf("# memory %.4f, compute %.4f, overhead %.6f, off by %.2g\n", f.efficiency.weights, f.efficiency.products,
           f.efficiency.overhead_s, f.worst);
    CU_ASSERT(f.worst < 0.01 && f.rms <= f.worst && !f.is_bound);
    CU_ASSERT(fabs(f.efficiency.weights / 0.7 - 1) < 0.05 && fabs(f.efficiency.products / 0.4 - 1) < 0.05);
    p[3].seconds /= 1000;
    CU_ASSERT(!sh_sim_fit(&cost, p, 12, &f, &e) && f.is_bound);
    CU_ASSERT(sh_sim_fit(&cost, p, 2, &f, &e) == -1);
    p[1].seconds = 0;
    CU_ASSERT(sh_sim_fit(&cost, p, 12, &f, &e) == -1 && strstr(e.text, "step 2"));
    sh_sim_cost_clear(&cost);
}

static struct sh_workload *again(void *from, struct sh_err *err)
{
    struct sh_workload_random *w = from;
    (void)err;
    sh_workload_random(w, 1, 20000, 11);
    return &w->base;
}

/* One second for each, one at a time: at a limit of a second no more may come than is served at once; at a long one
 * nearly one a second. */
static void highest_rate(void)
{
    open_golden();
    struct sh_capacity_ask a = ask(1 << 20);
    struct sh_sim_efficiency second = bound;
    struct sh_workload_random w = {.prompt = {SH_SPREAD_FIXED, 1, 0}, .output = {SH_SPREAD_FIXED, 1, 0}};
    struct sh_sim_cost cost;
    struct sh_sim_result *r = xmalloc(sizeof *r);
    struct sh_rate most;
    struct sh_sim_ask q = {.step_tokens = 1, .max_running = 1, .slo_ttft_s = 2, .slo_tpot_s = (double)INFINITY};
    a.bandwidth = a.peak = 1e30;
    second.overhead_s = 1;
    CU_ASSERT_FATAL(!sh_sim_cost(&a, &second, &cost, &e));
    CU_ASSERT(!sh_sim_rate(&q, &cost, again, &w, 0.9, r, &most, &e));
    double below = most.speed;
    CU_ASSERT(below > 0.2 && below < 0.6 && !most.is_open);
    q.speed = below;
    CU_ASSERT(!sh_simulate(&q, &cost, again(&w, &e), r, &e) && (double)r->good >= 0.9 * 20000);
    q.speed = below * 1.02;
    CU_ASSERT(!sh_simulate(&q, &cost, again(&w, &e), r, &e) && (double)r->good < 0.9 * 20000);
    q.slo_ttft_s = 100;
    CU_ASSERT(!sh_sim_rate(&q, &cost, again, &w, 0.9, r, &most, &e) && most.speed > 0.9 && most.speed < 1.1);
    q.slo_ttft_s = 0.5;
    CU_ASSERT(!sh_sim_rate(&q, &cost, again, &w, 0.9, r, &most, &e) && most.speed == 0 && !most.is_open);
    q.slo_ttft_s = 1e9;
    CU_ASSERT(!sh_sim_rate(&q, &cost, again, &w, 0.9, r, &most, &e) && most.is_open);
    sh_sim_cost_clear(&cost);
    free(r);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"events are those of a second simulator, in 21 workloads", events},
        {"M/D/1: the mean wait, within 2 %", md1},
        {"Little's law", little},
        {"the same seed gives the same bits", deterministic},
        {"quantiles within 0.05 %", quantiles},
        {"a timeline keeps its integral", timeline},
        {"lengths and rates of generated requests", lengths},
        {"calibration finds what made the points", fit},
        {"the highest rate", highest_rate},
        {NULL, NULL}};
    int status = tap_run("simulate", tests);
    json_decref(golden);
    sh_kv_shape_clear(&shape);
    return status;
}
