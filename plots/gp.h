/* SPDX-License-Identifier: Apache-2.0 */
/* A gnuplot script being written, and what becomes of it. A figure writes plain gnuplot commands to
 * gp->to; strings and numbers that come from elsewhere go through sh_gp_text, sh_gp_tic and
 * sh_gp_real, so that gnuplot never interprets them. The script keeps to gnuplot 5.2.
 *
 *     struct sh_gp gp;
 *     if (sh_gp_open(&gp, "heads.svg", 0, NULL, &e)) return -1;
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
#define SH_GP_KEY 0.2       /* inches, a line of a legend */

#define SH_GP_NARROW 6.0    /* inches: a page below has its colour scales, and names of bars, above or below panels */
#define SH_GP_COLUMN 4.0    /* inches: a page no wider is a column of a paper, and no taller unless asked */

enum { SH_GP_DRAW, SH_GP_SCRIPT, SH_GP_DATA };      /* `script` of sh_gp_open                 */
enum { SH_GP_SVG, SH_GP_PNG, SH_GP_PDF, SH_GP_EPS, SH_GP_TEX, SH_GP_FORMATS };
#define SH_GP_NAMES ".svg, .png, .pdf, .eps or .tex"

/* How a page should look. All zero: as the figure likes. */
struct sh_gp_look {
    double width_in, height_in;     /* size of the page                               */
    double font_size;               /* points; 0: the width says                      */
    int dpi;                        /* resolution of a PNG; 0: 200                    */
    int no_title;                   /* neither heading nor settings                   */
    int scrolls;                    /* narrow but not in print: as tall as it likes   */
    unsigned panels;                /* bit i: panel i is drawn; 0: all                */
    const char *font, *title;       /* NULL: sans-serif, the figure's own             */
};

struct sh_gp {
    FILE *to;                       /* the script; figures only ever write            */
    struct sh_gp_look look;
    double width_in, height_in;     /* the page as it will be; 0: as the figure likes */
    double own_width_in, own_height_in;     /* the page as the figure laid it out     */
    double down_in;                 /* what the heading moves the rest: below 0 where it is shorter */
    const char *title, *settings;   /* the heading, set before the page               */
    char problem[240];              /* why the figure cannot be as asked; reported after drawing */
    /* the rest is gp.c's own */
    int script, format, fd;
    struct sh_file *file;           /* the target; NULL: a figure as a text            */
    char *path, *program, *text;
    size_t text_bytes;
};

/* `path` ends in one of SH_GP_NAMES (misuse otherwise) and its folder can be written to, or nothing is begun. With
 * `script` the script itself goes to `path`, whatever its extension, and will draw into sh_gp_figure_path(path); with
 * SH_GP_DATA its data alone, tabs between the columns. `look` is copied, its strings are not; NULL: as the figure
 * likes. path NULL: SVG for sh_gp_close_text. No gnuplot on PATH and no `script`: SH_ABSENT. */
int sh_gp_open(struct sh_gp *gp, const char *path, int script, const struct sh_gp_look *look, struct sh_err *e);

/* Runs gnuplot (or writes the script) and puts the result in place; on failure nothing is left
 * behind. Either this or sh_gp_abandon ends what sh_gp_open began. */
int sh_gp_close(struct sh_gp *gp, struct sh_err *e);
void sh_gp_abandon(struct sh_gp *gp);

/* The same for a path of NULL: the figure as a text, for free(). */
int sh_gp_close_text(struct sh_gp *gp, char **text, struct sh_err *e);

/* Whether the path ends in one of SH_GP_NAMES. */
int sh_gp_is_figure(const char *path);

/* Where a script at `path` draws; to be freed. fig.gp -> fig.svg, fig.pdf.gp -> fig.pdf; the script
 * is never overwritten by its own figure: fig.png -> fig.png.png. */
char *sh_gp_figure_path(const char *path);

/* How many columns of panels of `column_in` inches a figure lays out, of `most`: as many as the width that sh_gp_open
 * was told leaves legible, one at least. Without such a width all of them. */
int sh_gp_columns(const struct sh_gp *gp, double column_in, int most);

/* How wide a page to lay out that would like to be `width_in`: narrower where sh_gp_open was told a width on which
 * letters would become too small to read, so that panels shrink and letters do not. */
double sh_gp_room(const struct sh_gp *gp, double width_in);

/* Bytes of the next line of at most `letters` letters: up to the end of a clause where the rest then fits on one line,
 * else up to the last blank that is not next to a sign such as =, or all. */
size_t sh_gp_line_bytes(const char *text, int letters);

/* Inches, the page's own, that a text of the usual size takes. */
double sh_gp_text_in(const char *text);

/* How many letters of text stand on so many inches, the page's own. */
int sh_gp_letters(double inches);

/* How tall each of n rows of a page is that would like to be `tall`, fixed_in being the rest of the page, with one line
 * of heading and one of settings: no less than `least`. Where the page's height is known, as tall as it gives; where
 * that is less than `least`, a problem. */
double sh_gp_fit(struct sh_gp *gp, double width_in, double fixed_in, int n, double tall, double least);

/* Begins the page: terminal, size (that of sh_gp_open if it was told one; a height of its own follows the width; fonts
 * and lines follow, too, but letters stay legible), fonts, line styles 1..7 (solid, a colour-blind-safe order), 11..17
 * (the same, dashed), 20 (grid), 21 (axes), and the palette. `height_in` counts a heading of one line and one line of
 * settings; the page grows or shrinks, and everything moves, for more or less. */
void sh_gp_page(struct sh_gp *gp, double width_in, double height_in);

/* ---- panels in a grid, with one legend below all of them ---- */

enum { SH_GP_LINE, SH_GP_BAND, SH_GP_MARK };
enum { SH_GP_PANELS = 32, SH_GP_KEYS = 64 };

struct sh_gp_key { const char *label; int kind; char style[64]; };  /* label: not copied; style: of gnuplot */

struct sh_gp_grid {
    double wide, tall;                  /* inches of a panel, as it likes to be      */
    double least;                       /* and how low it may be                     */
    double left, right, below;          /* around each: the numbers of its axes      */
    int title;                          /* letters of the longest title: sh_gp_titled */
    double first;                       /* left of the first column in addition: the label */
    double last;                        /* below the last row in addition: the label */
    int most, is_square;                /* columns; panels no taller than wide        */
    int n_keys;
    struct sh_gp_key key[SH_GP_KEYS];
    /* what sh_gp_lay_out finds; wide, tall: as they are */
    int n, columns, at[SH_GP_PANELS];   /* [n] which panels are drawn, from 0        */
    int lines;                          /* lines of a panel's title                 */
    double page_in, keys_at, above;
};

/* Adds to the legend what is not there; a style as of printf. A label of another kind or style is another entry. */
void sh_gp_entry(struct sh_gp_grid *g, const char *label, int kind, const char *style, ...)
    __attribute__((format(printf, 4, 5)));

/* Lays out those of n panels that were asked for, and begins the page. As many columns as panels are legible in, and
 * more of them where the page would be too tall. */
void sh_gp_lay_out(struct sh_gp *gp, struct sh_gp_grid *g, int n);

/* `set multiplot`, the heading and the legend, which are drawn with the first panel: `unset label; unset arrow; unset
 * object` after it. */
void sh_gp_begin_panels(struct sh_gp *gp, const struct sh_gp_grid *g);

/* The box of the i-th panel that is drawn. */
void sh_gp_cell(struct sh_gp *gp, const struct sh_gp_grid *g, int i);

/* A box of that size at its left edge, so far below its top. */
void sh_gp_cell_part(struct sh_gp *gp, const struct sh_gp_grid *g, int i, double down, double wide, double tall);

/* A point so far right of its left edge and below its top, for `at`. */
void sh_gp_cell_at(struct sh_gp *gp, const struct sh_gp_grid *g, int i, double right, double down);

/* The next plot's colour scale, lying so far below the top of the i-th panel: for pages without room right of it. */
void sh_gp_scale_below(struct sh_gp *gp, const struct sh_gp_grid *g, int i, double down, double wide);

/* Whether no panel is below the i-th, or none left of it: there the axis has its label. */
int sh_gp_is_last(const struct sh_gp_grid *g, int i);
int sh_gp_is_left(const struct sh_gp_grid *g, int i);

/* The title of a panel, in up to three lines where one has no room; `more`, or NULL, after a colon. _titled tells the
 * grid before it is laid out. */
void sh_gp_titled(struct sh_gp_grid *g, const char *text, const char *more);
void sh_gp_panel_title(struct sh_gp *gp, const struct sh_gp_grid *g, const char *text, const char *more);

/* The label of an axis of panels, "xlabel" or "ylabel", or none; remarks at its end ("cache in use (%)") are left out
 * where it has no room for them. */
void sh_gp_axis_label(struct sh_gp *gp, const char *axis, const char *text, double inches, int is_there);

/* The y axis from low to high (above 0) and a little more, logarithmic: 1, 2 and 5 of every decade as its numbers, of
 * many decades 1 alone, of less than one some in between; fewer where there are more than `most`. */
void sh_gp_log_axis(struct sh_gp *gp, double low, double high, int most);

/* A round step of so many numbers at most, and how many a y axis has on so many inches. */
double sh_gp_tic_step(double low, double high, double most);
double sh_gp_y_tics(double inches);

/* Steps of a linear axis, 'x' or 'y', whose numbers have room on so many inches. */
void sh_gp_tics(struct sh_gp *gp, char axis, double low, double high, double inches);

/* The x axis from the least value, or from 0 where that is near, to the largest. */
void sh_gp_x_axis(struct sh_gp *gp, double left, double right, double inches);

/* How many numbers stand one above the other on so many inches. */
int sh_gp_row_tics(double inches);

/* The style of a line: a colour from 0, dash 0 solid, 1 dashed, more: dotted; no more than 64 bytes. */
const char *sh_gp_line_style(char style[64], int colour, int dash);

/* Axes of a panel without values, which gnuplot could not scale. */
void sh_gp_no_values(struct sh_gp *gp);

/* The palette of amounts, set by sh_gp_page; for going back to it after another. */
void sh_gp_viridis(struct sh_gp *gp);

/* ` font …`: the page's letters at a share of their size, for tics. */
void sh_gp_small(struct sh_gp *gp, double share);

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

/* The numbers of a logarithmic scale from 10^-decades to 1: both ends, and evenly between them as many as `most`
 * allows. */
void sh_gp_powers(struct sh_gp *gp, const char *tics, int decades, int most);

/* A logarithmic colour scale up to `high`, with tics that suit one decade as well as five. */
void sh_gp_log_tics(struct sh_gp *gp, double high);

/* The smallest of 1, 2, 5, 10, 20, … that cuts `n` whole numbers into at most `most` tics. */
int sh_gp_step(int n, int most);

/* The data block of that name and number, n_rows lines of n_cols numbers: for `plot $name0 matrix`. */
void sh_gp_matrix(struct sh_gp *gp, const char *name, int number, int n_rows, int n_cols, const double *value);
void sh_gp_matrix32(struct sh_gp *gp, const char *name, int number, int n_rows, int n_cols, const float *value);

#endif
