/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of scores that come with their logits, from outside the backends. */
#ifndef SH_BASE_ROW_CODES_H
#define SH_BASE_ROW_CODES_H

#include <stdint.h>

/* The log8 codes (log8.h) of n scores p, 1 <= n < 2^24, whose logits are s, up to a constant: the same as a backend's,
 * but for rounding at the edges of cells. A score of 0 may have any low logit. */
void sh_row_codes(uint8_t *to, const float *s, const float *p, int n);

/* The sum of n scores in *sum. -1: one of them is not a number >= 0. */
int sh_row_total(const float *p, int n, double *sum);

#endif
