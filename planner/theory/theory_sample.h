/* SPDX-License-Identifier: Apache-2.0 */
/* The tail sample of one head, or of many: x = score * n for the rows after a split, n = number of keys the row sees,
 * so that 1 is what an even row would give. Zeros and scores that are not finite are left out.
 *
 * Memory is bounded: up to `cap` values are kept as they come; of more, a uniform sample without replacement (algorithm
 * L of Li, ACM TOMS 20, 1994). The same rows in the same order with the same seed give the same sample. */
#ifndef SH_PLANNER_THEORY_SAMPLE_H
#define SH_PLANNER_THEORY_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#define SH_THEORY_CAP 65536             /* a cap at which fits take a second at most, or two */

struct sh_theory_sample;

/* cap >= 1 values of 8 bytes, allocated as they are needed. */
struct sh_theory_sample *sh_theory_sample_new(size_t cap, uint64_t seed);
void sh_theory_sample_free(struct sh_theory_sample *s);     /* NULL is fine */

/* The row of query q, n >= 0 scores of the keys that it sees; nothing happens for q < split. */
void sh_theory_sample_row(struct sh_theory_sample *s, int split, int q, int n, const float *scores);

/* The values, in no particular order; they live until the next call with s. *n: their number. */
const double *sh_theory_sample_values(const struct sh_theory_sample *s, size_t *n);

/* What was sampled. `left_out` counts zeros, negative scores and what is not finite. */
struct sh_theory_seen {
    uint64_t rows, values, left_out;
    double share;                       /* kept / values; 1 while nothing was dropped, NaN if empty */
    double largest;                     /* the largest of all values, not only the kept; NaN if empty */
};

void sh_theory_sample_seen(const struct sh_theory_sample *s, struct sh_theory_seen *out);

#endif
