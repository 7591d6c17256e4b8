/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a few rows with f32 weights (gemm_few_rows.h): outputs in the lanes of vectors, one number of x for
 * all of them. */
#include "kernels/cpu/gemm_few_rows_out.h"
#include "kernels/cpu/variant.h"

enum { TILE = 4 * CPU_FLOATS };         /* outputs whose sums stay in registers */

/* sum[r][0 .. TILE) += x[r] w over n inputs. `rows` is a constant wherever this is inlined. */
static inline __attribute__((always_inline)) void tile(const float *w, size_t step, const float *x, size_t stride,
                                                       int rows, int n, float *sum)
{
    vec part[FEW_ROWS][4];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < 4; c++)
            part[r][c] = *(const vec *)(sum + r * FEW_COLS + c * CPU_FLOATS);
    for (int i = 0; i < n; i++, w += step)
        for (int c = 0; c < 4; c++) {
            vec v = *(const vec *)(w + c * CPU_FLOATS);
            for (int r = 0; r < rows; r++)
                part[r][c] += x[(size_t)r * stride + (size_t)i] * v;
        }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < 4; c++)
            *(vec *)(sum + r * FEW_COLS + c * CPU_FLOATS) = part[r][c];
}

static void tile_of(const float *w, size_t step, const float *x, size_t stride, int rows, int n, float *sum)
{
    switch (rows) {
    case 1: tile(w, step, x, stride, 1, n, sum); break;
    case 2: tile(w, step, x, stride, 2, n, sum); break;
    case 3: tile(w, step, x, stride, 3, n, sum); break;
    default: tile(w, step, x, stride, 4, n, sum);
    }
}

/* Outputs that no whole tile can read. */
static void rest_of(const float *w, size_t step, const float *x, size_t stride, int rows, int n, int cols, float *sum)
{
    for (int i = 0; i < n; i++, w += step)
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < cols; c++)
                sum[r * FEW_COLS + c] += x[(size_t)r * stride + (size_t)i] * w[c];
}

/* few_sums; of a padded panel all of it. */
static void sums(const struct few *a, int first, int n, int row, int rows, float *sum)
{
    const struct few_layout *l = a->w;
    const float *w = (const float *)l->at + (size_t)(first / l->wide) * l->panel + (size_t)(first % l->wide);
    const float *x = (const float *)a->x.at + (size_t)row * a->x.stride;
    size_t step = (size_t)l->wide;
    int in = a->x.cols, cols = l->wide == FEW_COLS ? FEW_COLS : n, c = 0;
    memset(sum, 0, (size_t)(FEW_ROWS * FEW_COLS) * sizeof *sum);
    for (; c + TILE <= cols; c += TILE)
        tile_of(w + c, step, x, a->x.stride, rows, in, sum + c);
    if (c < cols)
        rest_of(w + c, step, x, a->x.stride, rows, in, cols - c, sum + c);
}

void CPU_NAME(cpu_few)(const struct few *a, int n, int n_threads)
{
    few_run(a, n, n_threads, sums);
}
