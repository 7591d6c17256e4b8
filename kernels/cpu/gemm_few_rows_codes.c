/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a few rows with weights that are kept as codes (gemm_few_rows.h). A weight is code * scale + least, so
 *
 *     sum of x w = sum over groups of (scale * sum of x code + least * sum of x)
 *
 * and a code costs no more than its conversion and one multiplication for each row. The number that a code
 * stands for is not rounded to the operands' type on its way, as it is in products of many rows.
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

/* Floats a row: x in order up to whole pairs of groups; then for each group 0 and its sum, to match scale
 * and least value of a weight's groups; up to whole vectors. */
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

/* x as the products want it: f32, in their order, zeros up to whole vectors. */
static void put_in_order(const struct few *a, int row)
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
        if (a->codes->bits == 8)
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

/* CPU_FLOATS codes of 8 bits. */
static inline __attribute__((always_inline)) vec widened(const unsigned char *code)
{
#if defined __AVX512F__
    return (vec)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)code)));
#elif defined __AVX2__
    return (vec)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)code)));
#else
    vec w = {0};
    for (int k = 0; k < CPU_FLOATS; k++)
        w[k] = (float)code[k];
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
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < to.n; k++, w[k - 1] >>= 4) {
            vec code = lowest(w[k]);
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
    for (size_t i = 0; i < n; i += SHIFTED, code += SHIFTED / 2, x += SHIFTED) {
        words w[MOST_SUMS] = {{0}};
        for (int k = 0; k < to.n; k++) {
            const unsigned char *at = code + (size_t)k * to.code_step;
            few_ask(at + to.ahead, SHIFTED / 2);
            if (i + SHIFTED <= n)
                w[k] = *(const words *)(const void *)at;
            else
                memcpy(&w[k], at, (n - i) / 2);
        }
        add_4(part, to, w, pair + i / GROUP * 2, pair_step, x, stride);
    }
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

void CPU_NAME(cpu_few_codes)(const struct few *a, int n, int n_threads)
{
    for (int row = 0; row < a->x.rows; row++)
        put_in_order(a, row);
    few_run(a, n, n_threads, sums);
}
