/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of engines and the closed loop against second ones in Python (tests/golden/clock.json, made by
 * tests/oracle/clock.py), term by term; the built-in engines; profiles that are wrong. */
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
static json_t *reference;

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static int whole(const json_t *o, const char *key)
{
    return (int)json_integer_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

struct server {
    struct sh_kv_shape shape;
    struct sh_engine engine;
    struct sh_gpu gpu;
    struct sh_capacity_ask ask;
    struct sh_clock clock;
};

static void open_server(const json_t *c, struct server *s)
{
    const char *rows[64] = {NULL};
    const json_t *profile = json_object_get(c, "profile"), *row;
    size_t i;
    struct sh_kv_facts f;
    json_array_foreach(profile, i, row)
        rows[i] = json_string_value(row);
    CU_ASSERT_FATAL(!sh_kv_facts_row(text(c, "model"), "here", &f, &e) && !sh_kv_shape_build(&f, &s->shape, &e) &&
                    !sh_engine_read(rows, "here", &s->engine, &e) && !sh_gpu_row(text(c, "gpu"), "here", &s->gpu, &e));
    s->ask = (struct sh_capacity_ask){.shape = &s->shape, .tp = whole(c, "tp"), .pp = 1, .ep = 1, .util = 1,
                                      .length = 1, .rule = {.page = 1}, .bandwidth = s->gpu.gbps * 1e9};
    CU_ASSERT_FATAL(!sh_kv_type_parse("f16", &s->ask.rule.k, &e) &&
                    !sh_kv_type_parse(text(c, "weights"), &s->ask.weights.matrices, &e) &&
                    !sh_kv_type_parse(text(c, "attention"), &s->ask.weights.attention, &e));
    s->ask.rule.v = s->ask.rule.k;
    s->ask.weights.experts = s->ask.weights.matrices;
    s->ask.lora = (struct sh_lora){(uint64_t)whole(c, "lora"), (uint64_t)whole(c, "rank")};
    struct sh_clock_layout l = {s->ask.tp, whole(c, "ep"), whole(c, "dp"), 1};
    CU_ASSERT_FATAL(!sh_clock(&s->engine, &s->gpu, &s->ask, &l, &s->clock, &e));
}

static int differs(double found, double expected, double by)
{
    return !(fabs(found - expected) <= by * fabs(expected) + 1e-15);
}

static const json_t *golden(void)
{
    if (!reference)
        reference = json_load_file(tap_golden("clock.json"), 0, NULL);
    CU_ASSERT_FATAL(reference != NULL);
    return reference;
}

/* Of a list of golden.json; how many. */
static size_t same_steps(const char *list)
{
    size_t i;
    const json_t *c;
    json_array_foreach(json_object_get(golden(), list), i, c) {
        struct server s;
        double term[SH_N_TERM], sum = 0;
        const json_t *w = json_object_get(c, "work"), *expected = json_object_get(c, "terms");
        open_server(c, &s);
        struct sh_clock_work k = {.decoding = number(w, "decoding"), .prompt_tokens = number(w, "prompt"),
                                  .logits = number(w, "logits"), .all_tokens = number(w, "all"),
                                  .all_sequences = number(w, "sequences"), .cache_bytes = number(w, "cache"),
                                  .decode_flops = number(w, "decode_flops"), .prompt_flops = number(w, "prompt_flops")};
        double all = sh_clock_step(&s.clock, &k, term);
        for (int t = 0; t < SH_N_TERM; t++) {
            double x = json_number_value(json_array_get(expected, (size_t)t));
            sum += x;
            if (differs(term[t], x, 1e-9))
                fprintf(stderr, "case %zu, %s: found %g, expected %g\n", i, sh_clock_term_names[t], term[t], x);
            CU_ASSERT(!differs(term[t], x, 1e-9));
        }
        CU_ASSERT(!differs(all, sum, 1e-9));
        sh_kv_shape_clear(&s.shape);
    }
    return i;
}

static void steps(void)
{
    CU_ASSERT(same_steps("steps") == 36);
}

static void adapters(void)
{
    CU_ASSERT(same_steps("adapters") == 32);
}

/* Of a list of golden.json; how many. */
static size_t same_loops(const char *list)
{
    size_t i;
    const json_t *c;
    struct sh_loop_result *r = xmalloc(sizeof *r);
    json_array_foreach(json_object_get(golden(), list), i, c) {
        struct server s;
        open_server(c, &s);
        struct sh_loop_ask a = {.clock = &s.clock, .ask = &s.ask, .scheduler = s.engine.scheduler,
                                .chunk = (uint32_t)whole(c, "chunk"), .sequences = 256, .poll = 1,
                                .concurrency = (uint32_t)whole(c, "clients"),
                                .requests = (uint64_t)whole(c, "requests"), .seed = 1, .memory = 80e9,
                                .prompt = {SH_SPREAD_FIXED, number(c, "prompt"), 0},
                                .output = {SH_SPREAD_FIXED, number(c, "output"), 0},
                                .draft = (uint32_t)whole(c, "draft"), .accept = number(c, "accept")};
        CU_ASSERT_FATAL(!sh_closed_loop(&a, r, &e));
        double ttft = sh_quantile_mean(&r->ttft), tpot = sh_quantile_mean(&r->tpot);
        if (differs(ttft, number(c, "ttft_s"), 1e-3) || differs(tpot, number(c, "tpot_s"), 1e-3))
            fprintf(stderr, "case %zu, %s: found %g and %g s, expected %g and %g\n", i,
                    sh_scheduler_names[a.scheduler], ttft, tpot, number(c, "ttft_s"), number(c, "tpot_s"));
        CU_ASSERT(!differs(ttft, number(c, "ttft_s"), 1e-3));
        CU_ASSERT(!differs(tpot, number(c, "tpot_s"), 1e-3));
        CU_ASSERT(r->requests == (uint64_t)whole(c, "requests") && r->ttft.n == r->requests);
        sh_kv_shape_clear(&s.shape);
    }
    free(r);
    return i;
}

static void loops(void)
{
    CU_ASSERT(same_loops("loops") == 90);
}

static void speculation(void)
{
    CU_ASSERT(same_loops("drafts") == 18);
}

/* Prompts on one server, answers on another. */
static void splits(void)
{
    size_t i;
    const json_t *c;
    struct sh_loop_result *r = xmalloc(sizeof *r);
    json_array_foreach(json_object_get(golden(), "splits"), i, c) {
        struct server s;
        open_server(c, &s);
        struct sh_capacity_ask read = s.ask;
        struct sh_clock prefill;
        read.tp = whole(c, "read_tp");
        CU_ASSERT_FATAL(!sh_clock(&s.engine, &s.gpu, &read, &(struct sh_clock_layout){read.tp, 1, 1, 1}, &prefill, &e));
        double bandwidth = number(c, "bandwidth");
        struct sh_split_ask a = {
            .loop = {.clock = &s.clock, .ask = &s.ask, .chunk = (uint32_t)whole(c, "chunk"), .sequences = 256,
                     .poll = 1, .concurrency = (uint32_t)whole(c, "clients"),
                     .requests = (uint64_t)whole(c, "requests"), .memory = 80e9,
                     .prompt = {SH_SPREAD_FIXED, number(c, "prompt"), 0},
                     .output = {SH_SPREAD_FIXED, number(c, "output"), 0}},
            .prefill = &prefill, .prefill_ask = &read, .n_prefill = (uint32_t)whole(c, "readers"),
            .n_decode = (uint32_t)whole(c, "writers"), .transfer = bandwidth > 0 ? bandwidth : (double)INFINITY};
        CU_ASSERT_FATAL(!sh_split_loop(&a, r, &e));
        double ttft = sh_quantile_mean(&r->ttft), tpot = sh_quantile_mean(&r->tpot);
        if (differs(ttft, number(c, "ttft_s"), 1e-3) || differs(tpot, number(c, "tpot_s"), 1e-3))
            fprintf(stderr, "case %zu: found %g and %g s, expected %g and %g\n", i, ttft, tpot, number(c, "ttft_s"),
                    number(c, "tpot_s"));
        CU_ASSERT(!differs(ttft, number(c, "ttft_s"), 1e-3));
        CU_ASSERT(!differs(tpot, number(c, "tpot_s"), 1e-3));
        CU_ASSERT(r->requests == (uint64_t)whole(c, "requests") && r->ttft.n == r->requests);
        if (i == 0) {                   /* one client, nothing to wait for: as on one server */
            struct sh_loop_result *one = xmalloc(sizeof *one);
            CU_ASSERT(!sh_closed_loop(&a.loop, one, &e) && !differs(one->ttft.sum, r->ttft.sum, 1e-9) &&
                      !differs(one->tpot.sum, r->tpot.sum, 1e-9));
            free(one);
        }
        sh_kv_shape_clear(&s.shape);
    }
    CU_ASSERT(i == 16);
    free(r);
}

static void built_in(void)
{
    struct sh_engine g, again;
    for (int i = 0; i < SH_N_SCHED; i++) {
        char *written;
        size_t bytes;
        const char *rows[128] = {NULL};
        CU_ASSERT_FATAL(!sh_engine_built_in(sh_scheduler_names[i], &g, &e));
        CU_ASSERT((int)g.scheduler == i && g.n_error > 0 && *g.release && *g.fitted);
        FILE *to = xmemstream(&written, &bytes);
        sh_engine_write(&g, "what it says", to);
        xmemclose(to, &written, &bytes);
        char *at = written;
        for (int n = 0; n < 127 && at; n++)
            rows[n] = strsep(&at, "\n");
        CU_ASSERT(!sh_engine_read(rows, "written", &again, &e));
        CU_ASSERT(fabs(again.constant[1][SH_CLOCK_layer] / g.constant[1][SH_CLOCK_layer] - 1) < 1e-5);
        CU_ASSERT(again.n_error == g.n_error && again.scheduler == g.scheduler);
        free(written);
    }
    CU_ASSERT(sh_engine_built_in("tgi", &g, &e) == -1 && strstr(e.text, "tgi"));
}

/* One row of a good profile replaced; the error names it. */
static void wrong(void)
{
    static const struct { int row; const char *text, *says; } bad[] = {
        {0, "engine\ttgi", "tgi"}, {0, "# nothing", "engine"}, {3, "rule\tchunk\t0\t1\t-\t-", "chunk"},
        {8, "constant\tdense_memory\t2\t0.5\t-\t-", "dense_memory"}, {8, "constant\tdense_memory\t0.5", "dense_memory"},
        {8, "constant\tdense_memory\tnan\t0.5\t-\t-", "dense_memory"}, {8, "constant\tother\t1\t1\t-\t-", "other"},
        {9, "constant\tdense_memory\t0.5\t0.5\t-\t-", "twice"}, {9, "# nothing", "narrow_memory"},
        {1, "release", "release"}, {2, "error\thopper\tdense\t3\t-1\t-", "-1"}, {2, "x\ty", "x"},
        {2, "error\tvolta\tdense\t3\t1\t-", "volta"}, {2, "a\tb\tc\td\te\tf\tg\th\ti", "8"}};
    const json_t *profile = json_object_get(json_array_get(json_object_get(golden(), "steps"), 0), "profile"), *row;
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        const char *rows[64] = {NULL};
        struct sh_engine g;
        size_t i;
        json_array_foreach(profile, i, row)
            rows[i] = json_string_value(row);
        rows[bad[b].row] = bad[b].text;
        CU_ASSERT(sh_engine_read(rows, "file.tsv", &g, &e) == -1);
        if (!strstr(e.text, bad[b].says) || !strstr(e.text, "file.tsv"))
            fprintf(stderr, "case %zu: found \"%s\"\n", b, e.text);
        CU_ASSERT(strstr(e.text, bad[b].says) && strstr(e.text, "file.tsv"));
    }
}

static void layouts(void)
{
    struct server s;
    open_server(json_array_get(json_object_get(golden(), "steps"), 0), &s);
    static const struct sh_clock_layout bad[] = {{0, 1, 1, 1}, {1, 1, 1, 9}, {2, 2, 1, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT(sh_clock_layout_check(&bad[i], &s.shape, &e) == -1);
    sh_kv_shape_clear(&s.shape);
}

/* 128 heads: of a prompt, 8 GPUs compute 64 heads each, as 2 do; its steps are launched without the index. */
static void chosen_tokens(void)
{
    static const char row[] = "chosen layers=2 hidden=512 heads=128 kv_heads=128 ffn=1024 vocab=1000 max_pos=65536 "
                              "gated latent=128 rope_dim=32 nope_dim=64 v_dim=64 q_latent=192 pattern=I index_dim=64 "
                              "index_heads=4 index_topk=256";
    static const int tp[4][2] = {{1, 1}, {2, 2}, {4, 2}, {8, 2}};
    const json_t *first = json_array_get(json_object_get(golden(), "steps"), 0);
    json_t *c = json_deep_copy(first);
    struct server s;
    json_object_set_new(c, "model", json_string(row));
    open_server(c, &s);
    for (int i = 0; i < 4; i++)
        CU_ASSERT(sh_clock_prompt_tp(&s.shape, tp[i][0]) == tp[i][1]);
    struct sh_capacity_ask two = s.ask, eight = s.ask;
    two.tp = 2;
    eight.tp = 8;
    struct sh_clock_sequence a = sh_clock_sequence_at(&two, 1000), b = sh_clock_sequence_at(&eight, 1000);
    CU_ASSERT(!differs(b.prompt_flops, a.prompt_flops, 1e-12) && b.decode_flops < a.decode_flops);
    struct sh_clock more = s.clock;
    struct sh_clock_work prompt = {.prompt_tokens = 9, .prompts = 1, .all_tokens = 9}, decode = {.decoding = 1};
    more.index_s += 1;
    CU_ASSERT(s.clock.index_s > 0 && !differs(sh_clock_step(&more, &prompt, NULL),
                                              sh_clock_step(&s.clock, &prompt, NULL), 1e-12));
    CU_ASSERT(!differs(sh_clock_step(&more, &decode, NULL), 1 + sh_clock_step(&s.clock, &decode, NULL), 1e-12));
    sh_kv_shape_clear(&s.shape);
    open_server(first, &s);
    CU_ASSERT(sh_clock_prompt_tp(&s.shape, 8) == 8);
    sh_kv_shape_clear(&s.shape);
    json_decref(c);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"every term of a step as Python has it", steps},
        {"the same with adapters", adapters},
        {"closed loops as a simulator that goes token by token", loops},
        {"speculation as the same simulator", speculation},
        {"prompts and answers on different GPUs, step by step", splits},
        {"the built-in engines, written and read", built_in},
        {"profiles that are wrong are refused by name", wrong},
        {"layouts that servers refuse", layouts},
        {"prompts of models that choose tokens by an index", chosen_tokens},
        {NULL, NULL}};
    int status = tap_run("clock", tests);
    json_decref(reference);
    return status;
}
