/* SPDX-License-Identifier: Apache-2.0 */
/* The KV cache on the device (kernels/slots.h), token by token through its own operations: what attention
 * gives is what doubles give over the rows as they are kept, and who is kept is what planner/policy/kept_slots.h keeps
 * when it is told the same rows, ties included. Heads have budgets of their own, sequences come and go, the layer
 * is not the first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/policy/kept_slots.h"
#include "src/base/mem.h"
#include "src/base/rng.h"
#include "src/engine/rows.h"
#include "tests/tap.h"
#include "tests/unit/backends.h"
#include "tests/unit/device_policies.h"

enum { SEQ = 2, LAYERS = 2, LAYER = 1, LATE = 3 };      /* sequence 1 begins LATE steps later      */

struct shape {
    const char *policy;
    struct sh_slots_policy rule;
    int d, n_head, n_kv_head, bits, group;
    int budget, prefill, window, n_token;
    float softcap;
    int alibi, is_even;                 /* is_even: all scores are the same, so that many are tied */
    enum sh_type type;                  /* of what comes out                                       */
};

#define OLDEST {.rule = SH_SLOTS_OLDEST, .decay = 1, .look_back = 1}
#define STREAM {.rule = SH_SLOTS_OLDEST, .sinks = 4, .decay = 1, .look_back = 1}
#define SUMS(how, fade) {.rule = how, .decay = fade, .look_back = 1}
#define LOW(how, rows, row, rated) {.rule = how, .decay = 1, .look_back = rows, .by_row = row, .rate = rated}

static const struct shape attention[] = {
    {"full", OLDEST, 40, 2, 2, 32, 0, 90, 0, 0, 90, 0, 0, 0, SH_F32},
    {"window", OLDEST, 64, 8, 2, 16, 0, 20, 0, 0, 50, 0, 0, 0, SH_F32},
    {"streaming", STREAM, 128, 2, 2, 16, 0, 20, 0, 0, 40, 30, 0, 0, SH_F16},
    {"streaming", STREAM, 256, 2, 1, 32, 0, 12, 0, 0, 20, 0, 0, 0, SH_BF16},
    {"full", OLDEST, 80, 8, 1, 8, 64, 70, 0, 0, 70, 0, 1, 0, SH_F32},
    {"window", OLDEST, 128, 2, 2, 4, 64, 16, 0, 0, 40, 0, 0, 0, SH_F32},
    {"window", OLDEST, 72, 16, 1, 4, 24, 16, 0, 0, 30, 0, 0, 0, SH_F32},
    {"window", OLDEST, 44, 6, 2, 8, 8, 16, 10, 0, 30, 0, 0, 0, SH_F32},
    {"full", OLDEST, 64, 2, 2, 16, 0, 12, 0, 12, 40, 0, 0, 0, SH_F32},
    {NULL, OLDEST, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, SH_F32}};

static const struct shape policies[] = {
    {"h2o:recent=3", SUMS(SH_SLOTS_SUM, 1), 16, 4, 2, 32, 0, 14, 0, 0, 60, 0, 0, 0, SH_F32},
    {"h2o:recent=0", SUMS(SH_SLOTS_SUM, 1), 16, 2, 2, 16, 0, 14, 20, 0, 50, 0, 0, 1, SH_F32},
    {"h2o:recent=0.5", SUMS(SH_SLOTS_SUM, 1), 16, 4, 2, 32, 0, 14, 0, 0, 60, 0, 0, 0, SH_F32},
    {"scissorhands:window=9,recent=0.25,drop=3,sinks=1",
     {.rule = SH_SLOTS_LOW_RING, .sinks = 1, .decay = 1, .look_back = 9}, 16, 4, 2, 32, 0, 24, 0, 0, 60, 0, 0, 0,
     SH_F32},
    {"h2o:score=mean,recent=2", SUMS(SH_SLOTS_MEAN, 1), 16, 4, 2, 32, 0, 14, 0, 0, 60, 0, 0, 0, SH_F32},
    {"h2o:score=decay,gamma=0.9", SUMS(SH_SLOTS_SUM, 0.9f), 16, 2, 1, 32, 0, 14, 0, 0, 60, 0, 0, 0, SH_F32},
    {"scissorhands:window=9,recent=2,drop=5", LOW(SH_SLOTS_LOW_RING, 9, 0, 0), 16, 4, 2, 32, 0, 40, 0, 0, 90, 0, 0,
     0, SH_F32},
    {"scissorhands:window=400,recent=2,drop=0.5", LOW(SH_SLOTS_LOW_RING, 70, 0, 0), 16, 2, 2, 16, 0, 20, 0, 0, 70, 0,
     0, 1, SH_F32},
    {"scissorhands:window=7,recent=1,drop=1,threshold=i,counts=rate", LOW(SH_SLOTS_LOW_RING, 7, 1, 1), 16, 2, 2, 32,
     0, 14, 0, 0, 60, 0, 0, 0, SH_F32},
    {"scissorhands:window=8,recent=2,drop=3,counter=epochs", LOW(SH_SLOTS_LOW_EPOCHS, 8, 0, 0), 16, 4, 2, 32, 0, 14,
     0, 0, 60, 0, 0, 0, SH_F32},
    {"scissorhands:window=8,recent=2,drop=3,counter=epochs,counts=rate,sinks=2",
     {.rule = SH_SLOTS_LOW_EPOCHS, .sinks = 2, .decay = 1, .look_back = 8, .rate = 1}, 16, 2, 2, 4, 8, 14,
     0, 0, 60, 0, 0, 0, SH_F32},
    {"scissorhands:window=9,recent=2,drop=4", LOW(SH_SLOTS_LOW_RING, 9, 0, 0), 16, 2, 2, 32, 0, 30, 0, 12, 50, 0, 0,
     0, SH_F32},
    {NULL, OLDEST, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, SH_F32}};

struct world {
    const struct target *on;
    const struct shape *s;
    struct sh_policy_spec spec;
    struct sh_slots_head head[LAYERS * 8];
    float slopes[16];
    struct sh_slots *slots;
    struct sh_kept *kept[SEQ][8];       /* what should be there                                    */
    double *k[SEQ], *v[SEQ];            /* [n_token, n_kv_head, d] as they are kept                */
    double out_off, row_off;
    int wrong_sets, evicted;
};

/* A row as the format keeps it. */
static void as_kept(const struct shape *s, const float *x, double *to)
{
    struct sh_kv_format f = {.bits = s->bits, .group = s->group, .meta = SH_F16};
    unsigned char codes[SH_SLOTS_WIDEST], meta[4 * SH_SLOTS_WIDEST];
    float back[SH_SLOTS_WIDEST];
    memcpy(back, x, (size_t)s->d * sizeof *x);
    for (int i = 0; i < s->d && s->bits == 16; i++)
        back[i] = sh_f16_to_f32(sh_f32_to_f16(x[i]));
    if (s->bits < 16) {
        sh_quant_row_write(&f, x, s->d, codes, meta);
        sh_quant_row_read(&f, codes, meta, s->d, back);
    }
    for (int i = 0; i < s->d; i++)
        to[i] = (double)back[i];
}

static struct sh_kept_setup kept_of(const struct world *w, int head)
{
    const struct shape *s = w->s;
    return (struct sh_kept_setup){.spec = &w->spec, .budget = s->budget + 3 * head, .prefill = s->prefill,
                                  .window = s->window, .n_token = s->n_token, .layer = LAYER, .head = head,
                                  .n_layer = LAYERS, .d_head = s->d, .rows_by_slot = 1};
}

static void open_world(struct world *w, const struct target *on, const struct shape *s)
{
    struct sh_err e;
    *w = (struct world){.on = on, .s = s};
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse(s->policy, &w->spec, &e), 0);
    for (int i = 0; i < LAYERS * s->n_kv_head; i++) {
        struct sh_kept_setup k = kept_of(w, i % s->n_kv_head);
        k.layer = i / s->n_kv_head;
        w->head[i] = (struct sh_slots_head){.budget = sh_kept_room(&k), .capacity = sh_kept_slots(&k),
                                            .window = s->window};
        w->head[i].recent = sh_policy_recent(&w->spec, w->head[i].budget);
        w->head[i].drop = sh_policy_drop(&w->spec, w->head[i].budget);
    }
    for (int i = 0; i < s->n_head; i++)
        w->slopes[i] = 0.5f / (float)(i + 1);
    struct sh_slots_setup setup = {.n_seq = SEQ, .n_layer = LAYERS, .n_head = s->n_head, .n_kv_head = s->n_kv_head,
                                   .d_head = s->d, .bits = s->bits, .group = s->group, .meta = SH_F16,
                                   .prefill = s->prefill, .keep_rows = 1, .head = w->head,
                                   .slopes = s->alibi ? w->slopes : NULL, .policy = s->rule};
    w->slots = on->b->slots->make(on->d, &setup, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w->slots);
    for (int q = 0; q < SEQ; q++) {
        size_t n = (size_t)(s->n_token * s->n_kv_head * s->d);
        w->k[q] = xcalloc(n, sizeof *w->k[q]);
        w->v[q] = xcalloc(n, sizeof *w->v[q]);
        for (int h = 0; h < s->n_kv_head; h++) {
            struct sh_kept_setup k = kept_of(w, h);
            w->kept[q][h] = sh_kept_new(&k);
        }
    }
}

static void close_world(struct world *w)
{
    w->on->b->slots->drop(w->on->d, w->slots);
    for (int q = 0; q < SEQ; q++) {
        free(w->k[q]);
        free(w->v[q]);
        for (int h = 0; h < w->s->n_kv_head; h++)
            sh_kept_free(w->kept[q][h]);
    }
}

/* Probabilities of a query head, in the order of the reference's slots; in doubles. */
static void probabilities(const struct world *w, int sequence, int head, int t, const float *q, int query_head,
                          double *p)
{
    const struct shape *s = w->s;
    const struct sh_cache *c = sh_kept_cache(w->kept[sequence][head]);
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < c->n_slot; i++) {
        const double *k = w->k[sequence] + ((size_t)(c->pos[i] < 0 ? 0 : c->pos[i]) * (size_t)s->n_kv_head +
                                            (size_t)head) * (size_t)s->d;
        double x = 0;
        for (int j = 0; j < s->d; j++)
            x += (double)q[j] * k[j];
        x /= sqrt(s->d);
        x = s->softcap > 0 ? (double)s->softcap * tanh(x / (double)s->softcap) : x;
        x -= s->alibi ? (double)w->slopes[query_head] * (t - c->pos[i]) : 0;
        p[i] = c->pos[i] < 0 || (s->window && c->pos[i] <= t - s->window) ? -INFINITY : x;
        most = fmax(most, p[i]);
    }
    for (int i = 0; i < c->n_slot; i++)
        sum += p[i] = exp(p[i] - most);
    for (int i = 0; i < c->n_slot; i++)
        p[i] /= sum;
}

/* What one head of a row should have given, and what the reference's policy learns of it. */
static void check_head(struct world *w, int sequence, int head, int t, const float *q, const struct matrix *out,
                       int row, const struct sh_slots_look *look)
{
    const struct shape *s = w->s;
    const struct sh_cache *c = sh_kept_cache(w->kept[sequence][head]);
    int group = s->n_head / s->n_kv_head, n_row = 0, wrong = look->n != c->n;
    double *p = xcalloc((size_t)c->n_slot, sizeof *p), *mean = xcalloc((size_t)c->n_slot, sizeof *mean);
    float *told = xcalloc((size_t)c->n_slot, sizeof *told);
    for (int g = 0; g < group; g++) {
        probabilities(w, sequence, head, t, q + g * s->d, head * group + g, p);
        for (int i = 0; i < c->n_slot; i++)
            mean[i] += p[i] / group;
        for (int j = 0; j < s->d; j++) {
            double x = 0, found = matrix_at(out, row, (head * group + g) * s->d + j);
            for (int i = 0; i < c->n_slot; i++)
                x += c->pos[i] < 0 ? 0 : p[i] * w->v[sequence][((size_t)c->pos[i] * (size_t)s->n_kv_head +
                                                                (size_t)head) * (size_t)s->d + (size_t)j];
            double off = (fabs(found - x) - rounding(s->type, x)) / 4;          /* values are up to 4 */
            w->out_off = fmax(w->out_off, isnan(off) ? INFINITY : off);
        }
    }
    for (int i = 0; i < c->n_slot; i++) {
        int at = 0;
        while (at < look->n_slot && look->pos[at] != c->pos[i])
            at++;
        if (c->pos[i] < 0)
            continue;
        wrong += at == look->n_slot;
        told[i] = at < look->n_slot ? look->row[at] : 0;
        n_row += !s->window || c->pos[i] > t - s->window;
        w->row_off = fmax(w->row_off, fabs((double)told[i] - mean[i]));
    }
    w->wrong_sets += wrong > 0;
    struct sh_step step = {.t = t, .n_row = n_row, .row = told};
    sh_kept_observe(w->kept[sequence][head], &step);
    free(p);
    free(mean);
    free(told);
}

static void fill(const struct world *w, struct matrix *x, int seed, int is_even)
{
    matrix_normal(w->on, x, (uint64_t)seed, 0.8);
    for (int i = 0; i < x->m.rows && is_even; i++)
        for (int j = 0; j < x->m.cols; j++)
            matrix_set(x, i, j, 0);
    matrix_put(w->on, x);
}

/* The rows into the reference's own cache. */
static void admit(struct world *w, int sequence, int t, const struct matrix *k, const struct matrix *v, int row)
{
    const struct shape *s = w->s;
    for (int h = 0; h < s->n_kv_head; h++) {
        size_t to = ((size_t)t * (size_t)s->n_kv_head + (size_t)h) * (size_t)s->d;
        size_t from = (size_t)(h * s->d), number = (size_t)row;
        as_kept(s, (float *)k->host + number * k->m.stride + from, w->k[sequence] + to);
        as_kept(s, (float *)v->host + number * v->m.stride + from, w->v[sequence] + to);
        w->evicted += sh_kept_make_room(w->kept[sequence][h], t, NULL, NULL);
        sh_kept_admit(w->kept[sequence][h], t);
    }
}

/* One token of each sequence that has begun. */
static void step(struct world *w, int t)
{
    const struct shape *s = w->s;
    const struct target *on = w->on;
    int rows[SEQ + 1 + SEQ] = {0}, n = 0;
    for (int q = 0; q < SEQ; q++) {
        if (t >= q * LATE)
            rows[SEQ + 1 + n++] = t - q * LATE;
        rows[q + 1] = n;
    }
    int wide = s->n_head * s->d, narrow = s->n_kv_head * s->d;
    struct matrix q = matrix_new(on, SH_F32, n, wide, 4), k = matrix_new(on, SH_F32, n, narrow, 3);
    struct matrix v = matrix_new(on, SH_F32, n, narrow, 0), out = matrix_new(on, s->type, n, wide, 8);
    struct sh_err e;
    int *at = on->b->alloc(on->d, sizeof rows, &e);
    fill(w, &q, 3 * t, s->is_even);
    fill(w, &k, 3 * t + 1, 0);
    fill(w, &v, 3 * t + 2, 0);
    on->b->put(on->d, at, rows, sizeof rows);
    struct sh_attend what = {.q = q.m, .k = k.m, .v = v.m, .out = out.m, .n_head = s->n_head,
                             .n_kv_head = s->n_kv_head, .d_head = s->d, .window = s->window,
                             .scale = 1 / sqrtf((float)s->d), .softcap = s->softcap};
    struct sh_slots_step a = {.what = &what, .layer = LAYER, .start = at, .position = at + SEQ + 1, .end = 1};
    on->b->slots->attend(on->d, w->slots, &a);
    matrix_get(on, &out);
    int pos[512];
    float row[512];
    for (int i = 0; i < SEQ; i++) {
        if (rows[i + 1] == rows[i])
            continue;
        int own = rows[SEQ + 1 + rows[i]];
        admit(w, i, own, &k, &v, rows[i]);
        for (int h = 0; h < s->n_kv_head; h++) {
            struct sh_slots_look look = {.pos = pos, .row = row};
            on->b->slots->look(on->d, w->slots, i, LAYER, h, &look);
            check_head(w, i, h, own, (float *)q.host + (size_t)rows[i] * q.m.stride +
                       (size_t)(h * (s->n_head / s->n_kv_head) * s->d), &out, rows[i], &look);
        }
    }
    CU_ASSERT_EQUAL(matrix_gap_touched(&out), 0);
    on->b->release(on->d, at);
    matrix_free(on, &q);
    matrix_free(on, &k);
    matrix_free(on, &v);
    matrix_free(on, &out);
}

static void run(const struct target *on, const struct shape *all)
{
    for (const struct shape *s = all; s->policy; s++) {
        struct world w;
        open_world(&w, on, s);
        for (int t = 0; t < s->n_token; t++)
            step(&w, t);
        int may_leave = s->budget < s->n_token && (strcmp(s->policy, "full") || s->window);
        int ok = w.wrong_sets == 0 && w.out_off <= 2e-6 && w.row_off <= 1e-6 && (w.evicted > 0) == may_leave;
        if (!ok)
            printf("# %s, d %d, %d heads on %d, %d bits: %d sets wrong, out off by %.1e, rows by %.1e, %d left\n",
                   s->policy, s->d, s->n_head, s->n_kv_head, s->bits, w.wrong_sets, w.out_off, w.row_off, w.evicted);
        CU_ASSERT(ok);
        close_world(&w);
    }
}

static void check_rule(const char *policy, int n_token, const struct sh_slots_policy *want)
{
    struct sh_policy_spec spec;
    struct sh_slots_policy got;
    struct sh_err e;
    CU_ASSERT_EQUAL_FATAL(sh_policy_parse(policy, &spec, &e), 0);
    CU_ASSERT_PTR_NULL(sh_policy_device(&spec, n_token, &got));
    int ok = got.rule == want->rule && got.sinks == want->sinks &&
             got.look_back == want->look_back && got.by_row == want->by_row && got.rate == want->rate;
    if (!ok)
        printf("# %s: another rule than expected\n", policy);
    CU_ASSERT(ok);
    CU_ASSERT_EQUAL(got.decay, want->decay);
}

/* The rules above are what the policies say themselves, and none is missing. */
static void rules(void)
{
    const char *given[(sizeof attention + sizeof policies) / sizeof *attention];
    const struct shape *const all[] = {attention, policies};
    int n = 0;
    for (int i = 0; i < 2; i++)
        for (const struct shape *s = all[i]; s->policy; s++) {
            check_rule(s->policy, s->n_token, &s->rule);
            given[n++] = s->policy;
        }
    check_device_policies(given, n);
}

static void refused(void)
{
    static const char *const policy[] = {"scissorhands:threshold=t", "scissorhands:window=65536", "tova"};
    for (size_t i = 0; i < sizeof policy / sizeof *policy; i++) {
        struct sh_policy_spec spec;
        struct sh_slots_policy unused;
        struct sh_err e;
        CU_ASSERT_EQUAL_FATAL(sh_policy_parse(policy[i], &spec, &e), 0);
        CU_ASSERT_PTR_NOT_NULL(sh_policy_device(&spec, 1 << 20, &unused));
    }
}

static void run_attention(const struct target *on) { run(on, attention); }
static void run_policies(const struct target *on) { run(on, policies); }
static void heads(void) { target_run(ON_MODULE, run_attention); }
static void decisions(void) { target_run(ON_MODULE, run_policies); }

int main(void)
{
    static const struct tap_test tests[] = {
        {"every policy's rule for devices has a case, and is what the policy says", rules},
        {"what a device cannot do is refused", refused},
        {"attention over slots: widths, groups, formats, windows, biases (module)", heads},
        {"who leaves: what kept_slots.c says of the same rows (module)", decisions},
        {0}};
    return tap_run("slots", tests);
}
