/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a few rows with bf16 weights (gemm_few_rows.h) by the processor's own bf16 products: pairs of inputs
 * lie together in the weight (fold 2), outputs in the lanes. Compiled into the avx512 variant; runs where
 * cpu_runs_bf16() says so. */
#include "kernels/cpu/gemm_few_rows_out.h"
#include "kernels/cpu/variant.h"

#ifdef CPU_HAS_BF16
#include <immintrin.h>

typedef uint32_t pair __attribute__((aligned(2), may_alias));   /* two neighbouring numbers */

#define BF16 __attribute__((target("avx512bf16")))

/* The pair of inputs i and i + 1 of a row with n of them. */
BF16 static inline __m512bh both(const uint16_t *x, int i, int n)
{
    uint32_t bits = i + 1 < n ? *(const pair *)(const void *)(x + i) : x[i];
    return (__m512bh)_mm512_set1_epi32((int)bits);
}

/* part[r] += x[r] w of one pair of inputs and FEW_COLS outputs */
BF16 static inline __attribute__((always_inline)) void pair_of(__m512 (*part)[4], const uint16_t *w, const uint16_t *x,
                                                               size_t stride, int rows, int i, int n)
{
    __m512bh v[4];
    for (int c = 0; c < 4; c++)
        v[c] = (__m512bh)_mm512_loadu_si512(w + c * 32);
    for (int r = 0; r < rows; r++) {
        __m512bh at = both(x + (size_t)r * stride, i, n);
        for (int c = 0; c < 4; c++)
            part[r][c] = _mm512_dpbf16_ps(part[r][c], v[c], at);
    }
}

/* sum[r] = x[r] w for FEW_COLS outputs and n inputs. One row's weights are read at four places in turn, ahead: a core
 * gets more out of memory than from one place. */
BF16 static inline __attribute__((always_inline)) void tile(const uint16_t *w, size_t panel, const uint16_t *x,
                                                            size_t stride, int rows, int n, float *sum)
{
    enum { PAIR = 2 * FEW_COLS, AHEAD = FEW_AHEAD / (2 * PAIR) };       /* numbers of the weight; pairs */
    int places = rows == 1 ? FEW_PLACES : 1, pairs = (n + 1) / 2, each = pairs / places;
    __m512 part[FEW_PLACES > FEW_ROWS ? FEW_PLACES : FEW_ROWS][4];
    for (int r = 0; r < FEW_PLACES || r < rows; r++)
        for (int c = 0; c < 4; c++)
            part[r][c] = _mm512_setzero_ps();
    for (int i = 0; i < each; i++)
        for (int p = 0; p < places; p++) {
            int at = p * each + i;
            size_t ahead = (size_t)(at + AHEAD) * PAIR;
            if (i + AHEAD >= each && places > 1)        /* where this place of the next panel begins */
                ahead += panel - (size_t)each * PAIR;
            few_ask(w + ahead, PAIR * sizeof *w);
            pair_of(part + p, w + (size_t)at * PAIR, x, stride, rows, 2 * at, n);
        }
    for (int at = places * each; at < pairs; at++)
        pair_of(part, w + (size_t)at * PAIR, x, stride, rows, 2 * at, n);
    for (int p = 1; p < places; p++)
        for (int c = 0; c < 4; c++)
            part[0][c] += part[p][c];
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < 4; c++)
            _mm512_storeu_ps(sum + r * FEW_COLS + c * 16, part[r][c]);
}

BF16 static void tile_of(const uint16_t *w, size_t panel, const uint16_t *x, size_t stride, int rows, int n, float *sum)
{
    switch (rows) {
    case 1: tile(w, panel, x, stride, 1, n, sum); break;
    case 2: tile(w, panel, x, stride, 2, n, sum); break;
    case 3: tile(w, panel, x, stride, 3, n, sum); break;
    default: tile(w, panel, x, stride, 4, n, sum);
    }
}

/* few_sums */
static void sums(const struct few *a, int first, int n, int row, int rows, float *sum)
{
    (void)n;                            /* panels are padded */
    tile_of((const uint16_t *)a->w->at + (size_t)(first / FEW_COLS) * a->w->panel, a->w->panel,
            (const uint16_t *)a->x.at + (size_t)row * a->x.stride, a->x.stride, rows, a->x.cols, sum);
}

void CPU_NAME(cpu_few_bf16)(const struct few *a, int n, int n_threads)
{
    few_run(a, n, n_threads, sums);
}
#endif
