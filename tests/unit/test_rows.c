/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/: norms, casts, gates and greatest numbers on every backend against double precision. Embeddings and rotary
 * positions are in test_positions.c.
 *
 * Limits, of the magnitudes of what is added: norms 3e-6; gates 1e-6 of (1 + |gate|) |up|. A 16-bit
 * result: half a unit in its last place more. Casts are exact. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"

static const int row_counts[] = {1, 7, 33, 129}, widths[] = {1, 8, 40, 64, 129};
enum { N_ROWS = 4, N_WIDTHS = 5 };

/* The check of a result: what is wrong fails the test, `what` says where it was. */
static void judge(struct tally *t, struct tally *all, const struct matrix *out, const char *what)
{
    int touched = matrix_gap_touched(out);
    if (t->wrong || touched)
        printf("# %s, [%d, %d] %s: %d wrong, %d bytes between rows\n", what, out->m.rows, out->m.cols,
               sh_type_name(out->m.type), t->wrong, touched);
    CU_ASSERT(t->wrong == 0 && touched == 0);
    all->worst = fmax(all->worst, t->worst);
}

struct norm_case {
    int rows, cols, gap, weight, bias, in_place, add;
    enum sh_type type;
    enum sh_norm_kind kind;
};

struct norm_given {                                     /* the call's numbers                     */
    struct matrix x, weight, bias, before;              /* x: as it was before the call           */
};

static void check_norm(const struct norm_case *c, const struct norm_given *g, const struct matrix *out,
                       struct tally *all)
{
    struct tally t = {0};
    int n = c->cols;
    for (int i = 0; i < c->rows; i++) {
        double mean = 0, squares = 0;
        for (int j = 0; j < n && c->kind == SH_NORM_LAYER; j++)
            mean += matrix_at(&g->x, i, j) / n;
        for (int j = 0; j < n; j++)
            squares += (matrix_at(&g->x, i, j) - mean) * (matrix_at(&g->x, i, j) - mean) /
                       (c->kind == SH_NORM_LENGTH ? 1 : n);
        double root = sqrt(squares + (double)1e-5f);
        for (int j = 0; j < n; j++) {
            double z = (matrix_at(&g->x, i, j) - mean) / root, w = c->weight ? matrix_at(&g->weight, 0, j) : 1;
            double b = c->bias ? matrix_at(&g->bias, 0, j) : 0, old = c->add ? matrix_at(&g->before, i, j) : 0;
            double y = z * w + b + old;
            double limit = 3e-6 * (fabs(w) * (1 + fabs(z)) + fabs(b) + fabs(old)) + rounding(c->type, y);
            compare(&t, matrix_at(out, i, j), y, limit);
        }
    }
    judge(&t, all, out, c->kind == SH_NORM_LAYER ? "layer norm" : c->kind == SH_NORM_RMS ? "RMS norm" : "length");
}

static struct norm_given norm_given(const struct target *t, const struct norm_case *c)
{
    struct norm_given g = {.x = matrix_new(t, SH_F32, c->rows, c->cols, c->gap),
                           .weight = matrix_new(t, SH_F32, 1, c->cols, 0), .bias = matrix_new(t, SH_F32, 1, c->cols, 0),
                           .before = matrix_new(t, SH_F32, c->rows, c->cols, 0)};
    matrix_normal(t, &g.x, 7, 2);
    for (int i = 0; i < c->rows; i++)                   /* around 3: a mean to take away          */
        for (int j = 0; j < c->cols; j++)
            matrix_set(&g.x, i, j, matrix_at(&g.x, i, j) + 3);
    matrix_put(t, &g.x);
    matrix_normal(t, &g.weight, 8, 1);
    matrix_normal(t, &g.bias, 9, 1);
    matrix_normal(t, &g.before, 10, 1);
    return g;
}

static void try_norm(const struct target *t, const struct norm_case *c, struct tally *all)
{
    struct norm_given g = norm_given(t, c);
    struct matrix out = matrix_new(t, c->type, c->rows, c->cols, c->in_place ? c->gap : 2 * c->gap);
    if (c->add)
        matrix_normal(t, &out, 10, 1);
    struct matrix found = {out.m, out.host};
    if (c->in_place)
        found.m.at = g.x.m.at;
    struct sh_norm a = {.out = found.m, .x = g.x.m, .weight = c->weight ? g.weight.m.at : NULL,
                        .bias = c->bias ? g.bias.m.at : NULL, .eps = 1e-5f, .kind = c->kind, .add = c->add};
    t->b->norm(t->d, &a);
    matrix_get(t, &found);
    check_norm(c, &g, &found, all);
    matrix_free(t, &out);
    matrix_free(t, &g.x);
    matrix_free(t, &g.weight);
    matrix_free(t, &g.bias);
    matrix_free(t, &g.before);
}

static void norms(const struct target *t, enum sh_norm_kind kind)
{
    struct tally all = {0};
    int turn = 0;
    for (int shape = 0; shape < N_ROWS * N_WIDTHS; shape++)
        for (int way = 0; way < 5; way++, turn++) {     /* three types, in place, added           */
            struct norm_case c = {.rows = row_counts[shape / N_WIDTHS], .cols = widths[shape % N_WIDTHS],
                                  .gap = turn % 3 * 2, .weight = turn % 4 > 0, .bias = turn / 2 % 2, .kind = kind,
                                  .type = way < 3 ? (enum sh_type)way : SH_F32, .in_place = way == 3, .add = way == 4};
            if (!t->small || turn % 3 == 0)
                try_norm(t, &c, &all);
        }
    printf("# worst error: %.2f of the limit\n", all.worst);
}

static void norms_layer(const struct target *t) { norms(t, SH_NORM_LAYER); }
static void norms_rms(const struct target *t) { norms(t, SH_NORM_RMS); }
static void norms_length(const struct target *t) { norms(t, SH_NORM_LENGTH); }
EACH_BACKEND(norms_layer)
EACH_BACKEND(norms_rms)
EACH_BACKEND(norms_length)

/* All that rounding to a 16-bit type can meet: every value of it and of the other one, the middle to the
 * next, and the f32 numbers next to that middle. Returns how many. */
static int hard_numbers(float *to, int every)
{
    int n = 0;
    for (int i = 0; i < 65536; i += every)
        for (int type = SH_F16; type <= SH_BF16; type++) {
            uint16_t pair[2] = {(uint16_t)i, (uint16_t)(i + 1)};
            double low = host_at((enum sh_type)type, pair, 0), high = host_at((enum sh_type)type, pair, 1);
            float middle = (float)(0.5 * (low + high));
            to[n++] = (float)low;
            to[n++] = middle;
            to[n++] = nextafterf(middle, INFINITY);
            to[n++] = nextafterf(middle, -INFINITY);
        }
    static const float special[] = {INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 3.4028235e38f, -3.4028235e38f, 65504.0f,
                                    65519.99f, 65520.0f, -65520.0f, 65536.0f, 0x1p-149f, -0x1p-149f, 0x1p-126f,
                                    0x1p-25f, 0x1.000002p-25f, 0x1.8p-24f, 3.3961776e38f, 0x1.fep127f, 0x1.ffp127f};
    memcpy(to + n, special, sizeof special);
    return n + (int)(sizeof special / sizeof *special);
}

static void casts(const struct target *t)
{
    float *numbers = xmalloc(8 * 65536 * sizeof *numbers + 4096);
    int n = hard_numbers(numbers, t->small ? 37 : 1), cols = 1237, rows = (n + cols - 1) / cols;
    struct matrix x = matrix_new(t, SH_F32, rows, cols, 0);
    memcpy(x.host, numbers, (size_t)n * sizeof *numbers);
    matrix_put(t, &x);
    for (int type = SH_F32; type <= SH_BF16; type++) {
        struct matrix out = matrix_new(t, (enum sh_type)type, rows, cols, 0);
        int wrong = 0;
        t->b->cast(t->d, out.m, x.m);
        matrix_get(t, &out);
        for (int i = 0; i < n; i++) {
            double y = rounded((enum sh_type)type, (double)numbers[i]), z = matrix_at(&out, i / cols, i % cols);
            int bad = isnan(y) ? !isnan(z) : !(y == z && !signbit(y) == !signbit(z));
            if (bad && wrong++ < 3)
                printf("# %a to %s: %a, not %a\n", (double)numbers[i], sh_type_name((enum sh_type)type), z, y);
        }
        CU_ASSERT(wrong == 0);
        matrix_free(t, &out);
    }
    matrix_free(t, &x);
    free(numbers);
}
EACH_BACKEND(casts)

static void try_gate(const struct target *t, int rows, int cols, enum sh_type type, enum sh_act act, struct tally *all)
{
    static const float far[] = {-100, -20, -5.5f, -0.0f, 1e-20f, 20, 100, -3e3f};
    struct matrix gate = matrix_new(t, SH_F32, rows, cols, 0), up = matrix_new(t, SH_F32, rows, cols, 0);
    struct matrix out = matrix_new(t, type, rows, cols, 0);
    struct tally tally = {0};
    matrix_normal(t, &gate, 11, 2);
    matrix_normal(t, &up, 12, 1);
    for (int j = 0; j < cols && j < 8; j++)
        matrix_set(&gate, rows - 1, j, (double)far[j]);
    matrix_put(t, &gate);
    struct sh_gate a = {.out = out.m, .gate = gate.m, .up = up.m, .act = act};
    t->b->gate(t->d, &a);
    matrix_get(t, &out);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            double x = matrix_at(&gate, i, j), u = matrix_at(&up, i, j), y = activated(act, x) * u;
            compare(&tally, matrix_at(&out, i, j), y, 1e-6 * (1 + fabs(x) + fabs(y)) * fabs(u) + rounding(type, y));
        }
    judge(&tally, all, &out, "gate");
    matrix_free(t, &gate);
    matrix_free(t, &up);
    matrix_free(t, &out);
}

static void gates(const struct target *t)
{
    struct tally all = {0};
    int turn = 0;
    for (int shape = 0; shape < N_ROWS * N_WIDTHS; shape++)
        for (int type = SH_F32; type <= SH_BF16; type++)
            for (int act = SH_ACT_NONE; act <= SH_ACT_SIGMOID; act++, turn++)
                if (!t->small || turn % 7 == 0)
                    try_gate(t, row_counts[shape / N_WIDTHS], widths[shape % N_WIDTHS], (enum sh_type)type,
                             (enum sh_act)act, &all);
    printf("# worst error: %.2f of the limit\n", all.worst);
}
EACH_BACKEND(gates)

/* A gate for several neighbouring columns. */
static void narrow_gates(const struct target *t)
{
    static const struct { int rows, gates, wide; } shapes[] = {{1, 1, 5}, {3, 4, 8}, {7, 6, 80}, {2, 3, 3000}};
    static const enum sh_act acts[] = {SH_ACT_SIGMOID, SH_ACT_SOFTPLUS, SH_ACT_NONE};
    struct tally all = {0};
    for (int i = 0; i < 12; i++) {
        int rows = shapes[i / 3].rows, wide = shapes[i / 3].wide, cols = shapes[i / 3].gates * wide;
        struct matrix gate = matrix_new(t, SH_F32, rows, shapes[i / 3].gates, 0);
        struct matrix up = matrix_new(t, SH_F32, rows, cols, 0), out = matrix_new(t, SH_F32, rows, cols, 0);
        struct sh_gate a = {.out = out.m, .gate = gate.m, .up = up.m, .act = acts[i % 3]};
        struct tally tally = {0};
        matrix_normal(t, &gate, 31, 4);
        matrix_normal(t, &up, 32, 1);
        t->b->gate(t->d, &a);
        matrix_get(t, &out);
        for (int row = 0; row < rows; row++)
            for (int j = 0; j < cols; j++) {
                double x = matrix_at(&gate, row, j / wide), u = matrix_at(&up, row, j);
                double y = (a.act == SH_ACT_SOFTPLUS ? log1p(exp(x)) : activated(a.act, x)) * u;
                compare(&tally, matrix_at(&out, row, j), y, 1e-6 * (1 + fabs(x) + fabs(y)) * fabs(u));
            }
        judge(&tally, &all, &out, "narrow gate");
        matrix_free(t, &gate);
        matrix_free(t, &up);
        matrix_free(t, &out);
    }
}
EACH_BACKEND(narrow_gates)

/* kernels/backend.h's formulas. */
static double by_knobs(enum sh_act act, const float *k, double x, double u)
{
    if (act == SH_ACT_CLIP)
        return fmin(fmax(x, -(double)k[0]), (double)k[0]) * u;
    if (act == SH_ACT_XIELU && x > 0)
        return ((double)k[0] * x * x + (double)k[2] * x) * u;
    if (act == SH_ACT_XIELU)
        return ((double)k[1] * (expm1(fmin(x, (double)k[3])) - x) + (double)k[2] * x) * u;
    x = fmin(x, (double)k[0]);
    return x / (1 + exp(-(double)k[1] * x)) * (1 + fmin(fmax(u, -(double)k[0]), (double)k[0]));
}

static void knobs(const struct target *t)
{
    static const enum sh_act acts[] = {SH_ACT_CLIP, SH_ACT_XIELU, SH_ACT_CLAMPED};
    struct tally all = {0};
    struct matrix gate = matrix_new(t, SH_F32, 3, 300, 0), up = matrix_new(t, SH_F32, 3, 300, 0);
    matrix_normal(t, &gate, 21, 2);
    matrix_normal(t, &up, 22, 2);
    for (int i = 0; i < 3; i++) {
        struct matrix out = matrix_new(t, SH_F32, 3, 300, 0);
        struct sh_gate a = {.out = out.m, .gate = gate.m, .up = up.m, .act = acts[i],
                            .knob = {1.5f, 1.25f, 0.5f, -1e-6f}};
        struct tally tally = {0};
        t->b->gate(t->d, &a);
        matrix_get(t, &out);
        for (int row = 0; row < 3; row++)
            for (int j = 0; j < 300; j++) {
                double x = matrix_at(&gate, row, j), u = matrix_at(&up, row, j), y = by_knobs(acts[i], a.knob, x, u);
                compare(&tally, matrix_at(&out, row, j), y, 2e-6 * (1 + fabs(x) + fabs(y)) * (1 + fabs(u)));
            }
        judge(&tally, &all, &out, "gate with knobs");
        matrix_free(t, &out);
    }
    matrix_free(t, &gate);
    matrix_free(t, &up);
}
EACH_BACKEND(knobs)

/* Rows taken in another order, with shares, and brought back: out += by * share^2 * x of those that were taken. */
static void moves(const struct target *t)
{
    enum { ROWS = 9, COLS = 300, TAKEN = 4 };
    static const int order[TAKEN] = {7, 0, 3, 8};
    static const float share[TAKEN] = {0.5f, 2, 1, 0.25f};
    struct sh_err e;
    struct tally all = {0}, tally = {0};
    struct matrix x = matrix_new(t, SH_F32, ROWS, COLS, 5), some = matrix_new(t, SH_F32, TAKEN, COLS, 3);
    struct matrix out = matrix_new(t, SH_F32, ROWS, COLS, 1);
    int *row = t->b->alloc(t->d, sizeof order, &e);
    float *weight = t->b->alloc(t->d, sizeof share, &e);
    CU_ASSERT_FATAL(row && weight);
    t->b->put(t->d, row, order, sizeof order);
    t->b->put(t->d, weight, share, sizeof share);
    matrix_normal(t, &x, 31, 1);
    matrix_normal(t, &out, 32, 1);
    matrix_get(t, &out);
    double *before = xmalloc(sizeof(double) * ROWS * COLS);
    for (int i = 0; i < ROWS * COLS; i++)
        before[i] = matrix_at(&out, i / COLS, i % COLS);
    t->b->gather(t->d, &(struct sh_gather){.out = some.m, .x = x.m, .row = row, .share = weight});
    t->b->scatter(t->d, &(struct sh_scatter){.out = out.m, .x = some.m, .row = row, .share = weight, .by = 3});
    matrix_get(t, &out);
    for (int i = 0; i < ROWS * COLS; i++) {
        double y = before[i];
        for (int k = 0; k < TAKEN; k++)
            if (order[k] == i / COLS)
                y += 3 * (double)share[k] * (double)share[k] * matrix_at(&x, i / COLS, i % COLS);
        compare(&tally, matrix_at(&out, i / COLS, i % COLS), y, 1e-5);
    }
    judge(&tally, &all, &out, "gather and scatter");
    t->b->release(t->d, row);
    t->b->release(t->d, weight);
    free(before);
    matrix_free(t, &x);
    matrix_free(t, &some);
    matrix_free(t, &out);
}
EACH_BACKEND(moves)

/* The first of what is no number or infinite, else the first of the greatest. */
static int expected_best(const struct matrix *x, int row)
{
    int best = 0;
    for (int j = 0; j < x->m.cols; j++) {
        double now = matrix_at(x, row, j);
        if (isnan(now) || (isinf(now) && now > 0))
            return j;
        best = now > matrix_at(x, row, best) ? j : best;
    }
    return best;
}

/* Rows with equal numbers, with some that are none, with nothing but the least. */
static void fill_best(struct matrix *x, int row)
{
    int n = x->m.cols, at = (int)(sh_rng(3, (uint64_t)row) % (uint64_t)n), other = (at + n / 2) % n;
    if (row % 5 == 1) {
        matrix_set(x, row, at, 9);
        matrix_set(x, row, other, 9);
    } else if (row % 5 == 2) {
        matrix_set(x, row, at, row % 2 ? (double)NAN : -(double)NAN);
        matrix_set(x, row, other, (double)INFINITY);
    } else if (row % 5 == 3) {
        matrix_set(x, row, at, (double)INFINITY);
        matrix_set(x, row, other, (double)INFINITY);
    }
    for (int j = 0; j < n && row % 5 == 4; j++)
        matrix_set(x, row, j, -(double)INFINITY);
}

static void try_best(const struct target *t, int rows, int cols, int gap)
{
    struct matrix x = matrix_new(t, SH_F32, rows, cols, gap);
    struct sh_err e;
    size_t bytes = (size_t)rows * sizeof(struct sh_best);
    struct sh_best *found = xmalloc(bytes), *out = t->b->alloc(t->d, bytes, &e);
    int wrong = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    matrix_normal(t, &x, 21, 3);
    for (int i = 0; i < rows; i++)
        fill_best(&x, i);
    matrix_put(t, &x);
    t->b->best(t->d, out, x.m);
    t->b->get(t->d, found, out, bytes);
    target_sync(t);
    for (int i = 0; i < rows; i++) {
        int j = expected_best(&x, i);
        double value = matrix_at(&x, i, j);
        wrong += found[i].column != j || (isnan(value) ? !isnan(found[i].value) : (double)found[i].value != value);
    }
    if (wrong)
        printf("# [%d, %d]: %d of the rows wrong\n", rows, cols, wrong);
    CU_ASSERT(wrong == 0);
    t->b->release(t->d, out);
    matrix_free(t, &x);
    free(found);
}

static void bests(const struct target *t)
{
    static const int wide[] = {1, 31, 64, 513, 3001};
    if (!t->b->best) {
        tap_skip("device memory is host memory");
        return;
    }
    for (int i = 0; i < 5; i++)
        for (int gap = 0; gap < 4; gap += 3)
            try_best(t, t->small ? 10 : 40, wide[i], gap);
}
static void bests_module(void) { target_run(ON_MODULE, bests); }

int main(void)
{
    static const struct tap_test tests[] = {
        LIST_BACKENDS("norm: layer norm to all types, in place, added, with and without weights", norms_layer),
        LIST_BACKENDS("norm: RMS norm to all types, in place, added, with and without weights", norms_rms),
        LIST_BACKENDS("norm: to length 1, to all types, in place, added, with and without weights", norms_length),
        LIST_BACKENDS("cast: to nearest even, whatever the number", casts),
        LIST_BACKENDS("gate: all activations, to all types", gates),
        LIST_BACKENDS("gate: activations with knobs", knobs),
        LIST_BACKENDS("gate: one for several columns", narrow_gates),
        LIST_BACKENDS("gather and scatter: rows from and to other places", moves),
        {"best: of each row, the first of equal ones, and what is no number (module)", bests_module},
        {0}};
    return tap_run("rows", tests);
}
