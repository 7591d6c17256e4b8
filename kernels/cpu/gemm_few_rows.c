/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a few rows with f32 weights, or 16-bit ones as f32 (gemm_few_rows.h): outputs in the lanes of vectors,
 * one number of x for all of them. Sums are taken in the order of the inputs, with any number of rows. */
#include "kernels/cpu/gemm_few_rows_out.h"
#include "kernels/cpu/variant.h"

enum {
    TILE = 4 * CPU_FLOATS,              /* outputs whose sums stay in registers, ...              */
    TILE_OF_ONE = CPU_FLOATS == 4 ? TILE : FEW_COLS,    /* ... of one row, so that a panel is read in order, ... */
    TILE_OF_FOUR = CPU_FLOATS == 16 ? TILE : TILE / 2,  /* ... of 3 or 4 rows, with 16 registers  */
    DEEP = 256                          /* inputs of a panel that go through all tiles together: they are cached */
};

struct rows {                           /* of x                                                    */
    const float *at;
    size_t stride;
    int n;
};

/* sum[r][0 .. cols) += x[r] w over n inputs; 16-bit weights are asked for `ahead` bytes before they are read. `type`,
 * `cols` and x.n are constants wherever this is inlined. */
static inline __attribute__((always_inline)) void tile(const char *w, enum sh_type type, size_t step, int cols,
                                                       size_t ahead, struct rows x, int n, float *sum)
{
    const size_t bytes = type == SH_F32 ? 4 : 2;
    const int vecs = cols / CPU_FLOATS;
    vec part[FEW_ROWS][FEW_COLS / CPU_FLOATS];
    for (int r = 0; r < x.n; r++)
        for (int c = 0; c < vecs; c++)
            part[r][c] = *(const vec *)(sum + r * FEW_COLS + c * CPU_FLOATS);
    for (int i = 0; i < n; i++, w += step * bytes) {
        if (type != SH_F32)
            few_ask(w + ahead, (size_t)cols * bytes);
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

/* The same of up to FEW_ROWS rows. */
static inline __attribute__((always_inline)) void tile_of(const char *w, enum sh_type type, size_t step, int cols,
                                                          size_t ahead, struct rows x, int n, float *sum)
{
    switch (x.n) {
    case 1: tile(w, type, step, cols, ahead, (struct rows){x.at, x.stride, 1}, n, sum); break;
    case 2: tile(w, type, step, cols, ahead, (struct rows){x.at, x.stride, 2}, n, sum); break;
    case 3: tile(w, type, step, cols, ahead, (struct rows){x.at, x.stride, 3}, n, sum); break;
    default: tile(w, type, step, cols, ahead, (struct rows){x.at, x.stride, 4}, n, sum);
    }
}

/* The same of one row and a whole panel. */
static inline __attribute__((always_inline)) void one_row(const char *w, enum sh_type type, size_t ahead,
                                                          const float *x, int n, float *sum)
{
    for (int c = 0; c < FEW_COLS; c += TILE_OF_ONE)
        tile(w + (size_t)c * sh_type_bytes(type), type, FEW_COLS, TILE_OF_ONE, ahead, (struct rows){x, 0, 1}, n,
             sum + c);
}

/* Outputs that no whole tile can read. */
static void rest_of(const float *w, size_t step, const float *x, size_t stride, int rows, int n, int cols, float *sum)
{
    for (int i = 0; i < n; i++, w += step)
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < cols; c++)
                sum[r * FEW_COLS + c] += x[(size_t)r * stride + (size_t)i] * w[c];
}

/* f32 weights: the processor's own prefetches are enough for them. One row, and some: */
static void panel_of_one(const float *w, const float *x, int in, float *sum)
{
    one_row((const char *)w, SH_F32, 0, x, in, sum);
}

static void panel_of(const float *w, struct rows x, int in, float *sum)
{
    for (int n; in > 0; in -= n, x.at += n, w += (size_t)n * FEW_COLS) {
        n = in < DEEP ? in : DEEP;
        for (int c = 0; c < FEW_COLS; c += TILE)
            tile_of((const char *)(w + c), SH_F32, FEW_COLS, TILE, 0, x, n, sum + c);
    }
}

/* few_sums, of f32; of a padded panel all of it. */
static void sums(const struct few *a, int first, int n, int row, int rows, float *sum)
{
    const struct few_layout *l = a->w;
    struct rows x = {(const float *)a->x.at + (size_t)row * a->x.stride, a->x.stride, rows};
    const float *w = (const float *)l->at + first;
    size_t step = (size_t)l->wide;
    int in = a->x.cols, c = 0;
    memset(sum, 0, (size_t)(FEW_ROWS * FEW_COLS) * sizeof *sum);
    if (l->wide == FEW_COLS) {
        w = (const float *)l->at + (size_t)(first / FEW_COLS) * l->panel;
        if (rows == 1 && TILE_OF_ONE > TILE)
            panel_of_one(w, x.at, in, sum);
        else
            panel_of(w, x, in, sum);
        return;
    }
    for (; c + TILE <= n; c += TILE)
        tile_of((const char *)(w + c), SH_F32, step, TILE, 0, x, in, sum + c);
    if (c < n)
        rest_of(w + c, step, x.at, x.stride, rows, in, n - c, sum + c);
}

/* ---- 16-bit weights and up to FEW_ROWS rows: FEW_PLACES panels in turn (gemm_few_rows_out.h says why) ---- */

enum {
    TURN = 8,                           /* inputs of a panel before the next panel's turn         */
    TURN_AHEAD = 4 * TURN               /* inputs from what is read to what is asked for          */
};

struct place {                          /* a panel that is being read                             */
    const struct few *of;
    const char *w;
    size_t to_next;                     /* bytes from its end to the next panel in its place      */
    int first;                          /* of its outputs                                         */
    float sum[FEW_ROWS * FEW_COLS] __attribute__((aligned(64)));
};

/* p->sum += x w over n inputs from input i on. Near the end of the panel, the beginning of the one that is read next in
 * its place is asked for. `type` is a constant wherever this is inlined. */
static inline __attribute__((always_inline)) void turn_of(struct place *p, enum sh_type type, int i, int n)
{
    struct rows x = {(const float *)p->of->x.at + i, p->of->x.stride, p->of->x.rows};
    const char *w = p->w + (size_t)i * FEW_COLS * 2;
    size_t ahead = TURN_AHEAD * FEW_COLS * 2;
    if (i + TURN_AHEAD >= p->of->x.cols)
        ahead += p->to_next;
    if (x.n == 1)
        one_row(w, type, ahead, x.at, n, p->sum);
    else if (x.n == 2)
        for (int c = 0; c < FEW_COLS; c += TILE)
            tile(w + (size_t)c * 2, type, FEW_COLS, TILE, ahead, (struct rows){x.at, x.stride, 2}, n, p->sum + c);
    else
        for (int c = 0; c < FEW_COLS; c += TILE_OF_FOUR)
            tile_of(w + (size_t)c * 2, type, FEW_COLS, TILE_OF_FOUR, ahead, x, n, p->sum + c);
}

static void turn(struct place *p, int i, int n)
{
    if (p->of->w->type == SH_F16)
        turn_of(p, SH_F16, i, n);
    else
        turn_of(p, SH_BF16, i, n);
}

static void places(struct place *p, int n)
{
    const struct sh_mat *x = &p->of->x; /* the same for all */
    for (int k = 0; k < n; k++)
        p[k].to_next = (size_t)(n - 1) * p[k].of->w->panel * 2;
    for (int i = 0; i < x->cols; i += TURN)
        for (int k = 0; k < n; k++)
            turn(&p[k], i, x->cols - i < TURN ? x->cols - i : TURN);
    for (int k = 0; k < n; k++)
        for (int r = 0; r < x->rows; r++)
            few_out(p[k].of, r, p[k].first, few_outputs(p[k].of, p[k].first), p[k].sum + r * FEW_COLS);
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

/* The panel whose first output is `first`, rows [row, row + rows). */
static void slabs(const struct few *a, int first, int row, int rows)
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
        few_out(a, row + r, first, few_outputs(a, first), sum[r]);
}

/* Number of panels to read in turn; the first has been taken. Fewer near the end of the thread's own, and one at a time
 * of another thread's, so that no thread waits long. */
static int places_of(const struct sh_member *me, int blocks)
{
    long long first = (long long)blocks * me->thread / me->n_threads;
    long long end = (long long)blocks * (me->thread + 1) / me->n_threads, left = end - first - me->taken + 1;
    return me->turn ? 1 : left >= 2 * FEW_PLACES ? FEW_PLACES : left >= 2 ? 2 : 1;
}

static void take_blocks(void *arg, struct sh_member *me)
{
    const struct few_run *run = arg;
    struct place p[FEW_PLACES];
    int blocks = few_blocks_of_all(run->a, run->n), n = 0, most = 1;
    for (int b; sh_member_take(me, &b);) {
        const struct few *of = few_of(run->a, &b);
        if (of->w->type == SH_F32) {
            few_block(of, b, sums);
        } else if (of->x.rows > FEW_ROWS) {
            for (int row = 0; row < of->x.rows; row += SLAB_ROWS)
                slabs(of, b * FEW_COLS, row, of->x.rows - row < SLAB_ROWS ? of->x.rows - row : SLAB_ROWS);
        } else {
            p[n].of = of;
            p[n].w = (const char *)of->w->at + (size_t)b * of->w->panel * 2;
            p[n].first = b * FEW_COLS;
            memset(p[n].sum, 0, sizeof p[n].sum);
            most = n == 0 ? places_of(me, blocks) : most;
            if (++n >= most || me->turn) {
                places(p, n);
                n = 0;
            }
        }
    }
    if (n > 0)
        places(p, n);
}

void CPU_NAME(cpu_few)(const struct few *a, int n, int n_threads)
{
    sh_team_run(n_threads, few_blocks_of_all(a, n), take_blocks, &(struct few_run){.a = a, .n = n});
}
