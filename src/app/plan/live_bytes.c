/* SPDX-License-Identifier: Apache-2.0 */
/* What a setting needs to hold its tokens: their keys and values, and what its policy stores for them. Keys and values
 * count in 16 bits, as servers keep them, or in fewer if the plan is for fewer. */
#include <stdlib.h>

#include "planner/policy/state.h"
#include "src/app/plan/live_plan.h"

static double kv_bytes(const struct sh_live_plan *w, size_t numbers)
{
    const struct sh_kv_format *f = &w->live.format;
    if (f->bits >= 16)
        return 2 * (double)numbers;
    return (double)(sh_quant_row_code_bytes(f, (int)numbers) + sh_quant_row_meta_bytes(f, (int)numbers));
}

/* Of one head of the layer. */
static double head_bytes(const struct sh_live_plan *w, const struct sh_policy_spec *p, int layer, int tokens)
{
    const struct sh_arch *a = sh_model_arch(w->live.model);
    struct sh_policy_head h = {.policy = p->policy, .knob = p->knob, .layer = layer, .n_layer = a->n_layer,
                               .budget = tokens, .capacity = tokens, .n_token = w->n_token,
                               .d_head = sh_arch_d_head(a, layer)};
    return tokens * kv_bytes(w, sh_arch_kept(a, layer)) / sh_arch_kv_heads(a, layer) +
           (double)sh_state_resident_bytes(p->policy, &h);
}

double sh_live_bytes(const struct sh_live_plan *w, const struct sh_live_setting *s, int mean)
{
    const struct sh_arch *a = sh_model_arch(w->live.model);
    double bytes = 0, n = 0;
    for (int l = 0; l < a->n_layer; l++)
        for (int h = 0; h < sh_arch_kv_heads(a, l); h++, n++)
            bytes += head_bytes(w, &s->policy, l, mean);
    return n > 0 ? bytes / n : 0;
}

double sh_live_bytes_share(const struct sh_live_plan *w)
{
    const struct sh_plan *p = &w->plan;
    const struct sh_arch *a = sh_model_arch(w->live.model);
    double bytes = 0, full = 0;
    for (int l = 0; l < a->n_layer; l++) {
        full += w->n_token * kv_bytes(w, sh_arch_kept(a, l));
        for (int h = 0; h < sh_arch_kv_heads(a, l); h++)
            bytes += head_bytes(w, &p->policy, l, p->budget[l * p->n_kv_head + h]);
    }
    return full > 0 ? bytes / full : 0;
}

int sh_live_limit(const struct sh_live_plan *w, const struct sh_live_setting *s)
{
    const struct sh_live_setting *best = &w->setting[w->best];
    if (!best->meets)
        return w->n_token;
    if (!w->a->by_bytes)
        return best->mean;
    double most = sh_live_bytes(w, best, best->mean);
    int fits = 0, more = w->n_token + 1;
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
