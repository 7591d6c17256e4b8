/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader of capacity's numbers should know beside them (capacity_show.h). */
#include "src/cli/capacity_show.h"

static void bottleneck(struct sh_out *o, const struct sh_capacity_answer *a, const struct sh_capacity_row *r)
{
    if (!r->fits) {
        if (r->room == 0)
            sh_out_note(o, "The cache is not your bottleneck: no room for %s, whatever is evicted.", r->unfit);
        return;
    }
    if (a->c.step.bound == SH_BOUND_COMPUTE)
        sh_out_note(o, "The cache is not your bottleneck: a step is bound by compute.");
    else if (r->cache_share < 0.2)
        sh_out_note(o, "The cache is not your bottleneck: it is %.1f %% of what a step reads; without it a step would "
                    "take %.2f ms in place of %.2f.", r->cache_share * 100,
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
        sh_out_note(o, "%d of %d layers see %d tokens at most; they are charged %s.", window, k->shape->f.layers,
                    k->shape->f.window, charged[k->rule.windows]);
    if (a->budget && window && idle && k->rule.windows == SH_WINDOWS_MODEL)
        sh_out_note(o, "The budget frees nothing in %d layers, whose window is no longer than it.", idle);
    if (states)
        sh_out_note(o, "%d of %d layers keep a state of fixed size, which no budget reduces.", states,
                    k->shape->f.layers);
    if (k->shape->f.latent && k->tp > 1)
        sh_out_note(o, "The latent cache is copied on each of the %d ranks: tp does not divide it.", k->tp);
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
        sh_out_note(o, "%d heads do not divide by tp %d: servers refuse this shape.", k->shape->f.heads, k->tp);
    if (k->shape->f.max_pos && r->length > (uint64_t)k->shape->f.max_pos)
        sh_out_note(o, "The model was made for %d tokens, fewer than the length.", k->shape->f.max_pos);
    else if (k->shape->f.max_pos && r->max_length < SH_KV_MOST_TOKENS && r->max_length > (uint64_t)k->shape->f.max_pos)
        sh_out_note(o, "Memory would hold more tokens than the model was made for, which are %d.",
                    k->shape->f.max_pos);
    if (a->budget && k->rule.page > 1)
        sh_out_note(o, "Pages of %llu: the batch counts on evicted tokens leaving whole pages behind (compaction).",
                    (unsigned long long)k->rule.page);
    if (a->budget && k->rule.prefix)
        sh_out_note(o, "The budget counts tokens behind the shared prefix, which is kept whole.");
    if (k->shape->f.no_vision)
        sh_out_note(o, "The weights of the part that sees pictures are left out; --overhead can count them.");
    if (k->draft)
        sh_out_note(o, "The draft model's memory is counted; tokens/s are without speculation.");
    if (k->tp * k->pp * k->ep > 1 && k->link <= 0)
        sh_out_note(o, "The times leave out what the GPUs send each other; --link counts it.");
    if (k->shape->f.experts)
        sh_out_note(o, "Experts are read as if all were equally likely.");
}
