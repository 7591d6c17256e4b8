/* SPDX-License-Identifier: Apache-2.0 */
/* Magnitude pruning of one matrix: its smallest numbers become 0. */
#ifndef SH_MODEL_PRUNE_H
#define SH_MODEL_PRUNE_H

#include <stddef.h>

#include "src/base/num.h"

/* Of the n numbers at `at`, row-major [outputs, inputs], the rint(share * n) of smallest magnitude become +0
 * (ties of the rounding to even, as torch.nn.utils.prune counts); of numbers of equal magnitude those that
 * come first go first. Magnitudes are compared in the type that is stored. share in [0, 1). */
void sh_prune(void *at, enum sh_type type, size_t n, double share);

#endif
