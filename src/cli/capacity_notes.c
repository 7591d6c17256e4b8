/* SPDX-License-Identifier: Apache-2.0 */
/* Notes that help to read capacity's numbers (capacity_show.h). */
#include "src/cli/capacity_show.h"

static void bottleneck(struct sh_out *o, const struct sh_capacity_answer *a, const struct sh_capacity_row *r)
{
    if (!r->fits) {
        if (r->room == 0)
            sh_out_note(o, "The cache is not the bottleneck: there is no room for %s, whatever is evicted.", r->unfit);
        return;
    }
    if (a->c.step.bound == SH_BOUND_COMPUTE)
        sh_out_note(o, "The cache is not the bottleneck: a step is compute-bound.");
    else if (r->cache_share < 0.2)
        sh_out_note(o, "The cache is not the bottleneck: it is %.1f %% of what a step reads; without it a step would "
                    "take %.2f ms instead of %.2f.", r->cache_share * 100,
                    (r->decode_s * (1 - r->cache_share)) * 1e3, r->decode_s * 1e3);
}

static void layers(struct sh_out *o, const struct sh_capacity_answer *a)
{
    const struct sh_capacity_ask *k = a->ask;
    int window = 0, idle = 0, states = sh_kv_shape_count(k->shape, SH_MIX_STATE);
    for (int i = 0; i < k->shape->f.layers; i++) {
        int mix = k->shape->layer[i].mix, local = mix == SH_MIX_WINDOW || mix == SH_MIX_CHUNK;
        window += local;
        idle += local && sh_kv_add(sh_kv_budget(&k->rule, i, k->length), k->rule.headroom) >=
                             (uint64_t)k->shape->f.window;
    }
    static const char *const charged[] = {"the window", "the whole length (--windows ignore)",
                                          "the window and what is in flight, in pages",
                                          "the window and what is in flight"};
    if (window)
        sh_out_note(o, "%d of %d layers see at most %d tokens; they are charged %s.", window, k->shape->f.layers,
                    k->shape->f.window, charged[k->rule.windows]);
    if (a->budget && window && idle && k->rule.windows == SH_WINDOWS_MODEL)
        sh_out_note(o, "The budget frees nothing in %d layers, whose window does not exceed it.", idle);
    if (states)
        sh_out_note(o, "%d of %d layers keep a state of fixed size, which a budget does not reduce.", states,
                    k->shape->f.layers);
    if (k->shape->f.latent && k->tp > 1)
        sh_out_note(o, "The latent cache is replicated on each of the %d ranks: tp does not divide it.", k->tp);
    else if (k->shape->f.kv_heads % k->tp && !k->shape->f.latent)
        sh_out_note(o, "%d KV heads on %d ranks: each holds %d, %s; more tp does not shrink the cache.",
                    k->shape->f.kv_heads, k->tp, (k->shape->f.kv_heads + k->tp - 1) / k->tp,
                    k->tp > k->shape->f.kv_heads ? "copies of one another" : "and some less");
}

void sh_capacity_show_notes(struct sh_out *o, const struct sh_capacity_answer *a, const struct sh_capacity_row *r)
{
    const struct sh_capacity_ask *k = a->ask;
    bottleneck(o, a, r);
    layers(o, a);
    if (k->shape->f.heads % k->tp)
        sh_out_note(o, "%d heads are not divisible by tp %d: servers refuse this shape.", k->shape->f.heads, k->tp);
    if (k->shape->f.max_pos && r->length > (uint64_t)k->shape->f.max_pos)
        sh_out_note(o, "The model's context length is %d tokens, less than the length.", k->shape->f.max_pos);
    else if (k->shape->f.max_pos && r->max_length < SH_KV_MOST_TOKENS && r->max_length > (uint64_t)k->shape->f.max_pos)
        sh_out_note(o, "Memory would hold more than the model's context length of %d tokens.",
                    k->shape->f.max_pos);
    if (a->budget && k->rule.page > 1)
        sh_out_note(o, "Pages of %llu tokens: the batch assumes that eviction frees whole pages (compaction).",
                    (unsigned long long)k->rule.page);
    if (a->budget && k->rule.prefix)
        sh_out_note(o, "The budget counts tokens after the shared prefix, which is kept in full.");
    if (k->shape->f.no_vision)
        sh_out_note(o, "The vision encoder's weights are not included; --overhead can account for them.");
    if (k->draft)
        sh_out_note(o, "The draft model's memory is included; tokens/s are without speculation.");
    if (k->tp * k->pp * k->ep > 1 && k->link <= 0)
        sh_out_note(o, "The times do not include transfers between GPUs; --link includes them.");
    if (k->shape->f.experts)
        sh_out_note(o, "Experts are assumed to be equally likely.");
}
