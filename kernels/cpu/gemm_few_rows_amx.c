/* SPDX-License-Identifier: Apache-2.0 */
/* Products of some rows with bf16 weights (gemm_few_rows.h) by the processor's tiles: 16 rows of x times 32 inputs
 * times 16 outputs in one instruction. Panels of weights lie as tiles want them (fold 2: pairs of inputs side by
 * side). While a thread multiplies with one panel it asks for the next one, at several places (few_ask says why), so
 * that a batch is read as fast as one row. */
#include "kernels/cpu/amx.h"
#include "kernels/cpu/gemm_few_rows_out.h"
#include "kernels/cpu/variant.h"

enum {
    ROWS = AMX_SIDE, INS = AMX_DEPTH, PAIRS = INS / 2,      /* of x, of the inputs of one tile     */
    PAIR = 2 * FEW_COLS,                        /* numbers of a panel                              */
    QUARTER = PAIRS * PAIR / FEW_PLACES         /* of what is multiplied with at a time            */
};

/* Sums in tiles 0 to 3, x in 4, weights in 5. */
static void shape_tiles(int rows)
{
    struct amx_config c = {.palette = 1};
    for (int i = 0; i < 6; i++) {
        c.row_bytes[i] = 64;
        c.rows[i] = (uint8_t)(i < 5 ? rows : PAIRS);
    }
    amx_fence(&c);
    _tile_loadconfig(&c);
}

/* Sums of FEW_COLS outputs += x w of INS inputs; strides in bytes. */
static inline __attribute__((always_inline)) void add_tiles(const uint16_t *w, const uint16_t *x, size_t x_stride)
{
    const size_t w_stride = PAIR * sizeof *w;
    amx_fence(w);
    _tile_loadd(4, x, x_stride);
    _tile_loadd(5, w, w_stride);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(5, w + 32, w_stride);
    _tile_dpbf16ps(1, 4, 5);
    _tile_loadd(5, w + 64, w_stride);
    _tile_dpbf16ps(2, 4, 5);
    _tile_loadd(5, w + 96, w_stride);
    _tile_dpbf16ps(3, 4, 5);
}

/* The inputs that do not fill a tile, padded with zeros. */
static void add_rest(const uint16_t *w, const uint16_t *x, size_t stride, int rows, int n)
{
    uint16_t whole_w[PAIRS * PAIR] = {0}, whole_x[ROWS * INS] = {0};
    memcpy(whole_w, w, (size_t)((n + 1) / 2) * PAIR * sizeof *w);
    for (int r = 0; r < rows; r++)
        memcpy(whole_x + r * INS, x + (size_t)r * stride, (size_t)n * sizeof *x);
    add_tiles(whole_w, whole_x, INS * sizeof *x);
}

/* sum [rows, FEW_COLS] = x w of one panel and n inputs; ask: the next panel is wanted. */
static void panel_sums(const uint16_t *w, size_t panel, const uint16_t *x, size_t stride, int rows, int n, int ask,
                       float *sum)
{
    int i = 0;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (const uint16_t *next = w + panel; i + INS <= n; i += INS, w += PAIRS * PAIR, next += QUARTER) {
        for (size_t k = 0; k < FEW_PLACES && ask; k++)
            few_ask_next(next + k * (panel / FEW_PLACES), QUARTER * sizeof *w);
        add_tiles(w, x + i, stride * sizeof *x);
    }
    if (i < n)
        add_rest(w, x + i, stride, rows, n - i);
    _tile_stored(0, sum, FEW_COLS * sizeof *sum);
    _tile_stored(1, sum + 16, FEW_COLS * sizeof *sum);
    _tile_stored(2, sum + 32, FEW_COLS * sizeof *sum);
    _tile_stored(3, sum + 48, FEW_COLS * sizeof *sum);
}

static void block(const struct few *a, int index)
{
    int first = index * FEW_COLS, n = few_outputs(a, first);
    for (int row = 0, rows; row < a->x.rows; row += rows) {
        float sum[ROWS * FEW_COLS] __attribute__((aligned(64)));
        rows = a->x.rows - row < ROWS ? a->x.rows - row : ROWS;
        if (a->x.rows > ROWS)
            shape_tiles(rows);
        panel_sums((const uint16_t *)a->w->at + (size_t)index * a->w->panel, a->w->panel,
                   (const uint16_t *)a->x.at + (size_t)row * a->x.stride, a->x.stride, rows, a->x.cols, !row, sum);
        for (int r = 0; r < rows; r++)
            few_out(a, row + r, first, n, sum + r * FEW_COLS);
    }
}

static void work(void *arg, struct sh_member *me)
{
    const struct few_run *run = arg;
    struct amx_config before;
    amx_begin(&before);
    shape_tiles(run->a->x.rows < ROWS ? run->a->x.rows : ROWS);
    for (int b; sh_member_take(me, &b);) {
        const struct few *of = few_of(run->a, &b);
        block(of, b);
    }
    amx_end(&before);
}

void cpu_few_amx(const struct few *a, int n, int n_threads)
{
    sh_team_run(n_threads, few_blocks_of_all(a, n), work, &(struct few_run){.a = a, .n = n});
}
