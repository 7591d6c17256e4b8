/* SPDX-License-Identifier: Apache-2.0 */
/* The layouts that servers accept. They refuse: query heads that tp does not divide; KV heads of which neither tp nor
 * their number divides the other; widths of feed-forward blocks that tp does not divide or whose parts are not whole
 * blocks of f8 weights ("is not divisible by weight quantization block_n" in vLLM and SGLang). */
#include <stdio.h>
#include <string.h>

#include "src/app/recommend/recommend.h"

int sh_layout_gpus(const struct sh_clock_layout *l)
{
    return l->tp * l->dp * l->pp;
}

void sh_layout_text(const struct sh_clock_layout *l, int replicas, char to[SH_LAYOUT_TEXT])
{
    const struct { const char *name; int n; } part[] = {{"ep", l->ep}, {"dp", l->dp}, {"pp", l->pp}};
    int n = snprintf(to, SH_LAYOUT_TEXT, "tp %d", l->tp);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (part[i].n > 1)
            n += snprintf(to + n, (size_t)(SH_LAYOUT_TEXT - n), ", %s %d", part[i].name, part[i].n);
    if (replicas > 1)
        snprintf(to + n, (size_t)(SH_LAYOUT_TEXT - n), " x %d", replicas);
}

/* A width that cannot be cut tp ways; block 0: no blocks. */
static int is_odd(const char *what, int width, int block, int tp, char why[SH_REASON])
{
    if (width % tp)
        snprintf(why, SH_REASON, "%s of %d columns is not divisible by %d", what, width, tp);
    else if (block && width / tp % block)
        snprintf(why, SH_REASON, "a part of %s, %d columns, is not a multiple of the f8 weights' blocks of %d", what,
                 width / tp, block);
    else
        return 0;
    return 1;
}

static int has_odd_heads(const struct sh_kv_shape *s, int tp, char why[SH_REASON])
{
    struct sh_err e;
    if (sh_capacity_divides(s, tp, &e)) {
        int own = sh_capacity_odd_heads(s, tp);
        snprintf(why, SH_REASON, "%d heads %sare not divisible by %d", own ? own : s->f.ssm_heads,
                 own ? "" : "of state layers ", tp);
        return 1;
    }
    for (int i = 0; i < s->f.layers; i++) {
        int mix = s->layer[i].mix, heads = s->layer[i].kv_heads;
        int keeps = mix == SH_MIX_FULL || mix == SH_MIX_WINDOW || mix == SH_MIX_CHUNK || mix == SH_MIX_BLOCKS;
        if (!keeps)
            continue;
        if (heads > tp ? heads % tp : tp % heads) {
            snprintf(why, SH_REASON, "%d KV heads can neither be divided by %d nor copied evenly", heads, tp);
            return 1;
        }
    }
    return 0;
}

static int refuses(const struct sh_kv_shape *s, const struct sh_weight_types *t, int tp, char why[SH_REASON])
{
    int block = t->matrices.block;
    int odd = has_odd_heads(s, tp, why);
    for (int i = 0; i < s->f.layers && !odd; i++)
        odd = is_odd("the feed-forward block", s->layer[i].ffn, block, tp, why);
    return odd ||
           is_odd("the shared experts", s->f.shared_ffn, block, tp, why);
}

void sh_recommend_layouts(const struct sh_kv_shape *s, const struct sh_weight_types *t, int machine, int uneven,
                          struct sh_layouts *out)
{
    memset(out, 0, sizeof *out);
    for (int tp = 1; tp <= machine && tp <= 64; tp *= 2) {
        char why[SH_REASON];
        if (!uneven && refuses(s, t, tp, why)) {
            out->refused[out->n_refused].tp = tp;
            memcpy(out->refused[out->n_refused++].why, why, sizeof why);
            continue;
        }
        for (int dp = 1; dp * tp <= machine && (dp == 1 || s->f.experts); dp *= 2) {
            int all = tp * dp, apart = s->f.experts && (dp > 1 || is_odd("an expert", s->f.expert_ffn, t->experts.block,
                                                                         tp, why));
            if (apart && all > s->f.experts)
                continue;
            for (int pp = 1; pp <= 4 && pp <= s->f.layers && out->n < SH_LAYOUTS; pp *= 2)
                out->at[out->n++] = (struct sh_clock_layout){tp, apart ? all : 1, dp, pp};
        }
    }
}
