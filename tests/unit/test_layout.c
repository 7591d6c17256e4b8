/* SPDX-License-Identifier: Apache-2.0 */
/* plots: no text of a figure lies on another or beyond the page, at the width of a column, of a page, and at its own;
 * pages have the height that was asked for, or are refused. Boxes are those of gnuplot's SVG, with the widths of a
 * usual font. With `--write DIR` the figures are drawn there as PNG for a person to look at. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plots/figure.h"
#include "plots/gnuplot.h"
#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/plot_data.h"

enum { MOST_TEXTS = 2000, CROWD = 20, STEPS = 20, RATES = 6 };

struct text { double corner[4][2]; char said[200]; };

static struct plot_data tame;

/* ---- a figure with as much in it as real ones have ---- */

static struct {
    double share[STEPS], y[CROWD][6][STEPS], x[3][STEPS], load[RATES][3][STEPS];
    char name[CROWD][40], rate[RATES][40];
    struct sh_fig_curve curve[CROWD];
    struct sh_fig_curves set;
    struct sh_fig_curve_sets sets;
    struct sh_fig_line line[RATES][3];
    struct sh_fig_chart chart[RATES];
    struct sh_fig_charts charts;
    struct sh_fig_stack bar[10];
    struct sh_fig_stacks stacks;
    double tokens[24], none[24], ratio[24];
    struct sh_fig_plan plan[2];
    struct sh_fig_plans plans;
    struct sh_fig_heads heads[2];
    struct sh_fig_head_maps head_maps;
    struct sh_fig_series series[2][2];
    struct sh_fig_panel panel[2];
    struct sh_fig_panels panels;
    struct sh_fig_map map[2];
    struct sh_fig_maps maps;
    struct sh_fig_measured_line step[4];
    struct sh_fig_measured measured[4];
    struct sh_fig_measured_panels all_measured;
    struct sh_fig_line policy[CROWD];
    struct sh_fig_chart many;
    struct sh_fig_charts frontier;
    struct sh_fig_data d;
} crowd;

/* Two traces, one of random weights, in which nothing is left; two plans of budgets with three digits; panels of one
 * kind with long labels; a score map with single rows; more policies than can be told apart. */
static void fill_pairs(void)
{
    static const char *const traces[2] = {"llama-2-7b", "llama-2-7b, random weights"};
    static const char *const kinds[2] = {"literal: α = 1/t, every pair",
                                         "beyond recency: α = 5/t, query − key ≥ 10"};
    static const char *const cells[4] = {"h2o:recent=25, budget 0.2", "h2o:recent=25, budget 0.5",
                                         "scissorhands, budget 0.2", "scissorhands, budget 0.5"};
    static const char *const layers[4] = {"layer 0", "layer 1", "layer 2", "layer 3"};
    for (int i = 0; i < 24; i++) {
        crowd.tokens[i] = 10 + 13 * i;
        crowd.ratio[i] = 0.5 + 0.02 * i;
        crowd.none[i] = (double)NAN;
    }
    for (int i = 0; i < 2; i++) {
        crowd.plan[i] = (struct sh_fig_plan){"h2o, greedy: 126.0 of 384 tokens a head", 6, 4, crowd.tokens};
        crowd.heads[i] = (struct sh_fig_heads){traces[i], 6, 4, crowd.ratio, i ? crowd.none : crowd.tokens};
        for (int k = 0; k < 2; k++)
            crowd.series[i][k] = (struct sh_fig_series){traces[k], 6, i && k ? crowd.none : crowd.ratio + k,
                                                        crowd.ratio, NULL, NULL};
        crowd.panel[i] = (struct sh_fig_panel){kinds[i], 2, crowd.series[i]};
        crowd.map[i] = tame.map;
    }
    crowd.plans = (struct sh_fig_plans){2, crowd.plan};
    crowd.head_maps = (struct sh_fig_head_maps){2, crowd.heads, "α = 1/t", "α = 5/t, R = 10"};
    crowd.panels = (struct sh_fig_panels){2, crowd.panel};
    crowd.maps = (struct sh_fig_maps){2, crowd.map, 0, NULL};
    for (int i = 0; i < 4; i++) {
        crowd.step[i] = (struct sh_fig_measured_line){layers[i], STEPS, crowd.x[0], crowd.y[i][0], NULL, NULL};
        crowd.measured[i] = (struct sh_fig_measured){
            .title = cells[i], .x = "change of a score: (compressed − full) / full",
            .y = "Jaccard index of the kept tokens, 0 to 1", .what = "agreement", .floor = (double)NAN, .ceiling = 1,
            .n_lines = 4, .lines = crowd.step};
    }
    crowd.all_measured = (struct sh_fig_measured_panels){4, crowd.measured};
    for (int i = 0; i < CROWD; i++)
        crowd.policy[i] = (struct sh_fig_line){crowd.curve[i].label, STEPS, i, i / SH_GP_COLOURS, crowd.x[0],
                                               crowd.y[i][5], i >= 6, 0};
    crowd.many = (struct sh_fig_chart){"attention, measured", "% of tokens kept", "mass lost (1 − kept)", 1, 0,
                                       (double)NAN, NULL, CROWD, crowd.policy, 0};
    crowd.frontier = (struct sh_fig_charts){1, &crowd.many};
}

static void fill_crowd(void)
{
    static const char *const names[CROWD] = {
        "oracle", "oracle-topk", "scissorhands", "h2o:recent=25", "tova", "snapkv", "roco", "keyformer", "pyramidkv",
        "expected-attention", "window", "knorm", "random", "cake:gamma=5", "nacl", "lagkv", "quest:page=16", "sink",
        "scissorhands-released", "full"};
    static const char *const caches[] = {"full cache", "plan-greedy.json", "0.2"};
    for (int i = 0; i < CROWD; i++) {
        for (int k = 0; k < STEPS; k++) {
            crowd.share[k] = (k + 1) / (double)STEPS;
            double lost = pow(1 - crowd.share[k], 1.5) * (0.02 + 0.03 * i);
            double v[6] = {1 - lost, 1 - 1.2 * lost, 1 - 0.8 * lost, 1 - 1.4 * lost, 1 - 2 * lost, lost};
            for (int m = 0; m < 6; m++)
                crowd.y[i][m][k] = v[m];
        }
        double(*y)[STEPS] = crowd.y[i];
        crowd.curve[i] = (struct sh_fig_curve){
            .label = names[i], .is_bound = i < 2, .is_over = i >= CROWD - 2,
            .is_reference = !strcmp(names[i], "window"),
            .n = STEPS, .share = crowd.share, .mass = y[0], .low = y[1], .high = y[2], .no_sink = y[3],
            .pivotal = y[4], .error = y[5], .height = 0.95 - 0.01 * i};
    }
    crowd.set = (struct sh_fig_curves){.title = "demo-opt", .note = "0.05 to 1", .n_curves = CROWD,
                                       .curve = crowd.curve};
    crowd.sets = (struct sh_fig_curve_sets){1, &crowd.set};
    for (int r = 0; r < RATES; r++) {
        for (int c = 0; c < 3; c++) {
            for (int k = 0; k < STEPS; k++) {
                crowd.x[c][k] = 12.5 * k;
                crowd.load[r][c][k] = fmin(100, 15.0 * (r + 1) * (1 - 0.3 * c) + 5 * sin(k));
            }
            crowd.line[r][c] = (struct sh_fig_line){caches[c], STEPS, c, 0, crowd.x[c], crowd.load[r][c], 0, 0};
        }
        snprintf(crowd.rate[r], sizeof crowd.rate[r], "%d requests/s", 1 << r);
        crowd.chart[r] = (struct sh_fig_chart){crowd.rate[r], "seconds since the first request",
                                               "cache in use (%)", 0, 0, 100, NULL, 3, crowd.line[r], 0};
    }
    crowd.charts = (struct sh_fig_charts){RATES, crowd.chart};
    for (int i = 0; i < 10; i++)
        crowd.bar[i] = (struct sh_fig_stack){i % 2 ? "llama-3.1-70b, 0.2, int4" : "H100 x 2, full cache, f16",
                                             {16, 48 - 4 * i, 16 + 4 * i}, 79.5, 80, "1042 sequences"};
    crowd.stacks = (struct sh_fig_stacks){10, PARTS, tame.part, crowd.bar};
    crowd.d = tame.d;
    crowd.d.title = "llama-2-7b on H100-SXM and others: what a budget buys";
    crowd.d.settings = "12 sequences, 6044 tokens; rows renormalised over kept tokens, the same budget for each head";
    crowd.d.budget_curve = crowd.d.leaderboard = &crowd.sets;
    crowd.d.occupancy = &crowd.charts;
    crowd.d.capacity = &crowd.stacks;
    fill_pairs();
    crowd.d.allocation = &crowd.plans;
    crowd.d.heads = &crowd.head_maps;
    crowd.d.persistence = &crowd.panels;
    crowd.d.heatmap = &crowd.maps;
    crowd.d.drift = crowd.d.compression = crowd.d.quant = crowd.d.score_change = &crowd.all_measured;
    crowd.d.frontier = &crowd.frontier;
}

/* ---- boxes of text ---- */

/* In ems, of DejaVu Sans more or less. */
static double width_of(const char *s)
{
    double w = 0;
    for (; *s; s++)
        if (((unsigned char)*s & 0xc0) != 0x80)
            w += strchr("iljI.,:;|!'", *s) ? 0.31 : strchr("()[]frt -", *s) ? 0.38 : strchr("mwMW%", *s) ? 0.9 : 0.6;
    return w;
}

static void box(struct text *t, double x, double y, double degrees, double size, const char *anchor)
{
    double wide = size * width_of(t->said), left = *anchor == 'm' ? -wide / 2 : *anchor == 'e' ? -wide : 0,
           turn = degrees * acos(-1) / 180;
    for (int k = 0; k < 4; k++) {
        double dx = left + (k == 1 || k == 2 ? wide : 0), dy = k < 2 ? -0.72 * size : 0.12 * size;
        t->corner[k][0] = x + dx * cos(turn) - dy * sin(turn);
        t->corner[k][1] = y + dx * sin(turn) + dy * cos(turn);
    }
}

/* The texts of an SVG; their number. */
static int texts_of(const char *svg, struct text *to, int most)
{
    int n = 0;
    for (const char *at = svg; (at = strstr(at, "<text>")) != NULL && n < most; at++) {
        const char *group = at;
        double x, y, degrees = 0, size;
        char anchor[16] = "start";
        while (group > svg && strncmp(group, "<g transform", 12))
            group--;
        const char *more = strstr(group, "rotate("), *of_size = strstr(group, "font-size=\""),
                   *of_anchor = strstr(group, "text-anchor=\"");
        CU_ASSERT_FATAL(sscanf(group, "<g transform=\"translate(%lf,%lf)", &x, &y) == 2);
        CU_ASSERT_FATAL(of_size && of_size < at && sscanf(of_size, "font-size=\"%lf", &size) == 1);
        if (more && more < at)
            sscanf(more, "rotate(%lf", &degrees);
        if (of_anchor && of_anchor < at)
            sscanf(of_anchor, "text-anchor=\"%15[a-z]", anchor);
        struct text *t = &to[n];
        int length = 0;
        for (const char *s = at + 6; *s && *s != '<' && length < 190; s++) {
            const char *end = *s == '&' ? strchr(s, ';') : NULL;
            t->said[length++] = end ? 'x' : *s;
            s = end ? end : s;
        }
        t->said[length] = '\0';
        n += strspn(t->said, " ") < strlen(t->said);
        box(t, x, y, degrees, size, anchor);
    }
    return n;
}

/* Two rectangles are apart if a side of one separates them. */
static int are_apart(const struct text *a, const struct text *b)
{
    for (int side = 0; side < 4; side++) {
        const struct text *of = side < 2 ? a : b;
        int k = side % 2;
        double nx = of->corner[k + 1][1] - of->corner[k][1], ny = of->corner[k][0] - of->corner[k + 1][0],
               low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
        for (int i = 0; i < 8; i++) {
            const double *c = (i < 4 ? a : b)->corner[i % 4];
            low[i / 4] = fmin(low[i / 4], c[0] * nx + c[1] * ny);
            high[i / 4] = fmax(high[i / 4], c[0] * nx + c[1] * ny);
        }
        if (high[0] <= low[1] || high[1] <= low[0])
            return 1;
    }
    return 0;
}

/* How many texts overlap, are cut by the page's edge, or end in the sign of a cut. */
static int faults(const char *svg, const char *what)
{
    static struct text text[MOST_TEXTS];
    double w = 0, h = 0;
    const char *view = strstr(svg, "viewBox=\"0 0 ");
    CU_ASSERT_FATAL(view && sscanf(view, "viewBox=\"0 0 %lf %lf", &w, &h) == 2);
    int n = texts_of(svg, text, MOST_TEXTS), n_bad = 0;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < 4; k++)
            if (text[i].corner[k][0] < -1 || text[i].corner[k][0] > w + 1 || text[i].corner[k][1] < -1 ||
                text[i].corner[k][1] > h + 1) {
                printf("# %s: '%s' is cut\n", what, text[i].said);
                n_bad++;
                break;
            }
        if (strstr(text[i].said, "…")) {
            printf("# %s: '%s' has no room\n", what, text[i].said);
            n_bad++;
        }
        for (int k = 0; k < i; k++)
            if (!are_apart(&text[i], &text[k])) {
                printf("# %s: '%s' lies on '%s'\n", what, text[i].said, text[k].said);
                n_bad++;
            }
    }
    return n ? n_bad : 1;
}

static const double widths[] = {3.3, 7, 0};

/* Draws one figure at one width; SH_MISUSED only where a column is too low for it, and then in twice the height. */
static char *svg_of(const struct sh_figure *f, const struct sh_fig_data *d, double width)
{
    struct sh_err e = {.text = ""};
    struct sh_gp_look look = {.width_in = width};
    char *svg = NULL;
    int bad = sh_figure_svg(f, d, &look, &svg, &e);
    look.height_in = 2 * SH_GP_COLUMN;
    if (bad && e.status == SH_MISUSED && width > 0 && width <= SH_GP_COLUMN && strstr(e.text, "needs "))
        bad = sh_figure_svg(f, d, &look, &svg, &e);
    if (bad)
        printf("# %s at %g in: %s\n", f->name, width, e.text);
    CU_ASSERT_FATAL(!bad);
    return svg;
}

static void no_text_overlaps_or_is_cut(void)
{
    for (int i = 0; sh_figures[i]; i++)
        for (size_t k = 0; k < sizeof widths / sizeof *widths; k++)
            for (int crowded = 0; crowded < 2; crowded++) {
                char *svg = svg_of(sh_figures[i], crowded ? &crowd.d : &tame.d, widths[k]),
                     *what = xasprintf("%s%s at %g in", sh_figures[i]->name, crowded ? ", crowded" : "", widths[k]);
                CU_ASSERT(faults(svg, what) == 0);
                free(what);
                free(svg);
            }
}

/* As the report draws figures for phones: panels below each other. A scale lies below the label of its map's axis. */
static void nothing_overlaps_on_phones(void)
{
    static const struct sh_gp_look phone = {.width_in = 4.2, .scrolls = 1};
    for (int i = 0; sh_figures[i]; i++)
        for (int crowded = 0; crowded < 2; crowded++) {
            struct sh_err e = {.text = ""};
            char *svg = NULL, *what = xasprintf("%s%s on a phone", sh_figures[i]->name, crowded ? ", crowded" : "");
            CU_ASSERT_FATAL(!sh_figure_svg(sh_figures[i], crowded ? &crowd.d : &tame.d, &phone, &svg, &e));
            CU_ASSERT(faults(svg, what) == 0);
            free(what);
            free(svg);
        }
}

/* The measure itself: it finds what overlaps, what is cut, and nothing where text only touches. */
static void the_measure_finds_faults(void)
{
    static const char page[] = "<svg viewBox=\"0 0 200 100\">%s%s";
    static const struct { const char *a, *b; int n; } cases[] = {
        {"translate(10,50)\" font-size=\"10\" text-anchor=\"start\"", "translate(30,52)\" font-size=\"10\"", 1},
        {"translate(10,50)\" font-size=\"10\"", "translate(30,62)\" font-size=\"10\"", 0},
        {"translate(190,50)\" font-size=\"10\"", "translate(10,20)\" font-size=\"10\"", 1},
        {"translate(190,50)\" font-size=\"10\" text-anchor=\"end\"", "translate(10,20)\" font-size=\"10\"", 0},
        {"translate(20,80) rotate(-90)\" font-size=\"10\"", "translate(10,60)\" font-size=\"10\"", 1},
        {"translate(20,80) rotate(-90)\" font-size=\"10\"", "translate(30,60)\" font-size=\"10\"", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *a = xasprintf("<g transform=\"%s><text>some words</text></g>", cases[i].a),
             *b = xasprintf("<g transform=\"%s><text>some words</text></g>", cases[i].b), *svg = xasprintf(page, a, b);
        printf("# expected: %d\n", cases[i].n);
        CU_ASSERT(faults(svg, "made up") == cases[i].n);
        free(svg);
        free(a);
        free(b);
    }
}

static int count(const char *svg, const char *what)
{
    int n = 0;
    for (const char *at = svg; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

/* A limit far above the lines would press them flat: it is drawn only where they come near. Panels of one kind have one
 * scale, and so the same numbers; and a line without a value has no entry in the legend. */
static void scales_suit_the_lines(void)
{
    static const double x[2] = {0, 10}, low[2] = {1, 3}, high[2] = {2, 30}, none[2] = {NAN, NAN};
    struct sh_fig_line line[3] = {{"low", 2, 0, 0, x, low, 0, 0}, {"high", 2, 1, 0, x, high, 0, 0},
                                  {"absent", 2, 2, 0, x, none, 0, 0}};
    struct sh_fig_chart chart[2] = {{"one", "s", "cache in use (%)", 0, 0, 1000, "limit", 1, line, 0},
                                    {"two", "s", "cache in use (%)", 0, 0, 1000, "limit", 2, line + 1, 0}};
    struct sh_fig_charts charts = {2, chart};
    struct sh_fig_data d = {.title = "Scales", .occupancy = &charts};
    char *svg = svg_of(&sh_figure_occupancy, &d, 7);
    CU_ASSERT(!strstr(svg, ">limit<") && !strstr(svg, ">absent<"));
    CU_ASSERT(count(svg, "> 30</text>") + count(svg, ">30</text>") == 2);
    free(svg);
    chart[0].limit = chart[1].limit = 40;
    svg = svg_of(&sh_figure_occupancy, &d, 7);
    CU_ASSERT(strstr(svg, ">limit<") != NULL);
    free(svg);
}

/* An axis that ends where its chart says has numbers up to there, also below 0, and the limit; the only line of a chart
 * needs no entry in the legend. */
static void far_lines_are_cut_off(void)
{
    static const double x[3] = {0, 5, 10}, far[3] = {57, 3, -0.2};
    struct sh_fig_line line = {"the only one", 3, 0, 0, x, far, 0, 1};
    struct sh_fig_chart chart = {"perplexity", "s", "increase, %", 0, 0, 1, "limit, 1 %", 1, &line, 10};
    struct sh_fig_charts charts = {1, &chart};
    struct sh_fig_data d = {.title = "Cut", .frontier = &charts};
    char *svg = svg_of(&sh_figure_frontier, &d, 7);
    CU_ASSERT(strstr(svg, ">limit, 1 %<") && !strstr(svg, ">the only one<"));
    CU_ASSERT(count(svg, "> 10</text>") + count(svg, ">10</text>") == 2);
    CU_ASSERT(count(svg, "60</text>") + count(svg, "20</text>") + count(svg, "-10</text>") == 0);
    free(svg);
    chart.most = 0;
    svg = svg_of(&sh_figure_frontier, &d, 7);
    CU_ASSERT(count(svg, "60</text>") == 1);
    free(svg);
}

/* Names of lines that are grey are not in the legend, but that there are such lines is; an empty map says so. */
static void what_has_no_colour_is_told(void)
{
    char *svg = svg_of(&sh_figure_frontier, &crowd.d, 7);
    CU_ASSERT(strstr(svg, ">others<") && strstr(svg, ">tova<") && !strstr(svg, ">random<"));
    free(svg);
    svg = svg_of(&sh_figure_heads, &crowd.d, 7);
    CU_ASSERT(count(svg, "no pivotal token was left") == 2);
    free(svg);
    svg = svg_of(&sh_figure_persistence, &crowd.d, 7);
    CU_ASSERT(strstr(svg, "none</text>") != NULL);
    free(svg);
}

/* The interval has one entry for all bands, which can be seen: three tenths of a line's colour, and none is grey. */
static void intervals_have_one_entry(void)
{
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++)
        for (int crowded = 0; crowded < 2; crowded++) {
            char *svg = svg_of(&sh_figure_budget_curve, crowded ? &crowd.d : &tame.d, widths[k]);
            int n = 0;
            double opacity;
            CU_ASSERT(count(svg, ">95 % interval</text>") == 1);
            for (const char *at = svg; (at = strstr(at, "fill-opacity")) != NULL; at++)
                if (sscanf(at, "fill-opacity%*[^0-9]%lf", &opacity) == 1 && opacity < 1) {
                    CU_ASSERT(opacity > 0.29);
                    n++;
                }
            CU_ASSERT(n > 0);
            free(svg);
        }
}

static void height_of(const char *svg, double *h)
{
    double w;
    const char *view = strstr(svg, "viewBox=\"0 0 ");
    CU_ASSERT_FATAL(view && sscanf(view, "viewBox=\"0 0 %lf %lf", &w, h) == 2);
    *h /= 100;
}

/* Sixteen settings fit a column; their bars have their names and numbers. */
static void a_column_has_room_for_many_bars(void)
{
    static const char *const label[4] = {"full cache", "0.2", "0.5, int4", "plan-greedy.json"};
    struct sh_fig_stack bar[16];
    struct sh_fig_stacks stacks = {16, PARTS, tame.part, bar};
    struct sh_fig_data d = {.title = "llama-3.1-70b on H100-SXM: memory of one GPU",
                            .settings = "8192 tokens per sequence", .capacity = &stacks};
    for (int i = 0; i < 16; i++)
        bar[i] = (struct sh_fig_stack){label[i % 4], {16, 48 - 2 * i, 16 + 2 * i}, 79.5, 80,
                                       i % 5 ? "1042 sequences" : "7.1 GiB short"};
    struct sh_err e = {.text = ""};
    struct sh_gp_look look = {.width_in = 3.3};
    char *svg = NULL;
    double h;
    int bad = sh_figure_svg(&sh_figure_capacity, &d, &look, &svg, &e);
    if (bad)
        printf("# %s\n", e.text);
    CU_ASSERT_FATAL(!bad);
    height_of(svg, &h);
    CU_ASSERT(h <= SH_GP_COLUMN + 0.011 && faults(svg, "sixteen bars") == 0);
    CU_ASSERT(count(svg, ">1042</text>") == 12 && count(svg, ">7.1 GiB short</text>") == 4);
    free(svg);
}

/* A scale tells nothing with one number. */
static void scales_of_colours_have_two_numbers(void)
{
    for (double width = 2.2; width < 9; width += 1.1) {
        struct sh_err e = {.text = ""};
        struct sh_gp_look look = {.width_in = width, .height_in = 9};
        char *svg = NULL;
        int bad = sh_figure_svg(&sh_figure_heatmap, &tame.d, &look, &svg, &e);
        if (bad)
            printf("# %g in: %s\n", width, e.text);
        CU_ASSERT(!bad);
        int n = bad ? 0 : (count(svg, ">10⁻") + count(svg, "0.0") > 0) + (count(svg, ">1<") + count(svg, "> 1<") > 0);
        printf("# %g in: %d\n", width, n);
        CU_ASSERT(n == 2);
        free(svg);
    }
}

static void heights_are_kept_or_refused(void)
{
    for (int i = 0; sh_figures[i]; i++) {
        int n_drawn = 0;
        for (double h = 0.6; h < 8; h *= 1.35) {
            struct sh_err e = {.text = ""};
            struct sh_gp_look look = {.width_in = 3.3, .height_in = h, .no_title = 1};
            char *svg = NULL, *what = xasprintf("%s, %.2f in tall", sh_figures[i]->name, h);
            double found;
            if (sh_figure_svg(sh_figures[i], &tame.d, &look, &svg, &e)) {
                CU_ASSERT(e.status == SH_MISUSED && strstr(e.text, "--height") && !n_drawn);
            } else {
                height_of(svg, &found);
                CU_ASSERT(fabs(found - h) < 0.011 && faults(svg, what) == 0);
                n_drawn++;
            }
            free(what);
            free(svg);
        }
        CU_ASSERT(n_drawn > 0 && n_drawn < 9);
    }
}

/* A column of a paper is no taller than SH_GP_COLUMN unless asked; nearly all figures fit one. */
static void columns_are_low(void)
{
    for (int i = 0; sh_figures[i]; i++) {
        struct sh_err e = {.text = ""};
        struct sh_gp_look look = {.width_in = 3.3};
        char *svg = NULL;
        double h = 0;
        if (!sh_figure_svg(sh_figures[i], &tame.d, &look, &svg, &e))
            height_of(svg, &h);
        if (h <= 0)
            printf("# %s\n", e.text);
        CU_ASSERT(h > 0 && h <= SH_GP_COLUMN + 0.011);
        free(svg);
    }
}

static int write_pictures(const char *folder)
{
    int bad = 0;
    for (int i = 0; sh_figures[i]; i++)
        for (size_t k = 0; k < sizeof widths / sizeof *widths; k++)
            for (int crowded = 0; crowded < 2; crowded++) {
                struct sh_err e = {.text = ""};
                struct sh_gp_look look = {.width_in = widths[k]};
                char *path = xasprintf("%s/%s-%g%s.png", folder, sh_figures[i]->name, widths[k],
                                       crowded ? "-crowd" : "");
                const struct sh_fig_data *d = crowded ? &crowd.d : &tame.d;
                if (sh_figure_plot(sh_figures[i], d, path, SH_GP_DRAW, &look, &e)) {
                    bad = printf("# %s: %s\n", path, e.text) > 0;
                }
                free(path);
            }
    return bad;
}

int main(int argc, char **argv)
{
    static const struct tap_test tests[] = {
        {"the measure finds what overlaps and what is cut", the_measure_finds_faults},
        {"no text overlaps another or is cut, at 3.3 in, 7 in and a figure's own width", no_text_overlaps_or_is_cut},
        {"nor on a page that scrolls", nothing_overlaps_on_phones},
        {"scales suit the lines, not a limit far away", scales_suit_the_lines},
        {"an axis is cut off where its chart says, and the limit is there", far_lines_are_cut_off},
        {"what has no colour of its own is told", what_has_no_colour_is_told},
        {"an interval has one entry and bands that can be seen", intervals_have_one_entry},
        {"sixteen bars fit a column", a_column_has_room_for_many_bars},
        {"scales of colours have two numbers at least", scales_of_colours_have_two_numbers},
        {"a height is kept, or refused with the one that is needed", heights_are_kept_or_refused},
        {"figures of a column's width are at most 4 in tall", columns_are_low},
        {0}};
    char *gnuplot = sh_gnuplot_find();
    plot_data_fill(&tame, NULL);
    fill_crowd();
    int status = argc == 3 && !strcmp(argv[1], "--write") ? write_pictures(argv[2])
                 : gnuplot ? tap_run("layout", tests) : 77;
    free(gnuplot);
    plot_data_free(&tame);
    return status;
}
