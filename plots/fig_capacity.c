/* SPDX-License-Identifier: Apache-2.0 */
/* What the memory of one GPU is used for: a bar for each setting, its parts side by side, and where the memory ends. */
#include <math.h>

#include "plots/figure.h"

#define LEFT 2.6                /* inches around the bars: their names */
#define RIGHT 1.5               /* and their remarks */
#define WIDE 5.2
#define PITCH 0.42
#define TOP 0.95

/* Rectangles, since a histogram would number the bars from below and stretch them with the page. */
static void bar(struct sh_gp *gp, const struct sh_fig_stacks *s, int i, int *object)
{
    const struct sh_fig_stack *b = &s->bars[i];
    double at = 0;
    for (int k = 0; k < s->n_parts; k++) {
        double part = b->part[k] > 0 ? b->part[k] : 0;
        if (part > 0) {
            fprintf(gp->to, "set object %d rectangle from first ", ++*object);
            sh_gp_real(gp, at);
            fprintf(gp->to, ", %g to ", i - 0.36);
            sh_gp_real(gp, at + part);
            fprintf(gp->to, ", %g front fc ls %d fs solid noborder\n", i + 0.36, k % SH_GP_COLOURS + 1);
        }
        at += part;
    }
    if (isfinite(b->limit)) {
        fprintf(gp->to, "set arrow from first ");
        sh_gp_real(gp, b->limit);
        fprintf(gp->to, ", %g to ", i - 0.45);
        sh_gp_real(gp, b->limit);
        fprintf(gp->to, ", %g nohead front lc rgb '#000000' lw 1.6\n", i + 0.45);
    }
    if (b->remark) {
        fputs("set label ", gp->to);
        sh_gp_text(gp, b->remark, 24);
        fprintf(gp->to, " at graph 1.015, first %d left\n", i);
    }
}

static double widest(const struct sh_fig_stacks *s)
{
    double most = 1e-9;
    for (int i = 0; i < s->n; i++) {
        double sum = 0;
        for (int k = 0; k < s->n_parts; k++)
            sum += s->bars[i].part[k] > 0 ? s->bars[i].part[k] : 0;
        most = fmax(most, sum);
        most = isfinite(s->bars[i].limit) ? fmax(most, s->bars[i].limit) : most;
        most = isfinite(s->bars[i].whole) ? fmax(most, s->bars[i].whole) : most;
    }
    return most;
}

static int is_used(const struct sh_fig_stacks *s, int part)
{
    for (int i = 0; i < s->n; i++)
        if (s->bars[i].part[part] > 0)
            return 1;
    return 0;
}

static void legend(struct sh_gp *gp, const struct sh_fig_stacks *s, double top, int *object)
{
    for (int k = 0, n = 0; k < s->n_parts; k++) {
        double x = LEFT + 1.75 * (n % 4), y = top + 0.22 * (n / 4);
        if (!is_used(s, k))
            continue;
        n++;
        fprintf(gp->to, "set object %d rectangle from ", ++*object);
        sh_gp_at(gp, x, y - 0.06);
        fputs(" to ", gp->to);
        sh_gp_at(gp, x + 0.16, y + 0.06);
        fprintf(gp->to, " front fc ls %d fs solid noborder\nset label ", k % SH_GP_COLOURS + 1);
        sh_gp_text(gp, s->part[k], 22);
        fputs(" at ", gp->to);
        sh_gp_at(gp, x + 0.24, y);
        fputs(" left\n", gp->to);
    }
}

static int draw(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    const struct sh_fig_stacks *s = d->capacity;
    int object = 0;
    double tall = PITCH * s->n;
    if (s->n_parts > SH_STACK_PARTS)
        return sh_misused(e, "figure capacity shows at most %d parts of a bar, found %d", SH_STACK_PARTS, s->n_parts);
    sh_gp_page(gp, LEFT + WIDE + RIGHT, TOP + tall + 1.2, d->title, d->settings);
    fputs("unset key\n", gp->to);
    sh_gp_heading(gp);
    sh_gp_box(gp, LEFT, TOP, WIDE, tall);
    fprintf(gp->to, "set xlabel 'GiB of one GPU; the line is the usable memory'\nset yrange [%g:-0.6]\n"
            "set xrange [0:%.6g]\nset ytics scale 0 ", s->n - 0.4, 1.02 * widest(s));
    for (int i = 0; i < s->n; i++)
        sh_gp_tic_at(gp, i, s->bars[i].label, 34);
    fputs(")\n", gp->to);
    for (int i = 0; i < s->n; i++)
        bar(gp, s, i, &object);
    legend(gp, s, TOP + tall + 0.75, &object);
    fputs("plot NaN notitle\n", gp->to);
    return 0;
}

const struct sh_figure sh_figure_capacity = {
    .number = SH_FIG_capacity, .name = "capacity",
    .summary = "use of a GPU's memory, setting by setting", .most = 64, .parts = "settings",
    .drawn_by = "capacity --plot-memory FILE", .draw = draw};
