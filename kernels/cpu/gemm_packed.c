/* SPDX-License-Identifier: Apache-2.0 */
/* Products with packed weights (kernels/packed.h) in f32. Numbers are read out of their code as exact f32 numbers;
 * lane k of a sum takes the inputs i with i % CPU_FLOATS = k in order, or in fours (unpack.h) those with
 * i % 32 / 4 = k, and the lanes are added up in a fixed order. All paths keep this order, so that a row is the same
 * bits alone, among others, and whatever the number of threads.
 *
 * Few rows: codes become numbers in registers, outputs at FEW_PLACES places in turn (gemm_few_rows_out.h says why).
 * More: some outputs are unpacked into the cache, where all rows of a strip meet them. */
#include "kernels/cpu/gemm_few_rows_out.h"
#include "kernels/cpu/unpack.h"
#include "kernels/cpu/variant.h"

enum {
    TALL = CPU_FLOATS == 16 ? 6 : 3,    /* rows and ...                                           */
    WIDE = 4,                           /* outputs whose sums stay in registers                   */
    STRIP = 48,                         /* rows that an unpacked output is used for               */
    DEEP = 128,                         /* vectors of them that all rows go through: they are cached */
    TOGETHER = 16,                      /* outputs that are unpacked together: some codes lie across them */
    MOST_DOTS = CPU_FLOATS == 16 ? 4 : 2,       /* rows that meet codes in registers together     */
    UNROLLED = CPU_FLOATS > 4 ? 8 : 1   /* loops of a block: in vectors of 4 all of them take a minute to compile */
};

static size_t vectors(int in)
{
    return ((size_t)in + CPU_FLOATS - 1) / CPU_FLOATS;
}

/* Per thread: rows of x [STRIP / TALL, vectors, TALL], outputs out of their code [vectors, WIDE], sums of lanes [STRIP,
 * WIDE], all of vectors; outputs [TOGETHER, in] of codes that only their owner reads. */
size_t CPU_NAME(cpu_packed_room)(int in)
{
    return (STRIP + WIDE) * vectors(in) * CPU_FLOATS + (size_t)(STRIP * WIDE * CPU_FLOATS) + TOGETHER * (size_t)in;
}

static struct block_at row_at(const struct sh_packed *p, int row, struct block_shape s)
{
    size_t block = (size_t)sh_packed_row(p, row) * (size_t)(p->cols / s.elements);
    return (struct block_at){p->at + block * (size_t)s.bytes, p->apart ? p->apart + block : NULL};
}

/* ---- rows out of their code ---- */

/* Vectors of it lie `step` floats apart, in the order of the format's codes. */
UNPACK void unpack_row(enum sh_packing format, struct block_at at, int cols, float *to, size_t step)
{
    struct block_shape s = shape_of(format);
    for (int col = 0; col < cols; col += s.elements, at.b += s.bytes, at.apart += is_apart(format)) {
        float scale[MOST_SPANS], less[MOST_SPANS];
        scales_of(format, at.b, scale, less);
        for (int run = 0; run < s.elements / RUN; run++) {
            bytes32 own = run_codes(format, at.b, run);
            for (int i = 0; i < RUN; i += CPU_FLOATS, to += step)
                *(vec *)to = numbers_of(format, at, run, i, own, scale, less);
        }
    }
}

/* ---- few rows of x ---- */

struct few_x {                          /* rows of x, and floats from one to the next             */
    const float *at;
    size_t stride;
    int rows;
};

/* part[k * rows + r] = lanes of x[r] w of outputs k < n; n and x.rows are constants; at: of each output. */
UNPACK void dot_rows(enum sh_packing format, const struct block_at *at, int n, int cols, struct few_x x, vec *part)
{
    struct block_shape s = shape_of(format);
    vec sum[FEW_PLACES * MOST_DOTS] = {{0}};
    size_t blocks = (size_t)(cols / s.elements);
    for (size_t i = 0, b = 0; i < blocks; i++, b += (size_t)s.bytes, x.at += s.elements) {
        float scale[FEW_PLACES][MOST_SPANS], less[FEW_PLACES][MOST_SPANS];
        for (int k = 0; k < n; k++) {
            few_ask(at[k].b + b + FEW_AHEAD, (size_t)s.bytes);
            scales_of(format, at[k].b + b, scale[k], less[k]);
        }
        if (!has_one_scale(format))
            __asm__("" : "+m"(scale), "+m"(less));  /* broadcast from memory: from registers it takes shuffles */
#pragma GCC unroll UNROLLED
        for (int run = 0; run < s.elements / RUN; run++)
#pragma GCC unroll UNROLLED
            for (int k = 0; k < n; k++) {
                struct block_at block = {at[k].b + b, is_apart(format) ? at[k].apart + i : NULL};
                bytes32 own = run_codes(format, block.b, run);
#pragma GCC unroll UNROLLED
                for (int j = 0; j < RUN; j += CPU_FLOATS) {
                    vec w = numbers_of(format, block, run, j, own, scale[k], less[k]);
#pragma GCC unroll UNROLLED
                    for (int r = 0; r < x.rows; r++)
                        sum[k * x.rows + r] += *(const vec *)(x.at + (size_t)r * x.stride + run * RUN + j) * w;
                }
            }
    }
    for (int k = 0; k < n * x.rows; k++)
        part[k] = sum[k];
}

UNPACK void dot_outputs(enum sh_packing format, const struct block_at *at, int n, int cols, struct few_x x, vec *part)
{
    if (n == FEW_PLACES)
        dot_rows(format, at, FEW_PLACES, cols, x, part);
    else
        for (int k = 0; k < n; k++)
            dot_rows(format, at + k, 1, cols, x, part + k * x.rows);
}

UNPACK void dot_all(enum sh_packing format, const struct block_at *at, int n, int cols, struct few_x x, vec *part)
{
    switch (x.rows) {
    case 1: dot_outputs(format, at, n, cols, (struct few_x){x.at, 0, 1}, part); break;
#if CPU_FLOATS == 16
    case 4: dot_outputs(format, at, n, cols, (struct few_x){x.at, x.stride, MOST_DOTS}, part); break;
#endif
    default: dot_outputs(format, at, n, cols, (struct few_x){x.at, x.stride, 2}, part);
    }
}

/* The functions of each format. */
typedef void unpack_fn(struct block_at at, int cols, float *to, size_t step);
typedef void dot_fn(const struct block_at *at, int n, int cols, struct few_x x, vec *part);

#define FORMAT(name, elements, bytes, span, has_less)                                                       \
    static void unpack_##name(struct block_at at, int cols, float *to, size_t step)                         \
    {                                                                                                       \
        unpack_row(SH_PACKED_##name, at, cols, to, step);                                                   \
    }                                                                                                       \
    static void dot_##name(const struct block_at *at, int n, int cols, struct few_x x, vec *part)           \
    {                                                                                                       \
        dot_all(SH_PACKED_##name, at, n, cols, x, part);                                                    \
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

/* n numbers, in runs, from the order of the format's codes and into it. */
static void from_order(enum sh_packing format, float *x, int n)
{
    float run[RUN];
    for (int at = 0; at < n; at += RUN) {
        memcpy(run, x + at, sizeof run);
        for (int i = 0; i < RUN; i++)
            x[at + i] = run[place_of(format, i)];
    }
}

/* Vectors of `to` lie `step` floats apart. */
static void into_fours(float *to, size_t step, const float *x, int n)
{
#if CPU_FLOATS == 8
    for (int at = 0; at < n; at += RUN, to += 4 * step) {
        __m256 a = (__m256)*(const vec *)(x + at), b = (__m256)*(const vec *)(x + at + 8);
        __m256 c = (__m256)*(const vec *)(x + at + 16), d = (__m256)*(const vec *)(x + at + 24);
        __m256 e = _mm256_permute2f128_ps(a, c, 0x20), f = _mm256_permute2f128_ps(a, c, 0x31);
        __m256 g = _mm256_permute2f128_ps(b, d, 0x20), h = _mm256_permute2f128_ps(b, d, 0x31);
        __m256 ef = _mm256_unpacklo_ps(e, f), gh = _mm256_unpacklo_ps(g, h);
        __m256 ef2 = _mm256_unpackhi_ps(e, f), gh2 = _mm256_unpackhi_ps(g, h);
        _mm256_storeu_ps(to, _mm256_shuffle_ps(ef, gh, 0x44));
        _mm256_storeu_ps(to + step, _mm256_shuffle_ps(ef, gh, 0xee));
        _mm256_storeu_ps(to + 2 * step, _mm256_shuffle_ps(ef2, gh2, 0x44));
        _mm256_storeu_ps(to + 3 * step, _mm256_shuffle_ps(ef2, gh2, 0xee));
    }
#else
    (void)to, (void)step, (void)x, (void)n;     /* no format is in fours */
#endif
}

void CPU_NAME(cpu_unpack)(const struct sh_packed *p, int first, int n, float *to)
{
    unpack_fn *fn = kernels[p->format].unpack;
    if (!fn)
        p->unpack(p->from, first, n, to);
    for (int i = 0; i < n && fn; i++, to += p->cols) {
        fn(row_at(p, first + i, shape_of(p->format)), p->cols, to, CPU_FLOATS);
        if (is_ordered(p->format))
            from_order(p->format, to, p->cols);
    }
}

/* Of the lanes: the upper half is added to the lower one until there is one. */
static inline float total(vec x)
{
#ifdef __AVX2__
#ifdef __AVX512F__
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256((__m512)x), _mm512_extractf32x8_ps((__m512)x, 1));
#else
    __m256 eight = (__m256)x;
#endif
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
#else
    for (int half = CPU_FLOATS / 2; half; half /= 2)
        for (int k = 0; k < half; k++)
            x[k] += x[k + half];
    return x[0];
#endif
}

/* Outputs [first, first + n) of rows from `row` on; x is in the order of the format's codes. */
static void few_rows(const struct few *a, struct few_x x, int row, int first, int n)
{
    float sum[MOST_DOTS * FEW_COLS] __attribute__((aligned(64)));
    struct block_shape s = shape_of(a->packed->format);
    int step = n / FEW_PLACES;
    for (int o = 0, some; o < n; o += some) {
        struct block_at at[FEW_PLACES];
        vec part[FEW_PLACES * MOST_DOTS];
        int is_rest = o >= step * FEW_PLACES, place[FEW_PLACES];
        some = is_rest ? 1 : FEW_PLACES;
        for (int k = 0; k < some; k++) {
            place[k] = is_rest ? o : o / FEW_PLACES + k * step;
            at[k] = row_at(a->packed, first + place[k], s);
        }
        kernels[a->packed->format].dot(at, some, a->x.cols, x, part);
        for (int k = 0; k < some * x.rows; k++)
            sum[k % x.rows * FEW_COLS + place[k / x.rows]] = total(part[k]);
    }
    for (int r = 0; r < x.rows; r++)
        few_out(a, row + r, first, n, sum + r * FEW_COLS);
}

/* The most rows whose products are made so: reading codes again for other rows costs less than unpacking them. */
static int most_few(enum sh_packing format)
{
    return format == SH_PACKED_OTHER ? 0 : CPU_FLOATS == 16 ? 8 : CPU_FLOATS == 4 || in_fours(format) ? 2 : 4;
}

static int rows_at(const struct few *a, int row)
{
    int left = a->x.rows - row;
    return left >= MOST_DOTS ? MOST_DOTS : left >= 2 ? 2 : 1;
}

/* ---- more ---- */

/* part[r * WIDE + o] += x[r] w[o] over n vectors; rows are a constant. */
UNPACK void tile(const float *w, const float *x, int rows, size_t n, vec *part)
{
    vec sum[TALL][WIDE];
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < WIDE; o++)
            sum[r][o] = part[r * WIDE + o];
    for (size_t i = 0; i < n; i++, w += WIDE * CPU_FLOATS, x += rows * CPU_FLOATS) {
        vec v[TALL];
        for (int r = 0; r < rows; r++)
            v[r] = *(const vec *)(x + r * CPU_FLOATS);
        for (int o = 0; o < WIDE; o++) {
            vec u = *(const vec *)(w + o * CPU_FLOATS);
            for (int r = 0; r < rows; r++)
                sum[r][o] += v[r] * u;
        }
    }
    for (int r = 0; r < rows; r++)
        for (int o = 0; o < WIDE; o++)
            part[r * WIDE + o] = sum[r][o];
}

static void tile_of(const float *w, const float *x, int rows, size_t n, vec *part)
{
    switch (rows) {
    case 1: tile(w, x, 1, n, part); break;
    case 2: tile(w, x, 2, n, part); break;
#if CPU_FLOATS == 16
    case 3: tile(w, x, 3, n, part); break;
    case 4: tile(w, x, 4, n, part); break;
    case 5: tile(w, x, 5, n, part); break;
#endif
    default: tile(w, x, TALL, n, part);
    }
}

/* `n` numbers as vectors, `step` floats apart, zeros after the last one. */
static void spread(const float *from, int n, float *to, size_t step)
{
    int i = 0;
    for (; i + CPU_FLOATS <= n; i += CPU_FLOATS, to += step)
        *(vec *)to = *(const vec *)(from + i);
    if (i < n) {
        *(vec *)to = (vec){0};
        memcpy(to, from + i, (size_t)(n - i) * sizeof *to);
    }
}

/* The same in the order of the format's codes. */
static void into_order(enum sh_packing format, float *to, size_t step, const float *x, int n)
{
    float run[RUN];
    if (!is_ordered(format))
        spread(x, n, to, step);
    else if (!in_pairs(format))
        into_fours(to, step, x, n);
    else
        for (int at = 0; at < n; at += RUN, to += RUN / CPU_FLOATS * step) {
            for (int i = 0; i < RUN / 2; i++) {
                run[i] = x[at + 2 * i];
                run[i + RUN / 2] = x[at + 2 * i + 1];
            }
            if (in_fours(format))
                into_fours(to, step, run, RUN);
            else
                spread(run, RUN, to, step);
        }
}

struct strip {                          /* rows [row, row + rows) of a product, outputs [first, first + n) */
    const struct few *a;
    int row, rows, first, n;
    float *x, *w, *flat;
    vec *part;
};

static struct strip strip_in(const struct few *a, float *room, int first, int n)
{
    size_t all = vectors(a->x.cols) * CPU_FLOATS;
    struct strip s = {.a = a, .first = first, .n = n, .x = room, .w = room + STRIP * all};
    s.part = (vec *)(s.w + WIDE * all);
    s.flat = (float *)(s.part + STRIP * WIDE);
    return s;
}

/* Outputs [o, o + WIDE) out of their code; those beyond the last are 0. */
static void put_outputs(const struct strip *s, int o)
{
    const struct sh_packed *p = s->a->packed;
    unpack_fn *fn = kernels[p->format].unpack;
    int in = p->cols;
    if (!fn && o % TOGETHER == 0)
        p->unpack(p->from, s->first + o, s->n - o < TOGETHER ? s->n - o : TOGETHER, s->flat);
    if (s->n - o < WIDE)
        memset(s->w, 0, WIDE * vectors(in) * sizeof(vec));
    for (int k = 0; k < WIDE && o + k < s->n; k++)
        if (fn)
            fn(row_at(p, s->first + o + k, shape_of(p->format)), in, s->w + k * CPU_FLOATS, WIDE * CPU_FLOATS);
        else
            spread(s->flat + (size_t)(o % TOGETHER + k) * (size_t)in, in, s->w + k * CPU_FLOATS, WIDE * CPU_FLOATS);
}

static int tile_rows(const struct strip *s, int row)
{
    return s->rows - row < TALL ? s->rows - row : TALL;
}

static void run_strip(const struct strip *s)
{
    float sum[STRIP * FEW_COLS] __attribute__((aligned(64)));
    const struct few *a = s->a;
    size_t all = vectors(a->x.cols), tall = all * TALL * CPU_FLOATS;
    for (int r = 0; r < s->rows; r++) {
        const float *x = (const float *)a->x.at + (size_t)(s->row + r) * a->x.stride;
        float *to = s->x + (size_t)(r / TALL) * tall + (size_t)(r % TALL * CPU_FLOATS);
        size_t step = (size_t)tile_rows(s, r / TALL * TALL) * CPU_FLOATS;
        into_order(a->packed->format, to, step, x, a->x.cols);
    }
    for (int o = 0; o < s->n; o += WIDE) {
        put_outputs(s, o);
        memset(s->part, 0, (size_t)(s->rows * WIDE) * sizeof *s->part);
        for (size_t i = 0; i < all; i += DEEP)
            for (int r = 0, rows; r < s->rows; r += rows) {
                rows = tile_rows(s, r);
                const float *x = s->x + (size_t)(r / TALL) * tall + i * (size_t)(rows * CPU_FLOATS);
                tile_of(s->w + i * WIDE * CPU_FLOATS, x, rows, all - i < DEEP ? all - i : DEEP, s->part + r * WIDE);
            }
        for (int r = 0; r < s->rows; r++)
            for (int k = 0; k < WIDE && o + k < s->n; k++)
                sum[r * FEW_COLS + o + k] = total(s->part[r * WIDE + k]);
    }
    for (int r = 0; r < s->rows; r++)
        few_out(a, s->row + r, s->first, s->n, sum + r * FEW_COLS);
}

static void take_blocks(void *arg, struct sh_member *me)
{
    const struct few_run *run = arg;
    enum sh_packing ready = SH_PACKED_OTHER;    /* x, which all products share, is in this one's order */
    for (int b; sh_member_take(me, &b);) {
        const struct few *a = few_of(run->a, &b);
        int first = b * FEW_COLS, n = a->out.cols - first < FEW_COLS ? a->out.cols - first : FEW_COLS;
        float *room = a->room + (size_t)me->thread * CPU_NAME(cpu_packed_room)(a->x.cols);
        struct strip s = strip_in(a, room, first, n);
        enum sh_packing format = a->packed->format;
        int is_few = a->x.rows <= most_few(format), is_other = is_ordered(format);
        size_t cols = (size_t)a->x.cols;
        const float *x = is_other ? room : a->x.at;
        size_t stride = is_other ? cols : a->x.stride;
        for (int r = 0; r < a->x.rows && is_few && is_other && !same_order(format, ready); r++)
            into_order(format, room + (size_t)r * cols, CPU_FLOATS, (const float *)a->x.at + (size_t)r * a->x.stride,
                       a->x.cols);
        ready = is_few && is_other ? format : ready;
        if (is_few)
            for (int r = 0, rows; r < a->x.rows; r += rows) {
                rows = rows_at(a, r);
                few_rows(a, (struct few_x){x + (size_t)r * stride, stride, rows}, r, first, n);
            }
        else
            for (; s.row < a->x.rows; s.row += STRIP) {
                s.rows = a->x.rows - s.row < STRIP ? a->x.rows - s.row : STRIP;
                run_strip(&s);
            }
    }
}

void CPU_NAME(cpu_packed)(const struct few *a, int n, int n_threads)
{
    sh_team_run(n_threads, few_blocks_of_all(a, n), take_blocks, &(struct few_run){.a = a, .n = n});
}
