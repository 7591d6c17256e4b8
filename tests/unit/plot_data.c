/* SPDX-License-Identifier: Apache-2.0 */
/* See plot_data.h. Missing values (NaN) stand where a reader of the tests can find them: the ratio
 * of series 1 of panel 1 in layer 2, the lift of the last grid cell, head 1 of layer 4, the mass of
 * curve 3 at the least share and its height, the printed theorem at all shares but two, the plan's
 * head 2 of layer 5. */
#include "tests/unit/plot_data.h"

#include <math.h>
#include <stdlib.h>

#include "src/base/rng.h"

static double thousandth(int i, int low, int high)
{
    return (low + (int)(sh_rng(7, (uint64_t)i) % (unsigned)(high - low + 1))) / 1024.0;
}

static void fill_map(struct plot_data *p, const char *foreign)
{
    static const char *const words[MAP] = {"<s>",   "The", " quick", " brown", " fox", "'s",
                                           " tail", " is", " 50",    "%",      " red", "."};
    for (int r = 0; r < MAP; r++)
        for (int c = 0; c < MAP; c++) {
            int is_average = r == 7 && c == 2;          /* exactly 1 / n: not significant */
            p->k[r][c] =
                is_average ? 128
                           : (int)(sh_rng(1, (uint64_t)(r * MAP + c)) % (unsigned)(2048 / (r + 1)));
            p->score[r][c] = c > r ? NAN : (float)p->k[r][c] / 1024.0f;
        }
    for (int i = 0; i < MAP; i++)
        p->tokens[i] = foreign ? foreign : words[i];
    p->marks[0] = 5;
    p->marks[1] = 10;
    p->cells = sh_score_map_new(MAP, MAP, p->marks, 2);
    for (int r = 0; r < MAP; r++)
        sh_score_map_row(p->cells, r, 0, r + 1, NULL, p->score[r], r + 1);
    p->map = sh_score_map_cells(p->cells);
    p->map.title = foreign ? foreign : "layer 1, head 2";
    p->map.row_label = p->map.col_label = p->tokens;
}

static void fill_panels(struct plot_data *p, const char *foreign)
{
    static const char *const titles[PANELS] = {"all pivotal tokens (R = 0, K = 1)",
                                               "beyond recency (R = 10, K = 5)"};
    static const char *const labels[SERIES] = {"demo model", "random twin"};
    for (int i = 0; i < PANELS; i++) {
        for (int s = 0; s < SERIES; s++) {
            double(*line)[LAYERS] = p->line[i][s];
            for (int l = 0; l < LAYERS; l++) {
                line[0][l] = thousandth(100 * i + 10 * s + l, s ? 300 : 900, s ? 500 : 1000);
                line[1][l] = thousandth(1000 + 100 * i + 10 * s + l, 100, 300);
                line[2][l] = line[0][l] - 60 / 1024.0;
                line[3][l] = line[0][l] + 20 / 1024.0;
            }
            p->series[i][s] = (struct sh_fig_series){
                foreign ? foreign : labels[s], LAYERS, line[0], line[1], line[2], line[3]};
        }
        p->panels[i] = (struct sh_fig_panel){foreign ? foreign : titles[i], SERIES, p->series[i]};
    }
    for (int k = 0; k < 4; k++)
        if (k != 1)
            p->line[1][1][k][2] = NAN;
}

static void fill_tables(struct plot_data *p, const char *foreign)
{
    static const char *tame[ALPHAS] = {"1/n", "5/n", "0.05"}, *same[ALPHAS];
    static const int recent[RECENTS] = {0, 1, 10, 50};
    for (int a = 0; a < ALPHAS; a++) {
        same[a] = foreign;
        for (int r = 0; r < RECENTS; r++)
            p->lift[a][r] = thousandth(2000 + 10 * a + r, 1024, 20000);
    }
    p->lift[ALPHAS - 1][RECENTS - 1] = NAN;
    for (int l = 0; l < LAYERS; l++)
        for (int h = 0; h < HEADS; h++) {
            p->head_ratio[l][h] = thousandth(3000 + 10 * l + h, 600, 1024);
            p->head_lift[l][h] = thousandth(4000 + 10 * l + h, 1024, 9000);
        }
    p->head_ratio[4][1] = NAN;
    const char *title = foreign ? foreign : "demo model";
    p->grid =
        (struct sh_fig_grid){title, ALPHAS, RECENTS, foreign ? same : tame, recent, p->lift[0]};
    p->heads = (struct sh_fig_heads){title, LAYERS, HEADS, p->head_ratio[0], p->head_lift[0]};
}

/* Curve 0 is a bound, the last keeps more than it may; the seven between need a second dash. */
static void fill_curves(struct plot_data *p, const char *foreign)
{
    static const char *const names[CURVES] = {"oracle", "tova", "roco", "h2o:recent=5", "snapkv",
                                              "window", "random", "knorm", "full"};
    for (int k = 0; k < SHARES; k++)
        p->share[k] = (k + 1) * 0.1;
    for (int i = 0; i < CURVES; i++) {
        double(*y)[SHARES] = p->kept[i];
        for (int k = 0; k < SHARES; k++) {
            int at = 5000 + 100 * i + 10 * k;
            y[0][k] = (900 - 80 * i + 20 * k) / 1024.0;
            y[1][k] = y[0][k] - 16 / 1024.0;
            y[2][k] = y[0][k] + 24 / 1024.0;
            y[3][k] = thousandth(at, 200, 800);
            y[4][k] = thousandth(at + 1, 300, 1000);
            y[5][k] = thousandth(at + 2, 10, 500);
        }
        p->curve[i] = (struct sh_fig_curve){
            .label = foreign ? foreign : names[i], .is_bound = i == 0, .is_over = i == CURVES - 1,
            .n = SHARES, .share = p->share, .mass = y[0], .low = y[1], .high = y[2],
            .no_sink = y[3], .pivotal = y[4], .error = y[5], .height = (930 - 80 * i) / 1024.0};
    }
    p->kept[3][0][0] = p->kept[3][1][0] = p->kept[3][2][0] = NAN;
    p->curve[3].height = NAN;
    p->curves = (struct sh_fig_curves){foreign ? foreign : "demo model",
                                       foreign ? foreign : "0.1 to 0.5", CURVES, p->curve, "book.txt"};
}

static void fill_theory(struct plot_data *p, const char *foreign)
{
    for (int k = 0; k < SHARES; k++) {
        p->drop[0][k] = (400 >> k) / 1024.0;
        p->drop[1][k] = (200 >> k) / 1024.0;
        p->drop[2][k] = (800 >> k) / 1024.0;
        p->drop[3][k] = (300 >> 2 * k) / 1024.0;
        p->drop[4][k] = (320 >> 2 * k) / 1024.0;
        p->drop[5][k] = k < SHARES - 2 ? NAN : (900 - 100 * k) / 1024.0;
        p->drop[6][k] = (96 >> k) / 1024.0;
    }
    double(*d)[SHARES] = p->drop;
    p->dropped = (struct sh_fig_dropped){foreign ? foreign : "demo model", SHARES, p->share, d[0],
                                         d[1], d[2], d[3], d[4], d[5], d[6], p->share};
    for (int l = 0; l < LAYERS; l++)
        for (int h = 0; h < HEADS; h++)
            p->tokens_kept[l][h] = 20 + 7 * l + 3 * h;
    p->tokens_kept[5][2] = NAN;
    p->plan = (struct sh_fig_plan){foreign ? foreign : "h2o, greedy: 37.5 of 256 tokens a head",
                                   LAYERS, HEADS, p->tokens_kept[0]};
}

static void fill_capacity(struct plot_data *p, const char *foreign)
{
    static const char *const names[PARTS] = {"weights", "cache", "left over"};
    for (int k = 0; k < TICKS; k++) {
        p->tick[k] = 1 << k;
        p->over[0][k] = (64 << k) / 1024.0;
        p->over[1][k] = k == 2 ? NAN : (160 << k) / 1024.0;
    }
    for (int i = 0; i < 2; i++) {
        p->lines[i] = (struct sh_fig_line){foreign ? foreign : i ? "full, p99" : "full, p50", TICKS, 0, i, p->tick,
                                           p->over[i], 0, 0};
        p->charts[i] = (struct sh_fig_chart){foreign ? foreign : "time to the first token",
                                             foreign ? foreign : "requests a second",
                                             foreign ? foreign : "seconds", i, i,
                                             i ? 1.5 : NAN, foreign ? foreign : "limit", 2, p->lines, 0};
        p->stack[i] = (struct sh_fig_stack){foreign ? foreign : i ? "0.2" : "full cache", {16, 48 + 8 * i, 16 - 8 * i},
                                            i ? NAN : 79.5, i ? NAN : 80, foreign ? foreign : "42 sequences"};
    }
    for (int k = 0; k < PARTS; k++)
        p->part[k] = foreign ? foreign : names[k];
    p->stacks = (struct sh_fig_stacks){2, PARTS, p->part, p->stack};
}

/* A plain panel, a logarithmic one, and one of a single value without an interval. */
static void fill_measured(struct plot_data *p, const char *foreign)
{
    for (int i = 0; i < 2; i++) {
        double(*v)[TICKS] = p->measured_value[i];
        for (int k = 0; k < TICKS; k++) {
            v[0][k] = k + 1;
            v[1][k] = (2048 + 700 * k * (i + 1)) / 1024.0;
            v[2][k] = v[1][k] - 200 / 1024.0;
            v[3][k] = v[1][k] + 300 / 1024.0;
        }
        v[1][3] = i ? NAN : v[1][3];
        p->measured_line[i] = (struct sh_fig_measured_line){foreign ? foreign : i ? "h2o:recent=25" : "window", TICKS,
                                                            v[0], v[1], i ? v[2] : NULL, i ? v[3] : NULL};
    }
    for (int i = 0; i < 3; i++)
        p->measured[i] = (struct sh_fig_measured){
            .title = foreign ? foreign : "demo model", .x = foreign ? foreign : "times smaller",
            .y = foreign ? foreign : "perplexity", .what = foreign ? foreign : i ? "perplexity" : "accuracy",
            .is_log_x = i > 0, .is_log_y = i > 0, .floor = i ? NAN : 0,
            .ceiling = NAN, .n_lines = i < 2 ? 2 : 1, .lines = p->measured_line};
}

void plot_data_fill(struct plot_data *p, const char *foreign)
{
    fill_curves(p, foreign);
    fill_theory(p, foreign);
    fill_capacity(p, foreign);
    fill_measured(p, foreign);
    fill_map(p, foreign);
    fill_panels(p, foreign);
    fill_tables(p, foreign);
    p->maps = (struct sh_fig_maps){1, &p->map, 2, p->marks};
    p->all_panels = (struct sh_fig_panels){PANELS, p->panels};
    p->grids = (struct sh_fig_grids){1, &p->grid};
    p->head_maps = (struct sh_fig_head_maps){1, &p->heads, foreign ? foreign : "R = 0, K = 1",
                                             foreign ? foreign : "R = 10, K = 5"};
    p->sets = (struct sh_fig_curve_sets){1, &p->curves};
    p->drops = (struct sh_fig_drops){1, &p->dropped};
    p->plans = (struct sh_fig_plans){1, &p->plan};
    p->all_charts = (struct sh_fig_charts){2, p->charts};
    p->all_measured = (struct sh_fig_measured_panels){3, p->measured};
    p->d = (struct sh_fig_data){
        .title = foreign ? foreign : "The demo model on its own text",
        .settings = foreign ? foreign : "alpha 1/n, split 0.5, 12 tokens", .heatmap = &p->maps,
        .persistence = &p->all_panels, .persistence_grid = &p->grids, .heads = &p->head_maps, .budget_curve = &p->sets,
        .leaderboard = &p->sets, .dropped_mass = &p->drops, .allocation = &p->plans, .capacity = &p->stacks,
        .frontier = &p->all_charts, .latency = &p->all_charts, .occupancy = &p->all_charts,
        .compression = &p->all_measured, .quant = &p->all_measured, .drift = &p->all_measured,
        .score_change = &p->all_measured};
}

void plot_data_free(struct plot_data *p)
{
    free(p->cells);
}
