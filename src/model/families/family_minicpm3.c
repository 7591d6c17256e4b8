/* SPDX-License-Identifier: Apache-2.0 */
/* MiniCPM3 (OpenBMB, 2024): latent attention, with factors of embeddings and of the blocks' outputs, and a divisor of
 * logits. */
#include <math.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    float depth = 1.4f, base = 256;
    a->embed_scale = 12;
    if (sh_config_real(c, "scale_emb", 1e6, &a->embed_scale, e) ||
        sh_config_real(c, "scale_depth", 1e6, &depth, e) || sh_config_real(c, "dim_model_base", 1e8, &base, e))
        return -1;
    if (!(a->embed_scale > 0))
        return sh_config_refuse(c, "scale_emb", "a number above 0", e);
    a->residual_scale = sh_config_is_null(c, "scale_depth") ? 1 : depth / sqrtf((float)a->n_layer);
    a->logit_scale = sh_config_is_null(c, "dim_model_base") ? 1 : base / (float)a->d_model;
    a->latent.q_rank = sh_config_has(c, "q_lora_rank") ? a->latent.q_rank : 768;
    a->latent.d_v = a->latent.d_v ? a->latent.d_v : a->d_model / a->n_head;
    return sh_latent_shape(a, c, e);
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int bad = sh_latent_finish(a, c, e);
    a->flags &= ~(unsigned)SH_IN_PAIRS;
    return bad;
}

const struct sh_family sh_family_minicpm3 = {
    .special = "latent attention, multipliers of embedding, residuals and logits",
    .name = "minicpm3", .model_types = SH_WORDS("minicpm3"),
    .architectures = SH_WORDS("MiniCPM3ForCausalLM", "MiniCPM3Model"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.1f, .max_pos = 32768, .rotary_share = 1, .rope = {.base = 10000},
              .latent = {.rank = 256, .d_rope = 32, .d_nope = 64}, .flags = SH_LLAMA_FLAGS | SH_TIED_HEAD},
    .keys = sh_latent_keys, .params = sh_latent_params, .gguf = &sh_gguf_minicpm3, .only = SH_WORDS("mlp_bias=false"),
    .shape = shape, .finish = finish};
