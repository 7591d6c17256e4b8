/* SPDX-License-Identifier: Apache-2.0 */
/* See eval_sums.h. */
#include "src/engine/eval_sums.h"

#include <math.h>

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
