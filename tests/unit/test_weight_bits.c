/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/: weights kept as codes of 8 and 4 bits, on every backend. What a backend keeps is seen through
 * products: that with the identity is the matrix itself, number by number.
 *
 * Limits of products: those of test_linear.c, against double precision with the numbers that the codes
 * stand for, which this file computes by itself; where a product of a few rows does not round these to the
 * operands' type, as much more as that rounding changes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/weights.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"

enum { GROUP = 64 };

/* Row-major w [rows, cols] becomes what its codes stand for, rounded to the type of the operands. */
static void through_codes(double *w, int rows, int cols, int bits, enum sh_type type)
{
    for (int at = 0; at < rows * cols; at++) {
        int left = cols - at % cols, n = left < GROUP ? left : GROUP;
        if (at % cols % GROUP)
            continue;                                   /* done with its group                    */
        double low = w[at], high = w[at], top = bits == 8 ? 255 : 15;
        for (int i = at; i < at + n; i++) {
            low = fmin(low, w[i]);
            high = fmax(high, w[i]);
        }
        double scale = rounded(SH_F16, rounded(SH_F32, rounded(SH_F32, high - low) / top));
        double least = rounded(SH_F16, low);
        for (int i = at; i < at + n; i++) {
            double code = scale > 0 ? rint(rounded(SH_F32, rounded(SH_F32, w[i] - least) / scale)) : 0;
            w[i] = rounded(type, rounded(SH_F32, fmin(fmax(code, 0), top) * scale + least));
        }
    }
}

struct kept {                                           /* a weight on the backend                */
    struct sh_weight *w;
    int rows, cols;
    double *expected;                                   /* what it stands for                     */
};

static struct kept keep(const struct target *t, const void *host, enum sh_type stored, int rows, int cols, int bits,
                        enum sh_type type)
{
    struct sh_err e = {.text = ""};
    size_t n = (size_t)rows * (size_t)cols;
    struct kept k = {.rows = rows, .cols = cols, .expected = xcalloc(n, sizeof(double))};
    for (size_t i = 0; i < n; i++)
        k.expected[i] = bits == 16 ? rounded(type, host_at(stored, host, i)) : host_at(stored, host, i);
    if (bits < 16)
        through_codes(k.expected, rows, cols, bits, type);
    t->b->weight_bits(t->d, bits);
    k.w = t->b->weight(t->d, host, stored, rows, cols, type, &e);
    t->b->weight_bits(t->d, 16);
    if (!k.w)
        printf("# %s\n", e.text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(k.w);
    return k;
}

static void drop(const struct target *t, struct kept *k)
{
    t->b->drop(t->d, k->w);
    free(k->expected);
}

/* Numbers that are not what they should be, through x = the identity in the type of the weight's operands:
 * one product of each sum is not zero. */
static int wrong_numbers(const struct target *t, const struct kept *k, enum sh_type type)
{
    struct matrix one = matrix_new(t, type, k->cols, k->cols, 0), out = matrix_new(t, SH_F32, k->cols, k->rows, 0);
    for (int i = 0; i < k->cols; i++)
        for (int j = 0; j < k->cols; j++)
            matrix_set(&one, i, j, i == j);
    matrix_put(t, &one);
    struct sh_linear a = {.out = out.m, .x = one.m, .w = k->w};
    t->b->linear(t->d, &a);
    matrix_get(t, &out);
    int wrong = 0;
    for (int i = 0; i < k->cols; i++)
        for (int j = 0; j < k->rows; j++)
            wrong += matrix_at(&out, i, j) != k->expected[j * k->cols + i];
    matrix_free(t, &one);
    matrix_free(t, &out);
    return wrong;
}

/* Groups of every kind: even, with ties, tiny, with a scale that is 0 in f16, large, lopsided. */
static float odd_number(int kind, int i)
{
    switch (kind % 8) {
    case 0: return 0.25f;
    case 1: return (float)(i % 31) * 0.5f;              /* at 4 bits: half of them ties           */
    case 2: return (float)(i % 7) * 1e-7f - 3e-7f;
    case 3: return 1.0f + (float)i * 1e-9f;
    case 4: return (float)(i % 5 - 2) * 30000.0f;
    case 5: return i == 40 ? 100.0f : (float)(i % 9) * 0.01f;
    case 6: return i % 2 ? -0.0f : 0.0f;
    default: return (float)(i * i % 101 - 50) / 64.0f;
    }
}

static void odd_groups(const struct target *t)
{
    enum { ROWS = 24 };
    static const int widths[] = {1, 2, 63, 64, 65, 130};
    for (int shape = 0; shape < 6 * 2; shape++) {
        int cols = widths[shape / 2], bits = shape % 2 ? 4 : 8;
        float *host = xcalloc((size_t)(ROWS * cols), sizeof *host);
        for (int i = 0; i < ROWS * cols; i++)
            host[i] = odd_number(i / cols, i % cols);
        struct kept k = keep(t, host, SH_F32, ROWS, cols, bits, SH_F32);
        memset(host, 0xff, (size_t)(ROWS * cols) * sizeof *host);
        CU_ASSERT_EQUAL(wrong_numbers(t, &k, SH_F32), 0);
        drop(t, &k);
        free(host);
    }
}
EACH_BACKEND(odd_groups)

/* Every matrix of the fixture that was cut into groups like ours: along a row (V) or along a column (K, whose
 * channels are then our rows). The reference's own codes and scales, not ours. */
static void try_fixture(const struct target *t, struct sh_weights *f, int matrix, char kind, int bits)
{
    char name[64], stem[48];
    snprintf(name, sizeof name, "m%d.x", matrix);
    const struct sh_stored *x = sh_weights_find(f, name);
    snprintf(stem, sizeof stem, "m%d.%c.b%d.g64.f16", matrix, kind, bits);
    const struct sh_stored *part[3];
    for (int i = 0; i < 3; i++) {
        const char *codes = bits == 8 ? "codes" : "packed";
        snprintf(name, sizeof name, "%s.%s", stem, i == 0 ? codes : i == 1 ? "scale" : "min");
        part[i] = sh_weights_find(f, name);
    }
    CU_ASSERT_FATAL(x && part[0] && part[1] && part[2]);
    int along = kind == 'K', tokens = (int)x->shape[0], channels = (int)x->shape[1];
    int rows = along ? channels : tokens, cols = along ? tokens : channels, packed = (cols + 1) / 2;
    int groups = (cols + GROUP - 1) / GROUP;
    float *host = xcalloc((size_t)(rows * cols), sizeof *host);
    for (int i = 0; i < rows * cols; i++)
        host[i] = ((const float *)(const void *)x->at)[along ? i % cols * channels + i / cols : i];
    struct kept k = keep(t, host, SH_F32, rows, cols, bits, SH_F32);
    for (int i = 0; i < rows * cols; i++) {
        int row = i / cols, col = i % cols, group = col / GROUP;
        int place = along ? group * channels + row : row * groups + group;
        unsigned code = bits == 8 ? part[0]->at[along ? col * channels + row : i]
                                  : (unsigned)part[0]->at[row * packed + col / 2] >> 4 * (col % 2) & 15u;
        k.expected[i] = rounded(SH_F32, (double)code * (double)((const float *)(const void *)part[1]->at)[place] +
                                            (double)((const float *)(const void *)part[2]->at)[place]);
    }
    int wrong = wrong_numbers(t, &k, SH_F32);
    if (wrong)
        printf("# %s: %d numbers differ\n", stem, wrong);
    CU_ASSERT_EQUAL(wrong, 0);
    drop(t, &k);
    free(host);
}

static void fixture(const struct target *t)
{
    struct sh_err e;
    const char *path = tap_fixture("quant/quant.safetensors");
    if (!path) {
        tap_skip("the shared fixtures are not here");
        return;
    }
    struct sh_weights *f = sh_weights_open(path, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    for (int matrix = 0; matrix < 4; matrix++)
        for (int bits = 4; bits <= 8; bits += 4) {
            try_fixture(t, f, matrix, 'V', bits);
            try_fixture(t, f, matrix, 'K', bits);
        }
    sh_weights_close(f);
}
EACH_BACKEND(fixture)

static void try_product(const struct target *t, int rows, int in, int out, enum sh_type type, int turn,
                        struct tally *all)
{
    enum sh_type stored = (enum sh_type)(turn % 3), result = turn / 3 % 2 ? type : SH_F32;
    enum sh_act act = turn / 2 % 2 ? SH_ACT_RELU : SH_ACT_NONE;
    int bits = turn % 2 ? 4 : 8, add = result == SH_F32 && turn % 5 == 0, biased = turn % 4 != 0;
    void *host = host_normal(stored, (size_t)in * (size_t)out, 2, 0.5);
    struct kept k = keep(t, host, stored, out, in, bits, type);
    struct matrix x = matrix_new(t, type, rows, in, turn % 3), to = matrix_new(t, result, rows, out, turn % 2 * 6);
    struct matrix bias = matrix_new(t, SH_F32, 1, out, 0);
    struct tally own = {0};
    int may_be_unrounded = rows <= (t->which == ON_MODULE ? 4 : 8);     /* cuda/few_rows.cu, cpu/gemm_few_rows.h */
    matrix_normal(t, &x, 1, 1);
    matrix_normal(t, &bias, 3, 1);
    if (add)
        matrix_normal(t, &to, 4, 1);
    double *before = xcalloc((size_t)rows * (size_t)out, sizeof *before);
    for (int i = 0; i < rows * out && add; i++)
        before[i] = matrix_at(&to, i / out, i % out);
    struct sh_linear a = {.out = to.m, .x = x.m, .w = k.w, .bias = biased ? bias.m.at : NULL, .act = act, .add = add};
    t->b->linear(t->d, &a);
    matrix_get(t, &to);
    for (int i = 0; i < rows * out; i++) {
        double sum = biased ? matrix_at(&bias, 0, i % out) : 0, size = fabs(sum), unrounded = 0;
        for (int j = 0; j < in; j++) {
            double w = k.expected[(size_t)(i % out) * (size_t)in + (size_t)j], factor = matrix_at(&x, i / out, j);
            sum += factor * w;
            size += fabs(factor * w);
            unrounded += fabs(factor) * rounding(type, w);
        }
        double y = activated(act, sum) + before[i];
        compare(&own, matrix_at(&to, i / out, i % out), y, 1e-6 * (size + fabs(before[i])) + 1e-30 +
                rounding(result, y) + (may_be_unrounded ? unrounded : 0));
    }
    int touched = matrix_gap_touched(&to);
    if (own.wrong || touched)
        printf("# [%d, %d] x [%d, %d] %s (stored %s), %d bits: %d wrong, %d bytes between rows\n", rows, in, in, out,
               sh_type_name(type), sh_type_name(stored), bits, own.wrong, touched);
    CU_ASSERT(own.wrong == 0 && touched == 0);
    all->worst = fmax(all->worst, own.worst);
    free(before);
    free(host);
    drop(t, &k);
    matrix_free(t, &x);
    matrix_free(t, &to);
    matrix_free(t, &bias);
}

/* Odd shapes, and one whose outputs take more than one panel. */
static void products(const struct target *t, enum sh_type type)
{
    static const int heights[] = {1, 7, 33}, widths[] = {1, 40, 64, 65, 200};
    struct tally all = {0};
    int turn = 0;
    for (int shape = 0; shape < 3 * 5 * 5; shape++, turn++)
        if (!t->small || shape % 4 == 0)
            try_product(t, heights[shape / 25], widths[shape / 5 % 5], widths[shape % 5], type, turn, &all);
    if (!t->small && (t->which != ON_MODULE || type == SH_F32))
        try_product(t, 2, t->which == ON_MODULE ? 16500 : 4200, 261, type, turn + (int)type, &all);
    printf("# worst error: %.2f of the limit\n", all.worst);
}

static void products_f32(const struct target *t) { products(t, SH_F32); }
static void products_f16(const struct target *t) { products(t, SH_F16); }
static void products_bf16(const struct target *t) { products(t, SH_BF16); }
EACH_BACKEND(products_f32)
EACH_BACKEND(products_f16)
EACH_BACKEND(products_bf16)

/* Numbers kept whole next to codes; numbers that f16 cannot hold are not quietly something else. */
static void next_to_each_other(const struct target *t)
{
    enum { ROWS = 70, COLS = 90 };
    float *host = host_normal(SH_F32, ROWS * COLS, 5, 1), *large = xcalloc(COLS, sizeof *large);
    struct kept k[3];
    for (int i = 0; i < 3; i++)
        k[i] = keep(t, host, SH_F32, ROWS, COLS, (int[]){4, 16, 8}[i], SH_F32);
    for (int i = 2; i >= 0; i--) {
        CU_ASSERT_EQUAL(wrong_numbers(t, &k[i], SH_F32), 0);
        drop(t, &k[i]);
    }
    large[3] = -70000;
    large[70] = 1;
    struct kept beyond = keep(t, large, SH_F32, 1, COLS, 8, SH_F32);
    struct matrix x = matrix_new(t, SH_F32, 1, COLS, 0), out = matrix_new(t, SH_F32, 1, 1, 0);
    matrix_normal(t, &x, 1, 1);
    struct sh_linear a = {.out = out.m, .x = x.m, .w = beyond.w};
    t->b->linear(t->d, &a);
    matrix_get(t, &out);
    CU_ASSERT(!isfinite(matrix_at(&out, 0, 0)));
    drop(t, &beyond);
    matrix_free(t, &x);
    matrix_free(t, &out);
    free(host);
    free(large);
}
EACH_BACKEND(next_to_each_other)

/* A row that does not fit into what travels at once is cut between groups: its numbers around the cut. */
static void long_rows(const struct target *t)
{
    enum { CUT = 8 << 20 >> 2, IN = CUT + 200, OUT = 2 };
    static const int places[] = {0, CUT - 1, CUT, IN - 1};
    if (t->small)
        return;
    float *host = host_normal(SH_F32, (size_t)IN * OUT, 6, 1);
    struct kept k = keep(t, host, SH_F32, OUT, IN, 4, SH_F32);
    struct matrix x = matrix_new(t, SH_F32, 4, IN, 0), out = matrix_new(t, SH_F32, 4, OUT, 0);
    memset(x.host, 0, 4 * (size_t)IN * sizeof(float));
    for (int i = 0; i < 4; i++)
        matrix_set(&x, i, places[i], 1);
    matrix_put(t, &x);
    struct sh_linear a = {.out = out.m, .x = x.m, .w = k.w};
    t->b->linear(t->d, &a);
    matrix_get(t, &out);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < OUT; j++)
            CU_ASSERT(matrix_at(&out, i, j) == k.expected[(size_t)j * IN + (size_t)places[i]]);
    drop(t, &k);
    matrix_free(t, &x);
    matrix_free(t, &out);
    free(host);
}
static void long_rows_cpu(void) { target_run(ON_CPU, long_rows); }
static void long_rows_module(void) { target_run(ON_MODULE, long_rows); }

/* Codes take what they should, and a product no more next to them than it said. */
static void memory(const struct target *t)
{
    enum { ROWS = 9, IN = 333, OUT = 129, ROUNDING = 512 };
    for (int turn = 0; turn < 6; turn++) {
        enum sh_type type = (enum sh_type)((turn / 2 + 1) % 3);          /* the widest last: scratch stays */
        int bits = turn % 2 ? 4 : 8;
        void *host = host_normal(SH_F32, IN * OUT, 2, 1);
        struct matrix out = matrix_new(t, type, ROWS, OUT, 0), x = matrix_new(t, type, ROWS, IN, 0);
        struct sh_props start, before, after;
        matrix_normal(t, &x, 1, 1);
        t->b->props(t->d, &start);
        struct kept k = keep(t, host, SH_F32, OUT, IN, bits, type);
        t->b->props(t->d, &before);
        CU_ASSERT(before.taken_bytes - start.taken_bytes <= OUT * 6 * (8 * (size_t)bits + 4) + ROUNDING);
        struct sh_linear a = {.out = out.m, .x = x.m, .w = k.w, .act = SH_ACT_SILU};
        t->b->linear(t->d, &a);
        target_sync(t);
        t->b->props(t->d, &after);
        CU_ASSERT(after.taken_bytes - before.taken_bytes <= t->b->linear_bytes(t->d, ROWS, IN, OUT, type, bits));
        drop(t, &k);
        matrix_free(t, &out);
        matrix_free(t, &x);
        free(host);
    }
}
static void memory_module(void) { target_run(ON_MODULE, memory); }

int main(void)
{
    static const struct tap_test tests[] = {
        LIST_BACKENDS("weight bits: odd groups, number by number", odd_groups),
        LIST_BACKENDS("weight bits: the shared fixture's codes and scales", fixture),
        LIST_BACKENDS("weight bits: products of f32 operands", products_f32),
        LIST_BACKENDS("weight bits: products of f16 operands", products_f16),
        LIST_BACKENDS("weight bits: products of bf16 operands", products_bf16),
        LIST_BACKENDS("weight bits: next to whole numbers, and beyond f16", next_to_each_other),
        {"weight bits: rows of two million inputs", long_rows_cpu},
        {"weight bits: rows of two million inputs (module)", long_rows_module},
        {"weight bits: memory (module)", memory_module},
        {0}};
    return tap_run("weight_bits", tests);
}
