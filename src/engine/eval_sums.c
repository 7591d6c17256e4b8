/* SPDX-License-Identifier: Apache-2.0 */
/* See eval_sums.h. A vocabulary is long, and its exponentials are most of the work: LANES of them at a time. */
#include "src/engine/eval_sums.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/base/clones.h"
#include "src/base/mem.h"
#include "src/base/student.h"
#include "src/engine/sampler.h"

enum { LANES = 8 };

typedef double lanes __attribute__((vector_size(64)));
typedef uint64_t bits __attribute__((vector_size(64)));
typedef float narrow __attribute__((vector_size(32)));

/* e^x for x <= 0, within two roundings; 0 where it would be below the normal numbers. 2^n * e^r with
 * |r| <= ln 2 / 2, whose series ends where the next term is below half a rounding; adding 1.5 * 2^52 rounds to a
 * whole number and leaves n in the low bits. (The loop has to be unrolled: without registers of 64 bytes, vectors that
 * a loop carries are in memory.) */
SH_INLINE void exp_below_0(const lanes *of, lanes *to)
{
    static const double over[] = {      /* k!, for k = 13 .. 0                                    */
        1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320, 1. / 5040, 1. / 720,
        1. / 120, 1. / 24, 1. / 6, 1. / 2, 1, 1};
    const lanes x = *of;
    bits too_small = (bits)(x < -708.0);
    lanes at = x * 1.44269504088896340736 + 0x1.8p52, n = at - 0x1.8p52;
    lanes r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    lanes y = r * over[0] + over[1];
#pragma GCC unroll 16
    for (int k = 2; k < (int)(sizeof over / sizeof *over); k++)
        y = y * r + over[k];
    bits power = ((bits)at << 52) + ((uint64_t)1023 << 52);
    *to = (lanes)((bits)(y * (lanes)power) & ~too_small);
}

SH_INLINE double sum_of(const lanes *x)
{
    const lanes v = *x;
    return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

SH_INLINE void load(const float *x, lanes *to)
{
    narrow some;
    memcpy(&some, x, sizeof some);
    *to = __builtin_convertvector(some, lanes);
}

/* The n < LANES numbers that end a row, then some whose exponential is 0. */
SH_INLINE const float *last_of(const float *x, int n, float *to)
{
    for (int i = 0; i < LANES; i++)
        to[i] = i < n ? x[i] : -FLT_MAX;
    return to;
}

SH_INLINE void add_exp(const float *x, double top, lanes *sum)
{
    lanes at;
    load(x, &at);
    at -= top;
    exp_below_0(&at, &at);
    *sum += at;
}

SH_CLONES static double sum_of_exp(const float *x, double top, int n)
{
    float last[LANES];
    lanes sum = {0};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        add_exp(x + i, top, &sum);
    if (i < n)
        add_exp(last_of(x + i, n - i, last), top, &sum);
    return sum_of(&sum);
}

/* A token without any share in p adds nothing, whatever q gives it. */
SH_INLINE void add_divergence(const float *p, double p_total, const float *q, double q_total, lanes *sum)
{
    lanes a, b, share;
    load(p, &a);
    load(q, &b);
    a -= p_total;
    b -= q_total;
    exp_below_0(&a, &share);
    *sum += (lanes)((bits)(share * (a - b)) & ~(bits)(share == 0.0));
}

SH_CLONES static double divergence(const float *p, double p_total, const float *q, double q_total, int n)
{
    float last_p[LANES], last_q[LANES];
    lanes sum = {0};
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        add_divergence(p + i, p_total, q + i, q_total, &sum);
    if (i < n)
        add_divergence(last_of(p + i, n - i, last_p), p_total, last_of(q + i, n - i, last_q), q_total, &sum);
    return sum_of(&sum);
}

struct sh_eval_row sh_eval_row_of(const float *logits, int n_vocab)
{
    struct sh_err e;
    int32_t best = sh_sampler_best(logits, n_vocab, &e);
    if (best < 0)
        return (struct sh_eval_row){logits, (double)NAN, 0};
    double top = (double)logits[best];
    return (struct sh_eval_row){logits, top + log(sum_of_exp(logits, top, n_vocab)), best};
}

struct sh_eval_point sh_eval_point_of(const struct sh_eval_row *row, const struct sh_eval_row *full, int next,
                                      int n_vocab)
{
    struct sh_eval_point p = {.has_next = next >= 0, .same = !full || full->best == row->best,
                              .is_right = next == row->best};
    if (full) {
        double kl = divergence(full->logits, full->total, row->logits, row->total, n_vocab);
        p.kl = kl < 0 ? 0 : kl;         /* rounding */
    }
    if (next < 0)
        return p;
    p.nll = row->total - (double)row->logits[next];
    p.change = full ? p.nll - (full->total - (double)full->logits[next]) : 0;
    return p;
}

void sh_eval_add(struct sh_eval_sums *s, const struct sh_eval_point *p)
{
    s->rows++;
    s->same += p->same;
    s->kl += p->kl;
    s->kl_2 += p->kl * p->kl;
    if (!p->has_next)
        return;
    s->tokens++;
    s->nll += p->nll;
    s->nll_2 += p->nll * p->nll;
    s->change += p->change;
    s->change_2 += p->change * p->change;
}

void sh_eval_add_row(struct sh_eval_total *t, const struct sh_eval_point *p)
{
    long long k = t->all.rows / SH_EVAL_BLOCK;
    struct sh_eval_sequence *b = &t->block[k < SH_EVAL_BLOCKS ? k : SH_EVAL_BLOCKS - 1];
    sh_eval_add(&t->all, p);
    b->rows++;
    b->kl += p->kl;
    b->tokens += p->has_next;
    b->nll += p->nll;
    b->change += p->change;
}

int sh_eval_bucket(long long n)
{
    int b = 0;
    for (long long most = SH_EVAL_BUCKET_FIRST; n > most && b < SH_EVAL_BUCKETS - 1; most *= 2)
        b++;
    return b;
}

static void add_sums(struct sh_eval_sums *to, const struct sh_eval_sums *from)
{
    to->tokens += from->tokens;
    to->nll += from->nll;
    to->nll_2 += from->nll_2;
    to->change += from->change;
    to->change_2 += from->change_2;
    to->kl += from->kl;
    to->kl_2 += from->kl_2;
    to->rows += from->rows;
    to->same += from->same;
    to->seconds += from->seconds;
    to->read += from->read;
    to->budget_tokens += from->budget_tokens;
    to->texts += from->texts;
    to->kv_bytes = from->kv_bytes > to->kv_bytes ? from->kv_bytes : to->kv_bytes;
    to->peak_tokens = from->peak_tokens > to->peak_tokens ? from->peak_tokens : to->peak_tokens;
}

void sh_eval_place_add(struct sh_eval_place *p, int is_on_host, const char *why)
{
    p->on_host += is_on_host;
    p->on_device += !is_on_host;
    if (why)
        snprintf(p->why_host, sizeof p->why_host, "%s", why);
}

const char *sh_eval_place_name(const struct sh_eval_place *p)
{
    if (p->on_host && p->on_device)
        return "both";
    return p->on_host ? "host" : p->on_device ? "device" : NULL;
}

void sh_eval_place_join(struct sh_eval_place *to, const struct sh_eval_place *from)
{
    to->on_host += from->on_host;
    to->on_device += from->on_device;
    if (from->why_host[0])
        snprintf(to->why_host, sizeof to->why_host, "%s", from->why_host);
}

void sh_eval_total_add(struct sh_eval_total *to, const struct sh_eval_total *from)
{
    add_sums(&to->all, &from->all);
    add_sums(&to->answers, &from->answers);
    to->n_answer += from->n_answer;
    to->n_right += from->n_right;
    sh_eval_place_join(&to->place, &from->place);
    for (int i = 0; i < SH_EVAL_BUCKETS; i++) {
        for (int part = 0; part < SH_EVAL_PARTS; part++)
            add_sums(&to->part[part][i], &from->part[part][i]);
        to->answered[i] += from->answered[i];
        to->right[i] += from->right[i];
    }
}

struct sh_eval_mean sh_eval_share(long long right, long long n)
{
    double mean = n ? (double)right / (double)n : (double)NAN;
    return (struct sh_eval_mean){mean, n > 1 ? sqrt(mean * (1 - mean) / (double)(n - 1)) : (double)NAN};
}

static struct sh_eval_mean mean_of(double sum, double squares, long long n)
{
    double mean = n > 0 ? sum / (double)n : (double)NAN, error = (double)NAN;
    if (n > 1) {
        double variance = (squares - sum * mean) / (double)(n - 1);
        error = sqrt(fmax(variance, 0) / (double)n);
    }
    return (struct sh_eval_mean){mean, error};
}

struct sh_eval_mean sh_eval_nll(const struct sh_eval_sums *s)
{
    return mean_of(s->nll, s->nll_2, s->tokens);
}

struct sh_eval_mean sh_eval_perplexity(const struct sh_eval_sums *s)
{
    struct sh_eval_mean m = sh_eval_nll(s);
    return (struct sh_eval_mean){exp(m.value), exp(m.value) * m.error};
}

struct sh_eval_mean sh_eval_change(const struct sh_eval_sums *s)
{
    return mean_of(s->change, s->change_2, s->tokens);
}

struct sh_eval_mean sh_eval_kl(const struct sh_eval_sums *s)
{
    return mean_of(s->kl, s->kl_2, s->rows);
}

double sh_eval_agreement(const struct sh_eval_sums *s)
{
    return s->rows ? (double)s->same / (double)s->rows : (double)NAN;
}

static void join(struct sh_eval_sequence *to, const struct sh_eval_sequence *from)
{
    to->tokens += from->tokens;
    to->rows += from->rows;
    to->nll += from->nll;
    to->change += from->change;
    to->kl += from->kl;
}

void sh_eval_sequences_add(struct sh_eval_sequences *q, const struct sh_eval_total *text, int by_block)
{
    static const struct sh_eval_sequence none = {0};
    int first = q->n;
    q->at = xreallocarray(q->at, (size_t)q->n + SH_EVAL_BLOCKS, sizeof *q->at);
    for (int i = 0; i < SH_EVAL_BLOCKS && text->block[i].rows > 0; i++) {
        const struct sh_eval_sequence *b = &text->block[i];
        int is_own = q->n == first || (by_block && b->rows >= SH_EVAL_BLOCK / 2);
        if (is_own)
            q->at[q->n++] = none;
        join(&q->at[q->n - 1], b);
    }
    if (q->n == first + 1 && q->at[first].tokens < 1)
        q->n = first;
}

/* value, weight: where those are in a sequence. */
static struct sh_eval_mean over_sequences(const struct sh_eval_sequences *q, size_t value, size_t weight)
{
    double sum = 0, all = 0, squares = 0;
    for (int i = 0; i < q->n; i++) {
        sum += *(const double *)((const char *)&q->at[i] + value);
        all += *(const double *)((const char *)&q->at[i] + weight);
    }
    double n = q->n, mean = sum / all;
    for (int i = 0; i < q->n; i++) {
        double s = *(const double *)((const char *)&q->at[i] + value),
               w = *(const double *)((const char *)&q->at[i] + weight), r = (s - mean * w) / (all / n);
        squares += r * r;
    }
    return (struct sh_eval_mean){mean, n > 1 ? sqrt(squares / (n - 1) / n) : (double)NAN};
}

#define OF(field) offsetof(struct sh_eval_sequence, field)

struct sh_eval_mean sh_eval_sequences_nll(const struct sh_eval_sequences *q)
{
    return over_sequences(q, OF(nll), OF(tokens));
}

struct sh_eval_mean sh_eval_sequences_change(const struct sh_eval_sequences *q)
{
    return over_sequences(q, OF(change), OF(tokens));
}

struct sh_eval_mean sh_eval_sequences_kl(const struct sh_eval_sequences *q)
{
    return over_sequences(q, OF(kl), OF(rows));
}

double sh_eval_increase_bound(struct sh_eval_mean change, long long n)
{
    return expm1(change.value + sh_student_t(SH_EVAL_CONFIDENCE, n - 1) * change.error);
}
