/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a few rows with weights that are kept as codes (gemm_few_rows.h). A weight is code * scale + least, so
 *
 *     sum of x w = sum over groups of (scale * sum of x code + least * sum of x)
 *
 * and a code costs no more than its conversion and one multiplication for each row. The number that a code
 * stands for is not rounded to the operands' type on its way, as it is in products of many rows. With more than
 * CODES_FEW_ROWS rows, codes are first turned into the numbers that they stand for, once for all rows.
 *
 * 4 bits: a vector of 32-bit words has 8 codes in each of its lanes. x is in the order in which
 * they are shifted out: of every 8 * CPU_FLOATS inputs first 0, 8, 16 …, then 1, 9, 17 … */
#include "kernels/cpu/gemm_few_rows_out.h"
#include "kernels/cpu/variant.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

enum {
    GROUP = SH_CODE_GROUP,
    SHIFTED = 8 * CPU_FLOATS,           /* codes of 4 bits in a vector                            */
    GROUPS_AT_ONCE = 64                 /* whose scales are read together                         */
};

typedef uint32_t words __attribute__((vector_size(4 * CPU_FLOATS), aligned(4), may_alias));
typedef int32_t whole __attribute__((vector_size(4 * CPU_FLOATS)));

/* Floats a row: x in order up to whole pairs of groups; then, for up to CODES_FEW_ROWS rows, for each group 0 and its
 * sum, to match scale and least value of a weight's groups; up to whole vectors. */
size_t CPU_NAME(cpu_few_codes_room)(int cols)
{
    size_t inputs = ((size_t)cols + 2 * GROUP - 1) / (2 * GROUP) * (2 * GROUP);
    return inputs + (2 * sh_code_groups(cols) + 15) / 16 * 16;
}

static float *sums_of(const struct few *a, int row)
{
    size_t inputs = ((size_t)a->x.cols + 2 * GROUP - 1) / (2 * GROUP) * (2 * GROUP);
    return a->room + (size_t)row * CPU_NAME(cpu_few_codes_room)(a->x.cols) + inputs;
}

/* x as the products want it: f32, in their order, or in its own, and zeros up to whole vectors. */
static void put_in_order(const struct few *a, int row, int is_own)
{
    size_t n = (size_t)a->x.cols, room = CPU_NAME(cpu_few_codes_room)(a->x.cols);
    float *to = a->room + (size_t)row * room, *sum = sums_of(a, row);
    const char *x = (const char *)a->x.at + (size_t)row * a->x.stride * sh_type_bytes(a->x.type);
    memset(to, 0, room * sizeof *to);
    for (size_t at = 0; at < n; at += GROUP) {
        float part[GROUP] = {0}, all = 0;
        size_t m = n - at < GROUP ? n - at : GROUP;
        load_floats(part, a->x.type, x + at * sh_type_bytes(a->x.type), m);
        for (size_t i = 0; i < m; i++)
            all += part[i];
        sum[2 * (at / GROUP) + 1] = all;
        if (is_own || a->codes->bits == 8)
            memcpy(to + at, part, sizeof part);
        else
            for (size_t i = 0; i < GROUP; i++) {
                size_t word = (at + i) / 8, lane = word % CPU_FLOATS;
                to[word / CPU_FLOATS * SHIFTED + i % 8 * CPU_FLOATS + lane] = part[i];
            }
    }
}

/* Scale, least value, scale, … of n groups; zeros up to a whole vector. */
static inline void read_scales(float *to, const uint16_t *from, size_t n)
{
    size_t i = 0;
#ifdef __F16C__
    for (; i + 4 <= n; i += 4)
        _mm256_storeu_ps(to + 2 * i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + 2 * i))));
#endif
    for (; i < n; i++) {
        to[2 * i] = sh_f16_to_f32(from[2 * i]);
        to[2 * i + 1] = sh_f16_to_f32(from[2 * i + 1]);
    }
    *(vec *)(to + 2 * n) = (vec){0};
}

#ifdef __AVX2__
/* The first CPU_FLOATS bytes. */
static inline __attribute__((always_inline)) vec widened_bytes(__m128i bytes)
{
#ifdef __AVX512F__
    return (vec)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
#else
    return (vec)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
#endif
}
#endif

/* CPU_FLOATS codes of 8 bits. */
static inline __attribute__((always_inline)) vec widened(const unsigned char *code)
{
#if defined __AVX512F__
    return widened_bytes(_mm_loadu_si128((const __m128i *)(const void *)code));
#elif defined __AVX2__
    return widened_bytes(_mm_loadl_epi64((const __m128i *)(const void *)code));
#else
    vec w = {0};
    for (int k = 0; k < CPU_FLOATS; k++)
        w[k] = (float)code[k];
    return w;
#endif
}

/* The same of 4 bits. */
static inline __attribute__((always_inline)) vec widened_4(const unsigned char *code)
{
#ifdef __AVX2__
    int64_t some = 0;
    memcpy(&some, code, CPU_FLOATS / 2);
    __m128i two = _mm_cvtsi64_si128(some), low = _mm_and_si128(two, _mm_set1_epi8(15));
    return widened_bytes(_mm_unpacklo_epi8(low, _mm_and_si128(_mm_srli_epi16(two, 4), _mm_set1_epi8(15))));
#else
    vec w = {0};
    for (int k = 0; k < CPU_FLOATS; k++)
        w[k] = (float)(code[k / 2] >> 4 * (k % 2) & 15);
    return w;
#endif
}

/* Of the lanes, in a fixed order. */
static inline __attribute__((always_inline)) float total(vec x)
{
#ifdef __AVX512F__
    return _mm512_reduce_add_ps((__m512)x);
#else
    float sum = 0;
    for (int k = 0; k < CPU_FLOATS; k++)
        sum += x[k];
    return sum;
#endif
}

/* What follows is for n_out outputs, `step` apart (their codes code_step bytes), and `rows` rows: all constants where
 * it is inlined. Sums of output k and row r are at [k * rows + r]. */
enum { MOST_SUMS = FEW_ROWS > FEW_PLACES ? FEW_ROWS : FEW_PLACES };

struct outs {
    int n, rows;
    size_t code_step, ahead;            /* ahead: from a code to what is read some loops later    */
};

/* part += scale * x code of a group of 8-bit codes; scale: pair_step floats from output to output */
static inline __attribute__((always_inline)) void add_8(vec *part, struct outs to, const unsigned char *code,
                                                        const float *scale, size_t pair_step, const float *x,
                                                        size_t stride)
{
    vec sum[MOST_SUMS] = {0};
    for (int k = 0; k < to.n; k++)
        few_ask(code + (size_t)k * to.code_step + to.ahead, GROUP);
    for (int i = 0; i < GROUP; i += CPU_FLOATS)
        for (int k = 0; k < to.n; k++) {
            vec w = widened(code + (size_t)k * to.code_step + i);
            for (int r = 0; r < to.rows; r++)
                sum[k * to.rows + r] += *(const vec *)(x + (size_t)r * stride + i) * w;
        }
    for (int k = 0; k < to.n; k++)
        for (int r = 0; r < to.rows; r++)
            part[k * to.rows + r] += scale[(size_t)k * pair_step] * sum[k * to.rows + r];
}

/* The lowest code of each lane. */
static inline __attribute__((always_inline)) vec lowest(words w)
{
#ifdef __AVX512F__
    const __m512 all = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return (vec)_mm512_permutexvar_ps((__m512i)w, all); /* looks at 4 bits of each lane */
#else
    return __builtin_convertvector((whole)(w & 15), vec);
#endif
}

/* The scale of each lane's group. */
static inline __attribute__((always_inline)) vec scales(const float *pair)
{
#ifdef __AVX512F__
    return (vec)_mm512_mask_blend_ps(0xff00, _mm512_set1_ps(pair[0]), _mm512_set1_ps(pair[2]));
#else
    return pair[0] + (vec){0};
#endif
}

/* The same of a vector of 4-bit codes, whose lanes may belong to two groups. */
static inline __attribute__((always_inline)) void add_4(vec *part, struct outs to, const words *codes,
                                                        const float *pair, size_t pair_step, const float *x,
                                                        size_t stride)
{
    vec sum[MOST_SUMS] = {0};
    words w[MOST_SUMS];
    for (int k = 0; k < to.n; k++)
        w[k] = codes[k];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
#pragma GCC unroll 4
        for (int k = 0; k < to.n; k++) {
            vec code = lowest(w[k] >> 4 * i);
            for (int r = 0; r < to.rows; r++)
                sum[k * to.rows + r] += *(const vec *)(x + (size_t)r * stride + i * CPU_FLOATS) * code;
        }
    for (int k = 0; k < to.n; k++)
        for (int r = 0; r < to.rows; r++)
            part[k * to.rows + r] += scales(pair + (size_t)k * pair_step) * sum[k * to.rows + r];
}

/* Codes of 4 bits of n inputs; where the last vector is of two groups and there is only one, the other's are 0. */
static inline __attribute__((always_inline)) void add_all_4(vec *part, struct outs to, const unsigned char *code,
                                                            const float *pair, size_t pair_step, size_t n,
                                                            const float *x, size_t stride)
{
    words w[MOST_SUMS];
    size_t i = 0;
    for (; i + SHIFTED <= n; i += SHIFTED, code += SHIFTED / 2, x += SHIFTED) {
        for (int k = 0; k < to.n; k++) {
            const unsigned char *at = code + (size_t)k * to.code_step;
            few_ask(at + to.ahead, SHIFTED / 2);
            w[k] = *(const words *)(const void *)at;
        }
        add_4(part, to, w, pair + i / GROUP * 2, pair_step, x, stride);
    }
    if (i == n)
        return;
    for (int k = 0; k < to.n; k++) {    /* copied elsewhere, so that w above can stay in registers */
        words last = {0};
        memcpy(&last, code + (size_t)k * to.code_step, (n - i) / 2);
        w[k] = last;
    }
    add_4(part, to, w, pair + i / GROUP * 2, pair_step, x, stride);
}

/* Outputs from one to the one whose codes are prefetched with it. */
static inline int ahead_of(size_t row_bytes)
{
    return (int)((FEW_AHEAD + row_bytes - 1) / row_bytes);
}

/* sum[k * step + r * FEW_COLS] of outputs o + k * step; lanes are added up in a fixed order. */
static inline __attribute__((always_inline)) void outputs(const struct few *a, int o, int n_out, int step, int row,
                                                          int rows, int bits, float *sum)
{
    enum { PAIRS = 2 * GROUPS_AT_ONCE + CPU_FLOATS };
    const struct cpu_codes *c = a->codes;
    size_t groups = sh_code_groups(c->cols), bytes = sh_code_group_bytes(bits);
    size_t stride = CPU_NAME(cpu_few_codes_room)(c->cols);
    const unsigned char *code = c->at + (size_t)o * groups * bytes;
    const void *all = c->at + sh_code_scales_at(c->rows, c->cols, bits);
    const uint16_t *pairs = (const uint16_t *)all + 2 * (size_t)o * groups;
    const float *x = a->room + (size_t)row * stride;
    int ahead = ahead_of(groups * bytes);
    if (o % FEW_COLS % (step ? step : 1) + ahead >= step && step)       /* where this place of the next block begins */
        ahead += FEW_COLS - step;
    struct outs to = {n_out, rows, (size_t)step * groups * bytes, (size_t)ahead * groups * bytes};
    vec part[MOST_SUMS] = {0};
    for (size_t g = 0, n; g < groups; g += n, code += n * bytes, x += n * GROUP) {
        float pair[FEW_PLACES * PAIRS];
        n = groups - g < GROUPS_AT_ONCE ? groups - g : GROUPS_AT_ONCE;
        for (int k = 0; k < n_out; k++)
            few_ask(pairs + 2 * (g + (size_t)(k * step + ahead) * groups), 4 * n);
        for (int k = 0; k < n_out; k++)
            read_scales(pair + k * PAIRS, pairs + 2 * (g + (size_t)(k * step) * groups), n);
        if (bits == 8)
            for (size_t i = 0; i < n; i++)
                add_8(part, to, code + i * bytes, pair + 2 * i, PAIRS, x + i * GROUP, stride);
        else
            add_all_4(part, to, code, pair, PAIRS, n * GROUP, x, stride);
        for (int k = 0; k < n_out; k++)
            for (int r = 0; r < rows; r++)
                for (size_t i = 0; i < 2 * n; i += CPU_FLOATS)
                    part[k * rows + r] += *(const vec *)(pair + (size_t)(k * PAIRS) + i) *
                                          *(const vec *)(sums_of(a, row + r) + 2 * g + i);
    }
    for (int k = 0; k < n_out; k++)
        for (int r = 0; r < rows; r++)
            sum[k * step + r * FEW_COLS] = total(part[k * rows + r]);
}

/* few_sums. One row's outputs are taken from FEW_PLACES places in turn (few_ahead says why). */
static void sums(const struct few *a, int first, int n, int row, int rows, float *sum)
{
    int kind = (a->codes->bits == 8 ? 0 : FEW_ROWS) + rows, step = n / FEW_PLACES, o = 0;
    for (; o < step && kind == 1; o++)
        outputs(a, first + o, FEW_PLACES, step, row, 1, 8, sum + o);
    for (; o < step && kind == 1 + FEW_ROWS; o++)
        outputs(a, first + o, FEW_PLACES, step, row, 1, 4, sum + o);
    for (o *= FEW_PLACES; o < n; o++)
        switch (kind) {
        case 1: outputs(a, first + o, 1, 0, row, 1, 8, sum + o); break;
        case 2: outputs(a, first + o, 1, 0, row, 2, 8, sum + o); break;
        case 3: outputs(a, first + o, 1, 0, row, 3, 8, sum + o); break;
        case 4: outputs(a, first + o, 1, 0, row, 4, 8, sum + o); break;
        case 5: outputs(a, first + o, 1, 0, row, 1, 4, sum + o); break;
        case 6: outputs(a, first + o, 1, 0, row, 2, 4, sum + o); break;
        case 7: outputs(a, first + o, 1, 0, row, 3, 4, sum + o); break;
        default: outputs(a, first + o, 1, 0, row, 4, 4, sum + o);
        }
}

/* ---- more than CODES_FEW_ROWS rows: codes become numbers once for all rows, in the first cache ---- */

enum {
    CODES_FEW_ROWS = 8,
    OUTS = 4, HIGH = CPU_FLOATS == 16 ? 6 : 3,  /* outputs and rows whose sums stay in registers  */
    DEEP = 8                            /* groups that become numbers together                    */
};

/* Sums of rows, in lanes. */
typedef vec sums_of_row[OUTS];

/* Groups [g, g + n) of outputs [o, o + OUTS), after the last output this again. */
static void numbers(const struct cpu_codes *c, int o, size_t g, size_t n, float (*to)[DEEP * GROUP])
{
    size_t groups = sh_code_groups(c->cols), bytes = sh_code_group_bytes(c->bits);
    const void *pairs = c->at + sh_code_scales_at(c->rows, c->cols, c->bits);
    for (int k = 0; k < OUTS; k++) {
        size_t at = (size_t)(o + k < c->rows ? o + k : c->rows - 1) * groups + g;
        const unsigned char *code = c->at + at * bytes;
        float pair[2 * DEEP + CPU_FLOATS];
        read_scales(pair, (const uint16_t *)pairs + 2 * at, n);
        for (size_t j = 0; j < n; j++, code += bytes) {
            few_ask(code + OUTS * groups * bytes, bytes);
            for (int i = 0; i < GROUP; i += CPU_FLOATS)
                *(vec *)(to[k] + j * GROUP + (size_t)i) =
                    (c->bits == 8 ? widened(code + i) : widened_4(code + i / 2)) * pair[2 * j] + pair[2 * j + 1];
        }
    }
}

/* part[r] += x[r] w over n inputs. `rows` is a constant wherever this is inlined. */
static inline __attribute__((always_inline)) void add_rows(float (*w)[DEEP * GROUP], const float *x, size_t stride,
                                                           int rows, size_t n, sums_of_row *part)
{
    vec sum[HIGH][OUTS];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int k = 0; k < OUTS; k++)
            sum[r][k] = part[r][k];
    for (size_t i = 0; i < n; i += CPU_FLOATS) {
        vec v[OUTS];
        for (int k = 0; k < OUTS; k++)
            v[k] = *(const vec *)(w[k] + i);
        for (int r = 0; r < rows; r++) {
            vec from = *(const vec *)(x + (size_t)r * stride + i);
            for (int k = 0; k < OUTS; k++)
                sum[r][k] += from * v[k];
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int k = 0; k < OUTS; k++)
            part[r][k] = sum[r][k];
}

static void add_tile(float (*w)[DEEP * GROUP], const float *x, size_t stride, int rows, size_t n, sums_of_row *part)
{
    switch (rows) {
    case 1: add_rows(w, x, stride, 1, n, part); break;
    case 2: add_rows(w, x, stride, 2, n, part); break;
    case 3: add_rows(w, x, stride, 3, n, part); break;
#ifdef __AVX512F__
    case 4: add_rows(w, x, stride, 4, n, part); break;
    case 5: add_rows(w, x, stride, 5, n, part); break;
#endif
    default: add_rows(w, x, stride, HIGH, n, part);
    }
}

/* Outputs [first, first + n) of all rows, which are CODES_MOST_ROWS at most. */
static void wide_outputs(const struct few *a, int first, int n)
{
    float sum[CODES_MOST_ROWS][FEW_COLS] __attribute__((aligned(64)));
    float w[OUTS][DEEP * GROUP] __attribute__((aligned(64)));
    size_t groups = sh_code_groups(a->x.cols), stride = CPU_NAME(cpu_few_codes_room)(a->x.cols);
    int rows = a->x.rows, tiles = (rows + HIGH - 1) / HIGH;     /* of about the same height       */
    for (int o = 0; o < n; o += OUTS) {
        sums_of_row part[CODES_MOST_ROWS];
        memset(part, 0, (size_t)rows * sizeof *part);
        for (size_t g = 0; g < groups; g += DEEP) {
            size_t some = groups - g < DEEP ? groups - g : DEEP;
            numbers(a->codes, first + o, g, some, w);
            for (int tile = 0, r = 0, high; tile < tiles; tile++, r += high) {
                high = (rows - r + tiles - tile - 1) / (tiles - tile);
                add_tile(w, a->room + (size_t)r * stride + g * GROUP, stride, high, some * GROUP, part + r);
            }
        }
        for (int r = 0; r < rows; r++)
            for (int k = 0; k < OUTS; k++)
                sum[r][o + k] = total(part[r][k]);
    }
    for (int r = 0; r < rows; r++)
        few_out(a, r, first, n, sum[r]);
}

static void take_wide(void *arg, struct sh_member *me)
{
    const struct few_run *run = arg;
    for (int b; sh_member_take(me, &b);) {
        const struct few *a = few_of(run->a, &b);
        int first = b * FEW_COLS;
        wide_outputs(a, first, few_outputs(a, first));
    }
}

void CPU_NAME(cpu_few_codes)(const struct few *a, int n, int n_threads)
{
    int is_wide = a->x.rows > CODES_FEW_ROWS;
    for (int row = 0; row < a->x.rows; row++)
        put_in_order(a, row, is_wide);
    if (is_wide)
        sh_team_run(n_threads, few_blocks_of_all(a, n), take_wide, &(struct few_run){.a = a, .n = n});
    else
        few_run(a, n, n_threads, sums);
}
