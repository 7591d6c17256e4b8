/* SPDX-License-Identifier: Apache-2.0 */
/* Kolibri 1 (Aleph Alpha, 2026): norms before and after the blocks; layers with a window rotate, the others have no
 * positions; in every layer, experts chosen by corrected products and weighted by sigmoids, and a shared one. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(mix.n, 1e5, "num_local_experts", "num_experts"), SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"),
    SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"), SH_FLAG_KEY(SH_MIX_NORMED, "norm_topk_prob"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS,
    SH_NORM_WEIGHT(ATTN_POST, SH_LAYER "post_attn_norm.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_POST, SH_LAYER "post_ffn_norm.weight", MODEL, 0), SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS,
    SH_ROUTER("mlp.gate.weight"), SH_CHOICE("moe.router.expert_bias"),
    SH_CHOICE("mlp.gate.e_score_correction_bias"), SH_LLAMA_EXPERTS, SH_SHARED("mlp.shared_experts"), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->flags &= ~(unsigned)(SH_HAS_BIAS | SH_HAS_OUT_BIAS);     /* no keys of Kolibri                  */
    a->mix.shared_width = 512;
    if (sh_config_count(c, "shared_expert_intermediate_size", (int)1e8, &a->mix.shared_width, e) ||
        sh_config_window(c, 513, a, e) || sh_config_windows(c, sh_but_each, 5, a, e))
        return -1;
    sh_config_still_globals(a);
    a->d_ff = a->mix.width;
    return 0;
}

const struct sh_family sh_family_kolibri1 = {
    .special = "windows with rotation, other layers without positions; experts, norms around blocks",
    .name = "kolibri1", .model_types = SH_WORDS("kolibri1"),
    .architectures = SH_WORDS("Kolibri1ForCausalLM", "Kolibri1Model"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .norm_place = SH_NORM_BOTH, .d_head = 128,
              .mix = {.n = 384, .used = 6, .width = 512, .route = SH_ROUTE_CHOSEN_SIGMOID},
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM},
    .keys = keys, .params = params, .knows = " sliding_window layer_types shared_expert_intermediate_size ",
    .shape = shape, .finish = sh_config_whole_rope};
