/* SPDX-License-Identifier: Apache-2.0 */
/* See gp.h: logarithmic axes with enough numbers along them, over many powers of ten and within one; axes without
 * values; legends drawn by hand. */
#include <math.h>
#include <stdio.h>

#include "plots/gp.h"

/* n tenths of a power of ten, 10 to 99: whether an axis over that many times has a tic there. */
static int is_tic(int n, double times)
{
    if (times > 2000)
        return n == 10;
    if (times > 4)
        return n == 10 || n == 20 || n == 50;
    if (times > 2)
        return n == 15 || (n < 50 ? n % 10 == 0 : n == 60 || n == 80);
    if (times > 1.5)
        return n % (n < 20 ? 2 : n < 50 ? 5 : 10) == 0;
    return n % (n < 20 ? 1 : n < 50 ? 2 : 5) == 0;
}

/* 10000 as 10k, 2000000 as 2M: short enough for the side of a panel. */
static void number(struct sh_gp *gp, double v)
{
    static const struct { double unit; const char *name; } big[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
    for (size_t i = 0; i < sizeof big / sizeof *big && v >= 1e4; i++)
        if (v >= big[i].unit) {
            fprintf(gp->to, "'%g%s' %g", v / big[i].unit, big[i].name, v);
            return;
        }
    fprintf(gp->to, "'%g' %g", v, v);
}

void sh_gp_log_axis(struct sh_gp *gp, double low, double high)
{
    fprintf(gp->to, "set logscale y 10\nset yrange [%.6g:%.6g]\n", low / 1.1, high * 1.1);
    const char *separator = "set ytics (";
    for (double unit = pow(10, floor(log10(low / 1.1))); unit <= high * 1.1; unit *= 10)
        for (int n = 10; n < 100; n++) {
            double at = unit * n / 10;
            if (at < low / 1.1 || at > high * 1.1 || !is_tic(n, high / low))
                continue;
            fputs(separator, gp->to);
            number(gp, at);
            separator = ", ";
        }
    fputs(*separator == ',' ? ")\n" : "set ytics auto\n", gp->to);
}

void sh_gp_line_style(struct sh_gp *gp, int colour, int dash)
{
    fprintf(gp->to, " ls %d%s", colour % SH_GP_COLOURS + 1 + (dash == 1 ? 10 : 0), dash > 1 ? " dt '.'" : "");
}

void sh_gp_key(struct sh_gp *gp, int number, double left, double top, const struct sh_gp_key *key)
{
    fprintf(gp->to, "set arrow %d from ", number);
    sh_gp_at(gp, left, top);
    fputs(" to ", gp->to);
    sh_gp_at(gp, left + 0.3, top);
    fputs(" nohead", gp->to);
    sh_gp_line_style(gp, key->colour, key->dash);
    fprintf(gp->to, "\nset label %d ", number);
    sh_gp_text(gp, key->label, key->letters);
    fputs(" at ", gp->to);
    sh_gp_at(gp, left + 0.38, top);
    fputs(" left\n", gp->to);
}

void sh_gp_no_values(struct sh_gp *gp)
{
    fputs("set xrange [0:1]\nset yrange [0:1]\n"
          "set label 901 'no values' at graph 0.5, graph 0.5 center tc rgb '#606060'\n", gp->to);
}
