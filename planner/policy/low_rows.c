/* SPDX-License-Identifier: Apache-2.0 */
/* See low_rows.h. */
#include "planner/policy/low_rows.h"

#include <string.h>

#include "src/base/clones.h"

int sh_low_rows_window(double knob, int n_token)
{
    return n_token > 0 && (int)knob > n_token ? n_token : (int)knob;
}

/* Of 32 slots: bit k is set if slot k is live and below the limit. */
SH_INLINE uint32_t word_of(const float *row, const int *pos, float limit)
{
    uint32_t word = 0;
    for (int k = 0; k < 32; k++)
        word |= (uint32_t)((row[k] < limit) & (pos[k] >= 0)) << k;
    return word;
}

/* Slots from n on: 0. */
SH_CLONES static void mark(uint32_t *restrict bits, const float *restrict row, const int *restrict pos, float limit,
                           int n)
{
    int whole = n / 32 * 32;
    for (int i = 0; i < whole; i += 32)
        bits[i / 32] = word_of(row + i, pos + i, limit);
    if (whole < n) {
        float last[32] = {0};
        memcpy(last, row + whole, (size_t)(n - whole) * sizeof *row);
        bits[whole / 32] = word_of(last, pos + whole, limit) & ((1u << (n - whole)) - 1);
    }
}

/* A row comes in, the one of number `gone` goes out: it counted for the tokens that were there. Free slots get any
 * number. */
SH_CLONES static void count(int32_t *restrict low, const uint32_t *restrict in, const uint32_t *restrict out,
                            const int *restrict pos, int gone, int words)
{
    for (int w = 0; w < words; w++) {
        const uint32_t come = in[w], went = out[w];
        for (int k = 0; k < 32; k++) {
            int32_t i = 32 * w + k, was_there = -(pos[i] <= gone);
            low[i] += (int32_t)(come >> k & 1) - ((int32_t)(went >> k & 1) & was_there);
        }
    }
}

void sh_low_rows_add(struct sh_low_rows *r, const struct sh_cache *c, const float *row, int window, float limit)
{
    const size_t words = ((size_t)c->head->capacity + 31) / 32, rows = (size_t)window + 1, at = (size_t)r->n_row;
    uint32_t *now = r->bits + at % rows * words;
    const uint32_t *old = r->bits + (at + 1) % rows * words;            /* row n_row - window */
    mark(now, row, c->pos, limit, c->n_slot);
    count(r->low, now, old, c->pos, r->n_row - window, (c->n_slot + 31) / 32);
    r->n_row++;
}
