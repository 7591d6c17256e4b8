/* SPDX-License-Identifier: Apache-2.0 */
/* What every policy keeps, over the share of the sequence that it may keep: the attention mass with
 * its bootstrap interval, and in further panels what else was measured. One look per policy in all
 * panels and traces; the bounds that see the future are black. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plots/figure.h"

#define NAMES_IN 1.3            /* right of a panel: names at the lines' ends */
#define WIDE_PAGE 6.0           /* where there is room for them */
#define LEAST_LOST 1e-4         /* below it lines end */

enum { PANELS = 4, COLOURS = 6, DASHES = 4, MOST = 48, MOST_TOLD_APART = 8, MOST_MARKS = 12 };

static const struct { const char *title; int column, is_lost; } panels[PANELS] = {
    {"mass lost (1 − kept)", 2, 1},
    {"without sinks, newest", 5, 1},
    {"pivotal tokens lost", 6, 1},
    {"output error", 7, 0}};

static const double *values(const struct sh_fig_curve *c, int panel)
{
    return ((const double *[PANELS]){c->mass, c->no_sink, c->pivotal, c->error})[panel];
}

static int has_values(const struct sh_fig_curves *set, int panel)
{
    for (int i = 0; i < set->n_curves; i++)
        for (int k = 0; k < set->curve[i].n; k++)
            if (isfinite(values(&set->curve[i], panel)[k]))
                return 1;
    return 0;
}

/* ---- looks ---- */

static int is_same(const struct sh_fig_curve *a, const struct sh_fig_curve *b)
{
    return a->is_bound == b->is_bound && a->is_over == b->is_over && !strcmp(a->label, b->label);
}

/* Is curve i of trace s the first of its name and kind? */
static int is_new(const struct sh_fig_curve_sets *d, int s, int i)
{
    for (int k = 0; k <= s; k++)
        for (int j = 0; j < (k < s ? d->set[k].n_curves : i); j++)
            if (is_same(&d->set[k].curve[j], &d->set[s].curve[i]))
                return 0;
    return 1;
}

/* Its number among the names of its kind. */
static int place(const struct sh_fig_curve_sets *d, const struct sh_fig_curve *c)
{
    int n = 0;
    for (int s = 0; s < d->n; s++)
        for (int i = 0; i < d->set[s].n_curves; i++) {
            const struct sh_fig_curve *at = &d->set[s].curve[i];
            if (is_same(at, c))
                return n;
            n += at->is_bound == c->is_bound && at->is_over == c->is_over && is_new(d, s, i);
        }
    return n;
}

static int n_names(const struct sh_fig_curve_sets *d)
{
    int n = 0;
    for (int s = 0; s < d->n; s++)
        for (int i = 0; i < d->set[s].n_curves; i++)
            n += is_new(d, s, i);
    return n;
}

/* Where more lines cross than can be told apart, only the best of them and the references have looks of their own. */
static int is_grey(const struct sh_fig_curve_sets *d, const struct sh_fig_curve *c)
{
    return c->is_over || (n_names(d) > MOST_TOLD_APART && !c->is_bound && !c->is_reference && place(d, c) >= COLOURS);
}

/* Six colours, then the same with other dashes; those that see the future are black, a reference that is not among the
 * best is dark. */
static const char *style(const struct sh_fig_curve_sets *d, const struct sh_fig_curve *c, char text[64])
{
    static const char *const dash[DASHES] = {"1", "(6,4)", "(2,3)", "(9,4,2,4)"};
    int n = place(d, c);
    if (c->is_bound)
        snprintf(text, 64, " lc rgb '#000000' lw 2.2 dt %s", dash[n % DASHES]);
    else if (is_grey(d, c))
        snprintf(text, 64, " lc rgb '#c8c8c8' lw 0.8 dt 1");
    else if (n >= COLOURS && n_names(d) > MOST_TOLD_APART)
        snprintf(text, 64, " lc rgb '#606060' lw 1.8 dt (2,3)");
    else
        snprintf(text, 64, " ls %d dt %s", n % COLOURS + 1, dash[n / COLOURS % DASHES]);
    return text;
}

/* ---- the parts of the page ---- */

static void blocks(struct sh_gp *gp, const struct sh_fig_curve_sets *d)
{
    for (int s = 0; s < d->n; s++)
        for (int i = 0; i < d->set[s].n_curves; i++) {
            const struct sh_fig_curve *c = &d->set[s].curve[i];
            fprintf(gp->to, "$s%dc%d << EOD\n# ", s, i);
            sh_gp_text(gp, c->label, 200);
            fputs("\n# share mass low high no_sink pivotal error\n", gp->to);
            for (int k = 0; k < c->n; k++)
                sh_gp_row(gp, (double[]){c->share[k], c->mass[k], c->low[k], c->high[k], c->no_sink[k], c->pivotal[k],
                                         c->error[k]}, 7);
            fputs("EOD\n", gp->to);
        }
}

static double shown(const struct sh_fig_curve *c, int panel, int k)
{
    double y = values(c, panel)[k];
    y = panels[panel].is_lost ? 1 - y : y;
    return y >= LEAST_LOST ? y : (double)NAN;
}

/* Every panel is logarithmic, where curves that come near 0 can be told apart. */
static void y_range(struct sh_gp *gp, const struct sh_fig_curves *set, int panel, double tall, double *low,
                    double *high)
{
    *low = 1;
    *high = 0;
    for (int i = 0; i < set->n_curves; i++)
        for (int k = 0; k < set->curve[i].n; k++) {
            double y = shown(&set->curve[i], panel, k);
            *low = y < *low ? y : *low;
            *high = y > *high ? y : *high;
        }
    *high = fmax(*high, *low);
    sh_gp_log_axis(gp, *low, *high, sh_gp_row_tics(tall));
    *low = *low / 1.1;
    *high = *high * 1.1;
}

struct end { const struct sh_fig_curve *c; double mean, at; };

/* The share up to which all lines that have a name have values. */
static double common_share(const struct sh_fig_curve_sets *d, int s, int p)
{
    double common = 1;
    for (int i = 0; i < d->set[s].n_curves; i++) {
        const struct sh_fig_curve *c = &d->set[s].curve[i];
        double last = (double)NAN;
        for (int k = 0; k < c->n && !is_grey(d, c); k++)
            last = isfinite(shown(c, p, k)) ? c->share[k] : last;
        common = fmin(common, last);
    }
    return common;
}

/* The end of a line, and its mean height up to the common share: ends coincide where lines do not. 0: it has none. */
static int find_end(const struct sh_fig_curve *c, int p, double common, double low, double high, struct end *to)
{
    int n = 0;
    *to = (struct end){c, 0, (double)NAN};
    for (int k = 0; k < c->n; k++) {
        double y = shown(c, p, k), at = log(y / low) / log(high / low);
        if (!isfinite(at))
            continue;
        to->at = at;
        if (c->share[k] <= common + 1e-9 || !n) {
            to->mean += at;
            n++;
        }
    }
    to->mean /= n ? n : 1;
    return n > 0;
}

/* The names of a panel's lines right of it, in the order of the lines, each as near its line's end as letters allow. */
static void names(struct sh_gp *gp, const struct sh_fig_curve_sets *d, int s, int p, double low, double high,
                  double tall)
{
    const struct sh_fig_curves *set = &d->set[s];
    struct end end[MOST], next;
    int n = 0;
    double apart = 0.165 / tall, least = 0, common = common_share(d, s, p);
    for (int i = 0; i < set->n_curves; i++) {
        if (is_grey(d, &set->curve[i]) || !find_end(&set->curve[i], p, common, low, high, &next))
            continue;
        int k = n++;
        for (; k > 0 && end[k - 1].mean > next.mean; k--)
            end[k] = end[k - 1];
        end[k] = next;
    }
    for (int i = 0; i < n; i++) {
        end[i].at = fmin(fmax(end[i].at, least), 1.02 - apart * (n - 1 - i));
        least = end[i].at + apart;
    }
    for (int i = 0; i < n; i++) {
        /* the colours of the lines, dark enough to be read on white */
        static const char *const colour[COLOURS] = {"#005F96", "#A84A00", "#006B4E", "#9A3F73", "#8A5A00", "#1E6E9E"};
        const struct sh_fig_curve *c = end[i].c;
        fprintf(gp->to, "set label %d ", 300 + i);
        sh_gp_text(gp, c->label, sh_gp_letters(NAMES_IN - 0.1));
        fprintf(gp->to, " at graph 1.02, graph %.4f left tc rgb '%s'\n", end[i].at, c->is_bound ? "#000000" :
                place(d, c) < COLOURS ? colour[place(d, c)] : "#606060");
    }
}

static void panel(struct sh_gp *gp, const struct sh_fig_curve_sets *d, int s, int p)
{
    const struct sh_fig_curves *set = &d->set[s];
    const char *separator = "plot ";
    char text[64];
    for (int i = 0; i < set->n_curves && p == 0; i++) {
        const struct sh_fig_curve *c = &set->curve[i];
        if (c->is_bound || is_grey(d, c))
            continue;
        fprintf(gp->to, "%s$s%dc%d using 1:(lost($3)):(lost($4)) with filledcurves ls %d fs transparent solid 0.3 "
                "noborder", separator, s, i, place(d, c) % COLOURS + 1);
        separator = ", \\\n    ";
    }
    for (int grey = 1; grey >= 0; grey--)           /* below those with colours */
        for (int i = 0; i < set->n_curves; i++) {
            const struct sh_fig_curve *c = &set->curve[i];
            if (is_grey(d, c) != grey)
                continue;
            fprintf(gp->to, panels[p].is_lost ? "%s$s%dc%d using 1:(lost($%d)) with " :
                    "%s$s%dc%d using 1:(seen($%d)) with ", separator, s, i, panels[p].column);
            int has_marks = c->n <= MOST_MARKS && !grey && !c->is_bound;
            fprintf(gp->to, "%s%s%s", has_marks ? "linespoints" : "lines", style(d, c, text),
                    has_marks ? " pt 7 ps 0.4" : "");
            separator = ", \\\n    ";
        }
    fputs("\nunset label\nunset arrow\nunset object\n", gp->to);
}

static int has_bands(const struct sh_fig_curve_sets *d)
{
    for (int s = 0; s < d->n; s++)
        for (int i = 0; i < d->set[s].n_curves; i++)
            for (int k = 0; k < d->set[s].curve[i].n; k++) {
                const struct sh_fig_curve *c = &d->set[s].curve[i];
                if (isfinite(c->low[k]) && !c->is_bound && !is_grey(d, c))
                    return 1;
            }
    return 0;
}

/* Names stand at the lines' ends where `at_end`, else in the legend; what has no name of its own always there. */
static void legend(struct sh_gp_grid *g, const struct sh_fig_curve_sets *d, int at_end)
{
    char text[64];
    int n_grey = 0, n_over = 0;
    for (int s = 0; s < d->n; s++)
        for (int i = 0; i < d->set[s].n_curves; i++) {
            const struct sh_fig_curve *c = &d->set[s].curve[i];
            n_over += c->is_over;
            n_grey += is_grey(d, c) && !c->is_over;
            if (!at_end && !is_grey(d, c))
                sh_gp_entry(g, c->label, SH_GP_LINE, "%s", style(d, c, text));
        }
    if (n_grey || n_over)
        sh_gp_entry(g, !n_grey ? "keeps more than its budget" : n_over ? "others, or more than the budget" : "others",
                    SH_GP_LINE, " lc rgb '#c8c8c8' lw 0.8 dt 1");
    if (has_bands(d))
        sh_gp_entry(g, "95 % interval", SH_GP_BAND, " fc rgb '#a0a0a0' fs solid 0.6 noborder");
}

static int draw(struct sh_gp *gp, const struct sh_fig_data *data, struct sh_err *e)
{
    const struct sh_fig_curve_sets *d = data->budget_curve;
    int of[PANELS * PANELS][2], n = 0;
    int at_end = sh_gp_room(gp, 9) >= WIDE_PAGE;
    struct sh_gp_grid g = {.wide = at_end ? 3.0 : 4.2, .tall = 3.0, .least = 0.7, .left = 0.5,
                           .right = at_end ? NAMES_IN : 0.12, .below = 0.3, .last = 0.2, .most = 2};
    for (int s = 0; s < d->n; s++) {
        if (d->set[s].n_curves < 1 || d->set[s].n_curves > MOST)
            return sh_misused(e, "figure budget-curve shows 1 to %d policies, found %d", MOST, d->set[s].n_curves);
        for (int p = 0; p < PANELS; p++)
            if (p == 0 || has_values(&d->set[s], p)) {
                sh_gp_titled(&g, d->n > 1 ? d->set[s].title : panels[p].title, d->n > 1 ? panels[p].title : NULL);
                of[n][0] = s;
                of[n++][1] = p;
            }
    }
    legend(&g, d, at_end);
    sh_gp_lay_out(gp, &g, n);
    blocks(gp, d);
    fprintf(gp->to, "lost(v) = v <= %.10g ? 1 - v : NaN\nseen(v) = v >= %g ? v : NaN\n"
            "set xrange [0:1]\nset xtics 0, %s, 1\n", 1 - LEAST_LOST, LEAST_LOST, g.wide < 2 ? "0.5" : "0.25");
    sh_gp_begin_panels(gp, &g);
    for (int i = 0; i < g.n; i++) {
        double low, high;
        int s = of[g.at[i]][0], p = of[g.at[i]][1];
        sh_gp_cell(gp, &g, i);
        sh_gp_panel_title(gp, &g, d->n > 1 ? d->set[s].title : panels[p].title,
                          d->n > 1 ? panels[p].title : NULL);
        sh_gp_axis_label(gp, "xlabel", g.wide < 2 ? "budget as a share" : "budget as a share of the length",
                         g.wide + g.left, sh_gp_is_last(&g, i));
        y_range(gp, &d->set[s], p, g.tall, &low, &high);
        if (at_end)
            names(gp, d, s, p, low, high, g.tall);
        panel(gp, d, s, p);
    }
    fputs("unset multiplot\n", gp->to);
    return 0;
}

static void caption(FILE *to, const struct sh_fig_data *data)
{
    const struct sh_fig_curve_sets *d = data->budget_curve;
    int has_bound = 0, has_error = 0;
    for (int s = 0; s < d->n; s++)
        for (int i = 0; i < d->set[s].n_curves; i++) {
            const struct sh_fig_curve *c = &d->set[s].curve[i];
            has_bound |= c->is_bound;
            for (int k = 0; k < c->n; k++)
                has_error |= isfinite(c->error[k]);
        }
    fprintf(to, "attention that each policy keeps%s, against the budget%s",
            has_error ? ", and the output error" : "", has_bound ? ", with the oracles" : "");
}

const struct sh_figure sh_figure_budget_curve = {
    .number = SH_FIG_budget_curve, .name = "budget-curve",
    .summary = "attention that each policy keeps, against the budget, with the oracles", .most = 4,
    .parts = "sets of curves", .draw = draw, .caption = caption};
