/* SPDX-License-Identifier: Apache-2.0 */
/* Attention maps: left the scores, right which of them are above their row's average, and below
 * both the rows that were asked for, one strip each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/figure.h"
#include "src/base/mem.h"

#define MOST_TOKENS 48          /* up to here token texts stand at the axes */
#define SIDE 3.6                /* inches, a map without its margins, where there is room */
#define LEFT 0.95               /* of a map                                 */
#define BETWEEN 1.65            /* a map and the one next to it             */
#define RIGHT 0.5               /* after the last one                       */
#define COLOURS 0.85            /* after one with a colour box              */
#define STRIP 0.2

/* Maps side by side, or one below the other where the page is narrow. */
struct layout {
    double side, page;
    int across;
};

static int down(const struct sh_fig_map *m)
{
    return (m->n_rows - 1) / m->by_row + 1;
}

static int across(const struct sh_fig_map *m)
{
    return (m->n_cols - 1) / m->by_col + 1;
}

static int is_marked(const struct sh_fig_map *m, int pos)
{
    return pos >= 0 && pos < m->n_rows;
}

static int n_marked(const struct sh_fig_map *m, const struct sh_fig_maps *d)
{
    int n = 0;
    for (int i = 0; i < d->n_marks; i++)
        n += is_marked(m, d->marks[i]);
    return n;
}

static int has_tokens(const struct sh_fig_map *m)
{
    return (m->row_label || m->col_label) && m->n_rows <= MOST_TOKENS && m->n_cols <= MOST_TOKENS;
}

/* The blocks $score<i>, $significant<i> and, when rows are marked, $rows<i>. */
static void blocks(struct sh_gp *gp, const struct sh_fig_map *m, const struct sh_fig_maps *d, int i)
{
    sh_gp_matrix32(gp, "score", i, down(m), across(m), m->score);
    sh_gp_matrix32(gp, "significant", i, down(m), across(m), m->above);
    size_t n = (size_t)n_marked(m, d), wide = (size_t)across(m);
    float *rows = xmalloc((n + 1) * wide * sizeof *rows);
    if (n)
        memcpy(rows, m->single, n * wide * sizeof *rows);
    if (n == 1)             /* gnuplot cannot draw an image of one row: the second is out of view */
        memcpy(rows + wide, rows, wide * sizeof *rows);
    if (n)
        sh_gp_matrix32(gp, "rows", i, n == 1 ? 2 : (int)n, across(m), rows);
    free(rows);
}

static void token_tics(struct sh_gp *gp, char axis, const char *const *label, int n)
{
    fprintf(gp->to, "set %ctics ", axis);
    for (int i = 0; i < n; i++)
        sh_gp_tic_at(gp, i, label[i], 10);
    fprintf(gp->to, ") font ',%g'%s\n", gp->format ? 6.0 : 8.0, axis == 'x' ? " rotate by 90 right" : "");
}

static void axes(struct sh_gp *gp, const struct sh_fig_map *m)
{
    int by_x = sh_gp_step(m->n_cols, 8), by_y = sh_gp_step(m->n_rows, 8), tokens = has_tokens(m);
    fprintf(gp->to, "set xtics %d norotate font ','\nset ytics %d font ','\n", by_x, by_y);
    if (tokens && m->col_label)
        token_tics(gp, 'x', m->col_label, m->n_cols);
    if (tokens && m->row_label)
        token_tics(gp, 'y', m->row_label, m->n_rows);
    fprintf(gp->to, "set xlabel '%s'\nset ylabel '%s'\n"
            "set xrange [-0.5:%d-0.5]\nset yrange [%d-0.5:-0.5]\n", tokens && m->col_label ? "" : "key position",
            tokens && m->row_label ? "" : "query position", m->n_cols, m->n_rows);
}

/* Lines across the map at the marked rows, named at the right edge where there is room. */
static void marks(struct sh_gp *gp, const struct sh_fig_map *m, const struct sh_fig_maps *d, int named)
{
    double named_at = -1e9;
    for (int k = 0; k < d->n_marks; k++) {
        int pos = d->marks[k];
        if (!is_marked(m, pos))
            continue;
        fprintf(gp->to,
                "set arrow %d from graph 0, first %d to graph 1, first %d nohead front ls 2 lw 0.8\n", k + 1, pos, pos);
        if (named && fabs(pos - named_at) >= 0.05 * m->n_rows) {
            fprintf(gp->to, "set label %d '%d' at graph 1.02, first %d left front tc ls 2\n", k + 1, pos, pos);
            named_at = pos;
        }
    }
}

static void title(struct sh_gp *gp, const struct sh_fig_map *m, const char *what, double side)
{
    fputs("set title ", gp->to);
    sh_gp_text(gp, m->title, sh_gp_letters(side));
    fprintf(gp->to, ".': %s", what);
    if (m->by_row > 1 || m->by_col > 1)
        fprintf(gp->to, ", %d × %d pooled", m->by_row, m->by_col);
    fputs("'\n", gp->to);
}

/* A cell's middle in positions. */
static double middle(int by)
{
    return 0.5 * (by - 1);
}

static void picture(struct sh_gp *gp, const struct sh_fig_map *m, const char *block, int i, const char *colour)
{
    fprintf(gp->to, "plot $%s%d matrix using (%d * $1 + %.1f):(%d * $2 + %.1f):(%s) with image%s\n"
            "unset label\nunset arrow\n", block, i, m->by_col, middle(m->by_col), m->by_row, middle(m->by_row), colour,
            m->n_rows <= 128 && m->n_cols <= 128 ? " pixels" : "");
}

static void strips(struct sh_gp *gp, const struct sh_fig_map *m, const struct sh_fig_maps *d, int i, int most_tics)
{
    int n = 0;
    fputs("set title ''\nset ytics (", gp->to);
    for (int k = 0; k < d->n_marks; k++)
        if (is_marked(m, d->marks[k])) {
            fprintf(gp->to, "%s'query %d' %d", n ? ", " : "", d->marks[k], n);
            n++;
        }
    fprintf(gp->to, ") font ','\nset xtics %d norotate font ','\nset xlabel 'key position'\nset ylabel ''\n"
            "set yrange [%d-0.5:-0.5]\nunset colorbox\n"
            "plot $rows%d matrix using (%d * $1 + %.1f):2:(at_least($3)) with image pixels\n"
            "set colorbox\n", sh_gp_step(m->n_cols, most_tics), n, i, m->by_col, middle(m->by_col));
}

static void score_colours(struct sh_gp *gp)
{
    sh_gp_viridis(gp);
    fputs("set logscale cb\nset cbrange [low:1]\nset cbtics auto\nset colorbox\n", gp->to);
}

/* The lowest score that the colours tell apart: the power of ten below a tenth of the average. */
static double lowest(const struct sh_fig_map *m)
{
    double low = pow(10, floor(log10(0.1 / m->most_keys)));
    return low < 1e-6 ? 1e-6 : low;
}

static double axes_in(const struct sh_fig_map *m)
{
    return has_tokens(m) ? 1.25 : 1.05;
}

static void map(struct sh_gp *gp, const struct sh_fig_maps *d, int i, double top, const struct layout *l)
{
    const struct sh_fig_map *m = &d->map[i];
    axes(gp, m);
    fprintf(gp->to, "low = %.3g\n", lowest(m));
    score_colours(gp);
    title(gp, m, "attention score", l->side);
    marks(gp, m, d, 0);
    sh_gp_box(gp, LEFT, top, l->side, l->side);
    picture(gp, m, "score", i, "at_least($3)");
    fputs("unset logscale cb\nset palette defined (0 '#e4e8ec', 1 '#0b3c6f')\nset cbrange [0:1]\n"
          "unset colorbox\n", gp->to);
    title(gp, m, "above its row’s average", l->side - 0.5);
    marks(gp, m, d, 1);
    top += l->across > 1 ? 0 : l->side + axes_in(m);
    sh_gp_box(gp, l->across > 1 ? LEFT + l->side + BETWEEN : LEFT, top, l->side, l->side);
    picture(gp, m, "significant", i, "$3");
    if (n_marked(m, d) == 0)
        return;
    score_colours(gp);
    sh_gp_box(gp, LEFT, top + l->side + axes_in(m) - 0.35, l->page - LEFT - (l->across > 1 ? RIGHT : COLOURS),
              STRIP * n_marked(m, d));
    strips(gp, m, d, i, 8 * l->across);
}

/* The height of one map with its axes and strips. */
static double height(const struct sh_fig_map *m, const struct sh_fig_maps *d, const struct layout *l)
{
    int n = n_marked(m, d);
    return (l->side + axes_in(m)) * (l->across > 1 ? 1 : 2) + (n ? STRIP * n + 0.75 : 0);
}

static struct layout lay_out(const struct sh_gp *gp)
{
    struct layout l = {.across = sh_gp_columns(gp, LEFT + SIDE + COLOURS, 2)};
    double margins = l.across > 1 ? LEFT + BETWEEN + RIGHT : LEFT + COLOURS;
    l.page = sh_gp_room(gp, margins + SIDE * l.across);
    l.side = (l.page - margins) / l.across;
    return l;
}

static int draw(struct sh_gp *gp, const struct sh_fig_data *data, struct sh_err *e)
{
    const struct sh_fig_maps *d = data->heatmap;
    double total = 0.75, top = SH_GP_TOP;
    struct layout l = lay_out(gp);
    if (d->n_marks < 0 || d->n_marks > 8)
        return sh_misused(e, "figure heatmap shows 0 to 8 single rows, found %d", d->n_marks);
    for (int i = 0; i < d->n; i++) {
        if (d->map[i].n_rows < 2 || d->map[i].n_cols < 2)
            return sh_misused(e, "figure heatmap needs at least 2 rows and 2 columns of scores, found %d x %d",
                d->map[i].n_rows, d->map[i].n_cols);
        total += height(&d->map[i], d, &l);
    }
    sh_gp_page(gp, l.page, total, data->title, data->settings);
    for (int i = 0; i < d->n; i++)
        blocks(gp, &d->map[i], d, i);
    fputs("at_least(v) = v == v ? (v < low ? low : v) : NaN\n"
          "set border 15 ls 21\nunset grid\nset multiplot\n", gp->to);
    sh_gp_heading(gp);
    for (int i = 0; i < d->n; i++) {
        map(gp, d, i, top, &l);
        top += height(&d->map[i], d, &l);
    }
    fputs("unset multiplot\n", gp->to);
    return 0;
}

static void caption(FILE *to, const struct sh_fig_data *data)
{
    const struct sh_fig_maps *d = data->heatmap;
    int n = 0;
    for (int i = 0; i < d->n; i++)
        n += n_marked(&d->map[i], d);
    fprintf(to, "attention scores, and which of them are above their row's average%s",
            n ? "; below, single rows as strips" : "");
}

const struct sh_figure sh_figure_heatmap = {
    .number = SH_FIG_heatmap, .name = "heatmap",
    .summary = "attention scores of chosen heads, which of them are above average, and chosen rows as strips",
    .most = 5, .parts = "score maps", .draw = draw, .caption = caption};
