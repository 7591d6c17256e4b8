/* SPDX-License-Identifier: Apache-2.0 */
/* See theory_sample.h. */
#include "planner/theory/theory_sample.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/base/rng.h"

struct sh_theory_sample {
    double *value;                      /* [n of room] */
    size_t n, room, cap;
    uint64_t seed, drawn;               /* random numbers so far                                  */
    uint64_t rows, values, left_out;
    uint64_t next;                      /* index of the next value that replaces one              */
    double w;                           /* Li's W: the largest of cap uniform keys                */
    double largest;
};

struct sh_theory_sample *sh_theory_sample_new(size_t cap, uint64_t seed)
{
    struct sh_theory_sample *s = xcalloc(1, sizeof *s);
    s->cap = cap ? cap : 1;
    s->seed = seed;
    s->w = 1;
    s->largest = -INFINITY;
    return s;
}

void sh_theory_sample_free(struct sh_theory_sample *s)
{
    if (s)
        free(s->value);
    free(s);
}

static double uniform(struct sh_theory_sample *s)
{
    return sh_rng_uniform(s->seed, s->drawn++);
}

/* Chooses the next value to be taken after index i. */
static void skip_from(struct sh_theory_sample *s, uint64_t i)
{
    s->w *= exp(log(uniform(s)) / (double)s->cap);
    double skip = floor(log(uniform(s)) / log1p(-s->w));
    s->next = skip < 1e18 ? i + (uint64_t)skip + 1 : UINT64_MAX;
}

/* The value at s->next is taken for one of the sample's. */
static void replace(struct sh_theory_sample *s, double x)
{
    s->value[sh_rng(s->seed, s->drawn++) % s->cap] = x;     /* uneven by less than cap / 2^64 */
    skip_from(s, s->next);
}

static void append(struct sh_theory_sample *s, double x)
{
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 1024;
        if (s->room > s->cap)
            s->room = s->cap;
        s->value = xreallocarray(s->value, s->room, sizeof *s->value);
    }
    s->value[s->n++] = x;
}

static void keep(struct sh_theory_sample *s, double x)
{
    uint64_t i = s->values++;
    s->largest = x > s->largest ? x : s->largest;
    if (s->n < s->cap) {
        append(s, x);
        if (s->n == s->cap)
            skip_from(s, i);
    } else if (i == s->next) {
        replace(s, x);
    }
}

static int is_usable(float score)
{
    return score > 0 && score <= FLT_MAX;
}

/* A row for a full sample, where few values are taken: when all are usable, the next is found by its place. -1: some
 * are not, and one of them may be in the way; nothing was done. */
static int jump_through(struct sh_theory_sample *s, int n, const float *scores)
{
    unsigned usable = 0;
    float largest = 0;
    for (int j = 0; j < n; j++) {
        float x = is_usable(scores[j]) ? scores[j] : 0;
        usable += x > 0;
        largest = x > largest ? x : largest;
    }
    if (usable < (unsigned)n && s->next - s->values < usable)
        return -1;
    while (s->next - s->values < usable)
        replace(s, (double)scores[s->next - s->values] * n);
    s->values += usable;
    s->left_out += (unsigned)n - usable;
    s->largest = fmax(s->largest, (double)largest * n);
    return 0;
}

void sh_theory_sample_row(struct sh_theory_sample *s, int split, int q, int n, const float *scores)
{
    if (q < split || n <= 0)
        return;
    s->rows++;
    if (s->n == s->cap && jump_through(s, n, scores) == 0)
        return;
    for (int j = 0; j < n; j++)
        if (is_usable(scores[j]))
            keep(s, (double)scores[j] * n);
        else
            s->left_out++;
}

const double *sh_theory_sample_values(const struct sh_theory_sample *s, size_t *n)
{
    *n = s->n;
    return s->value;
}

void sh_theory_sample_seen(const struct sh_theory_sample *s, struct sh_theory_seen *out)
{
    *out = (struct sh_theory_seen){.rows = s->rows, .values = s->values, .left_out = s->left_out};
    out->share = s->values ? (double)s->n / (double)s->values : NAN;
    out->largest = s->values ? s->largest : NAN;
}
