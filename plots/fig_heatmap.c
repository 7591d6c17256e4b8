/* SPDX-License-Identifier: Apache-2.0 */
/* Attention maps: left the scores, right which of them are above their row's average, and below
 * both the rows that were asked for, one strip each. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/figure.h"
#include "src/base/mem.h"

#define MOST_TOKENS 48          /* up to here token texts stand at the axes */
#define SIDE 3.4                /* inches, a map without its margins, where there is room */
#define COLOURS 0.85            /* after one: its colour box                */
#define STRIP 0.2
#define SCALE 0.52              /* or below it, on a narrow page            */
#define BELOW 0.52              /* a map: its axis, or texts of tokens          */

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

static void axes(struct sh_gp *gp, const struct sh_fig_map *m, double side, int is_left)
{
    int most = 1 + (int)(2.2 * side), by_x = sh_gp_step(m->n_cols, most), by_y = sh_gp_step(m->n_rows, most),
        tokens = has_tokens(m) && side > 1.5 && 0.085 * m->n_rows <= side && 0.085 * m->n_cols <= side;
    fprintf(gp->to, "set xtics %d norotate font ','\nset ytics %d font ','\n", by_x, by_y);
    if (tokens && m->col_label)
        token_tics(gp, 'x', m->col_label, m->n_cols);
    if (tokens && m->row_label)
        token_tics(gp, 'y', m->row_label, m->n_rows);
    fprintf(gp->to, "set xlabel '%s'\nset ylabel '%s'\n"
            "set xrange [-0.5:%d-0.5]\nset yrange [%d-0.5:-0.5]\n", tokens && m->col_label ? "" : "key position",
            (tokens && m->row_label) || !is_left ? "" : "query position", m->n_cols, m->n_rows);
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

static const char *what_is(const struct sh_fig_map *m, int is_score, char text[120])
{
    snprintf(text, 120, m->by_row > 1 || m->by_col > 1 ? "%s, %d × %d pooled" : "%s",
             is_score ? "score" : "above row’s average", m->by_row, m->by_col);
    return text;
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
            fprintf(gp->to, "%s'%d' %d", n ? ", " : "", d->marks[k], n);
            n++;
        }
    fprintf(gp->to, ") font ','\nset xtics %d norotate font ','\nset xlabel 'key position'\nset ylabel 'query'\n"
            "set yrange [%d-0.5:-0.5]\nunset colorbox\n"
            "plot $rows%d matrix using (%d * $1 + %.1f):2:(at_least($3)) with image%s\n"
            "set colorbox\n", sh_gp_step(m->n_cols, most_tics), n, i, m->by_col, middle(m->by_col),
            across(m) <= 128 ? " pixels" : "");
}

static void score_colours(struct sh_gp *gp)
{
    sh_gp_viridis(gp);
    fputs("set logscale cb\nset cbrange [low:1]\nset cbtics auto\n", gp->to);
}

/* The lowest score that the colours tell apart: the power of ten below a tenth of the average. */
static double lowest(const struct sh_fig_map *m)
{
    double low = pow(10, floor(log10(0.1 / m->most_keys)));
    return low < 1e-6 ? 1e-6 : low;
}

/* The scale right of the map, or below it where the page is narrow. */
static void scale(struct sh_gp *gp, const struct sh_gp_grid *g, int i, double side, double low)
{
    if (g->right == COLOURS) {
        fputs("set colorbox\n", gp->to);
        return;
    }
    sh_gp_powers(gp, "cbtics", (int)round(-log10(low)), side < 1.2 ? 2 : 4);
    sh_gp_scale_below(gp, g, i, side + BELOW + 0.14, side);
}

/* The strips below a map, across the one next to it where that is of the same head. */
static void map(struct sh_gp *gp, const struct sh_fig_maps *d, const struct sh_gp_grid *g, int i)
{
    const struct sh_fig_map *m = &d->map[g->at[i] / 2];
    int n = n_marked(m, d), is_score = g->at[i] % 2 == 0,
        across = is_score && i + 1 < g->n && g->at[i + 1] == g->at[i] + 1 && !sh_gp_is_left(g, i + 1) ? 2 : 1;
    double side = fmin(g->wide, g->tall);
    char text[120];
    axes(gp, m, side, g->right == COLOURS || sh_gp_is_left(g, i));
    fprintf(gp->to, "low = %.3g\n", lowest(m));
    if (is_score)
        score_colours(gp), scale(gp, g, i, side, lowest(m));
    else
        fputs("unset logscale cb\nset palette defined (0 '#e4e8ec', 1 '#0b3c6f')\nset cbrange [0:1]\n"
              "unset colorbox\n", gp->to);
    sh_gp_panel_title(gp, g, m->title, what_is(m, is_score, text));
    marks(gp, m, d, !is_score);
    sh_gp_cell_part(gp, g, i, 0, side, side);
    picture(gp, m, is_score ? "score" : "significant", g->at[i] / 2, is_score ? "at_least($3)" : "$3");
    if (!n || !is_score)
        return;
    sh_gp_cell_part(gp, g, i, g->tall + BELOW + 0.1 + (g->right == COLOURS ? 0 : SCALE),
                    across * (g->wide + g->left + g->right) - g->left - g->right,
                    STRIP * n);
    strips(gp, m, d, g->at[i] / 2, (int)(2.4 * across * g->wide));
}

static int draw(struct sh_gp *gp, const struct sh_fig_data *data, struct sh_err *e)
{
    const struct sh_fig_maps *d = data->heatmap;
    int n_strips = 0, tokens = 0, is_narrow = sh_gp_room(gp, 9) < SH_GP_NARROW;
    if (d->n_marks < 0 || d->n_marks > 8)
        return sh_misused(e, "figure heatmap shows 0 to 8 individual rows, found %d", d->n_marks);
    for (int i = 0; i < d->n; i++) {
        if (d->map[i].n_rows < 2 || d->map[i].n_cols < 2)
            return sh_misused(e, "figure heatmap needs at least 2 rows and 2 columns of scores, found %d x %d",
                d->map[i].n_rows, d->map[i].n_cols);
        n_strips = n_marked(&d->map[i], d) > n_strips ? n_marked(&d->map[i], d) : n_strips;
        tokens |= has_tokens(&d->map[i]);
    }
    struct sh_gp_grid g = {.wide = SIDE, .tall = SIDE, .is_square = 1, .least = 0.75,
                           .left = is_narrow ? 0.45 : tokens ? 0.85 : 0.6, .right = is_narrow ? 0.25 : COLOURS,
                           .first = is_narrow ? 0.2 : 0, .most = 2,
                           .below = BELOW + (is_narrow ? SCALE : 0) + (n_strips ? STRIP * n_strips + 0.68 : 0)};
    char text[120];
    for (int i = 0; i < 2 * d->n; i++)
        sh_gp_titled(&g, d->map[i / 2].title, what_is(&d->map[i / 2], i % 2 == 0, text));
    sh_gp_lay_out(gp, &g, 2 * d->n);
    for (int i = 0; i < d->n; i++)
        blocks(gp, &d->map[i], d, i);
    fputs("at_least(v) = v == v ? (v < low ? low : v) : NaN\n"
          "set border 15 ls 21\nunset grid\n", gp->to);
    sh_gp_begin_panels(gp, &g);
    for (int i = 0; i < g.n; i++)
        map(gp, d, &g, i);
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
            n ? "; below, individual rows as strips" : "");
}

const struct sh_figure sh_figure_heatmap = {
    .number = SH_FIG_heatmap, .name = "heatmap",
    .summary = "attention scores of chosen heads, which scores are above average, and chosen rows as strips",
    .most = 5, .parts = "score maps", .draw = draw, .caption = caption};
