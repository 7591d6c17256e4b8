/* SPDX-License-Identifier: Apache-2.0 */
/* See gp.h: panels in a grid on a page of some width and height, and the legend below them. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plots/gp.h"

#define SIDE 0.2                /* inches at the page's edges */
#define HEAD 0.68               /* the heading: one line, and one of settings */
#define KEY_MARK 0.36           /* of a legend: the piece of line, and around it */
#define KEY_GAP 0.25
#define KEY_STEP 0.155
#define NARROW 0.9              /* a panel no narrower, where a page would be too tall */

void sh_gp_entry(struct sh_gp_grid *g, const char *label, int kind, const char *style, ...)
{
    struct sh_gp_key new = {.label = label, .kind = kind};
    va_list list;
    va_start(list, style);
    vsnprintf(new.style, sizeof new.style, style, list);
    va_end(list);
    for (int i = 0; i < g->n_keys; i++)
        if (!strcmp(g->key[i].label, label) && !strcmp(g->key[i].style, new.style) && g->key[i].kind == kind)
            return;
    if (g->n_keys < SH_GP_KEYS)
        g->key[g->n_keys++] = new;
}

/* The panels that were asked for. */
static void pick(struct sh_gp *gp, struct sh_gp_grid *g, int n)
{
    unsigned wanted = gp->look.panels;
    for (int i = 0; i < n && i < SH_GP_PANELS; i++)
        if (!wanted || wanted & 1u << i)
            g->at[g->n++] = i;
    if (n < SH_GP_PANELS && wanted >> n)
        snprintf(gp->problem, sizeof gp->problem, "has %d panel%s here, but --panels names a higher number", n,
                 n == 1 ? "" : "s");
    g->n = g->n ? g->n : (g->at[0] = 0, 1);
}

/* Where the next entry of a legend stands that is filled line by line in steps, so that columns may form: *at goes on
 * from the last one's end. Its left edge; *row. */
static double next_key(const struct sh_gp_grid *g, const struct sh_gp_key *k, double *at, int *row)
{
    double room = g->page_in - 2 * SIDE, step = room / floor(fmax(1, room / KEY_STEP)),
           wide = fmin(room, step * ceil((KEY_MARK + KEY_GAP + sh_gp_text_in(k->label)) / step - 1e-9));
    if (*at + wide > room + KEY_GAP) {
        *at = 0;
        ++*row;
    }
    double left = *at;
    *at += wide;
    return left;
}

static double keys_in(const struct sh_gp_grid *g)
{
    double at = 0;
    int row = 0;
    for (int i = 0; i < g->n_keys; i++)
        next_key(g, &g->key[i], &at, &row);
    return g->n_keys ? SH_GP_KEY * (row + 1) + 0.1 : 0;
}

static double around(const struct sh_gp_grid *g)
{
    return g->left + g->right;
}

/* A title is centred above its panel and may reach over its margins. */
static int title_letters(const struct sh_gp_grid *g)
{
    return sh_gp_letters(g->wide + 1.6 * fmin(g->left, g->right + 0.25));
}

/* Lines break at blanks, and are not full. */
static int title_lines(const struct sh_gp_grid *g)
{
    int letters = title_letters(g), rest = g->title - letters;
    return !g->title ? 0 : rest <= 0 ? 1 : rest <= 0.85 * letters ? 2 : 3;
}

void sh_gp_lay_out(struct sh_gp *gp, struct sh_gp_grid *g, int n)
{
    pick(gp, g, n);
    g->most = g->most < g->n ? g->most : g->n;
    g->columns = sh_gp_columns(gp, g->wide + around(g), g->most);
    double rest, foot, wide = g->wide, natural = g->tall;
    for (int first = g->columns;; g->columns++) {
        int rows = (g->n + g->columns - 1) / g->columns;
        g->page_in = sh_gp_room(gp, 2 * SIDE + g->first + (wide + around(g)) * g->columns);
        g->wide = (g->page_in - 2 * SIDE - g->first) / g->columns - around(g);
        g->lines = title_lines(g);
        g->above = g->lines ? (rows > 1 ? 0.24 : 0.13) + 0.17 * g->lines : 0.08;
        foot = keys_in(g) + 0.08;
        rest = HEAD + (g->above + g->below) * rows + g->last + foot;
        gp->problem[0] = n < SH_GP_PANELS && gp->look.panels >> n ? gp->problem[0] : '\0';
        g->tall = sh_gp_fit(gp, g->page_in, rest, rows, g->is_square ? g->wide : natural,
                            g->least);
        int can_grow = g->columns < g->most &&
                       (g->page_in - 2 * SIDE - g->first) / (g->columns + 1) - around(g) >= NARROW;
        double enough = fmin(natural, g->wide / (g->is_square ? 1.0 : 1.6));
        if (gp->look.scrolls || !can_grow || (g->tall >= enough && !gp->problem[0])) {
            if (gp->problem[0] && gp->width_in > 0 && gp->width_in <= SH_GP_COLUMN && gp->settings) {
                gp->settings = NULL;        /* a column's caption tells them */
                g->columns = first - 1;
                continue;
            }
            g->keys_at = rest - foot + g->tall * rows + 0.06;
            break;
        }
    }
    if (g->wide < 0.7 * NARROW)         /* a larger height would not help */
        snprintf(gp->problem, sizeof gp->problem, "has no room for its panels at a width of %.1f inches: expected a "
                 "larger --width, or fewer --panels", gp->width_in);
    sh_gp_page(gp, g->page_in, g->keys_at - 0.06 + foot);
}

static void key(struct sh_gp *gp, const struct sh_gp_key *k, int number, double left, double top, int letters)
{
    double middle = left + 0.15;
    fprintf(gp->to, k->kind == SH_GP_BAND ? "set object %d rectangle from " : k->kind == SH_GP_LINE ?
            "set arrow %d from " : "set label %d '' at ", 200 + number);
    if (k->kind == SH_GP_MARK) {
        sh_gp_at(gp, middle, top);
        fprintf(gp->to, " point%s\n", k->style);
    } else {
        sh_gp_at(gp, left, top + (k->kind == SH_GP_BAND ? 0.06 : 0));
        fputs(" to ", gp->to);
        sh_gp_at(gp, left + 0.3, top - (k->kind == SH_GP_BAND ? 0.06 : 0));
        fprintf(gp->to, "%s%s\n", k->kind == SH_GP_LINE ? " nohead" : " front", k->style);
    }
    fprintf(gp->to, "set label %d ", number);
    sh_gp_text(gp, k->label, letters);
    fputs(" at ", gp->to);
    sh_gp_at(gp, left + KEY_MARK, top);
    fputs(" left\n", gp->to);
}

void sh_gp_begin_panels(struct sh_gp *gp, const struct sh_gp_grid *g)
{
    fputs("set multiplot\n", gp->to);
    sh_gp_heading(gp);
    double at = 0;
    for (int i = 0, row = 0; i < g->n_keys; i++) {
        double left = next_key(g, &g->key[i], &at, &row);
        double room = g->page_in - 2 * SIDE - left - KEY_MARK;
        key(gp, &g->key[i], i + 1, SIDE + left, g->keys_at + SH_GP_KEY * (0.5 + row),
            sh_gp_text_in(g->key[i].label) <= room + 0.01 ? 400 : sh_gp_letters(room));
    }
}

static double cell_left(const struct sh_gp_grid *g, int i)
{
    return SIDE + g->first + g->left + (g->wide + around(g)) * (i % g->columns);
}

static double cell_top(const struct sh_gp_grid *g, int i)
{
    return HEAD + g->above + (g->tall + g->above + g->below) * (i / g->columns);
}

void sh_gp_cell_part(struct sh_gp *gp, const struct sh_gp_grid *g, int i, double down, double wide, double tall)
{
    sh_gp_box(gp, cell_left(g, i), cell_top(g, i) + down, wide, tall);
}

void sh_gp_cell_at(struct sh_gp *gp, const struct sh_gp_grid *g, int i, double right, double down)
{
    sh_gp_at(gp, cell_left(g, i) + right, cell_top(g, i) + down);
}

void sh_gp_cell(struct sh_gp *gp, const struct sh_gp_grid *g, int i)
{
    sh_gp_cell_part(gp, g, i, 0, g->wide, g->tall);
}

void sh_gp_scale_below(struct sh_gp *gp, const struct sh_gp_grid *g, int i, double down, double wide)
{
    fputs("set colorbox horizontal user origin ", gp->to);
    sh_gp_cell_at(gp, g, i, 0, down);
    fprintf(gp->to, " size screen %.5f, screen %.5f\n", wide / gp->own_width_in, 0.09 / gp->own_height_in);
}

int sh_gp_is_last(const struct sh_gp_grid *g, int i)
{
    return i + g->columns >= g->n;
}

int sh_gp_is_left(const struct sh_gp_grid *g, int i)
{
    return i % g->columns == 0;
}

/* The bytes of a label that has no room: what stands before its last remark that makes it fit. */
static size_t without_remarks(const char *text, double inches)
{
    static const char *const remark[] = {": ", ", ", " (", " of the ", " since ", " above "};
    char part[120];
    size_t all = strlen(text), least = all;
    if (sh_gp_text_in(text) <= inches || all >= sizeof part)
        return all;
    for (size_t n = all - 1; n > 0; n--)
        for (size_t i = 0; i < sizeof remark / sizeof *remark; i++)
            if (!strncmp(text + n, remark[i], strlen(remark[i])) && !strchr(":,", text[n - 1])) {
                snprintf(part, sizeof part, "%.*s", (int)n, text);
                least = n;
                if (sh_gp_text_in(part) <= inches)
                    return n;
            }
    return least;
}

void sh_gp_axis_label(struct sh_gp *gp, const char *axis, const char *text, double inches, int is_there)
{
    char part[400];
    snprintf(part, sizeof part, "%.*s", is_there ? (int)without_remarks(text, inches) : 0, text);
    sh_gp_set(gp, axis, part, sh_gp_letters(inches * 1.1));
}

void sh_gp_titled(struct sh_gp_grid *g, const char *text, const char *more)
{
    int letters = (int)(strlen(text) + (more ? strlen(more) + 2 : 0));
    g->title = letters > g->title ? letters : g->title;
}

void sh_gp_panel_title(struct sh_gp *gp, const struct sh_gp_grid *g, const char *text, const char *more)
{
    char all[400];
    int letters = title_letters(g);
    snprintf(all, sizeof all, "%s%s%s", text, more ? ": " : "", more ? more : "");
    fputs("set title ", gp->to);
    const char *at = all;
    for (int i = 1; i < g->lines && at[sh_gp_line_bytes(at, letters)]; i++) {
        char line[400];
        size_t bytes = sh_gp_line_bytes(at, letters);
        snprintf(line, sizeof line, "%.*s", (int)bytes, at);
        sh_gp_text(gp, line, letters);
        fputs(gp->format == SH_GP_TEX ? ".'\\\\'." : ".\"\\n\".", gp->to);
        at += bytes + (at[bytes] == ' ');
    }
    sh_gp_text(gp, at, letters);
    putc('\n', gp->to);
}
