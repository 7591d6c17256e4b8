/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of score maps against scores that are few enough to see what they must be. tests/cli/maps.py has whole ones. */
#include <math.h>
#include <stdlib.h>

#include "plots/score_map.h"
#include "tests/tap.h"

static int same(float a, double b)
{
    return (double)a == b || (isnan(a) && isnan(b));
}

/* 1030 positions a side are 344 cells of 3 x 3: the largest score, above average when one is. */
static void long_maps_are_pooled(void)
{
    enum { N = 1030, CELLS = 344 };
    static float row[N];
    struct sh_score_map *m = sh_score_map_new(N, N, NULL, 0);
    for (int q = 0; q < N; q++) {
        for (int i = 0; i <= q; i++)
            row[i] = 0x1p-17f;
        if (q == 601)
            row[302] = 0.5f;
        if (q == 602)
            row[300] = 0.25f;
        sh_score_map_row(m, q, 0, q + 1, NULL, row, q + 1);
    }
    struct sh_fig_map map = sh_score_map_cells(m);
    CU_ASSERT_FATAL(map.by_row == 3 && map.by_col == 3 && map.n_rows == N && map.n_cols == N && map.most_keys == N);
    CU_ASSERT(same(map.score[200 * CELLS + 100], 0.5));
    CU_ASSERT(same(map.score[200 * CELLS + 101], 0x1p-17));
    CU_ASSERT(same(map.score[200 * CELLS + 201], NAN));
    int above = 0, masked = 0;
    for (int i = 0; i < CELLS * CELLS; i++) {
        above += map.above[i] > 0;
        masked += isnan(map.above[i]);
    }
    CU_ASSERT(above == 1 && same(map.above[200 * CELLS + 100], 1) && masked == CELLS * (CELLS - 1) / 2);
    free(m);
}

/* The average of a row is over the keys that it sees, whether they have scores or not. */
static void rows_have_their_own_average(void)
{
    static const float first[] = {0.25f, 0.5f}, second[] = {0.375f};
    static const int key[] = {2, 4}, other[] = {1}, mark[] = {7, 1, -1};
    static const double score[] = {NAN, NAN, 0.25, 0, 0.5, 0, 0, 0.375, 0, NAN, NAN, NAN},
                        above[] = {NAN, NAN, 0, 0, 1, 0, 0, 1, 0, NAN, NAN, NAN};
    struct sh_score_map *m = sh_score_map_new(2, 6, mark, 3);
    sh_score_map_row(m, 0, 2, 4, key, first, 2);
    sh_score_map_row(m, 1, 0, 3, other, second, 1);
    struct sh_fig_map map = sh_score_map_cells(m);
    for (int i = 0; i < 12; i++)
        CU_ASSERT(same(map.score[i], score[i]) && same(map.above[i], above[i]));
    for (int c = 0; c < 6; c++)
        CU_ASSERT(same(map.single[c], score[6 + c]));
    CU_ASSERT(map.most_keys == 4 && map.by_row == 1 && map.by_col == 1);
    free(m);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"long maps are pooled", long_maps_are_pooled},
        {"rows have their own average", rows_have_their_own_average},
        {NULL, NULL}};
    return tap_run("score map", tests);
}
