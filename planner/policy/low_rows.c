/* SPDX-License-Identifier: Apache-2.0 */
/* See low_rows.h. */
#include "planner/policy/low_rows.h"

#include "src/base/clones.h"

static size_t words_of(int capacity)
{
    return ((size_t)capacity + 31) / 32;
}

size_t sh_low_rows_ring_bytes(int capacity, int window)
{
    return ((size_t)window + 1) * words_of(capacity) * sizeof(uint32_t);
}

size_t sh_low_rows_bytes(int capacity, int window)
{
    return 2 * 32 * words_of(capacity) * sizeof(int32_t) + sh_low_rows_ring_bytes(capacity, window);
}

void sh_low_rows_place(struct sh_low_rows *r, void *memory, int capacity, int window)
{
    size_t words = words_of(capacity);
    int32_t *low = memory;
    *r = (struct sh_low_rows){.words = (int)words, .window = window, .low = low, .born = low + 32 * words,
                              .bits = (uint32_t *)(low + 64 * words)};
}

void sh_low_rows_admit(struct sh_low_rows *r, int slot)
{
    r->low[slot] = 0;
    r->born[slot] = r->n_row;
}

/* Bit k % 32 of bits[k / 32]: slot k is live and below the limit. Slots from n on: 0. */
SH_CLONES static void mark(uint32_t *restrict bits, const float *restrict row, const int *restrict pos, float limit,
                           int n)
{
    int whole = n / 32 * 32;
    for (int i = 0; i < whole; i += 32) {
        uint32_t word = 0;
        for (int k = 0; k < 32; k++)
            word |= (uint32_t)((row[i + k] < limit) & (pos[i + k] >= 0)) << k;
        bits[i / 32] = word;
    }
    if (whole < n)
        bits[whole / 32] = 0;
    for (int i = whole; i < n; i++)
        bits[i / 32] |= (uint32_t)((row[i] < limit) & (pos[i] >= 0)) << (i % 32);
}

/* A row comes in, the one of number `gone` goes out: it counted for the tokens that were there. */
SH_CLONES static void count(int32_t *restrict low, const uint32_t *restrict in, const uint32_t *restrict out,
                            const int32_t *restrict born, int gone, int words)
{
    for (int w = 0; w < words; w++) {
        const uint32_t come = in[w], went = out[w];
        for (int k = 0; k < 32; k++) {
            int32_t i = 32 * w + k, was_there = -(born[i] <= gone);
            low[i] += (int32_t)(come >> k & 1) - ((int32_t)(went >> k & 1) & was_there);
        }
    }
}

void sh_low_rows_add(struct sh_low_rows *r, const float *row, const int *pos, int n, float limit)
{
    const size_t words = (size_t)r->words, rows = (size_t)r->window + 1, at = (size_t)r->n_row;
    uint32_t *now = r->bits + at % rows * words;
    const uint32_t *old = r->bits + (at + 1) % rows * words;            /* row n_row - window */
    mark(now, row, pos, limit, n);
    count(r->low, now, old, r->born, r->n_row - r->window, (n + 31) / 32);
    r->n_row++;
}

void sh_low_rows_carry(struct sh_low_rows *r, const struct sh_low_rows *from, const struct sh_carry *c)
{
    r->n_row = from->n_row;
    sh_carry_words(c, r->low, from->low);
    sh_carry_words(c, r->born, from->born);
    for (int i = 0; i <= r->window; i++) {
        uint32_t *to = r->bits + (size_t)i * (size_t)r->words;
        const uint32_t *old = from->bits + (size_t)i * (size_t)from->words;
        for (int k = 0; k < c->n; k++)
            if (c->from[k] >= 0)
                to[k / 32] |= (old[c->from[k] / 32] >> (c->from[k] % 32) & 1) << (k % 32);
    }
}
