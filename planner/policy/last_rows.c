/* SPDX-License-Identifier: Apache-2.0 */
/* See last_rows.h. Floats are added to a double and subtracted again, which is exact for scores within 2^-29 of each
 * other, so that the sum does not drift. */
#include "planner/policy/last_rows.h"

#include <string.h>

#include "src/base/clones.h"

SH_CLONES static void exchange(double *restrict sum, float *restrict old, const float *restrict row, int n)
{
    for (int i = 0; i < n; i++) {
        sum[i] += (double)row[i] - (double)old[i];
        old[i] = row[i];
    }
}

void sh_last_rows_add(struct sh_last_rows *r, const struct sh_cache *c, const float *row, int window)
{
    exchange(r->sum, r->at + (size_t)(r->n_row % window) * (size_t)c->head->capacity, row, c->n_slot);
    r->n_row++;
}

/* Entries whose slot no longer holds their token go; tokens newer than the last entry are inserted, mostly at the end.
 * When the state has moved to other slots, all entries are zeros: at most the first of them is right. */
static void update(struct sh_neighbours *o, const struct sh_cache *c)
{
    int n = 0, newest = -1;
    for (int i = 0; i < o->n; i++)
        if (o->pos[i] > newest && c->pos[o->slot[i]] == o->pos[i]) {
            newest = o->pos[i];
            o->slot[n] = o->slot[i];
            o->pos[n++] = newest;
        }
    for (int slot = 0; slot < c->n_slot; slot++)
        if (c->pos[slot] > newest) {
            int at = n++;
            for (; at > 0 && o->pos[at - 1] > c->pos[slot]; at--) {
                o->slot[at] = o->slot[at - 1];
                o->pos[at] = o->pos[at - 1];
            }
            o->slot[at] = slot;
            o->pos[at] = c->pos[slot];
        }
    o->n = n;
}

void sh_neighbours_pool(struct sh_neighbours *o, const struct sh_cache *c, const float *score, int end, int kernel,
                        enum sh_pool pool, float *out)
{
    int reach = kernel / 2, n = 0, first = 0;
    update(o, c);
    while (n < o->n && o->pos[n] < end)
        n++;
    for (int i = 0; i < n; i++) {
        while (o->pos[first] < o->pos[i] - reach)
            first++;
        float sum = 0, most = score[o->slot[i]];
        for (int k = first; k < n && o->pos[k] <= o->pos[i] + reach; k++) {
            float x = score[o->slot[k]];
            sum += x;
            most = x > most ? x : most;
        }
        out[o->slot[i]] = pool == SH_POOL_MAX ? most : sum / (float)kernel;
    }
}

/* ---- rows below a limit ---- */

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
