/* SPDX-License-Identifier: Apache-2.0 */
/* Qwen 1.5, 2 and 3 as mixtures of experts (Yang et al., 2024; 2025); Qwen 2 has one more expert, used by every token.
 * Their memory is counted. */
#include "src/model/config.h"
#include "src/model/families/families.h"

static const struct sh_fact_key facts[] = {
    SH_USUAL_FACT(moe_every, 1, 1, "decoder_sparse_step"), SH_FACT(shared_ffn, 0, "shared_expert_intermediate_size"),
    SH_NEEDED_FACT(experts, "num_experts", "num_local_experts"), SH_NEEDED_FACT(used, "num_experts_per_tok"),
    SH_NEEDED_FACT(expert_ffn, "moe_intermediate_size"), {.json = {NULL}}};

/* Every layer has experts, or every decoder_sparse_step-th; a list of plain layers is not known here. */
static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    f->moe_offset = f->moe_every - 1;
    f->shared_gate = !f->qk_norm;
    return sh_config_has(c, "mlp_only_layers.0") ? sh_config_refuse(c, "mlp_only_layers", "an empty list", e) : 0;
}

const struct sh_family sh_family_qwen2_moe = {
    .name = "qwen2_moe", .model_types = SH_WORDS("qwen2_moe"),
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS | SH_HAS_BIAS},
    .facts = facts, .knows = SH_QWEN_KNOWS, .shape = sh_qwen_shape, .count = count};

const struct sh_family sh_family_qwen3_moe = {
    .name = "qwen3_moe", .model_types = SH_WORDS("qwen3_moe", "qwen3_vl_moe_text", "qwen3_vl_moe"),
    .start = {SH_LLAMA_START, .d_head = 128, .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM},
    .facts = facts, .knows = SH_QWEN_KNOWS, .shape = sh_qwen_shape, .count = count};
