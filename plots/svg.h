/* SPDX-License-Identifier: Apache-2.0 */
/* A figure inside a page: gnuplot's SVG without its prologue and background, its names made the page's own, its
 * greys made the page's to choose. */
#ifndef PLOTS_SVG_H
#define PLOTS_SVG_H

#include <stdio.h>

/* Writes the element. `name` [a-z0-9-] goes before every id, so that several figures live in one page; `label` says
 * what it shows to those who do not see it. Greys become var(--gV, the grey itself), the colours of lines
 * var(--cRRGGBB, itself): a dark page sets them, others need to know nothing. */
void sh_svg_inline(FILE *to, const char *svg, const char *name, const char *label, const char *class_name);

#endif
