/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a module with weights in the blocks of every format (kernels/packed.h), against double precision with the
 * numbers that src/model unpacks, with x as it is and in 8 bits; and codes of few bits made of such weights.
 *
 * Limit: 1e-6 of the sum of the magnitudes of a product's terms. Numbers that a module keeps in blocks are not rounded
 * for few rows that lie at multiples of 16 bytes; in other products they are rounded to the operands' type. An x of 8
 * bits is rounded to that type, too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"
#include "tests/unit/blocks.h"

/* Row `row` of x, and in off[k] how far its number k may be from it. */
static void read_row(const struct blocks *b, const struct matrix *x, int row, enum sh_type type, int has_8_bits,
                     double *factor, double *off)
{
    memset(off, 0, (size_t)b->p.cols * sizeof *off);
    for (int k = 0; k < b->p.cols; k++)
        factor[k] = matrix_at(x, row, k);
    if (has_8_bits)
        blocks_round_to_8_bits(b, factor, off);
    for (int k = 0; k < b->p.cols && has_8_bits; k++)
        off[k] += rounding(type, factor[k]);
}

static void check(const struct target *t, const struct blocks *b, struct sh_weight *w, const float *numbers,
                  enum sh_type type, const int rows_gap[2], int x_bits, struct tally *all)
{
    int rows = rows_gap[0], gap = rows_gap[1];
    struct matrix x = matrix_new(t, type, rows, b->p.cols, gap), out = matrix_new(t, SH_F32, rows, b->p.rows, 5);
    struct matrix bias = matrix_new(t, SH_F32, 1, b->p.rows, 0);
    matrix_normal(t, &x, (uint64_t)rows, 1);
    matrix_normal(t, &bias, 2, 1);
    int in = b->p.cols, n = b->p.rows;
    int has_8_bits = x_bits == 8 && sh_packed_is_code(b->p.format);
    int is_few = rows <= 4 && (in + gap) % 8 == 0 && b->p.format != SH_PACKED_OTHER && !b->columns;
    struct sh_linear a = {.out = out.m, .x = x.m, .w = w, .bias = bias.m.at};
    struct tally own = {0};
    double *factor = xcalloc((size_t)in, sizeof *factor), *off = xcalloc((size_t)in, sizeof *off);
    t->b->linear(t->d, &a);
    matrix_get(t, &out);
    for (int i = 0; i < rows * n; i++) {
        double sum = matrix_at(&bias, 0, i % n), size = fabs(sum), more = 0;
        if (i % n == 0)
            read_row(b, &x, i / n, type, has_8_bits, factor, off);
        for (int k = 0; k < in; k++) {
            double weight = (double)numbers[(size_t)(i % n) * (size_t)in + (size_t)k];
            sum += factor[k] * weight;
            size += fabs(factor[k] * weight);
            more += off[k] * fabs(weight) + (is_few ? 0 : fabs(factor[k]) * rounding(type, weight));
        }
        compare(&own, matrix_at(&out, i / n, i % n), sum, 1e-6 * size + more);
    }
    int touched = matrix_gap_touched(&out);
    if (own.wrong || touched)
        printf("# %s [%d, %d] x [%d, %d] %s: %d wrong, %d bytes between rows\n", b->type->name, rows, in, in, n,
               sh_type_name(type), own.wrong, touched);
    CU_ASSERT(own.wrong == 0 && touched == 0);
    all->worst = fmax(all->worst, own.worst);
    free(factor);
    free(off);
    matrix_free(t, &x);
    matrix_free(t, &out);
    matrix_free(t, &bias);
}

static void try_all(const struct target *t, int x_bits)
{
    static const int rows[][2] = {{1, 0}, {3, 8}, {4, 0}, {2, 3}, {9, 0}};      /* and the gap between them */
    struct tally all = {0};
    for (int f = 0; f < N_BLOCK_FORMAT; f++)
        for (int turn = 0; turn < 3; turn++) {
            struct blocks b;
            struct sh_err e = {.text = ""};
            enum sh_type type = (enum sh_type)((turn + f) % 3);
            int elements = blocks_elements(&block_formats[f]), d_head = turn == 1 ? 16 : 0;
            blocks_make(&b, &block_formats[f], d_head ? 32 : 9, elements == 32 ? 32 + 352 * turn : 256 * (1 + turn),
                        d_head, -1);
            float *numbers = xcalloc((size_t)b.p.rows * (size_t)b.p.cols, sizeof *numbers);
            blocks_unpack(&b, 0, b.p.rows, numbers);
            struct sh_weight *w = t->b->packed(t->d, &b.p, type, &e);
            int is_refused = x_bits == 8 && b.p.columns && sh_packed_is_code(b.p.format);
            if (is_refused)
                CU_ASSERT(!w && strstr(e.text, "8-bit activations"));
            CU_ASSERT_FATAL(is_refused == !w);
            for (size_t i = 0; i < sizeof rows / sizeof *rows && w; i++)
                check(t, &b, w, numbers, type, rows[i], x_bits, &all);
            t->b->drop(t->d, w);
            free(numbers);
            blocks_free(&b);
        }
    printf("# worst error: %.2f of the limit\n", all.worst);
}

static void products(const struct target *t)
{
    try_all(t, 32);
}

static void products_of_8_bits(const struct target *t)
{
    struct sh_err e = {.text = ""};
    struct target own = *t;
    own.d = t->b->open(&(struct sh_open){.n_threads = 2, .x_bits = 8}, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(own.d);
    try_all(&own, 8);
    target_sync(&own);
    target_close(&own);
}

/* More rows than a grid has in its second direction. */
static void many_rows_of_8_bits(const struct target *t)
{
    enum { ROWS = 65537, COLS = 32, OUT = 1 };
    struct sh_err e = {.text = ""};
    struct target own = *t;
    struct blocks b;
    double factor[COLS], off[COLS], sum = 0, most = 0;
    float numbers[COLS];
    own.d = t->b->open(&(struct sh_open){.n_threads = 2, .x_bits = 8}, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(own.d);
    blocks_make(&b, &block_formats[0], OUT, COLS, 0, -1);
    blocks_unpack(&b, 0, OUT, numbers);
    struct sh_weight *w = t->b->packed(own.d, &b.p, SH_F32, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    struct matrix x = matrix_new(&own, SH_F32, ROWS, COLS, 0), out = matrix_new(&own, SH_F32, ROWS, OUT, 0);
    matrix_normal(&own, &x, 1, 1);
    t->b->linear(own.d, &(struct sh_linear){.out = out.m, .x = x.m, .w = w});
    matrix_get(&own, &out);
    read_row(&b, &x, ROWS - 1, SH_F32, 1, factor, off);
    for (int k = 0; k < COLS; k++) {
        sum += factor[k] * (double)numbers[k];
        most += (1e-6 * fabs(factor[k]) + off[k]) * fabs((double)numbers[k]);
    }
    CU_ASSERT(fabs(matrix_at(&out, ROWS - 1, 0) - sum) <= most);
    matrix_free(&own, &x);
    matrix_free(&own, &out);
    t->b->drop(own.d, w);
    blocks_free(&b);
    target_sync(&own);
    target_close(&own);
}

/* Codes made of blocks and of their numbers give the same bits. */
static void recoded(const struct target *t)
{
    enum { OUT = 70, COLS = 512 };
    struct sh_err e = {.text = ""};
    struct blocks b;
    blocks_make(&b, &block_formats[7], OUT, COLS, 0, -1);
    float *numbers = xcalloc((size_t)OUT * COLS, sizeof *numbers);
    blocks_unpack(&b, 0, OUT, numbers);
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
static void products_module(void) { target_run(ON_MODULE, products); }
static void products_of_8_bits_module(void) { target_run(ON_MODULE, products_of_8_bits); }
static void many_rows_of_8_bits_module(void) { target_run(ON_MODULE, many_rows_of_8_bits); }
static void recoded_module(void) { target_run(ON_MODULE, recoded); }

int main(void)
{
    static const struct tap_test tests[] = {{"products with blocks of every format (module)", products_module},
                                            {"rows have 8 bits (module)", products_of_8_bits_module},
                                            {"more rows of 8 bits than a grid is high (module)",
                                             many_rows_of_8_bits_module},
                                            {"codes of few bits are those of the numbers (module)", recoded_module},
                                            {0}};
    return tap_run("packed_module", tests);
}
