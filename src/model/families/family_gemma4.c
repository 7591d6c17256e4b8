/* SPDX-License-Identifier: Apache-2.0 */
/* Gemma 4: layers that see all tokens have heads of their own, and maybe one matrix for keys and values. Its memory
 * is counted. */
#include <stdio.h>
#include <string.h>

#include "src/model/config.h"
#include "src/model/families/families.h"

static const struct sh_fact_key facts[] = {
    SH_USUAL_FACT(window, 1, 512, "sliding_window"), SH_USUAL_FACT(global_head_dim, 1, 512, "global_head_dim"),
    SH_FACT(global_kv_heads, 1, "num_global_key_value_heads"), {.json = {NULL}}};
static const struct sh_fact_key mixture[] = {
    SH_NEEDED_FACT(experts, "num_experts"), SH_NEEDED_FACT(used, "top_k_experts"),
    SH_NEEDED_FACT(expert_ffn, "moe_intermediate_size"), {.json = {NULL}}};

/* Newer files list what differs in single layers. It must be the same in all full-attention layers, and absent in
 * others. Layers are numbered with or without leading zeros. */
static int single_layers(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    int seen = 0;
    f->global_head_dim = f->global_kv_heads = 0;
    for (int i = 0; i < f->layers; i++) {
        char key[4][80];
        int width = 0, heads = 0, is_global = f->pattern[(size_t)i % strlen(f->pattern)] == 'G';
        for (int k = 0; k < 4; k++) {
            snprintf(key[k], sizeof key[k], "per_layer_config.%0*d.%s", k / 2 + 1, i,
                     k % 2 ? "num_key_value_heads" : "head_dim");
            if (sh_facts_count(c, key[k], 1, k % 2 ? &heads : &width, e))
                return -1;
        }
        if (!is_global && !width && !heads)
            continue;
        if (!is_global || (seen++ && (width != f->global_head_dim || heads != f->global_kv_heads)))
            return sh_config_refuse(c, "per_layer_config", "one value for all full-attention layers, and no other "
                                    "layers", e);
        f->global_head_dim = width;
        f->global_kv_heads = heads;
    }
    return 0;
}

/* With experts, every layer has them in addition to its plain block, and three more norms. */
static int experts(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    f->norms = 7;
    f->router_scale = 1;
    f->shared_ffn = f->ffn;
    return sh_facts_read(c, mixture, f, e);
}

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    int mixed = 0;
    if (sh_config_flag(c, "attention_k_eq_v", &f->keys_are_values, e) ||
        sh_config_flag(c, "enable_moe_block", &mixed, e))
        return -1;
    if (!sh_config_has(c, "hidden_size_per_layer_input"))       /* which would then be 256 */
        return sh_fail(e, "%s: key 'hidden_size_per_layer_input' is missing", sh_config_path(c));
    if (sh_config_has(c, "per_layer_config") && single_layers(c, f, e))
        return -1;
    if (!sh_config_has(c, "per_layer_config") && !f->keys_are_values)
        f->global_kv_heads = 0;         /* they have as many as the others */
    return mixed ? experts(f, c, e) : 0;
}

const struct sh_family sh_family_gemma4 = {
    .name = "gemma4", .model_types = SH_WORDS("gemma4_text"),
    .start = {SH_LLAMA_START, .norm_place = SH_NORM_BOTH, .d_head = 256, .n_vocab = 262144,
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_TIED_HEAD},
    .facts = facts, .pattern = "LLLLLG", .knows = " attention_k_eq_v num_experts per_layer_config ", .count = count};
