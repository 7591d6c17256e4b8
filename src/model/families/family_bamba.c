/* SPDX-License-Identifier: Apache-2.0 */
/* Bamba (IBM and others, 2024): LLaMA whose layers are Mamba-2 (recurrent.c), except for a few with attention, which
 * rotate half of each head. */
#include <stdio.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

/* Infinity as transformers 5 writes it, or as it is read. */
static int is_infinite(const struct sh_config *c, const char *key)
{
    char word[48];
    const char *said = NULL;
    struct sh_err ignored = {0};
    snprintf(word, sizeof word, "%s.__float__", key);
    return sh_config_is_null(c, key) ||
           (!sh_config_word(c, word, &said, &ignored) && said && !strcmp(said, "Infinity"));
}

int sh_mamba_limits(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char key[] = "time_step_limit", most[] = "time_step_limit.1";
    struct sh_recurrent *r = &a->recurrent;
    if (!sh_config_has(c, key) || sh_config_is_null(c, key))
        return 0;
    if (sh_config_length(c, key) != 2)
        return sh_config_refuse(c, key, "a list of two numbers", e);
    if (sh_config_real(c, "time_step_limit.0", 1e6, &r->least, e) ||
        (!is_infinite(c, most) && sh_config_real(c, most, 1e6, &r->most, e)))
        return -1;
    int limited = !is_infinite(c, most);
    return limited && (!(r->most > 0) || r->most < r->least)
               ? sh_config_refuse(c, most, "a number above 0, and not below the first", e) : 0;
}

int sh_mamba_wide(struct sh_arch *a, const struct sh_config *c, long long inner, const char *key, struct sh_err *e)
{
    struct sh_recurrent *r = &a->recurrent;
    int conv = 1, biases = 0;
    char expected[96];
    if (sh_config_flag(c, "mamba_conv_bias", &conv, e) || sh_config_flag(c, "mamba_proj_bias", &biases, e))
        return -1;
    snprintf(expected, sizeof expected, "at most %s, which is at most 10^6", key);
    if (inner > 1000000 || inner < r->n_v)
        return sh_config_refuse(c, "mamba_n_heads", expected, e);
    r->has_conv_bias = conv;
    r->has_bias = r->has_out_bias = biases;
    r->d_v = (int)inner / r->n_v;
    if (sh_config_auto(c, "mamba_d_head", 1000000, &r->d_v, e))
        return -1;
    snprintf(expected, sizeof expected, "heads that are %s wide together", key);
    if (!sh_config_is_gguf(c) && (long long)r->n_v * r->d_v != inner)
        return sh_config_refuse(c, "mamba_n_heads", expected, e);
    return sh_config_check_scan(c, "mamba_n_heads", a, e) || sh_mamba_limits(a, c, e) ? -1 : 0;
}

int sh_mamba_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int expand = 2;
    if (sh_config_count(c, "mamba_expand", 1000, &expand, e))
        return -1;
    return sh_mamba_wide(a, c, (long long)a->d_model * expand, "mamba_expand * hidden_size", e);
}

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(rotary_share, 1, "rope_parameters.partial_rotary_factor"), SH_MAMBA_KEYS, {.json = {NULL}}};

static const struct sh_param params[] = {SH_BAMBA_PARAMS, {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int absent = sh_config_attending(c, "attn_layer_indices", a, e);
    for (int i = 0; i < a->n_layer && absent == 1; i++)
        sh_config_set_block(a, i, SH_BLOCK_RECURRENT);
    return absent < 0 ? -1 : sh_mamba_shape(a, c, e);
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
    .keys = keys, .params = params, .only = SH_WORDS("hidden_act=\"silu\""), .knows = " layers_block_type ",
    .shape = shape, .finish = finish};
