/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/packed.h: products with weights in the blocks of every format, on every variant of the CPU backend
 * (test_packed_module: on a module), against double precision with the numbers that src/model unpacks; that a row is
 * the same bits among any others of a product of its kind (a few rows, or more), and on one thread; x that is not a
 * number; rows in the order of llama.cpp; numbers that are not finite, found from the scales; and codes of few bits
 * made of such weights.
 *
 * Limit: 1e-6 of the sum of the magnitudes of a product's terms, whatever the operands' type: numbers are not rounded
 * to it, but where bf16 products of many rows are native. On a device that may round x, the product of one row does,
 * and with outputs in lanes every product: each 32 numbers to integers (kernels/cpu/packed_dots.h, lane_run.h), by at
 * most half of the largest / 32639, or with AVX2 / 32512. With 8 bits the numbers are rounded first (blocks.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clones.h"
#include "src/base/mem.h"
#include "src/model/files/gguf_tensors.h"
#include "src/model/model.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"
#include "tests/unit/blocks.h"
#include "tests/unit/variants.h"

/* ---- finite ---- */

static void expect_finite(const struct blocks *b, const struct block_format *f, unsigned value)
{
    size_t n = (size_t)b->p.rows * (size_t)b->p.cols, i = 0;
    float *x = xmalloc(n * sizeof *x);
    char where[64];
    struct sh_err e = {0};
    blocks_unpack(b, 0, b->p.rows, x);
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
    for (const struct block_format *f = block_formats; f < block_formats + N_BLOCK_FORMAT; f++) {
        struct blocks b;
        blocks_make(&b, f, 37, blocks_elements(f) == 32 ? 480 : 512, 0, -1);     /* 480: of some every second row */
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
    const double *rough;                /* how far each may be rounded; NULL: they are not         */
    enum sh_type type;
    int is_settled;
    double limit;                       /* of the sum of magnitudes                               */
};

/* Whether outputs are in lanes, few rows at least. */
static int in_lanes(const struct tried *c)
{
    const struct sh_dev *d = c->t->d;
    return d->x_bits < 32 && d->kernels->packed_lanes && sh_packed_is_code(c->b->p.format) &&
           (d->kernels->lanes_by_vnni ? d->has_vnni
                                      : c->is_settled || c->b->p.blocks || sh_packed_is_points(c->b->p.format));
}

static int is_whole(const struct tried *c, int rows)    /* whether x is rounded to integers       */
{
    const struct sh_dev *d = c->t->d;
    int all = in_lanes(c) && (c->type != SH_BF16 || !d->native_bf16 || d->x_bits == 8);
    return d->x_bits < 32 && sh_packed_is_code(c->b->p.format) &&
           (all || rows <= (in_lanes(c) ? d->kernels->packed_rows : 1));
}

/* Sanitizers look at accesses, which are the same whatever is compared; comparing all would take half of the time. They
 * see each number of rows in half of the formats. */
#ifdef __SANITIZE_ADDRESS__
enum { SPARSER = 11 };
#else
enum { SPARSER = 1 };
#endif

/* Row `row` of x, and in off[k] what the rounding of its number k may be where numbers are rounded to integers, the
 * largest of each run becoming `to`: runs of 32, or any numbers of the row where columns are in another order. */
static void read_row(const struct tried *c, const struct matrix *x, int row, double *factor, double *off)
{
    double largest = in_lanes(c) && !strcmp(c->t->d->kernels->name, "avx2") ? 32512 : 32639;    /* at least this */
    int in = x->m.cols, whole = is_whole(c, x->m.rows), run = c->b->columns ? in : 32;
    for (int k = 0; k < in; k++)
        factor[k] = matrix_at(x, row, k);
    if (c->t->d->x_bits == 8 && sh_packed_is_code(c->b->p.format)) {
        blocks_round_to_8_bits(c->b, factor, off);
        return;
    }
    for (int first = 0; first < in && whole; first += run) {
        double most = 0;
        for (int k = first; k < first + run; k++)
            most = fabs(factor[k]) > most ? fabs(factor[k]) : most;
        for (int k = first; k < first + run; k++)
            off[k] = most / largest * 0.50001;
    }
}

/* Of factor[k] w[k] the sum and the sum of magnitudes, and what off[k] may change: most of this test's time. */
SH_CLONES static void add_products(const double *factor, const double *off, const float *w, int n, double to[3])
{
    double sum = 0, size = 0, more = 0;
#pragma omp simd reduction(+ : sum, size, more)
    for (int k = 0; k < n; k++) {
        double term = factor[k] * (double)w[k];
        sum += term;
        size += fabs(term);
        more += off[k] * fabs((double)w[k]);
    }
    to[0] += sum;
    to[1] += size;
    to[2] += more;
}

static double sum_of_products(const double *factor, const double *rough, int n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int k = 0; k < n; k++)
        sum += fabs(factor[k]) * rough[k];
    return sum;
}

static void check(const struct tried *c, const struct matrix *x, const struct matrix *bias, const struct matrix *out,
                  struct tally *all)
{
    int in = c->b->p.cols, n = c->b->p.rows;
    double *off = xcalloc((size_t)in, sizeof *off), *factor = xcalloc((size_t)in, sizeof *factor);
    struct tally own = {0};
    int step = SPARSER * (out->m.rows > 17 ? 3 : 1);   /* no multiple of the widths: all rows and columns have a turn */
    for (int i = 0, read = -1; i < out->m.rows * n; i += step) {
        size_t first = (size_t)(i % n) * (size_t)in;
        const float *w = c->numbers + first;
        double added = matrix_at(bias, 0, i % n), sum[3] = {added, fabs(added), 0};
        if (i / n != read)
            read_row(c, x, read = i / n, factor, off);
        add_products(factor, off, w, in, sum);
        if (c->rough)
            sum[2] += sum_of_products(factor, c->rough + first, in);
        compare(&own, matrix_at(out, i / n, i % n), sum[0], c->limit * sum[1] + sum[2]);
    }
    int touched = matrix_gap_touched(out);
    if (own.wrong || touched)
        printf("# %s [%d, %d] x [%d, %d] %s: %d wrong, %d bytes between rows\n", c->b->type->name, out->m.rows, in,
               in, n, sh_type_name(c->type), own.wrong, touched);
    CU_ASSERT(own.wrong == 0 && touched == 0);
    free(off);
    free(factor);
    all->worst = fmax(all->worst, own.worst);
}

/* Row `row` of x with as few others as products of its kind have, on one thread. */
static void check_alone(const struct tried *c, const struct matrix *x, const struct matrix *bias, int row,
                        const struct matrix *out)
{
    int most = c->t->d->kernels->packed_rows, rows = x->m.rows <= most ? (c->t->d->x_bits < 32 ? 2 : 1) : most + 1;
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

/* 200 is more than are taken together (gemm_packed_lanes.c); only with narrow matrices. The last is more than are
 * sorted together (linear.c); only with columns in another order. */
static const int row_counts[] = {1, 2, 3, 5, 8, 9, 16, 17, 55, 200, 270};
enum { N_ROWS = sizeof row_counts / sizeof *row_counts, MOST_COLS_OF_MANY = 256 };

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
    size_t n = (size_t)b->p.rows * (size_t)b->p.cols;
    float *numbers = xcalloc(n, sizeof *numbers);
    int is_rough = t->d->native_bf16 && type == SH_BF16 && !(t->d->x_bits == 8 && sh_packed_is_code(b->p.format));
    double *rough = is_rough ? xcalloc(n, sizeof *rough) : NULL;
    blocks_unpack(b, 0, b->p.rows, numbers);
    for (size_t i = 0; i < n && rough; i++)
        rough[i] = rounding(SH_BF16, (double)numbers[i]);
    struct tried c = {t, alone, b, t->b->packed(t->d, &b->p, type, &e), numbers, rough, type, 0, 1e-6};
    CU_ASSERT_PTR_NOT_NULL_FATAL(c.w);
    if (settles) {
        c.is_settled = t->b->settle(t->d, c.w);
        CU_ASSERT(c.is_settled == (t->d->x_bits < 32 && t->d->kernels->packed_lanes &&
                                   (t->d->has_vnni || !t->d->kernels->lanes_by_vnni) &&
                                   sh_packed_may_settle(b->p.format)) || b->p.blocks != NULL);
    }
    struct matrix bias = matrix_new(t, SH_F32, 1, b->p.rows, 0);
    matrix_normal(t, &bias, 2, 1);
    for (int i = 0; i < N_ROWS; i++) {
        int rows = row_counts[i];
        if ((rows >= 200 && b->p.cols > MOST_COLS_OF_MANY) || (rows > 200 && !b->columns))
            break;
        if (SPARSER > 1 && (i + (int)type) % 2)         /* other formats have the others */
            continue;
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
    free(rough);
}

static void packed(const struct target *t)
{
    static const int outs[] = {1, 17, 64, 131}, blocks[] = {1, 3, 11};
    const char *full = getenv("SH_TEST_FULL");
    /* Two turns of six under sanitizers, which look at the shapes' accesses: one block and many, and every type in a
     * third of the formats. */
    int step = t->d->x_bits == 8 || (full && !*full) ? 5 : 1;
    struct target alone;
    struct tally all = {0};
    if (target_open(&alone, t->which, 1))
        return;
    alone.d->has_vnni = t->d->has_vnni;
    alone.d->x_bits = t->d->x_bits;
    for (int f = 0; f < N_BLOCK_FORMAT; f++)
        for (int turn = 0; turn < 6; turn += step) {
            struct blocks b;
            int elements = blocks_elements(&block_formats[f]);
            blocks_make(&b, &block_formats[f], outs[(turn + f) % 4], blocks[turn % 3] * elements, 0, -1);
            for (int settles = 0; settles <= (t->d->x_bits < 32); settles++)
                try_blocks(t, &alone, &b, (enum sh_type)((turn + f) % 3), &all, settles);
            blocks_free(&b);
        }
    target_close(&alone);
    printf("# worst error: %.2f of the limit\n", all.worst);
}
static void may_round(const struct target *t)
{
    t->d->x_bits = 16;
    packed(t);
}
static void in_8_bits(const struct target *t)
{
    t->d->x_bits = 8;
    packed(t);
}
static void in_8_bits_without_vnni(const struct target *t)
{
    t->d->has_vnni = 0;
    in_8_bits(t);
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
EACH_ROUNDING(may_round)
EACH_ROUNDING(in_8_bits)
static void in_8_bits_words(void) { target_run(ON_AVX512, in_8_bits_without_vnni); }
static void in_8_bits_amx(void) { target_run(ON_AMX, in_8_bits); }
static void rounded_words(void) { target_run(ON_AVX512, without_vnni); }
static void rounded_amx(void) { target_run(ON_AMX, may_round); }

/* ---- odd shapes and numbers ---- */

/* Wider than what is taken at once, and with the rows of heads in pairs. */
static void wide_and_paired(void)
{
    struct target t, alone;
    struct tally all = {0};
    if (target_open(&t, ON_CPU, 3) || target_open(&alone, ON_CPU, 1))
        return;
    t.d->x_bits = alone.d->x_bits = 16;
    for (int f = 0; f < N_BLOCK_FORMAT; f++) {
        struct blocks b;
        blocks_make(&b, &block_formats[f], 128, 1280, f % 2 ? 16 : 64, -1);
        for (int settles = 0; settles < 2; settles++)
            try_blocks(&t, &alone, &b, SH_F32, &all, settles);
        blocks_free(&b);
    }
    target_close(&alone);
    target_close(&t);
}

/* The largest sums of integers that there are: codes and scales with all bits or none, and rows of x all of whose
 * numbers are as large as they can be, or have bytes that are. Sums of equal terms in f32 are rounded the same way
 * again and again, which takes a wider limit. */
static void largest_sums_of(const struct target *t, int x_bits)
{
    enum { ROWS = 6, OUT = 17, COLS = 512 };
    static const double low = (64 * 255 - 127) / 32512.0, high = (64 * 255 + 127) / 32512.0;
    struct sh_err e = {.text = ""};
    struct target alone;
    struct tally all = {0};
    t->d->x_bits = x_bits;
    if (target_open(&alone, t->which, 1))
        return;
    alone.d->has_vnni = t->d->has_vnni;
    alone.d->x_bits = x_bits;
    struct matrix x = matrix_new(t, SH_F32, ROWS, COLS, 0), bias = matrix_new(t, SH_F32, 1, OUT, 0);
    for (int k = 0; k < COLS; k++) {
        double row[ROWS] = {1, -1, k % 2 ? 1 : -1, k % 32 < 16 ? 1 : -1, k % 32 ? low : 1, k % 32 ? -high : 1};
        for (int r = 0; r < ROWS; r++)
            matrix_set(&x, r, k, row[r]);
    }
    matrix_put(t, &x);
    matrix_normal(t, &bias, 2, 1);
    for (int turn = 0; turn < 4 * N_BLOCK_FORMAT; turn++) {
        static const int fills[] = {0x00, 0xff, 0x7f, 0x00};
        struct blocks b;
        float *numbers = xcalloc(OUT * COLS, sizeof *numbers);
        blocks_make(&b, &block_formats[turn / 4], OUT, COLS, 0, fills[turn % 4]);
        for (size_t i = 0; i < OUT * b.row_bytes && turn % 4 == 3 && b.p.format == SH_PACKED_Q6_K; i += b.type->bytes)
            memset(b.at + i + 192, 0x80, 16);           /* scales of -128 with codes of -32       */
        blocks_unpack(&b, 0, OUT, numbers);
        struct tried c = {t, &alone, &b, t->b->packed(t->d, &b.p, SH_F32, &e), numbers, NULL, SH_F32, 0, 4e-6};
        if (sh_packed_is_points(b.p.format) && !in_lanes(&c))
            c.limit = 1e-5;             /* in the order of the inputs                             */
        c.is_settled = t->b->settle(t->d, c.w);
        struct matrix out = matrix_new(t, SH_F32, ROWS, OUT, 0);
        struct sh_linear a = {.out = out.m, .x = x.m, .w = c.w, .bias = bias.m.at};
        t->b->linear(t->d, &a);
        matrix_get(t, &out);
        check(&c, &x, &bias, &out, &all);
        for (int r = 0; r < ROWS; r++)
            check_alone(&c, &x, &bias, r, &out);
        matrix_free(t, &out);
        t->b->drop(t->d, c.w);
        blocks_free(&b);
        free(numbers);
    }
    matrix_free(t, &x);
    matrix_free(t, &bias);
    target_close(&alone);
    printf("# worst error: %.2f of the limit\n", all.worst);
}
static void largest_sums(const struct target *t)
{
    largest_sums_of(t, 16);
    largest_sums_of(t, 8);
}
EACH_ROUNDING(largest_sums)

/* Row 0 has a NaN, 1 an infinity, 2 nothing but 0, 3 numbers next to the smallest. */
static void odd_numbers_of(const struct target *t, int x_bits)
{
    t->d->x_bits = x_bits;
    enum { ODD = 4, OUT = 9, COLS = 256 };
    struct sh_err e = {.text = ""};
    for (int turn = 0; turn < 4 * N_BLOCK_FORMAT; turn++) {
        const int rows = turn / 2 % 2 ? ODD : 20;
        struct blocks b;
        blocks_make(&b, &block_formats[turn / 4], OUT, COLS, 0, -1);
        struct sh_weight *w = t->b->packed(t->d, &b.p, SH_F32, &e);
        if (turn % 2)
            t->b->settle(t->d, w);
        struct matrix x = matrix_new(t, SH_F32, rows, COLS, 0), out = matrix_new(t, SH_F32, rows, OUT, 0);
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
        for (int i = ODD * OUT; i < rows * OUT; i++)
            wrong += !isfinite(matrix_at(&out, i / OUT, i % OUT));
        if (wrong)
            printf("# %s: %d outputs are wrong\n", b.type->name, wrong);
        CU_ASSERT(!wrong);
        matrix_free(t, &x);
        matrix_free(t, &out);
        t->b->drop(t->d, w);
        blocks_free(&b);
    }
}
static void odd_numbers(const struct target *t)
{
    odd_numbers_of(t, 16);
    odd_numbers_of(t, 8);
}
EACH_ROUNDING(odd_numbers)

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
    for (int turn = 0; turn < 2 * N_BLOCK_FORMAT; turn++) {
        struct blocks b;
        float *numbers = xcalloc(ROWS * COLS, sizeof *numbers);
        blocks_make(&b, &block_formats[turn / 2], ROWS, COLS, 0, -1);
        blocks_unpack(&b, 0, ROWS, numbers);
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
                                            {"numbers that are not finite are found", all_finite},
                                            LIST_ROUNDINGS("rows may be rounded", may_round),
                                            {"rows may be rounded (avx512 without VNNI)", rounded_words},
                                            {"rows may be rounded (amx)", rounded_amx},
                                            LIST_ROUNDINGS("rows have 8 bits", in_8_bits),
                                            {"rows have 8 bits (avx512 without VNNI)", in_8_bits_words},
                                            {"rows have 8 bits (amx)", in_8_bits_amx},
                                            LIST_ROUNDINGS("the largest sums of integers", largest_sums),
                                            LIST_ROUNDINGS("x that is not a number, or next to nothing", odd_numbers),
                                            {"wide matrices, rows of heads in pairs", wide_and_paired},
                                            {"codes of few bits are those of the numbers", recoded},
                                            {0}};
    return tap_run("packed", tests);
}
