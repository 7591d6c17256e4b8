/* SPDX-License-Identifier: Apache-2.0 */
/* Nemotron-H: each layer is one block: Mamba-2, attention, feed-forward or experts. Its memory is counted. */
#include <stdio.h>
#include <string.h>

#include "src/model/config.h"
#include "src/model/families/families.h"

static const struct sh_fact_key facts[] = {
    SH_FIXED_FACT(ssm, 2), SH_FACT(head_dim, 1, "attention_head_dim"), SH_NEEDED_FACT(ssm_heads, "mamba_num_heads"),
    SH_NEEDED_FACT(ssm_head_dim, "mamba_head_dim"), SH_NEEDED_FACT(ssm_state, "ssm_state_size"),
    SH_NEEDED_FACT(ssm_groups, "n_groups"), SH_NEEDED_FACT(ssm_conv, "conv_kernel"), {.json = {NULL}}};
/* Experts that are not gated, maybe after a narrower vector, and a shared one as wide as its own key says. */
static const struct sh_fact_key experts[] = {
    SH_NEEDED_FACT(experts, "n_routed_experts"), SH_NEEDED_FACT(used, "num_experts_per_tok"),
    SH_NEEDED_FACT(expert_ffn, "moe_intermediate_size"), SH_FACT(latent_ffn, 1, "moe_latent_size"),
    SH_NEEDED_FACT(shared_ffn, "moe_shared_expert_intermediate_size"), {.json = {NULL}}};

/* hybrid_override_pattern uses the letters of our pattern, M, *, - and E, one for each layer; newer files have a
 * list. */
static int hybrid_pattern(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    static const struct sh_word words[] = {{"mamba", 'M'}, {"linear_attention", 'M'}, {"attention", '*'},
                                           {"full_attention", '*'}, {"mlp", '-'}, {"moe", 'E'}, {NULL, 0}};
    const char *pattern = NULL;
    if (sh_config_word(c, "hybrid_override_pattern", &pattern, e))
        return -1;
    if (f->layers >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "num_hidden_layers", "fewer than 1024", e);
    if (!pattern && sh_config_has(c, "layers_block_type.0"))
        return sh_facts_pattern(c, "layers_block_type", words, f, e);
    if (!pattern)
        return sh_fail(e, "%s: key 'hybrid_override_pattern' is missing", sh_config_path(c));
    if (strspn(pattern, "M*-E") != strlen(pattern) || strlen(pattern) != (size_t)f->layers)
        return sh_config_refuse(c, "hybrid_override_pattern", "one letter for each layer: M, *, - or E", e);
    snprintf(f->pattern, sizeof f->pattern, "%s", pattern);
    return 0;
}

/* Files without layers of experts may name counts of them all the same. */
static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    return hybrid_pattern(c, f, e) || (strchr(f->pattern, 'E') && sh_facts_read(c, experts, f, e)) ? -1 : 0;
}

const struct sh_family sh_family_nemotron_h = {
    .special = "state-space layers, attention in a few",
    .name = "nemotron_h", .model_types = SH_WORDS("nemotron_h"),
    .start = {.norm = SH_NORM_RMS, .pos = SH_POS_NONE},
    .knows = " hybrid_override_pattern layers_block_type n_routed_experts num_nextn_predict_layers moe_latent_size "
             "num_local_experts ",
    .facts = facts, .count = count};
