/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of one row of attention: how focused it is. Backends take them where the row is, statistics
 * add them up. The entropy is the one figure in which two ways may differ, by some 1e-7: where logits are at hand no
 * logarithm is taken. */
#ifndef SH_BASE_ROW_FIGURES_H
#define SH_BASE_ROW_FIGURES_H

#include <stddef.h>
#include <stdint.h>

struct sh_row_figures {
    double entropy;                     /* -sum p ln p, nats                                      */
    double mass_top;                    /* sum of the ceil(0.2 n) largest scores                  */
    double low_mass;                    /* sum of the scores < 1 / n                              */
    uint32_t below_1pct;                /* scores < 0.01 * the row's largest                      */
    uint32_t unused;                    /* so that the struct has the same size everywhere        */
};

/* Of a row of n >= 1 scores (>= 0; anything else gives meaningless figures, never a bad access).
 * The logarithm is a float polynomial: the entropy of a row is good to about 1e-7 relative. The
 * figures do not depend on the machine's vector width: score i is added to partial sum i % 16, in
 * order, and the partial sums are added from 0 to 15; products and sums are rounded one by one. */
void sh_row_figures(const float *row, int n, struct sh_row_figures *out);

/* ---- scores against thresholds (row_bits.c) ---- */

/* For n_word times 64 scores: bit i of above[k * stride + w] is set when x[64 w + i] > limit[k],
 * for k < n_limit <= 64; the words with k = n_limit tell x < low. A NaN sets no bit. */
void sh_row_bits(const float *x, size_t n_word, const float *limit, int n_limit, float low,
                 uint64_t *above, size_t stride);

/* ---- the largest fifth of a row (row_top.c) ---- */

/* How many of n scores the largest fifth are. */
static inline int sh_row_top(int n)
{
    return (n + 4) / 5;
}

/* The sum of the ceil(0.2 n) largest scores, found without sorting: the least of them by counting. from: how many
 * scores are not below 1 / n, rounded up. */
double sh_row_mass_top(const float *row, int n, int from);

/* What a row tells about the head's next one: where its largest fifth ends (`least`: 0, nothing is known), how many of
 * its n scores there are for each step of a float's bits next to that, and by how many such guesses were off, both
 * divided by n. */
struct sh_row_guess {
    float least, slope, error;
};

/* The same number for a row whose scores add up to 1, to the same bit whatever the guess, which is then of this row.
 * from: how many scores are not below guess->least. */
double sh_row_mass_top_near(const float *row, int n, int from, struct sh_row_guess *guess);

/* ---- the scores of a row between two limits (row_near.c) ---- */

enum { SH_ROW_NEAR = 1024 };            /* most that are kept */

struct sh_row_near {
    int above, n;                       /* scores >= high; low <= score < high, of which the first are here: */
    float score[SH_ROW_NEAR + 16];
    double sum;                         /* sum of the scores above, in no certain order */
};

/* Of n scores; low and high are > 0. A NaN is neither above nor between. */
void sh_row_near(const float *row, int n, float low, float high, struct sh_row_near *near);

#endif
