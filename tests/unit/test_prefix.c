/* SPDX-License-Identifier: Apache-2.0 */
/* The prefix cache against a second one in Python (tests/golden/prefix.json, made by tests/oracle/prefix.py), request
 * by request; what is held by running requests; and its place in the two simulators. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "planner/simulate/closed_loop.h"
#include "planner/simulate/prefix_cache.h"
#include "planner/simulate/simulate.h"
#include "src/base/mem.h"
#include "tests/tap.h"

static struct sh_err e;

static double number(const json_t *list, size_t i)
{
    return json_number_value(json_array_get(list, i));
}

/* One block has one byte. */
static struct sh_prefix_ask sizes(uint32_t block, double gpu, double host, double disk)
{
    return (struct sh_prefix_ask){block, 1, {gpu, host, disk}, {0, 4, 2}};
}

static void same_hits(const json_t *c)
{
    const json_t *size = json_object_get(c, "sizes"), *requests = json_object_get(c, "requests"), *r;
    uint32_t block = (uint32_t)json_integer_value(json_object_get(c, "block"));
    struct sh_prefix_ask a = sizes(block, number(size, 0), number(size, 1), number(size, 2));
    struct sh_prefix_cache p;
    struct sh_prefix_use u = {0};
    struct sh_keys k = {0};
    size_t i;
    sh_prefix_open(&p, &a, 1, INFINITY);
    json_array_foreach(requests, i, r) {
        uint32_t tokens = (uint32_t)number(r, 0), n = 0;
        const json_t *text = json_array_get(r, 1), *hits = json_array_get(json_object_get(c, "hits"), i);
        uint64_t *id = xcalloc(json_array_size(text) + 1, sizeof *id);
        for (; n < json_array_size(text); n++)
            id[n] = (uint64_t)number(text, n);
        k.n = 0;
        sh_keys_pieces(&k, block, block, id, n, tokens);
        sh_prefix_name(&u, k.at, k.n);
        struct sh_prefix_match m = sh_prefix_match(&p, &u, tokens);
        double s = sh_prefix_take(&p, &u, tokens, &m);
        for (int t = 0; t < SH_N_TIER; t++)
            CU_ASSERT(m.at[t] == (uint32_t)number(hits, (size_t)t));
        CU_ASSERT(m.fresh == m.n && fabs(s - (m.at[SH_TIER_HOST] / 4.0 + m.at[SH_TIER_DISK] / 2.0)) < 1e-12);
        sh_prefix_reach(&p, &u, tokens);
        CU_ASSERT(u.held == k.n && p.n_held == k.n);
        sh_prefix_release(&p, &u);
        sh_prefix_fit(&p, INFINITY);
        CU_ASSERT(!p.n_held && p.tier[0].n <= number(size, 0) && p.tier[1].n <= number(size, 1));
        free(id);
    }
    free(k.at);
    sh_prefix_drop(&u);
    sh_prefix_clear(&p);
}

static void hits(void)
{
    json_t *golden = json_load_file(tap_golden("prefix.json"), 0, NULL), *c;
    size_t i;
    CU_ASSERT_FATAL(golden != NULL);
    json_array_foreach(json_object_get(golden, "cases"), i, c)
        same_hits(c);
    CU_ASSERT(i == 10);
    json_decref(golden);
}

/* Two requests with the same text: its blocks count once, stay while one of them runs, and then go, the last first. */
static void held(void)
{
    struct sh_prefix_ask a = sizes(1, 2, 0, 0);
    struct sh_prefix_cache p;
    struct sh_prefix_use x = {0}, y = {0};
    const uint64_t key[4] = {5, 6, 7, 8};
    sh_prefix_open(&p, &a, 1, INFINITY);
    sh_prefix_name(&x, key, 4);
    sh_prefix_name(&y, key, 4);
    struct sh_prefix_match m = sh_prefix_match(&p, &x, 5);
    CU_ASSERT(!m.n && sh_prefix_take(&p, &x, 5, &m) <= 0);
    sh_prefix_reach(&p, &x, 3);
    m = sh_prefix_match(&p, &y, 5);
    CU_ASSERT(m.n == 3 && !m.fresh);
    sh_prefix_take(&p, &y, 5, &m);
    sh_prefix_reach(&p, &y, 5);
    sh_prefix_fit(&p, 0);
    CU_ASSERT(p.n_held == 4);
    sh_prefix_release(&p, &x);
    CU_ASSERT(p.n_held == 4 && !p.tier[0].n);
    sh_prefix_release(&p, &y);
    CU_ASSERT(!p.n_held && p.tier[0].n == 4);
    sh_prefix_fit(&p, INFINITY);
    CU_ASSERT(sh_prefix_match(&p, &x, 5).n == 2);
    CU_ASSERT(sh_prefix_match(&p, &x, 2).n == 1);       /* one token is left to read */
    sh_prefix_fit(&p, 1.5);
    CU_ASSERT(sh_prefix_match(&p, &x, 5).n == 1);
    sh_prefix_drop(&x);
    sh_prefix_drop(&y);
    sh_prefix_clear(&p);
}

/* Blocks within the pieces that a file names, and of several of them. */
static void pieces(void)
{
    static const uint64_t a[4] = {1, 2, 3, 4}, b[4] = {1, 2, 9, 4};
    struct sh_keys x = {0}, y = {0};
    sh_keys_pieces(&x, 128, 512, a, 4, 1800);
    sh_keys_pieces(&y, 128, 512, b, 4, 1800);
    CU_ASSERT(x.n == 1800 / 128 && y.n == x.n);
    for (uint32_t i = 0; i < x.n; i++)
        CU_ASSERT((x.at[i] == y.at[i]) == (i < 8));
    x.n = y.n = 0;
    sh_keys_pieces(&x, 1024, 512, a, 4, 2048);
    sh_keys_pieces(&y, 1024, 512, b, 4, 2047);
    CU_ASSERT(x.n == 2 && y.n == 1 && x.at[0] == y.at[0]);
    free(x.at);
    free(y.at);
}

/* ---- in the simulators ---- */

static struct sh_kv_shape shape;
static struct sh_capacity_ask ask;

static void open_model(double pool)
{
    struct sh_kv_facts f;
    if (!shape.f.layers)
        CU_ASSERT_FATAL(!sh_kv_facts_row("dense layers=4 hidden=512 heads=8 kv_heads=4 head_dim=64 ffn=1024 vocab=1000 "
                                         "max_pos=65536 gated", "here", &f, &e) && !sh_kv_shape_build(&f, &shape, &e));
    ask = (struct sh_capacity_ask){.shape = &shape, .tp = 1, .pp = 1, .ep = 1, .util = 1, .length = 1,
                                   .rule = {.page = 16}, .bandwidth = 1e12, .peak = 1e14};
    CU_ASSERT_FATAL(!sh_kv_type_parse("f16", &ask.rule.k, &e) && !sh_kv_type_parse("f16", &ask.weights.matrices, &e));
    ask.rule.v = ask.rule.k;
    ask.weights.experts = ask.weights.matrices;
    struct sh_capacity c;
    ask.memory = (uint64_t)1 << 40;
    CU_ASSERT_FATAL(!sh_capacity(&ask, &c, &e));
    ask.memory -= c.room - (uint64_t)pool;
}

enum { TOKEN = 4 * 4 * 64 * 2 * 2 };    /* bytes of a token's cache */

/* Requests of 100 tokens that arrive one after the other has ended, all with the same 64 first ones. */
static struct sh_sim_result *open_loop(double pool, double rate, uint32_t prefix, struct sh_prefix_ask a, double share)
{
    static const struct sh_sim_efficiency bound = {1, 1, 1, 1, 1, 0};
    struct sh_workload_random w = {.prompt = {SH_SPREAD_FIXED, 100, 0}, .output = {SH_SPREAD_FIXED, 20, 0},
                                   .prefixes = 1, .prefix_tokens = prefix};
    struct sh_sim_ask q = {.step_tokens = 64, .max_running = 64, .slo_ttft_s = 1, .slo_tpot_s = 1, .speed = 1,
                           .prefix = a};
    struct sh_sim_result *r = xmalloc(sizeof *r);
    struct sh_sim_cost cost;
    open_model(pool);
    if (share > 0) {
        ask.rule.budget = SH_BUDGET_SHARE;
        ask.rule.share = share;
    }
    CU_ASSERT_FATAL(!sh_sim_cost(&ask, &bound, &cost, &e));
    sh_workload_random(&w, rate, 200, 3);
    int bad = sh_simulate(&q, &cost, &w.base, r, &e);
    if (bad)
        printf("# %s\n", e.text);
    CU_ASSERT_FATAL(!bad);
    sh_sim_cost_clear(&cost);
    free(w.keys.at);
    return r;
}

static void in_open_loop(void)
{
    const struct sh_prefix_ask all = {16, 1, {INFINITY, 0, 0}, {0}}, none = {0};
    struct sh_sim_result *plain = open_loop(1e9, 0.1, 64, none, 0), *cached = open_loop(1e9, 0.1, 64, all, 0);
    CU_ASSERT(!plain->tokens_reused && cached->tokens_reused == 199 * 64 && cached->prefix.hit[0] == 199 * 4);
    CU_ASSERT(cached->prefix.asked == 200 * 6 && cached->prefix.room == (uint64_t)(1e9 / (16 * TOKEN)));
    CU_ASSERT(cached->tokens_fed == plain->tokens_fed - cached->tokens_reused);
    CU_ASSERT(cached->ttft.least < plain->ttft.least && cached->steps == plain->steps - 199);
    free(cached);
    cached = open_loop(1e9, 0.1, 0, all, 0);            /* nobody begins alike: as without, but for the blocks kept */
    CU_ASSERT(!cached->tokens_reused && cached->ttft.sum == plain->ttft.sum && cached->end_s == plain->end_s);
    free(cached);
    cached = open_loop(1e9, 0.1, 64, (struct sh_prefix_ask){16, 0, {INFINITY, 0, 0}, {0}}, 0);
    CU_ASSERT(!cached->tokens_reused && cached->ttft.sum == plain->ttft.sum);   /* no room, no two at once */
    free(cached);
    free(plain);
}

/* All at once, with memory for a few: what is shared leaves room for more of them. */
static void crowded(void)
{
    const struct sh_prefix_ask all = {16, 1, {INFINITY, 0, 0}, {0}}, none = {0};
    double pool = 600.0 * TOKEN;
    struct sh_sim_result *plain = open_loop(pool, 1e6, 64, none, 0), *cached = open_loop(pool, 1e6, 64, all, 0);
    CU_ASSERT(plain->largest_batch <= 6 && cached->largest_batch >= 9);
    CU_ASSERT(cached->end_s < plain->end_s && cached->occupancy_peak <= 1);
    free(cached);
    cached = open_loop(pool, 1e6, 64, all, 0.25); /* a budget: whole blocks while the prompt is read, then a copy */
    CU_ASSERT(cached->finished == 200 && cached->tokens_reused > 150 * 64 && cached->occupancy_peak <= 1);
    free(cached);
    free(plain);
}

/* From the host at a bandwidth: as from a larger GPU at an infinite one, and later by the bytes over it otherwise. */
static void tiers(void)
{
    double blocks = 16.0 * TOKEN;
    struct sh_prefix_ask host = {16, 1, {0, 4 * blocks, 0}, {0, INFINITY, 0}}, gpu = {16, 1, {4 * blocks, 0, 0}, {0}};
    struct sh_sim_result *x = open_loop(1e9, 1e-3, 64, gpu, 0), *y = open_loop(1e9, 1e-3, 64, host, 0);
    CU_ASSERT(x->tokens_reused == 199 * 64 && y->tokens_reused == x->tokens_reused && x->ttft.sum == y->ttft.sum);
    CU_ASSERT(y->prefix.hit[SH_TIER_HOST] == 199 * 4 && !y->prefix.hit[SH_TIER_GPU]);
    free(y);
    host.bandwidth[SH_TIER_HOST] = 1e6;
    y = open_loop(1e9, 1e-3, 64, host, 0);
    CU_ASSERT(fabs(y->ttft.sum - x->ttft.sum - 199 * 4 * blocks / 1e6) < 1e-6);
    free(x);
    free(y);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"hits of each tier as Python has them", hits},
        {"what is held stays and counts once", held},
        {"blocks within pieces and of several", pieces},
        {"the open loop reads what is new", in_open_loop},
        {"sharing leaves room", crowded},
        {"tiers: as one cache, and later by their bandwidth", tiers},
        {NULL, NULL}};
    int status = tap_run("prefix", tests);
    sh_kv_shape_clear(&shape);
    return status;
}
