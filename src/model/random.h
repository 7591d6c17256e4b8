/* SPDX-License-Identifier: Apache-2.0 */
/* Weights for a model without weights: reproducible numbers at memory speed. */
#ifndef SH_MODEL_RANDOM_H
#define SH_MODEL_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* out[i] for i < n: mean 0, deviation `std`, near-normal; a function of seed and i alone. */
void sh_random_normal(float *out, size_t n, uint64_t seed, float std);

#endif
