/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/: products, norms and casts of the CPU backend against double precision, for every compiled
 * variant. Attention is in test_attend.c.
 *
 * Limits. A product of f32, or of bf16 operands summed in f32: 1e-6 of the sum of the magnitudes of
 * its terms. Activations: 2e-6 of that more. A bf16 result: half a unit in the last place (2^-8
 * relative) more. Norms: 3e-6 of the magnitudes of what is added. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "tests/tap.h"
#include "tests/unit/variants.h"

#define CPU sh_backend_cpu

static const int row_counts[] = {1, 7, 33, 129}, widths[] = {1, 8, 40, 64, 129};
enum { N_ROWS = 4, N_WIDTHS = 5, N_ACT = 4 };

static double worst;                                    /* error as a share of its limit         */

static int within(double found, double expected, double limit)
{
    double share = fabs(found - expected) / limit;
    if (!(share <= worst))                              /* NaN counts as worst */
        worst = share;
    return share <= 1;
}

static double activated(enum sh_act act, double x)
{
    double inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);     /* sqrt(2 / pi) */
    switch (act) {
    case SH_ACT_RELU: return x > 0 ? x : 0;
    case SH_ACT_GELU: return 0.5 * x * (1 + erf(x * 0.7071067811865476));
    case SH_ACT_GELU_TANH: return 0.5 * x * (1 + tanh(inner));
    default: return x;
    }
}

struct operand {                                        /* one matrix in f32 and in the type that is used */
    float *exact;                                       /* what the backend sees, as floats               */
    uint16_t *half;                                     /* NULL for f32                                   */
};

static struct operand operand_new(size_t n, uint64_t seed, double deviation, enum sh_type type)
{
    struct operand o = {.exact = variant_normal(n, seed, deviation)};
    if (type == SH_F32)
        return o;
    o.half = xmalloc(n * 2);
    for (size_t i = 0; i < n; i++) {
        o.half[i] = type == SH_BF16 ? sh_f32_to_bf16(o.exact[i]) : sh_f32_to_f16(o.exact[i]);
        o.exact[i] = type == SH_BF16 ? sh_bf16_to_f32(o.half[i]) : sh_f16_to_f32(o.half[i]);
    }
    return o;
}

static void *operand_at(const struct operand *o)
{
    return o->half ? (void *)o->half : o->exact;
}

static void operand_free(struct operand *o)
{
    free(o->exact);
    free(o->half);
}

struct product {                                        /* one call of linear                     */
    int rows, in, out;
    enum sh_type type, stored, result;                  /* of the operands, the checkpoint, out   */
    enum sh_act act;
    int bias, add;
};

static void check_product(const struct product *p, const struct operand *x, const struct operand *w, const float *bias,
                          const float *before, const void *found)
{
    int wrong = 0;
    for (int i = 0; i < p->rows; i++)
        for (int j = 0; j < p->out; j++) {
            double sum = p->bias ? bias[j] : 0, size = fabs(sum);
            for (int k = 0; k < p->in; k++) {
                double term = (double)x->exact[i * p->in + k] * w->exact[j * p->in + k];
                sum += term;
                size += fabs(term);
            }
            size_t at = (size_t)i * (size_t)p->out + (size_t)j;
            double y = activated(p->act, sum) + (p->add ? before[at] : 0);
            double limit = 1e-6 * (size + (p->add ? fabs(before[at]) : 0)) + 1e-30;
            limit += p->act > SH_ACT_RELU ? 2e-6 * (size + 1) : 0;
            limit += p->result == SH_BF16 ? 0x1.01p-8 * fabs(y) : 0;
            double z = p->result == SH_F32 ? ((const float *)found)[at] : sh_bf16_to_f32(((const uint16_t *)found)[at]);
            wrong += !within(z, y, limit);
        }
    if (wrong)
        printf("# [%d, %d] x [%d, %d] %s (stored %s) -> %s, activation %d, bias %d, add %d: %d wrong\n", p->rows, p->in,
               p->out, p->in, sh_type_name(p->type), sh_type_name(p->stored), sh_type_name(p->result), p->act, p->bias,
               p->add, wrong);
    CU_ASSERT(wrong == 0);
}

static void try_product(struct sh_dev *d, const struct product *p)
{
    struct sh_err e;
    size_t n_x = (size_t)p->rows * (size_t)p->in, n_w = (size_t)p->out * (size_t)p->in;
    size_t n_y = (size_t)p->rows * (size_t)p->out;
    struct operand x = operand_new(n_x, 1, 1, p->type == SH_BF16 ? SH_BF16 : SH_F32);
    struct operand w = operand_new(n_w, 2, 0.5, p->stored);
    float *bias = variant_normal((size_t)p->out, 3, 1), *before = variant_normal(n_y, 4, 1), *found = xmalloc(n_y * 4);
    memcpy(found, before, n_y * 4);
    struct sh_weight *weight = CPU.weight(d, operand_at(&w), p->stored, p->out, p->in, p->type, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(weight);
    for (size_t i = 0; i < n_w && p->type == SH_BF16; i++)
        w.exact[i] = sh_bf16_to_f32(sh_f32_to_bf16(w.exact[i]));
    struct sh_linear a = {.out = {found, p->result, p->rows, p->out, (size_t)p->out},
                          .x = {operand_at(&x), p->type, p->rows, p->in, (size_t)p->in}, .w = weight,
                          .bias = p->bias ? bias : NULL, .act = p->act, .add = p->add};
    CPU.linear(d, &a);
    CU_ASSERT_FATAL(CPU.sync(d, &e) == 0);
    check_product(p, &x, &w, bias, before, found);
    CPU.drop(d, weight);
    operand_free(&x);
    operand_free(&w);
    free(bias);
    free(before);
    free(found);
}

/* Every combination on one odd shape; on the others one after the other. */
static void products(enum variant v, enum sh_type type, int native)
{
    struct sh_dev *d = variant_open(v, 2);
    if (!d)
        return;
    worst = 0;
    d->native_bf16 = native;
    int turn = 0, n_combination = type == SH_F32 ? 16 : 24;
    for (int shape = 0; shape < N_ROWS * N_WIDTHS * N_WIDTHS; shape++) {
        struct product p = {.rows = row_counts[shape / 25], .in = widths[shape / 5 % 5], .out = widths[shape % 5],
                            .type = type};
        int all = p.rows == 33 && p.in == 40 && p.out == 129;
        for (int i = 0; i < (all ? n_combination : 1); i++, turn++) {
            int c = all ? i : turn % n_combination;
            p.act = (enum sh_act)(c % N_ACT);
            p.bias = c / N_ACT % 2;
            p.result = c < 16 ? SH_F32 : SH_BF16;
            p.add = c / 8 == 1;
            p.stored = (enum sh_type)(turn / 3 % 3);
            try_product(d, &p);
        }
    }
    printf("# worst error: %.2f of the limit\n", worst);
    CPU.close(d);
}

static void linear_f32(void) { products(VARIANT_BASE, SH_F32, 0); }
static void linear_bf16(enum variant v) { products(v, SH_BF16, 0); }
static void linear_bf16_native(void) { products(VARIANT_BASE, SH_BF16, 1); }
EACH_VARIANT(linear_bf16)

/* Rows further apart than they are long, and what lies between them untouched. */
static void linear_strided(void)
{
    enum { ROWS = 33, IN = 40, OUT = 17, X_STRIDE = 51, OUT_STRIDE = 23 };
    struct sh_err e;
    struct sh_dev *d = variant_open(VARIANT_BASE, 2);
    float *x = variant_normal(ROWS * X_STRIDE, 5, 1), *w = variant_normal(OUT * IN, 6, 1);
    float *y = variant_normal(ROWS * OUT_STRIDE, 7, 1), *before = variant_normal(ROWS * OUT_STRIDE, 7, 1);
    struct sh_weight *weight = CPU.weight(d, w, SH_F32, OUT, IN, SH_F32, &e);
    struct sh_linear a = {.out = {y, SH_F32, ROWS, OUT, OUT_STRIDE}, .x = {x, SH_F32, ROWS, IN, X_STRIDE}, .w = weight};
    CPU.linear(d, &a);
    CU_ASSERT(CPU.sync(d, &e) == 0);
    int wrong = 0;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < OUT_STRIDE; j++) {
            double sum = 0, size = 0;
            for (int k = 0; k < IN && j < OUT; k++) {
                sum += (double)x[i * X_STRIDE + k] * w[j * IN + k];
                size += fabs((double)x[i * X_STRIDE + k] * w[j * IN + k]);
            }
            float found = y[i * OUT_STRIDE + j];
            wrong += j < OUT ? fabs(found - sum) > 1e-6 * size : found != before[i * OUT_STRIDE + j];
        }
    CU_ASSERT(wrong == 0);
    CPU.drop(d, weight);
    CPU.close(d);
    free(x);
    free(w);
    free(y);
    free(before);
}

static void try_norm(struct sh_dev *d, int rows, int cols, enum sh_type type, int affine, int in_place)
{
    enum { GAP = 3 };
    size_t stride = (size_t)cols + GAP, n = (size_t)rows * stride;
    float *x = variant_normal(n, (uint64_t)(rows + cols), 2), *kept = xmalloc(n * 4), *out = xcalloc(n, 4);
    float *weight = variant_normal((size_t)cols, 8, 1), *bias = variant_normal((size_t)cols, 9, 1);
    for (size_t i = 0; i < n; i++)
        kept[i] = x[i] += 3;
    struct sh_norm a = {.out = {in_place ? x : out, type, rows, cols, stride}, .x = {x, SH_F32, rows, cols, stride},
                        .weight = affine ? weight : NULL, .bias = affine ? bias : NULL, .eps = 1e-5f};
    CPU.norm(d, &a);
    int wrong = 0;
    for (int i = 0; i < rows; i++) {
        const float *row = kept + (size_t)i * stride;
        double mean = 0, variance = 0;
        for (int j = 0; j < cols; j++)
            mean += row[j] / (double)cols;
        for (int j = 0; j < cols; j++)
            variance += (row[j] - mean) * (row[j] - mean) / cols;
        for (int j = 0; j < cols; j++) {
            double w = affine ? weight[j] : 1, b = affine ? bias[j] : 0, root = sqrt(variance + (double)1e-5f);
            double y = (row[j] - mean) / root * w + b;
            double limit = 3e-6 * (fabs(w) * (1 + fabs(row[j] - mean) / root) + fabs(b));
            size_t at = (size_t)i * stride + (size_t)j;
            float z = type == SH_F32 ? ((float *)a.out.at)[at] : sh_bf16_to_f32(((uint16_t *)a.out.at)[at]);
            wrong += !within(z, y, limit + (type == SH_BF16 ? 0x1.01p-8 * fabs(y) : 0));
        }
    }
    CU_ASSERT(wrong == 0);
    free(x);
    free(kept);
    free(out);
    free(weight);
    free(bias);
}

static void norms(enum variant v)
{
    struct sh_err e;
    struct sh_dev *d = variant_open(v, 2);
    if (!d)
        return;
    worst = 0;
    for (int i = 0; i < N_ROWS * N_WIDTHS * 2; i++) {
        int rows = row_counts[i / 10], cols = widths[i / 2 % 5], affine = i % 2;
        try_norm(d, rows, cols, SH_F32, affine, 0);
        try_norm(d, rows, cols, SH_F32, affine, 1);
        try_norm(d, rows, cols, SH_BF16, affine, 0);
    }
    printf("# worst error: %.2f of the limit\n", worst);
    CU_ASSERT(CPU.sync(d, &e) == 0);
    CPU.close(d);
}
EACH_VARIANT(norms)

/* More numbers than one thread takes at a time, and every half-precision number there is. */
static void casts(enum variant v)
{
    enum { ROWS = 7, COLS = 19001, N = ROWS * COLS };
    struct sh_dev *d = variant_open(v, 3);
    if (!d)
        return;
    float *x = variant_normal(N, 10, 1), *same = xmalloc(N * sizeof *same);
    uint16_t *half = xmalloc(N * sizeof *half);
    x[0] = INFINITY, x[1] = NAN, x[2] = -0.0f, x[3] = 1.0f + 0x1p-8f, x[4] = 1.0f + 3 * 0x1p-8f, x[5] = 3.4e38f;
    struct sh_mat from = {x, SH_F32, ROWS, COLS, COLS};
    CPU.cast(d, (struct sh_mat){half, SH_BF16, ROWS, COLS, COLS}, from);
    CPU.cast(d, (struct sh_mat){same, SH_F32, ROWS, COLS, COLS}, from);
    CU_ASSERT(memcmp(x, same, N * sizeof *x) == 0);
    CU_ASSERT(half[0] == 0x7f80 && isnan(sh_bf16_to_f32(half[1])) && half[2] == 0x8000 && half[3] == 0x3f80 &&
              half[4] == 0x3f82 && half[5] == 0x7f80);
    int wrong = 0;
    for (int i = 6; i < N; i++) {                       /* nearest, ties to even, by its definition */
        double lower = sh_bf16_to_f32((uint16_t)(sh_bits(x[i]) >> 16)), upper;
        upper = sh_bf16_to_f32((uint16_t)((sh_bits(x[i]) >> 16) + 1));
        double to_lower = fabs(x[i] - lower), to_upper = fabs(x[i] - upper), found = sh_bf16_to_f32(half[i]);
        int down = to_lower < to_upper || (to_lower == to_upper && !(sh_bits(x[i]) >> 16 & 1));
        wrong += found != (down ? lower : upper);
    }
    CU_ASSERT(wrong == 0);
    for (int i = 0; i < 65536; i++)
        half[i] = (uint16_t)i;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        d->kernels->widen(same, half, bf16 ? SH_BF16 : SH_F16, 65536, 2);
        for (int i = 0; i < 65536; i++) {
            float wide = bf16 ? sh_bf16_to_f32((uint16_t)i) : sh_f16_to_f32((uint16_t)i);
            wrong += isnan(wide) ? !isnan(same[i]) : sh_bits(same[i]) != sh_bits(wide);
        }
    }
    CU_ASSERT(wrong == 0);
    free(x);
    free(same);
    free(half);
    CPU.close(d);
}
EACH_VARIANT(casts)

/* A product whose inner widths differ fails; then nothing runs and sync keeps telling the first reason. */
static void errors_stick(void)
{
    struct sh_err e;
    struct sh_dev *d = variant_open(VARIANT_BASE, 1);
    float x[64] = {1}, y[64] = {0}, w[64] = {1};
    struct sh_weight *weight = CPU.weight(d, w, SH_F32, 8, 8, SH_F32, &e);
    struct sh_linear a = {.out = {y, SH_F32, 4, 8, 8}, .x = {x, SH_F32, 4, 7, 7}, .w = weight};
    CU_ASSERT(CPU.sync(d, &e) == 0);
    CPU.linear(d, &a);
    CU_ASSERT(CPU.sync(d, &e) == -1 && strstr(e.text, "[4, 7] x [8, 8]") != NULL);
    a.x = (struct sh_mat){x, SH_F32, 4, 8, 8};
    CPU.linear(d, &a);
    struct sh_norm n = {.out = {y, SH_F32, 1, 8, 8}, .x = {x, SH_F32, 1, 8, 8}, .eps = 1};
    CPU.norm(d, &n);
    CPU.cast(d, (struct sh_mat){y, SH_F32, 8, 8, 8}, (struct sh_mat){x, SH_F32, 8, 8, 8});
    CPU.get(d, y, x, sizeof y);
    float nothing[64] = {0};
    CU_ASSERT(memcmp(y, nothing, sizeof y) == 0);
    CU_ASSERT(CPU.sync(d, &e) == -1 && strstr(e.text, "[4, 7] x [8, 8]") != NULL);
    CPU.drop(d, weight);
    CPU.close(d);
}

static void backends_are_found(void)
{
    struct sh_err e;
    struct sh_props about;
    const struct sh_backend *b = sh_backend_find("auto", &e);
    CU_ASSERT_FATAL(b != NULL && b->abi == SH_BACKEND_ABI && sh_backend_find("cpu", &e) == &sh_backend_cpu);
    e.status = SH_OK;
    if (!sh_backend_find("cuda", &e))
        CU_ASSERT(e.status == SH_ABSENT);
    CU_ASSERT(!sh_backend_find("cpux", &e) && e.status == SH_MISUSED && strstr(e.text, "cpux") != NULL);
    CU_ASSERT(!sh_backend_cpu.open(1, 1, &e) && e.status == SH_MISUSED);
    struct sh_dev *d = sh_backend_cpu.open(0, 2, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    sh_backend_cpu.props(d, &about);
    CU_ASSERT(strstr(about.chip, cpu_kernels_pick()->name) != NULL && strstr(about.chip, "2 threads") != NULL);
    void *at = sh_backend_cpu.alloc(d, 0, &e);
    CU_ASSERT(at != NULL);
    sh_backend_cpu.release(d, at);
#ifndef __SANITIZE_ADDRESS__                            /* which would end the program */
    CU_ASSERT(!sh_backend_cpu.alloc(d, (size_t)1 << 60, &e) && strstr(e.text, "1152921504606846976 bytes") != NULL);
#endif
    sh_backend_cpu.release(d, NULL);
    sh_backend_cpu.drop(d, NULL);
    sh_backend_cpu.close(d);
    sh_backend_cpu.close(NULL);
}

int main(void)
{
    static const struct tap_test tests[] = {
        {"linear: f32 operands", linear_f32},
        LIST_VARIANTS("linear: bf16 operands, computed as f32", linear_bf16),
        {"linear: bf16 operands, computed as bf16", linear_bf16_native},
        {"linear: rows with gaps between them", linear_strided},
        LIST_VARIANTS("norm: f32 and bf16 out, in place, without weights", norms),
        LIST_VARIANTS("cast: rounding and widening", casts),
        {"errors: the first one sticks and nothing runs after it", errors_stick},
        {"backends: found by name, opened, described", backends_are_found},
        {0}};
    return tap_run("backend", tests);
}
