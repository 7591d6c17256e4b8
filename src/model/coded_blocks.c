/* SPDX-License-Identifier: Apache-2.0 */
/* See coded_blocks.h. */
#include "src/model/coded_blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clones.h"
#include "src/base/mem.h"

enum { RUN = 32, SPAN = 64, LONG = 128, TERNARY = 256 };        /* numbers of a block */
#define LARGEST 0x1p100f                /* a scale: times any code it is finite */

/* ---- which ---- */

static int is_int(const struct sh_coded *c)
{
    return c->order == SH_CODE_INT8 || c->order == SH_CODE_ROWS || c->order == SH_CODE_COLUMNS ||
           c->order == SH_CODE_AWQ;
}

/* Whether all codes less their zero points are signed bytes. */
static int fits_bytes(const struct sh_coded *c)
{
    int wanted = c->order == SH_CODE_INT8 ? 0 : 128, fits = 1;
    if (!c->piece[SH_PIECE_ZEROS])
        return c->zero == wanted;
    float *both = xmalloc(2 * c->groups * sizeof *both);
    for (size_t row = 0; row < c->rows && fits; row++) {
        sh_coded_spans(c, row, both, both + c->groups);
        for (size_t g = 0; g < c->groups; g++)
            fits &= both[g] == (float)wanted;
    }
    free(both);
    return fits;
}

/* Kernels multiply the scales of E4M3 by 256. */
static int has_small_scales(const struct sh_coded *c)
{
    float *both = xmalloc(2 * c->groups * sizeof *both), *scale = both + c->groups;
    size_t step = c->matrix_rows % c->span_rows ? 1 : c->span_rows;
    int are_small = 1;
    for (size_t row = 0; row < c->rows && are_small; row += step) {
        sh_coded_spans(c, row, both, scale);
        for (size_t g = 0; g < c->groups; g++)
            are_small &= fabsf(scale[g]) <= LARGEST;
    }
    free(both);
    return are_small;
}

/* What multiplies the scales of FP4. One that divides them may give another last digit than the division. */
static float factor_of(const struct sh_coded *c, size_t row)
{
    float factor = sh_coded_factor(c, row);
    return c->divides ? 1 / factor : factor;
}

static int is_fp4(const struct sh_coded *c)
{
    return c->order == SH_CODE_FP4 && c->scale == SH_SCALE_E4M3 && c->piece[SH_PIECE_FACTORS] && c->span_cols == 16 &&
           c->row_step == c->groups && c->group_step == 1 && c->rows == c->matrix_rows && c->cols % LONG == 0 &&
           isfinite(factor_of(c, 0));
}

/* Spans of numbers run on from row to row. */
static int is_nf4(const struct sh_coded *c)
{
    static const float numbers[] = {SH_NF4_NUMBERS};
    return c->order == SH_CODE_TABLE && c->span_cols == SPAN && c->cols % SPAN == 0 &&
           !memcmp(c->piece[SH_PIECE_TABLE]->at, numbers, sizeof numbers);
}

int *sh_coded_columns(const struct sh_coded *c)
{
    const struct sh_stored *groups = c->piece[SH_PIECE_GROUPS];
    if (!groups)
        return NULL;
    size_t *next = xmalloc(c->groups * sizeof *next);
    int *columns = xmalloc(c->cols * sizeof *columns), is_even = c->groups * c->span_cols == c->cols;
    for (size_t g = 0; g < c->groups; g++)
        next[g] = g * c->span_cols;
    for (size_t k = 0; k < c->cols && is_even; k++) {
        int32_t g;
        memcpy(&g, groups->at + k * sizeof g, sizeof g);
        is_even = next[g] < ((size_t)g + 1) * c->span_cols;
        if (is_even)
            columns[next[g]++] = (int)k;
    }
    free(next);
    if (is_even)
        return columns;
    free(columns);
    return NULL;
}

/* Blocks of GGUF, which are of this format alone where they have another scale. */
static int is_gguf_fp4(const struct sh_coded *c)
{
    int are_small = c->order == SH_CODE_BLOCKS && c->cols % LONG == 0;
    for (size_t row = 0; row < c->rows && are_small; row += c->matrix_rows)
        are_small = fabsf(sh_coded_factor(c, row)) <= LARGEST;
    return are_small;
}

/* In the blocks of TQ2_0, whose scale is an f16 number, or in signed bytes. */
static enum sh_packing bitnet_packing(const struct sh_coded *c)
{
    float zero, scale;
    sh_coded_spans(c, 0, &zero, &scale);
    if (c->cols % TERNARY == 0 && isfinite(scale) && sh_f16_to_f32(sh_f32_to_f16(scale)) == scale)
        return SH_PACKED_TQ2_0;
    return c->cols % LONG == 0 && fabsf(scale) <= LARGEST ? SH_PACKED_INT8_128 : SH_PACKED_OTHER;
}

enum sh_packing sh_coded_packing(const struct sh_coded *c)
{
    if (c->order == SH_CODE_BITNET)
        return bitnet_packing(c);
    if (c->order == SH_CODE_BLOCKS)
        return is_gguf_fp4(c) ? SH_PACKED_FP4_128 : SH_PACKED_OTHER;
    if (is_nf4(c))
        return SH_PACKED_NF4_64;
    if (is_fp4(c))
        return SH_PACKED_FP4_128;
    size_t span = c->groups > 1 ? c->span_cols : c->cols;
    int has_short_scales = c->scale == SH_SCALE_F16 || c->scale == SH_SCALE_BF16;
    int is_long = span % LONG == 0 && c->cols % LONG == 0;
    int is_short = span % RUN == 0 && c->cols % RUN == 0;
    if (c->order == SH_CODE_FP8 && (!(is_long || (is_short && !c->is_e5m2)) || !has_small_scales(c)))
        return SH_PACKED_OTHER;
    if (c->order == SH_CODE_FP8)
        return c->is_e5m2 ? SH_PACKED_E5M2_128 : is_long ? SH_PACKED_E4M3_128 : SH_PACKED_E4M3_32;
    if (!is_int(c) || (c->piece[SH_PIECE_GROUPS] && !c->columns) || (!has_short_scales && c->scale != SH_SCALE_F32))
        return SH_PACKED_OTHER;
    if (c->bits == 8)
        return is_long && fits_bytes(c) ? SH_PACKED_INT8_128 : SH_PACKED_OTHER;
    if (!has_short_scales || !is_short)
        return SH_PACKED_OTHER;
    return is_long ? SH_PACKED_INT4_128 : SH_PACKED_INT4_32;
}

/* ---- finite ---- */

/* Whether one of n bytes has all bits of `mask`: those of a float of 8 bits that is not finite. */
SH_CLONES static int any_all_ones(const unsigned char *at, size_t n, unsigned char mask)
{
    unsigned char any = 0;
    for (size_t i = 0; i < n; i++)
        any |= (unsigned char)((at[i] & mask) == mask);
    return any;
}

static int has_finite_spans(const struct sh_coded *c, size_t first, size_t n)
{
    size_t spans = c->cols / SPAN, end = (first + n) * spans;
    int is_finite = 1;
    for (size_t i = first * spans; i < end; i++)
        is_finite &= fabsf(sh_coded_scale(c, i)) <= LARGEST;
    return is_finite;
}

int sh_coded_is_finite(const struct sh_coded *c, size_t first, size_t n)
{
    if (c->order == SH_CODE_BLOCKS)     /* as all codes and scales are; factors are small */
        return 1;
    if (c->packing == SH_PACKED_NF4_64)
        return has_finite_spans(c, first, n);
    float *both = xmalloc(2 * c->groups * sizeof *both), *scale = both + c->groups;
    const unsigned char *codes = c->piece[SH_PIECE_CODES]->at;
    int is_finite = 1;
    for (size_t row = first; row < first + n && is_finite; row++) {
        sh_coded_spans(c, row, both, scale);
        for (size_t g = 0; g < c->groups; g++)
            is_finite &= fabsf(scale[g]) <= LARGEST;
        if (c->order == SH_CODE_FP8)
            is_finite &= !any_all_ones(codes + row * c->cols, c->cols, c->is_e5m2 ? 124 : 127);
    }
    free(both);
    return is_finite;
}

/* ---- blocks ---- */

static void put_word(uint32_t w, unsigned char *to)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(w >> 8 * i);
}

/* Codes of n numbers, of which `half` share bytes with the next `half`. */
SH_CLONES static void put_nibbles(const float *restrict code, size_t n, size_t half, unsigned char *restrict to)
{
    for (size_t i = 0; i < n; i += 2 * half, code += 2 * half, to += half)
        for (size_t k = 0; k < half; k++)
            to[k] = (unsigned char)((int)code[k] | (int)code[half + k] << 4);
}

SH_CLONES static void put_bytes(const float *restrict code, float zero, size_t n, unsigned char *restrict to)
{
    for (size_t k = 0; k < n; k++)
        to[k] = (unsigned char)(int)(code[k] - zero);
}

/* Nibbles of a row from its codes; a scale and a zero point for each span of columns. */
static void put_short(const struct sh_coded *c, size_t n, const float *code, const float *zero, const float *scale,
                      unsigned char *to)
{
    for (size_t col = 0; col < c->cols; col += n, to += 4 + n / 2) {
        size_t g = c->groups > 1 ? col / c->span_cols : 0;
        put_word((sh_bits(scale[g]) & 0xffffff00u) | (uint32_t)(int)zero[g], to);
        put_nibbles(code + col, n, n == RUN ? RUN / 2 : RUN, to + 4);
    }
}

/* Bytes of a row from its codes, or as the tensor has them; n share a scale. */
static void put_long(const struct sh_coded *c, size_t n, const float *code, const unsigned char *stored,
                     const float *zero, const float *scale, unsigned char *to)
{
    for (size_t col = 0; col < c->cols; col += n, to += 4 + n) {
        size_t g = c->groups > 1 ? col / c->span_cols : 0;
        put_word(sh_bits(scale[g]), to);
        if (stored)
            memcpy(to + 4, stored + col, n);
        else
            put_bytes(code + col, zero[g], n, to + 4);
    }
}

/* Nibbles that lie in pairs, with their scales. */
static void put_fp4(const struct sh_coded *c, size_t row, unsigned char *to)
{
    const unsigned char *scale = c->piece[SH_PIECE_SCALES]->at + row * c->groups;
    const unsigned char *two = c->piece[SH_PIECE_CODES]->at + row * (c->cols / 2);
    uint32_t factor = sh_bits(factor_of(c, row));
    for (size_t col = 0; col < c->cols; col += LONG, scale += LONG / 16) {
        put_word(factor, to);
        memcpy(to + 4, scale, LONG / 16);
        to += 4 + LONG / 16;
        for (size_t half = 0; half < LONG; half += 2 * RUN, two += RUN)
            for (size_t k = 0; k < RUN; k++, to++)
                *to = (unsigned char)((two[k / 2] >> k % 2 * 4 & 15) | (two[RUN / 2 + k / 2] >> k % 2 * 4 & 15) << 4);
    }
}

/* Blocks of 64 (gguf_type.c): four scales, then the nibbles of 16 numbers after each other, the low ones first. */
static void put_gguf_fp4(const struct sh_coded *c, size_t row, unsigned char *to)
{
    enum { BYTES = 36 };
    const unsigned char *b = c->piece[SH_PIECE_CODES]->at + row * (c->cols / SPAN) * BYTES;
    uint32_t factor = sh_bits(sh_coded_factor(c, row));
    for (size_t col = 0; col < c->cols; col += LONG, b += 2 * BYTES) {
        put_word(factor, to);
        to += 4;
        for (size_t k = 0; k < LONG / 16; k++) {        /* without a sign; 127 stands for 0 */
            unsigned char s = b[k / 4 * BYTES + k % 4];
            *to++ = s == 127 ? 0 : s & 127;
        }
        for (size_t k = 0; k < LONG / 2; k++) {         /* number k of a half and number k + 32 share a byte */
            const unsigned char *q = b + k / RUN * BYTES + 4 + k % RUN / 16 * 8 + k % 8;
            int shift = k % 16 < 8 ? 0 : 4;
            *to++ = (unsigned char)((q[0] >> shift & 15) | (q[16] >> shift & 15) << 4);
        }
    }
}

/* The first of two nibbles is the high one. */
static void put_nf4(const struct sh_coded *c, size_t row, unsigned char *to)
{
    size_t span = row * (c->cols / SPAN), end = span + c->cols / SPAN;
    for (const unsigned char *two = c->piece[SH_PIECE_CODES]->at + span * RUN; span < end; span++, two += RUN) {
        put_word(sh_bits(sh_coded_scale(c, span)), to);
        to += 4;
        for (size_t k = 0; k < RUN; k++, to++) {
            unsigned low = two[k / 2] >> (k % 2 ? 0 : 4) & 15, high = two[RUN / 2 + k / 2] >> (k % 2 ? 0 : 4) & 15;
            *to = (unsigned char)(low | high << 4);
        }
    }
}

/* In each half of 128 (gguf_type.c), 32 bytes, with two bits each for one of four runs of 32; then the scale. */
static void put_ternary(const struct sh_coded *c, size_t row, unsigned char *to)
{
    const unsigned char *code = c->piece[SH_PIECE_CODES]->at + row % (c->rows / 4) * c->cols;
    unsigned shift = 2 * (unsigned)(row / (c->rows / 4));
    float zero, scale;
    sh_coded_spans(c, row, &zero, &scale);
    uint16_t half = sh_f32_to_f16(scale);
    for (size_t col = 0; col < c->cols; col += TERNARY) {
        for (size_t part = 0; part < 2; part++, code += LONG)
            for (size_t k = 0; k < RUN; k++) {
                unsigned four = 0;
                for (unsigned run = 0; run < 4; run++)
                    four |= (code[run * RUN + k] >> shift & 3u) << 2 * run;
                *to++ = (unsigned char)four;
            }
        *to++ = (unsigned char)(half & 255);
        *to++ = (unsigned char)(half >> 8);
    }
}

/* Of formats that are made from codes as the tensor has them. */
typedef void put_fn(const struct sh_coded *c, size_t row, unsigned char *to);

static void put_rows(const struct sh_coded *c, put_fn *put, size_t first, size_t n, size_t bytes, unsigned char *to)
{
    for (size_t row = first; row < first + n; row++, to += bytes)
        put(c, row, to);
}

void sh_coded_blocks(const struct sh_coded *c, enum sh_packing format, size_t first, size_t n, unsigned char *to)
{
    struct sh_packing_shape s = sh_packing_shape(format);
    size_t bytes = c->cols / (size_t)s.elements * (size_t)s.bytes, most = n < SH_BLOCKS_ROWS ? n : SH_BLOCKS_ROWS;
    if (format == SH_PACKED_FP4_128 || format == SH_PACKED_NF4_64 || format == SH_PACKED_TQ2_0) {
        put_fn *put = format == SH_PACKED_NF4_64 ? put_nf4 : format == SH_PACKED_TQ2_0 ? put_ternary
                      : c->order == SH_CODE_BLOCKS ? put_gguf_fp4 : put_fp4;
        put_rows(c, put, first, n, bytes, to);
        return;
    }
    int is_stored = c->order == SH_CODE_FP8 || c->order == SH_CODE_INT8;
    size_t numbers = is_stored ? 0 : most * c->cols;
    const unsigned char *codes = c->piece[SH_PIECE_CODES]->at;
    float *code = xmalloc((numbers + 2 * c->groups + c->cols) * sizeof *code), *zero = code + numbers;
    float *sorted = zero + 2 * c->groups;       /* a row's codes, with `columns` */
    for (size_t row = 0, some; row < n; row += some) {
        some = n - row < SH_BLOCKS_ROWS ? n - row : SH_BLOCKS_ROWS;
        if (!is_stored)
            sh_coded_codes(c, first + row, some, code);
        for (size_t i = 0; i < some; i++, to += bytes) {
            const unsigned char *stored = is_stored ? codes + (first + row + i) * c->cols : NULL;
            const float *own = is_stored ? NULL : code + i * c->cols;
            for (size_t k = 0; k < c->cols && c->columns; k++)
                sorted[k] = own[c->columns[k]];
            own = c->columns ? sorted : own;
            sh_coded_spans(c, first + row + i, zero, zero + c->groups);
            if (format == SH_PACKED_INT4_32 || format == SH_PACKED_INT4_128)
                put_short(c, (size_t)s.elements, own, zero, zero + c->groups, to);
            else
                put_long(c, (size_t)s.elements, own, stored, zero, zero + c->groups, to);
        }
    }
    free(code);
}
