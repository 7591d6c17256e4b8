/* SPDX-License-Identifier: Apache-2.0 */
/* See eval_sums.h. */
#include "src/engine/eval_sums.h"

#include <math.h>
#include <stdio.h>

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
