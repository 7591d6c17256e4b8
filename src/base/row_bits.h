/* SPDX-License-Identifier: Apache-2.0 */
/* Attention scores against thresholds, 64 at a time, as bits. */
#ifndef SH_BASE_ROW_BITS_H
#define SH_BASE_ROW_BITS_H

#include <stddef.h>
#include <stdint.h>

/* For n_word times 64 scores: bit i of above[k * stride + w] is set when x[64 w + i] > limit[k],
 * for k < n_limit <= 64; the words with k = n_limit tell x < low. A NaN sets no bit. */
void sh_row_bits(const float *x, size_t n_word, const float *limit, int n_limit, float low,
                 uint64_t *above, size_t stride);

#endif
