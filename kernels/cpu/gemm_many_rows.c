/* SPDX-License-Identifier: Apache-2.0 */
/* Products of many rows in f32 (gemm_few_rows.h): of packed weights, and of all on processors on which oneDNN's sums
 * depend on how many rows and threads there are. Every sum runs over the inputs in order, as those of a few rows do, so
 * that a row is the same bits alone, among others, and whatever the number of threads. (With packed weights: among
 * others, if these are many.) */
#include "kernels/cpu/gemm_few_rows_out.h"
#include "kernels/cpu/variant.h"

enum {
    WIDE = MANY_WIDE, HIGH = 6,         /* outputs and rows whose sums stay in registers (16 of them with AVX2) */
    STRIP = 192,                        /* rows that a thread takes with the same packed weights, ... */
    SHARES = 4,                         /* ... all of them where each has so many panels to take  */
    LINE = 64, EACH = 4,                /* bytes of a line; inputs from one that is asked for to the next */
    SHORT = 64                          /* rows whose products take no longer than the reading of a panel */
};

static inline __attribute__((always_inline)) void widen(float *to, const uint16_t *from, enum sh_type type)
{
    *(vec *)to = load_vec(type, from);
    *(vec *)(to + CPU_FLOATS) = load_vec(type, from + CPU_FLOATS);
}

/* A panel of 16-bit numbers. */
static void pack_halves(const uint16_t *from, enum sh_type type, size_t step, int in, float *to)
{
    for (int p = 0; p < FEW_COLS; p += WIDE)
        for (size_t i = 0; i < (size_t)in; i++, to += WIDE)
            if (type == SH_F16)
                widen(to, from + i * step + p, SH_F16);
            else
                widen(to, from + i * step + p, SH_BF16);
}

/* FEW_COLS outputs from `first` on as panels of WIDE, inputs one after another; what is beyond the weight is 0. */
static void pack(const struct few_weight *w, int in, int first, int n, float *to)
{
    size_t panel = (size_t)(first / FEW_COLS) * w->panel;
    if (w->packed) {
        CPU_NAME(cpu_unpack_panel)(w->packed, first, n, to);
        return;
    }
    if (w->type != SH_F32) {
        pack_halves((const uint16_t *)w->at + panel, w->type, w->in_step, in, to);
        return;
    }
    for (int p = 0; p < FEW_COLS; p += WIDE, to += (size_t)in * WIDE) {
        int cols = n - p < 0 ? 0 : n - p < WIDE ? n - p : WIDE;
        const float *from = (const float *)w->at + panel + (size_t)p * w->out_step;
        if (cols < WIDE)
            memset(to, 0, (size_t)in * WIDE * sizeof *to);
        if (w->out_step == 1)
            for (int i = 0; i < in; i++)
                memcpy(to + (size_t)i * WIDE, from + (size_t)i * w->in_step, (size_t)cols * sizeof *to);
        else
            for (int c = 0; c < cols; c++)
                for (int i = 0; i < in; i++)
                    to[(size_t)i * WIDE + (size_t)c] = from[(size_t)c * w->out_step + (size_t)i * w->in_step];
    }
}

/* What the next panel is made of, as far as it has not been asked for. */
struct ahead {
    const char *at, *end;
};

/* sum[r][0 .. WIDE) = x[r] w over n inputs; every EACH inputs one line of `next`, with `asks`, is asked for. `rows` and
 * `asks` are constants wherever this is inlined. */
static inline __attribute__((always_inline)) void tile(const float *w, const float *x, size_t stride, int rows, int n,
                                                       float *sum, struct ahead *next, int asks)
{
    vec part[HIGH][2];
    for (int r = 0; r < rows; r++)
        part[r][0] = part[r][1] = (vec){0};
    for (int i = 0; i < n; i++, w += WIDE) {
        if (asks && i % EACH == 0) {
            __builtin_prefetch(next->at, 0, 2);
            next->at += next->at < next->end ? LINE : 0;
        }
        vec a = *(const vec *)w, b = *(const vec *)(w + CPU_FLOATS);
        for (int r = 0; r < rows; r++) {
            part[r][0] += x[(size_t)r * stride + (size_t)i] * a;
            part[r][1] += x[(size_t)r * stride + (size_t)i] * b;
        }
    }
    for (int r = 0; r < rows; r++) {
        *(vec *)(sum + r * FEW_COLS) = part[r][0];
        *(vec *)(sum + r * FEW_COLS + CPU_FLOATS) = part[r][1];
    }
}

static void tile_of(const float *w, const float *x, size_t stride, int rows, int n, float *sum, struct ahead *next)
{
    switch (next->at < next->end ? rows + HIGH : rows) {
    case 1: tile(w, x, stride, 1, n, sum, next, 0); break;
    case 2: tile(w, x, stride, 2, n, sum, next, 0); break;
    case 3: tile(w, x, stride, 3, n, sum, next, 0); break;
    case 4: tile(w, x, stride, 4, n, sum, next, 0); break;
    case 5: tile(w, x, stride, 5, n, sum, next, 0); break;
    case HIGH: tile(w, x, stride, HIGH, n, sum, next, 0); break;
    case HIGH + 1: tile(w, x, stride, 1, n, sum, next, 1); break;
    case HIGH + 2: tile(w, x, stride, 2, n, sum, next, 1); break;
    case HIGH + 3: tile(w, x, stride, 3, n, sum, next, 1); break;
    case HIGH + 4: tile(w, x, stride, 4, n, sum, next, 1); break;
    case HIGH + 5: tile(w, x, stride, 5, n, sum, next, 1); break;
    default: tile(w, x, stride, HIGH, n, sum, next, 1);
    }
}

/* Rows [from, to), outputs [first, first + n) with their packed weights. */
static void multiply(const struct few *a, const float *packed, int from, int to, int first, int n, struct ahead next)
{
    float sum[HIGH * FEW_COLS] __attribute__((aligned(64)));
    size_t in = (size_t)a->x.cols;
    for (int row = from, rows; row < to; row += rows) {
        const float *x = (const float *)a->x.at + (size_t)row * a->x.stride;
        int tiles = (to - row + HIGH - 1) / HIGH;       /* of about the same height: a low one waits for its sums */
        rows = (to - row + tiles - 1) / tiles;
        for (int p = 0; p < n; p += WIDE)
            tile_of(packed + (size_t)p * in, x, a->x.stride, rows, a->x.cols, sum + p, &next);
        for (int r = 0; r < rows; r++)
            few_out(a, row + r, first, n, sum + r * FEW_COLS);
    }
}

struct work {
    const struct few *a;
    const struct few_weight *w;
    int most, by_row;                   /* rows of a strip; strips                                */
};

/* Rows of a packed weight that lie next to each other. */
static struct ahead after(const struct work *w, int first, int rows)
{
    const struct sh_packed *p = w->w->packed;
    struct ahead next = {0};
    if (!p || !p->at || p->d_head || p->step > 1 || rows > SHORT || first + 2 * FEW_COLS > p->rows)
        return next;
    struct sh_packing_shape shape = sh_packing_shape(p->format);
    size_t row = (size_t)(p->cols / shape.elements) * (size_t)shape.bytes;
    next.at = (const char *)p->at + (size_t)(first + FEW_COLS) * row;
    next.end = next.at + FEW_COLS * row;
    return next;
}

static void take_blocks(void *arg, struct sh_member *me)
{
    const struct work *w = arg;
    const struct few *a = w->a;
    size_t room = w->w->packed ? CPU_NAME(cpu_packed_room)(a->x.cols) : (size_t)a->x.cols * FEW_COLS;
    float *packed = a->room + (size_t)me->thread * room;
    for (int b; sh_member_take(me, &b);) {
        int first = b / w->by_row * FEW_COLS, n = few_outputs(a, first);
        int from = b % w->by_row * w->most, to = a->x.rows - from < w->most ? a->x.rows : from + w->most;
        pack(w->w, a->x.cols, first, n, packed);
        multiply(a, packed, from, to, first, n, after(w, first, to - from));
    }
}

void CPU_NAME(cpu_many)(const struct few *a, const struct few_weight *w, int n_threads)
{
    int rows = a->x.rows, panels = (a->out.cols + FEW_COLS - 1) / FEW_COLS;
    struct work work = {.a = a, .w = w, .most = panels < SHARES * n_threads ? STRIP : rows};
    work.by_row = (rows + work.most - 1) / work.most;
    sh_team_run(n_threads, work.by_row * panels, take_blocks, &work);
}
