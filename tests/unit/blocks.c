/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/model/model.h"
#include "tests/tap.h"

const struct block_format block_formats[N_BLOCK_FORMAT] = {
    {"Q8_0", {0, -1}, -1, 0}, {"Q4_0", {0, -1}, -1, 0}, {"Q4_1", {0, 2}, -1, 0}, {"Q5_0", {0, -1}, -1, 0},
    {"Q5_1", {0, 2}, -1, 0},
    {"IQ4_NL", {0, -1}, -1, 0}, {"MXFP4", {-1, -1}, 0, 0}, {"Q4_K", {0, 2}, -1, 0}, {"Q5_K", {0, 2}, -1, 0},
    {"Q6_K", {208, -1}, -1, 0}, {"Q2_K", {80, 82}, -1, 0},
    {"Q3_K", {108, -1}, -1, 0}, {"IQ4_XS", {0, -1}, -1, 0}, {"IQ2_S", {0, -1}, -1, 0}, {"MXFP4", {-1, -1}, 0, 1},
    {"F16", {0, -1}, -1, 0}, {"BF16", {0, -1}, -1, 0}};

static const struct sh_gguf_type *type_named(const char *name)
{
    for (uint32_t i = 0; i < 64; i++)
        if (sh_gguf_type(i) && !strcmp(sh_gguf_type(i)->name, name))
            return sh_gguf_type(i);
    return NULL;
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
    for (int i = 0; i < n; i++)
        sh_gguf_unpack_row(b->type, b->at + (size_t)sh_packed_row(&b->p, first + i) * b->row_bytes, (size_t)b->p.cols,
                           to + (size_t)i * (size_t)b->p.cols);
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
}

/* Scales of all blocks in a range of f16 numbers, or of exponents. */
static void make_scales(struct blocks *b, const struct block_format *f, size_t n)
{
    for (size_t at = 0; at < n; at += b->type->bytes) {
        for (int k = 0; k < 2; k++) {
            unsigned char *top = b->at + at + f->half[k] + 1;
            if (f->half[k] >= 0)
                *top = (unsigned char)(b->type->packing == SH_PACKED_BF16 ? (*top & 0x81) | 0x3c
                                                                          : (*top & 0x83) | 0x2c);
        }
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
    b->p = (struct sh_packed){.rows = rows, .cols = cols, .format = b->type->packing, .d_head = d_head,
                              .step = step, .unpack = blocks_unpack, .from = b};
    if (b->p.format != SH_PACKED_OTHER)
        b->p.at = b->at;
    if (f->is_apart)
        take_apart(b, n / b->type->bytes);
}
