/* SPDX-License-Identifier: Apache-2.0 */
/* src/engine/eval_sums.h against the definitions in long double. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/engine/eval_sums.h"
#include "tests/tap.h"

typedef long double real;

static real total(const float *x, int n)
{
    real most = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++)
        most = fmaxl(most, (real)x[i]);
    for (int i = 0; i < n; i++)
        sum += expl((real)x[i] - most);
    return most + logl(sum);
}

static real divergence(const float *p, const float *q, int n)
{
    real of_p = total(p, n), of_q = total(q, n), sum = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(p[i]))
            sum += expl((real)p[i] - of_p) * (((real)p[i] - of_p) - ((real)q[i] - of_q));
    return sum;
}

/* q is p but for some noise; heights of p spread over `wide`. */
static void fill(float *p, float *q, int n, double wide, double noise)
{
    for (int i = 0; i < n; i++) {
        p[i] = (float)(wide * sh_rng_normal(7, (uint64_t)i));
        q[i] = p[i] + (float)(noise * sh_rng_normal(8, (uint64_t)i));
    }
}

static double off(double found, real wanted)
{
    return fabs((double)((real)found - wanted));
}

static void definitions(void)
{
    static const int sizes[] = {1, 2, 7, 8, 9, 31, 64, 257, 50272};
    static const double width[] = {0, 1, 5, 40, 400};
    double worst = 0, worst_kl = 0;
    for (int s = 0; s < 9; s++)
        for (int w = 0; w < 5; w++) {
            int n = sizes[s], next = n / 2;
            float *p = xmalloc((size_t)n * sizeof *p), *q = xmalloc((size_t)n * sizeof *q);
            fill(p, q, n, width[w], 0.01 * width[w] + 1e-3);
            struct sh_eval_row full = sh_eval_row_of(p, n), row = sh_eval_row_of(q, n);
            struct sh_eval_point at = sh_eval_point_of(&row, &full, next, n);
            worst = fmax(worst, off(full.total, total(p, n)) / (1 + fabs(full.total)));
            worst = fmax(worst, off(at.nll, total(q, n) - (real)q[next]) / (1 + fabs(row.total)));
            worst_kl = fmax(worst_kl, off(at.kl, divergence(p, q, n)) / (1 + width[w]));
            CU_ASSERT(at.has_next && at.same == (full.best == row.best) && at.is_right == (row.best == next));
            free(p);
            free(q);
        }
    printf("# off by %.1e, KL by %.1e\n", worst, worst_kl);
    CU_ASSERT(worst < 1e-15 && worst_kl < 2e-15);
}

static void no_chance(void)
{
    float p[12], q[12];
    fill(p, q, 12, 2, 0.5);
    p[3] = -INFINITY;                                   /* nothing that q could lose there */
    struct sh_eval_row full = sh_eval_row_of(p, 12), row = sh_eval_row_of(q, 12);
    CU_ASSERT(off(sh_eval_point_of(&row, &full, -1, 12).kl, divergence(p, q, 12)) < 1e-15);
    q[3] = -INFINITY;
    row = sh_eval_row_of(q, 12);
    CU_ASSERT(off(sh_eval_point_of(&row, &full, -1, 12).kl, divergence(p, q, 12)) < 1e-15);
    q[4] = -INFINITY;                                   /* what p gives a share to */
    row = sh_eval_row_of(q, 12);
    CU_ASSERT(isinf(sh_eval_point_of(&row, &full, -1, 12).kl));
    CU_ASSERT(isinf(sh_eval_point_of(&row, &full, 4, 12).nll));
}

static void no_numbers(void)
{
    static const float odd[] = {NAN, INFINITY};
    float p[20], q[20];
    for (int i = 0; i < 40; i++) {
        fill(p, q, 20, 2, 0.5);
        q[i % 20] = odd[i / 20];
        struct sh_eval_row full = sh_eval_row_of(p, 20), row = sh_eval_row_of(q, 20);
        struct sh_eval_point at = sh_eval_point_of(&row, &full, 1, 20);
        CU_ASSERT(isnan(row.total) && isnan(at.nll) && isnan(at.change) && isnan(at.kl));
    }
    for (int i = 0; i < 20; i++)
        p[i] = -INFINITY;
    CU_ASSERT(isnan(sh_eval_row_of(p, 20).total));
}

static void first_of_equals(void)
{
    float p[40] = {0};
    CU_ASSERT_EQUAL(sh_eval_row_of(p, 40).best, 0);
    p[17] = p[33] = 1;
    CU_ASSERT_EQUAL(sh_eval_row_of(p, 40).best, 17);
    p[39] = 2;
    CU_ASSERT_EQUAL(sh_eval_row_of(p, 40).best, 39);
}

/* Sums that are easy to check: a row's nll is its position, its change 1 in the last block of a text. */
static void read_text(struct sh_eval_total *t, int n_token)
{
    for (int i = 0; i < n_token; i++)
        sh_eval_add_row(t, &(struct sh_eval_point){.nll = i + 1 < n_token ? i : 0, .kl = 2, .same = 1,
                                                   .change = i + 1 < n_token && i >= n_token - 512,
                                                   .has_next = i + 1 < n_token});
}

static void blocks(void)
{
    static const struct { int n_token, n; double last; } cases[] = {
        {1, 0, 0}, {2, 1, 1}, {511, 1, 510}, {513, 1, 512}, {767, 1, 766}, {768, 2, 255}, {1024, 2, 511},
        {512 * 300, 256, 512 * 45 - 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sh_eval_total *t = xcalloc(1, sizeof *t);
        struct sh_eval_sequences q = {0}, whole = {0};
        double sum = 0;
        read_text(t, cases[i].n_token);
        sh_eval_sequences_add(&q, t, 1);
        sh_eval_sequences_add(&whole, t, 0);
        CU_ASSERT_EQUAL_FATAL(q.n, cases[i].n);
        CU_ASSERT_EQUAL_FATAL(whole.n, cases[i].n > 0);
        for (int k = 0; k < q.n; k++)
            sum += q.at[k].nll;
        if (q.n) {
            CU_ASSERT_EQUAL(q.at[q.n - 1].tokens, cases[i].last);
            CU_ASSERT_EQUAL(sum, t->all.nll);
            CU_ASSERT_EQUAL(whole.at[0].nll, t->all.nll);
            CU_ASSERT_EQUAL(whole.at[0].rows, cases[i].n_token);
            CU_ASSERT_DOUBLE_EQUAL(sh_eval_sequences_kl(&q).value, 2, 1e-15);
        }
        free(q.at);
        free(whole.at);
        free(t);
    }
}

/* By hand: per token 0.1, 0.2, 0.6 over 10, 20, 10 tokens; m = 0.275, r = -1.75, -1.5, 3.25 over 40 / 3. */
static void clustered(void)
{
    struct sh_eval_sequence at[] = {{10, 11, 1, 1, 0}, {20, 21, 4, 4, 0}, {10, 11, 6, 6, 0}};
    struct sh_eval_sequences q = {at, 3};
    struct sh_eval_mean m = sh_eval_sequences_change(&q);
    double error = sqrt((1.75 * 1.75 + 1.5 * 1.5 + 3.25 * 3.25) / (40. / 3 * 40 / 3) / 2 / 3);
    CU_ASSERT_DOUBLE_EQUAL(m.value, 0.275, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(m.error, error, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(sh_eval_increase_bound(m, 3), expm1(0.275 + 2.919986 * error), 1e-6);
    CU_ASSERT_EQUAL(sh_eval_sequences_kl(&q).error, 0);
    q.n = 1;
    CU_ASSERT(isnan(sh_eval_sequences_nll(&q).error));
}

int main(void)
{
    static const struct tap_test tests[] = {{"log sum exp, nll and KL are what long double says", definitions},
                                            {"tokens that have no chance", no_chance},
                                            {"logits that are no numbers", no_numbers},
                                            {"the first of equal logits is the likeliest", first_of_equals},
                                            {"texts and blocks of texts", blocks},
                                            {"standard errors over sequences of unequal length", clustered},
                                            {0}};
    return tap_run("eval_row", tests);
}
