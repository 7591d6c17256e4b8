/* SPDX-License-Identifier: Apache-2.0 */
/* Products with blocks of every format (kernels/packed.h) by the loops of the variant `base`, which are the NEON ones
 * of a 64-bit ARM processor: against double precision with the numbers that src/model unpacks, and rows among a few
 * others against the same among more. neon.sh compiles this and runs it in an emulator. Limit: as in
 * tests/unit/test_packed.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/variant.h"
#include "src/base/rng.h"
#include "src/model/files/gguf_tensors.h"

enum { OUTS = 70, MOST_ROWS = 23, MOST_COLS = 768, THREADS = 2 };

/* Where scales of f16 are in a block; -1: none. */
static const struct format { const char *name; int half[2], is_apart; } formats[] = {
    {"Q8_0", {0, -1}, 0}, {"Q4_0", {0, -1}, 0}, {"Q4_1", {0, 2}, 0}, {"Q5_0", {0, -1}, 0},
    {"Q5_1", {0, 2}, 0}, {"IQ4_NL", {0, -1}, 0},
    {"MXFP4", {-1, -1}, 0},
    {"Q4_K", {0, 2}, 0}, {"Q5_K", {0, 2}, 0}, {"Q6_K", {208, -1}, 0}, {"Q2_K", {80, 82}, 0},
    {"Q3_K", {108, -1}, 0}, {"IQ4_XS", {0, -1}, 0}, {"IQ2_XS", {0, -1}, 0},
    {"IQ3_S", {0, -1}, 0}, {"IQ1_S", {0, -1}, 0}, {"NVFP4", {-1, -1}, 0}, {"MXFP4", {-1, -1}, 1},
    {"TQ1_0", {52, -1}, 0}, {"TQ2_0", {64, -1}, 0}, {"Q1_0", {0, -1}, 0}};
enum { N_FORMAT = sizeof formats / sizeof *formats };

struct blocks {
    const struct sh_gguf_type *type;
    unsigned char *at, *codes, *scales; /* the last two: of MXFP4_APART                           */
    size_t row_bytes;
    int cols;
};

static void unpack(const void *from, int first, int n, float *to)
{
    const struct blocks *b = from;
    for (int i = 0; i < n; i++)
        sh_gguf_unpack_row(b->type, b->at + (size_t)(first + i) * b->row_bytes, (size_t)b->cols,
                           to + (size_t)i * (size_t)b->cols);
}

/* The blocks' codes with neighbours in a byte, and their scales. */
static void take_apart(struct blocks *b, size_t n)
{
    b->codes = malloc(n * 16);
    b->scales = malloc(n);
    for (size_t i = 0; i < n * 16; i++) {
        const unsigned char *two = b->at + i / 16 * b->type->bytes + 1 + 2 * i % 16;
        int shift = i % 16 < 8 ? 0 : 4;
        b->scales[i / 16] = b->at[i / 16 * b->type->bytes];
        b->codes[i] = (unsigned char)((two[0] >> shift & 15) | (two[1] >> shift & 15) << 4);
    }
}

/* Any bits are codes; scales are of magnitude 1/16 to 1/8. */
static void make(struct blocks *b, const struct format *f)
{
    for (uint32_t i = 0; i < 64; i++)
        if (sh_gguf_type(i) && !strcmp(sh_gguf_type(i)->name, f->name))
            b->type = sh_gguf_type(i);
    b->cols = 3 * (int)b->type->elements;
    b->row_bytes = 3 * b->type->bytes;
    b->at = malloc(OUTS * b->row_bytes);
    for (size_t i = 0; i < OUTS * b->row_bytes; i++)
        b->at[i] = (unsigned char)sh_rng((uint64_t)(f - formats), i);
    for (size_t at = 0; at < OUTS * b->row_bytes; at += b->type->bytes) {
        for (int k = 0; k < 2; k++) {
            unsigned char *top = b->at + at + f->half[k] + 1;
            if (f->half[k] >= 0)
                *top = (unsigned char)((*top & 0x83) | 0x2c);
        }
        if (f->half[0] < 0)
            b->at[at] = (unsigned char)(120 + b->at[at] % 8);
    }
    if (f->is_apart)
        take_apart(b, OUTS * 3);
}

static void multiply(const struct blocks *b, float *x, int rows, float *out)
{
    struct sh_packed p = {.rows = OUTS, .cols = b->cols, .format = b->type->packing, .unpack = unpack, .from = b};
    size_t floats = THREADS * cpu_packed_room_base(b->cols);
    p.at = p.format == SH_PACKED_OTHER ? NULL : b->codes ? b->codes : b->at;
    p.apart = b->scales;
    p.format = b->codes ? SH_PACKED_MXFP4_APART : p.format;
    struct few a = {.out = {out, SH_F32, rows, OUTS, OUTS}, .x = {x, SH_F32, rows, b->cols, (size_t)b->cols},
                    .packed = &p, .room = aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64)};
    if (p.at && rows <= PACKED_ROWS && !sh_packed_is_points(p.format))
        cpu_packed_base(&a, 1, THREADS);
    else
        cpu_many_base(&a, &(struct few_weight){.packed = &p}, THREADS);
    free(a.room);
}

/* What the rounding of number k of a row to an integer may be: packed_dots.h. */
static double whole_rounding(const float *x, int k)
{
    float most = 0;
    for (int i = k / 32 * 32; i < k / 32 * 32 + 32; i++)
        if (fabsf(x[i]) > most)
            most = fabsf(x[i]);
    return (double)most / 32639 * 0.50001;
}

/* The worst error in units of the limit; INFINITY: a row alone differs. */
static double worst_of(const struct blocks *b, int rows)
{
    static float x[MOST_ROWS * MOST_COLS], out[MOST_ROWS * OUTS], fewer[MOST_ROWS * OUTS], w[OUTS * MOST_COLS];
    int is_whole = rows == 1 && b->type->packing != SH_PACKED_OTHER;
    int least = is_whole ? 1 : rows <= PACKED_ROWS ? 2 : PACKED_ROWS + 1, first = rows - least;
    double worst = 0;
    for (int i = 0; i < rows * b->cols; i++)
        x[i] = (float)((double)(sh_rng(7, (uint64_t)i) >> 40) * 0x1p-23 - 1);
    unpack(b, 0, OUTS, w);
    multiply(b, x, rows, out);
    for (int i = 0; i < rows * OUTS; i++) {
        const float *own = x + i / OUTS * b->cols;
        double sum = 0, size = 0;
        for (int k = 0; k < b->cols; k++) {
            double number = (double)w[i % OUTS * b->cols + k], term = (double)own[k] * number;
            sum += term;
            size += 1e-6 * fabs(term) + (is_whole ? whole_rounding(own, k) * fabs(number) : 0);
        }
        worst = fmax(worst, fabs((double)out[i] - sum) / size);
    }
    if (first < 0)
        return worst;
    multiply(b, x + first * b->cols, least, fewer);
    return memcmp(fewer, out + first * OUTS, (size_t)least * OUTS * sizeof *out) ? (double)INFINITY : worst;
}

int main(void)
{
    static const int counts[] = {1, 2, 8, 23};
    printf("1..%d\n", N_FORMAT);
    for (int f = 0; f < N_FORMAT; f++) {
        struct blocks b = {0};
        double worst = 0;
        make(&b, &formats[f]);
        for (int i = 0; i < 4; i++)
            worst = fmax(worst, worst_of(&b, counts[i]));
        printf("%sok %d - %s: worst error %.2f of the limit\n", worst < 1 ? "" : "not ", f + 1, formats[f].name, worst);
        free(b.at);
        free(b.codes);
        free(b.scales);
    }
    return 0;
}
