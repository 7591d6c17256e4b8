/* SPDX-License-Identifier: Apache-2.0 */
/* Products of one row with packed weights, outputs in lanes (lane_dot.h): codes go from memory to registers and meet
 * x there. An x of 8 bits has no kernels of its own here: its high bytes are 0 and are multiplied all the same. */
#include "kernels/cpu/lane_dot.h"
#include "kernels/cpu/variant.h"

#ifdef __AVX2__

/* What codes of a block are made of. */
struct block {
    const struct lanes_at *at;
    struct lane_scales scales;
    struct lane_words words;
};

/* sum += what a run of blocks gives of x, which begins with that run. */
LANES_INLINE lane_floats add_run(enum sh_packing format, struct block *b, int run, const struct lane_run *x,
                                 lane_floats sum)
{
    const int spans = spans_of_run(format), parts = parts_of_run(format) / spans;    /* of a run; of a span */
    const int groups = GROUPS / spans / parts;  /* of a part */
    const int chains = sh_packed_is_points(format) ? 2 : 1;     /* of sums: codes do not come as fast as from memory */
    const int share = LANES * group_bytes(format) / (sh_packing_shape(format).elements / RUN);      /* of a run */
    if (b->at->is_group)
        few_ask(after_floats(b->at->group, &sum) + GROUP_AHEAD + run * share, (size_t)share);
    words_of_run(format, &b->scales, run, &b->words);
#pragma GCC unroll 2
    for (int j = 0; j < spans; j++) {
        lane_floats scale = lane_scale(format, &b->scales, run * spans + j), less;
        struct lane_whole whole = whole_scale(format, &b->scales, run * spans + j);
        lane_ints all = ints_set(0);
#pragma GCC unroll 2
        for (int part = j * parts; part < (j + 1) * parts; part++) {
            struct lane_dot dot[2] = {dot_start(format, 16, x, part), dot_zero()};
#pragma GCC unroll 8
            for (int g = part * groups; g < (part + 1) * groups; g++) {
                struct lane_codes code = codes_for_dot(format, codes_of(format, &b->words, run, g));
                dot_add(format, 16, &dot[g % chains], &code, x, g);
            }
            if (chains > 1)
                dot[0] = dots_add(&dot[0], &dot[1]);
            all = ints_add(all, dot_end(format, 16, &dot[0], &whole));
        }
        if (sh_packing_shape(format).has_less)
            less = lane_less(format, &b->scales, run * spans + j);
        sum = add_span(sum, all, x, j, &scale, sh_packing_shape(format).has_less ? &less : NULL);
    }
    return sum;
}

/* The same of all runs. Those of points are much code, and no faster without a loop. */
LANES_INLINE lane_floats add_blocks(enum sh_packing format, const struct lanes_at *at, const struct lane_run *x,
                                    lane_floats sum)
{
    const int runs = sh_packing_shape(format).elements / RUN;
    struct block b;                     /* most of it is not used, and so not written             */
    b.at = at;
    lane_scales_of(format, at, &b.scales);
    words_of(format, at, &b.words);
    if (sh_packed_is_points(format)) {
#pragma GCC unroll 1
        for (int run = 0; run < runs; run++)
            sum = add_run(format, &b, run, x + run, sum);
        return sum;
    }
#pragma GCC unroll 8
    for (int run = 0; run < runs; run++)
        sum = add_run(format, &b, run, x + run, sum);
    return sum;
}

/* What a kernel reads: a group; or 16 rows of blocks, and bytes from there to the blocks that are read after them. */
struct lanes_from {
    const unsigned char *group;         /* NULL: rows                                             */
    const struct block_at *row;
    size_t next;
};

/* x with the 16 outputs of a group. */
LANES_INLINE lane_floats dot_group(enum sh_packing format, const struct lanes_from *from, int cols,
                                   const struct lane_run *x)
{
    struct sh_packing_shape s = sh_packing_shape(format);
    struct lanes_at at = {.is_group = 1, .group = from->group};
    lane_floats sum = floats_set(0);
    for (int i = 0; i < cols; i += s.elements, x += s.elements / RUN) {
        struct lanes_at here = at;
        sum = add_blocks(format, &here, x, sum);
        at.group += LANES * group_bytes(format);
    }
    return sum;
}

/* x with 16 rows of blocks. */
LANES_INLINE lane_floats dot_rows(enum sh_packing format, const struct lanes_from *from, int cols,
                                  const struct lane_run *x)
{
    struct sh_packing_shape s = sh_packing_shape(format);
    struct lanes_at at = {.row = from->row};
    struct ahead ahead = {.next = from->next, .row_bytes = (size_t)(cols / s.elements) * (size_t)s.bytes};
    lane_floats sum = floats_set(0);
    for (int i = 0; i < cols; i += s.elements, x += s.elements / RUN) {
        ask_ahead(format, &ahead, &at);
        sum = add_blocks(format, &at, x, sum);
        at.b += (size_t)s.bytes;
        at.i++;
    }
    return sum;
}

typedef void lanes_fn(const struct lanes_from *from, int cols, const struct lane_run *x, float *sum);

#define FORMAT(name, elements, bytes, span, has_less)                                                              \
    VNNI static void lanes_##name(const struct lanes_from *from, int cols, const struct lane_run *x, float *sum)   \
    {                                                                                                              \
        if (has_row_lanes(SH_PACKED_##name) && !(from->group && sh_packed_may_settle(SH_PACKED_##name)))            \
            floats_store(sum, dot_rows(SH_PACKED_##name, from, cols, x));                                          \
        else                                                                                                       \
            floats_store(sum, dot_group(SH_PACKED_##name, from, cols, x));                                         \
    }
SH_PACKED_CODES(FORMAT)
#undef FORMAT

static lanes_fn *const kernels[SH_N_PACKING] = {
#define FORMAT(name, elements, bytes, span, less) [SH_PACKED_##name] = lanes_##name,
    SH_PACKED_CODES(FORMAT)
#undef FORMAT
};

/* Outputs [first, first + n), n <= FEW_COLS, of a group for each 16. */
static void from_groups(const struct few *a, const struct lane_run *x, int first, int n)
{
    float sum[FEW_COLS] __attribute__((aligned(64)));
    for (int o = 0; o < n; o += LANES) {
        struct lanes_from from = {.group = group_at(a->packed, a->groups, first + o)};
        kernels[a->packed->format](&from, a->x.cols, x, sum + o);
    }
    few_out(a, 0, first, n, sum);
}

/* The same: TOGETHER neighbours at each of FEW_PLACES places in turn. */
static void from_rows(const struct few *a, const struct lane_run *x, int first, int n)
{
    float sum[FEW_COLS] __attribute__((aligned(64)));
    int turns = (n + LANES - 1) / LANES, step = turns * TOGETHER;
    for (int turn = 0; turn < turns; turn++) {
        struct block_at at[LANES];
        float part[LANES];
        for (int k = 0; k < LANES; k++) {       /* after the last one this again */
            int o = k / TOGETHER * step + turn * TOGETHER + k % TOGETHER;
            at[k] = blocks_of_row(a->packed, first + (o < n ? o : n - 1));
        }
        size_t next = outputs_on(at, turn + 1 < turns ? TOGETHER : FEW_COLS - turn * TOGETHER);
        kernels[a->packed->format](&(struct lanes_from){.row = at, .next = next}, a->x.cols, x, part);
        for (int k = 0; k < FEW_PLACES; k++)
            memcpy(sum + k * step + turn * TOGETHER, part + k * TOGETHER, TOGETHER * sizeof(float));
    }
    few_out(a, 0, first, n, sum);
}

void CPU_NAME(cpu_lanes_row)(const struct few *a, const struct lane_run *x, int first, int n)
{
    (a->groups ? from_groups : from_rows)(a, x, first, n);
}

#endif
