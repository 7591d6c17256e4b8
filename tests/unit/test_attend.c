/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/: causal attention of the CPU backend against double precision, for every compiled variant:
 * what it gives and what its tap hands out.
 *
 * Limits. Probabilities: 1e-5 relative and 1e-9 absolute in f32 (2^-11 relative, 2^-25 absolute more
 * in f16); codes of log8 exact unless the double logit lies within 1e-3 of a tie. Rows sum to 1 within
 * 2e-6. Outputs: 1e-5 of the largest |v| (a bf16 one 2^-8 relative more). */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/score.h"
#include "tests/tap.h"
#include "tests/unit/variants.h"

#define CPU sh_backend_cpu

enum { MAX_SEQ = 4, GAP = 3 };                          /* GAP: numbers between two rows of q, k, v, out */

struct call {                                           /* one attend and what it is made of      */
    struct sh_attend a;
    int start[MAX_SEQ + 1], longest;
    float *q, *k, *v, *out;
};

static struct call call_new(const int *lengths, int n_seq, int n_head, int n_kv_head, int d_head)
{
    struct call c = {.a = {.n_head = n_head, .n_kv_head = n_kv_head, .d_head = d_head, .n_seq = n_seq,
                           .scale = 1.0f / sqrtf((float)d_head)}};
    for (int s = 0; s < n_seq; s++) {
        c.start[s + 1] = c.start[s] + lengths[s];
        c.longest = lengths[s] > c.longest ? lengths[s] : c.longest;
    }
    int rows = c.start[n_seq], q_cols = n_head * d_head, kv_cols = n_kv_head * d_head;
    size_t n_q = (size_t)rows * (size_t)(q_cols + GAP), n_kv = (size_t)rows * (size_t)(kv_cols + GAP);
    c.q = variant_normal(n_q, 21, 2);
    c.k = variant_normal(n_kv, 22, 1);
    c.v = variant_normal(n_kv, 23, 1);
    c.out = xcalloc(n_q, sizeof *c.out);
    c.a.q = (struct sh_mat){c.q, SH_F32, rows, q_cols, (size_t)(q_cols + GAP)};
    c.a.k = (struct sh_mat){c.k, SH_F32, rows, kv_cols, (size_t)(kv_cols + GAP)};
    c.a.v = (struct sh_mat){c.v, SH_F32, rows, kv_cols, (size_t)(kv_cols + GAP)};
    c.a.out = (struct sh_mat){c.out, SH_F32, rows, q_cols, (size_t)(q_cols + GAP)};
    return c;
}

static void call_free(struct call *c)
{
    free(c->q);
    free(c->k);
    free(c->v);
    free(c->out);
}

static void attend(struct sh_dev *d, struct call *c)
{
    struct sh_err e;
    c->a.start = c->start;
    CPU.attend(d, &c->a);
    CU_ASSERT_FATAL(CPU.sync(d, &e) == 0);
}

struct taken {                                          /* what a tap handed out                  */
    const struct call *c;
    size_t width;
    struct {
        unsigned char *scores;                          /* all rows so far; NULL: nothing came    */
        int rows;
        pthread_t thread;
    } head[MAX_SEQ * 8];
    int disorder;
};

static void take(void *to, int sequence, int head, int first_row, int n_rows, const void *packed)
{
    struct taken *t = to;
    int length = t->c->start[sequence + 1] - t->c->start[sequence], i = sequence * t->c->a.n_head + head;
    size_t all = (size_t)length * (size_t)(length + 1) / 2 * t->width, at = 0, bytes = 0;
    if (!t->head[i].scores) {
        t->head[i].scores = xmalloc(all);
        t->head[i].thread = pthread_self();
    }
    if (first_row != t->head[i].rows || n_rows < 1 || first_row + n_rows > length ||
        !pthread_equal(t->head[i].thread, pthread_self())) {
        t->disorder++;
        return;
    }
    for (int row = 0; row < first_row + n_rows; row++)
        *(row < first_row ? &at : &bytes) += (size_t)(row + 1) * t->width;
    memcpy(t->head[i].scores + at, packed, bytes);
    t->head[i].rows += n_rows;
}

static struct taken *tap(struct call *c, enum sh_pack pack, const unsigned char *wanted)
{
    static const size_t width[] = {[SH_PACK_F32] = 4, [SH_PACK_F16] = 2, [SH_PACK_LOG8] = 1};
    struct taken *t = xcalloc(1, sizeof *t);
    t->c = c;
    t->width = width[pack];
    c->a.tap = (struct sh_tap){.pack = pack, .rows = take, .to = t, .wanted = wanted};
    return t;
}

static void taken_free(struct taken *t)
{
    for (int i = 0; i < MAX_SEQ * 8; i++)
        free(t->head[i].scores);
    free(t);
}

/* Logits of one row in double, relative to the logarithm of the sum: p[j] = exp(x[j]). */
static void reference_row(const struct call *c, int sequence, int head, int row, double *x)
{
    const struct sh_attend *a = &c->a;
    int base = c->start[sequence], kv = head / (a->n_head / a->n_kv_head);
    const float *q = c->q + (size_t)(base + row) * a->q.stride + head * a->d_head;
    double top = -INFINITY, sum = 0;
    for (int j = 0; j <= row; j++) {
        const float *k = c->k + (size_t)(base + j) * a->k.stride + kv * a->d_head;
        x[j] = 0;
        for (int i = 0; i < a->d_head; i++)
            x[j] += (double)q[i] * k[i];
        x[j] *= (double)a->scale;
        top = x[j] > top ? x[j] : top;
    }
    for (int j = 0; j <= row; j++)
        sum += exp(x[j] - top);
    for (int j = 0; j <= row; j++)
        x[j] -= top + log(sum);
}

static int wrong_score(enum sh_pack pack, const unsigned char *at, double x)
{
    float p;
    uint16_t h;
    double code = -x / (double)SH_LOG8_STEP, expected = exp(x), limit = 1e-5 * expected + 1e-9;
    if (pack == SH_PACK_LOG8)
        return *at != sh_log8_from_logit((float)x) && fabs(code - floor(code) - 0.5) > 1e-3;
    if (pack == SH_PACK_F16) {
        memcpy(&h, at, 2);
        p = sh_f16_to_f32(h);
        limit += 0x1p-11 * expected + 0x1p-25;
    } else {
        memcpy(&p, at, 4);
    }
    return !(fabs(p - expected) <= limit);
}

static void check_head(const struct taken *t, enum sh_pack pack, int sequence, int head)
{
    const struct call *c = t->c;
    int length = c->start[sequence + 1] - c->start[sequence], wrong = 0, bad_sums = 0;
    const unsigned char *at = t->head[sequence * c->a.n_head + head].scores;
    double *x = xmalloc((size_t)length * sizeof *x);
    CU_ASSERT_FATAL(at != NULL && t->head[sequence * c->a.n_head + head].rows == length);
    for (int row = 0; row < length; row++) {
        double sum = 0;
        reference_row(c, sequence, head, row, x);
        for (int j = 0; j <= row; j++, at += t->width) {
            float p;
            wrong += wrong_score(pack, at, x[j]);
            sum += pack == SH_PACK_F32 ? (double)*(const float *)memcpy(&p, at, 4) : 0;
        }
        bad_sums += pack == SH_PACK_F32 && fabs(sum - 1) > 2e-6;
    }
    if (wrong || bad_sums)
        printf("# sequence of %d, head %d of %d, width %d, pack %d: %d wrong scores, %d wrong sums\n", length, head,
               c->a.n_head, c->a.d_head, pack, wrong, bad_sums);
    CU_ASSERT(wrong == 0 && bad_sums == 0);
    free(x);
}

static void check_out(const struct call *c, const void *out)
{
    const struct sh_attend *a = &c->a;
    double *x = xmalloc((size_t)c->longest * sizeof *x);
    int wrong = 0, d = a->d_head;
    for (int work = 0; work < a->n_seq * a->n_head; work++) {
        int s = work / a->n_head, head = work % a->n_head, kv = head / (a->n_head / a->n_kv_head);
        for (int row = 0; row < c->start[s + 1] - c->start[s]; row++) {
            reference_row(c, s, head, row, x);
            for (int i = 0; i < d; i++) {
                double sum = 0, most = 0;
                for (int j = 0; j <= row; j++) {
                    double v = c->v[(size_t)(c->start[s] + j) * a->v.stride + (size_t)(kv * d + i)];
                    sum += exp(x[j]) * v;
                    most = fabs(v) > most ? fabs(v) : most;
                }
                size_t at = (size_t)(c->start[s] + row) * a->out.stride + (size_t)(head * d + i);
                const uint16_t *half = out;
                double y = a->out.type == SH_F32 ? ((const float *)out)[at] : sh_bf16_to_f32(half[at]);
                wrong += !(fabs(y - sum) <= 1e-5 * most + (a->out.type == SH_BF16 ? 0x1.01p-8 * fabs(sum) : 0));
            }
        }
    }
    CU_ASSERT(wrong == 0);
    free(x);
}

static const struct { int n_head, n_kv_head, d_head; } shapes[] = {
    {4, 4, 8}, {8, 2, 40}, {2, 2, 1}, {4, 1, 64}, {2, 2, 129}};
static const int lengths[MAX_SEQ] = {7, 129, 1, 33};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* Every pack over several sequences in one call; the same scores whether the output is wanted or not. */
static void probabilities(enum variant v)
{
    struct sh_dev *d = variant_open(v, 3);
    for (int i = 0; d && i < N_SHAPES; i++)
        for (int pack = SH_PACK_F32; pack <= SH_PACK_LOG8; pack++) {
            struct call c = call_new(lengths, MAX_SEQ, shapes[i].n_head, shapes[i].n_kv_head, shapes[i].d_head);
            struct taken *t = tap(&c, (enum sh_pack)pack, NULL);
            attend(d, &c);
            CU_ASSERT(t->disorder == 0);
            for (int head = 0; head < MAX_SEQ * c.a.n_head; head++)
                check_head(t, (enum sh_pack)pack, head / c.a.n_head, head % c.a.n_head);
            struct taken *alone = tap(&c, (enum sh_pack)pack, NULL);
            c.a.out.at = NULL;
            attend(d, &c);
            for (int head = 0; head < MAX_SEQ * c.a.n_head; head++) {
                size_t n = (size_t)lengths[head / c.a.n_head];
                CU_ASSERT(alone->head[head].rows == t->head[head].rows &&
                          !memcmp(alone->head[head].scores, t->head[head].scores, n * (n + 1) / 2 * t->width));
            }
            taken_free(t);
            taken_free(alone);
            call_free(&c);
        }
    CPU.close(d);
}
EACH_VARIANT(probabilities)

/* f32 and bf16 out; bit for bit the same with and without a tap; nothing between the rows is touched. */
static void outputs(enum variant v)
{
    struct sh_dev *d = variant_open(v, 3);
    for (int i = 0; d && i < 2 * N_SHAPES; i++) {
        struct call c = call_new(lengths, MAX_SEQ, shapes[i / 2].n_head, shapes[i / 2].n_kv_head, shapes[i / 2].d_head);
        size_t bytes = (size_t)c.a.out.rows * c.a.out.stride * sizeof(float);
        float *tapped = xcalloc(1, bytes);
        c.a.out.type = i % 2 ? SH_BF16 : SH_F32;
        attend(d, &c);
        check_out(&c, c.out);
        c.a.out.at = tapped;
        struct taken *t = tap(&c, SH_PACK_LOG8, NULL);
        attend(d, &c);
        CU_ASSERT(memcmp(tapped, c.out, bytes) == 0);
        int touched = 0;
        for (int row = 0; row < c.a.out.rows && c.a.out.type == SH_F32; row++)
            for (int g = 0; g < GAP; g++)
                touched += c.out[(size_t)row * c.a.out.stride + (size_t)(c.a.out.cols + g)] != 0;
        CU_ASSERT(touched == 0);
        taken_free(t);
        free(tapped);
        call_free(&c);
    }
    CPU.close(d);
}
EACH_VARIANT(outputs)

static void only_wanted(void)
{
    const unsigned char wanted[MAX_SEQ] = {0, 1, 0, 1};
    struct sh_dev *d = variant_open(VARIANT_BASE, 2);
    struct call c = call_new(lengths, MAX_SEQ, 4, 2, 8);
    struct taken *t = tap(&c, SH_PACK_F32, wanted);
    attend(d, &c);
    check_out(&c, c.out);
    for (int i = 0; i < MAX_SEQ * c.a.n_head; i++)
        CU_ASSERT(t->head[i].rows == (wanted[i / c.a.n_head] ? lengths[i / c.a.n_head] : 0));
    CU_ASSERT(t->disorder == 0);
    taken_free(t);
    call_free(&c);
    CPU.close(d);
}

/* The last of n queries against keys with these logits; the packed probabilities of that row. */
static void last_row(struct sh_dev *d, enum sh_pack pack, const float *logits, int n, unsigned char *packed)
{
    struct call c = call_new(&n, 1, 1, 1, 1);
    c.a.scale = 1;
    for (int j = 0; j < n; j++) {
        c.q[(size_t)j * c.a.q.stride] = 1;
        c.k[(size_t)j * c.a.k.stride] = logits[j];
    }
    struct taken *t = tap(&c, pack, NULL);
    attend(d, &c);
    CU_ASSERT_FATAL(t->disorder == 0 && t->head[0].rows == n);
    memcpy(packed, t->head[0].scores + (size_t)n * (size_t)(n - 1) / 2 * t->width, (size_t)n * t->width);
    for (int j = 0; j < n && isfinite(logits[j]); j++)
        CU_ASSERT(isfinite(c.out[(size_t)j * c.a.out.stride]));
    taken_free(t);
    call_free(&c);
}

/* One score that is no number: the device says so at the next sync. */
static void refused(enum variant v, float score)
{
    enum { N = 40 };
    struct sh_dev *d = variant_open(v, 1);
    struct call c = call_new(&(int){N}, 1, 1, 1, 1);
    struct sh_err e;
    for (int j = 0; j < N; j++)
        c.q[(size_t)j * c.a.q.stride] = c.k[(size_t)j * c.a.k.stride] = 1;
    c.k[0] = score;
    c.a.scale = 1;
    c.a.start = c.start;
    CPU.attend(d, &c.a);
    CU_ASSERT(CPU.sync(d, &e) == -1 && strstr(e.text, "sequence 0") != NULL);
    call_free(&c);
    CPU.close(d);
}

static void extremes(enum variant v)
{
    enum { N = 77 };
    struct sh_dev *d = variant_open(v, 2);
    float logits[N], p[N];
    uint16_t half[N];
    unsigned char codes[N];
    for (int far = 0; d && far < 5; far++) {            /* one logit far above all others, which are equal */
        static const float above[] = {0, 88, 1e4f, 1e30f, 3e38f};
        for (int j = 0; j < N; j++)
            logits[j] = -above[far];
        int wrong = 0;
        logits[0] = 0;
        last_row(d, SH_PACK_F32, logits, N, (unsigned char *)p);
        last_row(d, SH_PACK_F16, logits, N, (unsigned char *)half);
        last_row(d, SH_PACK_LOG8, logits, N, codes);
        for (int j = 0; j < N; j++) {
            double expected = !far ? 1.0 / N : j ? 0 : 1;
            wrong += !(far ? p[j] == (float)expected : fabs(p[j] - expected) < 1e-7 * expected);
            wrong += !(far ? sh_f16_to_f32(half[j]) == (float)expected : half[j] == sh_f32_to_f16(p[j]));
            wrong += codes[j] != (!far ? sh_log8_from_score((float)expected) : j ? SH_LOG8_ZERO : 0);
        }
        if (wrong)
            printf("# %d of %d scores wrong with the first logit %g above the others\n", wrong, N, (double)above[far]);
        CU_ASSERT(wrong == 0);
    }
    for (int j = 0; j < N; j++)                         /* all of them far from 0: the same as around it */
        logits[j] = 1e6f * (j == N - 1 ? -1.0f : -2.0f);
    if (d) {
        last_row(d, SH_PACK_F32, logits, N, (unsigned char *)p);
        CU_ASSERT(p[N - 1] == 1 && p[0] == 0);
        refused(v, NAN);                                /* a broken row must not look like a sure one */
        refused(v, INFINITY);
        refused(v, -INFINITY);
    }
    CPU.close(d);
}
EACH_VARIANT(extremes)

int main(void)
{
    static const struct tap_test tests[] = {
        LIST_VARIANTS("attend: probabilities in f32, f16, log8, with and without output", probabilities),
        LIST_VARIANTS("attend: output in f32 and bf16, the same when tapped", outputs),
        {"attend: only the sequences that are wanted are handed out", only_wanted},
        LIST_VARIANTS("attend: equal, huge, very negative and broken scores", extremes),
        {0}};
    return tap_run("attend", tests);
}
