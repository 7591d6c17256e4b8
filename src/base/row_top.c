/* SPDX-License-Identifier: Apache-2.0 */
/* See row_figures.h. Runs for every row of every head while a model is being traced; the loops are written to
 * vectorise. */
#include "src/base/row_figures.h"

#include "src/base/clones.h"
#include "src/base/num.h"
#include "src/base/row_lanes.h"

#define OCTAVE (1 << 23)                /* in the bits of a float */
#define INFINITE 0x7f800000             /* the bits after those of all numbers */

/* Non-negative floats order as their bits do. */
static inline int32_t order(float x)
{
    return (int32_t)sh_bits(x);
}

SH_CLONES static int count_from(const float *row, int n, int32_t least)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        count += order(row[i]) >= least;
    return count;
}

/* Sum of the entries whose bits are at least `least`. */
SH_CLONES static double sum_from(const float *row, int n, int32_t least)
{
    double lane[LANES] = {0};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += order(row[i + k]) >= least ? (double)row[i + k] : 0.0;
    for (int k = 0; i + k < n; k++)
        lane[k] += order(row[i + k]) >= least ? (double)row[i + k] : 0.0;
    return total(lane);
}

/* A stretch of the bits of floats in which the `want` largest scores end: count(low) >= want, and high is the end or
 * count(high) <= want, where count(x) is the number of scores whose bits are at least x. */
struct stretch {
    int64_t low, high;
    int at_low, at_high;                /* the counts there */
};

/* Gallop from s->low == s->high, first by `stride`. Each probe is one counting pass. */
static void gallop(const float *row, int n, int want, struct stretch *s, int64_t stride)
{
    for (int64_t step = stride; s->at_low < want; step *= step < OCTAVE ? 4 : 2) {
        s->high = s->low, s->at_high = s->at_low;
        s->low = s->low > step ? s->low - step : 0;
        s->at_low = s->low ? count_from(row, n, (int32_t)s->low) : n;
    }
    for (int64_t step = stride; s->at_high > want && s->high < INT32_MAX; step *= step < OCTAVE ? 4 : 2) {
        s->low = s->high, s->at_low = s->at_high;
        s->high = s->high + step < INT32_MAX ? s->high + step : INT32_MAX;
        s->at_high = count_from(row, n, (int32_t)s->high);
    }
}

/* Gives the bits from which on there are `want` scores, or more, of which those that are too many are ties at just
 * these bits; how many there are in *count. Interpolates (the counts are smooth over the logarithm), every third time
 * halves. */
static int32_t narrow(const float *row, int n, int want, struct stretch s, int *count)
{
    for (int probe = 1; s.at_low > want && s.at_high < want && s.high - s.low > 1; probe++) {
        double part = (s.at_low - want + 0.5) / (s.at_low - s.at_high);
        int64_t middle = s.low + (int64_t)((double)(s.high - s.low) * (probe % 3 ? part : 0.5));
        middle = middle <= s.low ? s.low + 1 : middle >= s.high ? s.high - 1 : middle;
        int at = count_from(row, n, (int32_t)middle);
        if (at >= want)
            s.low = middle, s.at_low = at;
        else
            s.high = middle, s.at_high = at;
    }
    int is_high = s.at_high == want;
    *count = is_high ? s.at_high : s.at_low;
    return (int32_t)(is_high ? s.high : s.low);
}

/* Mass of the largest fifth: exactly that, whatever the ties and wherever the search began. `count` scores have
 * `least` or more. */
static double mass_from(const float *row, int n, int32_t least, int count)
{
    int want = sh_row_top(n);
    double ties = count > want ? (count - want) * (double)sh_from_bits((uint32_t)least) : 0;
    return sum_from(row, n, least) - ties;
}

static double mass_of_largest(const float *row, int n, int from, int32_t *least)
{
    int64_t begin = order(sh_round_up(1.0 / n));
    struct stretch s = {begin, begin, from, from};
    int count;
    gallop(row, n, sh_row_top(n), &s, OCTAVE);
    *least = narrow(row, n, sh_row_top(n), s, &count);
    return mass_from(row, n, *least, count);
}

double sh_row_mass_top(const float *row, int n, int from)
{
    int32_t least;
    return mass_of_largest(row, n, from, &least);
}

/* Between what bits the largest fifth ends, when `from` of n scores are not below the guess: a step along the slope,
 * and what such steps were off on either side. */
static struct stretch stretch_of(const struct sh_row_guess *g, int n, int from, int want)
{
    int64_t at = order(g->least), middle = at + (int64_t)((double)(from - want) / n / (double)g->slope);
    int64_t off = 1 + (int64_t)((double)g->error / (double)g->slope);
    struct stretch s = {.low = middle - off, .high = middle + off};
    if (from >= want && s.low < at && s.high > at)
        s.low = at;
    if (from <= want && s.high > at && s.low < at)
        s.high = at;
    s.low = s.low < 1 ? 1 : s.low < INFINITE ? s.low : INFINITE - 1;
    s.high = s.high <= s.low ? s.low + 1 : s.high < INFINITE ? s.high : INFINITE;
    return s;
}

/* A guess that is often wrong is taken for wider; heads whose rows tell nothing about the next one stay at the widest,
 * and their searches begin with large steps. */
#define MOST_ERROR 0.0625f
#define LEAST_ERROR 0.0005f

static void learn(struct sh_row_guess *g, int n, const struct stretch *s, int is_missed)
{
    double slope = (double)(s->at_low - s->at_high) / n / (double)(s->high - s->low);
    if (s->at_low - s->at_high >= 4)
        g->slope = (float)(0.5 * (double)g->slope + 0.5 * slope);
    g->error *= is_missed ? 2.0f : 0.96875f;
    g->error = g->error > MOST_ERROR ? MOST_ERROR : g->error < LEAST_ERROR ? LEAST_ERROR : g->error;
}

/* Nothing is known of the head: the search is long, and looks how many scores there are nearby. */
static double mass_without(const float *row, int n, struct sh_row_guess *g)
{
    enum { NEARBY = OCTAVE / 16 };
    int32_t least;
    double mass = mass_of_largest(row, n, count_from(row, n, order(sh_round_up(1.0 / n))), &least);
    int64_t low = least > NEARBY ? least - NEARBY : 1;
    int near = count_from(row, n, (int32_t)low) - sh_row_top(n);
    float slope = (near > 1 ? (float)near : 1.0f) / (float)n / NEARBY;
    *g = (struct sh_row_guess){sh_from_bits((uint32_t)least), slope, 0.01f};
    return mass;
}

/* The largest fifth ends among the scores near->score. Sums of numbers from 2^-28 up that are no more than 2 have no
 * rounding in a double, so their order does not matter. */
static double mass_of_near(const float *row, int n, const struct sh_row_near *near, int32_t least, int count)
{
    if (sh_from_bits((uint32_t)least) < 0x1p-28f)
        return mass_from(row, n, least, count);
    double sum = near->sum + sum_from(near->score, near->n, least);
    return sum - (count - sh_row_top(n)) * (double)sh_from_bits((uint32_t)least);
}

double sh_row_mass_top_near(const float *row, int n, int from, struct sh_row_guess *g)
{
    int want = sh_row_top(n), count;
    if (!(g->least > 0))
        return mass_without(row, n, g);
    struct stretch s = stretch_of(g, n, from, want);
    struct sh_row_near near;
    sh_row_near(row, n, sh_from_bits((uint32_t)s.low), sh_from_bits((uint32_t)s.high), &near);
    s.at_high = near.above;
    s.at_low = near.above + near.n;
    int is_missed = s.at_low < want || s.at_high > want, is_here = !is_missed && near.n <= SH_ROW_NEAR;
    int32_t least;
    if (is_missed) {
        struct stretch at = s.at_low < want ? (struct stretch){s.low, s.low, s.at_low, s.at_low}
                                            : (struct stretch){s.high, s.high, s.at_high, s.at_high};
        gallop(row, n, want, &at, g->error < MOST_ERROR ? OCTAVE / 16 : OCTAVE);
        least = narrow(row, n, want, at, &count);
    } else if (!is_here) {
        least = narrow(row, n, want, s, &count);
    } else {
        least = narrow(near.score, near.n, want - near.above, (struct stretch){s.low, s.high, near.n, 0}, &count);
        count += near.above;
    }
    learn(g, n, &s, is_missed);
    g->least = sh_from_bits((uint32_t)least);
    return is_here ? mass_of_near(row, n, &near, least, count) : mass_from(row, n, least, count);
}
