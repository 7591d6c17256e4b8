/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/: what every backend does besides its operations: devices, memory, errors, and weights that
 * are made next to the operations of another thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"
#include "tests/unit/variants.h"

/* Any size, also none and odd ones, comes back as it went in; the host memory of put is free at once. */
static void memory(const struct target *t)
{
    static const size_t sizes[] = {0, 1, 3, 4096, 1000003};
    unsigned char *host = xmalloc(1000003), *back = xmalloc(1000003);
    void *at[5];
    struct sh_err e;
    for (int i = 0; i < 5; i++) {
        at[i] = t->b->alloc(t->d, sizes[i], &e);
        CU_ASSERT_PTR_NOT_NULL_FATAL(at[i]);
        memset(host, 17 + i, sizes[i]);
        t->b->put(t->d, at[i], host, sizes[i]);
        memset(host, 0, sizes[i]);
    }
    for (int i = 0; i < 5; i++) {
        size_t wrong = 0;
        t->b->get(t->d, back, at[i], sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++)
            wrong += back[k] != 17 + i;
        CU_ASSERT(wrong == 0);
        t->b->release(t->d, at[i]);
    }
    char *word = t->b->alloc(t->d, 8, &e);              /* a part of it, too */
    t->b->put(t->d, word, "letter", 7);
    t->b->put(t->d, word + 1, "i", 1);
    t->b->get(t->d, back, word, 7);
    CU_ASSERT(memcmp(back, "litter", 7) == 0);
    t->b->release(t->d, word);
    t->b->release(t->d, NULL);
    t->b->drop(t->d, NULL);
    free(host);
    free(back);
}
EACH_BACKEND(memory)

/* What does not fit is said by alloc and is no failure of the device. */
static void too_much(const struct target *t)
{
    struct sh_err e = {.text = ""};
#ifdef __SANITIZE_ADDRESS__
    if (t->which != ON_MODULE) {
        tap_skip("AddressSanitizer ends the program");
        return;
    }
#endif
    CU_ASSERT(!t->b->alloc(t->d, (size_t)1 << 60, &e) && strstr(e.text, "1152921504606846976") != NULL);
}
EACH_BACKEND(too_much)

/* A device that is told how much it may take says what is left, and takes no more. */
static void limited_memory(const struct target *t)
{
    enum { LIMIT = 96 << 20, PART = 20 << 20 };
    struct sh_err e = {.text = ""};
    struct sh_props props;
    struct sh_dev *d = t->b->open(&(struct sh_open){.n_threads = 1, .memory_bytes = LIMIT}, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    t->b->props(d, &props);
    size_t left = props.memory_bytes, used = props.used_bytes;
    CU_ASSERT((used == 0) == props.is_host);
    if (t->which == ON_MODULE) {
        CU_ASSERT(left > 0 && left <= LIMIT && props.peak_bytes <= LIMIT);
    }
    if (left) {
        void *at = t->b->alloc(d, PART, &e);
        CU_ASSERT_PTR_NOT_NULL(at);
        t->b->props(d, &props);
        CU_ASSERT(props.memory_bytes <= left - PART && props.peak_bytes >= PART && props.peak_bytes <= LIMIT);
        CU_ASSERT(props.is_host || props.used_bytes >= used + PART);    /* the device's count goes with ours */
        used = props.used_bytes;
        CU_ASSERT(!t->b->alloc(d, LIMIT - PART + 1, &e) && e.text[0]);
        t->b->release(d, at);
        at = t->b->alloc(d, left - 4096, &e);           /* what was released is there again */
        CU_ASSERT_PTR_NOT_NULL(at);
        t->b->release(d, at);
        t->b->props(d, &props);
        CU_ASSERT(props.used_bytes >= used);            /* the most so far */
    }
    CU_ASSERT(t->b->sync(d, &e) == 0);
    t->b->close(d);
}
EACH_BACKEND(limited_memory)

static void described(const struct target *t)
{
    struct sh_err e = {.text = ""};
    struct sh_props props = {.chip = ""};
    t->b->props(t->d, &props);
    CU_ASSERT(props.chip[0] && props.rows_at_once > 0);
    CU_ASSERT(t->b->abi == SH_BACKEND_ABI && t->b->name[0] && t->b->summary[0]);
    int n = t->b->count(&e);
    CU_ASSERT_FATAL(n >= 1);
    for (int i = 0; i < 2; i++) {                       /* no such device */
        e = (struct sh_err){.text = ""};
        CU_ASSERT(!t->b->open(&(struct sh_open){.ordinal = i ? n : -1, .n_threads = 1}, &e) && e.text[0]);
        CU_ASSERT(e.status == SH_ABSENT || e.status == SH_MISUSED);
    }
    t->b->close(NULL);
}
EACH_BACKEND(described)

/* A product whose inner widths differ fails; then nothing runs and sync keeps telling the first reason. */
static void errors_stick(const struct target *like)
{
    struct target t;
    struct sh_err e = {.text = ""};
    if (target_open(&t, like->which, 1))
        return;
    struct matrix x = matrix_new(&t, SH_F32, 4, 8, 0), y = matrix_new(&t, SH_F32, 4, 8, 0);
    const float w[64] = {1};
    float untouched[32] = {0}, nothing[32] = {0};
    struct sh_weight *weight = t.b->weight(t.d, w, SH_F32, 8, 8, SH_F32, &e);
    matrix_normal(&t, &x, 1, 1);
    target_sync(&t);
    struct sh_linear a = {.out = y.m, .x = x.m, .w = weight};
    a.x.cols = 7;
    a.x.stride = 7;
    t.b->linear(t.d, &a);
    CU_ASSERT(t.b->sync(t.d, &e) == -1 && strstr(e.text, "[4, 7] x [8, 8]") != NULL);
    a.x = x.m;
    t.b->linear(t.d, &a);
    t.b->norm(t.d, &(struct sh_norm){.out = y.m, .x = x.m, .eps = 1});
    t.b->cast(t.d, y.m, x.m);
    t.b->gate(t.d, &(struct sh_gate){.out = y.m, .gate = x.m, .up = x.m});
    t.b->get(t.d, untouched, x.m.at, sizeof untouched);
    CU_ASSERT(memcmp(untouched, nothing, sizeof nothing) == 0);
    CU_ASSERT(t.b->sync(t.d, &e) == -1 && strstr(e.text, "[4, 7] x [8, 8]") != NULL);
    t.b->drop(t.d, weight);
    matrix_free(&t, &x);
    matrix_free(&t, &y);
    target_close(&t);
}
EACH_BACKEND(errors_stick)

enum { WIDTH = 70, ROWS = 40, ROUNDS = 12 };

struct loader {                                         /* a thread that gets the next weight     */
    const struct target *t;
    int round;
    struct sh_weight *made;
    void *memory;
    struct sh_err e;
};

/* In round r element (i, j) is r + 1 when i == j, else 0: a product with it multiplies by r + 1. */
static void *load(void *loader)
{
    struct loader *l = loader;
    float *host = xcalloc(WIDTH * WIDTH, sizeof *host);
    for (int i = 0; i < WIDTH; i++)
        host[i * WIDTH + i] = (float)(l->round + 1);
    l->memory = l->t->b->alloc(l->t->d, (size_t)(1000 * (l->round + 1)), &l->e);
    l->made = l->t->b->weight(l->t->d, host, SH_F32, WIDTH, WIDTH, SH_F32, &l->e);
    memset(host, 0xff, WIDTH * WIDTH * sizeof *host);
    free(host);
    l->t->b->release(l->t->d, l->memory);
    return NULL;
}

static void *unload(void *loader)
{
    struct loader *l = loader;
    l->t->b->drop(l->t->d, l->made);
    return NULL;
}

static int multiplied(const struct matrix *y, const struct matrix *x, int by)
{
    int wrong = 0;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < WIDTH; j++)
            wrong += matrix_at(y, i, j) != rounded(SH_F32, by * matrix_at(x, i, j));
    return wrong == 0;
}

/* While the operations of one round run, another thread brings the next round's weight, and then drops
 * this one's. Each round's products are right. */
static void weights_next_to(const struct target *t)
{
    struct matrix x = matrix_new(t, SH_F32, ROWS, WIDTH, 0), y = matrix_new(t, SH_F32, ROWS, WIDTH, 0);
    struct loader next = {.t = t}, now;
    pthread_t thread;
    matrix_normal(t, &x, 1, 1);
    load(&next);
    for (int round = 0; round < ROUNDS; round++) {
        now = next;
        next = (struct loader){.t = t, .round = round + 1};
        CU_ASSERT_FATAL(now.made != NULL && now.memory != NULL);
        CU_ASSERT_FATAL(pthread_create(&thread, NULL, load, &next) == 0);
        for (int i = 0; i < 3; i++)
            t->b->linear(t->d, &(struct sh_linear){.out = y.m, .x = x.m, .w = now.made});
        pthread_join(thread, NULL);
        CU_ASSERT_FATAL(pthread_create(&thread, NULL, unload, &now) == 0);
        matrix_get(t, &y);
        pthread_join(thread, NULL);
        CU_ASSERT(multiplied(&y, &x, round + 1));
    }
    t->b->drop(t->d, next.made);
    matrix_free(t, &x);
    matrix_free(t, &y);
}
EACH_BACKEND(weights_next_to)

enum { LONG = 100003 };                 /* numbers of a vector, more than fit next to others      */

struct bringer {                        /* a thread that brings the next vector                   */
    const struct target *t;
    int round;
    float *old, *made;
    struct sh_err e;
};

/* In round r all numbers are r + 1. */
static void *bring(void *bringer)
{
    struct bringer *b = bringer;
    size_t n = b->round % 2 ? LONG : WIDTH;
    float *host = xmalloc(n * sizeof *host);
    for (size_t i = 0; i < n; i++)
        host[i] = (float)(b->round + 1);
    b->made = b->t->b->vector(b->t->d, host, n, &b->e);
    memset(host, 0xff, n * sizeof *host);
    free(host);
    b->t->b->release(b->t->d, b->old);
    return NULL;
}

/* While the operations of one round run, another thread brings the next round's vector and gives back that of the
 * round before. A norm of equal numbers is its bias: none reads a vector that has not come yet or comes too early. */
static void vectors_next_to(const struct target *t)
{
    struct matrix x = matrix_new(t, SH_F32, ROWS, WIDTH, 0), y[ROUNDS];
    struct bringer next = {.t = t}, now;
    pthread_t thread;
    for (int i = 0; i < ROWS * WIDTH; i++)
        matrix_set(&x, i / WIDTH, i % WIDTH, 3);
    matrix_put(t, &x);
    bring(&next);
    for (int round = 0; round < ROUNDS; round++) {
        now = next;
        next = (struct bringer){.t = t, .round = round + 1, .old = now.made};       /* whose norm is only queued */
        CU_ASSERT_PTR_NOT_NULL_FATAL(now.made);
        y[round] = matrix_new(t, SH_F32, ROWS, WIDTH, 0);
        t->b->norm(t->d, &(struct sh_norm){.out = y[round].m, .x = x.m, .bias = now.made, .eps = 1});
        CU_ASSERT_FATAL(pthread_create(&thread, NULL, bring, &next) == 0);
        pthread_join(thread, NULL);
    }
    for (int round = 0, wrong = 0; round < ROUNDS; round++) {
        matrix_get(t, &y[round]);
        for (int i = 0; i < ROWS * WIDTH; i++)
            wrong += matrix_at(&y[round], i / WIDTH, i % WIDTH) != round + 1;
        CU_ASSERT_EQUAL(wrong, 0);
        matrix_free(t, &y[round]);
    }
    t->b->release(t->d, next.made);
    matrix_free(t, &x);
}
EACH_BACKEND(vectors_next_to)

/* The same with the other streams run last: a vector that nobody waits for has not come. */
static void vectors_late(const struct target *t)
{
    const char *order = getenv("SH_EMU_STREAMS");
    char *was = order ? xstrdup(order) : NULL;
    setenv("SH_EMU_STREAMS", "lazy", 1);
    vectors_next_to(t);
    if (was)
        setenv("SH_EMU_STREAMS", was, 1);
    free(was);
}
EACH_BACKEND(vectors_late)

/* A weight is dropped while its product is only queued, and another one of the same size is made at once:
 * its memory may be the same, but not before the product is done. */
static void weights_in_turn(const struct target *t)
{
    struct matrix x = matrix_new(t, SH_F32, ROWS, WIDTH, 0), y[ROUNDS];
    matrix_normal(t, &x, 1, 1);
    for (int round = 0; round < ROUNDS; round++) {
        struct loader l = {.t = t, .round = round};
        y[round] = matrix_new(t, SH_F32, ROWS, WIDTH, 0);
        load(&l);
        CU_ASSERT_FATAL(l.made != NULL);
        t->b->linear(t->d, &(struct sh_linear){.out = y[round].m, .x = x.m, .w = l.made});
        t->b->drop(t->d, l.made);
    }
    for (int round = 0; round < ROUNDS; round++) {
        matrix_get(t, &y[round]);
        CU_ASSERT(multiplied(&y[round], &x, round + 1));
        matrix_free(t, &y[round]);
    }
    matrix_free(t, &x);
}
EACH_BACKEND(weights_in_turn)

static void backends_are_found(void)
{
    struct sh_err e;
    struct sh_props about;
    CU_ASSERT(sh_backend_find("cpu", &e) == &sh_backend_cpu);
    CU_ASSERT(!sh_backend_find("cpux", &e) && e.status == SH_MISUSED && strstr(e.text, "cpux") != NULL);
    struct sh_dev *d = sh_backend_cpu.open(&(struct sh_open){.n_threads = 2}, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    sh_backend_cpu.props(d, &about);
    CU_ASSERT(strstr(about.chip, cpu_kernels_pick(&e)->name) != NULL && strstr(about.chip, "2 threads") != NULL);
    CU_ASSERT(about.is_host && sh_backend_cpu.count(&e) == 1);
    sh_backend_cpu.close(d);
}

int main(void)
{
    static const struct tap_test tests[] = {
        LIST_BACKENDS("memory: goes there and comes back", memory),
        LIST_BACKENDS("memory: what does not fit is refused", too_much),
        LIST_BACKENDS("memory: a limit is kept", limited_memory),
        LIST_BACKENDS("device: counted, opened, described", described),
        LIST_BACKENDS("errors: the first one sticks and nothing runs after it", errors_stick),
        LIST_BACKENDS("weights: made and dropped next to operations", weights_next_to),
        LIST_BACKENDS("weights: one dropped and the next made without a sync", weights_in_turn),
        LIST_BACKENDS("vectors: brought and given back during operations", vectors_next_to),
        LIST_BACKENDS("vectors: likewise, as late as can be", vectors_late),
        {"backends: found by name, opened, described", backends_are_found},
        {0}};
    return tap_run("backend", tests);
}
