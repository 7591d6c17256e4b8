/* SPDX-License-Identifier: Apache-2.0 */
/* plots: axes that have numbers next to them however far they reach, and captions that say what is drawn. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/figure.h"
#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/plot_data.h"

static struct plot_data tame;

/* The tics of an axis from low to high: how many, and whether all lie inside and rise. */
static int tics(double low, double high, int *sound)
{
    char *text, *at;
    size_t bytes;
    struct sh_gp gp = {.to = xmemstream(&text, &bytes)};
    double from, to, last = 0, v;
    int n = 0;
    sh_gp_log_axis(&gp, low, high, 16);
    xmemclose(gp.to, &text, &bytes);
    CU_ASSERT_FATAL(sscanf(text, "set logscale y 10\nset yrange [%lf:%lf]", &from, &to) == 2);
    *sound = from <= low && to >= high;
    for (at = strchr(text, '('); at && (at = strchr(at, '\'')); n++) {
        at = strchr(at + 1, '\'') + 1;
        v = strtod(at, &at);
        *sound &= v >= 0.999 * from && v <= 1.001 * to && v > last;
        last = v;
    }
    free(text);
    return n;
}

static void log_axes_have_numbers(void)
{
    for (double low = 0.97e-6; low < 1e7; low *= 1.37)
        for (double times = 1; times < 1e9; times *= times < 20 ? 1.13 : 3.1) {
            int sound, n = tics(low, low * times, &sound);
            if (n < 2 || n > 16 || !sound)
                printf("# %g to %g: %d tics\n", low, low * times, n);
            CU_ASSERT(n >= 2 && n <= 16 && sound);
        }
}

static void big_numbers_are_short(void)
{
    char *text;
    size_t bytes;
    struct sh_gp gp = {.to = xmemstream(&text, &bytes)};
    sh_gp_log_axis(&gp, 5000, 3e6, 16);
    xmemclose(gp.to, &text, &bytes);
    CU_ASSERT(strstr(text, "'5000' 5000, '10k' 10000, ") != NULL && strstr(text, "'2M' 2e+06)") != NULL);
    free(text);
}

static void says(const char *name, const struct sh_fig_data *d, const char *expected)
{
    struct sh_err e = {.text = ""};
    const struct sh_figure *f = sh_figure_find(name, &e);
    CU_ASSERT_FATAL(f != NULL);
    char *caption = sh_figure_caption(f, d);
    CU_ASSERT_STRING_EQUAL(caption, expected);
    free(caption);
}

static void captions_say_what_is_drawn(void)
{
    struct sh_fig_data d = tame.d;
    says("heatmap", &d, "attention scores, and which of them are above their row's average; below, individual rows "
                        "as strips");
    struct sh_fig_maps unmarked = tame.maps;
    unmarked.n_marks = 0;
    d.heatmap = &unmarked;
    says("heatmap", &d, "attention scores, and which of them are above their row's average");
    says("compression", &d, "accuracy and perplexity against the compression of the cache");
    struct sh_fig_measured_panels single = {1, tame.measured};
    d.compression = &single;
    says("compression", &d, "accuracy against the compression of the cache");
    says("budget-curve", &d, "attention that each policy keeps, and the output error, against the budget, with "
                             "the oracles");
    struct sh_fig_curves one = tame.curves;
    one.n_curves = 1;
    one.curve = &tame.curve[0];
    for (int i = 0; i < tame.curves.n_curves; i++)
        if (!tame.curve[i].is_bound)
            one.curve = &tame.curve[i];
    struct sh_fig_curve plain = *one.curve;
    double none[SHARES];
    for (int i = 0; i < SHARES; i++)
        none[i] = (double)NAN;
    plain.error = none;
    one.curve = &plain;
    struct sh_fig_curve_sets sets = {1, &one};
    d.budget_curve = &sets;
    says("budget-curve", &d, "attention that each policy keeps, against the budget");
    says("heads", &d, "the persistence ratio and the lift beyond recency of every head, as a grid of layers "
                      "and heads");
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"logarithmic axes: two numbers at least, not too many", log_axes_have_numbers},
        {"logarithmic axes: big numbers are short", big_numbers_are_short},
        {"captions say what is drawn, and no more", captions_say_what_is_drawn},
        {NULL, NULL}};
    plot_data_fill(&tame, NULL);
    return tap_run("charts", tests);
}
