/* SPDX-License-Identifier: Apache-2.0 */
/* See theory_repeat.h. */
#include "planner/theory/theory_repeat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

#define N_SQUARE 40                     /* d^(2^-40) is 1 for all that a double can tell          */
#define ROUNDING 1e-5                   /* scores and vectors are float                           */

/* ---- matrices ---- */

static int all_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return 0;
    return 1;
}

/* out[r, c] = sum_i a[r, i] b[i, c], b given by its strides. */
static void product(double *out, const float *a, const float *b, int n_row, int n_inner, int n_col,
                    size_t b_row, size_t b_col)
{
    for (size_t r = 0; r < (size_t)n_row; r++)
        for (size_t c = 0; c < (size_t)n_col; c++) {
            double sum = 0;
            for (size_t i = 0; i < (size_t)n_inner; i++)
                sum += (double)a[r * (size_t)n_inner + i] * b[i * b_row + c * b_col];
            out[r * (size_t)n_col + c] = sum;
        }
}

/* Square root of the largest eigenvalue of gram [d, d], which is symmetric and not negative: as trace(gram^p)^(1/p), p
 * = 2^i, by repeated squaring. From above, which keeps the theorem's condition safe, and near enough also where
 * eigenvalues are equal: off by a factor d^(1/p). */
static double largest_of_gram(const double *gram, size_t d)
{
    double *power = xcalloc(d * d, sizeof *power), *square = xcalloc(d * d, sizeof *square);
    double ln_value = 0, weight = 1, trace = 1;
    memcpy(power, gram, d * d * sizeof *gram);
    for (int i = 0; i < N_SQUARE; i++, weight /= 2) {
        trace = 0;
        for (size_t r = 0; r < d; r++)
            trace += power[r * d + r];
        ln_value += weight * log(trace);
        if (!(trace > 0) || (i > 0 && fabs(log(trace)) < 1e-14))
            break;                      /* from the first square on, 1 means one eigenvalue is left */
        for (size_t r = 0; r < d; r++)
            for (size_t c = 0; c < d; c++) {
                double sum = 0;
                for (size_t j = 0; j < d; j++)
                    sum += power[r * d + j] * power[c * d + j];
                square[r * d + c] = sum / (trace * trace);
            }
        double *swap = power;
        power = square;
        square = swap;
    }
    free(power);
    free(square);
    return exp(ln_value / 2);                           /* log(0) makes it 0 */
}

/* Of w [d_model, d_head]. */
static double largest_singular(const float *w, int d_model, int d_head)
{
    size_t d = (size_t)d_head;
    double *gram = xcalloc(d * d, sizeof *gram);
    for (size_t r = 0; r < (size_t)d_model; r++)
        for (size_t i = 0; i < d; i++)
            for (size_t j = 0; j < d; j++)
                gram[i * d + j] += (double)w[r * d + i] * w[r * d + j];
    double value = largest_of_gram(gram, d);
    free(gram);
    return value;
}

int sh_repeat_weights_set(struct sh_repeat_weights *w, const float *wq, const float *wk,
                          const float *wv, const float *wo, int d_model, int d_head, struct sh_err *e)
{
    if (d_model < 1 || d_head < 1)
        return sh_fail(e, "found a head of width %d in a model of width %d, expected at least 1", d_head, d_model);
    size_t d = (size_t)d_head, n = (size_t)d_model * d;
    if (!all_finite(wq, n) || !all_finite(wk, n) || !all_finite(wv, n) || !all_finite(wo, n))
        return sh_fail(e, "a weight of the head is not finite");
    *w = (struct sh_repeat_weights){.d_head = d_head};
    w->wo_wq = xcalloc(d * d, sizeof *w->wo_wq);
    w->wo_wo = xcalloc(d * d, sizeof *w->wo_wo);
    product(w->wo_wq, wo, wq, d_head, d_model, d_head, d, 1);
    product(w->wo_wo, wo, wo, d_head, d_model, d_head, 1, (size_t)d_model);
    w->lambda = largest_singular(wq, d_model, d_head) * largest_singular(wk, d_model, d_head) *
                largest_singular(wv, d_model, d_head) * largest_of_gram(w->wo_wo, d);
    return 0;
}

void sh_repeat_weights_clear(struct sh_repeat_weights *w)
{
    free(w->wo_wq);
    free(w->wo_wo);
    *w = (struct sh_repeat_weights){0};
}

/* ---- the check ---- */

struct walk {
    const struct sh_repeat_weights *w;
    const struct sh_repeat_head *h;
    size_t d;
    double *vm;                         /* [n, d] v_j M                                           */
    double *self, *other;               /* [n] g_ll, and max |g_jl| over the j != l so far        */
    double *o, *om;                     /* [d] sum A v of a row, and that times M                 */
    double sum_eps, sum_step;
    struct sh_repeat *out;
};

static double dot(const double *a, const float *b, size_t d)
{
    double sum = 0;
    for (size_t i = 0; i < d; i++)
        sum += a[i] * b[i];
    return sum;
}

static void times(double *out, const double *x, const double *m, size_t d)
{
    for (size_t c = 0; c < d; c++) {
        out[c] = 0;
        for (size_t i = 0; i < d; i++)
            out[c] += x[i] * m[i * d + c];
    }
}

/* Token t becomes visible: as a key, and as a value with the older keys. */
static void see(struct walk *s, size_t t)
{
    const float *key = s->h->k + t * s->d;
    for (size_t i = 0; i < s->d; i++)
        s->o[i] = s->h->v[t * s->d + i];
    times(s->vm + t * s->d, s->o, s->w->wo_wq, s->d);
    s->self[t] = dot(s->vm + t * s->d, key, s->d);
    for (size_t j = 0; j < t; j++) {
        s->other[t] = fmax(s->other[t], fabs(dot(s->vm + j * s->d, key, s->d)));
        s->other[j] = fmax(s->other[j], fabs(dot(s->vm + t * s->d, s->h->k + j * s->d, s->d)));
    }
}

/* |a_t|; fills o and om. */
static double attend(struct walk *s, size_t t, const float *row)
{
    double square = 0;
    for (size_t i = 0; i < s->d; i++)
        s->o[i] = 0;
    for (size_t j = 0; j <= t; j++)
        for (size_t i = 0; i < s->d; i++)
            s->o[i] += (double)row[j] * s->h->v[j * s->d + i];
    times(s->om, s->o, s->w->wo_wo, s->d);
    for (size_t i = 0; i < s->d; i++)
        square += s->o[i] * s->om[i];
    times(s->om, s->o, s->w->wo_wq, s->d);
    return sqrt(fmax(square, 0));
}

static void check_pair(struct walk *s, size_t t, size_t l, double score, double norm)
{
    const float *q = s->h->q + (t + 1) * s->d, *k = s->h->k + l * s->d;
    double g = s->self[l], now = dot(s->om, k, s->d), next = 0, size = 0;
    if (s->other[l] > 0)
        s->out->lemma = fmax(s->out->lemma, fabs(now - score * g) / s->other[l]);
    if (!(g > 0) || !(norm > 0))
        return;
    for (size_t i = 0; i < s->d; i++) {
        next += (double)q[i] * k[i];
        size += fabs((double)q[i] * k[i]);
    }
    double delta = s->h->cosine ? fmax(1 - s->h->cosine[t], 0) : 0, factor = g / norm;
    double eps = fmax(s->other[l], s->w->lambda * sqrt(delta)) / g;
    double slack = ROUNDING * (size + factor * (score + 3 * eps));
    s->out->positive++;
    s->out->informative += 3 * eps < 1;
    s->out->above_zero += score - 3 * eps > 0;
    s->out->violations += fabs(next - factor * score) > factor * 3 * eps + slack;
    s->out->least_eps = s->out->positive == 1 ? eps : fmin(s->out->least_eps, eps);
    s->sum_eps += eps;
    s->sum_step += fabs(next - now / norm) / factor;
}

static int check_input(const struct sh_repeat_weights *w, const struct sh_repeat_head *h, struct sh_err *e)
{
    if (h->n < 2 || w->d_head < 1)
        return sh_fail(e, "found %d tokens and a head of width %d, expected at least 2 and 1", h->n, w->d_head);
    size_t n = (size_t)h->n, d = (size_t)w->d_head;
    if (!all_finite(h->q, n * d) || !all_finite(h->k, n * d) || !all_finite(h->v, n * d) ||
        !all_finite(h->attention, n * (n + 1) / 2))
        return sh_fail(e, "a query, key, value or score is not finite");
    for (size_t t = 0; h->cosine && t + 1 < n; t++)
        if (!isfinite(h->cosine[t]))
            return sh_fail(e, "the cosine of token %zu is not finite", t);
    return 0;
}

int sh_repeat_check(const struct sh_repeat_weights *w, const struct sh_repeat_head *h,
                    struct sh_repeat *out, struct sh_err *e)
{
    if (check_input(w, h, e))
        return -1;
    size_t n = (size_t)h->n, d = (size_t)w->d_head;
    struct sh_repeat found = {.least_eps = NAN, .mean_eps = NAN, .step = NAN};
    struct walk s = {.w = w, .h = h, .d = d, .out = &found};
    s.vm = xcalloc(n + 2, (d + 2) * sizeof *s.vm);      /* and room for the other four */
    s.self = s.vm + n * d;
    s.other = s.self + n;
    s.o = s.other + n;
    s.om = s.o + d;
    const float *row = h->attention;
    for (size_t t = 0; t + 1 < n; row += ++t) {
        see(&s, t);
        double norm = attend(&s, t, row);
        for (size_t l = 0; l <= t; l++)
            check_pair(&s, t, l, row[l], norm);
        found.pairs += t + 1;
    }
    if (found.positive) {
        found.mean_eps = s.sum_eps / (double)found.positive;
        found.step = s.sum_step / (double)found.positive;
    }
    *out = found;
    free(s.vm);
    return 0;
}
