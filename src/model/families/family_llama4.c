/* SPDX-License-Identifier: Apache-2.0 */
/* Llama 4 (Meta, 2025): three chunked layers to one with full attention and without rotation; one expert of a mixture
 * and one that every token uses. Its memory is counted. */
#include <stdio.h>

#include "src/model/config.h"
#include "src/model/families/families.h"

static const struct sh_fact_key facts[] = {
    SH_USUAL_FACT(window, 1, 8192, "attention_chunk_size"), SH_USUAL_FACT(moe_every, 1, 1, "interleave_moe_layer_step"),
    SH_NEEDED_FACT(experts, "num_local_experts"), SH_USUAL_FACT(used, 1, 1, "num_experts_per_tok"),
    SH_NEEDED_FACT(expert_ffn, "intermediate_size"), SH_FACT(ffn, 1, "intermediate_size_mlp"), {.json = {NULL}}};

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    f->shared_ffn = f->expert_ffn;
    f->moe_offset = f->moe_every - 1;
    int settled = sh_config_has(c, "layer_types.0") || !sh_config_has(c, "no_rope_layers.0");
    for (int i = 0; i < f->layers && !settled; i++) {
        char key[40];
        int rotates = -1;
        snprintf(key, sizeof key, "no_rope_layers.%d", i);
        if (sh_facts_count(c, key, 0, &rotates, e))
            return -1;
        if (rotates < 0)
            return sh_config_refuse(c, key, "0 or 1 for each layer", e);
        if (!rotates != (i % 4 == 3))
            return sh_config_refuse(c, "no_rope_layers", "every fourth layer without rotary positions", e);
    }
    return 0;
}

const struct sh_family sh_family_llama4 = {
    .name = "llama4", .model_types = SH_WORDS("llama4_text"),
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .facts = facts, .pattern = "CCCG", .knows = " no_rope_layers moe_layers ", .count = count};
