/* SPDX-License-Identifier: Apache-2.0 */
/* Products of up to STRIP rows at a time with packed weights, outputs in lanes (packed_lanes.h). */
#include "kernels/cpu/packed_lanes.h"
#include "kernels/cpu/variant.h"

#ifdef __AVX2__

enum {
    STRIP = 16,                         /* rows that meet the same codes as these are unpacked, … */
    AT_ONCE = 2                         /* … so many in registers                                 */
};

/* Group g of codes, as products take it; their sum with x; the sum of a span, of which start is the part of the
 * offset. */
#ifdef __AVX512F__

typedef lane_ints lane_codes;

struct lane_dot {
    lane_ints high, low;
};

UNPACK lane_codes codes_for_dot(lane_ints code)
{
    return code;
}

UNPACK struct lane_dot dot_start(int32_t base)
{
    return (struct lane_dot){ints_set(0), ints_set(base)};
}

LANES_INLINE void dot_add(struct lane_dot *to, const lane_codes *code, const struct lane_run *x, int g)
{
    to->high = _mm512_dpbusd_epi32(to->high, *code, ints_set(four_of(x->high, g)));
    to->low = _mm512_dpbusd_epi32(to->low, *code, ints_set(four_of(x->low, g)));
}

UNPACK lane_ints dot_end(const struct lane_dot *dot)
{
    return ints_add(ints_left(dot->high, 8), dot->low);
}

#else

typedef struct { lane_ints even, odd; } lane_codes;     /* 16-bit numbers */
struct lane_dot {
    lane_ints sum;
};

UNPACK lane_codes codes_for_dot(lane_ints code)
{
    return (lane_codes){ints_and(code, ints_set(0x00ff00ff)), pairs_right(code, 8)};
}

UNPACK struct lane_dot dot_start(int32_t base)
{
    return (struct lane_dot){ints_set(base)};
}

UNPACK int32_t pair_of(const int16_t *x, int i)
{
    int32_t pair;
    memcpy(&pair, x + 2 * i, sizeof pair);
    return pair;
}

UNPACK void dot_add(struct lane_dot *to, const lane_codes *code, const struct lane_run *x, int g)
{
    to->sum = ints_add(to->sum, ints_multiply_add(code->even, ints_set(pair_of(x->pairs, 2 * g))));
    to->sum = ints_add(to->sum, ints_multiply_add(code->odd, ints_set(pair_of(x->pairs, 2 * g + 1))));
    __asm__("" : "+x"(to->sum.v[0]), "+x"(to->sum.v[1]));      /* sums of sums would not fit in registers */
}

UNPACK lane_ints dot_end(const struct lane_dot *dot)
{
    return dot->sum;
}

#endif

/* sum[r] += what a run gives, of n rows that meet the same codes at once, ready or made as they are needed. */
LANES_INLINE void add_runs(enum sh_packing format, const lane_codes *code, const struct lane_words *words,
                           const struct lane_run *x, int n, const struct lane_scales *s, int run, lane_floats *sum)
{
    int spans = spans_of_run(format), groups = GROUPS / spans;
#pragma GCC unroll 2
    for (int j = 0; j < spans; j++) {
        struct lane_dot dot[AT_ONCE];
        lane_floats scale = lane_scale(format, s, run * spans + j), less;
#pragma GCC unroll 4
        for (int r = 0; r < n; r++)
            dot[r] = dot_start(x[r].base[j]);
#pragma GCC unroll 8
        for (int g = j * groups; g < (j + 1) * groups; g++) {
            lane_codes own = code ? code[g] : codes_for_dot(codes_of(format, words, run, g));
#pragma GCC unroll 4
            for (int r = 0; r < n; r++)
                dot_add(&dot[r], &own, &x[r], g);
        }
        if (sh_packing_shape(format).has_less)
            less = lane_less(format, s, run * spans + j);
#pragma GCC unroll 4
        for (int r = 0; r < n; r++)
            sum[r] = add_span(sum[r], dot_end(&dot[r]), &x[r], j, &scale,
                              sh_packing_shape(format).has_less ? &less : NULL);
    }
}

/* sum[r] += what blocks give of rows of x, which begin with the run that the first block meets. */
LANES_INLINE void add_blocks(enum sh_packing format, const struct lanes_at *at, const struct lane_run *x, int rows,
                             lane_floats *sum)
{
    struct lane_scales scales;
    struct lane_words words;
    lane_scales_of(format, at, &scales);
    words_of(format, at, &words);
#pragma GCC unroll 8
    for (int run = 0; run < sh_packing_shape(format).elements / RUN; run++, x += rows) {
        lane_codes code[GROUPS];
        int r = 0;
        ask_group_ahead(format, at, run);
        if (rows == 1) {
            add_runs(format, NULL, &words, x, 1, &scales, run, sum);
            continue;
        }
#pragma GCC unroll 8
        for (int g = 0; g < GROUPS; g++)
            code[g] = codes_for_dot(codes_of(format, &words, run, g));
        for (; r + AT_ONCE <= rows; r += AT_ONCE)
            add_runs(format, code, &words, x + r, AT_ONCE, &scales, run, sum + r);
        for (; r < rows; r++)
            add_runs(format, code, &words, x + r, 1, &scales, run, sum + r);
    }
}

/* What a kernel reads: a group; or 16 rows of blocks, and bytes from there to the blocks that are read after them. */
struct lanes_from {
    const unsigned char *group;         /* NULL: rows                                             */
    const struct block_at *row;
    size_t next;
};

/* sum[r] = row r of x with the 16 outputs of a group. */
LANES_INLINE void dot_group(enum sh_packing format, const struct lanes_from *from, int cols, const struct lane_run *x,
                            int rows, lane_floats *sum)
{
    struct sh_packing_shape s = sh_packing_shape(format);
    const unsigned char *group = from->group;
    lane_floats one = floats_set(0);
    for (int r = 0; r < rows; r++)
        sum[r] = one;
    for (int i = 0; i < cols; i += s.elements, x += s.elements / RUN * rows) {
        struct lanes_at at = {.is_group = 1, .group = group};
        add_blocks(format, &at, x, rows, rows == 1 ? &one : sum);
        group += LANES * group_bytes(format);
    }
    if (rows == 1)
        *sum = one;
}

#ifdef __AVX512F__
/* sum[r] = row r of x with 16 rows of blocks. */
LANES_INLINE void dot_rows(enum sh_packing format, const struct lanes_from *from, int cols, const struct lane_run *x,
                           int rows, lane_floats *sum)
{
    struct sh_packing_shape s = sh_packing_shape(format);
    struct lanes_at at = {.row = from->row};
    struct ahead ahead = {.next = from->next, .row_bytes = (size_t)(cols / s.elements) * (size_t)s.bytes};
    for (int r = 0; r < rows; r++)
        sum[r] = floats_set(0);
    for (int i = 0; i < cols; i += s.elements, x += s.elements / RUN * rows) {
        ask_ahead(format, &ahead, &at);
        add_blocks(format, &at, x, rows, sum);
        at.b += (size_t)s.bytes;
        at.i++;
    }
}
#define DOT_ROWS dot_rows               /* with VNNI alone */
#else
#define DOT_ROWS dot_group
#endif

LANES_INLINE void dot_all(enum sh_packing format, const struct lanes_from *from, int cols, const struct lane_run *x,
                          int rows, lane_floats *sum)
{
    if (from->group && rows > 1)
        dot_group(format, from, cols, x, rows, sum);
    else if (from->group)
        dot_group(format, from, cols, x, 1, sum);
    else if (rows > 1)
        DOT_ROWS(format, from, cols, x, rows, sum);
    else
        DOT_ROWS(format, from, cols, x, 1, sum);
}

typedef void lanes_fn(const struct lanes_from *from, int cols, const struct lane_run *x, int rows, lane_floats *sum);
typedef void put_fn(const struct sh_mat *x, int first, int rows, struct lane_run *to);

#define FORMAT(name, elements, bytes, span, has_less)                                                              \
    VNNI static void lanes_##name(const struct lanes_from *from, int cols, const struct lane_run *x, int rows,     \
                                  lane_floats *sum)                                                                \
    {                                                                                                              \
        dot_all(SH_PACKED_##name, from, cols, x, rows, sum);                                                       \
    }                                                                                                              \
    static void put_##name(const struct sh_mat *x, int first, int rows, struct lane_run *to)                       \
    {                                                                                                              \
        put_lanes(SH_PACKED_##name, x, first, rows, to);                                                           \
    }
SH_PACKED_CODES(FORMAT)
#undef FORMAT

/* Of each format: outputs in lanes, and x as these want it. */
static const struct { lanes_fn *lanes; put_fn *put; } kernels[SH_N_PACKING] = {
#define FORMAT(name, elements, bytes, span, less) [SH_PACKED_##name] = {lanes_##name, put_##name},
    SH_PACKED_CODES(FORMAT)
#undef FORMAT
};

struct strip {                          /* rows [first, first + n) of x, n <= STRIP               */
    const struct lane_run *x;
    int first, n;
};

/* Outputs [first, first + n), n <= FEW_COLS, of a group for each 16. */
static void from_groups(const struct few *a, struct strip s, int first, int n)
{
    float sum[STRIP][FEW_COLS] __attribute__((aligned(64)));
    for (int o = 0; o < n; o += LANES) {
        lane_floats part[STRIP];
        struct lanes_from from = {.group = group_at(a->packed, a->groups, first + o)};
        kernels[a->packed->format].lanes(&from, a->x.cols, s.x, s.n, part);
        for (int r = 0; r < s.n; r++)
            floats_store(sum[r] + o, part[r]);
    }
    for (int r = 0; r < s.n; r++)
        few_out(a, s.first + r, first, n, sum[r]);
}

/* The same: TOGETHER neighbours at each of FEW_PLACES places in turn. */
static void from_rows(const struct few *a, struct strip s, int first, int n)
{
    float sum[STRIP][FEW_COLS] __attribute__((aligned(64)));
    int turns = (n + LANES - 1) / LANES, step = turns * TOGETHER;
    for (int turn = 0; turn < turns; turn++) {
        struct block_at at[LANES];
        lane_floats part[STRIP];
        for (int k = 0; k < LANES; k++) {       /* after the last one this again */
            int o = k / TOGETHER * step + turn * TOGETHER + k % TOGETHER;
            at[k] = blocks_of_row(a->packed, first + (o < n ? o : n - 1));
        }
        size_t next = outputs_on(at, turn + 1 < turns ? TOGETHER : FEW_COLS - turn * TOGETHER);
        kernels[a->packed->format].lanes(&(struct lanes_from){.row = at, .next = next}, a->x.cols, s.x, s.n, part);
        for (int r = 0; r < s.n; r++)
            for (int k = 0; k < FEW_PLACES; k++)
                memcpy(sum[r] + k * step + turn * TOGETHER, (const float *)&part[r] + k * TOGETHER,
                       TOGETHER * sizeof(float));
    }
    for (int r = 0; r < s.n; r++)
        few_out(a, s.first + r, first, n, sum[r]);
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
            kernels[a->packed->format].put(&a->x, 0, a->x.rows, x);
        ready = a->packed->format;
        (a->groups ? from_groups : from_rows)(a, (struct strip){x, 0, a->x.rows}, first, n);
    }
}

void CPU_NAME(cpu_packed_lanes)(const struct few *a, int n, int n_threads)
{
    sh_team_run(n_threads, few_blocks_of_all(a, n), take_blocks, &(struct few_run){.a = a, .n = n});
}

#ifndef __AVX512F__

/* ---- more rows, strip by strip, from groups ---- */

enum { ROUND = 4 };                     /* strips that a thread takes with the same outputs       */

struct strips {
    const struct few *a;
    struct lane_run *x;                 /* strips one after another, as put_lanes has each        */
    int n, rounds;
};

size_t CPU_NAME(cpu_lanes_room)(int rows, int in)
{
    return (size_t)rows * (size_t)(in / RUN) * sizeof(struct lane_run) / sizeof(float);
}

static struct strip strip_at(const struct strips *s, int i)
{
    int first = i * STRIP, left = s->a->x.rows - first;
    return (struct strip){s->x + (size_t)first * (size_t)(s->a->x.cols / RUN), first,
                          left < STRIP ? left : STRIP};
}

static void put_strip(void *arg, int i)
{
    const struct strips *s = arg;
    struct strip to = strip_at(s, i);
    kernels[s->a->packed->format].put(&s->a->x, to.first, to.n, (struct lane_run *)to.x);
}

static void take_strips(void *arg, struct sh_member *me)
{
    const struct strips *s = arg;
    const struct few *a = s->a;
    for (int b; sh_member_take(me, &b);) {
        int first = b / s->rounds * FEW_COLS, n = a->out.cols - first < FEW_COLS ? a->out.cols - first : FEW_COLS;
        int from = b % s->rounds * ROUND, to = from + ROUND < s->n ? from + ROUND : s->n;
        for (int i = from; i < to; i++)
            from_groups(a, strip_at(s, i), first, n);
    }
}

void CPU_NAME(cpu_packed_lanes_many)(const struct few *a, int n_threads)
{
    int n = (a->x.rows + STRIP - 1) / STRIP;
    struct strips s = {.a = a, .n = n, .rounds = (n + ROUND - 1) / ROUND};
    s.x = (void *)(a->room + (size_t)n_threads * CPU_NAME(cpu_packed_room)(a->x.cols));
    sh_team_each(n_threads, n, put_strip, &s);
    sh_team_run(n_threads, few_blocks(a) * s.rounds, take_strips, &s);
}

#endif
#endif
