/* SPDX-License-Identifier: Apache-2.0 */
/* See team.h. A job is published at the team's door: one word with the job's number, whether it is open, and how many
 * threads are inside. Who enters counts itself in while it is open; the caller closes it when no piece is left, and
 * waits until nobody is inside. Then the job's fields belong to the caller again. */
#include "src/base/team.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "src/base/mem.h"

enum {
    SPIN_NS = 100000,                   /* a thread looks for work that long: longer than between two products of a
                                           model, and not long enough to be felt */
    LOST_NS = 50000,                    /* between two looks: somebody else had the processor, ...        */
    LOST_SHARE = 20,                    /* ... and for so many times as long, ...                         */
    BUSY_NS = 1000000000,               /* ... at most so long, ...                                       */
    WORTH_NS = 80000,                   /* ... the caller does alone what takes less; after a long time ... */
    LONG_NS = 50000000,                 /* ... of that, ...                                               */
    SLEEPS = 64,                        /* ... so many waits are without looking; ...                     */
    LITTLE_NS = 8000,                   /* ... what takes less than this always: to share it costs more   */
    STOPPED_NS = 20000000,              /* a run that takes less and still too long may have been stopped, ... */
    STOPS = 3,                          /* ... but not so many in turn                                    */
    KNOWN = 64,                         /* kinds of work whose time is remembered                         */
    LOOKS = 32                          /* between two looks at the clock                                 */
};

static const uint64_t OPEN = 1u << 31, INSIDE = OPEN - 1;

/* The pieces of a thread that are left: first in the low half, end in the high one. */
struct sh_share {
    _Alignas(64) _Atomic uint64_t left;
};

/* How long a piece of some work takes, so far; 0: not measured yet. */
struct known {
    uintptr_t work;
    double piece_ns;
    int longer;                         /* last runs that took more than twice as long                 */
};

struct worker {
    struct team *team;
    pthread_t id;
    int thread;
};

struct team {
    _Alignas(64) _Atomic uint64_t door;     /* job << 32 | OPEN | threads inside                              */
    _Alignas(64) _Atomic uint32_t call;     /* number of the last job; sleeping threads wait for it to change */
    _Atomic int asleep, ended;
    _Alignas(64) _Atomic uint32_t waits;    /* 1: the caller sleeps until nobody is inside                    */
    _Atomic int64_t busy_until;             /* ns: others want the processors, as far as we know              */
    sh_team_work *work;                     /* the job                                                        */
    void *arg;
    uint32_t number;
    int n_threads;
    struct sh_share *share;                 /* [most]                                                         */
    int most, n_worker, sleeps;             /* sleeps: waits of the caller that are without looking           */
    struct known known[KNOWN];
    struct worker worker[SH_TEAM_MOST];
};

static _Thread_local struct team *own_team;
static _Thread_local int is_inside;
static pthread_key_t end_key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

/* ---- waiting ---- */

static void futex_wait(_Atomic uint32_t *at, uint32_t while_is)
{
    syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, while_is, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *at)
{
    syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* A worker's bit: who sleeps beyond those that a job is for is not woken by it. */
static uint32_t bit_of(int thread)
{
    return 1u << thread % 32;
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pause_briefly(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

/* Somebody else had a processor for so long; 1: others want it all the time. A system that takes it for a moment now
 * and then, as a virtual machine's does, costs less than working alone would. */
static int note_lost(struct team *t, int64_t now, int64_t lost)
{
    int64_t until = atomic_load_explicit(&t->busy_until, memory_order_relaxed);
    until = (until > now ? until : now) + LOST_SHARE * (lost < BUSY_NS ? lost : BUSY_NS);
    until = until < now + BUSY_NS ? until : now + BUSY_NS;
    atomic_store_explicit(&t->busy_until, until, memory_order_relaxed);
    return until > now + LONG_NS;
}

/* Looks until is_there(team, seen) or it has looked long enough; *sleeps waits are without looking. 1: it is there. */
static int look(struct team *t, uint32_t seen, int (*is_there)(struct team *, uint32_t), int *sleeps)
{
    if (is_there(t, seen))
        return 1;
    if (*sleeps > 0) {
        --*sleeps;
        return 0;
    }
    for (int64_t start = now_ns(), last = start, now; last - start < SPIN_NS; last = now) {
        for (int i = 0; i < LOOKS; i++) {
            if (is_there(t, seen))
                return 1;
            pause_briefly();
        }
        now = now_ns();
        if (now - last > LOST_NS && note_lost(t, now, now - last)) {
            *sleeps = SLEEPS;
            return is_there(t, seen);
        }
    }
    return 0;
}

static int is_called(struct team *t, uint32_t seen)
{
    return atomic_load_explicit(&t->call, memory_order_acquire) != seen;
}

static int is_empty(struct team *t, uint32_t unused)
{
    (void)unused;
    return !(atomic_load_explicit(&t->door, memory_order_acquire) & INSIDE);
}

/* ---- a job ---- */

static int take(struct sh_share *s, int from_back, int *piece)
{
    uint64_t old = atomic_load_explicit(&s->left, memory_order_relaxed), next;
    uint32_t first, end;
    do {
        first = (uint32_t)old;
        end = (uint32_t)(old >> 32);
        if (first >= end)
            return 0;
        *piece = (int)(from_back ? end - 1 : first);
        next = from_back ? (uint64_t)(end - 1) << 32 | first : old + 1;
    } while (!atomic_compare_exchange_weak_explicit(&s->left, &old, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    return 1;
}

int sh_member_take(struct sh_member *me, int *piece)
{
    for (; me->turn < me->n_threads; me->turn++)
        if (take(&me->share[(me->thread + me->turn) % me->n_threads], me->turn > 0, piece)) {
            me->taken++;
            return 1;
        }
    return 0;
}

/* Gives the number of pieces. */
static int work_as(struct team *t, int thread)
{
    struct sh_member me = {.thread = thread, .n_threads = t->n_threads, .share = t->share};
    is_inside = 1;
    t->work(t->arg, &me);
    is_inside = 0;
    return me.taken;
}

static int enter(struct team *t, uint32_t job)
{
    uint64_t door = atomic_load_explicit(&t->door, memory_order_relaxed);
    do
        if (door >> 32 != job || !(door & OPEN))
            return 0;
    while (!atomic_compare_exchange_weak_explicit(&t->door, &door, door + 1, memory_order_acquire,
                                                  memory_order_relaxed));
    return 1;
}

static void leave(struct team *t)
{
    uint64_t door = atomic_fetch_sub(&t->door, 1);
    if ((door & (OPEN | INSIDE)) == 1 && atomic_exchange(&t->waits, 0))
        futex_wake(&t->waits);
}

static void *run_worker(void *argument)
{
    const struct worker *w = argument;
    struct team *t = w->team;
    uint32_t seen = 0;
    int sleeps = 0;
    while (!atomic_load_explicit(&t->ended, memory_order_acquire)) {
        if (!look(t, seen, is_called, &sleeps)) {
            atomic_fetch_add(&t->asleep, 1);
            while (!is_called(t, seen))
                syscall(SYS_futex, &t->call, FUTEX_WAIT_BITSET_PRIVATE, seen, NULL, NULL, bit_of(w->thread));
            atomic_fetch_sub(&t->asleep, 1);
        }
        seen = atomic_load_explicit(&t->call, memory_order_acquire);
        if (!enter(t, seen))
            continue;
        if (w->thread < t->n_threads)
            work_as(t, w->thread);
        leave(t);
    }
    return NULL;
}

static void call(struct team *t, int n_threads)
{
    uint32_t bits = n_threads < 32 ? bit_of(n_threads) - 1 : UINT32_MAX;
    atomic_store(&t->call, t->number);
    if (atomic_load(&t->asleep))
        syscall(SYS_futex, &t->call, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, bits);
}

static struct known *known_of(struct team *t, uintptr_t work)
{
    struct known *home = &t->known[work / 16 % KNOWN], *k = home;
    for (int i = 1; i < KNOWN && k->work && k->work != work; i++)
        k = &t->known[(work / 16 + (uintptr_t)i) % KNOWN];
    k = k->work && k->work != work ? home : k;          /* more kinds than there is room for */
    if (k->work != work)
        *k = (struct known){.work = work};
    return k;
}

/* A thread that the system stopped for a moment seems to work on a long piece: such a run does not count, unless it is
 * one of several. */
static void learn(struct known *k, int64_t ns, int pieces)
{
    double piece_ns = (double)ns / pieces;
    int is_longer = piece_ns > 2 * k->piece_ns, is_other = is_longer || piece_ns < k->piece_ns / 2;
    if (!(k->piece_ns > 0)) {
        k->piece_ns = piece_ns;
        return;
    }
    k->longer = is_longer ? k->longer + (k->longer < STOPS) : 0;
    if (!is_longer || k->longer == STOPS || ns >= STOPPED_NS)
        k->piece_ns += (piece_ns - k->piece_ns) / (is_other ? 2 : 8);
}

/* piece_ns: what a piece takes; who takes far longer was stopped. */
static void wait_until_empty(struct team *t, double piece_ns)
{
    if (is_empty(t, 0))
        return;
    int64_t start = now_ns(), end;
    while (!is_empty(t, 0) && !look(t, 0, is_empty, &t->sleeps)) {
        atomic_store(&t->waits, 1);
        if (!is_empty(t, 0))
            futex_wait(&t->waits, 1);
        atomic_store(&t->waits, 0);
    }
    end = now_ns();
    if ((double)(end - start) > 4 * piece_ns + 4 * LOST_NS)
        note_lost(t, end, end - start);
}

/* ---- the team ---- */

static void end_team(void *argument)
{
    struct team *t = argument;
    atomic_store_explicit(&t->ended, 1, memory_order_release);
    t->number++;
    call(t, SH_TEAM_MOST);
    for (int i = 0; i < t->n_worker; i++)
        pthread_join(t->worker[i].id, NULL);
    free(t->share);
    free(t);
}

static int has_key;

/* After fork() the child has none of the team's threads: it starts others, and the old team's memory stays. */
static void forget_team(void)
{
    own_team = NULL;
    is_inside = 0;
    if (has_key)
        pthread_setspecific(end_key, NULL);
}

static void make_key(void)
{
    has_key = !pthread_key_create(&end_key, end_team) && !pthread_atfork(NULL, NULL, forget_team);
}

/* The calling thread's team, with room for n threads, or NULL. If the system starts fewer, these do the work. */
static struct team *team_of(int n)
{
    struct team *t = own_team;
    if (!t) {
        pthread_once(&key_once, make_key);
        t = xaligned(sizeof *t);
        *t = (struct team){0};
        if (!has_key || pthread_setspecific(end_key, t)) {      /* nobody would end its threads */
            free(t);
            return NULL;
        }
        own_team = t;
    }
    if (n > t->most) {                      /* nobody is inside */
        free(t->share);
        t->share = xaligned((size_t)n * sizeof *t->share);
        t->most = n;
    }
    for (; t->n_worker < n - 1; t->n_worker++) {
        struct worker *w = &t->worker[t->n_worker];
        *w = (struct worker){.team = t, .thread = t->n_worker + 1};
        if (pthread_create(&w->id, NULL, run_worker, w))
            break;
    }
    return t;
}

static void deal(struct sh_share *share, int n_threads, int n)
{
    for (int64_t i = 0; i < n_threads; i++)
        atomic_init(&share[i].left, (uint64_t)(n * (i + 1) / n_threads) << 32 | (uint64_t)(n * i / n_threads));
}

/* Is it faster without others? Work that was not measured yet is shared. */
static int is_little(const struct team *t, const struct known *k, int n, int64_t now)
{
    int is_busy = now < atomic_load_explicit(&t->busy_until, memory_order_relaxed);
    return k->piece_ns > 0 && n * k->piece_ns < (is_busy ? WORTH_NS : LITTLE_NS);
}

/* key: the work whose pieces take about the same time. */
static void run(int n_threads, int n, sh_team_work *work, void *arg, uintptr_t key)
{
    if (n_threads < 1)
        n_threads = sh_team_threads();
    n_threads = n_threads < n ? n_threads : n;
    n_threads = n_threads < SH_TEAM_MOST ? n_threads : SH_TEAM_MOST;
    struct team *t = n_threads <= 1 || is_inside ? NULL : team_of(n_threads);
    struct known *known = t ? known_of(t, key) : NULL;
    int64_t start = t ? now_ns() : 0;
    if (!t || is_little(t, known, n, start)) {
        struct sh_share all;
        deal(&all, 1, n);
        work(arg, &(struct sh_member){.n_threads = 1, .share = &all});
        if (t)
            learn(known, now_ns() - start, n);
        return;
    }
    t->work = work;
    t->arg = arg;
    t->n_threads = n_threads;
    t->number++;
    deal(t->share, n_threads, n);
    atomic_store_explicit(&t->door, (uint64_t)t->number << 32 | OPEN, memory_order_release);
    call(t, n_threads);
    start = now_ns();                   /* without what calling the others takes */
    int taken = work_as(t, 0);
    if (taken || !(known->piece_ns > 0))
        learn(known, now_ns() - start, taken ? taken : n);
    else
        known->piece_ns /= 2;           /* others did it all before the caller could begin: perhaps it is little */
    atomic_fetch_and(&t->door, ~OPEN);
    wait_until_empty(t, known->piece_ns);
}

void sh_team_run(int n_threads, int n, sh_team_work *work, void *arg)
{
    run(n_threads, n, work, arg, (uintptr_t)work);
}

struct each {
    void (*piece)(void *arg, int i);
    void *arg;
};

static void take_each(void *arg, struct sh_member *me)
{
    const struct each *a = arg;
    for (int i; sh_member_take(me, &i);)
        a->piece(a->arg, i);
}

void sh_team_each(int n_threads, int n, void (*piece)(void *arg, int i), void *arg)
{
    run(n_threads, n, take_each, &(struct each){piece, arg}, (uintptr_t)piece);
}

/* ---- how many ---- */

/* Processors' worth of time that a control group gives, or 0: it sets no limit, or there is none. */
static int quota(void)
{
    long long most = 0, period = 0;
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "r");
    if (f) {
        if (fscanf(f, "%lld %lld", &most, &period) != 2)        /* "max 100000": no limit */
            most = 0;
        fclose(f);
    }
    return most > 0 && period > 0 ? (int)((most + period - 1) / period) : 0;
}

static int processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? (int)sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);
    int limit = quota();
    n = limit && limit < n ? limit : n;
    return n > 0 ? n : 1;
}

int sh_team_threads(void)
{
    static atomic_int known;
    int n = atomic_load_explicit(&known, memory_order_relaxed);
    if (n < 1) {
        const char *asked = getenv("OMP_NUM_THREADS");
        long wanted = asked ? strtol(asked, NULL, 10) : 0;
        n = wanted > 0 ? wanted < SH_TEAM_MOST ? (int)wanted : SH_TEAM_MOST : processors();
        atomic_store_explicit(&known, n, memory_order_relaxed);
    }
    return n;
}
