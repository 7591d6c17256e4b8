/* SPDX-License-Identifier: Apache-2.0 */
/* Products of 1 to PACKED_ROWS rows with packed weights (kernels/packed.h) in f32: codes become exact f32 numbers in
 * registers, outputs at FEW_PLACES places in turn (gemm_few_rows_out.h says why). Lane k of a sum takes the inputs i
 * with i % CPU_FLOATS = k in order, or in fours (unpack.h) those with i % 32 / 4 = k, and the lanes are added up in a
 * fixed order, so that a row is the same bits alone, among any others and whatever the number of threads.
 * gemm_many_rows.c multiplies more rows; it takes the same numbers from here in panels. */
#include "kernels/cpu/gemm_few_rows_out.h"
#include "kernels/cpu/unpack.h"
#include "kernels/cpu/variant.h"

enum {
    TOGETHER = 16,                      /* outputs that are unpacked together: some codes lie across them, ... */
    SIDE = 8, DEEP = 256,               /* and that are turned together, so many inputs at once   */
    MOST_DOTS = CPU_FLOATS == 16 ? 4 : 2,       /* few rows that meet codes in registers together */
    UNROLLED = CPU_FLOATS > 4 ? 8 : 1   /* loops of a block: in vectors of 4 all of them take a minute to compile */
};

/* Per thread: PACKED_ROWS rows of x in the order of codes, or a panel [in, FEW_COLS] and TOGETHER outputs of codes
 * that only their owner reads, which is more. */
size_t CPU_NAME(cpu_packed_room)(int in)
{
    return (FEW_COLS + TOGETHER) * (size_t)in;
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

/* ---- rows out of their code ---- */

/* Vectors of it lie `step` floats apart, in the order of the format's codes. */
UNPACK void unpack_row(enum sh_packing format, struct block_at at, int cols, float *to, size_t step)
{
    struct sh_packing_shape s = sh_packing_shape(format);
    for (int col = 0; col < cols; col += s.elements, at.b += s.bytes, at.apart += is_apart(format)) {
        float scale[MOST_SPANS], less[MOST_SPANS];
        struct points points;
        struct block_at block = {readable(format, at.b, &points), at.apart};
        scales_of(format, block.b, scale, less);
        for (int run = 0; run < s.elements / RUN; run++) {
            bytes32 own = run_codes(format, block.b, run);
            for (int i = 0; i < RUN; i += CPU_FLOATS, to += step)
                *(vec *)to = numbers_of(format, block, run, i, own, scale, less);
        }
    }
}

/* ---- rows of x with outputs straight from blocks ---- */

struct few_x {                          /* rows of x, and floats from one to the next             */
    const float *at;
    size_t stride;
    int rows;
};

/* part[k * rows + r] = lanes of x[r] w of output k < FEW_PLACES; x.rows is a constant; at: of each output. */
UNPACK void dot_rows(enum sh_packing format, const struct block_at *at, int cols, struct few_x x, vec *part)
{
    struct sh_packing_shape s = sh_packing_shape(format);
    vec sum[FEW_PLACES * MOST_DOTS] = {{0}};
    size_t blocks = (size_t)(cols / s.elements);
    for (size_t i = 0, b = 0; i < blocks; i++, b += (size_t)s.bytes, x.at += s.elements) {
        float scale[FEW_PLACES][MOST_SPANS], less[FEW_PLACES][MOST_SPANS];
        struct block_at block[FEW_PLACES];
        for (int k = 0; k < FEW_PLACES; k++) {
            few_ask(at[k].b + b + FEW_AHEAD, (size_t)s.bytes);
            block[k].b = at[k].b + b;
            block[k].apart = is_apart(format) ? at[k].apart + i : NULL;
            scales_of(format, block[k].b, scale[k], less[k]);
        }
        if (!has_one_scale(format))
            __asm__("" : "+m"(scale), "+m"(less));  /* broadcast from memory: from registers it takes shuffles */
#pragma GCC unroll UNROLLED
        for (int run = 0; run < s.elements / RUN; run++)
#pragma GCC unroll UNROLLED
            for (int k = 0; k < FEW_PLACES; k++) {
                bytes32 own = run_codes(format, block[k].b, run);
#pragma GCC unroll UNROLLED
                for (int j = 0; j < RUN; j += CPU_FLOATS) {
                    vec w = numbers_of(format, block[k], run, j, own, scale[k], less[k]);
#pragma GCC unroll UNROLLED
                    for (int r = 0; r < x.rows; r++)
                        sum[k * x.rows + r] += *(const vec *)(x.at + (size_t)r * x.stride + run * RUN + j) * w;
                }
            }
    }
    for (int k = 0; k < FEW_PLACES * x.rows; k++)
        part[k] = sum[k];
}

UNPACK void dot_all(enum sh_packing format, const struct block_at *at, int cols, struct few_x x, vec *part)
{
    switch (x.rows) {
    case 1: dot_rows(format, at, cols, (struct few_x){x.at, 0, 1}, part); break;
#if CPU_FLOATS == 16
    case 4: dot_rows(format, at, cols, (struct few_x){x.at, x.stride, MOST_DOTS}, part); break;
#endif
    default: dot_rows(format, at, cols, (struct few_x){x.at, x.stride, 2}, part);
    }
}

/* The functions of each format. */
typedef void unpack_fn(struct block_at at, int cols, float *to, size_t step);
typedef void dot_fn(const struct block_at *at, int cols, struct few_x x, vec *part);

#define FORMAT(name, elements, bytes, span, has_less)                                                       \
    static void unpack_##name(struct block_at at, int cols, float *to, size_t step)                         \
    {                                                                                                       \
        unpack_row(SH_PACKED_##name, at, cols, to, step);                                                   \
    }
SH_PACKED_FORMATS(FORMAT)
#undef FORMAT
#define FORMAT(name, elements, bytes, span, has_less)                                                       \
    static void dot_##name(const struct block_at *at, int cols, struct few_x x, vec *part)                  \
    {                                                                                                       \
        dot_all(SH_PACKED_##name, at, cols, x, part);                                                       \
    }
SH_PACKED_BITS(FORMAT)
SH_PACKED_HALVES(FORMAT)
SH_PACKED_FLOATS(FORMAT)
#undef FORMAT

/* Which format has which kernels: unpacking, and rows of x with outputs straight from blocks (but of points, which are
 * unpacked once for all rows); formats that are not here are unpacked by whoever brought the weight. */
static const struct { unpack_fn *unpack; dot_fn *dot; } kernels[SH_N_PACKING] = {
#define FORMAT(name, elements, bytes, span, less) [SH_PACKED_##name] = {unpack_##name, dot_##name},
    SH_PACKED_BITS(FORMAT)
    SH_PACKED_HALVES(FORMAT)
    SH_PACKED_FLOATS(FORMAT)
#undef FORMAT
#define FORMAT(name, elements, bytes, span, less) [SH_PACKED_##name] = {unpack_##name, NULL},
    SH_PACKED_POINTS(FORMAT)
#undef FORMAT
};

/* n numbers, in runs, from the order of the format's codes. */
static void from_order(enum sh_packing format, float *x, int n)
{
    float run[RUN];
    for (int at = 0; at < n; at += RUN) {
        memcpy(run, x + at, sizeof run);
        for (int i = 0; i < RUN; i++)
            x[at + i] = run[place_of(format, i)];
    }
}

/* n numbers, in runs, into that order. */
static void into_order(enum sh_packing format, float *to, const float *x, int n)
{
    for (int at = 0; at < n; at += RUN)
        for (int i = 0; i < RUN; i++)
            to[at + place_of(format, i)] = x[at + i];
}

void CPU_NAME(cpu_unpack)(const struct sh_packed *p, int first, int n, float *to)
{
    unpack_fn *fn = p->at ? kernels[p->format].unpack : NULL;
    if (!fn)
        p->unpack(p->from, first, n, to);
    for (int i = 0; i < n && fn; i++, to += p->cols) {
        fn(blocks_of_row(p, first + i), p->cols, to, CPU_FLOATS);
        if (is_ordered(p->format))
            from_order(p->format, to, p->cols);
    }
}

/* ---- panels for many rows ---- */

#ifdef __AVX2__
/* Lane k of r[i] and lane i of r[k] change places. */
static inline __attribute__((always_inline)) void turn_vectors(__m256 r[SIDE])
{
    __m256 pairs[SIDE], fours[SIDE];
    for (int k = 0; k < SIDE; k += 2) {
        pairs[k] = _mm256_unpacklo_ps(r[k], r[k + 1]);
        pairs[k + 1] = _mm256_unpackhi_ps(r[k], r[k + 1]);
    }
    for (int k = 0; k < SIDE; k += 4)
        for (int i = 0; i < 2; i++) {
            fours[k + 2 * i] = _mm256_shuffle_ps(pairs[k + i], pairs[k + i + 2], 0x44);
            fours[k + 2 * i + 1] = _mm256_shuffle_ps(pairs[k + i], pairs[k + i + 2], 0xee);
        }
    for (int k = 0; k < 4; k++) {
        r[k] = _mm256_permute2f128_ps(fours[k], fours[k + 4], 0x20);
        r[k + 4] = _mm256_permute2f128_ps(fours[k], fours[k + 4], 0x31);
    }
}
#endif

/* to[at[i] * MANY_WIDE + k] = number i of SIDE of row k; rows lie `step` floats apart. */
static inline void turn(const float *from, size_t step, const int *at, float *to)
{
#ifdef __AVX2__
    __m256 r[SIDE];
    for (int k = 0; k < SIDE; k++)
        r[k] = _mm256_loadu_ps(from + (size_t)k * step);
    turn_vectors(r);
    for (int k = 0; k < SIDE; k++)
        _mm256_storeu_ps(to + at[k] * MANY_WIDE, r[k]);
#else
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < SIDE; k++)
            to[at[i] * MANY_WIDE + k] = from[(size_t)k * step + (size_t)i];
#endif
}

#ifdef __AVX2__
/* SIDE outputs of 2 * SIDE numbers of 16 bits each, turned in pairs before they are widened: half as much to move. */
UNPACK void turn_halves(enum sh_packing format, const unsigned char *const row[SIDE], size_t col, float *to)
{
    __m256 pairs[SIDE];
    for (int k = 0; k < SIDE; k++)
        pairs[k] = _mm256_castsi256_ps(_mm256_loadu_si256((const __m256i *)(const void *)(row[k] + 2 * col)));
    turn_vectors(pairs);
    for (int i = 0; i < SIDE; i++, to += 2 * MANY_WIDE) {
        __m256i two = _mm256_castps_si256(pairs[i]);
        if (format == SH_PACKED_BF16) {
            _mm256_storeu_ps(to, _mm256_castsi256_ps(_mm256_slli_epi32(two, 16)));
            _mm256_storeu_ps(to + MANY_WIDE,
                             _mm256_castsi256_ps(_mm256_and_si256(two, _mm256_set1_epi32((int)0xffff0000u))));
        } else {
            __m256i low = _mm256_and_si256(two, _mm256_set1_epi32(0xffff)), high = _mm256_srli_epi32(two, 16);
            __m256i all = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
            _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm256_castsi256_si128(all)));
            _mm256_storeu_ps(to + MANY_WIDE, _mm256_cvtph_ps(_mm256_extracti128_si256(all, 1)));
        }
    }
}

/* MANY_WIDE outputs, some columns of all before the next: what they write to stays in the first-level cache. */
UNPACK void wide_of_halves(enum sh_packing format, const struct sh_packed *p, int first, float *to)
{
    const unsigned char *row[MANY_WIDE];
    for (int k = 0; k < MANY_WIDE; k++)
        row[k] = blocks_of_row(p, first + k).b;
    for (size_t col = 0; col < (size_t)p->cols; col += RUN, to += RUN * MANY_WIDE)
        for (int k = 0; k < MANY_WIDE; k += SIDE) {
            for (int i = 0; i < SIDE; i++)
                few_ask(row[k + i] + 2 * (col + DEEP), 64);
            turn_halves(format, row + k, col, to + k);
            turn_halves(format, row + k, col + 2 * SIDE, to + 2 * SIDE * MANY_WIDE + k);
        }
}
#endif

/* SIDE outputs [first, …), or n of them and zeros, of a format that has kernels, from place `to` of a panel on. */
static void panel_of(const struct sh_packed *p, int first, int n, float *to)
{
    struct sh_packing_shape s = sh_packing_shape(p->format);
    struct block_at at[SIDE] = {{0}};
    float part[SIDE][DEEP] __attribute__((aligned(64)));
    int number[RUN];                    /* that is at a place of a run                            */
    for (int i = 0; i < RUN; i++)
        number[place_of(p->format, i)] = i;
    for (int k = 0; k < n; k++)
        at[k] = blocks_of_row(p, first + k);
    memset(part, 0, sizeof part);
    for (int col = 0, cols; col < p->cols; col += cols) {
        cols = p->cols - col < DEEP ? p->cols - col : DEEP;
        for (int k = 0; k < n; k++) {
            kernels[p->format].unpack(at[k], cols, part[k], CPU_FLOATS);
            at[k].b += cols / s.elements * s.bytes;
            few_ask(at[k].b, (size_t)(DEEP / s.elements * s.bytes));
            at[k].apart += is_apart(p->format) ? cols / s.elements : 0;
        }
        for (int i = 0; i < cols; i += SIDE)
            turn(part[0] + i, DEEP, number + i % RUN, to + (size_t)(col + i / RUN * RUN) * MANY_WIDE);
    }
}

/* The same of rows that are numbers already. */
static void panel_of_numbers(const float *from, int cols, int n, float *to)
{
    static const int in_order[SIDE] = {0, 1, 2, 3, 4, 5, 6, 7};
    int i = 0;
    for (; n == SIDE && i + SIDE <= cols; i += SIDE)
        turn(from + i, (size_t)cols, in_order, to + (size_t)i * MANY_WIDE);
    for (; i < cols; i++)
        for (int k = 0; k < SIDE; k++)
            to[(size_t)i * MANY_WIDE + (size_t)k] = k < n ? from[(size_t)k * (size_t)cols + (size_t)i] : 0;
}

void CPU_NAME(cpu_unpack_panel)(const struct sh_packed *p, int first, int n, float *to)
{
    float *numbers = to + (size_t)FEW_COLS * (size_t)p->cols;
    for (int o = 0; o < FEW_COLS; o += SIDE) {
        float *at = to + (size_t)(o / MANY_WIDE) * (size_t)p->cols * MANY_WIDE + o % MANY_WIDE;
        int some = n - o < 0 ? 0 : n - o < SIDE ? n - o : SIDE, all = n - o < TOGETHER ? n - o : TOGETHER;
#ifdef __AVX2__
        if (is_halves(p->format) && o % MANY_WIDE == 0 && n - o >= MANY_WIDE) {
            if (p->format == SH_PACKED_BF16)
                wide_of_halves(SH_PACKED_BF16, p, first + o, at);
            else
                wide_of_halves(SH_PACKED_F16, p, first + o, at);
            o += MANY_WIDE - SIDE;
            continue;
        }
#endif
        if (p->at) {
            panel_of(p, first + o, some, at);
            continue;
        }
        if (o % TOGETHER == 0 && some)
            p->unpack(p->from, first + o, all, numbers);
        panel_of_numbers(numbers + (size_t)(o % TOGETHER) * (size_t)p->cols, p->cols, some, at);
    }
}

/* ---- few rows ---- */

/* Outputs [first, first + n) of rows from `row` on; x is in the order of the format's codes. */
static void few_rows(const struct few *a, struct few_x x, int row, int first, int n)
{
    float sum[MOST_DOTS * FEW_COLS] __attribute__((aligned(64)));
    for (int o = 0, step = few_step(n); o < step; o++) {
        struct block_at at[FEW_PLACES];
        vec part[FEW_PLACES * MOST_DOTS];
        int place[FEW_PLACES];
        for (int k = 0; k < FEW_PLACES; k++) {
            place[k] = few_place(o, k, n);
            at[k] = blocks_of_row(a->packed, first + place[k]);
        }
        kernels[a->packed->format].dot(at, a->x.cols, x, part);
        for (int k = 0; k < FEW_PLACES * x.rows; k++)
            sum[k % x.rows * FEW_COLS + place[k / x.rows]] = total(part[k]);
    }
    for (int r = 0; r < x.rows; r++)
        few_out(a, row + r, first, n, sum + r * FEW_COLS);
}

static int rows_at(const struct few *a, int row)
{
    int left = a->x.rows - row;
    return left >= MOST_DOTS ? MOST_DOTS : left >= 2 ? 2 : 1;
}

static void take_blocks(void *arg, struct sh_member *me)
{
    const struct few_run *run = arg;
    enum sh_packing ready = SH_PACKED_OTHER;    /* x, which all products share, is in this one's order */
    for (int b; sh_member_take(me, &b);) {
        const struct few *a = few_of(run->a, &b);
        int first = b * FEW_COLS, n = few_outputs(a, first);
        float *room = a->room + (size_t)me->thread * CPU_NAME(cpu_packed_room)(a->x.cols);
        enum sh_packing format = a->packed->format;
        struct few_x x = {a->x.at, a->x.stride, 0};
        if (is_ordered(format)) {
            for (int r = 0; r < a->x.rows && !(ready && same_order(format, ready)); r++)
                into_order(format, room + (size_t)r * (size_t)a->x.cols, x.at + (size_t)r * x.stride, a->x.cols);
            x = (struct few_x){room, (size_t)a->x.cols, 0};
            ready = format;
        }
        for (int row = 0; row < a->x.rows; row += x.rows) {
            x.rows = rows_at(a, row);
            few_rows(a, (struct few_x){x.at + (size_t)row * x.stride, x.stride, x.rows}, row, first, n);
        }
    }
}

void CPU_NAME(cpu_packed)(const struct few *a, int n, int n_threads)
{
    sh_team_run(n_threads, few_blocks_of_all(a, n), take_blocks, &(struct few_run){.a = a, .n = n});
}
