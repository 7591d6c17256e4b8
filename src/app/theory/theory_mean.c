/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of theory_store.h for heads, layers and the whole. */
#include <math.h>

#include "src/app/theory/theory_store.h"

/* The mean of n numbers, `step` apart, over those that are there. */
static double mean(const double *x, int n, size_t step)
{
    double sum = 0;
    int there = 0;
    for (int i = 0; i < n; i++, x += step)
        if (!isnan(*x)) {
            sum += *x;
            there++;
        }
    return there ? sum / there : (double)NAN;
}

double sh_theory_figure(const struct sh_theory_result *r, int i_layer, int head, enum sh_theory_figure f)
{
    double sum = 0;
    int there = 0;
    if (i_layer >= 0) {
        const double *first = r->head + (size_t)(i_layer * r->n_head) * SH_N_THEORY_FIGURE + f;
        return head >= 0 ? first[(size_t)head * SH_N_THEORY_FIGURE] : mean(first, r->n_head, SH_N_THEORY_FIGURE);
    }
    for (int l = 0; l < r->n_layer; l++) {
        double x = sh_theory_figure(r, l, -1, f);
        sum += isnan(x) ? 0 : x;
        there += !isnan(x);
    }
    return there ? sum / there : (double)NAN;
}

double sh_theory_at(const struct sh_theory_result *r, int i_layer, int head, int i_rho, enum sh_theory_at f)
{
    double sum = 0;
    int there = 0;
    if (i_layer >= 0) {
        size_t step = (size_t)r->n_rho * SH_N_THEORY_AT;
        const double *first = r->at + (size_t)(i_layer * r->n_head) * step + (size_t)i_rho * SH_N_THEORY_AT + f;
        return head >= 0 ? first[(size_t)head * step] : mean(first, r->n_head, step);
    }
    for (int l = 0; l < r->n_layer; l++) {
        double x = sh_theory_at(r, l, -1, i_rho, f);
        sum += isnan(x) ? 0 : x;
        there += !isnan(x);
    }
    return there ? sum / there : (double)NAN;
}

int sh_theory_verdicts(const struct sh_theory_result *r, int i_layer, enum sh_powerlaw_verdict v)
{
    int n = 0;
    for (int l = i_layer < 0 ? 0 : i_layer; l < (i_layer < 0 ? r->n_layer : i_layer + 1); l++)
        for (int h = 0; h < r->n_head; h++)
            n += r->verdict[l * r->n_head + h] == v;
    return n;
}
