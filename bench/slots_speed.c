/* SPDX-License-Identifier: Apache-2.0 */
/* The attention of a decoding step over a KV cache on a device (kernels/slots.h), by itself: no model, no
 * products. For each shape and format caches of many sequences are filled with random rows, and then every
 * sequence brings one token at a time. A line of JSON each:
 *
 *     read_bytes_per_s      keys and values of the kept tokens, over the time of the whole operation: room for the
 *                           token, attention, what the policy learns
 *     share_of_copy         that, over what the copy of one large cache reads and writes per second, which is measured
 *                           first
 *
 *     slots_speed BACKEND MEMORY [REPEAT [TOKENS]]
 *
 * MEMORY: bytes that keys and values may take, several times the second-level cache; REPEAT: steps (20); TOKENS:
 * of a full cache (2048; a small one has a fifth), fewer for a first try on an emulated device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/base/rng.h"

enum { LAYERS = 2, MOST_SEQ = 4096, AT_ONCE = 16 };

struct shape {
    int n_kv_head, bits, share;         /* tokens: a full cache's over share                      */
    enum sh_slots_rule rule;
    const char *policy;
};

enum { N_HEAD = 32, D_HEAD = 128, FULL = 2048 };

static const struct shape shapes[] = {
    {32, 16, 1, SH_SLOTS_OLDEST, "window"}, {32, 16, 5, SH_SLOTS_OLDEST, "window"}, {32, 16, 5, SH_SLOTS_SUM, "h2o"},
    {32, 16, 5, SH_SLOTS_LOW_EPOCHS, "scissorhands, epochs"}, {8, 16, 1, SH_SLOTS_OLDEST, "window"},
    {32, 32, 1, SH_SLOTS_OLDEST, "window"}, {32, 8, 1, SH_SLOTS_OLDEST, "window"},
    {32, 4, 1, SH_SLOTS_OLDEST, "window"}};

struct bench {
    const struct sh_backend *b;
    struct sh_dev *d;
    const struct shape *s;
    int tokens, n_seq, repeat, t;       /* tokens: kept of each; t: that every sequence has read  */
    struct sh_slots *slots;
    struct sh_attend what;
    int *numbers, *host_numbers;        /* [n_seq + 1] starts, then each row's position           */
};

static struct sh_slots_setup setup_of(const struct bench *x, struct sh_slots_head *head)
{
    const struct shape *s = x->s;
    for (int i = 0; i < LAYERS * s->n_kv_head; i++)
        head[i] = (struct sh_slots_head){.budget = x->tokens, .capacity = x->tokens, .drop = 1};
    return (struct sh_slots_setup){
        .n_seq = x->n_seq, .n_layer = LAYERS, .n_head = N_HEAD, .n_kv_head = s->n_kv_head, .d_head = D_HEAD,
        .bits = s->bits, .group = 64, .meta = SH_F16, .head = head,
        .policy = {.rule = s->rule, .decay = 1, .look_back = s->rule == SH_SLOTS_LOW_EPOCHS ? 400 : 1}};
}

/* Keys and values of all layers. */
static double row_bytes(const struct bench *x)
{
    return 2.0 * LAYERS * x->n_seq * x->s->n_kv_head * x->tokens * D_HEAD * x->s->bits / 8;
}

/* Random rows on the device, for as many as are brought at once. */
static int make_rows(struct bench *x, struct sh_mat *m, int cols, uint64_t seed, struct sh_err *e)
{
    size_t n = (size_t)x->n_seq * AT_ONCE * (size_t)cols;
    float *host = xmalloc(n * sizeof *host);
    for (size_t i = 0; i < n; i++)
        host[i] = i < 65536 ? (float)sh_rng_normal(seed, i) : host[i - 65536];
    *m = (struct sh_mat){x->b->alloc(x->d, n * sizeof *host, e), SH_F32, x->n_seq * AT_ONCE, cols, (size_t)cols};
    if (m->at)
        x->b->put(x->d, m->at, host, n * sizeof *host);
    free(host);
    return m->at ? 0 : -1;
}

static int open_bench(struct bench *x, struct sh_err *e)
{
    const struct shape *s = x->s;
    struct sh_slots_head *head = xcalloc((size_t)(LAYERS * s->n_kv_head), sizeof *head);
    struct sh_slots_setup setup = setup_of(x, head);
    size_t numbers = (size_t)(x->n_seq * (AT_ONCE + 1) + 1) * sizeof *x->numbers;
    x->what = (struct sh_attend){.n_head = N_HEAD, .n_kv_head = s->n_kv_head, .d_head = D_HEAD, .scale = 0.088f};
    x->host_numbers = xmalloc(numbers);
    int bad = !(x->slots = x->b->slots->make(x->d, &setup, e)) || make_rows(x, &x->what.q, N_HEAD * D_HEAD, 1, e) ||
              make_rows(x, &x->what.k, s->n_kv_head * D_HEAD, 2, e) ||
              make_rows(x, &x->what.v, s->n_kv_head * D_HEAD, 3, e) ||
              make_rows(x, &x->what.out, N_HEAD * D_HEAD, 4, e) ||
              !(x->numbers = x->b->alloc(x->d, numbers, e));
    free(head);
    return bad ? -1 : 0;
}

static void close_bench(struct bench *x)
{
    void *at[] = {x->what.q.at, x->what.k.at, x->what.v.at, x->what.out.at, x->numbers};
    x->b->slots->drop(x->d, x->slots);
    for (int i = 0; i < 5; i++)
        x->b->release(x->d, at[i]);
    free(x->host_numbers);
}

/* n tokens of every sequence: stored, or one with its attention. */
static void bring(struct bench *x, int n, int attends)
{
    int *start = x->host_numbers, *position = start + x->n_seq + 1;
    for (int i = 0; i <= x->n_seq; i++)
        start[i] = i * n;
    for (int i = 0; i < x->n_seq * n; i++)
        position[i] = x->t + i % n;
    x->b->put(x->d, x->numbers, start, (size_t)(x->n_seq * (n + 1) + 1) * sizeof *start);
    for (int layer = 0; layer < LAYERS; layer++) {
        struct sh_slots_step step = {.what = &x->what, .layer = layer, .start = x->numbers,
                                     .position = x->numbers + x->n_seq + 1, .end = n};
        (attends ? x->b->slots->attend : x->b->slots->store)(x->d, x->slots, &step);
    }
    x->t += n;
}

/* Seconds of every sequence's next token, all layers, the fastest of several; -1: the device has failed. */
static double time_steps(struct bench *x, struct sh_err *e)
{
    double best = -1;
    for (int i = 0; i < x->repeat; i++) {
        double began = sh_now_s();
        bring(x, 1, 1);
        if (x->b->sync(x->d, e))
            return -1;
        double took = sh_now_s() - began;
        best = best < 0 || took < best ? took : best;
    }
    return best;
}

/* Bytes read and written per second when a sequence takes over another's cache; the fastest of several. */
static double time_copies(struct bench *x, struct sh_err *e)
{
    double best = -1;
    for (int i = 0; i < 5; i++) {
        double began = sh_now_s();
        x->b->slots->copy(x->d, x->slots, 1, x->slots, 0);
        if (x->b->sync(x->d, e))
            return -1;
        double took = sh_now_s() - began;
        best = best < 0 || took < best ? took : best;
    }
    return row_bytes(x) / best;
}

static void fill(struct bench *x)
{
    while (x->t < x->tokens)
        bring(x, x->tokens - x->t < AT_ONCE ? x->tokens - x->t : AT_ONCE, 0);
}

/* ... of two sequences that share the memory, but have no more than MOST_COPIED times `tokens`; -1: failed. */
static double copy_rate(const struct sh_backend *b, struct sh_dev *d, double memory, int tokens, struct sh_err *e)
{
    enum { MOST_COPIED = 16 };
    static const struct shape large = {N_HEAD, 32, 1, SH_SLOTS_OLDEST, "window"};
    struct bench x = {.b = b, .d = d, .s = &large, .n_seq = 2, .tokens = 1};
    double most = memory / row_bytes(&x);
    x.tokens = most < 1 ? 1 : most < MOST_COPIED * tokens ? (int)most : MOST_COPIED * tokens;
    double rate = -1;
    if (!open_bench(&x, e)) {
        fill(&x);
        rate = b->sync(d, e) ? -1 : time_copies(&x, e);
    }
    close_bench(&x);
    return rate;
}

static int measure(struct bench *x, double copy, struct sh_err *e)
{
    fill(x);
    double step = x->b->sync(x->d, e) ? -1 : time_steps(x, e);
    if (step < 0)
        return -1;
    double rate = row_bytes(x) / step;
    printf("{\"heads\": %d, \"kv_heads\": %d, \"d_head\": %d, \"kv_bits\": %d, \"tokens\": %d, \"policy\": \"%s\", "
           "\"sequences\": %d, \"bytes\": %.0f, \"layer_s\": %.3e, \"read_bytes_per_s\": %.4g, "
           "\"copy_bytes_per_s\": %.4g, \"share_of_copy\": %.3f}\n", N_HEAD, x->s->n_kv_head, D_HEAD, x->s->bits,
           x->tokens, x->s->policy, x->n_seq, row_bytes(x), step / LAYERS, rate, copy, rate / copy);
    fflush(stdout);
    return 0;
}

static int run(const struct sh_backend *b, struct sh_dev *d, double memory, int repeat, int tokens,
               struct sh_err *e)
{
    double copy = copy_rate(b, d, memory, tokens, e);
    int bad = copy < 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !bad; i++) {
        struct bench x = {.b = b, .d = d, .s = &shapes[i], .n_seq = 1, .repeat = repeat};
        x.tokens = tokens / shapes[i].share;
        double most = memory / row_bytes(&x);
        x.n_seq = most < 2 ? 2 : most < MOST_SEQ ? (int)most : MOST_SEQ;
        bad = open_bench(&x, e) || measure(&x, copy, e);
        close_bench(&x);
    }
    return bad;
}

/* 0: it is none, or too small or large. */
static int number(const char *text, long least)
{
    char *end;
    long n = strtol(text, &end, 10);
    return *end || n < least || n > 1 << 20 ? 0 : (int)n;
}

int main(int argc, char **argv)
{
    struct sh_err e = {.text = ""};
    double memory = argc > 2 ? strtod(argv[2], NULL) : 0;
    int repeat = argc > 3 ? number(argv[3], 1) : 20, tokens = argc > 4 ? number(argv[4], 5) : FULL;
    if (argc < 3 || argc > 5 || !(memory > 0) || !repeat || !tokens) {
        fprintf(stderr, "usage: %s BACKEND MEMORY [REPEAT [TOKENS]]\n", argv[0]);
        return 2;
    }
    struct sh_open o = {.n_threads = 1};
    const struct sh_backend *b = sh_backend_find(argv[1], &e);
    struct sh_dev *d = b ? b->open(&o, &e) : NULL;
    struct sh_props p;
    int bad = !d;
    if (d) {
        b->props(d, &p);
        printf("{\"chip\": \"%s\"}\n", p.chip);
        bad = b->slots ? run(b, d, memory, repeat, tokens, &e)
                       : sh_misused(&e, "backend %s keeps no cache of its own", argv[1]);
        b->close(d);
    }
    if (bad)
        fprintf(stderr, "slots_speed: %s\n%s\n", e.text, e.hint);
    return bad ? 1 : 0;
}
