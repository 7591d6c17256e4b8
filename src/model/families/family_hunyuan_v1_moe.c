/* SPDX-License-Identifier: Apache-2.0 */
/* Hunyuan-A13B (Tencent, 2025): Hunyuan with experts in every layer, and a shared one of the same width. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(d_head, 1e5, "attention_head_dim"), SH_COUNT_KEY(mix.n, 1e5, "num_experts", "num_local_experts"),
    SH_COUNT_KEY(mix.used, 1e5, "moe_topk"), {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION,
    SH_NORM_WEIGHT(Q_NORM, SH_LAYER "self_attn.query_layernorm.weight", HEAD, 0),
    SH_NORM_WEIGHT(K_NORM, SH_LAYER "self_attn.key_layernorm.weight", HEAD, 0), SH_ROUTER("mlp.gate.wg.weight"),
    SH_LLAMA_EXPERTS, SH_SHARED("mlp.shared_mlp"), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->mix.shared_width = a->d_ff;
    return sh_mixture_shape(a, c, e);
}

const struct sh_family sh_family_hunyuan_v1_moe = {
    .special = "experts, a shared expert, a norm of each query and key after the rotation",
    .name = "hunyuan_v1_moe", .model_types = SH_WORDS("hunyuan_v1_moe"),
    .architectures = SH_WORDS("HunYuanMoEV1ForCausalLM", "HunYuanMoEV1Model"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_EPS(1e-5f), .mix = {.n = 1, .used = 1, .scale = 1},
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_QK_NORM_LATE | SH_MIX_NORMED},
    .keys = keys, .params = params, .gguf = &sh_gguf_hunyuan_v1_moe,
    .only = SH_WORDS("use_qk_norm=true", "use_cla=false", "mlp_bias=false"),
    .shape = shape, .finish = sh_hunyuan_finish};
