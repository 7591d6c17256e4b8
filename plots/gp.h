/* SPDX-License-Identifier: Apache-2.0 */
/* A gnuplot script being written, and what becomes of it. A figure writes plain gnuplot commands to
 * gp->to; strings and numbers that come from elsewhere go through sh_gp_text, sh_gp_tic and
 * sh_gp_real, so that gnuplot never interprets them. The script keeps to gnuplot 5.2.
 *
 *     struct sh_gp gp;
 *     if (sh_gp_open(&gp, "heads.svg", 0, 0, 0, &e)) return -1;
 *     if (draw(&gp, data, &e)) { sh_gp_abandon(&gp); return -1; }
 *     return sh_gp_close(&gp, &e);
 *
 * The target is written under a temporary name next to it and renamed when it is whole: it is never
 * half there, and what was there before stays until then. */
#ifndef PLOTS_GP_H
#define PLOTS_GP_H

#include <stdio.h>

#include "src/base/file.h"

#define SH_GP_COLOURS 7     /* line styles 1..7 and 11..17, see sh_gp_page */
#define SH_GP_TOP 1.05      /* inches from the page's top to the first panels, below the heading */
#define SH_GP_KEY 0.2       /* inches, a line of a legend */

enum { SH_GP_DRAW, SH_GP_SCRIPT, SH_GP_DATA };      /* `script` of sh_gp_open                 */

struct sh_gp {
    FILE *to;                       /* the script; figures only ever write            */
    double width_in, height_in;     /* the page as it will be; 0: as the figure likes */
    double own_width_in, own_height_in;     /* the page as the figure laid it out     */
    double down_in;                 /* what a heading of several lines moves the rest */
    const char *title, *settings;   /* the heading                                    */
    /* the rest is gp.c's own */
    int script, format, fd;
    struct sh_file *file;           /* the target; NULL: a figure as a text            */
    char *path, *program, *text;
    size_t text_bytes;
};

/* `path` ends in .svg, .png or .pdf (misuse otherwise) and its folder can be written to, or nothing is begun. With
 * `script` the script itself goes to `path`, whatever its extension, and will draw into sh_gp_figure_path(path); with
 * SH_GP_DATA its data alone, tabs between the columns. Sizes in inches; 0: what the figure likes best. path
 * NULL: SVG for sh_gp_close_text. No gnuplot on PATH and no `script`: SH_ABSENT. */
int sh_gp_open(struct sh_gp *gp, const char *path, int script, double width_in, double height_in, struct sh_err *e);

/* Runs gnuplot (or writes the script) and puts the result in place; on failure nothing is left
 * behind. Either this or sh_gp_abandon ends what sh_gp_open began. */
int sh_gp_close(struct sh_gp *gp, struct sh_err *e);
void sh_gp_abandon(struct sh_gp *gp);

/* The same for a path of NULL: the figure as a text, for free(). */
int sh_gp_close_text(struct sh_gp *gp, char **text, struct sh_err *e);

/* Where a script at `path` draws; to be freed. fig.gp -> fig.svg, fig.pdf.gp -> fig.pdf; the script
 * is never overwritten by its own figure: fig.png -> fig.png.png. */
char *sh_gp_figure_path(const char *path);

/* How many columns of panels of `column_in` inches a figure lays out, of `most`: as many as the width that sh_gp_open
 * was told leaves legible, one at least. Without such a width all of them. */
int sh_gp_columns(const struct sh_gp *gp, double column_in, int most);

/* How wide a page to lay out that would like to be `width_in`: narrower where sh_gp_open was told a width on which
 * letters would become too small to read, so that panels shrink and letters do not. */
double sh_gp_room(const struct sh_gp *gp, double width_in);

/* How many letters of text stand on so many inches, the page's own. */
int sh_gp_letters(double inches);

/* Begins the page: terminal, size (that of sh_gp_open if it was told one; a height of its own follows the width; fonts
 * and lines follow, too, but letters stay legible), fonts, line styles 1..7 (solid, a colour-blind-safe order), 11..17
 * (the same, dashed), 20 (grid), 21 (axes), and the palette. The heading (what, and under which settings, or NULL) is
 * kept by the caller; `height_in` counts one line of each, and the page grows and everything moves down for more. */
void sh_gp_page(struct sh_gp *gp, double width_in, double height_in, const char *title, const char *settings);

/* The y axis from low to high (above 0) and a little more, logarithmic: 1, 2 and 5 of every decade as its numbers, of
 * many decades 1 alone, of less than one some in between. */
void sh_gp_log_axis(struct sh_gp *gp, double low, double high);

/* The style of a line: a colour from 0, dash 0 solid, 1 dashed, more: dotted. Begins with a blank. */
void sh_gp_line_style(struct sh_gp *gp, int colour, int dash);

/* Entry `number`, from 1, of a legend that is drawn by hand: gnuplot's own would change the panel's size with the names
 * in it. A piece of the line and at most so many letters of its name, from that point of the page on. */
struct sh_gp_key { const char *label; int letters, colour, dash; };
void sh_gp_key(struct sh_gp *gp, int number, double left, double top, const struct sh_gp_key *key);

/* Axes of a panel without values, which gnuplot could not scale. */
void sh_gp_no_values(struct sh_gp *gp);

/* The palette of amounts, set by sh_gp_page; for going back to it after another. */
void sh_gp_viridis(struct sh_gp *gp);

/* The heading at the top left (drawn with the next plot). */
void sh_gp_heading(struct sh_gp *gp);

/* The next plot fills this box: inches from the page's left and top edges as the figure chose them
 * in sh_gp_page (scaled if the page has another size). */
void sh_gp_box(struct sh_gp *gp, double left, double top, double width, double height);

/* A point on the page for `set label … at`, in the inches of sh_gp_box. */
void sh_gp_at(struct sh_gp *gp, double left, double top);

/* Foreign text as a single-quoted gnuplot string of at most `max_chars` characters ("…" marks the
 * cut). Control characters and bad UTF-8 are made visible. _tic: for `set xtics ('text' 1)`, where
 * gnuplot also reads % as a format. */
void sh_gp_text(struct sh_gp *gp, const char *text, int max_chars);
void sh_gp_tic(struct sh_gp *gp, const char *text, int max_chars);

/* "set title 'text'", and so on; ends the line. */
void sh_gp_set(struct sh_gp *gp, const char *what, const char *text, int max_chars);

/* The next of a list of tics, '(' before the first: its text at position i, from 0. */
void sh_gp_tic_at(struct sh_gp *gp, int i, const char *text, int max_chars);

/* The shortest digits that read back as the same number; NaN for anything not finite. _row: a line of them. */
void sh_gp_real(struct sh_gp *gp, double value);
void sh_gp_row(struct sh_gp *gp, const double *value, int n);

/* A logarithmic colour scale up to `high`, with tics that suit one decade as well as five. */
void sh_gp_log_tics(struct sh_gp *gp, double high);

/* The smallest of 1, 2, 5, 10, 20, … that cuts `n` whole numbers into at most `most` tics. */
int sh_gp_step(int n, int most);

/* The data block of that name and number, n_rows lines of n_cols numbers: for `plot $name0 matrix`. */
void sh_gp_matrix(struct sh_gp *gp, const char *name, int number, int n_rows, int n_cols, const double *value);
void sh_gp_matrix32(struct sh_gp *gp, const char *name, int number, int n_rows, int n_cols, const float *value);

#endif
