/* SPDX-License-Identifier: Apache-2.0 */
/* See capacity.h. */
#include "planner/capacity/capacity.h"

int sh_split_first(int n_layer, int pp, int i)
{
    return (int)((long long)n_layer * i / pp);
}

/* Weights on one GPU, from the parts of a stage. */
static uint64_t weights_of(const struct sh_kv_parts *p, const struct sh_kv_facts *f, int tp, int ep)
{
    uint64_t all = sh_kv_parts_sum(p->bytes), experts = p->bytes[SH_PART_EXPERTS], n = (uint64_t)f->experts;
    if (n) {                            /* the rank with the most experts; they are all alike */
        uint64_t here = (n + (uint64_t)ep - 1) / (uint64_t)ep;
        all += experts / n * here - experts;
    }
    return (all + (uint64_t)tp - 1) / (uint64_t)tp;
}

/* A draft keeps its full cache: its tokens must be those that the model itself still sees. */
static struct sh_kv_bytes draft_cache(const struct sh_capacity_ask *a, uint64_t length)
{
    struct sh_kv_rule r = a->rule;
    r.budget = SH_BUDGET_NONE;
    r.state = 0;
    return sh_kv_bytes(a->draft, &r, 0, a->draft->f.layers, a->tp, length);
}

struct sh_kv_bytes sh_split_cache(const struct sh_capacity_ask *a, int i, uint64_t length)
{
    int n = a->shape->f.layers;
    struct sh_kv_bytes b = sh_kv_bytes(a->shape, &a->rule, sh_split_first(n, a->pp, i),
                                       sh_split_first(n, a->pp, i + 1), a->tp, length);
    if (a->draft && i + 1 == a->pp) {
        struct sh_kv_bytes d = draft_cache(a, length);
        b.token += d.token;
        b.states += d.states;
        b.sequence = sh_kv_add(b.sequence, d.sequence);
        b.prefix = sh_kv_add(b.prefix, d.prefix);
    }
    return b;
}

void sh_split_stage(const struct sh_capacity_ask *a, int i, uint64_t length, struct sh_capacity_stage *out)
{
    const struct sh_kv_shape *s = a->shape;
    struct sh_capacity_stage g = {.first = sh_split_first(s->f.layers, a->pp, i),
                                  .last = sh_split_first(s->f.layers, a->pp, i + 1)};
    int is_last = i + 1 == a->pp;
    if (i == 0)
        sh_kv_weights_first(s, &a->weights, &g.parts);
    sh_kv_weights_layers(s, g.first, g.last, &a->weights, &g.parts);
    if (is_last)
        sh_kv_weights_last(s, &a->weights, a->pp > 1, &g.parts);
    g.weights = weights_of(&g.parts, &s->f, a->tp, a->ep);
    g.lora = sh_kv_mul(a->lora.adapters, 2 * sh_lora_parameters(s, g.first, g.last, &a->lora, a->tp));
    g.weights += g.lora;
    g.kv = sh_split_cache(a, i, length);
    if (a->draft && is_last) {
        struct sh_kv_parts d = sh_kv_weights_all(a->draft, &a->draft_weights);
        g.draft_weights = weights_of(&d, &a->draft->f, a->tp, a->ep);
        g.draft_kv = draft_cache(a, length);
        g.weights += g.draft_weights;
    }
    *out = g;
}
