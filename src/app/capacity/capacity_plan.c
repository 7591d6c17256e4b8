/* SPDX-License-Identifier: Apache-2.0 */
/* See capacity_ask.h: a plan as the rule of a cache, and its evidence in words. */
#include "src/app/capacity/capacity_ask.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"

/* KV heads of a layer. A plan has none for layers that do not attend, which have no cache to count. */
static int heads_of(const struct sh_plan *p, int layer)
{
    return p->heads[layer] ? p->heads[layer] : p->n_kv_head;
}

/* Tokens of the heads that a rank of tp has in a layer of n heads, in a text of n_token. More ranks than heads share
 * copies of them. */
static uint64_t rank_sum(const struct sh_plan *p, int layer, int n, const struct sh_kv_planned *at, int n_token)
{
    int rank = at->rank, tp = at->tp;
    int first = tp >= n ? rank * n / tp : rank * (n / tp) + (rank < n % tp ? rank : n % tp);
    int count = tp >= n ? 1 : n / tp + (rank < n % tp);
    uint64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += (uint64_t)sh_plan_tokens(p, layer, first + i, n_token);
    return sum;
}

static int fullest_rank(const struct sh_plan *p, int tp)
{
    uint64_t most = 0;
    int fullest = 0;
    for (int r = 0; r < tp; r++) {
        struct sh_kv_planned at = {.rank = r, .tp = tp};
        uint64_t sum = 0;
        for (int l = 0; l < p->n_layer; l++)
            sum += p->heads[l] ? rank_sum(p, l, p->heads[l], &at, p->n_token) : 0;
        if (sum > most) {
            most = sum;
            fullest = r;
        }
    }
    return fullest;
}

/* Rounded up. Bytes are counted for as many heads as kv_rule.h says a rank has. */
static uint64_t mean_tokens(const struct sh_kv_planned *at, int layer, uint64_t length)
{
    const struct sh_plan *p = at->plan;
    int n = heads_of(p, layer);
    uint64_t heads = (uint64_t)((n + at->tp - 1) / at->tp);
    return (rank_sum(p, layer, n, at, (int)length) + heads - 1) / heads;
}

int sh_capacity_plan(const struct sh_plan *p, const char *path, const struct sh_kv_shape *s, int tp,
                     struct sh_kv_rule *r, struct sh_err *e)
{
    int heads = sh_kv_shape_most(s).kv_heads;
    if (sh_plan_check_model(p, path, s->f.name, NULL, s->f.layers, heads, NULL, e))
        return -1;
    r->budget = SH_BUDGET_PLAN;
    r->planned = (struct sh_kv_planned){mean_tokens, p, fullest_rank(p, tp), tp};
    return 0;
}

int sh_capacity_same_model(const char *a, const char *b)
{
    const char *x = strrchr(a, '/'), *y = strrchr(b, '/');
    x = x ? x + 1 : a;
    y = y ? y + 1 : b;
    for (; *x && *y; x++, y++)
        if ((*x == '_' ? '-' : tolower((unsigned char)*x)) != (*y == '_' ? '-' : tolower((unsigned char)*y)))
            return 0;
    return *x == *y;
}

/* What the plan's budgets are at a length of requests, 0: of many. */
static void say_length(const struct sh_plan *p, uint64_t length, char *to, size_t bytes)
{
    int n = p->n_token;
    *to = '\0';
    if (!length)
        snprintf(to, bytes, "; budgets for texts of %d tokens, the same shares of others", n);
    else if (length != (uint64_t)n)
        snprintf(to, bytes, "; budgets for texts of %d tokens, the same shares of these%s", n,
                 (double)length > 1.1 * n ? ": longer ones were not measured" : "");
}

/* "perplexity +0.74 % (+0.53 % to +0.96 %)", "kept mass 0.91 (0.9 to 0.92)". */
static void say_value(const struct sh_plan_evidence *v, char *to, size_t bytes)
{
    int is_ppl = !strcmp(v->metric, "ppl_increase"), has_range = isfinite(v->low) && isfinite(v->high);
    int n = is_ppl ? snprintf(to, bytes, "perplexity %+.2f %%", 100 * v->value)
                   : snprintf(to, bytes, "%s %.4g", v->metric, v->value);
    for (char *c = to; !is_ppl && *c; c++)
        *c = *c == '_' ? ' ' : *c;
    if (has_range && n < (int)bytes)
        snprintf(to + n, bytes - (size_t)n, is_ppl ? " (%+.2f %% to %+.2f %%)" : " (%.4g to %.4g)",
                 is_ppl ? 100 * v->low : v->low, is_ppl ? 100 * v->high : v->high);
}

char *sh_capacity_plan_evidence(const struct sh_plan *p, const char *model, uint64_t length)
{
    char other[SH_PLAN_NAME + 64] = "", value[160], beyond[120];
    say_length(p, length, beyond, sizeof beyond);
    if (!p->n_evidence)
        return xasprintf("the plan has no measured quality%s", beyond);
    const struct sh_plan_evidence *v = &p->evidence[0];
    for (int i = 1; i < p->n_evidence && *p->target_metric; i++)
        if (!strcmp(p->evidence[i].metric, p->target_metric))
            v = &p->evidence[i];
    if (!sh_capacity_same_model(p->model, model))
        snprintf(other, sizeof other, "measured on another model, %.200s: ", p->model);
    say_value(v, value, sizeof value);
    return xasprintf("%s%s: %s over %d sequences of %s%s", other, p->policy.policy->name, value, v->sequences,
                     *v->text ? v->text : v->store, beyond);
}
