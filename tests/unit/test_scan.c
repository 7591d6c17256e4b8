/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/: the selective state space on every backend against double precision, over thousands of rows with the same
 * decays, as linear attention has them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"

enum { HEADS = 3, WIDTH = 20, CHANNELS = HEADS * WIDTH, STATE = 6, ROWS = 5000, LAST = 50 };

/* exp(-rate) is the decay: most digits of what is lost are gone from 1 - rate in f32; at the border; a strong one. */
static const double rates[HEADS] = {5.3e-5, 0.0999, 1.7};

/* What row `row` gives, in double precision; state: [STATE, CHANNELS]. */
static void step(const struct matrix *x, const struct matrix *b, const struct matrix *c, int row, double *state,
                 double *out, double *size)
{
    for (int i = 0; i < CHANNELS; i++) {
        double decay = exp(-exp((double)(float)log(rates[i / WIDTH])));
        out[i] = size[i] = 0;
        for (int k = 0; k < STATE; k++) {
            double *s = &state[k * CHANNELS + i];
            *s = *s * decay + matrix_at(x, row, i) * matrix_at(b, row, k);
            out[i] += *s * matrix_at(c, row, k);
            size[i] += fabs(*s * matrix_at(c, row, k));
        }
    }
}

static float *vector(const struct target *t, const float *host)
{
    struct sh_err e;
    float *at = t->b->vector(t->d, host, HEADS, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    return at;
}

static void long_texts(const struct target *t)
{
    int rows = t->small ? ROWS / 5 : ROWS, start[2] = {0, rows};
    float log_rate[HEADS], zeros[HEADS] = {0};
    struct matrix x = matrix_new(t, SH_F32, rows, CHANNELS, 3), b = matrix_new(t, SH_F32, rows, STATE, 1);
    struct matrix c = matrix_new(t, SH_F32, rows, STATE, 2), dt = matrix_new(t, SH_F32, rows, HEADS, 0);
    struct matrix out = matrix_new(t, SH_F32, rows, CHANNELS, 0), kept = matrix_new(t, SH_F32, STATE, CHANNELS, 0);
    double *state = xcalloc((size_t)(STATE * CHANNELS), sizeof *state), wanted[CHANNELS], size[CHANNELS];
    struct tally all = {0};
    matrix_normal(t, &x, 1, 1);
    matrix_normal(t, &b, 2, 1);
    matrix_normal(t, &c, 3, 1);
    matrix_normal(t, &dt, 4, 1);                        /* steps are 1 whatever they are          */
    for (int i = 0; i < STATE * CHANNELS; i++)
        matrix_set(&kept, i / CHANNELS, i % CHANNELS, 0);
    matrix_put(t, &kept);
    for (int h = 0; h < HEADS; h++)
        log_rate[h] = (float)log(rates[h]);
    float *log_a = vector(t, log_rate), *none = vector(t, zeros);
    struct sh_scan a = {.out = out.m, .x = x.m, .b = b.m, .c = c.m, .dt = dt.m, .log_a = log_a, .dt_bias = none,
                        .skip = none, .n_head = HEADS, .d_head = WIDTH, .n_group = 1, .d_state = STATE, .least = 1,
                        .most = 1, .n_seq = 1, .start = start, .state = kept.m.at, .state_step = STATE * CHANNELS};
    t->b->scan(t->d, &a);
    matrix_get(t, &out);
    for (int row = 0; row < rows; row++) {
        step(&x, &b, &c, row, state, wanted, size);
        for (int i = 0; i < CHANNELS && row >= rows - LAST; i++)
            compare(&all, matrix_at(&out, row, i), wanted[i], 1e-5 * size[i]);
    }
    printf("# worst error: %.2f of the limit\n", all.worst);
    CU_ASSERT(!all.wrong);
    t->b->release(t->d, log_a);
    t->b->release(t->d, none);
    struct matrix *every[] = {&x, &b, &c, &dt, &out, &kept};
    for (size_t i = 0; i < sizeof every / sizeof *every; i++)
        matrix_free(t, every[i]);
    free(state);
}
EACH_BACKEND(long_texts)

int main(void)
{
    static const struct tap_test tests[] = {LIST_BACKENDS("equal decays over a long text", long_texts), {0}};
    return tap_run("scan", tests);
}
