/* SPDX-License-Identifier: Apache-2.0 */
/* Jamba (Lieber et al., 2024): in each period one attention layer and otherwise Mamba; experts likewise. Its memory is
 * counted. */
#include <string.h>

#include "src/model/config.h"
#include "src/model/families/families.h"

static const struct sh_fact_key facts[] = {
    SH_FIXED_FACT(ssm, 1), SH_USUAL_FACT(moe_every, 1, 2, "expert_layer_period"),
    SH_USUAL_FACT(moe_offset, 0, 1, "expert_layer_offset"), SH_USUAL_FACT(ssm_state, 1, 16, "mamba_d_state"),
    SH_USUAL_FACT(ssm_conv, 1, 4, "mamba_d_conv"), SH_NEEDED_FACT(experts, "num_experts"),
    SH_NEEDED_FACT(used, "num_experts_per_tok"), {.json = {NULL}}};

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    int period = 8, offset = 4, expand = 2;
    const char *automatic = NULL;
    struct sh_err ignored = {0};
    f->ssm_rank = f->hidden / 16 + (f->hidden % 16 != 0);
    if (sh_facts_count(c, "attn_layer_period", 1, &period, e) ||
        sh_facts_count(c, "attn_layer_offset", 0, &offset, e) || sh_config_count(c, "mamba_expand", 16, &expand, e))
        return -1;
    if (sh_config_word(c, "mamba_dt_rank", &automatic, &ignored) &&
        sh_facts_count(c, "mamba_dt_rank", 1, &f->ssm_rank, e))
        return -1;
    if (period >= SH_FACTS_PATTERN || offset >= period)
        return sh_config_refuse(c, "attn_layer_offset", "less than attn_layer_period, which must be less than 1024", e);
    memset(f->pattern, 'S', (size_t)period);
    f->pattern[offset] = 'G';
    f->pattern[period] = '\0';
    if (f->hidden > 100000000 / 16)
        return sh_config_refuse(c, "hidden_size", "at most 6250000", e);
    f->ssm_inner = expand * f->hidden;
    f->expert_ffn = f->ffn;
    if (f->experts == 1)                /* then the layers are plain */
        f->experts = f->used = f->expert_ffn = 0;
    return 0;
}

const struct sh_family sh_family_jamba = {
    .special = "state-space layers, attention in one of eight, experts",
    .name = "jamba", .model_types = SH_WORDS("jamba"),
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .facts = facts, .knows = " attn_layer_period sliding_window ", .count = count};
