/* SPDX-License-Identifier: Apache-2.0 */
/* See theory_dropped.h. The law's mean is taken at the end, when k is known, from the number of
 * rows of every length. */
#include "planner/theory/theory_dropped.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/theory/bound.h"
#include "planner/theory/theory_output.h"
#include "src/base/mem.h"

struct sh_theory_dropped {
    int n_rho, room;                    /* room: lengths below it have a counter                  */
    double *rho;
    double *dropped, *error, *bound;    /* [n_rho] sums over rows                                 */
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
    t->rho = xcalloc(n, sizeof *t->rho);
    memcpy(t->rho, rho, n * sizeof *rho);
    t->dropped = xcalloc(n, sizeof *t->dropped);
    t->error = xcalloc(n, sizeof *t->error);
    t->bound = xcalloc(n, sizeof *t->bound);
    t->of_row = xcalloc(n, sizeof *t->of_row);
    t->budget = xcalloc(n, sizeof *t->budget);
    t->scratch = sh_theory_scratch_new();
    return t;
}

void sh_theory_dropped_free(struct sh_theory_dropped *t)
{
    if (!t)
        return;
    free(t->rho);
    free(t->dropped);
    free(t->error);
    free(t->bound);
    free(t->of_row);
    free(t->budget);
    free(t->rows_of);
    sh_theory_scratch_free(t->scratch);
    free(t);
}

/* ceil(rho n), of which a product that is off in its last bits makes no whole number more. */
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
        t->budget[i] = budget_of(t->rho[i], n);
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
        t->dropped[i] += 1 - t->of_row[i].kept;
        if (with_v) {
            t->error[i] += t->of_row[i].error;
            t->bound[i] += t->of_row[i].bound;
        }
    }
}

void sh_theory_dropped_get(const struct sh_theory_dropped *t, int i_rho, double k, double b,
                           struct sh_dropped *out)
{
    double rows = (double)t->rows, with_v = (double)t->rows_with_v, budget = 0, law = 0;
    double cut = 0;
    for (int n = 1; n < t->room; n++)
        if (t->rows_of[n]) {
            double share = (double)budget_of(t->rho[i_rho], n) / n;
            budget += (double)t->rows_of[n] * share;
            law += (double)t->rows_of[n] * sh_bound_dropped(share, k);
            cut += (double)t->rows_of[n] * sh_bound_dropped_cut(share, k, b, n);
        }
    *out = (struct sh_dropped){t->rows,
                               t->left_out,
                               t->rows_with_v,
                               rows > 0 ? budget / rows : NAN,
                               rows > 0 ? t->dropped[i_rho] / rows : NAN,
                               rows > 0 ? law / rows : NAN,
                               rows > 0 ? cut / rows : NAN,
                               with_v > 0 ? t->error[i_rho] / with_v : NAN,
                               with_v > 0 ? t->bound[i_rho] / with_v : NAN};
}
