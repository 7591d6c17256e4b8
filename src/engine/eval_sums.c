/* SPDX-License-Identifier: Apache-2.0 */
/* See eval_sums.h. */
#include "src/engine/eval_sums.h"

#include <math.h>

struct sh_eval_row sh_eval_row_of(const float *logits, int n_vocab)
{
    struct sh_eval_row r = {.logits = logits};
    double sum = 0;
    for (int i = 1; i < n_vocab; i++)
        r.best = logits[i] > logits[r.best] ? i : r.best;
    for (int i = 0; i < n_vocab; i++)
        sum += exp((double)(logits[i] - logits[r.best]));
    r.total = (double)logits[r.best] + log(sum);
    return r;
}

static double divergence(const struct sh_eval_row *full, const struct sh_eval_row *row, int n_vocab)
{
    double sum = 0;
    for (int i = 0; i < n_vocab; i++) {
        double a = (double)full->logits[i] - full->total, b = (double)row->logits[i] - row->total;
        sum += exp(a) * (a - b);
    }
    return sum > 0 ? sum : 0;           /* rounding */
}

struct sh_eval_point sh_eval_point_of(const struct sh_eval_row *row, const struct sh_eval_row *full, int next,
                                      int n_vocab)
{
    struct sh_eval_point p = {.has_next = next >= 0, .same = !full || full->best == row->best,
                              .is_right = next == row->best};
    p.kl = full ? divergence(full, row, n_vocab) : 0;
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

int sh_eval_bucket(long long n)
{
    int b = 0;
    for (long long most = SH_EVAL_BUCKET_FIRST; n > most && b < SH_EVAL_BUCKETS - 1; most *= 2)
        b++;
    return b;
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
