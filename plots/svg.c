/* SPDX-License-Identifier: Apache-2.0 */
/* See sh_svg_inline in figure.h. Tags are copied attribute by attribute, text between them as it is: labels may say
 * anything. */
#include <stdlib.h>
#include <string.h>

#include "plots/figure.h"
#include "src/base/out.h"

/* Does `s` (before `end`) begin with the word? */
static int begins(const char *s, const char *end, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(end - s) >= n && !memcmp(s, word, n);
}

/* The colours of lines, of their names, and of the darkest of two marks: dim where it is dark. */
static const int named[][3] = {{0, 114, 178}, {213, 94, 0}, {0, 158, 115}, {204, 121, 167}, {230, 159, 0},
                               {86, 180, 233}, {0, 95, 150}, {168, 74, 0}, {0, 107, 78}, {154, 63, 115},
                               {138, 90, 0}, {30, 110, 158}, {11, 60, 111}};
/* Greys, and what is nearly one, are taken for the nearest of these. */
static const int greys[] = {0, 17, 64, 96, 128, 160, 200, 226, 255};

static int nearest(int v)
{
    int best = greys[0];
    for (size_t i = 0; i < sizeof greys / sizeof *greys; i++)
        if (abs(greys[i] - v) < abs(best - v))
            best = greys[i];
    return best;
}

/* A colour that the page may choose: 1 with its name and itself, and *bytes that it takes; else 0. */
static int colour(const char *s, const char *end, char name[16], int rgb[3], int *bytes)
{
    int n = 0, *r = rgb, *g = rgb + 1, *b = rgb + 2;
    char text[32];
    if (!begins(s, end, "rgb(") || end - s < 10)
        return 0;
    snprintf(text, sizeof text, "%.*s", (int)(end - s < 31 ? end - s : 31), s);
    if (sscanf(text, "rgb( %d , %d , %d )%n", r, g, b, &n) < 3 || !n)
        return 0;
    *bytes = n;
    for (int i = 0; i < 3; i++)
        if (rgb[i] < 0 || rgb[i] > 255)
            return 0;
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (!memcmp(named[i], rgb, sizeof named[i])) {
            snprintf(name, 16, "c%02x%02x%02x", (unsigned)*r, (unsigned)*g, (unsigned)*b);
            return 1;
        }
    if (abs(*r - *g) > 5 || abs(*g - *b) > 5 || abs(*r - *b) > 8)
        return 0;
    snprintf(name, 16, "g%d", nearest(*g));
    return 1;
}

/* One tag, from its < to its >. */
static void tag(FILE *to, const char *s, const char *end, const char *name)
{
    while (s < end) {
        int n = 0, rgb[3];
        char variable[16];
        if (*s == 'r' && colour(s, end, variable, rgb, &n)) {
            fprintf(to, "var(--%s,#%02x%02x%02x)", variable, (unsigned)rgb[0], (unsigned)rgb[1], (unsigned)rgb[2]);
            s += n;
            continue;
        }
        n = 0;
        static const char *const before[] = {" id='", " id=\"", "href='#", "href=\"#", "url(#"};
        for (size_t i = 0; i < sizeof before / sizeof *before && !n; i++)
            if (begins(s, end, before[i])) {
                n = (int)strlen(before[i]);
                fprintf(to, "%s%s-", before[i], name);
            }
        if (!n && begins(s, end, "=\"black\"")) {
            fputs("=\"var(--g0,#000000)\"", to);
            n = 8;
        }
        if (!n)
            fputc(*s, to);
        s += n ? n : 1;
    }
}

static void head(FILE *to, const char *s, const char *end, const char *label, const char *class_name)
{
    double w = 800, h = 600;
    const char *box = strstr(s, "viewBox=\"0 0 ");
    if (box && box < end)
        sscanf(box, "viewBox=\"0 0 %lf %lf", &w, &h);
    fprintf(to, "<svg class=\"%s\" role=\"img\" viewBox=\"0 0 %g %g\" style=\"--w:%gpx\" aria-label=\"", class_name,
            w, h, w);
    sh_html_text(to, label);
    fputs("\">", to);
}

/* An element that a page has no use for: gnuplot's title and description, the background. */
static const char *skipped(const char *s, const char *end)
{
    static const struct { const char *from, *to; } element[] = {
        {"<title>", "</title>"}, {"<desc>", "</desc>"}, {"<rect x=\"0\" y=\"0\"", ">"}};
    for (size_t i = 0; i < sizeof element / sizeof *element; i++) {
        const char *close = begins(s, end, element[i].from) ? strstr(s, element[i].to) : NULL;
        if (close)
            return close + strlen(element[i].to);
    }
    return NULL;
}

void sh_svg_inline(FILE *to, const char *svg, const char *name, const char *label, const char *class_name)
{
    const char *s = strstr(svg, "<svg"), *end, *next;
    if (!s || !(end = strchr(s, '>')))
        return;
    head(to, s, end, label, class_name);
    for (s = end + 1; *s; s = next) {
        if (*s != '<') {
            next = s + strcspn(s, "<");
            fwrite(s, 1, (size_t)(next - s), to);
            continue;
        }
        if (!(end = strchr(s, '>')))
            break;
        if (!(next = skipped(s, end + 1))) {
            next = end + 1;
            tag(to, s, next, name);
        }
    }
}
