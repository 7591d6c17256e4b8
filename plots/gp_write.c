/* SPDX-License-Identifier: Apache-2.0 */
/* What figures put into a script, see gp.h: the page and its style, text, numbers. All text is
 * drawn with `noenhanced`, and single quotes keep gnuplot from substituting anything. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/gp.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"

/* Okabe and Ito's colours, told apart by all common kinds of colour blindness and on grey paper. */
static const char *const colours[SH_GP_COLOURS] = {
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"};
static const int points[SH_GP_COLOURS] = {7, 5, 9, 13, 11, 6, 4};

/* viridis: perceptually even, and still ordered in grey. */
static const char *const viridis[] = {"#440154", "#482878", "#3e4a89", "#31688e", "#26828e",
                                      "#1f9e89", "#35b779", "#6dcd59", "#b4de2c", "#fde725"};

/* Inside a single-quoted string. Two quotes would do, were they not misread at a string's start. */
static const char apostrophe[] = "'.\"'\".'";

/* Below this share of their own size letters on paper can no longer be read. */
#define LEAST_LETTERS 0.8
#define POINTS 9.36                     /* their own size: 13 hundredths of an inch */
#define LEAST_COLUMN 0.52               /* a column's width, likewise */
#define LEAST_PAGE 3.0                  /* inches, below which panels have no room next to their labels */
#define LETTERS 12.5                    /* on an inch, of the usual size */
#define TITLE_LETTERS 9.2               /* and of the heading's */

enum { TITLE_LINES = 3, SETTINGS_LINES = 4, HEADING_LABEL = 910 };
#define TITLE_PITCH 0.23
#define SETTINGS_PITCH 0.19

/* Letters and lines against their own size. */
static double zoom(const struct sh_gp *gp)
{
    double z = gp->width_in / gp->own_width_in;
    if (gp->look.font_size > 0)
        return gp->look.font_size / POINTS;
    return z > 0.999 && z < 1.001 ? 1 : fmin(fmax(z, LEAST_LETTERS), 1.5);
}

/* The page in inches on which letters have their own size. */
static double asked(const struct sh_gp *gp, double least_zoom)
{
    return gp->look.font_size > 0 ? gp->width_in * POINTS / gp->look.font_size : gp->width_in / least_zoom;
}

int sh_gp_columns(const struct sh_gp *gp, double column_in, int most)
{
    int n = most;
    while (gp->width_in > 0 && n > 1 && asked(gp, LEAST_LETTERS) < LEAST_COLUMN / LEAST_LETTERS * column_in * n)
        n--;
    return n;
}

double sh_gp_room(const struct sh_gp *gp, double width_in)
{
    if (!(gp->width_in > 0))
        return width_in;
    if (gp->look.font_size > 0)
        return asked(gp, 1);
    return fmin(width_in, fmax(LEAST_PAGE, asked(gp, LEAST_LETTERS)));
}

int sh_gp_letters(double inches)
{
    return (int)fmax(8, inches * LETTERS);
}

/* A font of the page, so many points at a scale of its own in each terminal. LaTeX's own letters are a text's. */
static void font(struct sh_gp *gp, const char *more, double size)
{
    const char *name = gp->look.font ? gp->look.font : "sans-serif";
    if (gp->format == SH_GP_TEX)
        fprintf(gp->to, "'%s,%.4g'", *more ? "\\bfseries" : "", size);
    else
        fprintf(gp->to, "'%s%s,%.4g'", name, more, size);
}

/* What the terminal calls the size of letters of the usual size. */
static double letter_size(const struct sh_gp *gp)
{
    static const double size[SH_GP_FORMATS] = {13, 10.5, 10.5, 10.5, POINTS};
    return size[gp->format] * zoom(gp);
}

void sh_gp_small(struct sh_gp *gp, double share)
{
    fputs(" font ", gp->to);
    font(gp, "", share * letter_size(gp));
}

static void terminal(struct sh_gp *gp)
{
    double w = gp->width_in, h = gp->height_in, z = zoom(gp), dpi = gp->look.dpi ? gp->look.dpi : 200,
           line = gp->format == SH_GP_PNG ? z * dpi / 100 : gp->format == SH_GP_EPS ? 2 * z : z;
    char lines[32] = "";
    if (line < 1 || line > 1)
        snprintf(lines, sizeof lines, "linewidth %.3g ", line);
    if (gp->format == SH_GP_PNG)
        fputs("if (strstrt(GPVAL_TERMINALS, 'pngcairo') > 0) {\n    ", gp->to);
    static const char *const name[SH_GP_FORMATS] = {"svg", "pngcairo", "pdfcairo", "epscairo", "tikz"};
    double unit = gp->format == SH_GP_SVG ? 100 : dpi;
    fprintf(gp->to, "set terminal %s size ", name[gp->format]);
    if (gp->format <= SH_GP_PNG)
        fprintf(gp->to, "%.0f,%.0f font ", unit * w, unit * h);
    else
        fprintf(gp->to, "%.3fin,%.3fin font ", w, h);
    font(gp, "", letter_size(gp));
    if (gp->format == SH_GP_PNG)
        fprintf(gp->to, " fontscale %.4g pointscale %.4g", dpi / 100, dpi / 100);
    else if (gp->format == SH_GP_PDF || gp->format == SH_GP_EPS)
        fputs(" fontscale 0.75", gp->to);
    fprintf(gp->to, " %s%s%s\n", lines, gp->format == SH_GP_TEX ? "" : "noenhanced",
            gp->format <= SH_GP_PNG ? " background '#ffffff'" : "");
    if (gp->format == SH_GP_PNG)
        fprintf(gp->to, "} else {\n    set terminal png size %.0f,%.0f medium noenhanced\n}\n", 100 * w, 100 * h);
}

static void styles(FILE *to)
{
    for (int i = 0; i < SH_GP_COLOURS; i++)
        fprintf(to,
                "set style line %d lc rgb '%s' lw 1.8 dt 1 pt %d ps 0.5\n"
                "set style line %d lc rgb '%s' lw 1.5 dt (16,8) pt %d ps 0.5\n",
                i + 1, colours[i], points[i], i + 11, colours[i], points[i]);
    fputs("set style line 20 lc rgb '#e2e2e2' lw 0.7 dt 1\n"
          "set style line 21 lc rgb '#606060' lw 0.8 dt 1\n"
          "set border 3 ls 21\n"
          "set grid ls 20\n"
          "set tics nomirror out scale 0.5\n"
          "set xtics offset 0, 0.3\nset xlabel offset 0, 0.6\nset title offset 0, -0.4\n"
          "set format '%g'\n"
          "unset key\n", to);
}

void sh_gp_viridis(struct sh_gp *gp)
{
    fputs("set palette defined (", gp->to);
    for (int i = 0; i < 10; i++)
        fprintf(gp->to, "%s%d '%s'", i ? ", " : "", i, viridis[i]);
    fputs(")\n", gp->to);
}

static int letters_of(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* Is that byte part of a sign between two numbers, which stay together: = / − ≥ and the like? */
static int is_operator(char c)
{
    unsigned char u = (unsigned char)c;
    return strchr("=/+", c) != NULL || (u >= 0x80 && u < 0xc0) || u == 0xe2;
}

size_t sh_gp_line_bytes(const char *s, int letters)
{
    size_t blank = 0, loose = 0, clause = 0, n = 0;
    for (int i = 0; s[n]; i++) {
        if (i == letters) {
            int fits = clause && letters_of(s + clause + 1) <= letters;
            return fits ? clause : loose ? loose : blank ? blank : n;
        }
        if (s[n] == ' ' && n) {
            blank = n;
            loose = is_operator(s[n - 1]) || is_operator(s[n + 1]) ? loose : n;
            clause = strchr(":;,", s[n - 1]) ? n : clause;
        }
        n++;
        while (((unsigned char)s[n] & 0xc0) == 0x80)
            n++;
    }
    return n;
}

/* Advance widths of DejaVu Sans, in hundredths of an em, class by class. */
double sh_gp_text_in(const char *s)
{
    static const struct { const char *letters; int wide; } table[] = {
        {"ijl'", 28}, {"IJ .,|", 32}, {"ft:;/()[]-!", 39}, {"rs", 48}, {"czkvxyFLZTY?", 58}, {"wMOQD", 82},
        {"mW%", 97}, {"ABCEGHKNPRSUVX", 70}};
    double in = 0;
    for (; *s; s++) {
        int wide = ((unsigned char)*s & 0xc0) == 0x80 ? 0 : (unsigned char)*s >= 0x80 ? 80 : 62;
        for (size_t i = 0; i < sizeof table / sizeof *table; i++)
            wide = strchr(table[i].letters, *s) ? table[i].wide : wide;
        in += 0.0013 * wide;
    }
    return in;
}

static int n_lines(const char *text, int letters, int most)
{
    int n = 1;
    for (const char *s = text; s && s[sh_gp_line_bytes(s, letters)] && n < most; n++) {
        s += sh_gp_line_bytes(s, letters);
        s += *s == ' ';
    }
    return n;
}

static int title_letters(const struct sh_gp *gp)
{
    return (int)(fmax(1, gp->own_width_in - 0.3) * TITLE_LETTERS);
}

static int settings_letters(const struct sh_gp *gp)
{
    return sh_gp_letters(gp->own_width_in - 0.3);
}

/* What a heading takes beyond one line of each, below 0 where it has none. */
static double heading_in(struct sh_gp *gp, double width_in)
{
    double own = gp->own_width_in;
    gp->own_width_in = width_in;
    double in = TITLE_PITCH * ((gp->title ? n_lines(gp->title, title_letters(gp), TITLE_LINES) : 0) - 1) +
                SETTINGS_PITCH * ((gp->settings ? n_lines(gp->settings, settings_letters(gp), SETTINGS_LINES) : 0) - 1);
    gp->own_width_in = own;
    return gp->title ? in : gp->settings ? in - 0.02 : in - 0.16;
}

double sh_gp_fit(struct sh_gp *gp, double width_in, double fixed_in, int n, double tall, double least)
{
    double z = gp->width_in > 0 ? gp->width_in / width_in : 1, most = gp->height_in;
    int is_column = gp->width_in > 0 && gp->width_in <= SH_GP_COLUMN && !gp->look.scrolls;
    if (!(most > 0) && !is_column)
        return tall;
    double page = (most > 0 ? most : SH_GP_COLUMN) / z, rest = fixed_in + heading_in(gp, width_in),
           each = (page - rest) / n, needed = (rest + n * least) * z;
    if (each < least - 1e-9)
        snprintf(gp->problem, sizeof gp->problem, "needs %.1f inches of height at a width of %.1f, found %s%.1f "
                 "(--height %.1fin, fewer --panels, a smaller --font-size or --no-title)", ceil(10 * needed) / 10,
                 width_in * z, most > 0 ? "" : "a column's ", page * z, ceil(10 * needed) / 10);
    return most > 0 ? fmax(each, least) : fmax(fmin(each, tall), least);
}

void sh_gp_page(struct sh_gp *gp, double width_in, double height_in)
{
    gp->own_width_in = width_in;
    gp->down_in = heading_in(gp, width_in);
    gp->own_height_in = height_in += gp->down_in;
    double z = gp->look.font_size > 0 && !(gp->width_in > 0) ? zoom(gp) : 1;
    gp->width_in = gp->width_in > 0 ? gp->width_in : width_in * z;
    gp->height_in = gp->height_in > 0 ? gp->height_in : height_in * gp->width_in / width_in;
    fputs("set encoding utf8\n", gp->to);
    terminal(gp);
    if (gp->script) {
        char *figure = sh_gp_figure_path(gp->path);
        fputs("set output ", gp->to);
        /* a path that begins with | or ~ means something else to gnuplot */
        fputs(figure[0] == '/' ? "'" : "'./", gp->to);
        for (const char *c = figure; *c; c++)
            fputs(*c == '\'' ? apostrophe : (char[]){*c, '\0'}, gp->to);
        fputs("'\n", gp->to);
        free(figure);
    }
    styles(gp->to);
    sh_gp_viridis(gp);
}

/* A point of the page from its very top. */
static void point(struct sh_gp *gp, double left, double top)
{
    fprintf(gp->to, "screen %.5f, screen %.5f", left / gp->own_width_in, 1 - top / gp->own_height_in);
}

void sh_gp_at(struct sh_gp *gp, double left, double top)
{
    point(gp, left, top + gp->down_in);
}

/* One label per line; the last one is cut if there is no room for more. *top goes to the next line. */
static void heading_lines(struct sh_gp *gp, int label, const char *text, int letters, int most, double *top,
                          double pitch, int is_title)
{
    int n = n_lines(text, letters, most);
    for (int i = 0; i < n; i++, *top += pitch) {
        size_t bytes = i + 1 < n ? sh_gp_line_bytes(text, letters) : strlen(text);
        char *line = xasprintf("%.*s", (int)bytes, text);
        fprintf(gp->to, "set label %d ", label + i);
        sh_gp_text(gp, line, letters);
        fputs(" at ", gp->to);
        point(gp, 0.18, *top);
        fputs(" left ", gp->to);
        if (is_title) {
            fputs("font ", gp->to);
            font(gp, gp->format ? ":Bold" : "", letter_size(gp) * (gp->format ? 1.19 : 1.31));
        }
        fprintf(gp->to, " tc rgb '%s'\n", is_title ? "#111111" : "#606060");
        free(line);
        text += bytes;
        text += *text == ' ';
    }
}

void sh_gp_heading(struct sh_gp *gp)
{
    double top = 0.26;
    if (gp->title) {
        heading_lines(gp, HEADING_LABEL, gp->title, title_letters(gp), TITLE_LINES, &top, TITLE_PITCH, 1);
        top += 0.01;
    }
    if (gp->settings)
        heading_lines(gp, HEADING_LABEL + TITLE_LINES, gp->settings, settings_letters(gp), SETTINGS_LINES, &top,
                      SETTINGS_PITCH, 0);
}

void sh_gp_box(struct sh_gp *gp, double left, double top, double width, double height)
{
    double w = gp->own_width_in, h = gp->own_height_in;
    fprintf(gp->to, "set lmargin at screen %.5f\nset rmargin at screen %.5f\n"
            "set tmargin at screen %.5f\nset bmargin at screen %.5f\n",
            left / w, (left + width) / w, 1 - (top + gp->down_in) / h, 1 - (top + gp->down_in + height) / h);
}

/* What LaTeX reads as commands, and signs that pdflatex does not know. NULL: as it is. */
static const char *tex(const char *s, size_t n)
{
    static const struct { const char *sign, *is; } table[] = {
        {"\\", "\\textbackslash{}"}, {"#", "\\#"}, {"$", "\\$"}, {"%", "\\%"}, {"&", "\\&"}, {"_", "\\_"},
        {"{", "\\{"}, {"}", "\\}"}, {"~", "\\textasciitilde{}"}, {"^", "\\textasciicircum{}"},
        {"<", "$<$"}, {">", "$>$"}, {"|", "$|$"}, {"\"", "{\\char34}"}, {"≥", "$\\geq$"}, {"≤", "$\\leq$"},
        {"α", "$\\alpha$"}, {"−", "$-$"}, {"×", "$\\times$"}, {"±", "$\\pm$"}, {"ρ", "$\\rho$"}, {"⁻", "$^-$"},
        {"⁰", "$^0$"}, {"¹", "$^1$"}, {"²", "$^2$"}, {"³", "$^3$"}, {"⁴", "$^4$"}, {"⁵", "$^5$"},
        {"⁶", "$^6$"}, {"⁷", "$^7$"}, {"⁸", "$^8$"}, {"⁹", "$^9$"}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strlen(table[i].sign) == n && !memcmp(s, table[i].sign, n))
            return table[i].is;
    return NULL;
}

static void quote(struct sh_gp *gp, const char *text, int max_chars, int is_format)
{
    FILE *to = gp->to;
    const char *s = text, *is;
    putc('\'', to);
    for (int i = 0; *s; i++) {
        int is_shown, n = sh_utf8_plain(s, &is_shown), is_last = i == max_chars - 1 && s[n];
        if (i == max_chars)
            break;
        if (is_last)
            fputs("…", to);
        else if (*s == '\n' || *s == '\t' || *s == '\r')
            fprintf(to, "%s%c", gp->format == SH_GP_TEX ? tex("\\", 1) : "\\",
                    *s == '\n' ? 'n' : *s == '\t' ? 't' : 'r');
        else if (!is_shown)
            fputs("\xef\xbf\xbd", to);
        else if (*s == '\'')
            fputs(apostrophe, to);
        else if (gp->format == SH_GP_TEX && (is = tex(s, (size_t)n)) != NULL)
            fprintf(to, "%s%s", is_format && *s == '%' ? "\\%" : "", is_format && *s == '%' ? "%" : is);
        else if (is_format && *s == '%')
            fputs("%%", to);
        else
            fwrite(s, 1, (size_t)n, to);
        s += n;
    }
    putc('\'', to);
}

void sh_gp_text(struct sh_gp *gp, const char *text, int max_chars)
{
    quote(gp, text, max_chars, 0);
}

void sh_gp_tic(struct sh_gp *gp, const char *text, int max_chars)
{
    quote(gp, text, max_chars, 1);
}

void sh_gp_set(struct sh_gp *gp, const char *what, const char *text, int max_chars)
{
    fprintf(gp->to, "set %s ", what);
    sh_gp_text(gp, text, max_chars);
    putc('\n', gp->to);
}

void sh_gp_tic_at(struct sh_gp *gp, int i, const char *text, int max_chars)
{
    fputs(i ? ", " : "(", gp->to);
    sh_gp_tic(gp, text, max_chars);
    fprintf(gp->to, " %d", i);
}

void sh_gp_real(struct sh_gp *gp, double value)
{
    char digits[40] = "NaN";
    for (int n = 15; isfinite(value) && n <= DBL_DECIMAL_DIG; n++) {
        snprintf(digits, sizeof digits, "%.*g", n, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    fputs(digits, gp->to);
}

void sh_gp_row(struct sh_gp *gp, const double *value, int n)
{
    for (int i = 0; i < n; i++) {
        sh_gp_real(gp, value[i]);
        putc(i + 1 < n ? ' ' : '\n', gp->to);
    }
}

void sh_gp_log_tics(struct sh_gp *gp, double high)
{
    fputs("set logscale cb\nset cbtics (0.1, 0.2, 0.5", gp->to);
    if (high <= 10) {
        fputs(", 1, 1.5, 2, 3, 4, 5, 7, 10)\n", gp->to);
        return;
    }
    for (double unit = 1; unit <= high; unit *= 10)
        fprintf(gp->to, ", %g, %g, %g", unit, 2 * unit, 5 * unit);
    fputs(")\n", gp->to);
}

int sh_gp_step(int n, int most)
{
    static const int leading[] = {1, 2, 5};
    int step = 1;
    for (int i = 1, unit = 1; (n - 1) / step >= most; i++) {
        unit *= i % 3 ? 1 : 10;
        step = unit * leading[i % 3];
    }
    return step;
}

void sh_gp_matrix(struct sh_gp *gp, const char *name, int number, int n_rows, int n_cols, const double *value)
{
    fprintf(gp->to, "$%s%d << EOD\n", name, number);
    for (int r = 0; r < n_rows; r++)
        sh_gp_row(gp, value + (size_t)r * (size_t)n_cols, n_cols);
    fputs("EOD\n", gp->to);
}

static void real32(FILE *to, float value)
{
    char digits[24] = "NaN";
    for (int n = 6; isfinite(value) && n <= FLT_DECIMAL_DIG; n++) {
        snprintf(digits, sizeof digits, "%.*g", n, (double)value);
        if (strtof(digits, NULL) == value)
            break;
    }
    fputs(digits, to);
}

void sh_gp_matrix32(struct sh_gp *gp, const char *name, int number, int n_rows, int n_cols, const float *value)
{
    fprintf(gp->to, "$%s%d << EOD\n", name, number);
    for (size_t i = 0; i < (size_t)n_rows * (size_t)n_cols; i++) {
        real32(gp->to, value[i]);
        putc((i + 1) % (size_t)n_cols ? ' ' : '\n', gp->to);
    }
    fputs("EOD\n", gp->to);
}
