/* SPDX-License-Identifier: Apache-2.0 */
/* The newer families in GGUF files, gguf_forms_….c: their architectures' names, and what their keys are called in
 * config.json. Keys and conventions are those of llama.cpp (gguf-py's constants.py, the converters of the families, its
 * loaders). This header has the parts of the tables that many architectures share. */
#ifndef SH_MODEL_FAMILIES_GGUF_FORMS_H
#define SH_MODEL_FAMILIES_GGUF_FORMS_H

#include "src/model/families/families.h"

#define LAYERS SH_GGUF_COUNT_ITEM("block_count", "num_hidden_layers")
#define WIDTH SH_GGUF_COUNT_ITEM("embedding_length", "hidden_size")
#define HEADS \
    SH_GGUF_COUNT_ITEM("attention.head_count", "num_attention_heads"), \
    SH_GGUF_MAYBE(COUNT, "attention.head_count_kv", "num_key_value_heads")
#define POSITIONS SH_GGUF_COUNT_ITEM("context_length", "max_position_embeddings")
#define FEED SH_GGUF_COUNT_ITEM("feed_forward_length", "intermediate_size")
#define RMS SH_GGUF_NUMBER_ITEM("attention.layer_norm_rms_epsilon", "rms_norm_eps")
#define EPSILON(hub) SH_GGUF_NUMBER_ITEM("attention.layer_norm_epsilon", hub)
#define COMMON LAYERS, WIDTH, HEADS, POSITIONS
#define LLAMA COMMON, FEED, RMS
#define EXPERTS(hub) \
    SH_GGUF_COUNT_ITEM("expert_count", hub), SH_GGUF_COUNT_ITEM("expert_used_count", "num_experts_per_tok")
#define EXPERT_WIDTH(hub) SH_GGUF_COUNT_ITEM("expert_feed_forward_length", hub)
#define SIGMOID {.name = "expert_gating_func", .kind = SH_GGUF_GATING, .value = 2, .optional = 1}
#define SOFTMAX {.name = "expert_gating_func", .kind = SH_GGUF_GATING, .value = 1, .optional = 1}
/* Absent, they are 1 and false, whatever the family's usual values are. */
#define WEIGHTS(scale, norm) SH_GGUF_IS(scale, "1.0"), SH_GGUF_IS(norm, "false"), WEIGHTS_OR_USUAL(scale, norm)
#define WEIGHTS_OR_USUAL(scale, norm) \
    SH_GGUF_MAYBE(NUMBER, "expert_weights_scale", scale), SH_GGUF_MAYBE(FLAG, "expert_weights_norm", norm)
#define SHARED(hub) SH_GGUF_MAYBE(COUNT, "expert_shared_count", hub)
#define GROUPS \
    {.name = "expert_group_count", .hub = "n_group", .kind = SH_GGUF_COUNT, .optional = 2}, \
    {.name = "expert_group_used_count", .hub = "topk_group", .kind = SH_GGUF_COUNT, .optional = 2}
#define BLOCKS(list, word, alone) {.hub = list, .kind = SH_GGUF_BLOCKS, .json = word, .value = alone}
#define DENSE(hub) SH_GGUF_MAYBE(COUNT, "leading_dense_block_count", hub)
#define QKV_BIAS(hub) SH_GGUF_IF("blk.0.attn_q.bias", hub, "true", "false")
/* Granite's. */
#define MULTIPLIERS \
    SH_GGUF_MAYBE(NUMBER, "attention.scale", "attention_multiplier"), \
    SH_GGUF_MAYBE(NUMBER, "embedding_scale", "embedding_multiplier"), \
    SH_GGUF_MAYBE(NUMBER, "residual_scale", "residual_multiplier"), \
    SH_GGUF_MAYBE(NUMBER, "logit_scale", "logits_scaling")
#define ROTARY SH_GGUF_ROTARY | SH_GGUF_HEAD
#define FORM(family, ...) const struct sh_gguf_form sh_gguf_##family = {__VA_ARGS__, .base_key = "rope_theta"}

/* Names of tensors: of a norm before the feed-forward block, under the name that others give one after attention; of q,
 * k and v, which hub folders have in one matrix and converters take apart. */
extern const struct sh_gguf_name sh_gguf_after_attention[], sh_gguf_apart[];

#endif
