/* SPDX-License-Identifier: Apache-2.0 */
/* InternLM 2 and 2.5 (Cai et al., 2024): LLaMA under names of its own, with q, k and v in one matrix, KV head by KV
 * head. The first files of InternVL have it as their text part. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    {.json = {NULL}}};

#define QKV SH_LAYER "attention.wqkv"
static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "tok_embeddings.weight", VOCAB, EMBED, 0), SH_HEAD_PARAM("output.weight"),
    SH_LLAMA_FINAL_NORM, SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "attention_norm.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_NORM, SH_LAYER "ffn_norm.weight", MODEL, 0),
    SH_LINEAR(Q, QKV, Q, MODEL, SH_HAS_BIAS, SH_INTERLEAVED), SH_LINEAR(K, QKV, KV, MODEL, SH_HAS_BIAS, SH_INTERLEAVED),
    SH_LINEAR(V, QKV, KV, MODEL, SH_HAS_BIAS, SH_INTERLEAVED),
    SH_LINEAR(O, SH_LAYER "attention.wo", MODEL, Q, SH_HAS_OUT_BIAS, 0),
    SH_MATRIX(GATE_W, SH_LAYER "feed_forward.w1.weight", FF, MODEL, 0),
    SH_MATRIX(UP_W, SH_LAYER "feed_forward.w3.weight", FF, MODEL, 0),
    SH_MATRIX(DOWN_W, SH_LAYER "feed_forward.w2.weight", MODEL, FF, 0), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int biased = 1;                         /* attention_bias and mlp_bias are no keys of it          */
    a->flags &= ~(unsigned)(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS);
    if (sh_config_flag(c, "bias", &biased, e))
        return -1;
    a->flags |= biased ? SH_HAS_BIAS | SH_HAS_OUT_BIAS : 0;
    return 0;
}

/* Its own code knows no other scaling. */
static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_whole_rope(a, c, e))
        return -1;
    if (a->rope.kind != SH_ROPE_PLAIN && a->rope.kind != SH_ROPE_LINEAR && a->rope.kind != SH_ROPE_DYNAMIC)
        return sh_config_refuse(c, sh_config_is_filled(c, "rope_scaling") ? "rope_scaling" : "rope_parameters",
                                "linear or dynamic scaling", e);
    return 0;
}

const struct sh_family sh_family_internlm2 = {
    .special = "LLaMA with queries, keys and values in one tensor",
    .name = "internlm2", .model_types = SH_WORDS("internlm2"), .architectures = SH_WORDS("InternLM2ForCausalLM"),
    .prefixes = sh_llama_prefixes, .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS}, .keys = keys, .params = params,
    .gguf = &sh_gguf_internlm2, .only = SH_WORDS("head_dim=null"), .shape = shape, .finish = finish};
