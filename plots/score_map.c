/* SPDX-License-Identifier: Apache-2.0 */
#include "plots/score_map.h"

#include <math.h>

#include "src/base/mem.h"

struct sh_score_map {
    int n_rows, n_keys, by_row, by_key;
    int across;                         /* cells of a row                                         */
    int most_keys;
    const int *mark;
    int n_mark;
    float *score, *above, *single;      /* [cells], [cells], [n_mark, across]: of `cell`          */
    float cell[];
};

static int per_cell(int n)
{
    return (n - 1) / SH_MAP_CELLS + 1;
}

struct sh_score_map *sh_score_map_new(int n_rows, int n_keys, const int *mark, int n_mark)
{
    int by_row = per_cell(n_rows), by_key = per_cell(n_keys), across = (n_keys - 1) / by_key + 1;
    size_t wide = (size_t)across, cells = (size_t)((n_rows - 1) / by_row + 1) * wide;
    size_t n = 2 * cells + (size_t)n_mark * wide;
    struct sh_score_map *m = xmalloc(sizeof *m + n * sizeof m->cell[0]);
    *m = (struct sh_score_map){.n_rows = n_rows, .n_keys = n_keys, .by_row = by_row, .by_key = by_key,
                               .across = across, .mark = mark, .n_mark = n_mark};
    m->score = m->cell;
    m->above = m->score + cells;
    m->single = m->above + cells;
    for (size_t i = 0; i < n; i++)
        m->cell[i] = NAN;
    return m;
}

/* The number of the row among those that are kept by themselves and are in the map; -1: none. */
static int single_of(const struct sh_score_map *m, int q)
{
    for (int i = 0, at = 0; i < m->n_mark; i++) {
        if (m->mark[i] == q)
            return at;
        at += m->mark[i] >= 0 && m->mark[i] < m->n_rows;
    }
    return -1;
}

/* NaN is below everything. */
static void raise(float *cell, float x)
{
    *cell = isnan(*cell) || x > *cell ? x : *cell;
}

static void take(const struct sh_score_map *m, float *cells, int first_key, int n_seen, const int *key,
                 const float *score, int n)
{
    for (int j = first_key; j < first_key + n_seen; j++)
        raise(&cells[j / m->by_key], 0);
    for (int i = 0; i < n; i++)
        raise(&cells[(key ? key[i] : first_key + i) / m->by_key], score[i]);
}

void sh_score_map_row(struct sh_score_map *m, int q, int first_key, int n_seen, const int *key, const float *score,
                      int n)
{
    size_t at = (size_t)(q / m->by_row) * (size_t)m->across;
    int single = single_of(m, q);
    m->most_keys = n_seen > m->most_keys ? n_seen : m->most_keys;
    take(m, m->score + at, first_key, n_seen, key, score, n);
    take(m, m->above + at, first_key, n_seen, NULL, NULL, 0);
    for (int i = 0; i < n; i++)
        if ((double)score[i] > 1.0 / n_seen)
            m->above[at + (size_t)((key ? key[i] : first_key + i) / m->by_key)] = 1;
    if (single >= 0)
        take(m, m->single + (size_t)single * (size_t)m->across, first_key, n_seen, key, score, n);
}

struct sh_fig_map sh_score_map_cells(const struct sh_score_map *m)
{
    return (struct sh_fig_map){.n_rows = m->n_rows, .n_cols = m->n_keys, .by_row = m->by_row, .by_col = m->by_key,
                               .most_keys = m->most_keys, .score = m->score, .above = m->above, .single = m->single};
}
