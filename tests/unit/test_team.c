/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/team.h: every piece once, whoever takes it, and nothing begun before the last is done. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/base/team.h"
#include "tests/tap.h"

enum { MOST = 5000 };

struct counted {
    int times[MOST];                    /* no atomics: a piece has one thread, and the caller sees what it wrote */
    int begins, n;
};

static void count(void *arg, int i)
{
    ((struct counted *)arg)->times[i]++;
}

static int is_each_once(struct counted *c, int n)
{
    int bad = 0;
    for (int i = 0; i < MOST; i++)
        bad += c->times[i] != (i < n);
    memset(c->times, 0, sizeof c->times);
    return !bad;
}

static void every_piece_once(void)
{
    struct counted *c = xcalloc(1, sizeof *c);
    int bad = 0;
    for (int round = 0; round < 3000; round++) {
        int n = (int)(sh_rng(1, (uint64_t)round) % (round % 10 ? 40 : MOST)), threads = round % 7;
        sh_team_each(threads, n, count, c);
        bad += !is_each_once(c, n);
    }
    sh_team_each(2000, MOST, count, c);         /* more threads than are ever used */
    CU_ASSERT(is_each_once(c, MOST));
    CU_ASSERT_EQUAL(bad, 0);
    free(c);
}

/* Pieces that come one after the other in a thread: its own in order, then others' from the back. */
struct ordered {
    atomic_int taken, wrong, thread[64];
};

static void take_in_order(void *arg, struct sh_member *me)
{
    struct ordered *o = arg;
    int first = 100 * me->thread / me->n_threads, end = 100 * (me->thread + 1) / me->n_threads, last = first - 1;
    atomic_fetch_add(&o->thread[me->thread], 1);
    for (int i; sh_member_take(me, &i);) {
        int is_own = i >= first && i < end;
        o->wrong += is_own ? i != last + 1 : me->turn == 0;
        last = is_own ? i : last;
        o->taken++;
    }
}

static void own_pieces_first(void)
{
    struct ordered *o = xcalloc(1, sizeof *o);
    for (int round = 0; round < 2000; round++)
        sh_team_run(4, 100, take_in_order, o);
    CU_ASSERT_EQUAL(o->taken, 2000 * 100);
    CU_ASSERT_EQUAL(o->wrong, 0);
    CU_ASSERT_EQUAL(o->thread[0], 2000);        /* the caller, once each time */
    for (int i = 1; i < 64; i++)
        CU_ASSERT(o->thread[i] <= (i < 4 ? 2000 : 0));
    free(o);
}

static void count_within(void *arg, int i)
{
    struct counted *c = arg;
    (void)i;
    struct counted *inner = xcalloc(1, sizeof *inner);
    sh_team_each(4, 50, count, inner);
    if (is_each_once(inner, 50))
        c->times[i]++;
    free(inner);
}

static void work_within_work(void)
{
    struct counted *c = xcalloc(1, sizeof *c);
    sh_team_each(3, 200, count_within, c);
    CU_ASSERT(is_each_once(c, 200));
    free(c);
}

static void *call_often(void *arg)
{
    struct counted *c = arg;
    for (int round = 0; round < 500; round++) {
        sh_team_each(3, 30, count, c);
        c->begins += is_each_once(c, 30);
    }
    return NULL;
}

static void several_callers(void)
{
    enum { CALLERS = 6 };
    struct counted *c = xcalloc(CALLERS, sizeof *c);
    pthread_t id[CALLERS];
    for (int again = 0; again < 3; again++) {
        for (int i = 0; i < CALLERS; i++)
            CU_ASSERT_EQUAL_FATAL(pthread_create(&id[i], NULL, call_often, &c[i]), 0);
        for (int i = 0; i < CALLERS; i++)
            pthread_join(id[i], NULL);
    }
    for (int i = 0; i < CALLERS; i++)
        CU_ASSERT_EQUAL(c[i].begins, 3 * 500);
    free(c);
}

/* Some pieces sleep, so that threads that wait look, sleep and are woken again. */
static void sleep_sometimes(void *arg, int i)
{
    struct counted *c = arg;
    if (i % 3 == 1)
        nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
    c->times[i]++;
}

static void threads_that_sleep(void)
{
    struct counted *c = xcalloc(1, sizeof *c);
    int bad = 0;
    for (int round = 0; round < 100; round++) {
        if (round % 4 == 3)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        sh_team_each(4, 8, sleep_sometimes, c);
        bad += !is_each_once(c, 8);
    }
    CU_ASSERT_EQUAL(bad, 0);
    free(c);
}

/* How often another thread than the caller took part. */
struct helped {
    atomic_int others, sum;
    int pause_ns;
};

static void help(void *arg, struct sh_member *me)
{
    struct helped *h = arg;
    h->others += me->thread > 0;
    for (int i; sh_member_take(me, &i);)
        if (h->pause_ns)
            nanosleep(&(struct timespec){.tv_nsec = h->pause_ns}, NULL);
        else
            h->sum += i;
}

static int others_in(struct helped *h, int pause_ns, int rounds)
{
    h->others = 0;
    h->pause_ns = pause_ns;
    for (int i = 0; i < rounds; i++)
        sh_team_run(4, 8, help, h);
    return h->others;
}

/* Little work wakes nobody, however often the system stops the caller; work that grows is shared again. */
static void little_work_alone(void)
{
    struct helped h = {.sum = 0};
    others_in(&h, 0, 50);
    CU_ASSERT(others_in(&h, 0, 20000) <= 20);
    CU_ASSERT_EQUAL(h.sum, 20050 * 28);
    CU_ASSERT(others_in(&h, 1000000, 40) >= 20);
    others_in(&h, 0, 100);
    CU_ASSERT(others_in(&h, 0, 20000) <= 20);
}

static void how_many(void)
{
    CU_ASSERT(sh_team_threads() >= 1);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"every piece is done once", every_piece_once},
        {"a thread takes its own pieces first, in order", own_pieces_first},
        {"work that begins within a piece", work_within_work},
        {"several threads call, and end", several_callers},
        {"threads sleep and are woken", threads_that_sleep},
        {"little work is done by the caller alone", little_work_alone},
        {"at least one thread", how_many},
        {0}};
    return tap_run("team", tests);
}
