/* SPDX-License-Identifier: Apache-2.0 */
/* Products of many rows with packed weights, outputs in lanes, by VNNI (packed_lanes.h). A thread takes the codes and
 * scales of FEW_COLS outputs out of their blocks into a cache and multiplies them by tiles of HIGH rows and WIDE
 * outputs, whose sums stay in registers. With two multiply-adds for the two bytes of x, that is half of the
 * instructions that f32 products take. */
#include "kernels/cpu/packed_lanes.h"
#include "kernels/cpu/variant.h"

#ifdef __AVX512F__

enum {
    HIGH = 4, VECTORS = 2, WIDE = VECTORS * LANES,      /* rows and outputs of a tile             */
    STRIP = 192,                        /* rows that a thread takes with the same codes, ...      */
    SHARES = 4                          /* ... all of them where each has so many outputs to take */
};

/* A run of WIDE outputs. */
struct wide_run {
    __m512i code[GROUPS][VECTORS];
    __m512 scale[2][VECTORS], less[2][VECTORS];         /* of its spans                           */
};

/* x: tiles of HIGH rows, of which the last may have fewer, one after another as put_lanes has them; after the room of
 * the threads. */
size_t CPU_NAME(cpu_lanes_room)(int rows, int in)
{
    return (size_t)rows * (size_t)(in / RUN) * sizeof(struct lane_run) / sizeof(float);
}

/* ---- outputs ---- */

/* Vector v of the runs from blocks. */
UNPACK void put_wide(enum sh_packing format, struct lanes_at at, size_t next, int cols, int v, struct wide_run *to)
{
    struct sh_packing_shape s = sh_packing_shape(format);
    size_t blocks = (size_t)(cols / s.elements);
    struct ahead ahead = {.next = next, .row_bytes = blocks * (size_t)s.bytes};
    int spans = spans_of_run(format);
    for (size_t i = 0; i < blocks; i++) {
        struct lane_scales scales;
        struct lane_words words;
        ask_ahead(format, &ahead, &at);
        lane_scales_of(format, &at, &scales);
        words_of(format, &at, &words);
#pragma GCC unroll 8
        for (int run = 0; run < s.elements / RUN; run++, to++) {
            ask_group_ahead(format, &at, run);
#pragma GCC unroll 8
            for (int g = 0; g < GROUPS; g++)
                to->code[g][v] = codes_of(format, &words, run, g);
            for (int j = 0; j < spans; j++) {
                to->scale[j][v] = lane_scale(format, &scales, run * spans + j);
                if (s.has_less)
                    to->less[j][v] = lane_less(format, &scales, run * spans + j);
            }
        }
        at.group = at.is_group ? at.group + LANES * group_bytes(format) : NULL;
        at.b += (size_t)s.bytes;
        at.i++;
    }
}

/* ---- products ---- */

/* sum[r][0 .. WIDE) = row r of a tile of x; spans, has_less and rows are constants wherever this is inlined. */
LANES_INLINE void tile(int spans, int has_less, int rows, const struct wide_run *w, const struct lane_run *x, int runs,
                       float *sum)
{
    const int groups = GROUPS / spans;
    __m512 all[HIGH][VECTORS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
        all[r][0] = all[r][1] = _mm512_setzero_ps();
    for (int i = 0; i < runs; i++, w++, x += rows)
#pragma GCC unroll 2
        for (int j = 0; j < spans; j++) {
            __m512i high[HIGH][VECTORS], low[HIGH][VECTORS];
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) {
                high[r][0] = high[r][1] = _mm512_setzero_si512();
                low[r][0] = low[r][1] = _mm512_set1_epi32(x[r].base[j]);
            }
#pragma GCC unroll 8
            for (int g = 0; g < groups; g++)
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++) {
                    __m512i of_high = _mm512_set1_epi32(four_of(x[r].high, j * groups + g)), of_low;
                    of_low = _mm512_set1_epi32(four_of(x[r].low, j * groups + g));
#pragma GCC unroll 2
                    for (int v = 0; v < VECTORS; v++) {
                        high[r][v] = _mm512_dpbusd_epi32(high[r][v], w->code[j * groups + g][v], of_high);
                        low[r][v] = _mm512_dpbusd_epi32(low[r][v], w->code[j * groups + g][v], of_low);
                    }
                }
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
                for (int v = 0; v < VECTORS; v++)
                    all[r][v] = add_span(all[r][v], ints_add(ints_left(high[r][v], 8), low[r][v]), &x[r], j,
                                         &w->scale[j][v], has_less ? &w->less[j][v] : NULL);
        }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < VECTORS; v++)
            _mm512_storeu_ps(sum + r * FEW_COLS + v * LANES, all[r][v]);
}

LANES_INLINE void tile_of(int spans, int has_less, int rows, const struct wide_run *w, const struct lane_run *x,
                          int runs, float *sum)
{
    switch (rows) {
    case 1: tile(spans, has_less, 1, w, x, runs, sum); break;
    case 2: tile(spans, has_less, 2, w, x, runs, sum); break;
    case 3: tile(spans, has_less, 3, w, x, runs, sum); break;
    default: tile(spans, has_less, HIGH, w, x, runs, sum);
    }
}

typedef void tile_fn(int rows, const struct wide_run *w, const struct lane_run *x, int runs, float *sum);

#define TILE(spans, has_less)                                                                                      \
    VNNI static void tile_##spans##_##has_less(int rows, const struct wide_run *w, const struct lane_run *x,       \
                                               int runs, float *sum)                                               \
    {                                                                                                              \
        tile_of(spans, has_less, rows, w, x, runs, sum);                                                           \
    }
TILE(1, 0)
TILE(1, 1)
TILE(2, 0)
TILE(2, 1)
#undef TILE

typedef void wide_fn(const unsigned char *group, const struct block_at *row, size_t next, int cols, int v,
                     struct wide_run *to);
typedef void put_fn(const struct sh_mat *x, int first, int rows, struct lane_run *to);

#define FORMAT(name, elements, bytes, span, has_less)                                                              \
    static void wide_##name(const unsigned char *group, const struct block_at *row, size_t next, int cols, int v,  \
                            struct wide_run *to)                                                                   \
    {                                                                                                              \
        if (group)                                                                                                 \
            put_wide(SH_PACKED_##name, (struct lanes_at){.is_group = 1, .group = group}, 0, cols, v, to);          \
        else                                                                                                       \
            put_wide(SH_PACKED_##name, (struct lanes_at){.row = row}, next, cols, v, to);                          \
    }                                                                                                              \
    static void put_##name(const struct sh_mat *x, int first, int rows, struct lane_run *to)                       \
    {                                                                                                              \
        put_lanes(SH_PACKED_##name, x, first, rows, to);                                                           \
    }
SH_PACKED_CODES(FORMAT)
#undef FORMAT

static tile_fn *const tiles[2][2] = {{tile_1_0, tile_1_1}, {tile_2_0, tile_2_1}};

/* Of each format: outputs out of their blocks, x as these want it, and their product. */
static const struct { wide_fn *wide; put_fn *put; tile_fn *const *tile; } kernels[SH_N_PACKING] = {
#define FORMAT(name, elements, bytes, span, has_less) \
    [SH_PACKED_##name] = {wide_##name, put_##name, &tiles[(span) < RUN][has_less]},
    SH_PACKED_CODES(FORMAT)
#undef FORMAT
};

struct work {
    const struct few *a;
    struct lane_run *x;
    int most, by_row;                   /* rows of a strip; strips                                */
};

static int rows_at(const struct few *a, int row)
{
    return a->x.rows - row < HIGH ? a->x.rows - row : HIGH;
}

static struct lane_run *tile_at(const struct work *w, int row)
{
    return w->x + (size_t)row * (size_t)(w->a->x.cols / RUN);
}

static void put_tile(void *arg, int i)
{
    const struct work *w = arg;
    kernels[w->a->packed->format].put(&w->a->x, i * HIGH, rows_at(w->a, i * HIGH), tile_at(w, i * HIGH));
}

/* Outputs [first, first + n), WIDE after WIDE. */
static void put_outputs(const struct few *a, int first, int n, struct wide_run *to)
{
    for (int o = 0; o < n; o += LANES) {
        struct block_at at[LANES];
        const unsigned char *group = a->groups ? group_at(a->packed, a->groups, first + o) : NULL;
        for (int k = 0; k < LANES; k++)         /* after the last one this again */
            at[k] = blocks_of_row(a->packed, first + (o + k < n ? o + k : n - 1));
        kernels[a->packed->format].wide(group, at, outputs_on(at, LANES), a->x.cols, o % WIDE / LANES,
                                        to + (size_t)(o / WIDE) * (size_t)(a->x.cols / RUN));
    }
}

static void take_blocks(void *arg, struct sh_member *me)
{
    const struct work *w = arg;
    const struct few *a = w->a;
    int runs = a->x.cols / RUN;
    struct wide_run *wide = (void *)(a->room + (size_t)me->thread * CPU_NAME(cpu_packed_room)(a->x.cols));
    for (int b; sh_member_take(me, &b);) {
        int first = b / w->by_row * FEW_COLS, n = a->out.cols - first < FEW_COLS ? a->out.cols - first : FEW_COLS;
        int from = b % w->by_row * w->most, to = a->x.rows - from < w->most ? a->x.rows : from + w->most;
        put_outputs(a, first, n, wide);
        for (int row = from; row < to; row += HIGH) {
            float sum[HIGH * FEW_COLS] __attribute__((aligned(64)));
            int rows = rows_at(a, row);
            for (int o = 0; o < n; o += WIDE)
                (*kernels[a->packed->format].tile)(rows, wide + (size_t)(o / WIDE) * (size_t)runs, tile_at(w, row),
                                                   runs, sum + o);
            for (int r = 0; r < rows; r++)
                few_out(a, row + r, first, n, sum + r * FEW_COLS);
        }
    }
}

void CPU_NAME(cpu_packed_lanes_many)(const struct few *a, int n_threads)
{
    int rows = a->x.rows, panels = (a->out.cols + FEW_COLS - 1) / FEW_COLS;
    struct work work = {.a = a, .most = panels < SHARES * n_threads ? STRIP : rows};
    work.x = (void *)(a->room + (size_t)n_threads * CPU_NAME(cpu_packed_room)(a->x.cols));
    work.by_row = (rows + work.most - 1) / work.most;
    sh_team_each(n_threads, (rows + HIGH - 1) / HIGH, put_tile, &work);
    sh_team_run(n_threads, work.by_row * panels, take_blocks, &work);
}

#endif
