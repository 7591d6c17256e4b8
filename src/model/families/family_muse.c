/* SPDX-License-Identifier: Apache-2.0 */
/* The text part of Muse Glimmer (Meta, 2026): windows with rotation and other layers without positions, four norms a
 * layer, the later ones with an epsilon of their own; norms without weights on the embedding, on queries and on keys;
 * gated attention, capped logits. */
#include <stdio.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_activation"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"),
    SH_REAL_KEY(post_eps, 1, "post_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(logit_scale, 1e6, "output_multiplier"), {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_GEMMA_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_FEED,
    SH_MATRIX(ATTN_GATE_W, SH_LAYER "self_attn.gate_proj.weight", Q, MODEL, 0), {.name = NULL}};

/* All but the last layer and each fourth before it. */
static int rule(int layer, int n_layer)
{
    return (n_layer - 1 - layer) % 4 != 0;
}

/* Layers stand still where layer_rope_theta is 0. Its other numbers must be the base of the rotation. */
static int keep_still(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char list[] = "layer_rope_theta";
    int is_listed = sh_config_has(c, list) && !sh_config_is_null(c, list);
    if (is_listed && sh_config_length(c, list) < a->n_layer)
        return sh_config_refuse(c, list, "one number for each layer", e);
    float base = a->rope.base;
    for (int layer = 0; layer < a->n_layer; layer++) {
        char key[40], expected[64];
        float theta = rule(layer, a->n_layer) ? base : 0;
        snprintf(key, sizeof key, "%s.%d", list, layer);
        snprintf(expected, sizeof expected, "0 or rope_theta, which is %g", (double)base);
        if (is_listed && (!sh_config_has(c, key) || sh_config_is_null(c, key)))
            return sh_config_refuse(c, key, expected, e);
        if (is_listed && sh_config_real(c, key, 1e12, &theta, e))
            return -1;
        if (theta > 0 && (theta < base || theta > base))
            return sh_config_refuse(c, key, expected, e);
        if (!(theta > 0))
            sh_arch_keep_still(a, layer);
    }
    return 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->flags &= ~(unsigned)SH_HAS_MLP_BIAS;     /* mlp_bias is not among its keys */
    return sh_wrapper_head(a, c, 0, e) || sh_config_window(c, 2048, a, e) ||
           sh_config_windows(c, rule, a->n_layer, a, e) ? -1 : 0;
}

/* A positive number. */
static int positive(const struct sh_config *c, const char *key, float *out, struct sh_err *e)
{
    if (sh_config_real(c, key, 1e6, out, e))
        return -1;
    return *out > 0 ? 0 : sh_config_refuse(c, key, "a number greater than 0", e);
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    float said = 1;
    if (positive(c, "qk_scale_factor", &a->query_scale, e))
        return -1;
    if (a->query_scale < 1e-3f)         /* layer.c adds queries times the factor less 1 */
        return sh_config_refuse(c, "qk_scale_factor", "a number from 0.001", e);
    if (positive(c, "final_logit_softcapping", &a->head_softcap, e) ||
        positive(c, "output_multiplier", &said, e) || positive(c, "post_norm_eps", &said, e))
        return -1;
    return sh_config_whole_rope(a, c, e) || keep_still(a, c, e) ? -1 : 0;
}

const struct sh_family sh_family_muse_glimmer = {
    .special = "text of Muse Glimmer: windows with rotation, other layers without positions; gated attention",
    .name = "muse_glimmer", .model_types = SH_WORDS("muse_glimmer_text"),
    .architectures = SH_WORDS("MuseGlimmerTextModel"), .prefixes = sh_wrapper_prefixes,
    .start = {.norm = SH_NORM_RMS, .norm_place = SH_NORM_BOTH, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32,
              .norm_eps = 1e-5f, .post_eps = 1e-8f, .init_std = 0.02f, .max_pos = 131072, .rotary_share = 1,
              .rope = {.base = 10000}, .n_kv_head = 2, .d_head = 128, .logit_scale = 0.19611613513818404f,
              .head_softcap = 20, .final_whole = 1, .query_scale = 3.87f,
              .flags = SH_LLAMA_FLAGS | SH_NORM_PLUS_ONE | SH_HAS_EMBED_NORM | SH_HAS_QK_NORM | SH_ATTENTION_GATE},
    .keys = keys, .params = params, .knows = " sliding_window layer_types ", .shape = shape, .finish = finish};
