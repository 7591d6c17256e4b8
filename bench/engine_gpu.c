/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding under a KV budget on a device: see bench/engine_gpu.py, which runs this.
 *
 *     engine_gpu MODEL BACKEND MEMORY POLICY BUDGET KV_BITS CONTEXT STEPS BATCH
 *
 * MEMORY: bytes that may be taken of the device, 0: all; BUDGET: tokens of a head; BATCH 0: the largest that
 * fits. Every sequence reads CONTEXT random tokens, all but the STEPS last of them as a prompt, which is the
 * same for all: the first reads it, the others take over its cache. The last ones come one at a time, which is
 * what is timed: tokens are given, so that every setting does the same work. One JSON object: times of steps,
 * bytes that the cache was to take and that the device counted. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/base/rng.h"
#include "src/engine/host_cache.h"
#include "src/engine/session.h"

enum { WARM_UP = 4, MOST_BATCH = 4096, PROMPT_AT_ONCE = 256 };

struct bench {
    struct sh_model *model;
    const struct sh_backend *backend;
    struct sh_dev *device;
    struct sh_resident *resident;
    struct sh_policy_spec policy;
    int budget, bits, context, steps, batch;
    int *budgets;                       /* [n_layer * n_kv_head]                                  */
    struct sh_session *session;
    double *seconds;                    /* [steps]                                                */
    size_t taken;                       /* of the device before the cache                         */
};

static int number(const char *text, int least, int most, int *to, struct sh_err *e)
{
    char *end;
    long n = strtol(text, &end, 10);
    if (*end || n < least || n > most)
        return sh_misused(e, "%s: expected a number from %d to %d", text, least, most);
    *to = (int)n;
    return 0;
}

static size_t taken(const struct bench *b)
{
    struct sh_props p;
    b->backend->props(b->device, &p);
    return p.taken_bytes;
}

static int open_all(struct bench *b, char **argv, struct sh_err *e)
{
    if (sh_policy_parse(argv[4], &b->policy, e) || number(argv[5], 1, 1 << 22, &b->budget, e) ||
        number(argv[6], 4, 32, &b->bits, e) || number(argv[7], 2, 1 << 22, &b->context, e) ||
        number(argv[8], 1, b->context - 1, &b->steps, e) || number(argv[9], 0, MOST_BATCH, &b->batch, e))
        return -1;
    struct sh_open o = {.n_threads = 4, .memory_bytes = (size_t)strtoull(argv[3], NULL, 10)};
    if (!(b->model = sh_model_open(argv[1], e)) || !(b->backend = sh_backend_find(argv[2], e)) ||
        !(b->device = b->backend->open(&o, e)))
        return -1;
    const struct sh_arch *a = sh_model_arch(b->model);
    struct sh_resident_setup setup = {.backend = b->backend, .device = b->device, .model = b->model, .dtype = SH_F16,
                                      .weight_bits = 16, .rows = 2048, .positions = b->context};
    if (!(b->resident = sh_resident_open(&setup, e)))
        return -1;
    b->budgets = xcalloc((size_t)(a->n_layer * a->n_kv_head), sizeof *b->budgets);
    for (int i = 0; i < a->n_layer * a->n_kv_head; i++)
        b->budgets[i] = b->budget;
    b->taken = taken(b);
    return 0;
}

/* The largest batch that fits next to the products' scratch, which a first small batch allocates. */
static int choose_batch(struct bench *b, const struct sh_session_setup *s, struct sh_err *e)
{
    if (b->batch)
        return 0;
    struct sh_session_setup kv = {.arch = b->resident->arch, .spec = s->spec, .budget = s->budget, .n_seq = 1,
                             .n_token = s->n_token, .format = s->format};
    b->batch = sh_device_cache_fit(b->resident, &kv, MOST_BATCH);
    return b->batch ? 0 : sh_fail(e, "not even one sequence fits");
}

/* The likeliest token of each sequence, and what follows it. */
static int write_step(struct bench *b, int32_t *tokens, int *start, struct sh_err *e)
{
    for (int i = 0; i < b->batch; i++) {
        start[i + 1] = i + 1;
        if ((tokens[i] = sh_session_best(b->session, i, e)) < 0)
            return -1;
    }
    return sh_session_step(b->session, tokens, start, NULL, NULL, e);
}

/* n tokens of each of the first `readers` sequences. */
static int read_step(struct bench *b, int32_t *tokens, int *start, int readers, int first, int n, struct sh_err *e)
{
    int vocab = b->resident->arch->n_vocab;
    for (int i = 0; i < b->batch; i++) {
        start[i + 1] = start[i] + (i < readers ? n : 0);
        for (int t = 0; t < n && i < readers; t++)
            tokens[i * n + t] = (int32_t)(sh_rng((uint64_t)i, (uint64_t)(first + t)) % (uint64_t)vocab);
    }
    return sh_session_step(b->session, tokens, start, NULL, NULL, e);
}

/* One step of a lone sequence, so that everything but caches has taken its memory. */
static int warm_up(struct bench *b, const struct sh_session_setup *setup, struct sh_err *e)
{
    struct sh_session_setup one = *setup;
    int batch = b->batch, n = PROMPT_AT_ONCE < b->context ? PROMPT_AT_ONCE : b->context, start[2] = {0};
    int32_t tokens[PROMPT_AT_ONCE];
    one.n_seq = b->batch = 1;
    b->session = sh_session_new(b->resident, &one, e);
    int bad = !b->session || read_step(b, tokens, start, 1, 0, n, e);
    sh_session_free(b->session);
    b->session = NULL;
    b->batch = batch;
    b->taken = taken(b);
    return bad;
}

static int run(struct bench *b, struct sh_err *e)
{
    struct sh_kv_format format = {.bits = b->bits, .group = 64, .meta = SH_F16};
    struct sh_session_setup s = {.spec = &b->policy, .budget = b->budgets, .n_token = b->context, .format = format};
    if (warm_up(b, &s, e) || choose_batch(b, &s, e))
        return -1;
    s.n_seq = b->batch;
    if (!(b->session = sh_session_new(b->resident, &s, e)))
        return -1;
    if (!b->resident->is_host && sh_session_why_host(b->session))
        return sh_fail(e, "the cache would be on the host: %s", sh_session_why_host(b->session));
    sh_session_only_best(b->session);
    int32_t *tokens = xcalloc((size_t)b->batch + PROMPT_AT_ONCE, sizeof *tokens);
    int *start = xcalloc((size_t)b->batch + 1, sizeof *start), bad = 0, prompt = b->context - b->steps;
    b->seconds = xcalloc((size_t)b->steps, sizeof *b->seconds);
    for (int t = 0, n; t < prompt && !bad; t += n) {
        n = prompt - t < PROMPT_AT_ONCE ? prompt - t : PROMPT_AT_ONCE;
        bad = read_step(b, tokens, start, 1, t, n, e);
    }
    for (int i = 1; i < b->batch && !bad; i++)
        sh_session_fork(b->session, i, b->session, 0);
    for (int t = 0; t < b->steps && !bad; t++) {
        double began = sh_now_s();
        bad = write_step(b, tokens, start, e);
        b->seconds[t] = sh_now_s() - began;
    }
    free(tokens);
    free(start);
    return bad;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(struct bench *b)
{
    struct sh_props p;
    int from = b->steps > 2 * WARM_UP ? WARM_UP : 0, n = b->steps - from;
    double sum = 0;
    size_t now = taken(b);
    for (int i = from; i < b->steps; i++)
        sum += b->seconds[i];
    qsort(b->seconds + from, (size_t)n, sizeof *b->seconds, by_size);
    b->backend->props(b->device, &p);
    struct sh_cache_bytes bytes = sh_session_bytes(b->session);
    json_t *o = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:I}", "chip", p.chip,
                          "policy", b->policy.policy->name, "budget_tokens", b->budget, "kv_bits", b->bits, "batch",
                          b->batch, "steps", n, "tokens_per_s", (double)b->batch * n / sum, "step_s_p50",
                          b->seconds[from + n / 2], "step_s_p99", b->seconds[from + n * 99 / 100], "kv_bytes",
                          (json_int_t)sh_cache_bytes_sum(&bytes), "scratch_bytes",
                          (json_int_t)bytes.scratch, "cache_bytes_taken", (json_int_t)(now - b->taken),
                          "device_peak_bytes", (json_int_t)p.peak_bytes, "device_used_bytes",
                          (json_int_t)p.used_bytes);
    json_dumpf(o, stdout, JSON_INDENT(1));
    putchar('\n');
    json_decref(o);
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    struct sh_err e = {.text = ""};
    if (argc != 10) {
        fprintf(stderr, "usage: %s MODEL BACKEND MEMORY POLICY BUDGET KV_BITS CONTEXT STEPS BATCH\n", argv[0]);
        return 2;
    }
    int bad = open_all(&b, argv, &e) || run(&b, &e);
    if (bad)
        fprintf(stderr, "engine_gpu: %s\n%s\n", e.text, e.hint);
    else
        report(&b);
    sh_session_free(b.session);
    sh_resident_close(b.resident);
    if (b.device)
        b.backend->close(b.device);
    sh_model_close(b.model);
    free(b.budgets);
    free(b.seconds);
    return bad ? 1 : 0;
}
