/* SPDX-License-Identifier: Apache-2.0 */
/* The working memory of a head whose rows are being fed: shared by stats.c, stats_likeness.c and stats_fold.c. */
#ifndef SH_TRACES_STATS_WORK_H
#define SH_TRACES_STATS_WORK_H

#include "src/base/clones.h"
#include "traces/stats.h"

#define STATS_SLOTS 128                 /* the newest block of 64 rows and the one before it      */
#define STATS_LINE 8                    /* words of a cache line                                  */

/* For a recent window and a lag, per lane: the newest pair of rows, and the sums (struct sh_jaccard). */
struct alike {
    int a[SH_STATS_MAX_LANES], b[SH_STATS_MAX_LANES], both[SH_STATS_MAX_LANES];
    double sum[SH_STATS_MAX_LANES], expected[SH_STATS_MAX_LANES];
    uint32_t rows[SH_STATS_MAX_LANES];
};

/* Row q occupies slot q % STATS_SLOTS. The words of all lanes for the same 64 keys are adjacent, so that one
 * operation serves all lanes. Words before that of the row's first key are invalid, except in this block, where they
 * are zero; those after q's are zero, since no earlier row in the slot reached as far. */
struct sh_stats_work {
    size_t n_word;                      /* words of a bit set over all keys; odd, so that the rows of a block do not
                                         * share a cache set */
    size_t side;                        /* n_lane rounded up to cache lines: 8 or 16              */
    uint64_t *bits;                     /* [STATS_SLOTS][n_word][side]                            */
    size_t low_word;                    /* n_word rounded up to an odd number of lines            */
    uint64_t *low;                      /* [STATS_SLOTS][low_word]: the low scores                */
    uint64_t *sets;                     /* [n_lane + 1][low_word]: of the row being marked        */
    int *total;                         /* [STATS_SLOTS][side]: number of bits in the row's sets  */
    int first_word[STATS_SLOTS];        /* first words of the row                                 */
    uint64_t *seen;                     /* [n_recent][n_word][side]: `first` is known             */
    uint64_t *any;                      /* [n_word][side]: the union of the rows of this block of 64 */
    uint64_t *pending;                  /* [n_word][side]: pivotal in the preceding block, which may hold `last` */
    int pending_word;                   /* words before this one have no pending bits             */
    struct alike *alike;                /* [n_recent][SH_STATS_LAGS]                              */
    struct sh_stats_limit limit[SH_STATS_MAX_LANES];
    int first_key;                      /* first key of the newest row                            */
    int block_word;                     /* first valid word of the oldest row of this block of 64 */
};

SH_INLINE uint64_t up_to(int bit)                   /* bits 0 .. bit */
{
    return ~(uint64_t)0 >> (63 - bit);
}

/* The words of row q from word `at` on, per lane. */
SH_INLINE uint64_t *words_at(const struct sh_stats_work *w, int q, int at)
{
    return w->bits + ((unsigned)q % STATS_SLOTS * w->n_word + (size_t)at) * w->side;
}

/* The low scores of row q from word `at` on. */
SH_INLINE uint64_t *low_at(const struct sh_stats_work *w, int q, int at)
{
    return w->low + (unsigned)q % STATS_SLOTS * w->low_word + at;
}

/* stats_likeness.c: compare row q, the newest, with those a lag before it, and add it to the union of its block while
 * it is in cache; at the end, copy the sums of all rows to where readers look for them. */
void sh_stats_compare(struct sh_stats *s, int q);
void sh_stats_put_likeness(struct sh_stats *s);

/* stats_fold.c: fold the rows q0 .. q0 + n_row - 1, a block of at most 64 that ends with the newest row, into first,
 * last and low. */
void sh_stats_fold(struct sh_stats *s, int q0, int n_row);

#endif
