/* SPDX-License-Identifier: Apache-2.0 */
/* What heatmap draws: the scores of single heads in cells (score_map.h makes them). */
#ifndef PLOTS_FIG_HEATMAP_H
#define PLOTS_FIG_HEATMAP_H

struct sh_fig_map {
    const char *title;              /* "layer 12, head 3"                                        */
    int n_rows, n_cols;             /* positions: queries, keys                                  */
    int by_row, by_col;             /* of them in a cell                                         */
    int most_keys;                  /* that a row sees                                           */
    const float *score;             /* [cells down, cells across]: the largest of the cell's, 0..1; NaN: masked */
    const float *above;             /* likewise 1: one of them is above its row's average; 0; NaN */
    const float *single;            /* [of the figure's marks those below n_rows, cells across]: their rows alone */
    const char *const *row_label;   /* [n_rows] token texts or NULL; shown when n_rows <= 48     */
    const char *const *col_label;   /* [n_cols] likewise                                         */
};

struct sh_fig_maps {
    int n;
    const struct sh_fig_map *map;   /* [n] */
    int n_marks;                    /* 0 to 8; those outside a map are left out there            */
    const int *marks;               /* [n_marks] query positions whose rows are shown one by one */
};

#endif
