/* SPDX-License-Identifier: Apache-2.0 */
/* Timers by stage: where a run's time goes (--timing).
 *
 *     unsigned long long since = sh_stage_begin(stages);       0 when stages is NULL: nothing is measured
 *     …
 *     sh_stage_end(stages, SH_STAGE_PRODUCTS, since, 1);
 *
 * A stage's seconds are those that it would hold up the run by itself: the time of work that n threads or devices
 * share counts as 1/n in each of them. Stages that run side by side, such as the writer and the products, add up to
 * more than the run took. On a GPU the device's own clock is read (events), and nothing waits for that.
 *
 * Everything is inline, so that the CUDA module, which imports nothing from the program, has it too. Any thread may
 * add at any time. */
#ifndef SH_BASE_STAGES_H
#define SH_BASE_STAGES_H

#include <time.h>

enum sh_stage {
    SH_STAGE_PRODUCTS,                  /* matrix products of the layers and the output head       */
    SH_STAGE_ATTENTION,                 /* Q K^T and P V                                           */
    SH_STAGE_SOFTMAX,                   /* softmax, and packing rows to be recorded                */
    SH_STAGE_COPY,                      /* between host and device; weights into their layout      */
    SH_STAGE_STATISTICS,                /* sets, figures and streaming statistics; eval's measures */
    SH_STAGE_COMPRESSION,               /* blocks for the store: codec and zstd                    */
    SH_STAGE_WRITER,                    /* transactions of the store                               */
    SH_STAGE_TOKENS,                    /* texts to tokens, tokens to rows, the choice of the next */
    SH_STAGE_EVICTION,                  /* room in the cache: what policies observe and drop       */
    SH_STAGES
};

struct sh_stages {
    unsigned long long ns[SH_STAGES];   /* zeroed by the caller                                    */
    int devices;                        /* devices that work in parallel; 0: 1                     */
};

static inline unsigned long long sh_stage_begin(const struct sh_stages *s)
{
    struct timespec now;
    if (!s)
        return 0;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec;
}

/* ns of one of `sharers` threads or devices. */
static inline void sh_stage_add(struct sh_stages *s, enum sh_stage stage, unsigned long long ns, int sharers)
{
    if (s)
        __atomic_fetch_add(&s->ns[stage], ns / (unsigned long long)(sharers > 1 ? sharers : 1), __ATOMIC_RELAXED);
}

/* Ends a stage; returns the time at which the next one begins. */
static inline unsigned long long sh_stage_end(struct sh_stages *s, enum sh_stage stage, unsigned long long since,
                                              int sharers)
{
    unsigned long long now = sh_stage_begin(s);
    sh_stage_add(s, stage, now - since, sharers);
    return now;
}

/* Threads of a device that work in parallel with those of all other devices. */
static inline int sh_stage_sharers(const struct sh_stages *s, int threads)
{
    int devices = s && s->devices > 1 ? s->devices : 1;
    return devices * (threads > 1 ? threads : 1);
}

struct sh_out;

/* stages.c: the list "timing", a row a stage that took time, in seconds and as a share of what the run took, and a last
 * row for the run. Nothing when s is NULL. */
void sh_stages_put(struct sh_out *o, const struct sh_stages *s, double run_s);

#endif
