/* SPDX-License-Identifier: Apache-2.0 */
/* The scores of one head, taken in row by row, as the cells of a map (struct sh_fig_map). A map of more than
 * SH_MAP_CELLS positions on a side has several in a cell, whose largest score it shows, so that a lone bright
 * column does not vanish; it is above average where one of them is above the average of its own row, 1 / keys. */
#ifndef SH_PLOTS_SCORE_MAP_H
#define SH_PLOTS_SCORE_MAP_H

#include "plots/fig_data.h"

enum { SH_MAP_CELLS = 512 };

struct sh_score_map;

/* rows, keys: of the map, 1 and up. mark: positions of rows that are kept by themselves, any; not copied. One block
 * of memory, for free(). */
struct sh_score_map *sh_score_map_new(int n_rows, int n_keys, const int *mark, int n_mark);

/* Row q: it sees the keys [first_key, first_key + n_seen), and scores [n] are those of key[0..n), or of these keys
 * in order where key is NULL (n = n_seen). What it sees without a score got nothing. All within the map. */
void sh_score_map_row(struct sh_score_map *m, int q, int first_key, int n_seen, const int *key, const float *score,
                      int n);

/* Without title and labels; what it points to is in the score map. */
struct sh_fig_map sh_score_map_cells(const struct sh_score_map *m);

#endif
