/* SPDX-License-Identifier: Apache-2.0 */
/* PLM (PLM-Team, 2025), whose code comes with its files: DeepSeek V2's latent attention without a latent of queries,
 * and a feed-forward block without a gate whose activation is ReLU squared. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_PLAIN_FEED,
    SH_LATENT_ATTENTION(SH_LAYER "self_attn.", "o_proj"), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->flags &= ~(unsigned)SH_HAS_MLP_BIAS;     /* the family has no mlp_bias */
    return sh_latent_shape(a, c, e);
}

const struct sh_family sh_family_plm = {
    .special = "latent attention, squared ReLU without a gate",
    .name = "plm", .model_types = SH_WORDS("plm"), .architectures = SH_WORDS("PLMForCausalLM", "PLMModel"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_RELU2, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-6f,
              .init_std = 0.02f, .max_pos = 2048, .rotary_share = 1, .rope = {.base = 10000},
              .latent = {.rank = 512, .d_rope = 64, .d_nope = 128, .d_v = 128},
              .flags = (SH_LLAMA_FLAGS & ~SH_GATED) | SH_TIED_HEAD},
    .keys = sh_latent_keys, .params = params, .gguf = &sh_gguf_plm,
    .only = SH_WORDS("hidden_act=\"relu2\"", "attention_bias=false"), .shape = shape, .finish = sh_latent_finish};
