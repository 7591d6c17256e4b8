/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a live session reads a prompt and writes: see bench/decode_speed.py, which runs this.
 *
 *     decode_speed read THREADS                                                   the machine's memory
 *     decode_speed MODEL DTYPE WEIGHT_BITS KV_BITS BATCH PROMPT N POLICY BUDGET REPEAT
 *
 * Each sequence reads PROMPT random tokens and writes N, always the likeliest. The second form makes one
 * session and runs it REPEAT times. One JSON object: seconds of every prompt, seconds of every step of
 * every run. The time of a step is that of the logits and of choosing from them. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/policy/budget.h"
#include "src/base/clones.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/base/rng.h"
#include "src/engine/session.h"

static _Noreturn void die(const struct sh_err *e)
{
    fprintf(stderr, "%s\n", e->text);
    exit(1);
}

/* ---- the machine ---- */

enum { READ_BYTES = 1 << 30, READ_TIMES = 8 };

typedef uint64_t half_line __attribute__((vector_size(32)));    /* wider than registers, sums would be in memory */

/* `places` runs of lines in turn, asked for 2 KB ahead: what a core gets depends on how many there are. */
SH_CLONES static uint64_t sum_of(const uint64_t *x, size_t n, size_t places)
{
    const half_line *at = (const half_line *)(const void *)x;
    half_line part[4] = {{0}};
    uint64_t sum = 0;
    size_t each = n / 8 / places;
    for (size_t i = 0; i < each; i += 4)
        for (size_t p = 0; p < places; p++)
            for (size_t k = 0; k < 8; k++) {
                const half_line *now = at + 2 * (p * each + i) + k;
                if (k % 2 == 0)
                    __builtin_prefetch(now + (places > 1 ? 64 : 0));
                part[k % 4] += *now;
            }
    for (size_t k = 0; k < 16; k++)
        sum += part[k / 4][k % 4];
    return sum;
}

/* Bytes a second: every thread reads its own share of a buffer that no cache holds; the best of some, from one place
 * and from four. */
static void read_memory(int n_thread)
{
    uint64_t *x = xaligned(READ_BYTES), sum = 0;
    size_t share = READ_BYTES / sizeof *x / (size_t)n_thread / 128 * 128;
    double best[2] = {0};
    memset(x, 1, READ_BYTES);
    for (int i = 0; i < 2 * READ_TIMES; i++) {
        double began = sh_now_s();
#pragma omp parallel for num_threads(n_thread) reduction(+ : sum)
        for (int t = 0; t < n_thread; t++)
            sum += sum_of(x + (size_t)t * share, share, i % 2 ? 4 : 1);
        double rate = (double)(share * sizeof *x * (size_t)n_thread) / (sh_now_s() - began);
        best[i % 2] = rate > best[i % 2] ? rate : best[i % 2];
    }
    printf("{\"read_bytes_per_s\": [%.4g, %.4g], \"sum\": %llu}\n", best[0], best[1], (unsigned long long)sum);
    free(x);
}

/* ---- a session ---- */

struct bench {
    const char *model, *policy, *budget;
    enum sh_type dtype;
    int weight_bits, kv_bits, batch, prompt, n, repeat, activation_bits;
    struct sh_resident *resident;
    struct sh_session *session;
    int32_t *tokens, *next;
    int *start;
    double *prompt_s, *step_s;          /* [repeat], [repeat, n] */
};

static void open_all(struct bench *b)
{
    struct sh_err e;
    const struct sh_backend *backend = sh_backend_find("cpu", &e);
    struct sh_open what = {.n_threads = omp_get_max_threads(), .x_bits = b->activation_bits};
    struct sh_resident_setup setup = {.backend = backend, .device = backend->open(&what, &e),
                                      .model = sh_model_open(b->model, &e), .dtype = b->dtype,
                                      .weight_bits = b->weight_bits, .rows = 1024, .positions = b->prompt + b->n};
    if (!setup.device || !setup.model || !(b->resident = sh_resident_open(&setup, &e)))
        die(&e);
}

static void make_session(struct bench *b, struct sh_policy_spec *spec)
{
    struct sh_err e;
    struct sh_budget all[SH_MAX_BUDGETS];
    const struct sh_arch *a = b->resident->arch;
    int n_budget = 0, n = a->n_layer * a->n_kv_head, n_token = b->prompt + b->n;
    int *budget = xcalloc((size_t)n, sizeof *budget);
    if (sh_policy_parse(b->policy, spec, &e) || sh_budget_parse(b->budget, all, &n_budget, &e))
        die(&e);
    for (int i = 0; i < n; i++)
        budget[i] = sh_budget_tokens(&all[0], n_token);
    struct sh_session_setup setup = {.spec = spec, .budget = budget, .n_seq = b->batch,
                                     .n_token = n_token, .block = b->prompt,
                                     .format = {.bits = b->kv_bits, .group = 64, .meta = SH_F16}};
    b->session = sh_session_new(b->resident, &setup, &e);
    if (!b->session)
        die(&e);
    free(budget);
}

typedef int reader(struct sh_session *s, const int32_t *tokens, const int *start, sh_session_take *take, void *to,
                   struct sh_err *e);

static void step(struct bench *b, reader *read, const int32_t *tokens, int each)
{
    struct sh_err e;
    for (int i = 0; i <= b->batch; i++)
        b->start[i] = i * each;
    if (read(b->session, tokens, b->start, NULL, NULL, &e))
        die(&e);
    for (int i = 0; i < b->batch; i++)
        if ((b->next[i] = sh_session_best(b->session, i, &e)) < 0)
            die(&e);
}

static void run(struct bench *b, int turn)
{
    for (int i = 0; i < b->batch; i++)
        sh_session_restart(b->session, i);
    double began = sh_now_s(), now;
    step(b, sh_session_prompt, b->tokens, b->prompt);
    b->prompt_s[turn] = sh_now_s() - began;
    for (int i = 0; i < b->n; i++, began = now) {
        began = sh_now_s();
        step(b, sh_session_step, b->next, 1);
        now = sh_now_s();
        b->step_s[turn * b->n + i] = now - began;
    }
}

/* Bytes of the process that are in memory; of them a mapped checkpoint's are the system's to drop. */
static void resident_bytes(double *own, double *mapped)
{
    long all = 0, resident = 0, shared = 0, page = sysconf(_SC_PAGESIZE);
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld %ld", &all, &resident, &shared) != 3)
        resident = shared = 0;
    if (f)
        fclose(f);
    *own = (double)(resident - shared) * (double)page;
    *mapped = (double)shared * (double)page;
}

static void report(const struct bench *b)
{
    double own, mapped;
    struct sh_cache_bytes kv = sh_session_bytes(b->session);
    resident_bytes(&own, &mapped);
    printf("{\"kv_bytes\": %zu, \"own_bytes\": %.0f, \"mapped_bytes\": %.0f, \"prompt_s\": [", sh_cache_bytes_sum(&kv),
           own, mapped);
    for (int i = 0; i < b->repeat; i++)
        printf("%s%.6f", i ? ", " : "", b->prompt_s[i]);
    printf("], \"step_s\": [");
    for (int r = 0; r < b->repeat; r++) {
        printf("%s[", r ? ", " : "");
        for (int i = 0; i < b->n; i++)
            printf("%s%.6f", i ? ", " : "", b->step_s[r * b->n + i]);
        printf("]");
    }
    printf("]}\n");
}

static enum sh_type type_of(const char *name)
{
    for (int t = SH_F32; t <= SH_BF16; t++)
        if (!strcmp(name, sh_type_name((enum sh_type)t)))
            return (enum sh_type)t;
    fprintf(stderr, "%s is no type: f32, f16 or bf16\n", name);
    exit(2);
}

static int number(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "read")) {
        read_memory(number(argv[2]));
        return 0;
    }
    if (argc != 11 && argc != 12) {
        fprintf(stderr, "usage: decode_speed read THREADS | "
                        "MODEL DTYPE WEIGHT_BITS KV_BITS BATCH PROMPT N POLICY BUDGET "
                "REPEAT [ACTIVATION_BITS]\n");
        return 2;
    }
    struct bench b = {.model = argv[1], .dtype = type_of(argv[2]), .weight_bits = number(argv[3]),
                      .kv_bits = number(argv[4]), .batch = number(argv[5]), .prompt = number(argv[6]),
                      .n = number(argv[7]), .policy = argv[8], .budget = argv[9], .repeat = number(argv[10]),
                      .activation_bits = argc > 11 ? number(argv[11]) : 16};
    struct sh_policy_spec spec;
    size_t batch = (size_t)b.batch;
    open_all(&b);
    make_session(&b, &spec);
    b.tokens = xcalloc(batch * (size_t)b.prompt, sizeof *b.tokens);
    b.next = xcalloc(batch, sizeof *b.next);
    b.start = xcalloc(batch + 1, sizeof *b.start);
    b.prompt_s = xcalloc((size_t)b.repeat, sizeof *b.prompt_s);
    b.step_s = xcalloc((size_t)(b.repeat * b.n), sizeof *b.step_s);
    for (int i = 0; i < b.batch * b.prompt; i++)
        b.tokens[i] = (int32_t)(sh_rng_uniform(1, (uint64_t)i) * b.resident->arch->n_vocab);
    for (int i = 0; i < b.repeat; i++)
        run(&b, i);
    report(&b);
    return 0;
}
