/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a few rows with f32 weights, or 16-bit ones as f32 (gemm_few_rows.h): outputs in the lanes of vectors,
 * one number of x for all of them. Sums are taken in the order of the inputs, with any number of rows. */
#include "kernels/cpu/gemm_few_rows_out.h"
#include "kernels/cpu/variant.h"

enum {
    TILE = 4 * CPU_FLOATS,              /* outputs whose sums stay in registers, ...              */
    TILE_OF_ONE = CPU_FLOATS == 4 ? TILE : FEW_COLS,    /* ... of one row: those of a panel's inputs, in one stream */
    DEEP = 256                          /* inputs of a panel that go through all tiles together: they are cached */
};

struct rows {                           /* of x                                                    */
    const float *at;
    size_t stride;
    int n;
};

/* sum[r][0 .. cols) += x[r] w over n inputs. `type`, `cols` and x.n are constants wherever this is inlined. */
static inline __attribute__((always_inline)) void tile(const char *w, enum sh_type type, size_t step, int cols,
                                                       struct rows x, int n, float *sum)
{
    const size_t bytes = type == SH_F32 ? 4 : 2;
    const int vecs = cols / CPU_FLOATS;
    vec part[FEW_ROWS][FEW_COLS / CPU_FLOATS];
    for (int r = 0; r < x.n; r++)
        for (int c = 0; c < vecs; c++)
            part[r][c] = *(const vec *)(sum + r * FEW_COLS + c * CPU_FLOATS);
    for (int i = 0; i < n; i++, w += step * bytes) {
        if (type != SH_F32)
            few_ask(w + FEW_AHEAD, (size_t)cols * bytes);
        for (int c = 0; c < vecs; c++) {
            vec v = load_vec(type, w + (size_t)(c * CPU_FLOATS) * bytes);
            for (int r = 0; r < x.n; r++)
                part[r][c] += x.at[(size_t)r * x.stride + (size_t)i] * v;
        }
    }
    for (int r = 0; r < x.n; r++)
        for (int c = 0; c < vecs; c++)
            *(vec *)(sum + r * FEW_COLS + c * CPU_FLOATS) = part[r][c];
}

static inline __attribute__((always_inline)) void tile_of(const char *w, enum sh_type type, size_t step, const float *x,
                                                          size_t stride, int rows, int n, float *sum)
{
    switch (rows) {
    case 1: tile(w, type, step, TILE, (struct rows){x, stride, 1}, n, sum); break;
    case 2: tile(w, type, step, TILE, (struct rows){x, stride, 2}, n, sum); break;
    case 3: tile(w, type, step, TILE, (struct rows){x, stride, 3}, n, sum); break;
    default: tile(w, type, step, TILE, (struct rows){x, stride, 4}, n, sum);
    }
}

/* The same of one row and a whole panel. */
static void one_row(const char *w, enum sh_type type, const float *x, int in, float *sum)
{
    for (int c = 0; c < FEW_COLS; c += TILE_OF_ONE)
        switch (type) {
        case SH_F32: tile(w + c * 4, SH_F32, FEW_COLS, TILE_OF_ONE, (struct rows){x, 0, 1}, in, sum + c); break;
        case SH_F16: tile(w + c * 2, SH_F16, FEW_COLS, TILE_OF_ONE, (struct rows){x, 0, 1}, in, sum + c); break;
        case SH_BF16: tile(w + c * 2, SH_BF16, FEW_COLS, TILE_OF_ONE, (struct rows){x, 0, 1}, in, sum + c);
        }
}

/* The same of some rows, for all the panel's tiles. */
static void panel_of(const void *panel, enum sh_type type, const float *x, size_t stride, int rows, int in, float *sum)
{
    for (int i = 0, n; i < in; i += n) {
        const char *w = (const char *)panel + (size_t)i * FEW_COLS * sh_type_bytes(type);
        n = in - i < DEEP ? in - i : DEEP;
        for (int c = 0; c < FEW_COLS; c += TILE)
            switch (type) {
            case SH_F32: tile_of(w + c * 4, SH_F32, FEW_COLS, x + i, stride, rows, n, sum + c); break;
            case SH_F16: tile_of(w + c * 2, SH_F16, FEW_COLS, x + i, stride, rows, n, sum + c); break;
            case SH_BF16: tile_of(w + c * 2, SH_BF16, FEW_COLS, x + i, stride, rows, n, sum + c);
            }
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
    const float *x = (const float *)a->x.at + (size_t)row * a->x.stride, *w = (const float *)l->at + first;
    size_t step = (size_t)l->wide;
    int in = a->x.cols, c = 0;
    memset(sum, 0, (size_t)(FEW_ROWS * FEW_COLS) * sizeof *sum);
    if (l->wide == FEW_COLS) {
        size_t at = (size_t)(first / FEW_COLS) * l->panel * sh_type_bytes(l->type);
        if (rows == 1 && TILE_OF_ONE > TILE)
            one_row((const char *)l->at + at, l->type, x, in, sum);
        else
            panel_of((const char *)l->at + at, l->type, x, a->x.stride, rows, in, sum);
        return;
    }
    for (; c + TILE <= n; c += TILE)
        tile_of((const char *)(w + c), SH_F32, step, x, a->x.stride, rows, in, sum + c);
    if (c < n)
        rest_of(w + c, step, x, a->x.stride, rows, in, n - c, sum + c);
}

/* ---- more than FEW_ROWS rows and 16-bit weights: widened once for all rows, into the first cache ---- */

enum {
    SLAB = 64,                          /* inputs that are widened together                       */
    HIGH = 6, VECS = CPU_FLOATS == 16 ? 4 : 2,  /* rows and vectors of outputs whose sums stay in registers */
    SLAB_ROWS = 32,                     /* rows, at most                                          */
    LINE = 64, LINES = 2                /* bytes of a line; lines that are asked for with an input */
};

struct slab {                           /* of a panel                                             */
    float w[SLAB][FEW_COLS];
    const char *next, *end;             /* what is widened next, as far as it has not been asked for */
};

/* sum[r] += x[r] w over n inputs, outputs from `first` on; lines of the next slab are asked for with each input. `rows`
 * is a constant wherever this is inlined. */
static inline __attribute__((always_inline)) void slab_tile(struct slab *s, int first, int n, const float *x,
                                                            size_t stride, int rows, float (*sum)[FEW_COLS])
{
    const char *next = s->next, *end = s->end;
    vec part[HIGH][VECS];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int c = 0; c < VECS; c++)
            part[r][c] = *(const vec *)(sum[r] + first + c * CPU_FLOATS);
    for (int i = 0; i < n; i++) {
        few_ask(next, LINES * LINE);
        next += next < end ? LINES * LINE : 0;
        vec v[VECS];
        for (int c = 0; c < VECS; c++)
            v[c] = *(const vec *)(s->w[i] + first + c * CPU_FLOATS);
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < VECS; c++)
                part[r][c] += x[(size_t)r * stride + (size_t)i] * v[c];
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int c = 0; c < VECS; c++)
            *(vec *)(sum[r] + first + c * CPU_FLOATS) = part[r][c];
    s->next = next;
}

static void slab_rows(struct slab *s, int first, int n, const float *x, size_t stride, int rows, float (*sum)[FEW_COLS])
{
    switch (rows) {
    case 1: slab_tile(s, first, n, x, stride, 1, sum); break;
    case 2: slab_tile(s, first, n, x, stride, 2, sum); break;
    case 3: slab_tile(s, first, n, x, stride, 3, sum); break;
    case 4: slab_tile(s, first, n, x, stride, 4, sum); break;
    case 5: slab_tile(s, first, n, x, stride, 5, sum); break;
    default: slab_tile(s, first, n, x, stride, HIGH, sum);
    }
}

static void widen(struct slab *s, const char *from, enum sh_type type, int n)
{
    for (int i = 0; i < n; i++, from += 2 * FEW_COLS)
        for (int c = 0; c < FEW_COLS; c += CPU_FLOATS)
            *(vec *)(s->w[i] + c) = type == SH_F16 ? load_vec(SH_F16, from + 2 * c) : load_vec(SH_BF16, from + 2 * c);
}

/* Outputs [first, first + n) of rows [row, row + rows). */
static void slabs(const struct few *a, int first, int n, int row, int rows)
{
    struct slab s __attribute__((aligned(64)));
    float sum[SLAB_ROWS][FEW_COLS] __attribute__((aligned(64)));
    const char *w = (const char *)a->w->at + (size_t)(first / FEW_COLS) * a->w->panel * 2;
    const float *x = (const float *)a->x.at + (size_t)row * a->x.stride;
    int tiles = (rows + HIGH - 1) / HIGH;       /* of about the same height */
    memset(sum, 0, (size_t)rows * sizeof *sum);
    for (int i = 0, ins; i < a->x.cols; i += ins, w += (size_t)ins * FEW_COLS * 2) {
        ins = a->x.cols - i < SLAB ? a->x.cols - i : SLAB;
        widen(&s, w, a->w->type, ins);
        s.next = w + (size_t)ins * FEW_COLS * 2;
        s.end = s.next + SLAB * FEW_COLS * 2;
        for (int tile = 0, r = 0, high; tile < tiles; tile++, r += high) {
            high = (rows - r + tiles - tile - 1) / (tiles - tile);
            for (int c = 0; c < FEW_COLS; c += VECS * CPU_FLOATS)
                slab_rows(&s, c, ins, x + (size_t)r * a->x.stride + i, a->x.stride, high, sum + r);
        }
    }
    for (int r = 0; r < rows; r++)
        few_out(a, row + r, first, n, sum[r]);
}

static void take_blocks(void *arg, struct sh_member *me)
{
    const struct few_run *run = arg;
    for (int b; sh_member_take(me, &b);) {
        const struct few *of = few_of(run->a, &b);
        int first = b * FEW_COLS, n = of->out.cols - first < FEW_COLS ? of->out.cols - first : FEW_COLS;
        if (of->x.rows <= FEW_ROWS || of->w->type == SH_F32) {
            few_block(of, b, sums);
            continue;
        }
        for (int row = 0; row < of->x.rows; row += SLAB_ROWS)
            slabs(of, first, n, row, of->x.rows - row < SLAB_ROWS ? of->x.rows - row : SLAB_ROWS);
    }
}

void CPU_NAME(cpu_few)(const struct few *a, int n, int n_threads)
{
    sh_team_run(n_threads, few_blocks_of_all(a, n), take_blocks, &(struct few_run){.a = a, .n = n});
}
