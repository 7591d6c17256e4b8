/* SPDX-License-Identifier: Apache-2.0 */
/* See random.h. Each number is the sum of eight uniform 16-bit numbers from two draws: mean and
 * deviation are exact, the kurtosis is 2.85 (a normal has 3), no value lies beyond 4.9 deviations.
 * Only integers and one product are involved, so every machine makes the same weights. */
#include "src/model/random.h"

#include "src/base/rng.h"
#include "src/base/team.h"

/* The sum of the four 16-bit parts. */
static inline uint32_t fold(uint64_t bits)
{
    uint64_t pairs = (bits & 0x0000ffff0000ffffu) + (bits >> 16 & 0x0000ffff0000ffffu);
    return (uint32_t)pairs + (uint32_t)(pairs >> 32);
}

enum { PIECE = 1 << 16 };               /* numbers that a thread draws at a time */

struct draw {
    float *out;
    size_t n;
    uint64_t seed;
    float unit;
};

static void draw_piece(void *arg, int piece)
{
    const struct draw *d = arg;
    const int32_t mean = 4 * 65535;                 /* of the sum of eight                        */
    size_t first = (size_t)piece * PIECE, end = d->n - first < PIECE ? d->n : first + PIECE;
    for (size_t i = first; i < end; i++) {
        uint32_t sum = fold(sh_rng(d->seed, 2 * (uint64_t)i)) + fold(sh_rng(d->seed, 2 * (uint64_t)i + 1));
        d->out[i] = (float)((int32_t)sum - mean) * d->unit;
    }
}

void sh_random_normal(float *out, size_t n, uint64_t seed, float std)
{
    struct draw d = {out, n, seed, std * 0x1.3988e2p-16f};      /* std / sqrt(8 * (65536^2 - 1) / 12) */
    sh_team_each(0, (int)((n + PIECE - 1) / PIECE), draw_piece, &d);
}
