/* SPDX-License-Identifier: Apache-2.0 */
/* What a setting needs to hold its tokens: their keys and values, and what its policy stores for them. Keys and values
 * count in 16 bits, as servers keep them, or in fewer if the plan is for fewer. A layer with a window keeps no more
 * than the window, and a layer that the policy leaves alone keeps all. */
#include <stdlib.h>

#include "planner/policy/state.h"
#include "src/app/plan/live_plan.h"
#include "src/base/mem.h"

/* Of `numbers` that are one row of a head's cache. */
static double row_bytes(const struct sh_live_plan *w, int numbers)
{
    const struct sh_kv_format *f = &w->live.format;
    if (f->bits >= 16)
        return 2.0 * numbers;
    return (double)(sh_quant_row_code_bytes(f, numbers) + sh_quant_row_meta_bytes(f, numbers));
}

/* Of one head of the layer; policy NULL: the full cache. */
static double head_bytes(const struct sh_live_plan *w, const struct sh_policy_spec *policy, int layer, int tokens)
{
    const struct sh_arch *a = sh_model_arch(w->live.model);
    int window = sh_arch_window(a, layer), key = a->d_key ? a->d_key : sh_arch_d_head(a, layer);
    int kept = (int)sh_arch_kept(a, layer) / sh_arch_kv_heads(a, layer), values = kept - key;
    if (policy && policy->policy->keeps_all && policy->policy->keeps_all(policy->knob, layer))
        tokens = w->n_token;
    tokens = window > 0 && window < tokens ? window : tokens;
    if (kept <= 0)                      /* it borrows the cache of another layer */
        return 0;
    return tokens * (row_bytes(w, key) + (values > 0 ? row_bytes(w, values) : 0)) +
           (policy ? (double)sh_state_of_head(policy, layer, a->n_layer, sh_arch_d_head(a, layer), tokens, w->n_token)
                   : 0);
}

/* Of all heads. budget NULL: `mean` in each. */
static double cache_bytes(const struct sh_live_plan *w, const struct sh_policy_spec *policy, const int *budget,
                          int mean)
{
    const struct sh_arch *a = sh_model_arch(w->live.model);
    double bytes = 0;
    for (int l = 0; l < a->n_layer; l++)
        for (int h = 0; h < sh_arch_kv_heads(a, l); h++)
            bytes += head_bytes(w, policy, l, budget ? budget[l * a->n_kv_head + h] : mean);
    return bytes;
}

static double n_heads(const struct sh_live_plan *w)
{
    const struct sh_arch *a = sh_model_arch(w->live.model);
    double n = 0;
    for (int l = 0; l < a->n_layer; l++)
        n += sh_arch_kv_heads(a, l);
    return n > 0 ? n : 1;
}

/* As the allocator divides, once it has its evidence; before that, the same in each head. */
double sh_live_bytes(const struct sh_live_plan *w, const struct sh_live_setting *s, int mean)
{
    struct sh_err ignored;
    int *budget = s->allot.heads ? xcalloc((size_t)s->allot.n_layer * (size_t)s->allot.n_head, sizeof *budget) : NULL;
    int is_solved = budget && !sh_allot_solve(&s->allot, mean, w->n_token, budget, &ignored);
    double bytes = cache_bytes(w, &s->policy, is_solved ? budget : NULL, mean) / n_heads(w);
    free(budget);
    return bytes;
}

double sh_live_bytes_share(const struct sh_live_plan *w)
{
    double full = cache_bytes(w, NULL, NULL, w->n_token);
    return full > 0 ? cache_bytes(w, &w->plan.policy, w->plan.budget, 0) / full : 0;
}

int sh_live_limit(const struct sh_live_plan *w, const struct sh_live_setting *s)
{
    const struct sh_live_setting *best = &w->setting[w->best];
    if (!best->meets)
        return w->n_token;
    if (!w->a->by_bytes)
        return best->mean;
    double most = sh_live_bytes(w, best, best->mean);
    int fits = 0, more = w->n_token;
    while (more - fits > 1) {
        int mid = fits + (more - fits) / 2;
        if (sh_live_bytes(w, s, mid) <= most)
            fits = mid;
        else
            more = mid;
    }
    return fits;
}

int sh_live_is_better(const struct sh_live_plan *w, const struct sh_live_setting *a, const struct sh_live_setting *b)
{
    if (a->meets != b->meets)
        return a->meets;
    double x = w->a->by_bytes ? sh_live_bytes(w, a, a->mean) : a->mean;
    double y = w->a->by_bytes ? sh_live_bytes(w, b, b->mean) : b->mean;
    return a->meets && (x < y || x > y) ? x < y : a->goal.high < b->goal.high;
}
