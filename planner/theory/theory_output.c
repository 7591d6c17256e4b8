/* SPDX-License-Identifier: Apache-2.0 */
/* See theory_output.h. Keys are taken in descending order of score once; every budget is a
 * prefix. */
#include "planner/theory/theory_output.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/base/num.h"

struct sh_theory_scratch {
    uint64_t *order;                    /* [room_n] score's bits, then the key                    */
    double *whole, *part;               /* [room_d] sum A v of the row, of the kept               */
    size_t room_n, room_d;
};

struct sh_theory_scratch *sh_theory_scratch_new(void)
{
    return xcalloc(1, sizeof(struct sh_theory_scratch));
}

void sh_theory_scratch_free(struct sh_theory_scratch *s)
{
    if (!s)
        return;
    free(s->order);
    free(s->whole);
    free(s->part);
    free(s);
}

static void make_room(struct sh_theory_scratch *s, size_t n, size_t d)
{
    if (n > s->room_n) {
        s->order = xreallocarray(s->order, n, sizeof *s->order);
        s->room_n = n;
    }
    if (d > s->room_d) {
        s->whole = xreallocarray(s->whole, d, sizeof *s->whole);
        s->part = xreallocarray(s->part, d, sizeof *s->part);
        s->room_d = d;
    }
}

static int descending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* Scores that are not negative are ordered as their bits; the key below them puts newer ones first.
 * Returns the row's mass, NaN when it is no row. */
static double sort_row(struct sh_theory_scratch *s, const float *scores, int n)
{
    double mass = 0;
    for (int j = 0; j < n; j++) {
        float score = scores[j] + 0.0f;                 /* -0 is 0 */
        if (!(score >= 0) || !isfinite(score))
            return NAN;
        mass += score;
        s->order[j] = (uint64_t)sh_bits(score) << 32 | (uint32_t)j;
    }
    qsort(s->order, (size_t)n, sizeof *s->order, descending);
    return mass > 0 ? mass : NAN;
}

static int key_of(uint64_t item)
{
    return (int)(uint32_t)item;
}

/* sum A v of the whole row, into s->whole; returns the largest |v_j|. */
static double add_all(struct sh_theory_scratch *s, const float *scores, int n, const float *v, int d)
{
    double largest = 0;
    for (int i = 0; i < d; i++)
        s->whole[i] = s->part[i] = 0;
    for (int j = 0; j < n; j++) {
        const float *value = v + (size_t)j * (size_t)d;
        double square = 0;
        for (int i = 0; i < d; i++) {
            s->whole[i] += (double)scores[j] * value[i];
            square += (double)value[i] * value[i];
        }
        if (!(square <= largest))                       /* NaN gets through */
            largest = square;
        if (!isfinite(square))
            return NAN;
    }
    return sqrt(largest);
}

static double distance(const struct sh_theory_scratch *s, int d, double mass, double kept)
{
    double square = 0;
    for (int i = 0; i < d; i++) {
        double gap = s->whole[i] / mass - s->part[i] / kept;
        square += gap * gap;
    }
    return sqrt(square);
}

void sh_theory_output_row(struct sh_theory_scratch *s, const float *scores, int n, const float *v,
                          int d, const int *budget, int n_budget, struct sh_theory_output *out)
{
    make_room(s, n > 0 ? (size_t)n : 1, v ? (size_t)d : 1);
    double mass = n > 0 ? sort_row(s, scores, n) : NAN, kept = 0;
    double largest = v && isfinite(mass) ? add_all(s, scores, n, v, d) : NAN;
    int at = 0;
    for (int b = 0; b < n_budget; b++) {
        out[b] = (struct sh_theory_output){NAN, NAN, NAN};
        if (!isfinite(mass))
            continue;
        for (; at < budget[b] && at < n; at++) {
            int key = key_of(s->order[at]);
            kept += scores[key];
            for (int i = 0; isfinite(largest) && i < d; i++)
                s->part[i] += (double)scores[key] * v[(size_t)key * (size_t)d + (size_t)i];
        }
        out[b].kept = at == n ? 1 : fmin(kept / mass, 1);
        if (isfinite(largest)) {
            out[b].error = at == n ? 0 : distance(s, d, mass, kept);
            out[b].bound = 2 * (1 - out[b].kept) * largest;
        }
    }
}
