/* SPDX-License-Identifier: Apache-2.0 */
/* Products of 1 to PACKED_ROWS rows with packed weights, outputs in lanes (packed_lanes.h), straight from blocks. */
#include "kernels/cpu/packed_lanes.h"
#include "kernels/cpu/variant.h"

#ifdef __AVX512F__

/* sum += what a run of a row gives. */
LANES_INLINE void add_run(enum sh_packing format, const __m512i *code, const struct lane_run *x,
                          const struct lane_scales *s, int run, __m512 *sum)
{
    int spans = spans_of_run(format), groups = GROUPS / spans, has_less = shape_of(format).has_less;
#pragma GCC unroll 2
    for (int j = 0; j < spans; j++) {
        __m512i high = _mm512_setzero_si512(), low = _mm512_set1_epi32(x->base[j]);
#pragma GCC unroll 8
        for (int g = j * groups; g < (j + 1) * groups; g++) {
            high = _mm512_dpbusd_epi32(high, code[g], _mm512_set1_epi32(four_of(x->high, g)));
            low = _mm512_dpbusd_epi32(low, code[g], _mm512_set1_epi32(four_of(x->low, g)));
        }
        *sum = add_span(*sum, high, low, x, j, &s->scale[run * spans + j],
                        has_less ? &s->less[run * spans + j] : NULL);
    }
}

/* sum[r] = row r of x with 16 outputs, whose blocks are at `at`; next: bytes from there to the blocks that are read
 * after them. */
LANES_INLINE void dot_lanes(enum sh_packing format, const struct block_at *at, size_t next, int cols,
                            const struct lane_run *x, int rows, __m512 *sum)
{
    struct block_shape s = shape_of(format);
    size_t blocks = (size_t)(cols / s.elements);
    struct ahead ahead = {.next = next, .row_bytes = blocks * (size_t)s.bytes};
    for (int r = 0; r < rows; r++)
        sum[r] = _mm512_setzero_ps();
    for (size_t i = 0, b = 0; i < blocks; i++, b += (size_t)s.bytes) {
        struct lane_scales scales;
        struct lane_words words;
        ask_ahead(&ahead, at, (size_t)s.bytes);
        lane_scales_of(format, at, i, b, &scales);
        words_of(format, at, b, &words);
#pragma GCC unroll 8
        for (int run = 0; run < s.elements / RUN; run++, x += rows) {
            __m512i code[GROUPS];
#pragma GCC unroll 8
            for (int g = 0; g < GROUPS; g++)
                code[g] = codes_of(format, words.word, words.fifths, run, g);
            for (int r = 0; r < rows; r++)
                add_run(format, code, x + r, &scales, run, sum + r);
        }
    }
}

typedef void lanes_fn(const struct block_at *at, size_t next, int cols, const struct lane_run *x, int rows,
                      __m512 *sum);
typedef void put_fn(const struct sh_mat *x, struct lane_run *to);

#define FORMAT(name, elements, bytes, span, has_less)                                                              \
    VNNI static void lanes_##name(const struct block_at *at, size_t next, int cols, const struct lane_run *x,      \
                                  int rows, __m512 *sum)                                                           \
    {                                                                                                              \
        __m512 one;                                                                                                \
        if (rows == 1) {                                                                                           \
            dot_lanes(SH_PACKED_##name, at, next, cols, x, 1, &one);                                               \
            sum[0] = one;                                                                                          \
        } else {                                                                                                   \
            dot_lanes(SH_PACKED_##name, at, next, cols, x, rows, sum);                                             \
        }                                                                                                          \
    }                                                                                                              \
    static void put_##name(const struct sh_mat *x, struct lane_run *to)                                            \
    {                                                                                                              \
        put_lanes(SH_PACKED_##name, x, 0, x->rows, to);                                                            \
    }
SH_PACKED_CODES(FORMAT)
#undef FORMAT

/* Of each format: outputs in lanes, and x as these want it. */
static const struct { lanes_fn *lanes; put_fn *put; } kernels[SH_N_PACKING] = {
#define FORMAT(name, elements, bytes, span, less) [SH_PACKED_##name] = {lanes_##name, put_##name},
    SH_PACKED_CODES(FORMAT)
#undef FORMAT
};

/* Outputs [first, first + n), n <= FEW_COLS: TOGETHER neighbours at each of FEW_PLACES places in turn. */
static void outputs(const struct few *a, const struct lane_run *x, int first, int n)
{
    float sum[PACKED_ROWS][FEW_COLS] __attribute__((aligned(64)));
    int turns = (n + LANES - 1) / LANES, step = turns * TOGETHER;
    for (int turn = 0; turn < turns; turn++) {
        struct block_at at[LANES];
        float part[PACKED_ROWS][LANES] __attribute__((aligned(64)));
        for (int k = 0; k < LANES; k++) {       /* after the last one this again */
            int o = k / TOGETHER * step + turn * TOGETHER + k % TOGETHER;
            at[k] = blocks_of_row(a->packed, first + (o < n ? o : n - 1));
        }
        size_t next = outputs_on(at, turn + 1 < turns ? TOGETHER : FEW_COLS - turn * TOGETHER);
        kernels[a->packed->format].lanes(at, next, a->x.cols, x, a->x.rows, (__m512 *)part);
        for (int r = 0; r < a->x.rows; r++)
            for (int k = 0; k < FEW_PLACES; k++)
                memcpy(sum[r] + k * step + turn * TOGETHER, part[r] + k * TOGETHER, TOGETHER * sizeof(float));
    }
    for (int r = 0; r < a->x.rows; r++)
        few_out(a, r, first, n, sum[r]);
}

static void take_blocks(void *arg, struct sh_member *me)
{
    const struct few_run *run = arg;
    enum sh_packing ready = SH_PACKED_OTHER;    /* x, which all products share, is as this one wants it */
    for (int b; sh_member_take(me, &b);) {
        const struct few *a = few_of(run->a, &b);
        int first = b * FEW_COLS, n = a->out.cols - first < FEW_COLS ? a->out.cols - first : FEW_COLS;
        struct lane_run *x = (void *)(a->room + (size_t)me->thread * CPU_NAME(cpu_packed_room)(a->x.cols));
        if (!ready || !same_lanes(a->packed->format, ready))
            kernels[a->packed->format].put(&a->x, x);
        ready = a->packed->format;
        outputs(a, x, first, n);
    }
}

void CPU_NAME(cpu_packed_lanes)(const struct few *a, int n, int n_threads)
{
    sh_team_run(n_threads, few_blocks_of_all(a, n), take_blocks, &(struct few_run){.a = a, .n = n});
}

#endif
