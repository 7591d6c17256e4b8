/* SPDX-License-Identifier: Apache-2.0 */
/* See coded.h. The sources of the formats: FP8 E4M3 and E5M2 are those of "FP8 formats for deep learning" (2209.05433),
 * MXFP4 and E8M0 those of the OCP Microscaling specification 1.0; words are those of compressed-tensors
 * (pack_to_int32), AutoGPTQ (qlinear_cuda; a stored zero point of all ones stands for 0) and AutoAWQ (packing_utils);
 * tables and scales in codes are those of bitsandbytes (functional.dequantize_4bit); NVFP4 is that of modelopt, whose
 * second scale multiplies the first (NVFP4QTensor), and of compressed-tensors, whose global scale divides it; BITNET is
 * that of transformers (integrations/bitnet.py, unpack_weights). */
#include "src/model/coded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/files/gguf_tensors.h"

static uint32_t word_at(const struct sh_stored *t, size_t i)
{
    uint32_t w;
    memcpy(&w, t->at + i * sizeof w, sizeof w);
    return w;
}

static float f32_at(const struct sh_stored *t, size_t i)
{
    return sh_from_bits(word_at(t, i));
}

static uint16_t half_at(const struct sh_stored *t, size_t i)
{
    return (uint16_t)(t->at[2 * i] | t->at[2 * i + 1] << 8);
}

/* ---- scales and zero points ---- */

static float e4m3(unsigned code)
{
    float x = (code & 127) == 127 ? NAN : sh_from_bits((code & 127) << 20) * 0x1p120f;
    return code & 128 ? -x : x;
}

float sh_coded_scale(const struct sh_coded *c, size_t i)
{
    const struct sh_stored *t = c->piece[SH_PIECE_SCALES];
    switch (c->scale) {
    case SH_SCALE_F32: return f32_at(t, i);
    case SH_SCALE_F16: return sh_f16_to_f32(half_at(t, i));
    case SH_SCALE_BF16: return sh_bf16_to_f32(half_at(t, i));
    case SH_SCALE_E8M0: return t->at[i] == 255 ? NAN : ldexpf(1, t->at[i] - 127);
    case SH_SCALE_E4M3: return e4m3(t->at[i]);
    case SH_SCALE_CODED: break;
    }
    float near = f32_at(c->piece[SH_PIECE_SCALE_TABLE], t->at[i]);
    return near * f32_at(c->piece[SH_PIECE_SCALE_SCALES], i / c->scale_span) + c->scale_offset;
}

/* Output `row` of a word of eight is in this place. */
static unsigned awq_shift(size_t row)
{
    static const unsigned char place[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    return 4u * place[row % 8];
}

/* Code i of words that lie `step` apart, from word `first` on. */
static uint32_t code_at(const struct sh_stored *t, size_t first, size_t step, unsigned bits, size_t i)
{
    size_t bit = i * bits, word = first + bit / 32 * step;
    unsigned shift = (unsigned)(bit % 32);
    uint32_t code = word_at(t, word) >> shift;
    if (shift + bits > 32)
        code |= word_at(t, word + step) << (32 - shift);
    return code & ((1u << bits) - 1);
}

/* i: of its scale */
static int zero_at(const struct sh_coded *c, size_t row, size_t group, size_t i)
{
    const struct sh_stored *t = c->piece[SH_PIECE_ZEROS];
    unsigned bits = (unsigned)c->bits, mask = (1u << bits) - 1;
    size_t per = 32 / bits;
    if (!t)
        return c->zero;
    if (c->order == SH_CODE_INT8)
        return (int8_t)t->at[i];
    if (c->order == SH_CODE_ROWS)
        return (int)code_at(t, group, c->groups, bits, row);
    size_t words = c->rows * bits / 32;
    uint32_t code = c->order == SH_CODE_AWQ ? word_at(t, group * words + row / per) >> awq_shift(row)
                                            : code_at(t, group * words, 1, bits, row);
    return (int)((code + (unsigned)c->zero_more) & mask);
}

float sh_coded_factor(const struct sh_coded *c, size_t row)
{
    const struct sh_stored *t = c->piece[SH_PIECE_FACTORS];
    return f32_at(t, t->bytes > sizeof(float) ? row / c->matrix_rows : 0);
}

void sh_coded_spans(const struct sh_coded *c, size_t row, float *zero, float *scale)
{
    size_t in = row % c->matrix_rows, each = (c->matrix_rows + c->span_rows - 1) / c->span_rows;
    size_t first = (row / c->matrix_rows * each + in / c->span_rows) * c->row_step;
    for (size_t g = 0; g < c->groups; g++) {
        size_t i = first + g * c->group_step;
        zero[g] = (float)zero_at(c, row, g, i);
        scale[g] = sh_coded_scale(c, i);
        if (c->order == SH_CODE_BITNET && c->divides)
            scale[g] = 1 / scale[g];
        if (c->scale_by > 0)
            scale[g] *= c->scale_by;
    }
    if (!c->piece[SH_PIECE_FACTORS])
        return;
    float factor = sh_coded_factor(c, row);
    for (size_t g = 0; g < c->groups; g++)
        scale[g] = c->divides ? scale[g] / factor : scale[g] * factor;
}

struct spans {                          /* of one row */
    float *zero, *scale;                /* [groups] */
};

/* Codes become the numbers that they stand for. */
static void finish_row(const struct sh_coded *c, size_t row, struct spans *s, float *x)
{
    const struct sh_stored *groups = c->piece[SH_PIECE_GROUPS];
    sh_coded_spans(c, row, s->zero, s->scale);
    for (size_t k = 0; groups && k < c->cols; k++) {
        uint32_t g = word_at(groups, k);
        x[k] = (x[k] - s->zero[g]) * s->scale[g];
    }
    for (size_t g = 0, k = 0; !groups && g < c->groups; g++) {
        size_t end = c->cols - k < c->span_cols ? c->cols : k + c->span_cols;
        float zero = s->zero[g], scale = s->scale[g];
        #pragma omp simd
        for (size_t i = k; i < end; i++)
            x[i] = (x[i] - zero) * scale;
        k = end;
    }
}

/* ---- codes ---- */

static void bytes_as(const float *table, const unsigned char *at, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = table[at[i]];
}

static void fp8(const struct sh_coded *c, size_t first, size_t n, float *out)
{
    float table[256];
    for (unsigned i = 0; i < 256; i++)
        table[i] = c->is_e5m2 ? sh_f16_to_f32((uint16_t)(i << 8)) : e4m3(i);
    bytes_as(table, c->piece[SH_PIECE_CODES]->at + first * c->cols, n * c->cols, out);
}

static void int8(const struct sh_coded *c, size_t first, size_t n, float *out)
{
    const unsigned char *at = c->piece[SH_PIECE_CODES]->at + first * c->cols;
    #pragma omp simd
    for (size_t i = 0; i < n * c->cols; i++)
        out[i] = (float)(int8_t)at[i];
}

static void along_rows(const struct sh_coded *c, size_t first, size_t n, float *out)
{
    unsigned bits = (unsigned)c->bits, mask = (1u << bits) - 1;
    size_t per = 32 / bits, words = (c->cols + per - 1) / per;
    for (size_t row = 0; row < n; row++, out += c->cols)
        for (size_t k = 0, i = 0; i < words; i++) {
            uint32_t word = word_at(c->piece[SH_PIECE_CODES], (first + row) * words + i);
            for (size_t end = c->cols - k < per ? c->cols : k + per; k < end; k++, word >>= bits)
                out[k] = (float)(word & mask);
        }
}

/* Some rows of a matrix whose words lie [cols, rows], TILE columns at a time: the rows of `out` are far apart. */
enum { TILE = 64 };

typedef void fill_tile(const struct sh_coded *c, size_t first, size_t n, size_t col, float tile[SH_BLOCKS_ROWS][TILE]);

static void tiled(const struct sh_coded *c, size_t first, size_t n, float *out, fill_tile *fill)
{
    float tile[SH_BLOCKS_ROWS][TILE];
    for (size_t col = 0; col < c->cols; col += TILE) {
        size_t some = c->cols - col < TILE ? c->cols - col : TILE;
        fill(c, first, n, col, tile);
        for (size_t row = 0; row < n; row++)
            memcpy(out + row * c->cols + col, tile[row], some * sizeof *out);
    }
}

static void fill_columns(const struct sh_coded *c, size_t first, size_t n, size_t col, float tile[SH_BLOCKS_ROWS][TILE])
{
    const struct sh_stored *t = c->piece[SH_PIECE_CODES];
    unsigned bits = (unsigned)c->bits, mask = (1u << bits) - 1, per = 32 / bits;
    for (size_t k = 0; k < TILE && col + k < c->cols && bits == 3; k++)
        for (size_t row = 0; row < n; row++)
            tile[row][k] = (float)code_at(t, first + row, c->rows, bits, col + k);
    for (size_t k0 = 0; k0 < TILE && col + k0 < c->cols && bits != 3; k0 += per)
        for (size_t row = 0; row < n; row++) {
            uint32_t word = word_at(t, (col + k0) / per * c->rows + first + row);
            for (size_t k = 0; k < per; k++, word >>= bits)
                tile[row][k0 + k] = (float)(word & mask);
        }
}

static void along_columns(const struct sh_coded *c, size_t first, size_t n, float *out)
{
    tiled(c, first, n, out, fill_columns);
}

static void fill_awq(const struct sh_coded *c, size_t first, size_t n, size_t col, float tile[SH_BLOCKS_ROWS][TILE])
{
    for (size_t k = 0; k < TILE && col + k < c->cols; k++)
        for (size_t row = 0; row < n; row++) {
            uint32_t word = word_at(c->piece[SH_PIECE_CODES], (col + k) * (c->rows / 8) + (first + row) / 8);
            tile[row][k] = (float)(word >> awq_shift(first + row) & 15);
        }
}

static void awq(const struct sh_coded *c, size_t first, size_t n, float *out)
{
    tiled(c, first, n, out, fill_awq);
}

/* The rows run on, and so do the spans: a row may begin within a byte. */
static void in_table(const struct sh_coded *c, size_t first, size_t n, float *out)
{
    const unsigned char *at = c->piece[SH_PIECE_CODES]->at;
    float table[16];
    for (size_t i = 0; i < 16; i++)
        table[i] = f32_at(c->piece[SH_PIECE_TABLE], i);
    for (size_t i = first * c->cols, end = i + n * c->cols; i < end;) {
        size_t span = i / c->span_cols, rest = (span + 1) * c->span_cols;
        float scale = sh_coded_scale(c, span);
        for (rest = rest < end ? rest : end; i < rest; i++)
            *out++ = table[i % 2 ? at[i / 2] & 15 : at[i / 2] >> 4] * scale;
    }
}

/* Spans of 32. The values are doubled and the scale is halved: no product leaves the range of f32 early. */
static void mxfp4(const struct sh_coded *c, size_t first, size_t n, float *out)
{
    const unsigned char *at = c->piece[SH_PIECE_CODES]->at, *scale = c->piece[SH_PIECE_SCALES]->at;
    for (size_t i = first * c->groups; i < (first + n) * c->groups; i++, out += 32) {
        float half = sh_e8m0_half(scale[i]);
        for (size_t k = 0; k < 16; k++) {
            out[2 * k] = sh_fp4_twice(at[i * 16 + k] & 15u) * half;
            out[2 * k + 1] = sh_fp4_twice(at[i * 16 + k] >> 4) * half;
        }
    }
}

static void fp4(const struct sh_coded *c, size_t first, size_t n, float *out)
{
    const unsigned char *at = c->piece[SH_PIECE_CODES]->at + first * (c->cols / 2);
    for (size_t i = 0; i < n * (c->cols / 2); i++) {
        out[2 * i] = sh_fp4_twice(at[i] & 15u) / 2;
        out[2 * i + 1] = sh_fp4_twice(at[i] >> 4) / 2;
    }
}

static void bitnet(const struct sh_coded *c, size_t first, size_t n, float *out)
{
    for (size_t row = first; row < first + n; row++, out += c->cols) {
        const unsigned char *at = c->piece[SH_PIECE_CODES]->at + row % (c->rows / 4) * c->cols;
        unsigned shift = 2 * (unsigned)(row / (c->rows / 4));
        #pragma omp simd
        for (size_t i = 0; i < c->cols; i++)
            out[i] = (float)(at[i] >> shift & 3);
    }
}

static void blocks(const struct sh_coded *c, size_t first, size_t n, float *out)
{
    const struct sh_stored *t = c->piece[SH_PIECE_CODES];
    size_t bytes = c->cols / t->packed->elements * t->packed->bytes;
    sh_gguf_unpack_row(t->packed, t->at + first * bytes, n * c->cols, out);
    for (size_t row = first; row < first + n; row++, out += c->cols) {
        float factor = sh_coded_factor(c, row);
        #pragma omp simd
        for (size_t i = 0; i < c->cols; i++)
            out[i] *= factor;
    }
}

typedef void read_codes(const struct sh_coded *, size_t, size_t, float *);

static read_codes *const by_order[] = {
    [SH_CODE_FP8] = fp8, [SH_CODE_INT8] = int8, [SH_CODE_ROWS] = along_rows, [SH_CODE_COLUMNS] = along_columns,
    [SH_CODE_AWQ] = awq, [SH_CODE_TABLE] = in_table, [SH_CODE_MXFP4] = mxfp4, [SH_CODE_FP4] = fp4,
    [SH_CODE_BITNET] = bitnet, [SH_CODE_BLOCKS] = blocks};

void sh_coded_codes(const struct sh_coded *c, size_t first, size_t n, float *out)
{
    by_order[c->order](c, first, n, out);
}

void sh_coded_rows(const struct sh_coded *c, size_t first, size_t n, float *out)
{
    if (c->order == SH_CODE_TABLE || c->order == SH_CODE_MXFP4 || c->order == SH_CODE_BLOCKS) {
        sh_coded_codes(c, first, n, out);
        return;
    }
    float *both = xmalloc(2 * c->groups * sizeof *both);
    struct spans s = {both, both + c->groups};
    for (size_t row = 0, some; row < n; row += some) {
        some = n - row < SH_BLOCKS_ROWS ? n - row : SH_BLOCKS_ROWS;
        sh_coded_codes(c, first + row, some, out + row * c->cols);
        for (size_t i = row; i < row + some; i++)
            finish_row(c, first + i, &s, out + i * c->cols);
    }
    free(both);
}

void sh_coded_free(const struct sh_coded *c)
{
    if (c)
        free(c->columns);
    free((void *)(uintptr_t)c);
}

/* ---- tensors ---- */

int sh_stored_is_coded(const struct sh_stored *t)
{
    return t->packed || t->coded;
}

void sh_stored_rows(const struct sh_stored *t, size_t first, size_t n, float *out)
{
    if (t->coded) {
        sh_coded_rows(t->coded, first, n, out);
        return;
    }
    size_t cols = t->shape[t->rank - 1], bytes = cols / t->packed->elements * t->packed->bytes;
    sh_gguf_unpack_row(t->packed, t->at + first * bytes, n * cols, out);
}
