/* SPDX-License-Identifier: Apache-2.0 */
/* Cohere's Command R (2024): both blocks read one layer norm without bias, neighbouring elements rotate together,
 * logits are scaled; larger models norm queries and keys, each head with weights of its own. Command R7B and A
 * (cohere2): a window in three of four layers, and no rotation in the others. */
#include "src/model/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "layer_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(logit_scale, 1e6, "logit_scale"), SH_FLAG_KEY(SH_HAS_QK_NORM | SH_QK_NORM_EACH, "use_qk_norm"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_ATTENTION,
    SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "input_layernorm.weight", MODEL, 0),
    SH_VECTORS(Q_NORM_W, SH_LAYER "self_attn.q_norm.weight", HEAD, HEADS, SH_HAS_QK_NORM),
    SH_VECTORS(K_NORM_W, SH_LAYER "self_attn.k_norm.weight", HEAD, KV_HEADS, SH_HAS_QK_NORM),
    SH_LLAMA_FEED, {.name = NULL}};

#define START(base_of_rotation) \
    .norm = SH_NORM_LAYER, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f, \
    .init_std = 0.02f, .max_pos = 8192, .rotary_share = 1, .rope = {.base = base_of_rotation}, .logit_scale = 0.0625f, \
    .flags = SH_LLAMA_FLAGS | SH_PARALLEL | SH_ONE_NORM | SH_IN_PAIRS | SH_TIED_HEAD

const struct sh_family sh_family_cohere = {
    .special = "parallel blocks on one norm, rotation of neighbours, scaled logits",
    .name = "cohere", .model_types = SH_WORDS("cohere"), .architectures = SH_WORDS("CohereForCausalLM", "CohereModel"),
    .prefixes = sh_llama_prefixes, .start = {START(500000)}, .keys = keys, .params = params,
    .gguf = &sh_gguf_cohere,
    .finish = sh_config_classic_rope};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int period = 4;
    if (sh_config_window(c, 4096, a, e) || sh_config_count(c, "sliding_window_pattern", (int)1e8, &period, e) ||
        sh_config_windows(c, sh_but_each, period, a, e))
        return -1;
    sh_config_still_globals(a);
    return 0;
}

const struct sh_family sh_family_cohere2 = {
    .special = "parallel blocks; windows with rotation, other layers without positions",
    .name = "cohere2", .model_types = SH_WORDS("cohere2"),
    .architectures = SH_WORDS("Cohere2ForCausalLM", "Cohere2Model"), .prefixes = sh_llama_prefixes,
    .start = {START(10000)}, .keys = keys, .params = params,
    .gguf = &sh_gguf_cohere2,
    .only = SH_WORDS("use_qk_norm=false", "use_gated_activation=true", "use_parallel_block=true", "rotary_pct=1.0",
                     "position_embedding_type=\"rope_gptj\"", "order_of_interleaved_layers=\"local_attn_first\""),
    .knows = " sliding_window sliding_window_pattern layer_types ", .shape = shape, .finish = sh_config_classic_rope};
