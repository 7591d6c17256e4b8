/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/: products with a bias, an activation and a sum, on every backend against double precision.
 *
 * Limits. 1e-6 of the sum of the magnitudes of a product's terms, whatever their type: they are summed
 * in f32. Activations: 2e-6 of that and of 1 more. A 16-bit result: half a unit in its last place more. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"
#include "tests/unit/variants.h"

static const int row_counts[] = {7, 1, 33, 129}, widths[] = {1, 8, 40, 64, 129};
enum { N_ROWS = 4, N_WIDTHS = 5, N_ACT = SH_ACT_SILU + 1 };

struct product {                                        /* one call of linear                     */
    int rows, in, out, gap;
    enum sh_type type, stored, result;                  /* of the operands, the checkpoint, out   */
    enum sh_act act;
    int bias, add;
};

struct given {                                          /* the call's numbers                     */
    struct matrix x, bias, before;
    double *w;                                          /* [out, in], rounded to the operands' type */
};

static struct sh_weight *weight_new(const struct target *t, const struct product *p, struct given *g)
{
    struct sh_err e = {.text = ""};
    size_t n = (size_t)p->out * (size_t)p->in;
    void *host = host_normal(p->stored, n, 2, 0.5);
    g->w = xcalloc(n, sizeof *g->w);
    for (size_t i = 0; i < n; i++)
        g->w[i] = rounded(p->type, host_at(p->stored, host, i));
    struct sh_weight *w = t->b->weight(t->d, host, p->stored, p->out, p->in, p->type, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    memset(host, 0xff, n * sh_type_bytes(p->stored));   /* a weight does not need it any more     */
    free(host);
    return w;
}

static void check(const struct product *p, const struct given *g, const struct matrix *out, struct tally *all)
{
    struct tally t = {0};
    for (int i = 0; i < p->rows; i++)
        for (int j = 0; j < p->out; j++) {
            double sum = p->bias ? matrix_at(&g->bias, 0, j) : 0, size = fabs(sum);
            for (int k = 0; k < p->in; k++) {
                double term = matrix_at(&g->x, i, k) * g->w[j * p->in + k];
                sum += term;
                size += fabs(term);
            }
            double before = p->add ? matrix_at(&g->before, i, j) : 0, y = activated(p->act, sum) + before;
            double limit = 1e-6 * (size + fabs(before)) + 1e-30 + rounding(p->result, y);
            limit += p->act > SH_ACT_RELU ? 2e-6 * (size + 1) : 0;
            compare(&t, matrix_at(out, i, j), y, limit);
        }
    int touched = matrix_gap_touched(out);
    if (t.wrong || touched)
        printf("# [%d, %d] x [%d, %d] %s (stored %s) -> %s, gaps %d, activation %d, bias %d, add %d: %d wrong, "
               "%d bytes between rows\n", p->rows, p->in, p->out, p->in, sh_type_name(p->type), sh_type_name(p->stored),
               sh_type_name(p->result), p->gap, p->act, p->bias, p->add, t.wrong, touched);
    CU_ASSERT(t.wrong == 0 && touched == 0);
    all->worst = fmax(all->worst, t.worst);
}

static void try_product(const struct target *t, const struct product *p, struct tally *all)
{
    struct given g;
    struct sh_weight *w = weight_new(t, p, &g);
    struct matrix out = matrix_new(t, p->result, p->rows, p->out, p->gap);
    g.x = matrix_new(t, p->type, p->rows, p->in, 2 * p->gap);
    g.bias = matrix_new(t, SH_F32, 1, p->out, 0);
    g.before = matrix_new(t, SH_F32, p->rows, p->out, p->gap);
    matrix_normal(t, &g.x, 1, 1);
    matrix_normal(t, &g.bias, 3, 1);
    matrix_normal(t, &g.before, 4, 1);
    if (p->add)
        matrix_normal(t, &out, 4, 1);
    struct sh_linear a = {.out = out.m, .x = g.x.m, .w = w, .bias = p->bias ? g.bias.m.at : NULL, .act = p->act,
                          .add = p->add};
    t->b->linear(t->d, &a);
    matrix_get(t, &out);
    check(p, &g, &out, all);
    t->b->drop(t->d, w);
    matrix_free(t, &out);
    matrix_free(t, &g.x);
    matrix_free(t, &g.bias);
    matrix_free(t, &g.before);
    free(g.w);
}

/* Combination c of activation, bias, sum and result; with 16-bit operands half as many again. */
static void combine(struct product *p, int c)
{
    p->act = (enum sh_act)(c % N_ACT);
    p->bias = c / N_ACT % 2;
    p->add = c / (2 * N_ACT) == 1;
    p->result = c < 4 * N_ACT ? SH_F32 : p->type;
}

/* Every combination on one odd shape; on the others one after the other. */
static void products(const struct target *t, enum sh_type type)
{
    struct tally all = {0};
    int turn = 0, n_combination = (type == SH_F32 ? 4 : 6) * N_ACT;
    for (int shape = 0; shape < N_ROWS * N_WIDTHS * N_WIDTHS; shape++) {
        struct product p = {.rows = row_counts[shape / 25], .in = widths[shape / 5 % 5], .out = widths[shape % 5],
                            .type = type};
        int odd = p.rows == 7 && p.in == 40 && p.out == 129;
        if (t->small && !odd && shape % 4)
            continue;
        for (int i = 0; i < (odd ? n_combination : 1); i++, turn++) {
            combine(&p, odd ? i : turn % n_combination);
            p.stored = (enum sh_type)(turn % 3);
            p.gap = turn % 2 * 6;
            try_product(t, &p, &all);
        }
    }
    printf("# worst error: %.2f of the limit\n", all.worst);
}

static void linear_f32(const struct target *t) { products(t, SH_F32); }
static void linear_f16(const struct target *t) { products(t, SH_F16); }
static void linear_bf16(const struct target *t) { products(t, SH_BF16); }
EACH_BACKEND(linear_f32)
EACH_BACKEND(linear_f16)
EACH_BACKEND(linear_bf16)

/* More of each dimension than products take at once. */
static void linear_blocks(const struct target *t)
{
    static const int shape[][3] = {{1030, 40, 33}, {130, 2100, 65}, {130, 70, 1100}};
    struct tally all = {0};
    for (int i = 0; i < 3; i++)
        for (int c = 0; c < 2; c++) {
            struct product p = {.rows = shape[i][0], .in = shape[i][1], .out = shape[i][2], .gap = 6 * c,
                                .act = c ? SH_ACT_NONE : SH_ACT_RELU, .bias = 1, .add = c};
            try_product(t, &p, &all);
        }
    printf("# worst error: %.2f of the limit\n", all.worst);
}
EACH_BACKEND(linear_blocks)

/* The CPU's bf16 products, which the backend uses only where they are fast. */
static void linear_bf16_native(void)
{
    struct target t;
    if (target_open(&t, ON_BASE, 2))
        return;
#ifdef SH_X86_VARIANTS
    if (t.d->own_sums) {                /* the processor has none, or SH_KERNELS keeps oneDNN from them */
        tap_skip("oneDNN has such products only for processors with AVX-512");
        target_close(&t);
        return;
    }
#endif
    t.d->native_bf16 = 1;
    products(&t, SH_BF16);
    target_close(&t);
}

/* A new device takes no more for itself than it said. */
static void linear_memory(const struct target *t)
{
    enum { ROWS = 70, IN = 33, OUT = 129 };
    for (int type = SH_F32; type <= SH_BF16; type++) {
        struct product p = {.rows = ROWS, .in = IN, .out = OUT, .type = (enum sh_type)type};
        struct given g;
        struct sh_props before, after;
        struct sh_weight *w = weight_new(t, &p, &g);
        struct matrix out = matrix_new(t, p.type, ROWS, OUT, 0), x = matrix_new(t, p.type, ROWS, IN, 0);
        struct matrix bias = matrix_new(t, SH_F32, 1, OUT, 0);
        matrix_normal(t, &x, 1, 1);
        matrix_normal(t, &bias, 2, 1);
        t->b->props(t->d, &before);
        struct sh_linear a = {.out = out.m, .x = x.m, .w = w, .bias = bias.m.at, .act = SH_ACT_SILU};
        t->b->linear(t->d, &a);
        target_sync(t);
        t->b->props(t->d, &after);
        CU_ASSERT(after.peak_bytes - before.peak_bytes <= t->b->linear_bytes(t->d, ROWS, IN, OUT, p.type, 16));
        t->b->drop(t->d, w);
        matrix_free(t, &out);
        matrix_free(t, &x);
        matrix_free(t, &bias);
        free(g.w);
    }
}
EACH_BACKEND(linear_memory)

int main(void)
{
    static const struct tap_test tests[] = {
        LIST_BACKENDS("linear: f32 operands", linear_f32),
        LIST_BACKENDS("linear: f16 operands", linear_f16),
        LIST_BACKENDS("linear: bf16 operands", linear_bf16),
        {"linear: bf16 operands, computed as bf16", linear_bf16_native},
        LIST_BACKENDS("linear: more than a block of each dimension", linear_blocks),
        LIST_BACKENDS("linear: takes no more memory than it said", linear_memory),
        {0}};
    return tap_run("linear", tests);
}
