/* SPDX-License-Identifier: Apache-2.0 */
/* Products with packed weights, outputs in lanes (lane_dot.h); those of one row are in gemm_packed_lanes_row.c. A
 * thread takes the codes and scales of WIDE outputs out of their blocks into a cache and multiplies them by tiles of
 * HIGH rows, whose sums stay in registers: for strips of up to STRIP rows slab by slab, so that both fit into the first
 * cache; for more rows SOME runs of FEW_COLS outputs at a time, which the second cache holds. */
#include "kernels/cpu/lane_dot.h"
#include "kernels/cpu/variant.h"

#ifdef __AVX2__

enum {
#if defined __AVX512F__
    HIGH = 4, VECTORS = 2,              /* rows and vectors of outputs of a tile                  */
#elif defined HAS_DOTS
    HIGH = 3, VECTORS = 1,
#else
    HIGH = 2, VECTORS = 1,
#endif
    WIDE = VECTORS * LANES,
    SLAB = MOST_RUNS,                   /* runs                                                   */
    STRIP = 16                          /* rows                                                   */
};
_Static_assert((int)PACKED_ROWS <= (int)STRIP, "few rows are one strip");

/* A run of WIDE outputs: a struct lane_codes of each group. */
struct wide_run {
    lane_ints code[GROUPS][VECTORS];
#ifndef HAS_DOTS
    lane_ints odd[GROUPS][VECTORS];     /* of codes of 8 bits; of others not touched, and so not in a cache */
#endif
    lane_floats scale[2][VECTORS], less[2][VECTORS];        /* of its spans                       */
    struct lane_whole whole[2][VECTORS];
};

/* ---- outputs ---- */

UNPACK void put_wide_codes(enum sh_packing format, struct wide_run *to, int g, int v, struct lane_codes codes)
{
    (void)format;
    to->code[g][v] = codes.bytes;
#ifndef HAS_DOTS
    if (!in_bytes(format))
        to->odd[g][v] = codes.odd;
#endif
}

UNPACK struct lane_codes wide_codes(enum sh_packing format, const struct wide_run *w, int g, int v)
{
    struct lane_codes codes = {.bytes = w->code[g][v]};
    (void)format;
#ifndef HAS_DOTS
    if (!in_bytes(format))
        codes.odd = w->odd[g][v];
#endif
    return codes;
}

/* Where blocks of 16 outputs are read: of a group, or of rows. */
struct wide_from {
    struct lanes_at at;
    struct ahead ahead;                 /* of rows                                                */
    size_t group_ahead;                 /* bytes of a group from what is read to what is asked for; 0: nothing is */
};

/* Vector v of a run of blocks. */
UNPACK void put_wide_run(enum sh_packing format, const struct lane_scales *scales, struct lane_words *words, int run,
                         int v, struct wide_run *to)
{
    const int spans = spans_of_run(format);
    words_of_run(format, scales, run, words);
#pragma GCC unroll 8
    for (int g = 0; g < GROUPS; g++)
        put_wide_codes(format, to, g, v, codes_for_dot(format, codes_of(format, words, run, g)));
    for (int j = 0; j < spans; j++) {
        to->scale[j][v] = lane_scale(format, scales, run * spans + j);
        to->whole[j][v] = whole_scale(format, scales, run * spans + j);
        if (sh_packing_shape(format).has_less)
            to->less[j][v] = lane_less(format, scales, run * spans + j);
    }
}

/* Vector v of runs, from `blocks` blocks. is_group: a constant wherever this is inlined. */
UNPACK void put_wide(enum sh_packing format, int is_group, struct wide_from *from, int blocks, int v,
                     struct wide_run *to)
{
    struct sh_packing_shape s = sh_packing_shape(format);
    const int runs = s.elements / RUN;
    size_t bytes = (size_t)(LANES * group_bytes(format));
    for (int i = 0; i < blocks; i++, to += runs) {
        struct lanes_at at = from->at;
        struct lane_scales scales;
        struct lane_words words;
        at.is_group = is_group;
        ask_ahead(format, &from->ahead, &at);
        if (is_group && from->group_ahead)
            few_ask(at.group + from->group_ahead, bytes);
        lane_scales_of(format, &at, &scales);
        words_of(format, &at, &words);
        if (sh_packed_is_points(format)) {      /* much code, and no faster without a loop */
#pragma GCC unroll 1
            for (int run = 0; run < runs; run++)
                put_wide_run(format, &scales, &words, run, v, to + run);
        } else {
#pragma GCC unroll 8
            for (int run = 0; run < runs; run++)
                put_wide_run(format, &scales, &words, run, v, to + run);
        }
        if (is_group)
            from->at.group += bytes;
        from->at.b += (size_t)s.bytes;
        from->at.i++;
    }
}

/* ---- products ---- */

/* sum[r][0 .. WIDE) += what runs give of rows of x: run i of row r is x[i * rows + r]. rows: a constant wherever this
 * is inlined. */
LANES_INLINE void tile_of(enum sh_packing format, int bits, int rows, const struct wide_run *w,
                          const struct lane_run *x, int runs, float *sum)
{
    const int spans = spans_of_run(format), parts = parts_of_run(format) / spans;    /* of a run; of a span */
    const int groups = GROUPS / spans / parts;  /* of a part */
    lane_floats all[HIGH][VECTORS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < VECTORS; v++)
            all[r][v] = floats_load(sum + r * WIDE + v * LANES);
    for (int i = 0; i < runs; i++, w++, x += rows)
#pragma GCC unroll 2
        for (int j = 0; j < spans; j++) {
            lane_ints total[HIGH][VECTORS];
#pragma GCC unroll 2
            for (int part = j * parts; part < (j + 1) * parts; part++) {
                struct lane_dot dot[HIGH][VECTORS];
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++)
                    for (int v = 0; v < VECTORS; v++)
                        dot[r][v] = dot_start(format, bits, &x[r], part);
#pragma GCC unroll 8
                for (int g = part * groups; g < (part + 1) * groups; g++)
#pragma GCC unroll 4
                    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
                        for (int v = 0; v < VECTORS; v++) {
                            struct lane_codes codes = wide_codes(format, w, g, v);
                            dot_add(format, bits, &dot[r][v], &codes, &x[r], g);
                        }
#pragma GCC unroll 4
                for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
                    for (int v = 0; v < VECTORS; v++) {
                        lane_ints sum_of_part = dot_end(format, bits, &dot[r][v], &w->whole[j][v]);
                        total[r][v] = part > j * parts ? ints_add(total[r][v], sum_of_part) : sum_of_part;
                    }
            }
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
                for (int v = 0; v < VECTORS; v++)
                    all[r][v] = add_span(all[r][v], total[r][v], &x[r], j, &w->scale[j][v],
                                         sh_packing_shape(format).has_less ? &w->less[j][v] : NULL);
        }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int v = 0; v < VECTORS; v++)
            floats_store(sum + r * WIDE + v * LANES, all[r][v]);
}

LANES_INLINE void tile(enum sh_packing format, int bits, int rows, const struct wide_run *w, const struct lane_run *x,
                       int runs, float *sum)
{
    switch (rows) {
    case 1: tile_of(format, bits, 1, w, x, runs, sum); break;
#ifdef HAS_DOTS
    case 2: tile_of(format, bits, 2, w, x, runs, sum); break;
#endif
#ifdef __AVX512F__
    case 3: tile_of(format, bits, 3, w, x, runs, sum); break;
#endif
    default: tile_of(format, bits, HIGH, w, x, runs, sum);
    }
}

typedef void tile_fn(int rows, const struct wide_run *w, const struct lane_run *x, int runs, float *sum);

#define TILE_OF(name, bits)                                                                                        \
    VNNI static void tile_##name##_##bits(int rows, const struct wide_run *w, const struct lane_run *x, int runs,  \
                                          float *sum)                                                              \
    {                                                                                                              \
        tile(SH_PACKED_##name, bits, rows, w, x, runs, sum);                                                       \
    }
#define TILE(name)     \
    TILE_OF(name, 16)  \
    TILE_OF(name, 8)
TILE(Q8_0)
TILE(Q4_1)
TILE(Q6_K)
TILE(Q2_K)
#ifndef HAS_DOTS
TILE(Q4_0)
TILE(Q5_1)
TILE(IQ2_S)
#endif
#undef TILE
#undef TILE_OF

/* Products differ by spans, and by whether something is subtracted; with AVX2 alone also by whether codes are bytes,
 * and by the parts of a run. */
#define TILE(name) (bits == 8 ? tile_##name##_8 : tile_##name##_16)
UNPACK tile_fn *tile_for(enum sh_packing format, int bits)
{
    int is_split = spans_of_run(format) > 1;
    if (sh_packing_shape(format).has_less) {
#ifndef HAS_DOTS
        if (!is_split && parts_of_run(format) > 1)
            return TILE(Q5_1);
#endif
        return is_split ? TILE(Q2_K) : TILE(Q4_1);
    }
#ifndef HAS_DOTS
    if (!in_bytes(format))
        return is_split ? TILE(IQ2_S) : TILE(Q8_0);
    if (!is_split)
        return TILE(Q4_0);
#endif
    return is_split ? TILE(Q6_K) : TILE(Q8_0);
}
#undef TILE

typedef void wide_fn(struct wide_from *from, int runs, int v, struct wide_run *to);
typedef void put_fn(int bits, const struct sh_mat *x, int first, int rows, struct lane_run *to);

#define FORMAT(name, elements, bytes, span, has_less)                                                              \
    static void wide_##name(struct wide_from *from, int runs, int v, struct wide_run *to)                          \
    {                                                                                                              \
        if (has_row_lanes(SH_PACKED_##name) && !(from->at.is_group && sh_packed_may_settle(SH_PACKED_##name)))     \
            put_wide(SH_PACKED_##name, 0, from, runs * RUN / (elements), v, to);                                   \
        else                                                                                                       \
            put_wide(SH_PACKED_##name, 1, from, runs * RUN / (elements), v, to);                                   \
    }                                                                                                              \
    static void put_##name(int bits, const struct sh_mat *x, int first, int rows, struct lane_run *to)             \
    {                                                                                                              \
        put_lanes(SH_PACKED_##name, bits, x, first, rows, to);                                                     \
    }                                                                                                              \
    static tile_fn *tile_for_##name(int bits)                                                                      \
    {                                                                                                              \
        return tile_for(SH_PACKED_##name, bits);                                                                   \
    }
SH_PACKED_CODES(FORMAT)
#undef FORMAT

/* Of each format: outputs out of their blocks, x as these want it, and their product. */
static const struct { wide_fn *wide; put_fn *put; tile_fn *(*tile)(int bits); } kernels[SH_N_PACKING] = {
#define FORMAT(name, elements, bytes, span, has_less) \
    [SH_PACKED_##name] = {wide_##name, put_##name, tile_for_##name},
    SH_PACKED_CODES(FORMAT)
#undef FORMAT
};

/* 16 outputs from output `first` on. `step`: from these to those whose rows are asked for meanwhile. */
static struct wide_from outputs_at(const struct few *a, struct block_at *at, int first, int step)
{
    struct sh_packing_shape s = sh_packing_shape(a->packed->format);
    int n = a->out.cols;
    struct wide_from to = {.at = {.row = at}};
    if (a->groups) {                    /* after the last group this again */
        to.at.is_group = 1;
        to.at.group = group_at(a->packed, a->groups, (first < n ? first : n - 1) / LANES * LANES);
        return to;
    }
    for (int k = 0; k < LANES; k++)     /* after the last one this again */
        at[k] = blocks_of_row(a->packed, first + k < n ? first + k : n - 1);
    to.ahead = (struct ahead){.next = outputs_on(at, step),
                              .row_bytes = (size_t)(a->x.cols / s.elements) * (size_t)s.bytes};
    return to;
}

/* ---- x ---- */

/* The tile that row `row`, a multiple of HIGH, begins. Tiles lie one after another, so that what is read together is
 * together. */
static inline struct lane_run *tile_at(const struct lane_run *x, int row, int runs)
{
    return (struct lane_run *)x + (size_t)row * (size_t)runs;
}

static inline int rows_at(int row, int n)
{
    return n - row < HIGH ? n - row : HIGH;
}

/* Rows [first, first + n) of x. */
static void put_tiles(const struct few *a, int first, int n, struct lane_run *to)
{
    put_fn *put = kernels[a->packed->format].put;
    for (int row = 0; row < n; row += HIGH)
        put(a->x_bits, &a->x, first + row, rows_at(row, n), tile_at(to, row, a->x.cols / RUN));
}

/* ---- strips of up to STRIP rows ---- */

struct strip {                          /* rows [first, first + n) of x                           */
    const struct lane_run *x;           /* in tiles                                               */
    int first, n;
};

/* Bytes of so many runs in a group. */
static size_t bytes_in_group(enum sh_packing format, int runs)
{
    return (size_t)(runs * RUN / sh_packing_shape(format).elements) * LANES * (size_t)group_bytes(format);
}

/* While a tile is multiplied, ask for part i of n of what is read two slabs after the one at `run`, of these groups or
 * of later ones. All at once would be more loads than a processor has under way. (Inlined, because gcc leaves out calls
 * of functions that do nothing else.) */
UNPACK void ask_slab(const struct few *a, int first, int run, int i, int n)
{
    enum sh_packing format = a->packed->format;
    int runs = a->x.cols / RUN, slabs_of_group = (runs + SLAB - 1) / SLAB, slab = run / SLAB + 2;
    size_t bytes = bytes_in_group(format, SLAB), group = bytes_in_group(format, runs);
    size_t part = (bytes / (size_t)n + 63) / 64 * 64;
    size_t skip = (size_t)(slab / slabs_of_group * VECTORS) * group + (size_t)(slab % slabs_of_group) * bytes;
    const unsigned char *at = group_at(a->packed, a->groups, first) + skip + (size_t)i * part;
    for (int v = 0; v < VECTORS; v++)
        few_ask(at + (size_t)v * group, part);
}

/* sum[r] = row r of a strip with outputs [first, first + WIDE). */
static void slabs(const struct few *a, struct strip s, int first, float (*sum)[WIDE])
{
    struct wide_run slab[SLAB] __attribute__((aligned(64)));
    struct block_at at[VECTORS][LANES];
    struct wide_from from[VECTORS];
    enum sh_packing format = a->packed->format;
    tile_fn *multiply = kernels[format].tile(a->x_bits);
    int runs = a->x.cols / RUN, n_tiles = (s.n + HIGH - 1) / HIGH;
    memset(sum, 0, (size_t)s.n * sizeof *sum);
    for (int v = 0; v < VECTORS; v++)
        from[v] = outputs_at(a, at[v], first + v * LANES, WIDE);
    for (int i = 0; i < runs; i += SLAB) {
        int n = runs - i < SLAB ? runs - i : SLAB;
        for (int v = 0; v < VECTORS; v++)
            kernels[format].wide(&from[v], n, v, slab);
        for (int r = 0; r < s.n; r += HIGH) {
            if (a->groups)
                ask_slab(a, first, i, r / HIGH, n_tiles);
            multiply(rows_at(r, s.n), slab, tile_at(s.x, r, runs) + i * rows_at(r, s.n), n, sum[r]);
        }
    }
}

/* Outputs [first, first + n), n <= FEW_COLS. */
static void strip_outputs(const struct few *a, struct strip s, int first, int n)
{
    float sum[STRIP][WIDE] __attribute__((aligned(64))), all[STRIP][FEW_COLS] __attribute__((aligned(64)));
    for (int o = 0; o < n; o += WIDE) {
        slabs(a, s, first + o, sum);
        for (int r = 0; r < s.n; r++)
            memcpy(all[r] + o, sum[r], sizeof sum[r]);
    }
    for (int r = 0; r < s.n; r++)
        few_out(a, s.first + r, first, n, all[r]);
}

static void take_few(void *arg, struct sh_member *me)
{
    const struct few_run *run = arg;
    enum sh_packing ready = SH_PACKED_OTHER;    /* x, which all products share, is as this one wants it */
    for (int b; sh_member_take(me, &b);) {
        const struct few *a = few_of(run->a, &b);
        int first = b * FEW_COLS, n = few_outputs(a, first);
        struct lane_run *x = (void *)(a->room + (size_t)me->thread * CPU_REST(cpu_packed_room)(a->x.cols));
        if (!ready || !same_lanes(a->packed->format, ready))
            put_tiles(a, 0, a->x.rows, x);
        ready = a->packed->format;
        if (a->x.rows == 1)
            CPU_NAME(cpu_lanes_row)(a, x, first, n);
        else
            strip_outputs(a, (struct strip){x, 0, a->x.rows}, first, n);
    }
}

void CPU_NAME(cpu_packed_lanes)(const struct few *a, int n, int n_threads)
{
    sh_team_run(n_threads, few_blocks_of_all(a, n), take_few, &(struct few_run){.a = a, .n = n});
}

/* ---- more rows ---- */

enum {
    MOST = 576,                         /* rows that a thread takes with the same codes, ...      */
    FEWER = 192, SHARES = 4,            /* ... fewer of them where each has not so many outputs to take */
    SOME = 8 * SLAB                     /* runs of FEW_COLS outputs that are taken together       */
};
_Static_assert(MOST % HIGH == 0 && FEWER % HIGH == 0, "tiles are whole");

/* Sums of a tile of rows with FEW_COLS outputs. */
typedef float tile_sums[FEW_COLS / WIDE][HIGH][WIDE];

struct work {
    const struct few *a;
    tile_sums *sum;                     /* [threads][MOST / HIGH]                                 */
    struct lane_run *x;                 /* in tiles                                               */
    int most, by_row;                   /* rows that are taken together; how often                */
};

/* After the rooms of the threads: sums of each thread, then x in tiles of HIGH rows, one after another. */
size_t CPU_NAME(cpu_lanes_room)(int rows, int in, int n_threads)
{
    size_t x = (size_t)rows * (size_t)(in / RUN) * sizeof(struct lane_run);
    return (x + (size_t)n_threads * (MOST / HIGH) * sizeof(tile_sums)) / sizeof(float);
}

static void put_tile(void *arg, int i)
{
    const struct work *w = arg;
    int row = i * HIGH, n = rows_at(row, w->a->x.rows);
    put_tiles(w->a, row, n, tile_at(w->x, row, w->a->x.cols / RUN));
}

/* Of a tile of rows from `first` on. */
static void put_outputs(const struct few *a, int first, int rows, int col, int n, const tile_sums *sum)
{
    for (int r = 0; r < rows; r++) {
        float all[FEW_COLS] __attribute__((aligned(64)));
        for (int o = 0; o < n; o += WIDE)
            memcpy(all + o, (*sum)[o / WIDE][r], WIDE * sizeof(float));
        few_out(a, first + r, col, n, all);
    }
}

static inline void begin_sums(float (*sum)[WIDE])       /* a call of memset would take longer */
{
    for (int r = 0; r < HIGH; r++)
        for (int v = 0; v < WIDE; v += LANES)
            floats_store(sum[r] + v, floats_set(0));
}

/* Rows [first, first + rows) with outputs [col, col + n), SOME runs at a time: sums of their tiles wait in `sum`. */
static void multiply_rows(const struct work *w, int first, int rows, int col, int n, struct wide_run *wide,
                          tile_sums *sum)
{
    const struct few *a = w->a;
    enum sh_packing format = a->packed->format;
    tile_fn *multiply = kernels[format].tile(a->x_bits);
    struct block_at at[FEW_COLS / LANES][LANES];
    struct wide_from from[FEW_COLS / LANES];
    tile_sums alone __attribute__((aligned(64)));
    int runs = a->x.cols / RUN, most = runs < SOME ? runs : SOME;
    for (int o = 0; o < n; o += LANES) {
        from[o / LANES] = outputs_at(a, at[o / LANES], col + o, LANES);
        from[o / LANES].group_ahead = GROUP_AHEAD;
    }
    for (int i = 0; i < runs; i += most) {
        int some = runs - i < most ? runs - i : most;
        for (int o = 0; o < n; o += LANES)
            kernels[format].wide(&from[o / LANES], some, o % WIDE / LANES, wide + o / WIDE * most);
        for (int r = 0; r < rows; r += HIGH) {
            tile_sums *to = runs > most ? &sum[r / HIGH] : &alone;
            int high = rows_at(first + r, a->x.rows);
            for (int o = 0; o < n; o += WIDE) {
                if (!i)
                    begin_sums((*to)[o / WIDE]);
                multiply(high, wide + o / WIDE * most, tile_at(w->x, first + r, runs) + i * high, some,
                         (*to)[o / WIDE][0]);
            }
            if (i + some == runs)
                put_outputs(a, first + r, high, col, n, to);
        }
    }
}

static void take_rows(void *arg, struct sh_member *me)
{
    const struct work *w = arg;
    const struct few *a = w->a;
    struct wide_run *wide = (void *)(a->room + (size_t)me->thread * CPU_REST(cpu_packed_room)(a->x.cols));
    for (int b; sh_member_take(me, &b);) {
        int col = b / w->by_row * FEW_COLS, first = b % w->by_row * w->most, left = a->x.rows - first;
        multiply_rows(w, first, left < w->most ? left : w->most, col, few_outputs(a, col), wide,
                      w->sum + (size_t)me->thread * (MOST / HIGH));
    }
}

void CPU_NAME(cpu_packed_lanes_many)(const struct few *a, int n_threads)
{
    int rows = a->x.rows, panels = few_blocks(a);
    struct work work = {.a = a, .most = panels < SHARES * n_threads ? FEWER : MOST};
    if (rows <= STRIP) {
        CPU_NAME(cpu_packed_lanes)(a, 1, n_threads);
        return;
    }
    work.sum = (void *)(a->room + (size_t)n_threads * CPU_REST(cpu_packed_room)(a->x.cols));
    work.x = (void *)(work.sum + n_threads * (MOST / HIGH));
    work.by_row = (rows + work.most - 1) / work.most;
    sh_team_each(n_threads, (rows + HIGH - 1) / HIGH, put_tile, &work);
    sh_team_run(n_threads, work.by_row * panels, take_rows, &work);
}

#endif
