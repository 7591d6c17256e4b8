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

void sh_eval_add(struct sh_eval_sums *s, const struct sh_eval_row *row, const struct sh_eval_row *full, int next,
                 int n_vocab)
{
    double kl = full ? divergence(full, row, n_vocab) : 0;
    s->rows++;
    s->same += !full || full->best == row->best;
    s->kl += kl;
    s->kl_2 += kl * kl;
    if (next < 0)
        return;
    double nll = row->total - (double)row->logits[next];
    double change = full ? nll - (full->total - (double)full->logits[next]) : 0;
    s->tokens++;
    s->nll += nll;
    s->nll_2 += nll * nll;
    s->change += change;
    s->change_2 += change * change;
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
