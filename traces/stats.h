/* SPDX-License-Identifier: Apache-2.0 */
/* Streaming attention statistics of one head (sequence, layer, head). Fed with the head's causal rows once, in order,
 * they keep what every pivotal-set figure needs for all cells of the grid and all splits, so the rows need not be
 * stored. Equal scores give equal bits, whether live from a backend or read from a stored trace; only the entropy,
 * which a backend may compute from logits, differs by some 1e-7.
 *
 * A cell is a lane (see stats_spec.h) with a recent window. n_q = number of keys that row q sees, its own included. */
#ifndef SH_TRACES_STATS_H
#define SH_TRACES_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"
#include "src/base/row_figures.h"
#include "traces/stats_spec.h"

#define SH_STATS_LAGS 3
#define SH_STATS_MAX_LENGTH (1 << 24)

extern const int sh_stats_lag[SH_STATS_LAGS];           /* 1, 8, 64 rows apart */

struct sh_row_sums {                    /* over the rows of a head: how focused attention is      */
    uint64_t rows, entries;             /* number of rows, and of all scores in them              */
    uint64_t below_mean;                /* entries < 1 / n_q (as real numbers)                    */
    uint64_t below_1pct;                /* entries < 0.01 * the largest of their row              */
    uint64_t rows_of_two;               /* rows with at least two keys                            */
    double entropy;                     /* sum over rows of -sum p ln p, nats                     */
    double normalised_entropy;          /* sum over rows_of_two of entropy / ln n_q               */
    double mass_top;                    /* sum over rows of the ceil(0.2 n_q) largest entries     */
};

/* Similarity of S_q and S_{q-d}, both without the keys that one of the two rows cannot use: j <= q-d-recent, and j
 * inside the window of row q. Rows where both sets are empty are left out. */
struct sh_jaccard {
    double sum;                         /* sum of |both| / |either|                               */
    double expected;                    /* sum of E/(a+b-E), E = a b / n: for random sets of those sizes */
    uint32_t rows;                      /* rows in the sums                                       */
};

/* Read-only outside this module. -1 stands for "never". */
struct sh_stats {
    struct sh_stats_spec spec;
    int length;                         /* T: rows of the sequence                                */
    int n_row;                          /* rows fed; complete when n_row == length                */
    int n_lane;                         /* 0: no cells, row sums only                             */
    int sparse;                         /* some row was sparse: lanes with K < 1 are undefined    */
    struct sh_row_sums sums;
    int32_t *last;                      /* [n_lane][T]: last q for which j was pivotal, recent 0  */
    int32_t *first;                     /* [n_lane][n_recent][T]: first q, q - j >= recent        */
    int32_t *low;                       /* [n_split][T]: rows q in [max(j, t - window), t) with
                                         * score(q, j) < 1 / n_q, for j < t; else 0               */
    struct sh_jaccard *jaccard;         /* [n_lane][n_recent][SH_STATS_LAGS]                      */
    struct sh_stats_work *work;         /* only while rows are being fed                          */
};

/* `spec` has passed sh_stats_spec_check; 1 <= length <= SH_STATS_MAX_LENGTH. */
struct sh_stats *sh_stats_new(const struct sh_stats_spec *spec, int length);
void sh_stats_free(struct sh_stats *s);                 /* NULL is fine */

/* Statistics without working memory, to be filled by a reader; no rows can be fed. */
struct sh_stats *sh_stats_new_finished(const struct sh_stats_spec *spec, int length);

/* The next row: scores of the query at position q = s->n_row over the keys first_key .. q, hence n = q - first_key +
 * 1 floats; first_key > 0 only in windowed layers, and it never decreases. -1, with nothing changed, when the row
 * violates this. */
int sh_stats_row(struct sh_stats *s, int q, int first_key, const float *row, int n);

/* The same, to the last bit, from the output of a backend in place of a row's scores: one set of keys per lane, in
 * the order of the lanes, of the scores above the lane's limit (sh_stats_limits), one more set of those < 1/n_q, and
 * the row's sums. Key j is bit j % 64 of word j / 64 - first_word; a set has n_word words, sets are adjacent. Bits of
 * keys that the row does not see are ignored. -1 also when the words do not cover the row. */
int sh_stats_row_sets(struct sh_stats *s, int q, int first_key, const uint64_t *bits, int first_word, int n_word,
                      const struct sh_row_figures *figures);

/* The same from a sparse trace: the n_stored scores >= 1/n_q, with `key` (positions) ascending; all others are known
 * to be smaller. Gives identical cells (for sh_stats_sparse_can alphas), low counts and similarities; the row sums
 * are unchanged. */
int sh_stats_row_sparse(struct sh_stats *s, int q, int first_key, int n, const int *key, const float *score,
                        int n_stored);

int sh_stats_is_complete(const struct sh_stats *s);

/* Replace the cells present in both, for thresholds that log8 codes do not decide, by those of `exact`. Both have the
 * same length. */
void sh_stats_take_exact(struct sh_stats *s, const struct sh_stats *exact);

/* Serialisation of a complete head: versioned, little-endian, meant to be compressed by the caller. *out is
 * malloc'ed; 0 when the head is not complete. Reading gives exactly the same numbers and trusts nothing: every count,
 * length and position is checked. Free *out with sh_stats_free. */
size_t sh_stats_pack(const struct sh_stats *s, unsigned char **out);
int sh_stats_unpack(const void *at, size_t bytes, struct sh_stats **out, struct sh_err *e);

#endif
