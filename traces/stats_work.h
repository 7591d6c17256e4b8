/* SPDX-License-Identifier: Apache-2.0 */
/* What stats.c, stats_likeness.c and stats_fold.c share: the working memory of a head whose rows are being fed. */
#ifndef SH_TRACES_STATS_WORK_H
#define SH_TRACES_STATS_WORK_H

#include "src/base/clones.h"
#include "traces/stats.h"

#define STATS_SLOTS 128                 /* the newest block of 64 rows and the one before it      */
#define STATS_LINE 8                    /* words of a line of the cache                           */

/* Of a recent window and a lag, lane by lane: the newest pair of rows, and the sums (struct sh_jaccard). */
struct alike {
    int a[SH_STATS_MAX_LANES], b[SH_STATS_MAX_LANES], both[SH_STATS_MAX_LANES];
    double sum[SH_STATS_MAX_LANES], expected[SH_STATS_MAX_LANES];
    uint32_t rows[SH_STATS_MAX_LANES];
};

/* Row q lives in slot q % STATS_SLOTS. The words of all lanes for the same 64 keys lie side by side, so that what is
 * done to one lane is done to all. Words below that of the row's first key are not valid, but for those of this block,
 * which are zero; those above q's are zero, since no row before it in this slot came so far. */
struct sh_stats_work {
    size_t n_word;                      /* words of a bit set over all keys; odd, so that the rows of a block do not
                                         * share a set of the cache */
    size_t side;                        /* n_lane in whole lines: 8 or 16                         */
    uint64_t *bits;                     /* [STATS_SLOTS][n_word][side]                            */
    size_t low_word;                    /* n_word in whole lines, an odd number of them           */
    uint64_t *low;                      /* [STATS_SLOTS][low_word]: the low scores                */
    uint64_t *sets;                     /* [n_lane + 1][low_word]: of a row that is being marked  */
    int *total;                         /* [STATS_SLOTS][side]: bits of the row's sets            */
    int first_word[STATS_SLOTS];        /* of the row                                             */
    uint64_t *seen;                     /* [n_recent][n_word][side]: first is known               */
    uint64_t *any;                      /* [n_word][side]: the union of the rows of this block of 64 */
    uint64_t *pending;                  /* [n_word][side]: pivotal in the block before, so that last may be there */
    int pending_word;                   /* what comes before this word is not pending             */
    struct alike *alike;                /* [n_recent][SH_STATS_LAGS]                              */
    struct sh_stats_limit limit[SH_STATS_MAX_LANES];
    int first_key;                      /* of the newest row                                      */
    int block_word;                     /* first valid word of the oldest row of this block of 64 */
};

SH_INLINE uint64_t up_to(int bit)                   /* bits 0 .. bit */
{
    return ~(uint64_t)0 >> (63 - bit);
}

SH_INLINE int population(uint64_t word)
{
    return __builtin_popcountll(word);
}

/* The words of row q from word `at` on, lane by lane. */
SH_INLINE uint64_t *words_at(const struct sh_stats_work *w, int q, int at)
{
    return w->bits + ((unsigned)q % STATS_SLOTS * w->n_word + (size_t)at) * w->side;
}

/* The low scores of row q from word `at` on. */
SH_INLINE uint64_t *low_at(const struct sh_stats_work *w, int q, int at)
{
    return w->low + (unsigned)q % STATS_SLOTS * w->low_word + at;
}

/* stats_likeness.c: compares row q, the newest, with those that are a lag before it, and adds it to the union of its
 * block, while it is near; and the sums of all rows put where readers look for them. */
void sh_stats_compare(struct sh_stats *s, int q);
void sh_stats_put_likeness(struct sh_stats *s);

/* stats_fold.c: folds the rows q0 .. q0 + n_row - 1, a block of at most 64 that ends with the newest, into first, last
 * and low. */
void sh_stats_fold(struct sh_stats *s, int q0, int n_row);

#endif
