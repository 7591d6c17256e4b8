/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/packed.h: products with weights in the blocks of every format, on every variant of the CPU backend and on a
 * module, against double precision with the numbers that src/model unpacks; that a row is the same bits among any
 * others of a product of its kind (a few rows, or more), and on one thread; x that is not a number; rows in the order
 * of llama.cpp; numbers that are not finite, found from the scales; and codes of few bits made of such weights.
 *
 * Limit: 1e-6 of the sum of the magnitudes of a product's terms, whatever the operands' type: numbers are not rounded
 * to it, but where bf16 products of many rows are native. On a device that may round x, the product of one row does,
 * and with AVX-512 VNNI every product: each 32 numbers to integers (kernels/cpu/packed_dots.h), by at most half of the
 * largest / 32639. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/model/files/gguf_tensors.h"
#include "src/model/model.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"
#include "tests/unit/variants.h"

/* Where scales of f16 are in a block; -1: none. `byte`: a scale that is an exponent; is_apart: the same numbers as
 * MXFP4_APART. */
static const struct format { const char *name; int half[2], byte, is_apart; } formats[] = {
    {"Q8_0", {0, -1}, -1, 0}, {"Q4_0", {0, -1}, -1, 0}, {"Q4_1", {0, 2}, -1, 0}, {"Q5_0", {0, -1}, -1, 0},
    {"Q5_1", {0, 2}, -1, 0},
    {"IQ4_NL", {0, -1}, -1, 0}, {"MXFP4", {-1, -1}, 0, 0}, {"Q4_K", {0, 2}, -1, 0}, {"Q5_K", {0, 2}, -1, 0},
    {"Q6_K", {208, -1}, -1, 0}, {"Q2_K", {80, 82}, -1, 0},
    {"Q3_K", {108, -1}, -1, 0}, {"IQ4_XS", {0, -1}, -1, 0}, {"IQ2_S", {0, -1}, -1, 0}, {"MXFP4", {-1, -1}, 0, 1},
    {"F16", {0, -1}, -1, 0}, {"BF16", {0, -1}, -1, 0}};
enum { N_FORMAT = sizeof formats / sizeof *formats };

struct blocks {                         /* a matrix                                               */
    const struct sh_gguf_type *type;
    unsigned char *at, *codes, *scales; /* the last two: of MXFP4_APART                           */
    size_t row_bytes;
    struct sh_packed p;
};

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

/* Numbers in as many as a kernel takes at once. */
static int elements_of(const struct sh_gguf_type *t)
{
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

static void unpack(const void *from, int first, int n, float *to)
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

static void blocks_free(struct blocks *b)
{
    free(b->at);
    free(b->codes);
    free(b->scales);
}

/* Any bits are codes; scales, and numbers of f16, are of magnitude 1/16 to 1/8, those of bf16 1/128 to 1/8. Of
 * MXFP4_APART and numbers of 16 bits every second row is the matrix's, as of gate and up in turns, at odd widths. */
static void make(struct blocks *b, const struct format *f, int rows, int cols, int d_head)
{
    *b = (struct blocks){.type = type_named(f->name)};
    CU_ASSERT_PTR_NOT_NULL_FATAL(b->type);
    int step = (f->is_apart || is_halves(b->type)) && !d_head ? 1 + cols / 32 % 2 : 1;
    b->row_bytes = (size_t)cols / b->type->elements * b->type->bytes;
    size_t n = (size_t)rows * (size_t)step * b->row_bytes;
    b->at = xmalloc(n);
    for (size_t i = 0; i < n; i++)
        b->at[i] = (unsigned char)sh_rng((uint64_t)(f - formats), i);
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
    b->p = (struct sh_packed){.rows = rows, .cols = cols, .format = b->type->packing, .d_head = d_head,
                              .step = step, .unpack = unpack, .from = b};
    if (b->p.format != SH_PACKED_OTHER)
        b->p.at = b->at;
    if (f->is_apart)
        take_apart(b, n / b->type->bytes);
}

/* ---- finite ---- */

static void expect_finite(const struct blocks *b, const struct format *f, unsigned value)
{
    size_t n = (size_t)b->p.rows * (size_t)b->p.cols, i = 0;
    float *x = xmalloc(n * sizeof *x);
    char where[64];
    struct sh_err e = {0};
    unpack(b, 0, b->p.rows, x);
    while (i < n && isfinite(x[i]))
        i++;
    snprintf(where, sizeof where, "element %zu (row %zu, ", i, i / (size_t)b->p.cols);
    int bad = sh_packed_check_finite(&b->p, "x", &e);
    if (!bad != (i == n) || (bad && !strstr(e.text, where))) {
        printf("# %s, scale 0x%x: found %d \"%s\", expected %s\n", f->name, value, bad, e.text, i == n ? "0" : where);
        CU_FAIL("finite");
    }
    free(x);
}

/* One scale of a matrix with every kind of value; for each, whether a number is not finite, and which. */
static void all_finite(void)
{
    static const unsigned half[] = {0x7bff, 0x7c00, 0xfc00, 0x7e01, 0xffff, 0x7f7f, 0x7f80, 0xff80, 0x0000};
    static const unsigned byte[] = {0, 252, 253, 254, 255};
    for (const struct format *f = formats; f < formats + N_FORMAT; f++) {
        struct blocks b;
        make(&b, f, 37, elements_of(type_named(f->name)) == 32 ? 480 : 512, 0);     /* 480: of some every second row */
        expect_finite(&b, f, 0);
        size_t at = (size_t)sh_packed_row(&b.p, 21) * b.row_bytes + b.type->bytes, block = at / b.type->bytes;
        for (int k = 0; k < 2; k++)
            for (size_t i = 0; i < sizeof half / sizeof *half && f->half[k] >= 0; i++) {
                unsigned char *to = b.at + at + f->half[k], before[2] = {to[0], to[1]};
                to[0] = (unsigned char)(half[i] & 0xff);
                to[1] = (unsigned char)(half[i] >> 8);
                expect_finite(&b, f, half[i]);
                memcpy(to, before, 2);
            }
        for (size_t i = 0; i < sizeof byte / sizeof *byte && f->byte >= 0; i++) {
            b.at[at + (size_t)f->byte] = (unsigned char)byte[i];
            if (f->is_apart)
                b.scales[block] = (unsigned char)byte[i];
            expect_finite(&b, f, byte[i]);
        }
        blocks_free(&b);
    }
}

struct tried {
    const struct target *t, *alone;
    const struct blocks *b;
    struct sh_weight *w;
    const float *numbers;
    enum sh_type type;
    int is_settled;
};

/* Whether outputs are in lanes, few rows at least. */
static int in_lanes(const struct tried *c)
{
    const struct sh_dev *d = c->t->d;
    return d->rounds_x && d->kernels->packed_lanes && sh_packed_is_code(c->b->p.format) &&
           (d->kernels->lanes_by_vnni ? d->has_vnni : c->is_settled);
}

static int is_whole(const struct tried *c, int rows)    /* whether x is rounded to integers       */
{
    const struct sh_dev *d = c->t->d;
    int all = in_lanes(c) && (c->type != SH_BF16 || !d->native_bf16);
    return d->rounds_x && sh_packed_is_code(c->b->p.format) &&
           (all || rows <= (in_lanes(c) ? d->kernels->packed_rows : 1));
}

/* What the rounding of number k of a row may be. */
static double whole_rounding(const struct matrix *x, int row, int k)
{
    double most = 0;
    for (int i = k / 32 * 32; i < k / 32 * 32 + 32; i++)
        most = fmax(most, fabs(matrix_at(x, row, i)));
    return most / 32639 * 0.50001;
}

static void check(const struct tried *c, const struct matrix *x, const struct matrix *bias, const struct matrix *out,
                  struct tally *all)
{
    int in = c->b->p.cols, n = c->b->p.rows, is_rounded = c->t->d->native_bf16 && c->type == SH_BF16;
    int whole = is_whole(c, out->m.rows);
    double *off = xcalloc((size_t)in, sizeof *off);
    struct tally own = {0};
    for (int i = 0; i < out->m.rows * n; i++) {
        double sum = matrix_at(bias, 0, i % n), size = fabs(sum), more = 0;
        for (int k = 0; k < in && whole && i % n == 0; k++)
            off[k] = whole_rounding(x, i / n, k);
        for (int k = 0; k < in; k++) {
            double w = (double)c->numbers[(size_t)(i % n) * (size_t)in + (size_t)k], factor = matrix_at(x, i / n, k);
            sum += factor * w;
            size += fabs(factor * w);
            more += off[k] * fabs(w) + (is_rounded ? fabs(factor) * rounding(SH_BF16, w) : 0);
        }
        compare(&own, matrix_at(out, i / n, i % n), sum, 1e-6 * size + more);
    }
    int touched = matrix_gap_touched(out);
    if (own.wrong || touched)
        printf("# %s [%d, %d] x [%d, %d] %s: %d wrong, %d bytes between rows\n", c->b->type->name, out->m.rows, in,
               in, n, sh_type_name(c->type), own.wrong, touched);
    CU_ASSERT(own.wrong == 0 && touched == 0);
    free(off);
    all->worst = fmax(all->worst, own.worst);
}

/* Row `row` of x with as few others as products of its kind have, on one thread. */
static void check_alone(const struct tried *c, const struct matrix *x, const struct matrix *bias, int row,
                        const struct matrix *out)
{
    int most = c->t->d->kernels->packed_rows, rows = x->m.rows <= most ? 1 + c->t->d->rounds_x : most + 1;
    if (is_whole(c, x->m.rows) || c->b->p.format == SH_PACKED_OTHER)
        rows = 1;
    struct matrix one = matrix_new(c->alone, c->type, rows, c->b->p.cols, 0);
    struct matrix to = matrix_new(c->alone, SH_F32, rows, c->b->p.rows, 0);
    for (int r = 0; r < rows; r++)
        for (int k = 0; k < c->b->p.cols; k++)
            matrix_set(&one, r, k, r ? 0 : matrix_at(x, row, k));
    matrix_put(c->alone, &one);
    struct sh_linear a = {.out = to.m, .x = one.m, .w = c->w, .bias = bias->m.at};
    c->alone->b->linear(c->alone->d, &a);
    matrix_get(c->alone, &to);
    int wrong = 0;
    for (int o = 0; o < c->b->p.rows; o++)
        wrong += matrix_at(&to, 0, o) != matrix_at(out, row, o);
    if (wrong)
        printf("# %s [%d, %d]: row %d among %d has %d other numbers\n", c->b->type->name, x->m.rows, c->b->p.cols, row,
               rows, wrong);
    CU_ASSERT(!wrong);
    matrix_free(c->alone, &one);
    matrix_free(c->alone, &to);
}

static const int row_counts[] = {1, 2, 3, 5, 8, 9, 16, 17, 55};
enum { N_ROWS = sizeof row_counts / sizeof *row_counts };

/* Products in lanes from blocks and from a copy in groups are the same bits. */
static void check_settled(const struct tried *c, const struct matrix *x, const struct matrix *out)
{
    struct sh_err e;
    struct sh_weight *w = c->t->b->packed(c->t->d, &c->b->p, c->type, &e);
    struct matrix again = matrix_new(c->t, SH_F32, x->m.rows, c->b->p.rows, 5);
    struct sh_linear a = {.out = again.m, .x = x->m, .w = w};
    c->t->b->linear(c->t->d, &a);
    matrix_get(c->t, &again);
    for (int i = 0; i < x->m.rows * c->b->p.rows; i++)
        CU_ASSERT(matrix_at(&again, i / c->b->p.rows, i % c->b->p.rows) ==
                  matrix_at(out, i / c->b->p.rows, i % c->b->p.rows));
    matrix_free(c->t, &again);
    c->t->b->drop(c->t->d, w);
}

static void try_blocks(const struct target *t, const struct target *alone, const struct blocks *b, enum sh_type type,
                       struct tally *all, int settles)
{
    struct sh_err e = {.text = ""};
    float *numbers = xcalloc((size_t)b->p.rows * (size_t)b->p.cols, sizeof *numbers);
    unpack(b, 0, b->p.rows, numbers);
    struct tried c = {t, alone, b, t->b->packed(t->d, &b->p, type, &e), numbers, type, 0};
    CU_ASSERT_PTR_NOT_NULL_FATAL(c.w);
    if (settles) {
        c.is_settled = t->b->settle(t->d, c.w);
        CU_ASSERT(c.is_settled == (t->d->rounds_x && t->d->kernels->packed_lanes &&
                                   (t->d->has_vnni || !t->d->kernels->lanes_by_vnni) &&
                                   sh_packed_is_code(b->p.format)));
    }
    struct matrix bias = matrix_new(t, SH_F32, 1, b->p.rows, 0);
    matrix_normal(t, &bias, 2, 1);
    for (int i = 0; i < N_ROWS; i++) {
        int rows = row_counts[i];
        struct matrix x = matrix_new(t, type, rows, b->p.cols, rows % 3);
        struct matrix out = matrix_new(t, SH_F32, rows, b->p.rows, 5);
        matrix_normal(t, &x, (uint64_t)rows, 1);
        struct sh_linear a = {.out = out.m, .x = x.m, .w = c.w, .bias = bias.m.at};
        t->b->linear(t->d, &a);
        matrix_get(t, &out);
        check(&c, &x, &bias, &out, all);
        if (rows <= t->d->kernels->packed_rows || !(t->d->native_bf16 && type == SH_BF16))
            check_alone(&c, &x, &bias, rows - 1, &out);
        if (c.is_settled && t->d->kernels->lanes_by_vnni && is_whole(&c, rows)) {
            a.bias = NULL;
            t->b->linear(t->d, &a);
            matrix_get(t, &out);
            check_settled(&c, &x, &out);
        }
        matrix_free(t, &x);
        matrix_free(t, &out);
    }
    matrix_free(t, &bias);
    t->b->drop(t->d, c.w);
    free(numbers);
}

static void packed(const struct target *t)
{
    static const int outs[] = {1, 17, 64, 131}, blocks[] = {1, 3, 5};
    struct target alone;
    struct tally all = {0};
    if (target_open(&alone, t->which, 1))
        return;
    alone.d->has_vnni = t->d->has_vnni;
    alone.d->rounds_x = t->d->rounds_x;
    for (int f = 0; f < N_FORMAT; f++)
        for (int turn = 0; turn < 6; turn++) {
            struct blocks b;
            int elements = elements_of(type_named(formats[f].name));
            make(&b, &formats[f], outs[(turn + f) % 4], blocks[turn % 3] * elements, 0);
            for (int settles = 0; settles <= t->d->rounds_x; settles++)
                try_blocks(t, &alone, &b, (enum sh_type)((turn + f) % 3), &all, settles);
            blocks_free(&b);
        }
    target_close(&alone);
    printf("# worst error: %.2f of the limit\n", all.worst);
}
static void may_round(const struct target *t)
{
    t->d->rounds_x = 1;
    packed(t);
}
static void without_vnni(const struct target *t)
{
    t->d->has_vnni = 0;
    may_round(t);
}
static void packed_base(void) { target_run(ON_BASE, packed); }
static void packed_avx2(void) { target_run(ON_AVX2, packed); }
static void packed_avx512(void) { target_run(ON_AVX512, packed); }
static void packed_amx(void) { target_run(ON_AMX, packed); }
static void rounded_base(void) { target_run(ON_BASE, may_round); }
static void rounded_avx2(void) { target_run(ON_AVX2, may_round); }
static void rounded_avx512(void) { target_run(ON_AVX512, may_round); }
static void rounded_words(void) { target_run(ON_AVX512, without_vnni); }
static void rounded_amx(void) { target_run(ON_AMX, may_round); }

/* ---- a module: numbers that it keeps in blocks are not rounded for few rows that lie at multiples of 16 bytes ---- */

static void check_on_module(const struct target *t, const struct blocks *b, struct sh_weight *w, const float *numbers,
                            enum sh_type type, int rows, int gap, struct tally *all)
{
    struct matrix x = matrix_new(t, type, rows, b->p.cols, gap), out = matrix_new(t, SH_F32, rows, b->p.rows, 5);
    struct matrix bias = matrix_new(t, SH_F32, 1, b->p.rows, 0);
    matrix_normal(t, &x, (uint64_t)rows, 1);
    matrix_normal(t, &bias, 2, 1);
    int in = b->p.cols, n = b->p.rows;
    int is_few = rows <= 4 && (in + gap) % 8 == 0 && b->p.format != SH_PACKED_OTHER;
    struct sh_linear a = {.out = out.m, .x = x.m, .w = w, .bias = bias.m.at};
    struct tally own = {0};
    t->b->linear(t->d, &a);
    matrix_get(t, &out);
    for (int i = 0; i < rows * n; i++) {
        double sum = matrix_at(&bias, 0, i % n), size = fabs(sum), more = 0;
        for (int k = 0; k < in; k++) {
            double weight = (double)numbers[(size_t)(i % n) * (size_t)in + (size_t)k], factor = matrix_at(&x, i / n, k);
            sum += factor * weight;
            size += fabs(factor * weight);
            more += is_few ? 0 : fabs(factor) * rounding(type, weight);
        }
        compare(&own, matrix_at(&out, i / n, i % n), sum, 1e-6 * size + more);
    }
    int touched = matrix_gap_touched(&out);
    if (own.wrong || touched)
        printf("# %s [%d, %d] x [%d, %d] %s: %d wrong, %d bytes between rows\n", b->type->name, rows, in, in, n,
               sh_type_name(type), own.wrong, touched);
    CU_ASSERT(own.wrong == 0 && touched == 0);
    all->worst = fmax(all->worst, own.worst);
    matrix_free(t, &x);
    matrix_free(t, &out);
    matrix_free(t, &bias);
}

static void module_products(const struct target *t)
{
    static const int rows[][2] = {{1, 0}, {3, 8}, {4, 0}, {2, 3}, {9, 0}};      /* and the gap between them */
    struct tally all = {0};
    for (int f = 0; f < N_FORMAT; f++)
        for (int turn = 0; turn < 3; turn++) {
            struct blocks b;
            struct sh_err e = {.text = ""};
            enum sh_type type = (enum sh_type)((turn + f) % 3);
            int elements = elements_of(type_named(formats[f].name)), d_head = turn == 1 ? 16 : 0;
            make(&b, &formats[f], d_head ? 32 : 9, elements == 32 ? 32 + 352 * turn : 256 * (1 + turn), d_head);
            float *numbers = xcalloc((size_t)b.p.rows * (size_t)b.p.cols, sizeof *numbers);
            unpack(&b, 0, b.p.rows, numbers);
            struct sh_weight *w = t->b->packed(t->d, &b.p, type, &e);
            CU_ASSERT_PTR_NOT_NULL_FATAL(w);
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                check_on_module(t, &b, w, numbers, type, rows[i][0], rows[i][1], &all);
            t->b->drop(t->d, w);
            free(numbers);
            blocks_free(&b);
        }
    printf("# worst error: %.2f of the limit\n", all.worst);
}

/* Codes made of blocks and of their numbers give the same bits. */
static void module_recoded(const struct target *t)
{
    enum { OUT = 70, COLS = 512 };
    struct sh_err e = {.text = ""};
    struct blocks b;
    make(&b, &formats[7], OUT, COLS, 0);
    float *numbers = xcalloc((size_t)OUT * COLS, sizeof *numbers);
    unpack(&b, 0, OUT, numbers);
    struct matrix x = matrix_new(t, SH_F16, 2, COLS, 0), out[2];
    matrix_normal(t, &x, 1, 1);
    for (int bits = 4; bits <= 8; bits += 4) {
        for (int i = 0; i < 2; i++) {
            out[i] = matrix_new(t, SH_F32, 2, OUT, 0);
            t->b->weight_bits(t->d, bits);
            struct sh_weight *w = i ? t->b->packed(t->d, &b.p, SH_F16, &e)
                                    : t->b->weight(t->d, numbers, SH_F32, OUT, COLS, SH_F16, &e);
            t->b->weight_bits(t->d, 16);
            CU_ASSERT_PTR_NOT_NULL_FATAL(w);
            struct sh_linear a = {.out = out[i].m, .x = x.m, .w = w};
            t->b->linear(t->d, &a);
            matrix_get(t, &out[i]);
            t->b->drop(t->d, w);
        }
        for (int i = 0; i < 2 * OUT; i++)
            CU_ASSERT(matrix_at(&out[0], i / OUT, i % OUT) == matrix_at(&out[1], i / OUT, i % OUT));
        matrix_free(t, &out[0]);
        matrix_free(t, &out[1]);
    }
    matrix_free(t, &x);
    free(numbers);
    blocks_free(&b);
}
static void products_module(void) { target_run(ON_MODULE, module_products); }
static void recoded_module(void) { target_run(ON_MODULE, module_recoded); }

/* Wider than what is taken at once, and with the rows of heads in pairs. */
static void wide_and_paired(void)
{
    struct target t, alone;
    struct tally all = {0};
    if (target_open(&t, ON_CPU, 3) || target_open(&alone, ON_CPU, 1))
        return;
    t.d->rounds_x = alone.d->rounds_x = 1;
    for (int f = 0; f < N_FORMAT; f++) {
        struct blocks b;
        make(&b, &formats[f], 128, 1280, f % 2 ? 16 : 64);
        for (int settles = 0; settles < 2; settles++)
            try_blocks(&t, &alone, &b, SH_F32, &all, settles);
        blocks_free(&b);
    }
    target_close(&alone);
    target_close(&t);
}

/* Row 0 has a NaN, 1 an infinity, 2 nothing but 0, 3 numbers next to the smallest. */
static void odd_numbers(const struct target *t)
{
    t->d->rounds_x = 1;
    enum { ROWS = 4, OUT = 9, COLS = 256 };
    struct sh_err e = {.text = ""};
    for (int turn = 0; turn < 2 * N_FORMAT; turn++) {
        struct blocks b;
        make(&b, &formats[turn / 2], OUT, COLS, 0);
        struct sh_weight *w = t->b->packed(t->d, &b.p, SH_F32, &e);
        if (turn % 2)
            t->b->settle(t->d, w);
        struct matrix x = matrix_new(t, SH_F32, ROWS, COLS, 0), out = matrix_new(t, SH_F32, ROWS, OUT, 0);
        matrix_normal(t, &x, 4, 1);
        for (int k = 0; k < COLS; k++) {
            matrix_set(&x, 2, k, 0);
            matrix_set(&x, 3, k, k % 2 ? 1e-38 : 1e-40);
        }
        matrix_set(&x, 0, 37, NAN);
        matrix_set(&x, 1, 200, -INFINITY);
        matrix_put(t, &x);
        struct sh_linear a = {.out = out.m, .x = x.m, .w = w};
        t->b->linear(t->d, &a);
        matrix_get(t, &out);
        int wrong = 0;
        for (int o = 0; o < OUT; o++)
            wrong += isfinite(matrix_at(&out, 0, o)) || isfinite(matrix_at(&out, 1, o)) || matrix_at(&out, 2, o) != 0 ||
                     !(fabs(matrix_at(&out, 3, o)) < 1e-32);
        if (wrong)
            printf("# %s: %d outputs are wrong\n", b.type->name, wrong);
        CU_ASSERT(!wrong);
        matrix_free(t, &x);
        matrix_free(t, &out);
        t->b->drop(t->d, w);
        blocks_free(&b);
    }
}
static void odd_base(void) { target_run(ON_BASE, odd_numbers); }
static void odd_avx2(void) { target_run(ON_AVX2, odd_numbers); }
static void odd_avx512(void) { target_run(ON_AVX512, odd_numbers); }

/* Codes of 8 and 4 bits are the same as from numbers. */
static void recoded(void)
{
    enum { ROWS = 70, COLS = 512 };
    struct target t;
    struct sh_err e = {.text = ""};
    if (target_open(&t, ON_CPU, 2))
        return;
    struct matrix x = matrix_new(&t, SH_F32, 2, COLS, 0), out[2];
    matrix_normal(&t, &x, 1, 1);
    for (int turn = 0; turn < 2 * N_FORMAT; turn++) {
        struct blocks b;
        float *numbers = xcalloc(ROWS * COLS, sizeof *numbers);
        make(&b, &formats[turn / 2], ROWS, COLS, 0);
        unpack(&b, 0, ROWS, numbers);
        t.b->weight_bits(t.d, turn % 2 ? 4 : 8);
        for (int i = 0; i < 2; i++) {
            struct sh_weight *w = i ? t.b->packed(t.d, &b.p, SH_F32, &e)
                                    : t.b->weight(t.d, numbers, SH_F32, ROWS, COLS, SH_F32, &e);
            CU_ASSERT_PTR_NOT_NULL_FATAL(w);
            out[i] = matrix_new(&t, SH_F32, 2, ROWS, 0);
            struct sh_linear a = {.out = out[i].m, .x = x.m, .w = w};
            t.b->linear(t.d, &a);
            matrix_get(&t, &out[i]);
            t.b->drop(t.d, w);
        }
        CU_ASSERT(!memcmp(out[0].host, out[1].host, 2 * ROWS * sizeof(float)));
        matrix_free(&t, &out[0]);
        matrix_free(&t, &out[1]);
        free(numbers);
        blocks_free(&b);
    }
    matrix_free(&t, &x);
    target_close(&t);
}

int main(void)
{
    static const struct tap_test tests[] = {{"products with blocks of every format (base)", packed_base},
                                            {"products with blocks of every format (avx2)", packed_avx2},
                                            {"products with blocks of every format (avx512)", packed_avx512},
                                            {"products with blocks of every format (amx)", packed_amx},
                                            {"products with blocks of every format (module)", products_module},
                                            {"codes of few bits are those of the numbers (module)", recoded_module},
                                            {"numbers that are not finite are found", all_finite},
                                            {"rows may be rounded (base)", rounded_base},
                                            {"rows may be rounded (avx2)", rounded_avx2},
                                            {"rows may be rounded (avx512)", rounded_avx512},
                                            {"rows may be rounded (avx512 without VNNI)", rounded_words},
                                            {"rows may be rounded (amx)", rounded_amx},
                                            {"x that is not a number, or next to nothing (base)", odd_base},
                                            {"x that is not a number, or next to nothing (avx2)", odd_avx2},
                                            {"x that is not a number, or next to nothing (avx512)", odd_avx512},
                                            {"wide matrices, rows of heads in pairs", wide_and_paired},
                                            {"codes of few bits are those of the numbers", recoded},
                                            {0}};
    return tap_run("packed", tests);
}
