/* SPDX-License-Identifier: Apache-2.0 */
/* The one generator of random numbers: splitmix64, counter-based, so the n-th number of a seed is
 * the same on every machine and whatever the order of the calls. Nobody calls rand() or time(). */
#ifndef SH_BASE_RNG_H
#define SH_BASE_RNG_H

#include <stdint.h>

uint64_t sh_rng(uint64_t seed, uint64_t n);             /* 64 uniform bits                        */
double sh_rng_uniform(uint64_t seed, uint64_t n);       /* a number in (0, 1), never the ends     */
double sh_rng_normal(uint64_t seed, uint64_t n);        /* mean 0, deviation 1 (Box-Muller)       */

#endif
