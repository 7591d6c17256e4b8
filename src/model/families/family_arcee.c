/* SPDX-License-Identifier: Apache-2.0 */
/* Relatives of LLaMA with one thing changed. Arcee's AFM (2025) and Cosmos 3 Edge: a squared ReLU without gate. Helium
 * (Kyutai, 2025): neighbouring elements rotate together. Seed-OSS (ByteDance, 2025): biases on q, k and v, and wider
 * heads. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_PLAIN_FEED, {.name = NULL}};

const struct sh_family sh_family_arcee = {
    .special = "squared ReLU without a gate",
    .name = "arcee", .model_types = SH_WORDS("arcee"), .architectures = SH_WORDS("ArceeForCausalLM", "ArceeModel"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_RELU2, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 4096, .rotary_share = 1, .rope = {.base = 10000},
              .flags = SH_HAS_NORM_AFFINE | SH_HAS_FINAL_NORM},
    .keys = sh_llama_keys, .params = params,
    .gguf = &sh_gguf_arcee, .finish = sh_config_whole_rope};

/* The text part of Cosmos 3 Edge (NVIDIA, 2026): the same. A token has three positions, which are equal for text. The
 * published files have other names, and tensors of a generator of pictures. */
#define ATTENTION SH_LAYER "self_attn."
static const struct sh_param params_cosmos[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_DENSE(UP, "mlp.fc1", FF, MODEL),
    SH_DENSE(DOWN, "mlp.fc2", MODEL, FF), SH_LINEAR(Q, ATTENTION "to_q", Q, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(K, ATTENTION "to_k", KV, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(V, ATTENTION "to_v", KV, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(O, ATTENTION "to_out", MODEL, Q, SH_HAS_OUT_BIAS, 0), SH_LLAMA_PLAIN_FEED, {.name = NULL}};

const struct sh_family sh_family_cosmos3_edge = {
    .special = "text of Cosmos 3 Edge: squared ReLU without a gate",
    .name = "cosmos3_edge", .model_types = SH_WORDS("cosmos3_edge_text"),
    .architectures = SH_WORDS("Cosmos3EdgeTextModel"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_RELU2, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 131072, .rotary_share = 1, .rope = {.base = 100000000}, .d_head = 128,
              .n_kv_head = 8, .flags = SH_HAS_NORM_AFFINE | SH_HAS_FINAL_NORM},
    .keys = sh_llama_keys, .params = params_cosmos,
    .only = SH_WORDS("rope_scaling=null", "rope_parameters.rope_type=\"default\""), .finish = sh_config_whole_rope};

const struct sh_family sh_family_helium = {
    .special = "rotation of neighbours",
    .name = "helium", .model_types = SH_WORDS("helium"), .architectures = SH_WORDS("HeliumForCausalLM", "HeliumModel"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-8f,
              .init_std = 0.02f, .max_pos = 4096, .rotary_share = 1, .rope = {.base = 100000}, .d_head = 128,
              .flags = SH_LLAMA_FLAGS | SH_IN_PAIRS},
    .keys = sh_llama_keys, .params = sh_llama_params, .finish = sh_config_whole_rope};

/* attention_bias is of q, k and v alone. */
static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int out = 0;
    if (sh_config_flag(c, "attention_out_bias", &out, e))
        return -1;
    a->flags = (a->flags & ~(unsigned)SH_HAS_OUT_BIAS) | (out ? SH_HAS_OUT_BIAS : 0);
    return 0;
}

const struct sh_family sh_family_seed_oss = {
    .special = "biases on queries, keys and values",
    .name = "seed_oss", .model_types = SH_WORDS("seed_oss"),
    .architectures = SH_WORDS("SeedOssForCausalLM", "SeedOssModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .d_head = 128, .flags = SH_LLAMA_FLAGS | SH_HAS_BIAS}, .keys = sh_llama_keys,
    .params = sh_llama_params,
    .gguf = &sh_gguf_seed_oss, .shape = shape, .finish = sh_config_whole_rope};
