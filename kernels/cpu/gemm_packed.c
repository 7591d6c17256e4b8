/* SPDX-License-Identifier: Apache-2.0 */
/* Products with packed weights (kernels/packed.h) in f32. Numbers are read out of their code as exact f32 numbers;
 * lane k of a sum takes the inputs i with i % CPU_FLOATS = k in order, and the lanes are added up in a fixed order. All
 * paths keep this order, so that a row is the same bits alone, among others, and whatever the number of threads.
 *
 * One row: codes become numbers in registers, outputs at FEW_PLACES places in turn (gemm_few_rows_out.h says why).
 * More: some outputs are unpacked into the cache, where all rows of a strip meet them. */
#include "kernels/cpu/gemm_few_rows_out.h"
#include "kernels/cpu/unpack.h"
#include "kernels/cpu/variant.h"

enum {
    TALL = CPU_FLOATS == 16 ? 6 : 3,    /* rows and ...                                           */
    WIDE = 4,                           /* outputs whose sums stay in registers                   */
    STRIP = 8 * TALL,                   /* rows that an unpacked output is used for               */
    DEEP = 512,                         /* inputs of them that all rows go through: they are cached */
    TOGETHER = 16                       /* outputs that are unpacked together: some codes lie across them */
};

/* Per thread: outputs [TOGETHER, in] out of their code, then sums of lanes [STRIP, WIDE]. */
size_t CPU_NAME(cpu_packed_room)(int in)
{
    return TOGETHER * (size_t)in + (size_t)(STRIP * WIDE * CPU_FLOATS);
}

static const unsigned char *row_at(const struct sh_packed *p, int row, struct block_shape s)
{
    return p->at + (size_t)sh_packed_row(p, row) * (size_t)(p->cols / s.elements) * (size_t)s.bytes;
}

/* ---- rows out of their code ---- */

UNPACK void unpack_row(enum sh_packing format, const unsigned char *at, int cols, float *to)
{
    struct block_shape s = shape_of(format);
    for (int col = 0; col < cols; col += s.elements, at += s.bytes) {
        float scale[MOST_SPANS], less[MOST_SPANS];
        scales_of(format, at, scale, less);
        for (int run = 0; run < s.elements / RUN; run++, to += RUN) {
            int8_t own[RUN];
            const int8_t *code = codes_of(format, at, run, own);
            for (int i = 0; i < RUN; i += CPU_FLOATS)
                *(vec *)(to + i) = numbers_of(format, code, run, i, scale, less);
        }
    }
}

/* ---- one row of x ---- */

/* part[k] += x w of outputs k < n, a constant; at: of each. */
UNPACK void dot_rows(enum sh_packing format, const unsigned char *const *at, int n, int cols, const float *x, vec *part)
{
    struct block_shape s = shape_of(format);
    size_t bytes = (size_t)(cols / s.elements) * (size_t)s.bytes;
    for (size_t b = 0; b < bytes; b += (size_t)s.bytes) {
        float scale[FEW_PLACES][MOST_SPANS], less[FEW_PLACES][MOST_SPANS];
        for (int k = 0; k < n; k++) {
            few_ask(at[k] + b + FEW_AHEAD, (size_t)s.bytes);
            scales_of(format, at[k] + b, scale[k], less[k]);
        }
        for (int run = 0; run < s.elements / RUN; run++, x += RUN) {
            int8_t own[FEW_PLACES][RUN];
            const int8_t *code[FEW_PLACES];
            for (int k = 0; k < n; k++)
                code[k] = codes_of(format, at[k] + b, run, own[k]);
            for (int i = 0; i < RUN; i += CPU_FLOATS)
                for (int k = 0; k < n; k++)
                    part[k] += *(const vec *)(x + i) * numbers_of(format, code[k], run, i, scale[k], less[k]);
        }
    }
}

/* The functions of each format. */
typedef void unpack_fn(const unsigned char *at, int cols, float *to);
typedef void dot_fn(const unsigned char *const *at, int n, int cols, const float *x, vec *part);

#define FORMAT(name, elements, bytes, span, has_less)                                                       \
    static void unpack_##name(const unsigned char *at, int cols, float *to)                                 \
    {                                                                                                       \
        unpack_row(SH_PACKED_##name, at, cols, to);                                                         \
    }                                                                                                       \
    static void dot_##name(const unsigned char *const *at, int n, int cols, const float *x, vec *part)      \
    {                                                                                                       \
        if (n == FEW_PLACES)                                                                                \
            dot_rows(SH_PACKED_##name, at, FEW_PLACES, cols, x, part);                                      \
        else                                                                                                \
            for (int k = 0; k < n; k++)                                                                     \
                dot_rows(SH_PACKED_##name, at + k, 1, cols, x, part + k);                                   \
    }
SH_PACKED_FORMATS(FORMAT)
#undef FORMAT

/* Which format has which kernels: a row of x with outputs straight from blocks, and unpacking; formats that are not
 * here are unpacked by whoever brought the weight. */
static const struct { unpack_fn *unpack; dot_fn *dot; } kernels[SH_N_PACKING] = {
#define FORMAT(name, elements, bytes, span, less) [SH_PACKED_##name] = {unpack_##name, dot_##name},
    SH_PACKED_FORMATS(FORMAT)
#undef FORMAT
};

void CPU_NAME(cpu_unpack)(const struct sh_packed *p, int first, int n, float *to)
{
    unpack_fn *fn = kernels[p->format].unpack;
    if (!fn)
        p->unpack(p->from, first, n, to);
    for (int i = 0; i < n && fn; i++)
        fn(row_at(p, first + i, shape_of(p->format)), p->cols, to + (size_t)i * (size_t)p->cols);
}

/* Of the lanes, in a fixed order. */
static inline float total(vec x)
{
    float sum = 0;
    for (int k = 0; k < CPU_FLOATS; k++)
        sum += x[k];
    return sum;
}

/* Outputs [first, first + n) of the only row. */
static void one_row(const struct few *a, int first, int n)
{
    float sum[FEW_COLS] __attribute__((aligned(64)));
    struct block_shape s = shape_of(a->packed->format);
    int step = n / FEW_PLACES;
    for (int o = 0, some; o < n; o += some) {
        const unsigned char *at[FEW_PLACES];
        vec part[FEW_PLACES] = {{0}};
        int is_rest = o >= step * FEW_PLACES, place[FEW_PLACES];
        some = is_rest ? 1 : FEW_PLACES;
        for (int k = 0; k < some; k++) {
            place[k] = is_rest ? o : o / FEW_PLACES + k * step;
            at[k] = row_at(a->packed, first + place[k], s);
        }
        kernels[a->packed->format].dot(at, some, a->x.cols, a->x.at, part);
        for (int k = 0; k < some; k++)
            sum[place[k]] = total(part[k]);
    }
    few_out(a, 0, first, n, sum);
}

/* ---- more ---- */

/* part[r * WIDE + o] += x[r] w[o] over n inputs, whole vectors of them; rows and outputs are constants. */
UNPACK void tile(const float *w, size_t in, const float *x, size_t stride, int rows, int outputs, int n, vec *part)
{
    vec sum[TALL][WIDE];
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < outputs; o++)
            sum[r][o] = part[r * WIDE + o];
    for (int i = 0; i < n; i += CPU_FLOATS) {
        vec v[TALL];
        for (int r = 0; r < rows; r++)
            v[r] = *(const vec *)(x + (size_t)r * stride + (size_t)i);
        for (int o = 0; o < outputs; o++) {
            vec u = *(const vec *)(w + (size_t)o * in + (size_t)i);
            for (int r = 0; r < rows; r++)
                sum[r][o] += v[r] * u;
        }
    }
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < outputs; o++)
            part[r * WIDE + o] = sum[r][o];
}

/* The same where the last inputs do not fill a vector: they are followed by zeros. */
static void rest_of(const float *w, size_t in, const float *x, size_t stride, int rows, int outputs, int n, vec *part)
{
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < outputs; o++) {
            float u[CPU_FLOATS] = {0}, v[CPU_FLOATS] = {0};
            memcpy(u, w + (size_t)o * in, (size_t)n * sizeof *u);
            memcpy(v, x + (size_t)r * stride, (size_t)n * sizeof *v);
            part[r * WIDE + o] += *(const vec *)v * *(const vec *)u;
        }
}

static void tile_of(const float *w, size_t in, const float *x, size_t stride, int rows, int outputs, int n, vec *part)
{
    if (rows == TALL && outputs == WIDE)
        tile(w, in, x, stride, TALL, WIDE, n, part);
    else if (outputs == WIDE)
        for (int r = 0; r < rows; r++)
            tile(w, in, x + (size_t)r * stride, stride, 1, WIDE, n, part + r * WIDE);
    else
        for (int r = 0; r < rows; r++)
            for (int o = 0; o < outputs; o++)
                tile(w + (size_t)o * in, in, x + (size_t)r * stride, stride, 1, 1, n, part + r * WIDE + o);
}

/* part [rows, WIDE] = sums of lanes of so many outputs. */
static void strip_sums(const float *w, int in, const float *x, size_t stride, int rows, int outputs, vec *part)
{
    int whole = in / CPU_FLOATS * CPU_FLOATS;
    memset(part, 0, (size_t)(rows * WIDE) * sizeof *part);
    for (int i = 0, n; i < whole; i += n) {
        n = whole - i < DEEP ? whole - i : DEEP;
        for (int r = 0; r < rows; r += TALL)
            tile_of(w + i, (size_t)in, x + (size_t)r * stride + (size_t)i, stride, rows - r < TALL ? rows - r : TALL,
                    outputs, n, part + r * WIDE);
    }
    if (whole < in)
        rest_of(w + whole, (size_t)in, x + whole, stride, rows, outputs, in - whole, part);
}

/* Rows [row, row + rows), outputs [first, first + n). */
static void strip(const struct few *a, int row, int rows, int first, int n, float *room)
{
    float sum[STRIP * FEW_COLS] __attribute__((aligned(64)));
    int in = a->x.cols;
    vec *part = (vec *)(room + TOGETHER * (size_t)in);
    for (int o = 0; o < n; o += TOGETHER) {
        int some = n - o < TOGETHER ? n - o : TOGETHER;
        CPU_NAME(cpu_unpack)(a->packed, first + o, some, room);
        for (int p = 0, outputs; p < some; p += outputs) {
            outputs = some - p < WIDE ? some - p : WIDE;
            strip_sums(room + (size_t)p * (size_t)in, in, (const float *)a->x.at + (size_t)row * a->x.stride,
                       a->x.stride, rows, outputs, part);
            for (int r = 0; r < rows; r++)
                for (int k = 0; k < outputs; k++)
                    sum[r * FEW_COLS + o + p + k] = total(part[r * WIDE + k]);
        }
    }
    for (int r = 0; r < rows; r++)
        few_out(a, row + r, first, n, sum + r * FEW_COLS);
}

static void take_blocks(void *arg, struct sh_member *me)
{
    const struct few_run *run = arg;
    for (int b; sh_member_take(me, &b);) {
        const struct few *a = few_of(run->a, &b);
        int first = b * FEW_COLS, n = a->out.cols - first < FEW_COLS ? a->out.cols - first : FEW_COLS;
        float *room = a->room + (size_t)me->thread * CPU_NAME(cpu_packed_room)(a->x.cols);
        if (a->x.rows == 1 && a->packed->format != SH_PACKED_OTHER)
            one_row(a, first, n);
        else
            for (int row = 0; row < a->x.rows; row += STRIP)
                strip(a, row, a->x.rows - row < STRIP ? a->x.rows - row : STRIP, first, n, room);
    }
}

void CPU_NAME(cpu_packed)(const struct few *a, int n, int n_threads)
{
    sh_team_run(n_threads, few_blocks_of_all(a, n), take_blocks, &(struct few_run){.a = a, .n = n});
}
