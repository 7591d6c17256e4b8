/* SPDX-License-Identifier: Apache-2.0 */
/* Products of many rows of f32 numbers by tiles of bf16 pieces (amx.h). A block of x and a block of the weight
 * are packed by all threads; then each takes a few tiles of sums after the other:
 *
 *     for each block of rows, of outputs, of inputs:  pack x (once, if it has one block of inputs), pack w
 *         for each task of sums:                      sums (+)= x w^T, and after the last inputs few_out
 *
 * A block of either is what a second-level cache holds in part and a third-level cache whole. Every sum is made
 * in a fixed order, whatever the number of threads and of rows. */
#include "kernels/cpu/amx.h"
#include "kernels/cpu/few_out.h"
#include "kernels/cpu/variant.h"

#ifdef CPU_HAS_AMX

enum {
    BLOCK_ROWS = 1024, BLOCK_COLS = 1024, BLOCK_DEPTH = 1024,
    TASK_ROWS = 64, TASK_COLS = 128,
    PAIR = 2 * AMX_SIDE                         /* amx_tiles takes two tiles at a time              */
};

struct part { int at, n; };                     /* of a dimension                                   */

struct many {
    const struct few *f;
    uint16_t *a, *b;                            /* packed blocks of x and of the weight             */
    float *sum;                                 /* [rows.n, stride]                                 */
    size_t stride;
    struct part rows, cols, depth;              /* the blocks                                       */
};

static int at_most(int n, int most)
{
    return n < most ? n : most;
}

static int whole_pairs(int n)
{
    return (n + PAIR - 1) / PAIR * PAIR;
}

static int steps_of(int depth)
{
    return (depth + AMX_DEPTH - 1) / AMX_DEPTH;
}

/* Numbers of a packed tile of rows or columns. */
static size_t tile_numbers(int depth)
{
    return (size_t)steps_of(depth) * AMX_PIECES * AMX_TILE;
}

/* Where the parts of a->room begin; its floats. */
static size_t lay_out(struct many *m, int rows, int in, int out)
{
    size_t r = (size_t)whole_pairs(at_most(rows, BLOCK_ROWS)), c = (size_t)whole_pairs(at_most(out, BLOCK_COLS));
    size_t tile = tile_numbers(at_most(in, BLOCK_DEPTH));
    size_t a = r / AMX_SIDE * tile, b = c / AMX_SIDE * tile;
    if (m->f) {
        m->a = (uint16_t *)(void *)m->f->room;
        m->b = m->a + a;
        m->sum = m->f->room + (a + b) / 2;
        m->stride = c;
    }
    return (a + b) / 2 + r * c;
}

size_t CPU_NAME(cpu_many_room)(int rows, int in, int out)
{
    struct many m = {0};
    return lay_out(&m, rows, in, out);
}

static __mmask16 lanes(int n)
{
    return (__mmask16)(n >= 16 ? 0xffff : n > 0 ? (1 << n) - 1 : 0);
}

static void pack_rows(const struct many *m, int tile)
{
    const struct sh_mat *x = &m->f->x;
    uint16_t *to = m->a + (size_t)tile * tile_numbers(m->depth.n);
    int first = m->rows.at + tile * AMX_SIDE, last = m->rows.at + m->rows.n - 1;
    for (int i = 0; i < AMX_SIDE; i++) {
        int row = first + i < last ? first + i : last;          /* rows behind the last are nobody's */
        const float *from = (const float *)x->at + (size_t)row * x->stride + m->depth.at;
        uint16_t *at = to;
        for (int k = 0; k < m->depth.n; k += AMX_DEPTH, at += AMX_PIECES * AMX_TILE)
            amx_put_row(at, i, _mm512_maskz_loadu_ps(lanes(m->depth.n - k), from + k),
                        _mm512_maskz_loadu_ps(lanes(m->depth.n - k - 16), from + k + 16), AMX_PIECES);
    }
}

static void pack_cols(const struct many *m, int tile)
{
    const struct few_layout *w = m->f->w;
    uint16_t *to = m->b + (size_t)tile * tile_numbers(m->depth.n);
    int first = m->cols.at + tile * AMX_SIDE;
    size_t wide = (size_t)w->wide;
    __mmask16 there = lanes(m->f->out.cols - first);
    const float *from = (const float *)w->at + (size_t)(first / w->wide) * w->panel + (size_t)m->depth.at * wide +
                        (size_t)(first % w->wide);
    for (int k = 0; k < m->depth.n; k += AMX_DEPTH, to += AMX_PIECES * AMX_TILE)
        for (int i = 0; i < AMX_DEPTH / 2; i++) {
            int at = k + 2 * i;
            const float *pair = from + (size_t)at * wide;
            amx_put_pair(to, i, _mm512_maskz_loadu_ps(at < m->depth.n ? there : 0, pair),
                         _mm512_maskz_loadu_ps(at + 1 < m->depth.n ? there : 0, pair + wide), AMX_PIECES);
        }
}

/* Sums of TASK_ROWS x TASK_COLS, from these on, within the blocks. */
static void run_task(const struct many *m, int row, int col)
{
    int rows = at_most(m->rows.n - row, TASK_ROWS), cols = at_most(m->cols.n - col, TASK_COLS);
    int add = m->depth.at > 0, last = m->depth.at + m->depth.n == m->f->x.cols;
    size_t tile = tile_numbers(m->depth.n);
    float *sum = m->sum + (size_t)row * m->stride + (size_t)col;
    for (int j = 0; j < cols; j += PAIR)
        for (int i = 0; i < rows; i += PAIR)
            amx_tiles(sum + (size_t)i * m->stride + j, m->stride, m->a + (size_t)((row + i) / AMX_SIDE) * tile, tile,
                      m->b + (size_t)((col + j) / AMX_SIDE) * tile, tile, steps_of(m->depth.n), AMX_PIECES, add);
    for (int i = 0; i < rows && last; i++)
        for (int j = 0; j < cols; j += FEW_COLS)
            few_out(m->f, m->rows.at + row + i, m->cols.at + col + j, at_most(cols - j, FEW_COLS),
                    sum + (size_t)i * m->stride + j);
}

/* The block by all threads of a team; each calls it. */
static void run_block(const struct many *m, int has_rows)
{
    int n_task = (m->rows.n + TASK_ROWS - 1) / TASK_ROWS, n_across = (m->cols.n + TASK_COLS - 1) / TASK_COLS;
    if (!has_rows) {
#pragma omp for schedule(static) nowait
        for (int i = 0; i < whole_pairs(m->rows.n) / AMX_SIDE; i++)
            pack_rows(m, i);
    }
#pragma omp for schedule(static)
    for (int i = 0; i < whole_pairs(m->cols.n) / AMX_SIDE; i++)
        pack_cols(m, i);
#pragma omp for schedule(dynamic, 1)
    for (int t = 0; t < n_task * n_across; t++)
        run_task(m, t % n_task * TASK_ROWS, t / n_task * TASK_COLS);
}

static void run_rows(struct many *m)
{
    int in = m->f->x.cols, out = m->f->out.cols;
    for (m->cols.at = 0; m->cols.at < out; m->cols.at += BLOCK_COLS)
        for (m->depth.at = 0; m->depth.at < in; m->depth.at += BLOCK_DEPTH) {
            m->cols.n = at_most(out - m->cols.at, BLOCK_COLS);
            m->depth.n = at_most(in - m->depth.at, BLOCK_DEPTH);
            run_block(m, m->cols.at && in <= BLOCK_DEPTH);
        }
}

void CPU_NAME(cpu_many)(const struct few *a, int n_threads)
{
#pragma omp parallel num_threads(n_threads)
    {
        struct many m = {.f = a};               /* each thread counts for itself */
        struct amx_config before;
        lay_out(&m, a->x.rows, a->x.cols, a->out.cols);
        amx_begin(&before);
        for (m.rows.at = 0; m.rows.at < a->x.rows; m.rows.at += BLOCK_ROWS) {
            m.rows.n = at_most(a->x.rows - m.rows.at, BLOCK_ROWS);
            run_rows(&m);
        }
        amx_end(&before);
    }
}
#endif
