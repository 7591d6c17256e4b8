/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/cpu/gemm_few_rows.h: products of a few rows, on every variant, against double precision; and that one thread
 * and three give the same bits. Some rows more are products of gemm_many_rows.c or of oneDNN: 9 with f32 weights, 33
 * with 16-bit weights and with codes.
 *
 * Limits: those of test_linear.c. Codes are made of numbers that they hold exactly, so that nothing depends on
 * how they are rounded. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"
#include "tests/unit/variants.h"

static const int row_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 16, 17, 31, 32, 33};
enum { N_ROWS = sizeof row_counts / sizeof *row_counts };

struct shape {
    int in, out, bits;
    enum sh_type type;
};

/* Multiples of 1/8 in -1 .. 7/8, both ends in every group: 16 steps, which 4 bits have (scale 1/8, least -1), and
 * 8 bits too where the steps are 1/64 of up to 255. */
static float number(const struct shape *p, int row, int col)
{
    unsigned code = (unsigned)(row * 7 + col * 5 + row * col) % (p->bits == 8 ? 256 : 16);
    if (col % 64 == 0)
        code = 0;
    if (col % 64 == 1 || col == p->in - 1)
        code = p->bits == 8 ? 255 : 15;
    if (col == p->in - 1 && col % 64 == 0)
        code = 0;
    return p->bits == 8 ? (float)code / 64 - 2 : (float)code / 8 - 1;
}

static struct sh_weight *weight_of(const struct target *t, const struct shape *p)
{
    struct sh_err e = {.text = ""};
    float *w = xcalloc((size_t)p->in * (size_t)p->out, sizeof *w);
    for (int i = 0; i < p->in * p->out; i++)
        w[i] = number(p, i / p->in, i % p->in);
    t->b->weight_bits(t->d, p->bits);
    struct sh_weight *made = t->b->weight(t->d, w, SH_F32, p->out, p->in, p->type, &e);
    t->b->weight_bits(t->d, 16);
    CU_ASSERT_PTR_NOT_NULL_FATAL(made);
    free(w);
    return made;
}

static void check(const struct shape *p, const struct matrix *x, const struct matrix *bias, const struct matrix *out,
                  struct tally *all)
{
    struct tally own = {0};
    double *w = xcalloc((size_t)p->in, sizeof *w);
    for (int o = 0; o < p->out; o++) {
        for (int i = 0; i < p->in; i++)
            w[i] = rounded(p->type, number(p, o, i));
        for (int row = 0; row < out->m.rows; row++) {
            double sum = matrix_at(bias, 0, o), size = fabs(sum);
            for (int i = 0; i < p->in; i++) {
                double term = matrix_at(x, row, i) * w[i];
                sum += term;
                size += fabs(term);
            }
            compare(&own, matrix_at(out, row, o), sum, 1e-6 * size);
        }
    }
    free(w);
    int touched = matrix_gap_touched(out);
    if (own.wrong || touched)
        printf("# [%d, %d] x [%d, %d] %s, %d bits: %d wrong, %d bytes between rows\n",
               out->m.rows, p->in, p->in, p->out,
               sh_type_name(p->type), p->bits, own.wrong, touched);
    CU_ASSERT(own.wrong == 0 && touched == 0);
    all->worst = fmax(all->worst, own.worst);
}

static void try_shape(const struct target *t, const struct target *alone, const struct shape *p, struct tally *all)
{
    struct sh_weight *w = weight_of(t, p);
    struct matrix bias = matrix_new(t, SH_F32, 1, p->out, 0);
    matrix_normal(t, &bias, 2, 1);
    for (int i = 0; i < N_ROWS; i++) {
        int rows = row_counts[i];
        struct matrix x = matrix_new(t, p->type, rows, p->in, rows % 3), out = matrix_new(t, SH_F32, rows, p->out, 5);
        struct matrix same = matrix_new(alone, SH_F32, rows, p->out, 5);
        matrix_normal(t, &x, (uint64_t)rows, 1);
        struct sh_linear a = {.out = out.m, .x = x.m, .w = w, .bias = bias.m.at};
        t->b->linear(t->d, &a);
        matrix_get(t, &out);
        check(p, &x, &bias, &out, all);
        a.out = same.m;
        alone->b->linear(alone->d, &a);
        matrix_get(alone, &same);
        for (int k = 0; k < rows * p->out; k++)
            CU_ASSERT(matrix_at(&same, k / p->out, k % p->out) == matrix_at(&out, k / p->out, k % p->out));
        matrix_free(t, &x);
        matrix_free(t, &out);
        matrix_free(alone, &same);
    }
    matrix_free(t, &bias);
    t->b->drop(t->d, w);
}

static const int ins[] = {2, 63, 65, 129, 200, 4200}, outs[] = {1, 17, 64, 65, 131};

static void few(const struct target *t)
{
    struct target alone;
    struct tally all = {0};
    if (target_open(&alone, t->which, 1))
        return;
    for (int turn = 0; turn < 6 * 5; turn++)
        for (int kind = 0; kind < 3; kind++) {
            struct shape p = {ins[turn / 5], outs[turn % 5], (int[]){16, 8, 4}[kind],
                              (enum sh_type)((turn + kind) % 3)};
            if (p.in < 4200 || p.out == 17)
                try_shape(t, &alone, &p, &all);
        }
    target_close(&alone);
    printf("# worst error: %.2f of the limit\n", all.worst);
}
static void few_base(void) { target_run(ON_BASE, few); }
static void few_avx2(void) { target_run(ON_AVX2, few); }
static void few_avx512(void) { target_run(ON_AVX512, few); }

/* Weights of 16 bits: a row is the same bits alone and among others, which meet numbers that are widened together. */
static void halves(const struct target *t)
{
    enum { IN = 150, OUT = 131 };
    static const int counts[] = {2, 4, 5, 6, 7, 12, 13, 16, 17, 31, 32};
    struct sh_err e = {.text = ""};
    struct tally all = {0};
    for (int stored = SH_F16; stored <= SH_BF16; stored++) {
        void *host = host_normal((enum sh_type)stored, IN * OUT, 2, 0.5);
        struct sh_weight *w = t->b->weight(t->d, host, (enum sh_type)stored, OUT, IN, SH_F32, &e);
        CU_ASSERT_PTR_NOT_NULL_FATAL(w);
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            int rows = counts[c];
            struct matrix x = matrix_new(t, SH_F32, rows, IN, 3), out = matrix_new(t, SH_F32, rows, OUT, 5);
            struct matrix one = matrix_new(t, SH_F32, 1, IN, 0), alone = matrix_new(t, SH_F32, 1, OUT, 0);
            matrix_normal(t, &x, 4, 1);
            t->b->linear(t->d, &(struct sh_linear){.out = out.m, .x = x.m, .w = w});
            matrix_get(t, &out);
            for (int r = 0; r < rows; r++) {
                for (int k = 0; k < IN; k++)
                    matrix_set(&one, 0, k, matrix_at(&x, r, k));
                matrix_put(t, &one);
                t->b->linear(t->d, &(struct sh_linear){.out = alone.m, .x = one.m, .w = w});
                matrix_get(t, &alone);
                for (int o = 0; o < OUT; o++) {
                    double sum = 0, size = 0;
                    for (int k = 0; k < IN; k++) {
                        double term = matrix_at(&x, r, k) * host_at((enum sh_type)stored, host, (size_t)(o * IN + k));
                        sum += term;
                        size += fabs(term);
                    }
                    compare(&all, matrix_at(&out, r, o), sum, 1e-6 * size);
                    CU_ASSERT(matrix_at(&alone, 0, o) == matrix_at(&out, r, o));
                }
            }
            CU_ASSERT(!matrix_gap_touched(&out));
            matrix_free(t, &x);
            matrix_free(t, &out);
            matrix_free(t, &one);
            matrix_free(t, &alone);
        }
        t->b->drop(t->d, w);
        free(host);
    }
    CU_ASSERT(!all.wrong);
    printf("# worst error: %.2f of the limit\n", all.worst);
}
static void halves_base(void) { target_run(ON_BASE, halves); }
static void halves_avx2(void) { target_run(ON_AVX2, halves); }
static void halves_avx512(void) { target_run(ON_AVX512, halves); }

/* Weights of several types in one run, with so many outputs that a thread reads panels in turn: rows as in double
 * precision, the same bits as each row alone with one thread, and no row is touched by another's NaN. */
enum { N_STORED = 4, MOST_IN = 130, MOST_OUT = 1500 };

static const int stored_out[N_STORED] = {1000, 65, MOST_OUT, 131};
static const enum sh_type stored[N_STORED] = {SH_F16, SH_F32, SH_BF16, SH_F16};

struct turns {
    void *host[N_STORED];
    struct sh_weight *w[N_STORED], *alone_w[N_STORED];
};

/* out of each weight for all rows of x; the second weight adds to 1. */
static void run_turns(const struct target *t, struct sh_weight *const *w, const struct matrix *x,
                      const struct matrix *bias, struct matrix *out)
{
    struct sh_linear a[N_STORED];
    for (int i = 0; i < N_STORED; i++) {
        out[i] = matrix_new(t, SH_F32, x->m.rows, stored_out[i], 3);
        for (int k = 0; k < x->m.rows * stored_out[i]; k++)
            matrix_set(&out[i], k / stored_out[i], k % stored_out[i], 1);
        matrix_put(t, &out[i]);
        a[i] = (struct sh_linear){.out = out[i].m, .x = x->m, .w = w[i], .bias = bias->m.at, .add = i == 1};
    }
    t->b->linears(t->d, a, N_STORED);
    for (int i = 0; i < N_STORED; i++)
        matrix_get(t, &out[i]);
}

static void check_turn(const struct turns *s, int i, const struct matrix *x, int row, const struct matrix *bias,
                       const struct matrix *out, const struct matrix *alone, struct tally *all)
{
    for (int o = 0; o < stored_out[i]; o++) {
        double sum = matrix_at(bias, 0, o) + (i == 1), size = fabs(sum) + 1;
        for (int k = 0; k < x->m.cols; k++) {
            double term = matrix_at(x, row, k) * host_at(stored[i], s->host[i], (size_t)(o * x->m.cols + k));
            sum += term;
            size += fabs(term);
        }
        compare(all, matrix_at(out, row, o), sum, 1e-6 * size);
        CU_ASSERT(matrix_at(alone, 0, o) == matrix_at(out, row, o));
    }
}

static void try_turns(const struct target *t, const struct target *alone, int in, struct tally *all)
{
    struct sh_err e = {.text = ""};
    struct turns s;
    struct matrix bias = matrix_new(t, SH_F32, 1, MOST_OUT, 0), bias_alone = matrix_new(alone, SH_F32, 1, MOST_OUT, 0);
    matrix_normal(t, &bias, 5, 1);
    matrix_normal(alone, &bias_alone, 5, 1);
    for (int i = 0; i < N_STORED; i++) {
        s.host[i] = host_normal(stored[i], (size_t)(in * stored_out[i]), (uint64_t)i + 6, 0.5);
        s.w[i] = t->b->weight(t->d, s.host[i], stored[i], stored_out[i], in, SH_F32, &e);
        s.alone_w[i] = alone->b->weight(alone->d, s.host[i], stored[i], stored_out[i], in, SH_F32, &e);
        CU_ASSERT_FATAL(s.w[i] && s.alone_w[i]);
    }
    for (int rows = 1; rows <= 5; rows++) {
        struct matrix x = matrix_new(t, SH_F32, rows, in, 1), out[N_STORED], one_out[N_STORED];
        matrix_normal(t, &x, (uint64_t)rows, 1);
        for (int k = 0; k < in && rows > 1; k++)
            matrix_set(&x, 1, k, NAN);
        matrix_put(t, &x);
        run_turns(t, s.w, &x, &bias, out);
        for (int r = 0; r < rows; r++) {
            struct matrix one = matrix_new(alone, SH_F32, 1, in, 0);
            for (int k = 0; k < in; k++)
                matrix_set(&one, 0, k, matrix_at(&x, r, k));
            matrix_put(alone, &one);
            run_turns(alone, s.alone_w, &one, &bias_alone, one_out);
            for (int i = 0; i < N_STORED; i++) {
                if (r == 1)
                    CU_ASSERT(isnan(matrix_at(&out[i], r, 0)) && isnan(matrix_at(&out[i], r, stored_out[i] - 1)))
                else
                    check_turn(&s, i, &x, r, &bias, &out[i], &one_out[i], all);
                matrix_free(alone, &one_out[i]);
            }
            matrix_free(alone, &one);
        }
        for (int i = 0; i < N_STORED; i++) {
            CU_ASSERT(!matrix_gap_touched(&out[i]));
            matrix_free(t, &out[i]);
        }
        matrix_free(t, &x);
    }
    for (int i = 0; i < N_STORED; i++) {
        t->b->drop(t->d, s.w[i]);
        alone->b->drop(alone->d, s.alone_w[i]);
        free(s.host[i]);
    }
    matrix_free(t, &bias);
    matrix_free(alone, &bias_alone);
}

static void turns(const struct target *t)
{
    struct target alone;
    struct tally all = {0};
    if (target_open(&alone, t->which, 1))
        return;
    try_turns(t, &alone, 5, &all);
    try_turns(t, &alone, 41, &all);
    try_turns(t, &alone, MOST_IN, &all);
    target_close(&alone);
    CU_ASSERT(!all.wrong);
    printf("# worst error: %.2f of the limit\n", all.worst);
}
static void turns_base(void) { target_run(ON_BASE, turns); }
static void turns_avx2(void) { target_run(ON_AVX2, turns); }
static void turns_avx512(void) { target_run(ON_AVX512, turns); }

/* Products of one x handed over together, in kinds that do not go into one run, too: bit by bit those one by one. */
static void try_together(const struct target *t, enum sh_type type, int rows)
{
    enum { N = 6, IN = 130 };
    static const int out[N] = {65, 1, 200, 64, 131, 7}, bits[N] = {16, 16, 8, 8, 4, 16};
    struct matrix x = matrix_new(t, type, rows, IN, 1), apart[N], both[N];
    struct sh_linear a[N];
    matrix_normal(t, &x, 3, 1);
    for (int i = 0; i < N; i++) {
        struct shape p = {IN, out[i], bits[i], type};
        apart[i] = matrix_new(t, SH_F32, rows, out[i], 2);
        both[i] = matrix_new(t, SH_F32, rows, out[i], 2);
        a[i] = (struct sh_linear){.out = apart[i].m, .x = x.m, .w = weight_of(t, &p)};
        t->b->linear(t->d, &a[i]);
        a[i].out = both[i].m;
    }
    t->b->linears(t->d, a, N);
    for (int i = 0; i < N; i++) {
        matrix_get(t, &apart[i]);
        matrix_get(t, &both[i]);
        for (int k = 0; k < rows * out[i]; k++)
            CU_ASSERT(matrix_at(&apart[i], k / out[i], k % out[i]) == matrix_at(&both[i], k / out[i], k % out[i]));
        matrix_free(t, &apart[i]);
        matrix_free(t, &both[i]);
        t->b->drop(t->d, (struct sh_weight *)(uintptr_t)a[i].w);
    }
    matrix_free(t, &x);
}

static void together(const struct target *t)
{
    for (int turn = 0; turn < 9; turn++)
        try_together(t, (enum sh_type)(turn % 3), (int[]){1, 5, 40}[turn / 3]);
}
static void together_base(void) { target_run(ON_BASE, together); }
static void together_avx2(void) { target_run(ON_AVX2, together); }
static void together_avx512(void) { target_run(ON_AVX512, together); }

int main(void)
{
    static const struct tap_test tests[] = {{"products of a few rows (base)", few_base},
                                            {"products of a few rows (avx2)", few_avx2},
                                            {"products of a few rows (avx512)", few_avx512},
                                            {"rows with 16-bit weights (base)", halves_base},
                                            {"rows with 16-bit weights (avx2)", halves_avx2},
                                            {"rows with 16-bit weights (avx512)", halves_avx512},
                                            {"panels in turn (base)", turns_base},
                                            {"panels in turn (avx2)", turns_avx2},
                                            {"panels in turn (avx512)", turns_avx512},
                                            {"products of one x together (base)", together_base},
                                            {"products of one x together (avx2)", together_avx2},
                                            {"products of one x together (avx512)", together_avx512},
                                            {0}};
    return tap_run("few", tests);
}
