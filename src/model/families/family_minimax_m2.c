/* SPDX-License-Identifier: Apache-2.0 */
/* MiniMax-M2: full attention (1 in attn_type_list) in every layer, one norm over the queries of all heads and one over
 * the keys, and only experts, whose width is intermediate_size. Its memory is counted. */
#include <stdio.h>

#include "src/model/config.h"
#include "src/model/families/families.h"

static const struct sh_fact_key facts[] = {
    SH_FIXED_FACT(qk_norm_wide, 1), SH_NEEDED_FACT(experts, "num_local_experts"),
    SH_NEEDED_FACT(used, "num_experts_per_tok"), SH_NEEDED_FACT(expert_ffn, "intermediate_size"), {.json = {NULL}}};

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word norms[] = {{"per_layer", 1}, {NULL, 0}};
    int normed = 1, shared = 0;
    if (sh_config_flag(c, "use_qk_norm", &normed, e) ||
        sh_config_choice(c, "qk_norm_type", norms, &f->qk_norm_wide, e) ||
        sh_facts_count(c, "shared_intermediate_size", 0, &shared, e))
        return -1;
    if (!normed || shared)
        return sh_config_refuse(c, shared ? "shared_intermediate_size" : "use_qk_norm", shared ? "0" : "true", e);
    for (int i = 0; i < f->layers && sh_config_has(c, "attn_type_list.0"); i++) {
        char key[40];
        int kind = -1;
        snprintf(key, sizeof key, "attn_type_list.%d", i);
        if (sh_facts_count(c, key, 0, &kind, e))
            return -1;
        if (kind != 1)
            return sh_config_refuse(c, key, "1 (full attention)", e);
    }
    return 0;
}

const struct sh_family sh_family_minimax_m2 = {
    .name = "minimax_m2", .model_types = SH_WORDS("minimax_m2"),
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .facts = facts, .pattern = "G", .knows = " attn_type_list ", .count = count};
