/* SPDX-License-Identifier: Apache-2.0 */
/* Mellum 2 (JetBrains, 2026): Qwen 3's mixtures with windows in the layers that the config lists; these layers have
 * rotary parameters of their own. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"),
    SH_COUNT_KEY(mix.n, 1e5, "num_local_experts", "num_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"),
    SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"), SH_FLAG_KEY(SH_MIX_NORMED, "norm_topk_prob"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, SH_LLAMA_FEED,
    SH_ROUTER("mlp.gate.weight"), SH_LLAMA_EXPERTS, {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_window(c, 1024, a, e) || sh_config_windows(c, sh_but_each, 1, a, e) ||
           sh_mixture_listed(a, c, 0, e) ? -1 : 0;
}

const struct sh_family sh_family_mellum = {
    .special = "experts, windows with rotation of their own, a norm of each query and key",
    .name = "mellum", .model_types = SH_WORDS("mellum"), .architectures = SH_WORDS("MellumForCausalLM", "MellumModel"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_WITH(1e-6f, 500000), .n_kv_head = 4, .d_head = 128, .local_rope = {.base = 10000},
              .mix = {.n = 64, .used = 8, .width = 896}, .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_MIX_NORMED},
    .keys = keys, .params = params, .gguf = &sh_gguf_mellum,
    .knows = " sliding_window layer_types mlp_layer_types num_nextn_predict_layers mtp_layer_types "
             "mtp_mlp_layer_types first_k_dense_replace ",
    .shape = shape, .finish = sh_config_whole_ropes_by_kind};
