/* SPDX-License-Identifier: Apache-2.0 */
/* What is particular to the config of model types some of whose layers keep a state in place of a cache
 * (capacity_config.h). */
#include <stdio.h>
#include <string.h>

#include "src/app/capacity/capacity_config.h"

#define COUNT(key, min, field) sh_config_at_least(c, key, min, 100000000, field, e)

static int need(const struct sh_config *c, const char *key, int *field, struct sh_err *e)
{
    *field = 0;
    if (COUNT(key, 1, field))
        return -1;
    return *field ? 0 : sh_fail(e, "%s: key '%s' is missing", sh_config_path(c), key);
}

/* Newer files list the kinds of layers. */
static int block_types(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    static const struct sh_word words[] = {{"mamba", 'M'}, {"linear_attention", 'M'}, {"attention", '*'},
                                           {"full_attention", '*'}, {"mlp", '-'},
                                           {"moe", 'E'}, {NULL, 0}};
    for (int i = 0; i < f->layers && i + 1 < SH_FACTS_PATTERN; i++) {
        char key[48];
        int kind = 0;
        snprintf(key, sizeof key, "layers_block_type.%d", i);
        if (sh_config_choice(c, key, words, &kind, e))
            return -1;
        if (!kind)
            return sh_config_refuse(c, key, "a word for each layer", e);
        f->pattern[i] = (char)kind;
        f->pattern[i + 1] = '\0';
    }
    return 0;
}

/* hybrid_override_pattern is written in the letters of our pattern: M, *, - and E. Such a file has as many layers
 * as letters; newer ones have a list. */
static int hybrid_pattern(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    const char *pattern = NULL;
    if (sh_config_word(c, "hybrid_override_pattern", &pattern, e))
        return -1;
    if (f->layers >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "num_hidden_layers", "fewer than 1024", e);
    if (!pattern && sh_config_has(c, "layers_block_type.0"))
        return block_types(c, f, e);
    if (!pattern)
        return sh_fail(e, "%s: key 'hybrid_override_pattern' is missing", sh_config_path(c));
    if (strspn(pattern, "M*-E") != strlen(pattern) || strlen(pattern) != (size_t)f->layers)
        return sh_config_refuse(c, "hybrid_override_pattern", "a letter of M * - E for each layer", e);
    snprintf(f->pattern, sizeof f->pattern, "%s", pattern);
    return 0;
}

/* Experts that are not gated, maybe behind a narrower vector, and a shared one as wide as its own key says. Files
 * without such layers may name counts all the same. */
static int pattern_experts(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    if (!strchr(f->pattern, 'E'))
        return 0;
    return need(c, "n_routed_experts", &f->experts, e) || need(c, "num_experts_per_tok", &f->used, e) ||
           need(c, "moe_intermediate_size", &f->expert_ffn, e) || COUNT("moe_latent_size", 1, &f->latent_ffn) ||
           need(c, "moe_shared_expert_intermediate_size", &f->shared_ffn, e) ? -1 : 0;
}

int sh_capacity_nemotron(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    if (hybrid_pattern(c, f, e) || pattern_experts(c, f, e))
        return -1;
    f->ssm = 2;
    static const char *const heads[3] = {"attention_head_dim", NULL, NULL};
    return sh_capacity_count(c, heads, 1, &f->head_dim, e) || need(c, "mamba_num_heads", &f->ssm_heads, e) ||
           need(c, "mamba_head_dim", &f->ssm_head_dim, e) || need(c, "ssm_state_size", &f->ssm_state, e) ||
           need(c, "n_groups", &f->ssm_groups, e) || need(c, "conv_kernel", &f->ssm_conv, e) ? -1 : 0;
}

/* One attention layer in each period, experts likewise. */
int sh_capacity_jamba(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    int period = 8, offset = 4, expand = 2, rank = f->hidden / 16 + (f->hidden % 16 != 0);
    const char *automatic = NULL;
    struct sh_err ignored = {0};
    f->moe_every = 2;
    f->moe_offset = 1;
    f->ssm = 1;
    f->ssm_state = 16;
    f->ssm_conv = 4;
    if (COUNT("attn_layer_period", 1, &period) || COUNT("attn_layer_offset", 0, &offset) ||
        COUNT("expert_layer_period", 1, &f->moe_every) || COUNT("expert_layer_offset", 0, &f->moe_offset) ||
        COUNT("mamba_d_state", 1, &f->ssm_state) || COUNT("mamba_d_conv", 1, &f->ssm_conv) ||
        sh_config_count(c, "mamba_expand", 16, &expand, e) || need(c, "num_experts", &f->experts, e) ||
        need(c, "num_experts_per_tok", &f->used, e))
        return -1;
    if (sh_config_word(c, "mamba_dt_rank", &automatic, &ignored) && COUNT("mamba_dt_rank", 1, &rank))
        return -1;
    if (period >= SH_FACTS_PATTERN || offset >= period)
        return sh_config_refuse(c, "attn_layer_offset", "less than attn_layer_period, and that less than 1024", e);
    memset(f->pattern, 'S', (size_t)period);
    f->pattern[offset] = 'G';
    f->pattern[period] = '\0';
    if (f->hidden > 100000000 / 16)
        return sh_config_refuse(c, "hidden_size", "at most 6250000", e);
    f->ssm_inner = expand * f->hidden;
    f->ssm_rank = rank;
    f->expert_ffn = f->ffn;
    if (f->experts == 1)                /* then the layers are plain */
        f->experts = f->used = f->expert_ffn = 0;
    return 0;
}

/* Qwen3-Next and 3.5: three layers of the gated delta rule to one that attends. */
static int delta_rule(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    int period = 4, key_dim = 0;
    f->ssm = 3;
    if (sh_config_has(c, "mlp_only_layers.0"))
        return sh_config_refuse(c, "mlp_only_layers", "an empty list", e);
    if (COUNT("full_attention_interval", 1, &period) || need(c, "linear_num_key_heads", &f->ssm_key_heads, e) ||
        need(c, "linear_num_value_heads", &f->ssm_heads, e) || need(c, "linear_value_head_dim", &f->ssm_head_dim, e) ||
        need(c, "linear_key_head_dim", &key_dim, e) || need(c, "linear_conv_kernel_dim", &f->ssm_conv, e))
        return -1;
    if (key_dim != f->ssm_head_dim)
        return sh_config_refuse(c, "linear_key_head_dim", "the same as linear_value_head_dim", e);
    int listed = sh_capacity_layer_types(c, f, e);
    if (listed <= 0)
        return listed;
    if (period >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "full_attention_interval", "less than 1024", e);
    memset(f->pattern, 'S', (size_t)period);
    f->pattern[period - 1] = 'G';
    f->pattern[period] = '\0';
    return 0;
}

static int delta_experts(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    return need(c, sh_config_has(c, "num_experts") ? "num_experts" : "num_local_experts", &f->experts, e) ||
           need(c, "num_experts_per_tok", &f->used, e) || need(c, "moe_intermediate_size", &f->expert_ffn, e) ||
           COUNT("shared_expert_intermediate_size", 0, &f->shared_ffn) ? -1 : 0;
}

int sh_capacity_qwen_next(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    if (delta_rule(c, f, e) || delta_experts(c, f, e) || COUNT("decoder_sparse_step", 1, &f->moe_every))
        return -1;
    f->moe_offset = f->moe_every - 1;
    return 0;
}

int sh_capacity_qwen_5(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    return sh_config_flag(c, "attn_output_gate", &f->query_gate, e) || delta_rule(c, f, e) ? -1 : 0;
}

/* Every layer has experts. */
int sh_capacity_qwen_5_moe(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    return sh_capacity_qwen_5(c, f, e) || delta_experts(c, f, e) ? -1 : 0;
}
