/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a weight: fresh ones, and the smallest set to 0. */
#ifndef SH_MODEL_NUMBERS_H
#define SH_MODEL_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/num.h"

/* out[i] for i < n: mean 0, deviation `std`, near-normal; a function of seed and i alone. */
void sh_random_normal(float *out, size_t n, uint64_t seed, float std);

/* Of the n numbers at `at`, row-major [outputs, inputs], the rint(share * n) of smallest magnitude become +0
 * (ties of the rounding to even, as torch.nn.utils.prune counts); of numbers of equal magnitude those that
 * come first go first. Magnitudes are compared in the type that is stored. share in [0, 1). */
void sh_prune(void *at, enum sh_type type, size_t n, double share);

#endif
