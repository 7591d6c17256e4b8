/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that share several servers through a router, or have prompts and answers on different ones, with prefix
 * caches, against a second simulator in Python (tests/golden/replicas.json, made by tests/oracle/replicas.py); and
 * limits that must hold. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/clock/step_time.h"
#include "planner/simulate/closed_loop.h"
#include "planner/simulate/split_loop.h"
#include "src/base/mem.h"
#include "tests/tap.h"

static struct sh_err e;
static json_t *golden;

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static struct sh_kv_shape shape;
static struct sh_engine engine;
static struct sh_capacity_ask ask;
static struct sh_clock rate;

static void open_server(const json_t *c, const char *name)
{
    const char *rows[64] = {NULL};
    const json_t *profile = json_object_get(json_object_get(golden, "profiles"), name), *row;
    size_t i;
    struct sh_kv_facts f;
    struct sh_gpu gpu;
    json_array_foreach(profile, i, row)
        rows[i] = json_string_value(row);
    sh_kv_shape_clear(&shape);
    CU_ASSERT_FATAL(!sh_kv_facts_row(text(c, "model"), "here", &f, &e) && !sh_kv_shape_build(&f, &shape, &e) &&
                    !sh_engine_read(rows, "here", &engine, &e) && !sh_gpu_row(text(c, "gpu"), "here", &gpu, &e));
    ask = (struct sh_capacity_ask){.shape = &shape, .tp = 1, .pp = 1, .ep = 1, .util = 1, .length = 1,
                                   .rule = {.page = 1}, .bandwidth = gpu.gbps * 1e9};
    CU_ASSERT_FATAL(!sh_kv_type_parse("f16", &ask.rule.k, &e));
    ask.rule.v = ask.rule.k;
    ask.weights.matrices = ask.weights.experts = ask.rule.k;
    CU_ASSERT_FATAL(!sh_clock(&engine, &gpu, &ask, &(struct sh_clock_layout){1, 1, 1, 1}, &rate, &e));
}

/* Requests of a case, each [prompt, output, text, tokens of that text]: a block of the text, or one of its own. */
struct listed {
    struct sh_workload base;
    const json_t *all;
    size_t at;
    uint64_t key[4096];
};

static int next_listed(struct sh_workload *base, struct sh_request *out, struct sh_err *err)
{
    struct listed *w = (struct listed *)base;
    const json_t *q = json_array_get(w->all, w->at);
    double value[4];
    (void)err;
    if (!q)
        return 0;
    for (size_t i = 0; i < 4; i++)
        value[i] = json_number_value(json_array_get(q, i));
    *out = (struct sh_request){0, (uint32_t)value[0], (uint32_t)value[1]};
    base->n_key = base->block ? out->prompt / base->block : 0;
    for (uint32_t i = 0; i < base->n_key; i++)
        w->key[i] = (uint64_t)((i + 1) * base->block <= value[3] ? value[2] : 1000 + (double)w->at) * 1000 + i;
    base->key = w->key;
    w->at++;
    return 1;
}

static int differs(double found, double expected, double by)
{
    return !(fabs(found - expected) <= by * fabs(expected) + 1e-15);
}

static struct sh_loop_ask asked(uint32_t clients, uint32_t replicas, enum sh_router router)
{
    return (struct sh_loop_ask){.clock = &rate, .ask = &ask, .scheduler = engine.scheduler, .chunk = 1024,
                                .sequences = 256, .poll = 1, .concurrency = clients, .requests = 1000, .seed = 1,
                                .memory = 80e9, .replicas = replicas, .router = router};
}

/* Means, end and hits of a case. */
static void same(const json_t *c, const struct sh_loop_result *r)
{
    const double found[4] = {sh_quantile_mean(&r->ttft), sh_quantile_mean(&r->tpot), r->seconds,
                             (double)(r->prefix.hit[SH_TIER_GPU] + r->prefix.hit[SH_TIER_HOST])};
    static const char *const key[4] = {"ttft_s", "tpot_s", "end_s", "hits"};
    for (int k = 0; k < 4; k++) {
        int bad = differs(found[k], number(c, key[k]), k < 3 ? 1e-6 : 0);
        if (bad)
            printf("# %g clients, %s, %s: found %.9g, expected %.9g\n", number(c, "clients"), text(c, "engine"), key[k],
                   found[k], number(c, key[k]));
        CU_ASSERT(!bad);
    }
    CU_ASSERT(r->requests == json_array_size(json_object_get(c, "requests")) && r->ttft.n == r->requests);
}

static void cases(void)
{
    static const char *const routers[] = {"round-robin", "least-loaded", "prefix"};
    const json_t *c;
    size_t i;
    struct sh_loop_result *r = xmalloc(sizeof *r);
    struct listed *w = xcalloc(1, sizeof *w);
    json_array_foreach(json_object_get(golden, "cases"), i, c) {
        int router = 0;
        while (router < 3 && strcmp(routers[router], text(c, "router")))
            router++;
        CU_ASSERT_FATAL(router < 3);
        open_server(c, text(c, "engine"));
        *w = (struct listed){.base.next = next_listed, .all = json_object_get(c, "requests")};
        struct sh_loop_ask a = asked((uint32_t)number(c, "clients"), (uint32_t)number(c, "servers"),
                                     (enum sh_router)router);
        a.workload = &w->base;
        a.prefix = (struct sh_prefix_ask){(uint32_t)number(c, "block"), 1, {INFINITY, 0, 0}, {0}};
        CU_ASSERT_FATAL(!sh_closed_loop(&a, r, &e));
        same(c, r);
    }
    CU_ASSERT(i == 54);
    free(w);
    free(r);
}

/* Prompts on some workers, answers on others. Blocks that take time to load are the host's, if nobody holds them. */
static void apart(void)
{
    const json_t *c;
    size_t i;
    struct sh_loop_result *r = xmalloc(sizeof *r), *one = xmalloc(sizeof *one);
    struct listed *w = xcalloc(1, sizeof *w);
    json_array_foreach(json_object_get(golden, "apart"), i, c) {
        open_server(c, text(c, "engine"));
        *w = (struct listed){.base.next = next_listed, .all = json_object_get(c, "requests")};
        struct sh_split_ask a = {.loop = asked((uint32_t)number(c, "clients"), 0, SH_ROUTE_IN_TURN), .prefill = &rate,
                                 .prefill_ask = &ask, .n_prefill = (uint32_t)number(c, "readers"),
                                 .n_decode = (uint32_t)number(c, "writers"), .transfer = number(c, "bandwidth")};
        a.loop.workload = &w->base;
        double block = number(c, "block"), load = number(c, "load_s");
        a.loop.prefix = (struct sh_prefix_ask){(uint32_t)block, 1, {INFINITY, 0, 0}, {0}};
        if (load > 0) {
            a.loop.prefix.bytes[SH_TIER_GPU] = 0;
            a.loop.prefix.bytes[SH_TIER_HOST] = 1e15;
            a.loop.prefix.bandwidth[SH_TIER_HOST] = block * (double)sh_split_cache(&ask, 0, 1).token / load;
        }
        CU_ASSERT_FATAL(!sh_split_loop(&a, r, &e));
        same(c, r);
        if (a.loop.concurrency > 1 || a.transfer < 1e12)
            continue;
        w->at = 0;                      /* one client, nothing to wait for: as on one server      */
        CU_ASSERT(!sh_closed_loop(&a.loop, one, &e) && !differs(one->ttft.sum, r->ttft.sum, 1e-9) &&
                  one->tokens_reused == r->tokens_reused);
    }
    CU_ASSERT(i == 30);
    free(w);
    free(r);
    free(one);
}

static const char *const engines[] = {"vllm", "sglang", "trtllm"};

static int is_close(const struct sh_quantile *x, const struct sh_quantile *y)
{
    return !differs(sh_quantile_mean(x), sh_quantile_mean(y), 1e-12) && !differs(x->largest, y->largest, 1e-12) &&
           !differs(x->least, y->least, 1e-12);
}

/* Three replicas in turn and three times as many clients that all ask for the same: each is as one server. */
static void alike(void)
{
    struct sh_loop_result *one = xmalloc(sizeof *one), *three = xmalloc(sizeof *three);
    for (int i = 0; i < 3; i++) {
        open_server(json_array_get(json_object_get(golden, "cases"), 0), engines[i]);
        for (uint32_t clients = 1; clients < 20; clients += 6) {
            struct sh_loop_ask a = asked(clients, 0, SH_ROUTE_IN_TURN), b = asked(3 * clients, 3, SH_ROUTE_IN_TURN);
            a.prompt = b.prompt = (struct sh_lengths){SH_SPREAD_FIXED, 700, 0};
            a.output = b.output = (struct sh_lengths){SH_SPREAD_FIXED, 60, 0};
            a.requests = 10 * clients;
            b.requests = 3 * a.requests;
            CU_ASSERT_FATAL(!sh_closed_loop(&a, one, &e) && !sh_closed_loop(&b, three, &e));
            CU_ASSERT(three->requests == 3 * one->requests && three->steps == 3 * one->steps);
            CU_ASSERT(is_close(&one->ttft, &three->ttft) && is_close(&one->tpot, &three->tpot));
            CU_ASSERT(!differs(three->seconds, one->seconds, 1e-12) && !differs(three->busy_s, one->busy_s, 1e-12));
            CU_ASSERT(three->most_running == one->most_running && three->tokens_out == 3 * one->tokens_out);
        }
    }
    free(one);
    free(three);
}

/* One replica is a server without a router, whatever the router; a client alone waits for nobody on any of them. */
static void single(void)
{
    struct sh_loop_result *one = xmalloc(sizeof *one), *same = xmalloc(sizeof *same);
    for (int i = 0; i < 3; i++) {
        open_server(json_array_get(json_object_get(golden, "cases"), 0), engines[i]);
        for (uint32_t clients = 1; clients < 20; clients += 6) {
            struct sh_loop_ask a = asked(clients, 0, SH_ROUTE_IN_TURN);
            a.prompt = (struct sh_lengths){SH_SPREAD_UNIFORM, 10, 3000};
            a.output = (struct sh_lengths){SH_SPREAD_UNIFORM, 1, 200};
            CU_ASSERT_FATAL(!sh_closed_loop(&a, one, &e));
            for (a.replicas = 1; a.replicas <= (clients == 1 ? 3 : 1); a.replicas++)
                for (int router = 0; router < 3; router++) {
                    a.router = (enum sh_router)router;
                    CU_ASSERT_FATAL(!sh_closed_loop(&a, same, &e));
                    CU_ASSERT(is_close(&one->ttft, &same->ttft) && is_close(&one->tpot, &same->tpot));
                    CU_ASSERT(!differs(one->seconds, same->seconds, 1e-12) && one->steps == same->steps);
                }
        }
    }
    free(one);
    free(same);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"means, end and hits as a simulator that goes token by token", cases},
        {"the same with prompts and answers on different servers", apart},
        {"replicas in turn with as many clients each", alike},
        {"one replica, or one client", single},
        {NULL, NULL}};
    golden = json_load_file(tap_golden("replicas.json"), 0, NULL);
    if (!golden)
        return 99;
    int status = tap_run("replicas", tests);
    sh_kv_shape_clear(&shape);
    json_decref(golden);
    return status;
}
