/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of log8 codes (src/base/score.h) back to scores. */
#ifndef SH_TRACES_LOG8_H
#define SH_TRACES_LOG8_H

#include <stdint.h>

/* The n scores of one row from its codes, 1 <= n < 2^24; any codes are a row. Each score is its cell's
 * mean, at most 4 % from anything in the cell; one above a half is what the others leave to the sum of 1.
 * The scores are on the same side of K/n, K = 1, 2, 5, 10, as those that were coded, and as many are below
 * 1 % of the largest. */
void sh_log8_scores(float *to, const uint8_t *code, int n);

/* The codes of a row of n scores, 1 <= n < 2^24, none below 0 (1 is the most): what a backend hands out where
 * logits are at hand. */
void sh_log8_codes(uint8_t *to, const float *score, int n);

#endif
