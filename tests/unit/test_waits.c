/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/: how a backend with a device of its own treats the host, on the emulated device, which counts what CUDA
 * only does (tests/emu/emu.h): copies that wait for nothing they need not wait for, waits that sleep, operations that
 * go on while memory is freed, pinned memory that is short, and calls from the wrong thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/attention.h"
#include "tests/unit/backends.h"

enum { STAGE = 8 << 20, WIDTH = 64, ROWS = 32 };

/* -1: there is no emulated device, and the test has been skipped. */
static int open_emulated(struct target *t, const char *name, emulated_count **count)
{
    *count = target_emulated(name);
    return *count ? target_open(t, ON_MODULE, 2) : -1;
}

static unsigned char *pattern(size_t bytes)
{
    unsigned char *at = xmalloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(i * 2654435761u >> 13);
    return at;
}

static int comes_back(const struct target *t, size_t bytes)
{
    struct sh_err e;
    unsigned char *is = pattern(bytes), *host = pattern(bytes), *at = t->b->alloc(t->d, bytes, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    t->b->put(t->d, at, host, bytes);
    memset(host, 0, bytes);             /* it is ours again */
    t->b->get(t->d, host, at, bytes);
    int same = !memcmp(is, host, bytes);
    t->b->release(t->d, at);
    free(is);
    free(host);
    return same;
}

/* Small copies to the device wait for nothing; whole stages wait for a stage; one from it waits once a piece. */
static void copies_wait_little(void)
{
    struct target t;
    struct sh_err e;
    emulated_count *waits;
    float some[WIDTH] = {1};
    if (open_emulated(&t, "emu_waits", &waits))
        return;
    char *at = t.b->alloc(t.d, sizeof some, &e);
    unsigned long before = waits();
    for (int i = 0; i < 2000; i++) {
        some[0] = (float)i;
        t.b->put(t.d, at, some, sizeof some);
    }
    CU_ASSERT_EQUAL(waits(), before);
    t.b->get(t.d, some, at, sizeof some);
    CU_ASSERT(waits() == before + 1 && some[0] == 1999);
    target_sync(&t);
    CU_ASSERT_EQUAL(waits(), before + 2);
    static const size_t sizes[] = {STAGE - 1, STAGE, STAGE + 1, 3 * (size_t)STAGE + 5};
    for (int i = 0; i < 4; i++) {
        before = waits();
        CU_ASSERT(comes_back(&t, sizes[i]));
        CU_ASSERT(waits() - before <= 3 * (sizes[i] / STAGE + 1));
    }
    t.b->release(t.d, at);
    target_sync(&t);
    target_close(&t);
}

struct bringer {                        /* a thread that brings a vector */
    const struct target *t;
    float *from, *at;
    size_t n;
    struct sh_err e;
};

static void *bring(void *to)
{
    struct bringer *b = to;
    b->at = b->t->b->vector(b->t->d, b->from, b->n, &b->e);
    memset(b->from, 0xff, b->n * sizeof *b->from);
    return NULL;
}

/* Vectors of the next layer arrive while none of the operations that are queued has run, also when they need more
 * stages than there are. */
static void vectors_overtake(void)
{
    enum { N = 3 * STAGE / (int)sizeof(float) + 1, QUEUED = 30 };
    struct target t;
    emulated_count *done;
    pthread_t thread;
    setenv("SH_EMU_STREAMS", "lazy", 1);
    if (open_emulated(&t, "emu_done", &done))
        return;
    struct matrix x = matrix_new(&t, SH_F32, ROWS, WIDTH, 0);
    struct bringer b = {.t = &t, .from = xcalloc(N, sizeof *b.from), .n = N};
    b.from[N - 1] = 7;
    matrix_normal(&t, &x, 1, 1);
    target_sync(&t);
    unsigned long before = done();
    for (int i = 0; i < QUEUED; i++)
        t.b->norm(t.d, &(struct sh_norm){.out = x.m, .x = x.m, .eps = 1});
    CU_ASSERT_FATAL(!pthread_create(&thread, NULL, bring, &b) && !pthread_join(thread, NULL));
    CU_ASSERT_PTR_NOT_NULL_FATAL(b.at);
    CU_ASSERT(done() - before <= 4);    /* pieces of the vector */
    float last = 0;
    t.b->get(t.d, &last, b.at + N - 1, sizeof last);
    CU_ASSERT(last == 7 && done() - before >= QUEUED);
    t.b->release(t.d, b.at);
    free(b.from);
    matrix_free(&t, &x);
    target_sync(&t);
    target_close(&t);
}

struct stranger {
    const struct target *t;
    void *at;
};

static void *put_from_here(void *to)
{
    const struct stranger *s = to;
    s->t->b->put(s->t->d, s->at, "word", 4);
    return NULL;
}

/* Operations come from one thread; another may go on when the device has been waited for. */
static void strangers(void)
{
    struct target t;
    struct sh_err e = {.text = ""};
    emulated_count *ignored;
    char back[4];
    for (int wait = 0; wait < 3; wait++) {              /* for nothing, a sync, a get */
        pthread_t thread;
        if (open_emulated(&t, "emu_waits", &ignored))
            return;
        struct stranger s = {&t, t.b->alloc(t.d, 4, &e)};
        t.b->put(t.d, s.at, "mine", 4);
        if (wait == 1)
            target_sync(&t);
        if (wait == 2)
            t.b->get(t.d, back, s.at, 4);
        CU_ASSERT_FATAL(!pthread_create(&thread, NULL, put_from_here, &s) && !pthread_join(thread, NULL));
        CU_ASSERT((t.b->sync(t.d, &e) == 0) == (wait > 0));
        CU_ASSERT(wait || (strstr(e.text, "put") && strstr(e.text, "different thread")));
        t.b->release(t.d, s.at);
        target_close(&t);
    }
}

/* ---- freeing ---- */

static struct freeing {
    struct target t;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    int asked, has_run, in_time;
} freeing = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void *operate(void *unused)
{
    (void)unused;
    struct sh_norm nothing = {.out = {.type = SH_F32}, .x = {.type = SH_F32}};
    freeing.t.b->norm(freeing.t.d, &nothing);           /* of no rows */
    pthread_mutex_lock(&freeing.lock);
    freeing.has_run = 1;
    pthread_cond_broadcast(&freeing.changed);
    pthread_mutex_unlock(&freeing.lock);
    return NULL;
}

/* The device is freeing memory, which waits for all that is queued: another thread's operation must get through. */
static void while_freeing(void)
{
    struct timespec until;
    if (freeing.asked++)
        return;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    pthread_mutex_lock(&freeing.lock);
    int bad = pthread_create(&freeing.thread, NULL, operate, NULL);
    while (!bad && !freeing.has_run)
        bad = pthread_cond_timedwait(&freeing.changed, &freeing.lock, &until);
    freeing.in_time = freeing.has_run;
    pthread_mutex_unlock(&freeing.lock);
}

static void operations_go_on(void)
{
    struct sh_err e = {.text = ""};
    struct sh_props props;
    emulated_count *hook;
    if (open_emulated(&freeing.t, "emu_before_free", &hook))
        return;
    const struct target *t = &freeing.t;
    void (*set)(void (*fn)(void));
    memcpy(&set, &hook, sizeof set);    /* one of another type */
    t->b->release(t->d, t->b->alloc(t->d, 1 << 20, &e));
    t->b->props(t->d, &props);
    set(while_freeing);
    void *all = t->b->alloc(t->d, props.memory_bytes - 4096, &e);       /* what was released has to go */
    set(NULL);
    CU_ASSERT_PTR_NOT_NULL(all);
    CU_ASSERT_FATAL(freeing.asked > 0);
    CU_ASSERT(freeing.in_time && !pthread_join(freeing.thread, NULL));
    t->b->release(t->d, all);
    target_sync(t);
    target_close(&freeing.t);
}

/* ---- pinned memory ---- */

static int same_scores(const struct recording *a, const struct recording *b, int n_head)
{
    int differ = 0;
    size_t bytes = attention_scores(a->c, attention_length(a->c, 0)) * pack_bytes(a->tap.pack);
    for (int h = 0; h < n_head; h++)
        differ += !a->head[h].packed || !b->head[h].packed || a->head[h].disorder || b->head[h].disorder ||
                  memcmp(a->head[h].packed, b->head[h].packed, bytes);
    return !differ;
}

/* 4 MiB are as little as goes: copies and weights travel in small pieces, tiles are of few rows. All is the same. */
static void little_pinned(void)
{
    enum { N_HEAD = 2, LENGTH = 1100, WIDE = 700 };
    struct target t;
    struct attention c;
    struct recording *r[2];
    struct matrix y[2];
    struct sh_err e = {.text = ""};
    emulated_count *ignored;
    float *w = host_normal(SH_F32, WIDE * WIDE, 3, 1);
    for (int little = 0; little < 2; little++) {
        if (little)
            setenv("SH_EMU_PINNED", "4M", 1);
        if (open_emulated(&t, "emu_waits", &ignored))
            return;
        attention_new(&t, &c, &(struct shape){N_HEAD, 1, 8, 0, 0, 1, SH_F32, 1}, (const int[]){LENGTH}, 1);
        r[little] = attention_record(&t, &c, SH_PACK_F32, NULL, NULL);
        CU_ASSERT(comes_back(&t, 3000001));
        struct matrix x = matrix_new(&t, SH_F32, 3, WIDE, 0);
        y[little] = matrix_new(&t, SH_F32, 3, WIDE, 0);
        matrix_normal(&t, &x, 1, 1);
        struct sh_weight *weight = t.b->weight(t.d, w, SH_F32, WIDE, WIDE, SH_F32, &e);
        CU_ASSERT_PTR_NOT_NULL_FATAL(weight);
        t.b->linear(t.d, &(struct sh_linear){.out = y[little].m, .x = x.m, .w = weight});
        matrix_get(&t, &y[little]);
        t.b->drop(t.d, weight);
        t.b->release(t.d, y[little].m.at);
        matrix_free(&t, &x);
        attention_free(&t, &c);
        target_sync(&t);
        target_close(&t);
    }
    unsetenv("SH_EMU_PINNED");
    CU_ASSERT(same_scores(r[0], r[1], N_HEAD));
    CU_ASSERT(!memcmp(y[0].host, y[1].host, 3 * WIDE * sizeof(float)));
    for (int i = 0; i < 2; i++) {
        recording_free(r[i]);
        free(y[i].host);
    }
    free(w);
}

static void no_pinned(void)
{
    struct target t;
    struct sh_err e = {.text = ""};
    emulated_count *ignored;
    if (open_emulated(&t, "emu_waits", &ignored))
        return;
    target_close(&t);
    setenv("SH_EMU_PINNED", "1M", 1);
    CU_ASSERT(!t.b->open(&(struct sh_open){.n_threads = 1}, &e) && e.status == SH_FAILED);
    CU_ASSERT(strstr(e.text, "4 times 8388608 bytes") && strstr(e.text, "262144") &&
              strstr(e.hint, "ulimit -l"));
    setenv("SH_EMU_PINNED", "100K", 1);
    CU_ASSERT(!t.b->open(&(struct sh_open){.n_threads = 1}, &e) && strstr(e.text, "3 times"));
    unsetenv("SH_EMU_PINNED");
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"copies wait for no more than their own memory (module)", copies_wait_little},
        {"vectors do not wait for operations (module)", vectors_overtake},
        {"operations from another thread are refused (module)", strangers},
        {"operations go on while memory is freed (module)", operations_go_on},
        {"little pinned memory: smaller pieces, the same results (module)", little_pinned},
        {"no pinned memory: refused with what is wanted (module)", no_pinned},
        {0}};
    return tap_run("waits", tests);
}
