/* SPDX-License-Identifier: Apache-2.0 */
/* DeepSeek-MoE 16B (DeepSeek, 2024), whose code comes with its files: LLaMA whose later layers have experts chosen by a
 * softmax, and shared ones. llama.cpp does not support expert weights that are divided by their sum. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(mix.n, 1e5, "n_routed_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"),
    SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"), SH_FLAG_KEY(SH_MIX_NORMED, "norm_topk_prob"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_FEED,
    SH_ROUTER("mlp.gate.weight"), SH_LLAMA_EXPERTS, SH_SHARED("mlp.shared_experts"), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->flags &= ~(unsigned)SH_HAS_MLP_BIAS;     /* the family has no mlp_bias */
    return sh_mixture_needs(c, a->mix.n, "n_routed_experts", e) ||
           sh_mixture_needs(c, a->mix.used, "num_experts_per_tok", e) ||
           sh_mixture_shared(a, c, "n_shared_experts", 0, e) || sh_mixture_after(a, c, "first_k_dense_replace", 0, e)
               ? -1 : 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    sh_mixture_leave_one(a);
    if (sh_config_whole_rope(a, c, e))
        return -1;
    if (a->rope.kind != SH_ROPE_PLAIN && a->rope.kind != SH_ROPE_LINEAR && a->rope.kind != SH_ROPE_DYNAMIC)
        return sh_config_refuse(c, "rope_scaling", "linear or dynamic scaling", e);
    return 0;
}

const struct sh_family sh_family_deepseek_moe = {
    .special = "experts next to shared ones, plain layers first",
    .name = "deepseek_moe", .model_types = SH_WORDS("deepseek"), .architectures = SH_WORDS("DeepseekForCausalLM"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .mix = {.width = 1407}, .flags = SH_LLAMA_FLAGS}, .keys = keys, .params = params,
    .gguf = &sh_gguf_deepseek_moe,
    .only = SH_WORDS("moe_layer_freq=1", "scoring_func=\"softmax\"", "head_dim=null", "rope_parameters=null"),
    .knows = " first_k_dense_replace moe_layer_freq ", .shape = shape, .finish = finish};
