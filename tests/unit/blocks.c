/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/model/model.h"
#include "tests/tap.h"

const struct block_format block_formats[N_BLOCK_FORMAT] = {
    {"Q8_0", {0, -1}, -1, 0, 0, 0}, {"Q4_0", {0, -1}, -1, 0, 0, 0}, {"Q4_1", {0, 2}, -1, 0, 0, 0},
    {"Q5_0", {0, -1}, -1, 0, 0, 0}, {"Q5_1", {0, 2}, -1, 0, 0, 0}, {"IQ4_NL", {0, -1}, -1, 0, 0, 0},
    {"MXFP4", {-1, -1}, 0, 0, 0, 0}, {"Q4_K", {0, 2}, -1, 0, 0, 0}, {"Q5_K", {0, 2}, -1, 0, 0, 0},
    {"Q6_K", {208, -1}, -1, 0, 0, 0}, {"Q2_K", {80, 82}, -1, 0, 0, 0}, {"Q3_K", {108, -1}, -1, 0, 0, 0},
    {"IQ4_XS", {0, -1}, -1, 0, 0, 0}, {"NVFP4", {-1, -1}, -1, 0, 0, 0}, {"MXFP4", {-1, -1}, 0, 1, 0, 0},
    {"F16", {0, -1}, -1, 0, 0, 0}, {"BF16", {0, -1}, -1, 0, 0, 0}, {"INT4_32", {2, -1}, -1, 0, 0, 0},
    {"INT4_128", {2, -1}, -1, 0, 0, 0}, {"INT8_128", {2, -1}, -1, 0, 0, 0}, {"INT4_32", {2, -1}, -1, 0, 1, 0},
    {"INT4_128", {2, -1}, -1, 0, 1, 0}, {"INT8_128", {2, -1}, -1, 0, 1, 0}, {"E4M3_128", {2, -1}, -1, 0, 0, 0},
    {"E5M2_128", {2, -1}, -1, 0, 0, 0}, {"E4M3_128", {2, -1}, -1, 0, 1, 0}, {"E5M2_128", {2, -1}, -1, 0, 1, 0},
    {"FP4_128", {2, -1}, -1, 0, 0, 0}, {"FP4_128", {2, -1}, -1, 0, 1, 0}, {"NF4_64", {2, -1}, -1, 0, 0, 0},
    {"NF4_64", {2, -1}, -1, 0, 1, 0}, {"IQ1_S", {0, -1}, -1, 0, 0, 0}, {"IQ1_M", {54, -1}, -1, 0, 0, 0},
    {"IQ2_XXS", {0, -1}, -1, 0, 0, 0}, {"IQ2_XS", {0, -1}, -1, 0, 0, 0}, {"IQ2_S", {0, -1}, -1, 0, 0, 0},
    {"IQ3_XXS", {0, -1}, -1, 0, 0, 0}, {"IQ3_S", {0, -1}, -1, 0, 0, 0}, {"INT4_32", {2, -1}, -1, 0, 1, 1},
    {"INT4_128", {2, -1}, -1, 0, 1, 1}, {"INT8_128", {2, -1}, -1, 0, 1, 1}, {"E4M3_32", {2, -1}, -1, 0, 0, 0},
    {"E4M3_32", {2, -1}, -1, 0, 1, 0}, {"TQ1_0", {52, -1}, -1, 0, 0, 0}, {"TQ2_0", {64, -1}, -1, 0, 0, 0},
    {"Q1_0", {0, -1}, -1, 0, 0, 0}};

/* ---- formats that no file has: src/model/coded_blocks.h ---- */

static float word_as_float(const unsigned char *at, unsigned mask)
{
    uint32_t word = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    return sh_from_bits(word & mask);
}

static void unpack_int4(const unsigned char *b, size_t elements, float *to)
{
    size_t together = elements == 32 ? 32 : 64;         /* numbers that share bytes */
    for (size_t i = 0; i < elements; i++) {
        unsigned two = b[4 + i / together * (together / 2) + i % (together / 2)];
        int is_high = i % together >= together / 2;
        to[i] = (float)((int)(two >> (is_high ? 4 : 0) & 15) - b[0]) * word_as_float(b, 0xffffff00u);
    }
}

static void unpack_int4_32(const unsigned char *b, float *to)
{
    unpack_int4(b, 32, to);
}

static void unpack_int4_128(const unsigned char *b, float *to)
{
    unpack_int4(b, 128, to);
}

static void unpack_int8_128(const unsigned char *b, float *to)
{
    for (size_t i = 0; i < 128; i++)
        to[i] = (float)(signed char)b[4 + i] * word_as_float(b, 0xffffffffu);
}

static float e4m3(unsigned code)
{
    unsigned exponent = code >> 3 & 15, mantissa = code & 7;
    float x = exponent ? ldexpf((float)(8 + mantissa), (int)exponent - 10) : ldexpf((float)mantissa, -9);
    return (code & 127) == 127 ? NAN : code & 128 ? -x : x;
}

static void unpack_fp4_128(const unsigned char *b, float *to)
{
    static const float fp4[16] = {0, .5f, 1, 1.5f, 2, 3, 4, 6, 0, -.5f, -1, -1.5f, -2, -3, -4, -6};
    for (size_t i = 0; i < 128; i++) {
        unsigned two = b[12 + i / 64 * 32 + i % 32];
        to[i] = fp4[two >> (i % 64 < 32 ? 0 : 4) & 15] * (e4m3(b[4 + i / 16]) * word_as_float(b, 0xffffffffu));
    }
}

/* The numbers of bitsandbytes, as its functional.py prints them. */
static void unpack_nf4_64(const unsigned char *b, float *to)
{
    static const double nf4[16] = {
        -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
        -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634,
        0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0};
    for (size_t i = 0; i < 64; i++)
        to[i] = (float)nf4[b[4 + i % 32] >> (i < 32 ? 0 : 4) & 15] * word_as_float(b, 0xffffffffu);
}

static void unpack_e4m3(const unsigned char *b, size_t n, float *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = e4m3(b[4 + i]) * word_as_float(b, 0xffffffffu);
}

static void unpack_e4m3_32(const unsigned char *b, float *to)
{
    unpack_e4m3(b, 32, to);
}

static void unpack_e4m3_128(const unsigned char *b, float *to)
{
    unpack_e4m3(b, 128, to);
}

static void unpack_e5m2_128(const unsigned char *b, float *to)
{
    for (size_t i = 0; i < 128; i++)
        to[i] = sh_f16_to_f32((uint16_t)(b[4 + i] << 8)) * word_as_float(b, 0xffffffffu);
}

static const struct sh_gguf_type own[] = {
    {0, "INT4_32", 32, 20, unpack_int4_32, SH_PACKED_INT4_32},
    {0, "INT4_128", 128, 68, unpack_int4_128, SH_PACKED_INT4_128},
    {0, "INT8_128", 128, 132, unpack_int8_128, SH_PACKED_INT8_128},
    {0, "E4M3_32", 32, 36, unpack_e4m3_32, SH_PACKED_E4M3_32},
    {0, "E4M3_128", 128, 132, unpack_e4m3_128, SH_PACKED_E4M3_128},
    {0, "FP4_128", 128, 76, unpack_fp4_128, SH_PACKED_FP4_128},
    {0, "NF4_64", 64, 36, unpack_nf4_64, SH_PACKED_NF4_64},
    {0, "E5M2_128", 128, 132, unpack_e5m2_128, SH_PACKED_E5M2_128}};

const struct sh_gguf_type *blocks_type(enum sh_packing format)
{
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (own[i].packing == format)
            return &own[i];
    for (uint32_t i = 0; i < 64 && format != SH_PACKED_OTHER; i++)
        if (sh_gguf_type(i) && sh_gguf_type(i)->unpack && sh_gguf_type(i)->packing == format)
            return sh_gguf_type(i);
    return NULL;
}

/* sh_packed.blocks */
static void blocks_of_rows(const void *from, int first, int n, unsigned char *to)
{
    const struct blocks *b = from;
    for (int i = 0; i < n; i++)
        memcpy(to + (size_t)i * b->row_bytes, b->at + (size_t)sh_packed_row(&b->p, first + i) * b->row_bytes,
               b->row_bytes);
}

/* ---- all ---- */

static const struct sh_gguf_type *type_named(const char *name)
{
    for (uint32_t i = 0; i < 64; i++)
        if (sh_gguf_type(i) && !strcmp(sh_gguf_type(i)->name, name))
            return sh_gguf_type(i);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(own[i].name, name))
            return &own[i];
    return NULL;
}

static int is_own(const struct sh_gguf_type *t)
{
    return t >= own && t < own + sizeof own / sizeof *own;
}

static int is_float(const struct sh_gguf_type *t)
{
    return t->packing == SH_PACKED_E4M3_32 || t->packing == SH_PACKED_E4M3_128 || t->packing == SH_PACKED_E5M2_128;
}

static int is_halves(const struct sh_gguf_type *t)
{
    return !t->unpack;
}

int blocks_elements(const struct block_format *f)
{
    const struct sh_gguf_type *t = type_named(f->name);
    return is_halves(t) ? 32 : (int)t->elements;
}

static void unpack_halves(const struct blocks *b, int row, float *to)
{
    const unsigned char *at = b->at + (size_t)row * b->row_bytes;
    for (int k = 0; k < b->p.cols; k++, at += 2) {
        uint16_t half = (uint16_t)(at[0] | at[1] << 8);
        to[k] = b->p.format == SH_PACKED_F16 ? sh_f16_to_f32(half) : sh_bf16_to_f32(half);
    }
}

void blocks_unpack(const void *from, int first, int n, float *to)
{
    const struct blocks *b = from;
    for (int i = 0; i < n && is_halves(b->type); i++)
        unpack_halves(b, sh_packed_row(&b->p, first + i), to + (size_t)i * (size_t)b->p.cols);
    if (is_halves(b->type))
        return;
    float *row = xmalloc((size_t)b->p.cols * sizeof *row);
    for (int i = 0; i < n; i++, to += b->p.cols) {
        sh_gguf_unpack_row(b->type, b->at + (size_t)sh_packed_row(&b->p, first + i) * b->row_bytes, (size_t)b->p.cols,
                           row);
        for (int k = 0; k < b->p.cols; k++)
            to[b->columns ? b->columns[k] : k] = row[k];
    }
    free(row);
}

/* The blocks' codes with neighbours in a byte, and their scales. */
static void take_apart(struct blocks *b, size_t n)
{
    b->codes = xmalloc(n * 16);
    b->scales = xmalloc(n);
    for (size_t i = 0; i < n; i++) {
        const unsigned char *from = b->at + i * b->type->bytes;
        b->scales[i] = from[0];
        for (int k = 0; k < 16; k++) {
            const unsigned char *two = from + 1 + 2 * k % 16;
            int shift = k < 8 ? 0 : 4;
            b->codes[i * 16 + (size_t)k] = (unsigned char)((two[0] >> shift & 15) | (two[1] >> shift & 15) << 4);
        }
    }
    b->p.format = SH_PACKED_MXFP4_APART;
    b->p.at = b->codes;
    b->p.apart = b->scales;
}

void blocks_free(struct blocks *b)
{
    free(b->at);
    free(b->codes);
    free(b->scales);
    free(b->columns);
}

/* Scales of all blocks in a range of f16 numbers, or of exponents. */
static void make_scales(struct blocks *b, const struct block_format *f, size_t n)
{
    for (size_t at = 0; at < n; at += b->type->bytes) {
        for (int k = 0; k < 2; k++) {
            unsigned char *top = b->at + at + f->half[k] + 1;
            if (f->half[k] >= 0)
                *top = (unsigned char)(b->type->packing == SH_PACKED_BF16 || is_own(b->type)
                                           ? (*top & 0x81) | 0x3c : (*top & 0x83) | 0x2c);
        }
        if (is_own(b->type) && !is_float(b->type))
            b->at[at] &= 31;            /* zero points */
        for (size_t k = 4; k < 12 && b->type->packing == SH_PACKED_FP4_128; k++)
            b->at[at + k] = (unsigned char)(0x38 | b->at[at + k] % 8);         /* 1 to 2 */
        if (f->byte >= 0)
            b->at[at + (size_t)f->byte] = (unsigned char)(120 + b->at[at + (size_t)f->byte] % 8);
    }
}

void blocks_make(struct blocks *b, const struct block_format *f, int rows, int cols, int d_head, int fill)
{
    *b = (struct blocks){.type = type_named(f->name)};
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->type);
    int step = (f->is_apart || is_halves(b->type)) && !d_head ? 1 + cols / 32 % 2 : 1;
    b->row_bytes = (size_t)cols / b->type->elements * b->type->bytes;
    size_t n = (size_t)rows * (size_t)step * b->row_bytes;
    b->at = xmalloc(n);
    for (size_t i = 0; i < n; i++)
        b->at[i] = (unsigned char)sh_rng((uint64_t)(f - block_formats), i);
    if (fill >= 0)
        memset(b->at, fill, n);
    make_scales(b, f, n);
    for (size_t at = 0; at < n && is_float(b->type); at++)      /* no NaN, no infinity */
        if (at % b->type->bytes > 3)
            b->at[at] &= b->type->packing == SH_PACKED_E5M2_128 ? 0xfb : 0xfe;
    b->p = (struct sh_packed){.rows = rows, .cols = cols, .format = b->type->packing, .d_head = d_head,
                              .step = step, .unpack = blocks_unpack, .from = b};
    if (f->is_made)
        b->p.blocks = blocks_of_rows;
    else if (b->p.format != SH_PACKED_OTHER)
        b->p.at = b->at;
    if (f->is_sorted) {                 /* 13 and the number of columns have no common factor     */
        b->p.columns = b->columns = xmalloc((size_t)cols * sizeof *b->columns);
        for (int k = 0; k < cols; k++)
            b->columns[k] = (k * 13 + 5) % cols;
    }
    if (f->is_apart)
        take_apart(b, n / b->type->bytes);
}

void blocks_round_to_8_bits(const struct blocks *b, double *x, double *off)
{
    const int *columns = b->p.columns;
    for (int first = 0; first < b->p.cols; first += 32) {
        double most = 0;
        for (int i = first; i < first + 32; i++)
            most = fmax(most, fabs(x[columns ? columns[i] : i]));
        for (int i = first; i < first + 32; i++) {
            int k = columns ? columns[i] : i;
            double n = most > 0 ? x[k] / most * 127 : 0;
            off[k] = fabs(fabs(n - rint(n)) - 0.5) < 1e-4 ? most / 127 : 0;
            x[k] = rint(n) * most / 127;
        }
    }
}
