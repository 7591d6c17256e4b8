/* SPDX-License-Identifier: Apache-2.0 */
/* See theory_dropped.h. */
#include "planner/theory/theory_dropped.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/theory/bound.h"
#include "src/base/clones.h"
#include "src/base/mem.h"
#include "src/base/num.h"

/* ---- one row ---- */

/* Keys are taken in descending order of score once; every budget is a prefix. */
struct sh_theory_scratch {
    uint64_t *order, *spare;            /* [room_n] score's bits, then the key; for sorting       */
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
    free(s->spare);
    free(s->whole);
    free(s->part);
    free(s);
}

static void make_room(struct sh_theory_scratch *s, size_t n, size_t d)
{
    if (n > s->room_n) {
        s->order = xreallocarray(s->order, n, sizeof *s->order);
        s->spare = xreallocarray(s->spare, n, sizeof *s->spare);
        s->room_n = n;
    }
    if (d > s->room_d) {
        s->whole = xreallocarray(s->whole, d, sizeof *s->whole);
        s->part = xreallocarray(s->part, d, sizeof *s->part);
        s->room_d = d;
    }
}

/* Insertion, for a few. */
static void insert(uint64_t *x, int n)
{
    for (int i = 1; i < n; i++) {
        uint64_t one = x[i];
        int at = i;
        for (; at > 0 && x[at - 1] < one; at--)
            x[at] = x[at - 1];
        x[at] = one;
    }
}

/* Largest first, by their upper halves alone: a radix sort from the lowest digit, which keeps equal ones in order. */
static void sort_by_score(uint64_t *x, uint64_t *spare, int n)
{
    enum { DIGIT = 11, N_DIGIT = 1 << DIGIT, N_ROUND = 3, FEW = 64 };
    int place[N_ROUND][N_DIGIT] = {{0}};
    if (n <= FEW) {
        insert(x, n);
        return;
    }
    for (int i = 0; i < n; i++)
        for (int r = 0; r < N_ROUND; r++)
            place[r][x[i] >> (32 + r * DIGIT) & (N_DIGIT - 1)]++;
    for (int r = 0; r < N_ROUND; r++) {
        for (int d = N_DIGIT - 1, at = 0; d >= 0; d--) {
            int count = place[r][d];
            place[r][d] = at;
            at += count;
        }
        for (int i = 0; i < n; i++)
            spare[place[r][x[i] >> (32 + r * DIGIT) & (N_DIGIT - 1)]++] = x[i];
        memcpy(x, spare, (size_t)n * sizeof *x);
    }
}

/* Scores that are not negative are ordered as their bits; of equal ones the newer come first, as they do here before
 * the sort. Returns the row's mass, NaN if it is not a row. */
static double sort_row(struct sh_theory_scratch *s, const float *scores, int n)
{
    double mass = 0;
    for (int j = 0; j < n; j++) {
        float score = scores[j] + 0.0f;                 /* -0 is 0 */
        if (!(score >= 0) || !isfinite(score))
            return NAN;
        mass += score;
        s->order[n - 1 - j] = (uint64_t)sh_bits(score) << 32 | (uint32_t)j;
    }
    sort_by_score(s->order, s->spare, n);
    return mass > 0 ? mass : NAN;
}

/* to += score v */
SH_CLONES static void add_value(double *restrict to, double score, const float *restrict v, int d)
{
    for (int i = 0; i < d; i++)
        to[i] += score * (double)v[i];
}

SH_CLONES static double square_of(const float *v, int d)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < d; i++)
        sum += (double)v[i] * (double)v[i];
    return sum;
}

/* sum A v of the whole row, into s->whole; returns the largest |v_j|. */
static double add_all(struct sh_theory_scratch *s, const float *scores, int n, const float *v, int d)
{
    double largest = 0;
    for (int i = 0; i < d; i++)
        s->whole[i] = s->part[i] = 0;
    for (int j = 0; j < n; j++) {
        const float *value = v + (size_t)j * (size_t)d;
        double square = square_of(value, d);
        add_value(s->whole, (double)scores[j], value, d);
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
            int key = (int)(uint32_t)s->order[at];
            kept += scores[key];
            if (isfinite(largest))
                add_value(s->part, (double)scores[key], v + (size_t)key * (size_t)d, d);
        }
        out[b].kept = at == n ? 1 : fmin(kept / mass, 1);
        if (isfinite(largest)) {
            out[b].error = at == n ? 0 : distance(s, d, mass, kept);
            out[b].bound = 2 * (1 - out[b].kept) * largest;
        }
    }
}

/* ---- means over rows ---- */

/* The law's mean is taken at the end, when k is known, from the number of rows of every length. */
struct sh_theory_dropped {
    int n_rho, room;                    /* room: lengths below it have a counter                  */
    struct { double rho, dropped, error, bound; } *at;  /* [n_rho] sums over rows                 */
    uint64_t *rows_of;                  /* [room] rows of n keys                                  */
    uint64_t rows, left_out, rows_with_v;
    struct sh_theory_scratch *scratch;
    struct sh_theory_output *of_row;     /* [n_rho] */
    int *budget;
};

struct sh_theory_dropped *sh_theory_dropped_new(const double *rho, int n_rho)
{
    for (int i = 0; i < n_rho; i++)
        if (!(rho[i] > 0 && rho[i] <= 1) || (i && rho[i] <= rho[i - 1]))
            return NULL;
    if (n_rho < 1)
        return NULL;
    struct sh_theory_dropped *t = xcalloc(1, sizeof *t);
    size_t n = (size_t)n_rho;
    t->n_rho = n_rho;
    t->at = xcalloc(n, sizeof *t->at);
    for (size_t i = 0; i < n; i++)
        t->at[i].rho = rho[i];
    t->of_row = xcalloc(n, sizeof *t->of_row);
    t->budget = xcalloc(n, sizeof *t->budget);
    t->scratch = sh_theory_scratch_new();
    return t;
}

void sh_theory_dropped_free(struct sh_theory_dropped *t)
{
    if (!t)
        return;
    free(t->at);
    free(t->of_row);
    free(t->budget);
    free(t->rows_of);
    sh_theory_scratch_free(t->scratch);
    free(t);
}

/* ceil(rho n), unaffected by rounding errors in the product. */
static int budget_of(double rho, int n)
{
    int budget = (int)ceil(rho * n - 1e-9);
    return budget < 1 ? 1 : budget > n ? n : budget;
}

static void count_length(struct sh_theory_dropped *t, int n)
{
    if (n >= t->room) {
        int room = n + n / 2 + 64;
        t->rows_of = xreallocarray(t->rows_of, (size_t)room, sizeof *t->rows_of);
        memset(t->rows_of + t->room, 0, (size_t)(room - t->room) * sizeof *t->rows_of);
        t->room = room;
    }
    t->rows_of[n]++;
}

void sh_theory_dropped_row(struct sh_theory_dropped *t, int split, int q, int n, const float *scores,
                           const float *v, int d)
{
    if (q < split || n <= 0)
        return;
    for (int i = 0; i < t->n_rho; i++)
        t->budget[i] = budget_of(t->at[i].rho, n);
    sh_theory_output_row(t->scratch, scores, n, v, d, t->budget, t->n_rho, t->of_row);
    if (isnan(t->of_row[0].kept)) {
        t->left_out++;
        return;
    }
    t->rows++;
    count_length(t, n);
    int with_v = !isnan(t->of_row[0].error);
    t->rows_with_v += (uint64_t)with_v;
    for (int i = 0; i < t->n_rho; i++) {
        t->at[i].dropped += 1 - t->of_row[i].kept;
        if (with_v) {
            t->at[i].error += t->of_row[i].error;
            t->at[i].bound += t->of_row[i].bound;
        }
    }
}

void sh_theory_dropped_get(const struct sh_theory_dropped *t, int i_rho, double k, double b, struct sh_dropped *out)
{
    double rows = (double)t->rows, with_v = (double)t->rows_with_v, budget = 0, law = 0;
    double cut = 0;
    for (int n = 1; n < t->room; n++)
        if (t->rows_of[n]) {
            double share = (double)budget_of(t->at[i_rho].rho, n) / n;
            budget += (double)t->rows_of[n] * share;
            law += (double)t->rows_of[n] * sh_bound_dropped(share, k);
            cut += (double)t->rows_of[n] * sh_bound_dropped_cut(share, k, b, n);
        }
    *out = (struct sh_dropped){.rows = t->rows, .left_out = t->left_out, .rows_with_v = t->rows_with_v,
                               .budget = rows > 0 ? budget / rows : NAN,
                               .dropped = rows > 0 ? t->at[i_rho].dropped / rows : NAN,
                               .law = rows > 0 ? law / rows : NAN, .law_cut = rows > 0 ? cut / rows : NAN,
                               .error = with_v > 0 ? t->at[i_rho].error / with_v : NAN,
                               .bound = with_v > 0 ? t->at[i_rho].bound / with_v : NAN};
}
