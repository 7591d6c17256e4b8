/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up data for every figure, the same on every machine: all numbers are k/1024 or whole. */
#ifndef TESTS_UNIT_PLOT_DATA_H
#define TESTS_UNIT_PLOT_DATA_H

#include "plots/figure.h"
#include "plots/score_map.h"

enum { MAP = 12, LAYERS = 6, ALPHAS = 3, RECENTS = 4, HEADS = 3, SERIES = 2, PANELS = 2,
       CURVES = 9, SHARES = 5 };

enum { TICKS = 5, PARTS = 3 };

struct plot_data {
    struct sh_fig_data d;               /* fits every figure: these */
    struct sh_fig_maps maps;
    struct sh_fig_panels all_panels;
    struct sh_fig_grids grids;
    struct sh_fig_head_maps head_maps;
    struct sh_fig_curve_sets sets;
    struct sh_fig_drops drops;
    struct sh_fig_plans plans;
    struct sh_fig_charts all_charts;
    struct sh_fig_measured_panels all_measured;
    struct sh_fig_map map;              /* of `cells`       */
    struct sh_score_map *cells;
    struct sh_fig_series series[PANELS][SERIES];
    struct sh_fig_panel panels[PANELS];
    struct sh_fig_grid grid;
    struct sh_fig_heads heads;
    struct sh_fig_line lines[2];
    struct sh_fig_chart charts[2];
    struct sh_fig_stack stack[2];
    struct sh_fig_stacks stacks;
    struct sh_fig_measured_line measured_line[2];
    struct sh_fig_measured measured[3];
    double measured_value[2][4][TICKS]; /* x, y, low, high */
    double tick[TICKS], over[2][TICKS];
    const char *part[PARTS];
    int marks[2], k[MAP][MAP];          /* scores are k / 1024, causal */
    float score[MAP][MAP];
    double line[PANELS][SERIES][4][LAYERS];     /* ratio, density, min_head, max_head */
    double lift[ALPHAS][RECENTS], head_ratio[LAYERS][HEADS], head_lift[LAYERS][HEADS];
    const char *tokens[MAP];
    struct sh_fig_curve curve[CURVES];
    struct sh_fig_curves curves;
    struct sh_fig_dropped dropped;
    struct sh_fig_plan plan;
    double share[SHARES], kept[CURVES][6][SHARES];  /* mass, low, high, no_sink, pivotal, error */
    double drop[7][SHARES];             /* measured, least, most, law, law_cut, printed, error */
    double tokens_kept[LAYERS][HEADS];
};

/* Every string of the data is `foreign`, or a tame one where that is NULL. It points into *p. */
void plot_data_fill(struct plot_data *p, const char *foreign);
void plot_data_free(struct plot_data *p);

#endif
