/* SPDX-License-Identifier: Apache-2.0 */
/* See gp.h: logarithmic axes with enough numbers along them, over many powers of ten and within one; axes without
 * values. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "plots/gp.h"

/* n tenths of a power of ten, 10 to 99: whether an axis over that many times has a tic there. */
static int is_tic(int n, double times)
{
    if (times > 2000)
        return n == 10;
    if (times > 4 && times <= 12)
        return n == 15 || n == 70 || (n <= 50 && n % 10 == 0);
    if (times > 4)
        return n == 10 || n == 20 || n == 50;
    if (times > 2)
        return n == 15 || (n < 50 ? n % 10 == 0 : n == 60 || n == 80);
    if (times > 1.5)
        return n % (n < 20 ? 2 : n < 50 ? 5 : 10) == 0;
    return n % (n < 20 ? 1 : n < 50 ? 2 : 5) == 0;
}

/* '10⁻³' 0.001 */
static void negative_power(struct sh_gp *gp, int power)
{
    static const char *const digit[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    char text[32];
    snprintf(text, sizeof text, "10⁻%s%s", power > 9 ? digit[power / 10 % 10] : "", digit[power % 10]);
    sh_gp_tic(gp, text, 9);
    fprintf(gp->to, " %g", pow(10, -power));
}

/* 10000 as 10k, 2000000 as 2M: short enough for the side of a panel. Where an axis begins below a ten-thousandth, all
 * its fractions are powers of ten. */
static void number(struct sh_gp *gp, double v, double low)
{
    static const struct { double unit; const char *name; } big[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
    for (size_t i = 0; i < sizeof big / sizeof *big && v >= 1e4; i++)
        if (v >= big[i].unit) {
            fprintf(gp->to, "'%g%s' %g", v / big[i].unit, big[i].name, v);
            return;
        }
    double power = round(log10(v));
    if (low > 5e-5 || v > 0.5 || fabs(v / pow(10, power) - 1) > 1e-9) {
        fprintf(gp->to, "'%g' %g", v, v);
        return;
    }
    negative_power(gp, (int)-power);
}

void sh_gp_powers(struct sh_gp *gp, const char *tics, int decades, int most)
{
    int step = 1;
    while (step < decades && (decades % step || decades / step >= most))
        step++;
    fprintf(gp->to, "set %s (", tics);
    for (int power = decades; power > 0; power -= step) {
        negative_power(gp, power);
        fputs(", ", gp->to);
    }
    fputs("'1' 1)\n", gp->to);
}

static int count_tics(double low, double high, double times)
{
    int n = 0;
    for (double unit = pow(10, floor(log10(low / 1.1))); unit <= high * 1.1; unit *= 10)
        for (int k = 10; k < 100; k++)
            n += unit * k / 10 >= low / 1.1 && unit * k / 10 <= high * 1.1 && is_tic(k, times);
    return n;
}

void sh_gp_log_axis(struct sh_gp *gp, double low, double high, int most)
{
    double times = high / low;
    while (times < 1e4 && count_tics(low, high, times) > most && count_tics(low, high, 3 * times) > 1)
        times *= 3;
    int n = count_tics(low, high, times), every = times > 2000 && n > most ? (n + most - 1) / most : 1, at_tic = 0;
    fprintf(gp->to, "set logscale y 10\nset yrange [%.6g:%.6g]\n", low / 1.1, high * 1.1);
    const char *separator = "set ytics (";
    for (double unit = pow(10, floor(log10(low / 1.1))); unit <= high * 1.1; unit *= 10)
        for (int k = 10; k < 100; k++) {
            double at = unit * k / 10;
            if (at < low / 1.1 || at > high * 1.1 || !is_tic(k, times) || at_tic++ % every)
                continue;
            fputs(separator, gp->to);
            number(gp, at, low);
            separator = ", ";
        }
    fputs(*separator == ',' ? ")\n" : "set ytics auto\n", gp->to);
}

double sh_gp_y_tics(double inches)
{
    return fmin(7, fmax(3, inches / 0.2));
}

double sh_gp_tic_step(double low, double high, double most)
{
    double least = (high - low) / most, unit = pow(10, floor(log10(least)));
    return unit >= least ? unit : 2 * unit >= least ? 2 * unit : 5 * unit >= least ? 5 * unit : 10 * unit;
}

void sh_gp_tics(struct sh_gp *gp, char axis, double low, double high, double inches)
{
    if (!(high > low) || !isfinite(high - low)) {
        fprintf(gp->to, "set %ctics auto\n", axis);
        return;
    }
    double end = fmax(fabs(low), fabs(high)), digits = (end < 1 ? 1 : 1 + floor(log10(end))) + (high - low < 5 ? 2 : 0),
           most = axis == 'y' ? sh_gp_y_tics(inches) : fmin(7, fmax(2, inches / (0.1 + 0.085 * digits)));
    fprintf(gp->to, "set %ctics %.6g\n", axis, sh_gp_tic_step(low, high, most));
}

void sh_gp_x_axis(struct sh_gp *gp, double left, double right, double inches)
{
    left = left > 0 && left < 0.3 * right ? 0 : left;
    char end[32];
    snprintf(end, sizeof end, "%.6g", right);
    double more = strtod(end, NULL) < right ? 1e-4 * (right - left) : 0;        /* else the last mark is cut away */
    if (right > left)
        fprintf(gp->to, "set xrange [%.6g:%.6g]\n", left, right + more);
    else
        fputs("set xrange [*:*]\n", gp->to);
    sh_gp_tics(gp, 'x', left, right, inches);
}

int sh_gp_row_tics(double inches)
{
    return inches < 0.5 ? 2 : (int)(inches / 0.16);
}

const char *sh_gp_line_style(char style[64], int colour, int dash)
{
    snprintf(style, 64, " ls %d%s", colour % SH_GP_COLOURS + 1 + (dash == 1 ? 10 : 0), dash > 1 ? " dt '.'" : "");
    return style;
}

void sh_gp_no_values(struct sh_gp *gp)
{
    fputs("set xrange [0:1]\nset yrange [0:1]\n"
          "set label 901 'no values' at graph 0.5, graph 0.5 center tc rgb '#606060'\n", gp->to);
}
