/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion between rows of log8 codes (src/base/score.h) and scores. */
#ifndef SH_TRACES_LOG8_H
#define SH_TRACES_LOG8_H

#include <stdint.h>

/* The n scores of one row from its codes, 1 <= n < 2^24; any codes form a valid row. Each score is its cell's mean,
 * at most 4 % from anything in the cell; one above a half is what the others leave of the sum 1. The scores are on
 * the same side of K/n, K = 1, 2, 5, 10, as the coded ones, and the number below 1 % of the largest is the same. */
void sh_log8_scores(float *to, const uint8_t *code, int n);

/* The codes of a row of n scores, 1 <= n < 2^24, each in [0, 1]; the same codes that a backend computes from logits. */
void sh_log8_codes(uint8_t *to, const float *score, int n);

#endif
