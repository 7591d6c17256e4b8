/* SPDX-License-Identifier: Apache-2.0 */
/* The product of one row with the codes of packed weights (kernels/packed.h), which decoding consists of: both are
 * multiplied as integers (packed_dots.h), outputs at FEW_PLACES places in turn (gemm_few_rows_out.h says why). */
#include "kernels/cpu/gemm_few_rows_out.h"
#include "kernels/cpu/packed_dots.h"
#include "kernels/cpu/variant.h"

enum { UNROLLED = CPU_FLOATS > 4 ? 8 : 1 };     /* loops of a block: in vectors of 4 all of them take long to compile */

/* Sums of FEW_PLACES outputs. */
struct dots {
    floats_of_run sum[FEW_PLACES];
    floats8 less[FEW_PLACES];           /* what is subtracted from them, ...                      */
    floats4 all_less;                   /* ... lane k from output k                               */
};

/* Blocks with one scale. */
UNPACK struct dots dot_runs(enum sh_packing format, const struct block_at *at, int cols, const struct whole_x *x)
{
    struct sh_packing_shape s = sh_packing_shape(format);
    struct dots to = {.sum = {{0}}};
    size_t runs = (size_t)(cols / RUN);
    for (size_t i = 0, b = 0; i < runs; i++, b += (size_t)s.bytes) {
        float scale[FEW_PLACES];
        floats4 own = scales_of_blocks(format, at, i, b), both = own * x->scale[i];
        memcpy(scale, &both, sizeof scale);
        if (s.has_less)
            to.all_less += less_of_blocks(format, at, b) * x->sum[i];
        else if (whole_offset(format) > 0)
            to.all_less += own * whole_offset(format) * x->sum[i];
        __asm__("" : "+m"(scale));      /* broadcast from memory: from registers it takes shuffles */
#pragma GCC unroll UNROLLED
        for (int k = 0; k < FEW_PLACES; k++) {
            few_ask(at[k].b + b + FEW_AHEAD, (size_t)s.bytes);
            ints_of_run dot = dot_run(whole_codes(format, at[k].b + b, 0), x->n[i], whole_is_signed(format));
            to.sum[k] += __builtin_convertvector(dot, floats_of_run) * scale[k];
        }
    }
    return to;
}

/* n of them, or 8 of more; then zeros. */
UNPACK floats8 up_to_8(const float *x, size_t n)
{
    floats8 to = {0};
    memcpy(&to, x, (n < 8 ? n : 8) * sizeof *x);
    return to;
}

/* Blocks with several. */
UNPACK struct dots dot_spans(enum sh_packing format, const struct block_at *at, int cols,
                             const struct whole_x *x)
{
    struct sh_packing_shape s = sh_packing_shape(format);
    struct dots to = {.sum = {{0}}};
    size_t blocks = (size_t)(cols / s.elements), spans = (size_t)(s.elements / s.span);
    size_t runs = (size_t)(s.elements / RUN);
    for (size_t i = 0, b = 0; i < blocks; i++, b += (size_t)s.bytes) {
        float scale[FEW_PLACES][MOST_SPANS];
        struct points points[FEW_PLACES];
        const unsigned char *block[FEW_PLACES];
#pragma GCC unroll UNROLLED
        for (int k = 0; k < FEW_PLACES; k++) {
            float own[MOST_SPANS], least[MOST_SPANS];
            few_ask(at[k].b + b + FEW_AHEAD, (size_t)s.bytes);
            block[k] = readable(format, at[k].b + b, points + k);
            scales_of(format, block[k], own, least);
            for (size_t j = 0; j < spans; j += 8) {
                floats8 d = up_to_8(own + j, spans), sum = up_to_8(x->sum + i * spans + j, spans);
                *(floats8 *)(scale[k] + j) = d * up_to_8(x->scale + i * spans + j, spans);
                if (s.has_less)
                    to.less[k] += up_to_8(least + j, spans) * sum;
                else if (whole_offset(format) > 0)
                    to.less[k] += d * whole_offset(format) * sum;
            }
        }
        __asm__("" : "+m"(scale));      /* broadcast from memory: from registers it takes shuffles */
#pragma GCC unroll UNROLLED
        for (size_t run = 0; run < runs; run++)
#pragma GCC unroll UNROLLED
            for (int k = 0; k < FEW_PLACES; k++) {
                bytes32 code = whole_codes(format, block[k], (int)run);
                ints_of_run dot = dot_run(code, x->n[i * runs + run], whole_is_signed(format));
                to.sum[k] += __builtin_convertvector(dot, floats_of_run) * of_run(format, scale[k], (int)run);
            }
    }
    return to;
}

UNPACK void dot_all(enum sh_packing format, const struct block_at *at, int cols, const struct whole_x *x, float *out)
{
    struct dots all = has_one_scale(format) ? dot_runs(format, at, cols, x) : dot_spans(format, at, cols, x);
    floats8 sum[FEW_PLACES];
    for (int k = 0; k < FEW_PLACES; k++)
        sum[k] = in_8(all.sum[k]) - all.less[k];
    floats4 to = totals(sum) - all.all_less;
    memcpy(out, &to, FEW_PLACES * sizeof *out);
}

typedef void dot_fn(const struct block_at *at, int cols, const struct whole_x *x, float *out);
typedef void whole_fn(const float *x, int cols, float *room);

#define FORMAT(name, elements, bytes, span, has_less)                                                              \
    static void dot_##name(const struct block_at *at, int cols, const struct whole_x *x, float *out)               \
    {                                                                                                              \
        dot_all(SH_PACKED_##name, at, cols, x, out);                                                               \
    }                                                                                                              \
    static void whole_##name(const float *x, int cols, float *room)                                                \
    {                                                                                                              \
        put_whole(SH_PACKED_##name, x, cols, room);                                                                \
    }
SH_PACKED_CODES(FORMAT)
#undef FORMAT

/* Of each format of codes: a row with outputs, and the row as these want it. */
static const struct { dot_fn *dot; whole_fn *whole; } kernels[SH_N_PACKING] = {
#define FORMAT(name, elements, bytes, span, less) [SH_PACKED_##name] = {dot_##name, whole_##name},
    SH_PACKED_CODES(FORMAT)
#undef FORMAT
};

/* Outputs [first, first + n). */
static void outputs(const struct few *a, const struct whole_x *x, int first, int n)
{
    float sum[FEW_COLS] __attribute__((aligned(64)));
    for (int o = 0, step = few_step(n); o < step; o++) {
        struct block_at at[FEW_PLACES];
        float part[FEW_PLACES];
        for (int k = 0; k < FEW_PLACES; k++)
            at[k] = blocks_of_row(a->packed, first + few_place(o, k, n));
        kernels[a->packed->format].dot(at, a->x.cols, x, part);
        for (int k = 0; k < FEW_PLACES; k++)
            sum[few_place(o, k, n)] = part[k];
    }
    few_out(a, 0, first, n, sum);
}

static void take_blocks(void *arg, struct sh_member *me)
{
    const struct few_run *run = arg;
    enum sh_packing ready = SH_PACKED_OTHER;    /* x, which all products share, is as this one wants it */
    for (int b; sh_member_take(me, &b);) {
        const struct few *a = few_of(run->a, &b);
        int first = b * FEW_COLS, n = few_outputs(a, first);
        float *room = a->room + (size_t)me->thread * CPU_NAME(cpu_packed_room)(a->x.cols);
        struct whole_x x = whole_at(room, a->x.cols);
        if (!ready || !same_whole(a->packed->format, ready))
            kernels[a->packed->format].whole(a->x.at, a->x.cols, room);
        ready = a->packed->format;
        outputs(a, &x, first, n);
    }
}

void CPU_NAME(cpu_packed_row)(const struct few *a, int n, int n_threads)
{
    sh_team_run(n_threads, few_blocks_of_all(a, n), take_blocks, &(struct few_run){.a = a, .n = n});
}
