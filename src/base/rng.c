/* SPDX-License-Identifier: Apache-2.0 */
/* See rng.h. Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014. */
#include "src/base/rng.h"

#include <math.h>

uint64_t sh_rng(uint64_t seed, uint64_t n)
{
    uint64_t z = seed + (n + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double sh_rng_uniform(uint64_t seed, uint64_t n)
{
    double u = ((double)(sh_rng(seed, n) >> 11) + 0.5) * 0x1p-53;
    return u < 1 ? u : 1 - 0x1p-53;     /* the largest of all is rounded up to 1 */
}

double sh_rng_normal(uint64_t seed, uint64_t n)
{
    double u = sh_rng_uniform(seed, 2 * n), v = sh_rng_uniform(seed, 2 * n + 1);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}
