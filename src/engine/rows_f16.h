/* SPDX-License-Identifier: Apache-2.0 */
/* Products with rows of f16 numbers where they lie, without a copy in f32: what a step does with keys and values
 * that are kept in 16 bits. Only with AVX-512; the numbers are those of slots_attend.c's own loops over the copy,
 * bit by bit. */
#ifndef SH_ENGINE_ROWS_F16_H
#define SH_ENGINE_ROWS_F16_H

#include <stdint.h>

/* Can this machine, for rows of d numbers? */
int sh_rows_f16_fit(int d);

/* score[j] = scale * q k_j: k [n, d]. */
void sh_rows_f16_products(const float *q, const uint16_t *k, float scale, int n, int d, float *score);

/* out += p v: v [n, d]. */
void sh_rows_f16_mix(const float *p, const uint16_t *v, int n, int d, float *out);

#endif
