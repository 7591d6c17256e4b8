/* SPDX-License-Identifier: Apache-2.0 */
/* What the memory of one GPU is used for: a bar for each setting, its parts side by side, and where the memory ends. */
#include <math.h>
#include <string.h>

#include "plots/figure.h"

#define PAGE 9.3
#define PITCH 0.42
#define LEAST_PITCH 0.2
#define NARROW_PITCH 0.28       /* likewise, with names above the bars */
#define CLOSE_PITCH 0.165       /* or, of many bars, next to them */
#define NAME 34                 /* letters of a bar's name at most, and of its remark */
#define REMARK 24
#define LEAST_BARS 0.66         /* inches that names leave of a close page's width */

enum { MOST_ABOVE = 10 };       /* bars of a narrow page with names above them */

/* Where names stand: left of the bars, above them on a narrow page, or left and short where it has many. */
enum { NEXT_TO, ABOVE, CLOSE };
static const char sequences[] = " sequences";

static double inches(size_t letters, size_t most)
{
    return 0.081 * (double)(letters < most ? letters : most) + 0.15;
}

/* Close remarks leave out their unit, which the axis then has. */
static size_t remark_letters(const struct sh_fig_stack *b, int where)
{
    const char *unit = b->remark && where == CLOSE ? strstr(b->remark, sequences) : NULL;
    return unit ? (size_t)(unit - b->remark) : b->remark ? strlen(b->remark) : 0;
}

/* What the names left of the bars, and the remarks right of them, take. Letters of a name. */
static int sides(const struct sh_gp *gp, const struct sh_fig_stacks *s, int where, double *left, double *right)
{
    int letters = NAME;
    *left = *right = where == CLOSE ? 0.1 : 0.3;
    for (int i = 0; i < s->n; i++)
        *right = fmax(*right, s->bars[i].remark ? inches(remark_letters(&s->bars[i], where), REMARK) + 0.1 : 0);
    while (where == CLOSE && letters > 8 && sh_gp_room(gp, PAGE) - 0.7 - *right - inches(NAME, (size_t)letters) <
                                                LEAST_BARS)
        letters--;
    for (int i = 0; i < s->n; i++)
        *left = fmax(*left, inches(strlen(s->bars[i].label), (size_t)letters) + 0.15);
    return letters;
}

static void names(struct sh_gp *gp, const struct sh_fig_stack *b, int i, int where)
{
    char remark[REMARK + 1];
    snprintf(remark, sizeof remark, "%.*s", (int)remark_letters(b, where), b->remark ? b->remark : "");
    if (*remark) {
        fputs("set label ", gp->to);
        sh_gp_text(gp, remark, where == ABOVE ? REMARK - 6 : REMARK);
        if (where == ABOVE)
            fprintf(gp->to, " at graph 1, first %g right\n", i - 0.24);
        else
            fprintf(gp->to, " at graph 1.015, first %d left\n", i);
    }
    if (where == ABOVE) {
        fputs("set label ", gp->to);
        sh_gp_text(gp, b->label, NAME - 6);
        fprintf(gp->to, " at graph 0, first %g left\n", i - 0.24);
    }
}

/* Rectangles, since a histogram would number the bars from below and stretch them with the page. */
static void bar(struct sh_gp *gp, const struct sh_fig_stacks *s, int i, int where, int *object)
{
    double top = i + (where == ABOVE ? 0.06 : -0.36), bottom = i + 0.36;
    const struct sh_fig_stack *b = &s->bars[i];
    double at = 0;
    for (int k = 0; k < s->n_parts; k++) {
        double part = b->part[k] > 0 ? b->part[k] : 0;
        if (part > 0) {
            fprintf(gp->to, "set object %d rectangle from first ", ++*object);
            sh_gp_real(gp, at);
            fprintf(gp->to, ", %g to ", top);
            sh_gp_real(gp, at + part);
            fprintf(gp->to, ", %g front fc ls %d fs solid noborder\n", bottom, k % SH_GP_COLOURS + 1);
        }
        at += part;
    }
    if (isfinite(b->limit)) {
        fprintf(gp->to, "set arrow from first ");
        sh_gp_real(gp, b->limit);
        fprintf(gp->to, ", %g to ", top - 0.06);
        sh_gp_real(gp, b->limit);
        fprintf(gp->to, ", %g nohead front lc rgb '#000000' lw 1.6\n", bottom + 0.06);
    }
    names(gp, b, i, where);
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

static int draw(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    const struct sh_fig_stacks *s = d->capacity;
    static const double pitch[] = {[NEXT_TO] = LEAST_PITCH, [ABOVE] = NARROW_PITCH, [CLOSE] = CLOSE_PITCH};
    int where = sh_gp_room(gp, PAGE) >= SH_GP_NARROW ? NEXT_TO : s->n > MOST_ABOVE ? CLOSE : ABOVE;
    int object = 0, letters = NAME;
    struct sh_gp_grid g = {.tall = PITCH * s->n, .least = pitch[where] * s->n, .below = 0.52, .most = 1};
    if (s->n_parts > SH_STACK_PARTS)
        return sh_misused(e, "figure capacity shows at most %d parts of a bar, found %d", SH_STACK_PARTS, s->n_parts);
    if (where == ABOVE)
        g.left = g.right = 0.1;
    else
        letters = sides(gp, s, where, &g.left, &g.right);
    g.wide = PAGE - g.left - g.right;
    for (int k = 0; k < s->n_parts; k++)
        if (is_used(s, k))
            sh_gp_entry(&g, s->part[k], SH_GP_BAND, " fc ls %d fs solid noborder", k % SH_GP_COLOURS + 1);
    sh_gp_entry(&g, "usable memory", SH_GP_LINE, " lc rgb '#000000' lw 1.6");
    sh_gp_lay_out(gp, &g, 1);
    fputs("unset key\n", gp->to);
    sh_gp_begin_panels(gp, &g);
    sh_gp_cell(gp, &g, 0);
    sh_gp_axis_label(gp, "xlabel", where == CLOSE ? "GiB; right: sequences" : "GiB of one GPU",
                     g.wide + (where == CLOSE ? 2 * g.right : g.left), 1);
    if (where == CLOSE)
        sh_gp_tics(gp, 'x', 0, widest(s), g.wide);
    fprintf(gp->to, "set yrange [%g:-0.6]\nset xrange [0:%.6g]\nset ytics scale 0 ", s->n - 0.4, 1.02 * widest(s));
    for (int i = 0; i < s->n; i++)
        sh_gp_tic_at(gp, i, where == ABOVE ? "" : s->bars[i].label, letters);
    fputs(")\n", gp->to);
    for (int i = 0; i < s->n; i++)
        bar(gp, s, i, where, &object);
    fputs("plot NaN notitle\nunset multiplot\n", gp->to);
    return 0;
}

const struct sh_figure sh_figure_capacity = {
    .number = SH_FIG_capacity, .name = "capacity",
    .summary = "use of a GPU's memory, setting by setting", .most = 64, .parts = "settings",
    .drawn_by = "capacity --plot-memory FILE", .draw = draw};
