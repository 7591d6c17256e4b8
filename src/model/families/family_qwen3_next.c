/* SPDX-License-Identifier: Apache-2.0 */
/* Qwen3-Next and Qwen 3.5: three layers of the gated delta rule to one that attends. Their memory is counted. */
#include <string.h>

#include "src/model/config.h"
#include "src/model/families/families.h"

#define DELTA_RULE \
    SH_FIXED_FACT(ssm, 3), SH_FIXED_FACT(query_gate, 1), SH_NEEDED_FACT(ssm_key_heads, "linear_num_key_heads"), \
    SH_NEEDED_FACT(ssm_heads, "linear_num_value_heads"), SH_NEEDED_FACT(ssm_head_dim, "linear_value_head_dim"), \
    SH_NEEDED_FACT(ssm_conv, "linear_conv_kernel_dim")
#define KNOWS " layer_types full_attention_interval "
#define EXPERTS \
    SH_FIXED_FACT(shared_gate, 1), SH_NEEDED_FACT(experts, "num_experts", "num_local_experts"), \
    SH_NEEDED_FACT(used, "num_experts_per_tok"), SH_NEEDED_FACT(expert_ffn, "moe_intermediate_size"), \
    SH_FACT(shared_ffn, 0, "shared_expert_intermediate_size")

static const struct sh_fact_key next_facts[] = {
    DELTA_RULE, EXPERTS, SH_USUAL_FACT(moe_every, 1, 1, "decoder_sparse_step"), {.json = {NULL}}};
static const struct sh_fact_key facts[] = {DELTA_RULE, {.json = {NULL}}};
static const struct sh_fact_key moe_facts[] = {DELTA_RULE, EXPERTS, {.json = {NULL}}};

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    int period = 4, key_dim = 0;
    f->moe_offset = f->moe_every - 1;
    if (sh_config_has(c, "mlp_only_layers.0"))
        return sh_config_refuse(c, "mlp_only_layers", "an empty list", e);
    if (sh_facts_count(c, "full_attention_interval", 1, &period, e) ||
        sh_facts_count(c, "linear_key_head_dim", 1, &key_dim, e) ||
        sh_config_flag(c, "attn_output_gate", &f->query_gate, e))
        return -1;
    if (key_dim != f->ssm_head_dim)
        return sh_config_refuse(c, "linear_key_head_dim", "the same as linear_value_head_dim", e);
    int listed = sh_facts_layer_types(c, f, e);
    if (listed <= 0)
        return listed;
    if (period >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "full_attention_interval", "less than 1024", e);
    memset(f->pattern, 'S', (size_t)period);
    f->pattern[period - 1] = 'G';
    f->pattern[period] = '\0';
    return 0;
}

const struct sh_family sh_family_qwen3_next = {
    .name = "qwen3_next", .model_types = SH_WORDS("qwen3_next"),
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM},
    .facts = next_facts, .knows = KNOWS, .count = count};

const struct sh_family sh_family_qwen3_5 = {
    .name = "qwen3_5", .model_types = SH_WORDS("qwen3_5_text", "qwen3_5"),
    .start = {SH_LLAMA_START, .d_head = 256, .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM},
    .facts = facts, .knows = KNOWS, .count = count};

/* Every layer has experts. */
const struct sh_family sh_family_qwen3_5_moe = {
    .name = "qwen3_5_moe", .model_types = SH_WORDS("qwen3_5_moe_text", "qwen3_5_moe"),
    .start = {SH_LLAMA_START, .d_head = 256, .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM},
    .facts = moe_facts, .knows = KNOWS, .count = count};
