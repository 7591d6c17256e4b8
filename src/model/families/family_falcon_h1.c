/* SPDX-License-Identifier: Apache-2.0 */
/* Falcon-H1 (TII, 2025): LLaMA with Mamba-2 (recurrent.c) next to attention in every layer, both reading one norm's
 * output, and a factor for each product. A factor is applied where that costs least, not always where the paper has it:
 * the factor of keys is applied to scores, those of the inputs of attention and Mamba-2 to the outputs of their
 * products. */
#include <stdio.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(rotary_share, 1, "rope_parameters.partial_rotary_factor", "partial_rotary_factor"),
    SH_MAMBA_KEYS, {.json = {NULL}}};

static const struct sh_param params[] = {SH_BAMBA_PARAMS, {.name = NULL}};

/* The width of Mamba-2 is one of its own; where that is null, it follows from mamba_expand. */
static int read_width(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char key[] = "mamba_d_ssm";
    int inner = 1024;
    if (sh_config_has(c, key) && sh_config_is_null(c, key))
        return sh_mamba_shape(a, c, e);
    return sh_config_count(c, key, 1000000, &inner, e) || sh_mamba_wide(a, c, inner, key, e) ? -1 : 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    struct sh_recurrent *r = &a->recurrent;
    int out = 0, normed = 0, first = 1, is_said = sh_config_has(c, "num_key_value_heads");
    for (int i = 0; i < a->n_layer; i++)
        sh_arch_make_linear(a, i);
    if (is_said ? sh_config_is_null(c, "num_key_value_heads") : sh_config_is_gguf(c))
        a->n_kv_head = a->n_head;
    if (sh_config_flag(c, "projectors_bias", &out, e) || sh_config_flag(c, "mamba_rms_norm", &normed, e) ||
        sh_config_flag(c, "mamba_norm_before_gate", &first, e) || read_width(a, c, e))
        return -1;
    r->has_out_bias = out;
    r->normed = normed;
    r->gated_last = first;
    return 0;
}

/* A factor of 0 would erase what it multiplies. With these limits, products and quotients of several factors stay
 * finite. */
#define LEAST 1e-6f
#define MOST 1e6

/* A factor that may be absent or null. */
static int read_factor(const struct sh_config *c, const char *key, float *out, struct sh_err *e)
{
    *out = 1;
    if (sh_config_real(c, key, MOST, out, e))
        return -1;
    return *out >= LEAST ? 0 : sh_config_refuse(c, key, "a number from 1e-6 to 1e6", e);
}

/* The same for a list of factors. */
static int read_factors(const struct sh_config *c, const char *key, int n, float *out, struct sh_err *e)
{
    char expected[48];
    int good = 1;
    for (int i = 0; i < n; i++)
        out[i] = 1;
    if (!sh_config_has(c, key) || sh_config_is_null(c, key))
        return 0;
    snprintf(expected, sizeof expected, "a list of %d numbers from 1e-6 to 1e6", n);
    if (sh_config_length(c, key) != n)
        return sh_config_refuse(c, key, expected, e);
    if (sh_config_reals(c, key, MOST, out, n, e))
        return -1;
    for (int i = 0; i < n; i++)
        good &= out[i] >= LEAST;
    return good ? 0 : sh_config_refuse(c, key, expected, e);
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    struct sh_recurrent *r = &a->recurrent;
    float in, out, key, state_in, mlp[2];
    if (read_factor(c, "embedding_multiplier", &a->embed_scale, e) ||
        read_factor(c, "lm_head_multiplier", &a->logit_scale, e) ||
        read_factor(c, "attention_in_multiplier", &in, e) || read_factor(c, "attention_out_multiplier", &out, e) ||
        read_factor(c, "key_multiplier", &key, e) || read_factor(c, "ssm_in_multiplier", &state_in, e) ||
        read_factor(c, "ssm_out_multiplier", &a->own_scale[SH_ADDS_RECURRENCE], e) ||
        read_factors(c, "mlp_multipliers", 2, mlp, e) || read_factors(c, "ssm_multipliers", 5, r->factor, e))
        return -1;
    a->scale *= in * in * key;
    a->own_scale[SH_ADDS_ATTENTION] = in * out;
    a->attention_bias_scale = 1 / in;
    a->recurrent_bias_scale = 1 / state_in;
    a->gate_scale = mlp[0] < 1 || mlp[0] > 1 ? mlp[0] : 0;
    a->own_scale[SH_ADDS_FEED] = mlp[1];
    int all_one = 1;
    for (int i = 0; i < 5; i++) {
        r->factor[i] *= state_in;
        all_one &= !(r->factor[i] < 1 || r->factor[i] > 1);
    }
    if (all_one)                        /* nothing is multiplied */
        r->factor[0] = 0;
    return sh_config_whole_rope(a, c, e);
}

const struct sh_family sh_family_falcon_h1 = {
    .special = "attention next to a state space (Mamba-2) in every layer, a multiplier for each product",
    .name = "falcon_h1", .model_types = SH_WORDS("falcon_h1"),
    .architectures = SH_WORDS("FalconH1ForCausalLM", "FalconH1Model"), .prefixes = sh_llama_prefixes,
    .start = {.n_kv_head = 8, .max_pos = 8192, .norm = SH_NORM_RMS, .act = SH_ACT_SILU,
              .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f, .init_std = 0.02f, .rotary_share = 1,
              .rope = {.base = 10000}, .flags = SH_LLAMA_FLAGS,
              .recurrent = {.kind = SH_STATE_SPACE, .n_v = 128, .n_k = 1, .d_k = 256, .kernel = 4, .next_to = 1}},
    .keys = keys, .params = params, .gguf = &sh_gguf_falcon_h1, .only = SH_WORDS("hidden_act=\"silu\""),
    .shape = shape, .finish = finish};
