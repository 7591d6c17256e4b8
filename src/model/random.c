/* SPDX-License-Identifier: Apache-2.0 */
/* See random.h. Each number is the sum of eight uniform 16-bit numbers from two draws: mean and
 * deviation are exact, the kurtosis is 2.85 (a normal has 3), no value lies beyond 4.9 deviations.
 * Only integers and one product are involved, so every machine makes the same weights. */
#include "src/model/random.h"

#include "src/base/rng.h"

/* The sum of the four 16-bit parts. */
static inline uint32_t fold(uint64_t bits)
{
    uint64_t pairs = (bits & 0x0000ffff0000ffffu) + (bits >> 16 & 0x0000ffff0000ffffu);
    return (uint32_t)pairs + (uint32_t)(pairs >> 32);
}

void sh_random_normal(float *out, size_t n, uint64_t seed, float std)
{
    const int32_t mean = 4 * 65535;                 /* of the sum of eight                        */
    const float unit = std * 0x1.3988e2p-16f; /* std / sqrt(8 * (65536^2 - 1) / 12)             */
    #pragma omp parallel for schedule(static) if (n > 65536)
    for (size_t i = 0; i < n; i++) {
        uint32_t sum = fold(sh_rng(seed, 2 * (uint64_t)i)) + fold(sh_rng(seed, 2 * (uint64_t)i + 1));
        out[i] = (float)((int32_t)sum - mean) * unit;
    }
}
