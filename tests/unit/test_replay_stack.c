/* SPDX-License-Identifier: Apache-2.0 */
/* One pass for all budgets against one simulation for each: every policy that says it is a stack, every
 * value of its named knobs, with and without protected tokens, at every budget. And the bound that may
 * readmit: above every policy, and equal to a search by hand. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/replay/list_walk.h"
#include "planner/replay/replay.h"
#include "src/base/mem.h"
#include "src/base/num.h"
#include "src/base/rng.h"
#include "tests/tap.h"

static struct sh_err e;

enum kind { RANDOM, TIED, ONE_HOT, UNIFORM, SINKS, N_KIND };
enum { D_HEAD = 6, MAX_GROUP = 4 };

struct trial {
    struct sh_replay_setup setup;
    float *rows[MAX_GROUP];             /* [n_token][n_token] */
    float *q, *k, *v;
    double *received;
    struct sh_replay_bound *bound;      /* over all rows */
};

static float raw_score(enum kind kind, uint64_t seed, int t, int j)
{
    uint64_t i = (uint64_t)t * 65536 + (uint64_t)j;
    double u = sh_rng_uniform(seed, i);
    switch (kind) {
    case TIED: return (float)(1 + (int)(3 * u));
    case ONE_HOT: return j == (int)(sh_rng_uniform(seed + 1, (uint64_t)t) * (t + 1)) ? 1 : 0;
    case UNIFORM: return 1;
    case SINKS:
        u = pow(u, 4) + (sh_rng_uniform(seed, (uint64_t)j) > 0.9);
        return (float)(u + (j < 2 ? 20 : 0) + (j == t ? 3 : 0));
    default: return (float)pow(u, 3);
    }
}

static int start_of(const struct trial *c, int t)
{
    return c->setup.window > 0 && t >= c->setup.window ? t - c->setup.window + 1 : 0;
}

static float *vectors(size_t count, uint64_t seed)
{
    float *to = xmalloc(count * D_HEAD * sizeof *to);
    for (size_t i = 0; i < count * D_HEAD; i++)
        to[i] = (float)sh_rng_normal(seed, i);
    return to;
}

static void make(struct trial *c, enum kind kind, int n, int group, int window, int prefill)
{
    uint64_t seed = 1000 * (uint64_t)kind + 7 * (uint64_t)n + (uint64_t)group;
    *c = (struct trial){.setup = {.n_token = n, .window = window, .prefill = prefill, .layer = 1, .n_layer = 2,
                                  .group = group, .rows = SH_ROWS_RECORDED, .d_head = D_HEAD, .seed = 5}};
    c->received = xcalloc((size_t)n, sizeof *c->received);
    for (int g = 0; g < group; g++) {
        c->rows[g] = xcalloc((size_t)n * (size_t)n, sizeof(float));
        for (int t = 0; t < n; t++) {
            float *row = c->rows[g] + (size_t)t * (size_t)n;
            double sum = 0;
            int first = start_of(c, t);
            for (int j = first; j <= t; j++)
                sum += (double)(row[j] = raw_score(kind, seed + (uint64_t)g * 99, t, j));
            if (sum <= 0)
                sum = row[t] = 1;
            for (int j = first; j <= t; j++) {
                row[j] = (float)((double)row[j] / sum);
                c->received[j] += (double)row[j] / group;
            }
        }
    }
    c->setup.q = c->q = vectors((size_t)(n * group), 1);
    c->setup.k = c->k = vectors((size_t)n, 2);
    c->setup.v = c->v = vectors((size_t)n, 3);
    c->setup.received = c->received;
}

static void clear(struct trial *c)
{
    sh_replay_bound_free(c->bound);
    for (int g = 0; g < c->setup.group; g++)
        free(c->rows[g]);
    free(c->q);
    free(c->k);
    free(c->v);
    free(c->received);
}

static void rows_of(const struct trial *c, int t, const float *rows[MAX_GROUP])
{
    for (int g = 0; g < c->setup.group; g++)
        rows[g] = c->rows[g] + (size_t)t * (size_t)c->setup.n_token + start_of(c, t);
}

static void bound_rows(struct trial *c)
{
    c->bound = sh_replay_bound_new(&c->setup);
    for (int t = 0; t < c->setup.n_token; t++) {
        const float *rows[MAX_GROUP];
        rows_of(c, t, rows);
        CU_ASSERT_EQUAL_FATAL(sh_replay_bound_row(c->bound, t, start_of(c, t), rows, &e), 0);
    }
}

/* How far a policy's figures rise above the bound, as means. */
static double above_bound(const struct trial *c, int budget, const struct sh_replay_sums *sums)
{
    struct sh_replay_sums bound;
    double worst = -INFINITY;
    sh_replay_bound_sums(c->bound, budget, &bound);
    for (int f = SH_KEPT_MASS; f <= SH_PIVOTAL_RECALL; f++) {
        if (bound.rows[f] != sums->rows[f])
            return INFINITY;
        if (bound.rows[f])
            worst = fmax(worst, (sums->sum[f] - bound.sum[f]) / (double)bound.rows[f]);
    }
    return worst;
}

/* The worst difference of a figure's mean, over the budgets. */
static double differ(const struct sh_replay_sums *a, const struct sh_replay_sums *b)
{
    double worst = 0;
    for (int f = 0; f < SH_N_REPLAY_FIGURE; f++) {
        if (f == SH_OUTPUT_ERROR)
            continue;
        if (a->rows[f] != b->rows[f])
            return INFINITY;
        if (a->rows[f])
            worst = fmax(worst, fabs(a->sum[f] - b->sum[f]) / (double)a->rows[f] / (f == SH_OCCUPANCY ? 100 : 1));
    }
    return a->peak_tokens == b->peak_tokens && a->policy_bytes == b->policy_bytes ? worst : INFINITY;
}

static double compare(const struct trial *c, const struct sh_policy_spec *spec)
{
    int n = c->setup.n_token, first = sh_policy_least_budget(spec), n_cell = n + 2 - first;
    if (n_cell < 1)
        return 0;
    struct sh_replay_cell *cell = xmalloc((size_t)n_cell * sizeof *cell);
    for (int i = 0; i < n_cell; i++)
        cell[i] = (struct sh_replay_cell){spec, first + i};
    const struct sh_policy_spec *specs[2] = {spec, spec};
    struct sh_replay *r = sh_replay_new(&c->setup, cell, n_cell);
    struct sh_replay_stack *s = sh_replay_stack_new(&c->setup, specs, 2);
    double worst = 0;
    for (int t = 0; t < n; t++) {
        const float *rows[MAX_GROUP];
        rows_of(c, t, rows);
        CU_ASSERT_EQUAL_FATAL(sh_replay_row(r, t, start_of(c, t), rows, &e), 0);
        CU_ASSERT_EQUAL_FATAL(sh_replay_stack_row(s, t, start_of(c, t), rows, &e), 0);
        if (t + 1 < n && t % 23)
            continue;
        for (int i = 0; i < n_cell; i++) {              /* also on the way */
            struct sh_replay_sums sums;
            sh_replay_stack_sums(s, t % 2, first + i, &sums);
            worst = fmax(worst, differ(sh_replay_sums(r, i), &sums));
            if (t + 1 == n)
                worst = fmax(worst, above_bound(c, first + i, &sums));
        }
    }
    sh_replay_free(r);
    sh_replay_stack_free(s);
    free(cell);
    return worst;
}

/* Is there anything that keeps this policy from running here? */
static int can_run(const struct trial *c, const struct sh_policy_spec *spec)
{
    int has_prompt = c->setup.prefill > 0 || !(spec->policy->needs & SH_NEEDS_PROMPT);
    return has_prompt && sh_replay_stack_can(&c->setup, spec);
}

static void set(struct sh_policy_spec *spec, const char *name, double value)
{
    for (int i = 0; spec->policy->knobs && spec->policy->knobs[i].name; i++)
        if (!strcmp(spec->policy->knobs[i].name, name) && value >= spec->policy->knobs[i].min)
            spec->knob[i] = value;
}

static int check_spec(const struct trial *c, struct sh_policy_spec spec)
{
    char knobs[SH_POLICY_TEXT];
    int done = 0;
    for (int protected = 0; protected < 2; protected++) {
        set(&spec, "sinks", protected ? 2 : 0);
        set(&spec, "recent", protected ? 3 : 0);
        if (!can_run(c, &spec))
            continue;
        double off = compare(c, &spec);
        if (!(off < 1e-6))
            printf("# %s:%s, %d tokens, group %d, window %d, prefill %d: off by %g\n", spec.policy->name,
                   sh_policy_knobs(&spec, knobs), c->setup.n_token, c->setup.group, c->setup.window,
                   c->setup.prefill, off);
        CU_ASSERT(off < 1e-6);
        done++;
    }
    return done;
}

/* Every policy, every value of each named knob; numbers as they are but for a few that fit short texts. */
static int check_all(struct trial *c)
{
    int done = 0;
    bound_rows(c);
    for (int p = 0; sh_policies[p]; p++) {
        struct sh_policy_spec spec;
        CU_ASSERT_EQUAL_FATAL(sh_policy_parse(sh_policies[p]->name, &spec, &e), 0);
        set(&spec, "drop", 1);
        set(&spec, "window", 17);
        set(&spec, "kernel", 1);
        const struct sh_knob *knobs = sh_policies[p]->knobs;
        done += check_spec(c, spec);
        for (int i = 0; knobs && knobs[i].name; i++)
            for (int v = 0; knobs[i].names && knobs[i].names[v]; v++) {
                struct sh_policy_spec other = spec;
                other.knob[i] = v;
                for (int k = 0; knobs[k].name; k++)     /* every pair of named values */
                    for (int u = 0; k > i && knobs[k].names && knobs[k].names[u]; u++) {
                        struct sh_policy_spec two = other;
                        two.knob[k] = u;
                        done += check_spec(c, two);
                    }
                done += check_spec(c, other);
            }
    }
    return done;
}

static void check_case(enum kind kind, int n, int group, int window, int prefill)
{
    struct trial c;
    make(&c, kind, n, group, window, prefill);
    CU_ASSERT(check_all(&c) >= 10);
    clear(&c);
}

static void every_length(void)
{
    for (int n = 1; n < 24; n++)
        check_case(n % 2 ? RANDOM : TIED, n, 1, 0, 0);
    check_case(SINKS, 64, 1, 0, 0);
    check_case(TIED, 65, 1, 0, 0);
    check_case(RANDOM, 129, 1, 0, 0);
}

static void every_kind(void)
{
    for (int kind = 0; kind < N_KIND; kind++) {
        check_case((enum kind)kind, 75, 1, 0, 0);
        check_case((enum kind)kind, 41, 4, 0, 0);
    }
}

static void windows_and_prompts(void)
{
    check_case(RANDOM, 70, 1, 20, 0);
    check_case(TIED, 70, 4, 64, 0);
    check_case(SINKS, 50, 1, 1, 0);
    for (int prefill = 1; prefill < 60; prefill = 3 * prefill + 1)
        for (int window = 0; window < 60; window += 25)
            check_case(prefill % 2 ? TIED : SINKS, 50, window ? 4 : 1, window, prefill);
    check_case(RANDOM, 30, 1, 0, 40);
}

static int downwards(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* What key j of row t is worth in a figure: replay.h, each query head by itself, then their mean. */
static double worth_of(const struct trial *c, int t, int j, int f, int *is_defined)
{
    double sum = 0;
    int n = 0;
    for (int g = 0; g < c->setup.group; g++) {
        const float *row = c->rows[g] + (size_t)t * (size_t)c->setup.n_token;
        double whole = 0;
        int is_left_out = f == SH_KEPT_MASS_NO_SINK && (j < SH_REPLAY_SINKS || j == t);
        double limit = 1.0 / (t + 1 - start_of(c, t));
        for (int i = start_of(c, t); i <= t; i++)
            if (f != SH_KEPT_MASS_NO_SINK || (i >= SH_REPLAY_SINKS && i != t))
                whole += f == SH_PIVOTAL_RECALL ? (double)row[i] > limit : (double)row[i];
        n += whole > 1e-6;
        if (whole > 1e-6 && !is_left_out)
            sum += (f == SH_PIVOTAL_RECALL ? (double)row[j] > limit : (double)row[j]) / whole;
    }
    *is_defined |= n > 0;
    return n ? sum / n : 0;
}

static void search_rows(struct trial *c)
{
    int n = c->setup.n_token;
    double *key = xcalloc((size_t)n, sizeof *key), *want = xcalloc((size_t)n + 1, sizeof *want), off = 0;
    bound_rows(c);
    for (int f = SH_KEPT_MASS; f <= SH_PIVOTAL_RECALL; f++) {
        long long rows = 0;
        memset(want, 0, ((size_t)n + 1) * sizeof *want);
        for (int t = 0; t < n; t++) {
            int is_defined = 0, first = start_of(c, t), seen = t - first;
            for (int j = first; j < t; j++)
                key[j - first] = worth_of(c, t, j, f, &is_defined);
            double sum = worth_of(c, t, t, f, &is_defined);
            qsort(key, (size_t)seen, sizeof *key, downwards);
            for (int budget = 1; budget <= n; budget++) {
                int most = t < c->setup.prefill ? seen : budget - 1;
                double best = sum;
                for (int i = 0; i < seen && i < most; i++)
                    best += key[i];
                want[budget] += best;
            }
            rows += is_defined;
        }
        for (int budget = 1; budget <= n; budget++) {
            struct sh_replay_sums sums;
            sh_replay_bound_sums(c->bound, budget, &sums);
            CU_ASSERT_EQUAL(sums.rows[f], rows);
            off = fmax(off, fabs(sums.sum[f] - want[budget]));
        }
    }
    CU_ASSERT(off < 1e-6 * n);
    free(key);
    free(want);
    clear(c);
}

static void bound_by_search(void)
{
    static const struct { int n, group, window, prefill; } shapes[] = {{1, 1, 0, 0}, {5, 1, 0, 0}, {70, 1, 0, 0},
        {60, 4, 0, 0}, {60, 1, 13, 0}, {60, 3, 2, 9}, {60, 1, 0, 25}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int kind = 0; kind < N_KIND; kind++) {
            struct trial c;
            make(&c, (enum kind)kind, shapes[i].n, shapes[i].group, shapes[i].window, shapes[i].prefill);
            search_rows(&c);
        }
}

static int has_single_pass(const char *policy, enum sh_rows rows)
{
    struct sh_policy_spec spec;
    struct sh_replay_setup setup = {.n_token = 9, .group = 1, .rows = rows, .n_layer = 1};
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse(policy, &spec, &e), 0);
    return sh_replay_stack_can(&setup, &spec);
}

static void refusals(void)
{
    CU_ASSERT(has_single_pass("h2o", SH_ROWS_RECORDED) && !has_single_pass("h2o", SH_ROWS_RENORMALISED));
    CU_ASSERT(!has_single_pass("full", SH_ROWS_RECORDED));
    CU_ASSERT(!has_single_pass("scissorhands:drop=4,threshold=i", SH_ROWS_RECORDED));
    CU_ASSERT(!has_single_pass("scissorhands:drop=1,threshold=n", SH_ROWS_RECORDED));
    struct sh_policy_spec spec;
    const struct sh_policy_spec *specs = &spec;
    struct sh_replay_setup setup = {.n_token = 3, .group = 1, .rows = SH_ROWS_RECORDED, .n_layer = 1};
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse("h2o", &spec, &e), 0);
    struct sh_replay_stack *s = sh_replay_stack_new(&setup, &specs, 1);
    struct sh_replay_bound *b = sh_replay_bound_new(&setup);
    const float good = 1, bad[2] = {0.5f, 0.4f}, *rows = &good;
    CU_ASSERT_EQUAL(sh_replay_stack_row(s, 0, 0, &rows, &e) | sh_replay_bound_row(b, 0, 0, &rows, &e), 0);
    rows = bad;
    CU_ASSERT_EQUAL(sh_replay_stack_row(s, 1, 0, &rows, &e), -1);
    CU_ASSERT_STRING_EQUAL(e.text, "row 1 sums to 0.9, expected 1");
    CU_ASSERT_EQUAL(sh_replay_bound_row(b, 1, 0, &rows, &e), -1);
    sh_replay_stack_free(s);
    sh_replay_bound_free(b);
}

static void long_text(void)
{
    struct trial c;
    make(&c, SINKS, 200, 1, 0, 0);
    CU_ASSERT(check_all(&c) >= 10);
    clear(&c);
}

struct portable_trial {
    struct sh_budget_list list;
    float *lately[SH_N_LINEAR];
};

static void begin_portable(struct portable_trial *p, int most, const int64_t *pair)
{
    sh_budget_list_begin(&p->list, most);
    sh_budget_list_start(&p->list, 0, 0, pair);
    for (int f = 0; f < SH_N_LINEAR; f++)
        p->lately[f] = xcalloc((size_t)p->list.room, sizeof(float));
}

/* Ranks with ties, the lowest and the highest ones; rows with zeros. */
static void draw_row(int64_t *pair, int64_t *rest, int t)
{
    for (int i = 1; i <= t + 1; i++) {
        uint64_t at = (uint64_t)t * 4096 + (uint64_t)i;
        double u = sh_rng_uniform(5, at), v = sh_rng_uniform(6, at);
        int64_t rank = u < 0.05 ? INT32_MAX : u < 0.1 ? INT32_MIN : (int64_t)(1000 * u) - 500;
        float x = v < 0.2 ? 0 : (float)v, y = (float)u;
        pair[i] = rank * ((int64_t)1 << 32) + sh_bits(x);
        rest[i] = (int64_t)((uint64_t)sh_bits(y) << 32 | sh_bits(x));
    }
}

/* On a machine with AVX-512 these are two programs. */
static void portable_walk(void)
{
    enum { N = 700, MOST = 600 };
    int64_t *pair = xcalloc(N + 2, sizeof *pair), *rest = xcalloc(N + 2, sizeof *rest);
    int64_t *seen = xcalloc(SH_LIST_RUN, sizeof *seen);
    pair[0] = SH_PAIR_EMPTY;
    for (int in_group = 0; in_group < 2; in_group++) {
        struct portable_trial a, b;
        begin_portable(&a, MOST, pair);
        begin_portable(&b, MOST, pair);
        for (int t = 0; t < N; t++) {
            struct sh_list_row row = {.pair = pair, .rest = in_group ? rest : NULL, .mass = 0.9f, .no_sink = 1.1f,
                                      .pivotal = 0.3f, .limit = 0.5f, .self = t + 1, .seen = seen};
            int next = t % 50 == 49 ? -1 : t + 1 - t / 50;              /* now and then none comes */
            draw_row(pair, rest, t);
            sh_list_walk(&a.list, a.lately, &row, next);
            sh_list_walk_portable(&b.list, b.lately, &row, next);
        }
        CU_ASSERT(a.list.n == b.list.n && a.list.n == MOST);
        CU_ASSERT(!memcmp(a.list.token, b.list.token, (size_t)a.list.room * sizeof *a.list.token));
        for (int f = 0; f < SH_N_LINEAR; f++) {
            CU_ASSERT(a.lately[f][0] > 0);
            CU_ASSERT(!memcmp(a.lately[f], b.lately[f], (size_t)a.list.room * sizeof(float)));
            free(a.lately[f]);
            free(b.lately[f]);
        }
        sh_budget_list_end(&a.list);
        sh_budget_list_end(&b.list);
    }
    free(pair);
    free(rest);
    free(seen);
}

int main(void)
{
    static const struct tap_test tests[] = {{"all budgets in one pass, every length", every_length},
                                            {"… rows of every kind, groups of heads", every_kind},
                                            {"… windowed layers, prompts", windows_and_prompts},
                                            {"… 200 tokens", long_text},
                                            {"the bound that readmits equals a search", bound_by_search},
                                            {"a list is walked alike on every machine", portable_walk},
                                            {"no single pass, and rows that do not sum to 1", refusals},
                                            {NULL, NULL}};
    return tap_run("replay_stack", tests);
}
