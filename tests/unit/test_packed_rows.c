/* SPDX-License-Identifier: Apache-2.0 */
/* Products of many rows with packed weights, in parts of rows and of inputs (kernels/cpu/gemm_packed_lanes.c): each row
 * is the same bits as alone, where it is rounded to integers. test_packed compares smaller ones with exact sums.
 * Products that run together are those of each alone. */
#include <stdlib.h>

#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"
#include "tests/unit/blocks.h"
#include "tests/unit/variants.h"

/* How many formats and pairs are passed over: three times as many under sanitizers, which are ten times as slow. */
static int step_of(int usual)
{
    const char *full = getenv("SH_TEST_FULL");
    return full && !*full ? 3 * usual + 1 : usual;
}

/* One thread has enough outputs to take as many rows together as it ever does; the last row is alone in a part. 0: rows
 * are not rounded in this format. */
static int in_parts(const struct target *t, const struct block_format *format)
{
    enum { ROWS = 577, OUT = 300, COLS = 2304 };
    struct sh_err e = {.text = ""};
    struct blocks b;
    blocks_make(&b, format, OUT, COLS, 0, -1);
    struct sh_weight *w = t->b->packed(t->d, &b.p, SH_F32, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    int is_rounded = sh_packed_is_code(b.p.format) && (t->b->settle(t->d, w) || t->d->kernels->lanes_by_vnni ||
                                                       b.p.blocks || sh_packed_is_points(b.p.format));
    struct matrix x = matrix_new(t, SH_F32, ROWS, COLS, 0), out = matrix_new(t, SH_F32, ROWS, OUT, 0);
    struct matrix one = matrix_new(t, SH_F32, 1, COLS, 0), to = matrix_new(t, SH_F32, 1, OUT, 0);
    matrix_normal(t, &x, 1, 1);
    t->b->linear(t->d, &(struct sh_linear){.out = out.m, .x = x.m, .w = w});
    matrix_get(t, &out);
    for (int row = 0; row < ROWS && is_rounded; row += 48) {
        int wrong = 0;
        for (int k = 0; k < COLS; k++)
            matrix_set(&one, 0, k, matrix_at(&x, row, k));
        matrix_put(t, &one);
        t->b->linear(t->d, &(struct sh_linear){.out = to.m, .x = one.m, .w = w});
        matrix_get(t, &to);
        for (int o = 0; o < OUT; o++)
            wrong += matrix_at(&to, 0, o) != matrix_at(&out, row, o);
        if (wrong)
            printf("# %s: row %d of %d has %d other numbers\n", b.type->name, row, ROWS, wrong);
        CU_ASSERT(!wrong);
    }
    matrix_free(t, &x);
    matrix_free(t, &out);
    matrix_free(t, &one);
    matrix_free(t, &to);
    t->b->drop(t->d, w);
    blocks_free(&b);
    return is_rounded;
}

static void many_rows(const struct target *t)
{
    struct target one;
    int n = 0, step = step_of(3), least = step > 3 ? 2 : 8;
    if (target_open(&one, t->which, 1))
        return;
    one.d->x_bits = 16;
    if (!one.d->kernels->packed_lanes || (one.d->kernels->lanes_by_vnni && !one.d->has_vnni))
        tap_skip("many rows are multiplied in f32");
    else {
        for (int f = 0; f < N_BLOCK_FORMAT; f += step)
            n += in_parts(&one, &block_formats[f]);
        CU_ASSERT(n >= least);
        one.d->x_bits = 8;
        for (int f = 1; f < N_BLOCK_FORMAT; f += step)
            n += in_parts(&one, &block_formats[f]);
        CU_ASSERT(n >= 2 * least);
    }
    target_close(&one);
}
EACH_ROUNDING(many_rows)

/* Two products of the same x that run together are the same bits as one after the other. */
static void check_together(const struct target *t, const struct block_format *const format[2], int rows)
{
    enum { OUT = 20, COLS = 512 };
    struct sh_err e = {.text = ""};
    struct blocks b[2];
    struct matrix x = matrix_new(t, SH_F32, rows, COLS, 0), both[2], alone[2];
    struct sh_linear a[2];
    matrix_normal(t, &x, 3, 1);
    for (int i = 0; i < 2; i++) {
        blocks_make(&b[i], format[i], OUT, COLS, 0, -1);
        both[i] = matrix_new(t, SH_F32, rows, OUT, 0);
        alone[i] = matrix_new(t, SH_F32, rows, OUT, 0);
        a[i] = (struct sh_linear){.out = alone[i].m, .x = x.m, .w = t->b->packed(t->d, &b[i].p, SH_F32, &e)};
        CU_ASSERT_PTR_NOT_NULL_FATAL(a[i].w);
        t->b->linear(t->d, &a[i]);
        a[i].out = both[i].m;
    }
    t->b->linears(t->d, a, 2);
    for (int i = 0; i < 2; i++) {
        int wrong = 0;
        matrix_get(t, &both[i]);
        matrix_get(t, &alone[i]);
        for (int k = 0; k < rows * OUT; k++)
            wrong += matrix_at(&both[i], k / OUT, k % OUT) != matrix_at(&alone[i], k / OUT, k % OUT);
        if (wrong)
            printf("# %s and %s, %d rows: the %s has %d other numbers\n", format[0]->name, format[1]->name, rows,
                   i ? "second" : "first", wrong);
        CU_ASSERT(!wrong);
    }
    for (int i = 0; i < 2; i++) {
        t->b->drop(t->d, (struct sh_weight *)a[i].w);
        matrix_free(t, &both[i]);
        matrix_free(t, &alone[i]);
        blocks_free(&b[i]);
    }
    matrix_free(t, &x);
}

/* Of every pair of formats, numbers and codes among them; few rows with one of some. */
static void together(const struct target *t)
{
    for (int bits = 8; bits <= 32; bits *= 2)
        for (int pair = 0; pair < N_BLOCK_FORMAT * N_BLOCK_FORMAT; pair += step_of(1)) {
            const struct block_format *const format[2] = {&block_formats[pair / N_BLOCK_FORMAT],
                                                          &block_formats[pair % N_BLOCK_FORMAT]};
            t->d->x_bits = bits;
            check_together(t, format, 1 + pair % 3);
        }
}
EACH_ROUNDING(together)

int main(void)
{
    static const struct tap_test tests[] = {LIST_ROUNDINGS("more rows than are taken together", many_rows),
                                            LIST_ROUNDINGS("products that run together", together), {0}};
    return tap_run("packed_rows", tests);
}
