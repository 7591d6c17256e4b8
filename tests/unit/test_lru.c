/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/: the gated linear recurrence on every backend against double precision: texts that begin, and that go on
 * from a state, with positions on the host and on the device. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"

enum { CHANNELS = 150, N_SEQ = 4, MOST = 400, STEP = CHANNELS + 11 };

/* Of sequences in a call: one that is empty, one of a single row, one over several hundred rows. */
static const int lengths[N_SEQ] = {7, 0, 1, MOST - 8};

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

struct world {
    struct matrix x, a, b, out, state;
    float rate[CHANNELS];
    double *kept, *size;                /* [N_SEQ, CHANNELS]: the state, and the magnitudes in it */
    int start[N_SEQ + 1], first[N_SEQ], *position;
};

/* Channels from those that keep nearly all of their state to those that keep nearly none. */
static void open_world(const struct target *t, struct world *w)
{
    *w = (struct world){.x = matrix_new(t, SH_F32, MOST, CHANNELS, 3), .a = matrix_new(t, SH_F32, MOST, CHANNELS, 0),
                        .b = matrix_new(t, SH_F32, MOST, CHANNELS, 1), .out = matrix_new(t, SH_F32, MOST, CHANNELS, 2),
                        .state = matrix_new(t, SH_F32, N_SEQ, STEP, 0),
                        .kept = xcalloc(N_SEQ * CHANNELS, sizeof(double)),
                        .size = xcalloc(N_SEQ * CHANNELS, sizeof(double)), .position = xcalloc(MOST, sizeof(int))};
    for (int i = 0; i < CHANNELS; i++)
        w->rate[i] = (float)(-12 + 0.25 * i);
    for (int s = 0; s < N_SEQ; s++) {
        w->start[s + 1] = w->start[s] + lengths[s];
        for (int i = 0; i < STEP; i++)
            matrix_set(&w->state, s, i, 0);
    }
    matrix_put(t, &w->state);
}

static void close_world(const struct target *t, struct world *w)
{
    struct matrix *every[] = {&w->x, &w->a, &w->b, &w->out, &w->state};
    for (size_t i = 0; i < sizeof every / sizeof *every; i++)
        matrix_free(t, every[i]);
    free(w->kept);
    free(w->size);
    free(w->position);
}

static void compare_row(struct world *w, int s, int row, struct tally *all)
{
    for (int i = 0; i < CHANNELS; i++) {
        double rate = (double)w->rate[i], u = -8 * log1p(exp(rate)) * sigmoid(matrix_at(&w->a, row, i));
        double given = sigmoid(matrix_at(&w->b, row, i)) * matrix_at(&w->x, row, i), by = sqrt(-expm1(2 * u));
        double *kept = &w->kept[s * CHANNELS + i], *size = &w->size[s * CHANNELS + i];
        int begins = !w->position[row];
        *kept = begins ? given : exp(u) * *kept + by * given;
        *size = begins ? fabs(given) : exp(u) * *size + by * fabs(given);
        compare(all, matrix_at(&w->out, row, i), *kept, 1e-5 * *size);
    }
}

/* One call, after so many calls of the same lengths. */
static void go_on(const struct target *t, struct world *w, int calls, int by_row, struct tally *all)
{
    struct sh_err e;
    matrix_normal(t, &w->x, 3 * (uint64_t)calls + 1, 1);
    matrix_normal(t, &w->a, 3 * (uint64_t)calls + 2, 2);
    matrix_normal(t, &w->b, 3 * (uint64_t)calls + 3, 2);
    for (int s = 0; s < N_SEQ; s++) {
        w->first[s] = calls * lengths[s];
        for (int row = w->start[s]; row < w->start[s + 1]; row++)
            w->position[row] = w->first[s] + row - w->start[s];
    }
    float *rate = t->b->vector(t->d, w->rate, CHANNELS, &e);
    int *position = t->b->alloc(t->d, MOST * sizeof *position, &e);
    CU_ASSERT_FATAL(rate != NULL && position != NULL);
    t->b->put(t->d, position, w->position, MOST * sizeof *position);
    struct sh_lru a = {.out = w->out.m, .x = w->x.m, .a = w->a.m, .b = w->b.m, .rate = rate, .n_seq = N_SEQ,
                       .start = w->start, .first = calls ? w->first : NULL, .position = by_row ? position : NULL,
                       .state = w->state.m.at, .state_step = STEP};
    t->b->lru(t->d, &a);
    matrix_get(t, &w->out);
    for (int s = 0; s < N_SEQ; s++)
        for (int row = w->start[s]; row < w->start[s + 1]; row++)
            compare_row(w, s, row, all);
    CU_ASSERT(!matrix_gap_touched(&w->out));
    t->b->release(t->d, rate);
    t->b->release(t->d, position);
}

static void texts(const struct target *t)
{
    for (int by_row = 0; by_row < 2; by_row++) {
        struct tally all = {0};
        struct world w;
        open_world(t, &w);
        for (int calls = 0; calls < 3; calls++)
            go_on(t, &w, calls, by_row, &all);
        matrix_get(t, &w.state);
        for (int s = 0; s < N_SEQ; s++)
            for (int i = 0; i < STEP; i++)      /* what lies between the states stays as it was */
                compare(&all, matrix_at(&w.state, s, i), i < CHANNELS ? w.kept[s * CHANNELS + i] : 0,
                        i < CHANNELS ? 1e-5 * w.size[s * CHANNELS + i] : 0);
        printf("# worst error: %.2f of the limit\n", all.worst);
        CU_ASSERT(!all.wrong);
        close_world(t, &w);
    }
}
EACH_BACKEND(texts)

int main(void)
{
    static const struct tap_test tests[] = {LIST_BACKENDS("texts that begin and that go on", texts), {0}};
    return tap_run("lru", tests);
}
