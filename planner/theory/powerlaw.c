/* SPDX-License-Identifier: Apache-2.0 */
/* See powerlaw.h. A sample becomes a ladder of its distinct values; a tail is then everything from one rung on, and its
 * figures follow from sums that were taken once. */
#include "planner/theory/powerlaw.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

struct ladder {
    size_t n, d;                        /* values, distinct values                                */
    double *value;                      /* [d] ascending                                          */
    double *ln;                         /* [d] of value                                           */
    double *sum;                        /* [d] sum of ln(x / value[i]) over the x >= value[i]     */
    size_t *below;                      /* [d] values strictly below value[i]                     */
};

/* The tail from `rung` on, compared with its fit. */
struct search {
    const struct ladder *l;
    size_t rung, worst;                 /* worst: where the largest distance was found            */
    double slope, n_tail;               /* exponent - 1                                           */
    double ks, limit;                   /* a candidate whose ks reaches the limit has lost        */
};

/* ---- the ladder ---- */

/* Positive doubles are ordered as their bits are. Radix 2^11, least significant digit first. */
static void sort_positive(double *x, size_t n)
{
    enum { BITS = 11, SIZE = 1 << BITS };
    double *other = xcalloc(n, sizeof *other), *from = x, *to = other;
    size_t start[SIZE];
    for (int shift = 0; shift < 64; shift += BITS) {
        size_t at = 0;
        uint64_t u;
        memset(start, 0, sizeof start);
        for (size_t i = 0; i < n; i++) {
            memcpy(&u, from + i, sizeof u);
            start[u >> shift & (SIZE - 1)]++;
        }
        for (size_t i = 0; i < SIZE; i++) {
            size_t count = start[i];
            start[i] = at;
            at += count;
        }
        for (size_t i = 0; i < n; i++) {
            memcpy(&u, from + i, sizeof u);
            to[start[u >> shift & (SIZE - 1)]++] = from[i];
        }
        double *swap = from;
        from = to;
        to = swap;
    }
    free(other);                        /* six passes: the result is in x again */
}

/* Of the usable values: positive and finite. */
static void ladder_of(struct ladder *l, const double *sample, size_t n_sample)
{
    double *x = xcalloc(n_sample, sizeof *x);
    size_t n = 0;
    for (size_t i = 0; i < n_sample; i++)
        if (sample[i] > 0 && isfinite(sample[i]))
            x[n++] = sample[i];
    sort_positive(x, n);
    *l = (struct ladder){.n = n, .value = x};
    l->below = xcalloc(n, sizeof *l->below);
    for (size_t i = 0; i < n; i++)
        if (!i || x[i] != l->value[l->d - 1]) {
            l->below[l->d] = i;
            l->value[l->d++] = x[i];
        }
    l->ln = xcalloc(l->d, sizeof *l->ln);
    l->sum = xcalloc(l->d, sizeof *l->sum);
    for (size_t i = 0; i < l->d; i++)
        l->ln[i] = log(l->value[i]);
    /* From the top down: only positive terms, so nothing cancels in a short tail. */
    for (size_t i = l->d; i-- > 1;) {
        double step = log1p((l->value[i] - l->value[i - 1]) / l->value[i - 1]);
        l->sum[i - 1] = l->sum[i] + (double)(n - l->below[i]) * step;
    }
}

static void ladder_clear(struct ladder *l)
{
    free(l->value);
    free(l->ln);
    free(l->sum);
    free(l->below);
}

/* ---- the distance of a tail from its fit ---- */

static double share(const struct search *s, size_t i)
{
    return (double)(s->l->below[i] - s->l->below[s->rung]) / s->n_tail;
}

/* The model's CDF at rung i, whose distance is noted. */
static double visit(struct search *s, size_t i)
{
    double cdf = -expm1(-s->slope * (s->l->ln[i] - s->l->ln[s->rung]));
    double distance = fabs(cdf - share(s, i));
    if (distance > s->ks) {
        s->ks = distance;
        s->worst = i;
    }
    return cdf;
}

/* Visit what lies between rungs i and j and may hold a larger distance; at_i, at_j: their CDF. */
static void refine(struct search *s, size_t i, size_t j, double at_i, double at_j)
{
    if (j - i < 2 || s->ks >= s->limit)
        return;
    if (fmax(at_j - share(s, i + 1), share(s, j - 1) - at_i) <= s->ks)
        return;
    size_t middle = i + (j - i) / 2;
    double at = visit(s, middle);
    refine(s, i, middle, at_i, at);
    refine(s, middle, j, at, at_j);
}

/* Fills rung, slope, n_tail and, as far as the limit asks for it, ks. -1: no fit. */
static int measure(struct search *s, size_t rung)
{
    const struct ladder *l = s->l;
    if (rung + 1 >= l->d)
        return -1;
    s->rung = rung;
    s->n_tail = (double)(l->n - l->below[rung]);
    s->slope = s->n_tail / l->sum[rung];
    s->ks = 0;
    if (!isfinite(s->slope))
        return -1;
    if (s->worst > rung)                /* mostly the worst of the previous tail loses here, too */
        visit(s, s->worst);
    refine(s, rung, l->d - 1, visit(s, rung), visit(s, l->d - 1));
    return 0;
}

/* ---- the fit ---- */

/* The i-th of n_try candidates: rungs above it fall from n_rung to 1 by equal factors. */
static size_t candidate(size_t i, size_t n_try, size_t n_rung)
{
    double done = i ? (double)i / (double)(n_try - 1) : 0;
    size_t above = (size_t)ceil(pow((double)n_rung, 1 - done) - 1e-9);
    return n_rung - (above < 1 ? 1 : above > n_rung ? n_rung : above);
}

void sh_powerlaw_scan(const double *x, size_t n, size_t max_candidate, struct sh_powerlaw *out)
{
    struct ladder l;
    struct sh_powerlaw best = {.xmin = NAN, .exponent = NAN, .sigma = NAN, .ks = NAN};
    ladder_of(&l, x, n);
    best.n = l.n;
    size_t n_rung = l.d ? l.d - 1 : 0, next = 0;
    size_t n_try = max_candidate && max_candidate < n_rung ? max_candidate : n_rung;
    struct search s = {.l = &l, .limit = INFINITY};
    for (size_t i = 0; i < n_try; i++) {
        size_t rung = n_try == n_rung ? i : candidate(i, n_try, n_rung);
        if (rung < next)
            continue;                   /* near the top candidates coincide */
        next = rung + 1;
        best.n_candidate++;
        if (measure(&s, rung) == 0 && s.ks < s.limit) {
            best.n_tail = (size_t)s.n_tail;
            best.xmin = l.value[rung];
            best.exponent = 1 + s.slope;
            best.sigma = s.slope / sqrt(s.n_tail);
            best.ks = s.limit = s.ks;
        }
    }
    *out = best;
    ladder_clear(&l);
}
