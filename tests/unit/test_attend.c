/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/: causal attention on every backend against double precision: the probabilities in f32 and
 * what they give. Other packs are in test_record.c.
 *
 * Limits. A probability may be off by 1e-5 of itself, 1e-9, and what f32 moves its score by
 * (attention_row); rows sum to 1 within 2e-6; outputs are off by 1e-5 of the largest |v| and what the
 * probabilities are. With 16-bit operands a backend may round q, k, v and the probabilities to that type,
 * once each, or keep them in f32. Mostly q, k and v are such numbers already, so that the same limits hold
 * and outputs get half a unit of every |p v| more; where they are not, the worst case of two roundings a
 * product is added to scores and outputs. A 16-bit output: half a unit in its last place more. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "tests/tap.h"
#include "tests/unit/attention.h"

static const struct shape shapes[] = {                  /* heads, KV heads, d_head, window, softcap, slopes */
    {4, 4, 8, 0, 0, 0, SH_F32, 0},    {8, 2, 40, 0, 0, 0, SH_F32, 0},    {2, 2, 1, 0, 0, 0, SH_F32, 0},
    {4, 1, 64, 0, 0, 0, SH_F32, 0},   {2, 2, 129, 0, 0, 0, SH_F32, 0},   {8, 1, 80, 0, 0, 1, SH_F32, 0},
    {2, 2, 256, 0, 20, 0, SH_F32, 0}, {4, 1, 128, 5, 0, 0, SH_F32, 0},   {2, 2, 40, 33, 5, 0, SH_F32, 0},
    {2, 1, 64, 64, 0, 1, SH_F32, 0},  {2, 2, 80, 1, 0, 0, SH_F32, 0},    {2, 1, 40, 70, 30, 1, SH_F32, 0}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static const int lengths[MAX_SEQ] = {7, 129, 1, 33}, few[MAX_SEQ] = {5, 70, 1, 33};

static const int *lengths_for(const struct target *t)
{
    return t->small ? few : lengths;
}

struct result {                                         /* of one call                            */
    struct tally scores, out;
    int bad_sums;
};

struct row {                                            /* of n probabilities: what it should be  */
    int sequence, head, at, n;                          /* at: its number                         */
    double *p, *off;                                    /* off: how much p may differ             */
};

static void row_set(struct row *r, const struct attention *c, int sequence, int head, int at)
{
    *r = (struct row){sequence, head, at, at + 1 - attention_first(c, at), r->p, r->off};
    attention_row(c, sequence, head, at, r->p, r->off);
    for (int i = 0; i < r->n; i++) {
        r->p[i] = exp(r->p[i]);
        r->off[i] = r->p[i] * expm1(r->off[i]);
    }
}

static void check_scores(struct result *to, const struct row *r, const float *found)
{
    double sum = 0;
    for (int i = 0; i < r->n; i++) {
        compare(&to->scores, (double)found[i], r->p[i], r->off[i] + 1e-5 * r->p[i] + 1e-9);
        sum += (double)found[i];
    }
    to->bad_sums += !(fabs(sum - 1) <= 2e-6);
}

static void check_out(struct result *to, const struct row *r, const struct attention *c)
{
    const struct sh_attend *a = &c->a;
    int kv = r->head / (a->n_head / a->n_kv_head), first = c->start[r->sequence] + r->at + 1 - r->n;
    double u = attention_unit(c) + rounding(a->out.type, 1), step = attention_step(c) + rounding(a->out.type, 0);
    for (int i = 0; i < a->d_head; i++) {
        const float *v = (const float *)c->v.host + (size_t)first * a->v.stride + kv * a->d_head + i;
        double sum = 0, most = 0, limit = 0;
        for (int j = 0; j < r->n; j++, v += a->v.stride) {
            double p = r->p[j], size = fabs((double)*v);
            sum += p * (double)*v;
            most = size > most ? size : most;
            limit += size * (r->off[j] + p * (u + u * u) + step) + p * step;
        }
        limit += 1e-5 * most + rounding(a->out.type, sum);
        compare(&to->out, matrix_at(&c->out, c->start[r->sequence] + r->at, r->head * a->d_head + i), sum, limit);
    }
}

static void check_head(struct result *to, const struct recording *rec, int sequence, int head)
{
    const struct attention *c = rec->c;
    const float *found = (const float *)(const void *)rec->head[sequence * c->a.n_head + head].packed;
    struct row r = {.p = xcalloc((size_t)c->longest, sizeof *r.p), .off = xcalloc((size_t)c->longest, sizeof *r.off)};
    for (int at = 0; at < attention_length(c, sequence); at++, found += r.n) {
        row_set(&r, c, sequence, head, at);
        check_scores(to, &r, found);
        check_out(to, &r, c);
    }
    free(r.p);
    free(r.off);
}

static void try_shape(const struct target *t, const struct shape *s, const int *length, int n_seq, struct result *all)
{
    struct attention c;
    struct result r = {0};
    attention_new(t, &c, s, length, n_seq);
    struct recording *rec = attention_record(t, &c, SH_PACK_F32, NULL, NULL);
    matrix_get(t, &c.out);
    for (int i = 0; i < n_seq * s->n_head; i++)
        check_head(&r, rec, i / s->n_head, i % s->n_head);
    int touched = matrix_gap_touched(&c.out);
    if (r.scores.wrong || r.out.wrong || r.bad_sums || touched)
        printf("# %d heads of %d, %d KV heads, %s, window %d, softcap %g, slopes %d: %d wrong scores, %d sums, "
               "%d outputs, %d bytes between rows\n", s->n_head, s->d_head, s->n_kv_head, sh_type_name(s->type),
               s->window, (double)s->softcap, s->slopes, r.scores.wrong, r.bad_sums, r.out.wrong, touched);
    CU_ASSERT(!r.scores.wrong && !r.out.wrong && !r.bad_sums && !touched);
    all->scores.worst = fmax(all->scores.worst, r.scores.worst);
    all->out.worst = fmax(all->out.worst, r.out.worst);
    recording_free(rec);
    attention_free(t, &c);
}

/* On a slow device each shape with one of the types. */
static void numbers(const struct target *t, enum sh_type type)
{
    struct result all = {0};
    for (int i = 0; i < N_SHAPES; i++) {
        struct shape s = shapes[i];
        s.type = type;
        if (!t->small || i % 3 == (int)type)
            try_shape(t, &s, lengths_for(t), MAX_SEQ, &all);
    }
    if (type != SH_F32)
        try_shape(t, &(struct shape){2, 1, 64, 0, 0, 0, type, 1}, lengths_for(t), MAX_SEQ, &all);
    if (!t->small || type == SH_F16)                    /* more than a backend takes at once */
        try_shape(t, &(struct shape){1, 1, 40, 0, 0, 0, type, 0}, (const int[]){1100, 40}, 2, &all);
    if (!t->small || type == SH_F32)
        try_shape(t, &(struct shape){2, 1, 8, 100, 0, 0, type, 0}, (const int[]){1100}, 1, &all);
    printf("# worst errors: %.2f of the limit in scores, %.2f in outputs\n", all.scores.worst, all.out.worst);
}

static void numbers_f32(const struct target *t) { numbers(t, SH_F32); }
static void numbers_f16(const struct target *t) { numbers(t, SH_F16); }
static void numbers_bf16(const struct target *t) { numbers(t, SH_BF16); }
EACH_BACKEND(numbers_f32)
EACH_BACKEND(numbers_f16)
EACH_BACKEND(numbers_bf16)

/* The output is the same, bit for bit, however it is recorded; the scores, whether there is an output. */
static void try_recorded(const struct target *t, const struct shape *s)
{
    static const struct sh_lanes lane = {.n = 1, .lane = {{0.01, 0}}};
    const struct sh_lanes lanes[MAX_SEQ] = {lane, lane, lane, lane};
    struct attention c;
    attention_new(t, &c, s, lengths_for(t), MAX_SEQ);
    size_t bytes = (size_t)c.out.m.rows * c.out.m.stride * sh_type_bytes(s->type);
    void *plain = xmalloc(bytes);
    attention_run(t, &c);
    matrix_get(t, &c.out);
    memcpy(plain, c.out.host, bytes);
    for (int pack = SH_PACK_F32; pack <= SH_PACK_SETS; pack++) {
        memset(c.out.host, 0xff, bytes);
        matrix_put(t, &c.out);
        struct recording *with = attention_record(t, &c, (enum sh_pack)pack, lanes, NULL);
        matrix_get(t, &c.out);
        CU_ASSERT(memcmp(plain, c.out.host, bytes) == 0);
        c.a.out.at = NULL;
        struct recording *without = attention_record(t, &c, (enum sh_pack)pack, lanes, NULL);
        c.a.out.at = c.out.m.at;
        int differ = 0;
        for (int i = 0; i < MAX_SEQ * s->n_head; i++) {
            int n = attention_length(&c, i / s->n_head);
            size_t words = (size_t)(2 * n * recording_words(with, i / s->n_head));
            differ += pack == SH_PACK_SETS
                          ? memcmp(with->head[i].bits, without->head[i].bits, words * sizeof(uint64_t)) != 0
                          : memcmp(with->head[i].packed, without->head[i].packed,
                                   attention_scores(&c, n) * pack_bytes((enum sh_pack)pack)) != 0;
        }
        CU_ASSERT(differ == 0);
        recording_free(with);
        recording_free(without);
    }
    free(plain);
    attention_free(t, &c);
}

static void recorded_or_not(const struct target *t)
{
    try_recorded(t, &(struct shape){4, 2, 40, 0, 0, 0, SH_F32, 0});
    try_recorded(t, &(struct shape){2, 1, 64, 20, 0, 1, SH_F16, 0});
    try_recorded(t, &(struct shape){2, 1, 64, 0, 30, 0, SH_BF16, 0});
}
EACH_BACKEND(recorded_or_not)

static void only_wanted(const struct target *t)
{
    static const unsigned char wanted[MAX_SEQ] = {0, 1, 0, 1}, none[MAX_SEQ] = {0};
    struct attention c;
    struct result r = {0};
    attention_new(t, &c, &shapes[0], lengths_for(t), MAX_SEQ);
    struct recording *all = attention_record(t, &c, SH_PACK_F32, NULL, NULL);
    struct recording *some = attention_record(t, &c, SH_PACK_F32, NULL, wanted);
    matrix_get(t, &c.out);
    for (int i = 0; i < MAX_SEQ * c.a.n_head; i++)
        check_head(&r, all, i / c.a.n_head, i % c.a.n_head);
    CU_ASSERT(r.scores.wrong == 0 && r.out.wrong == 0);     /* out of those that are left out as well */
    for (int i = 0; i < MAX_SEQ * c.a.n_head; i++)
        CU_ASSERT(some->head[i].rows == (wanted[i / c.a.n_head] ? attention_length(&c, i / c.a.n_head) : 0));
    for (int i = 0; i < MAX_SEQ * c.a.n_head; i++)
        CU_ASSERT(!wanted[i / c.a.n_head] ||
                  !memcmp(all->head[i].packed, some->head[i].packed,
                          attention_scores(&c, attention_length(&c, i / c.a.n_head)) * sizeof(float)));
    recording_free(all);
    recording_free(some);
    recording_free(attention_record(t, &c, SH_PACK_F32, NULL, none));
    attention_free(t, &c);
}
EACH_BACKEND(only_wanted)

/* A new device takes no more for itself than it said, whatever is recorded. */
static void try_memory(const struct target *t, const struct shape *s, enum sh_pack pack, const int *length, int n_seq)
{
    static const struct sh_lanes lane = {.n = 2, .lane = {{0.01, 0}, {1, 1}}, .values = 1};
    const struct sh_lanes lanes[MAX_SEQ] = {lane, lane, lane, lane};
    struct target own;
    struct attention c;
    struct sh_props before, after;
    if (target_open(&own, t->which, 2))
        return;
    attention_new(&own, &c, s, length, n_seq);
    own.b->props(own.d, &before);
    struct recording *r = attention_record(&own, &c, pack, lanes, NULL);
    own.b->props(own.d, &after);
    c.a.tap = r->tap;
    size_t said = own.b->attend_bytes(own.d, &c.a), taken = after.peak_bytes - before.peak_bytes;
    if (taken > said)
        printf("# pack %d, %s, window %d: %zu bytes taken, %zu said\n", pack, sh_type_name(s->type), s->window, taken,
               said);
    CU_ASSERT(taken <= said);
    recording_free(r);
    attention_free(&own, &c);
    target_close(&own);
}

static void attend_memory(const struct target *t)
{
    try_memory(t, &(struct shape){2, 2, 40, 0, 0, 0, SH_F32, 0}, SH_PACK_F32, lengths_for(t), MAX_SEQ);
    try_memory(t, &(struct shape){4, 2, 40, 0, 0, 1, SH_F16, 0}, SH_PACK_SETS, lengths_for(t), MAX_SEQ);
    try_memory(t, &(struct shape){6, 2, 40, 20, 0, 0, SH_BF16, 0}, SH_PACK_LOG8, lengths_for(t), MAX_SEQ);
    try_memory(t, &(struct shape){1, 1, 8, 5, 0, 0, SH_F32, 0}, SH_PACK_SETS, (const int[]){1100}, 1);
}
EACH_BACKEND(attend_memory)

int main(void)
{
    static const struct tap_test tests[] = {
        LIST_BACKENDS("attend: f32 operands", numbers_f32),
        LIST_BACKENDS("attend: f16 operands", numbers_f16),
        LIST_BACKENDS("attend: bf16 operands", numbers_bf16),
        LIST_BACKENDS("attend: the same output however it is recorded, the same scores without output",
                      recorded_or_not),
        LIST_BACKENDS("attend: only the sequences that are wanted are handed out", only_wanted),
        LIST_BACKENDS("attend: takes no more memory than it said", attend_memory),
        {0}};
    return tap_run("attend", tests);
}
