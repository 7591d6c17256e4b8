/* SPDX-License-Identifier: Apache-2.0 */
/* Bamba (IBM and others, 2024): LLaMA whose layers are Mamba-2 (recurrent.c), but for a few of attention that rotate
 * half of each head. */
#include <stdio.h>

#include "src/model/config.h"
#include "src/model/families/families.h"

int sh_mamba_limits(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    struct sh_recurrent *r = &a->recurrent;
    if (!sh_config_has(c, "time_step_limit.1"))
        return 0;
    if (sh_config_real(c, "time_step_limit.0", 1e6, &r->least, e))
        return -1;
    if (sh_config_has(c, "time_step_limit.1.__float__") || sh_config_is(c, "time_step_limit.1", "null"))
        return 0;                       /* infinity, as transformers 5 writes it, or as it is read   */
    return sh_config_real(c, "time_step_limit.1", 1e6, &r->most, e);
}

int sh_mamba_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    struct sh_recurrent *r = &a->recurrent;
    struct sh_err ignored = {0};
    const char *automatic = NULL;
    int expand = 2, conv = 1, biases = 0;
    if (sh_config_count(c, "mamba_expand", 1000, &expand, e) || sh_config_flag(c, "mamba_conv_bias", &conv, e) ||
        sh_config_flag(c, "mamba_proj_bias", &biases, e))
        return -1;
    r->has_conv_bias = conv;
    r->has_bias = biases;
    r->d_v = (int)((long long)a->d_model * expand / r->n_v);
    if (!sh_config_word(c, "mamba_d_head", &automatic, &ignored) && !automatic)
        automatic = "auto";
    if (!automatic && sh_config_count(c, "mamba_d_head", 1000000, &r->d_v, e))
        return -1;
    if (r->d_v < 1)
        return sh_config_refuse(c, "mamba_n_heads", "at most mamba_expand * hidden_size", e);
    return sh_config_check_scan(c, "mamba_n_heads", a, e) || sh_mamba_limits(a, c, e) ? -1 : 0;
}

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_MAMBA_KEYS, {.json = {NULL}}};

#define MAMBA SH_LAYER "mamba."
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_NORM_WEIGHT(FINAL_NORM, "final_layernorm.weight", MODEL, 0),
    SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "input_layernorm.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_NORM, SH_LAYER "pre_ff_layernorm.weight", MODEL, 0), SH_LLAMA_ATTENTION, SH_MAMBA_2(MAMBA),
    SH_DENSE(GATE, "feed_forward.gate_proj", FF, MODEL), SH_DENSE(UP, "feed_forward.up_proj", FF, MODEL),
    SH_DENSE(DOWN, "feed_forward.down_proj", MODEL, FF), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int n = sh_config_length(c, "attn_layer_indices");
    for (int i = 0; i < a->n_layer; i++)
        sh_config_set_block(a, i, SH_BLOCK_RECURRENT);
    for (int i = 0; i < n; i++) {
        char key[48];
        int layer = 0;
        snprintf(key, sizeof key, "attn_layer_indices.%d", i);
        if (sh_config_at_least(c, key, 0, a->n_layer - 1, &layer, e))
            return -1;
        sh_config_set_block(a, layer, SH_BLOCK_ATTENTION);
    }
    return sh_mamba_shape(a, c, e);
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_check_attends(c, "attn_layer_indices", a, e) || sh_config_classic_rope(a, c, e) ? -1 : 0;
}

const struct sh_family sh_family_bamba = {
    .special = "state-space layers (Mamba-2), attention in a few",
    .name = "bamba", .model_types = SH_WORDS("bamba"), .architectures = SH_WORDS("BambaForCausalLM", "BambaModel"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 262144, .rotary_share = 0.5f, .rope = {.base = 10000}, SH_MAMBA_2_START,
              .flags = SH_LLAMA_FLAGS},
    .keys = keys, .params = params, .only = SH_WORDS("hidden_act=\"silu\""), .knows = SH_MAMBA_KNOWS,
    .shape = shape, .finish = finish};
