/* SPDX-License-Identifier: Apache-2.0 */
/* DeepSeek-V2 and V3 and Kimi-K2: latent attention and experts; DeepSeek-V3.2 and GLM-5: latent attention to the
 * tokens that an index chooses. Their memory is counted. */
#include <stdio.h>
#include <string.h>

#include "src/model/config.h"
#include "src/model/families/families.h"

#define LATENT \
    SH_NEEDED_FACT(latent, "kv_lora_rank"), SH_FACT(rope_dim, 1, "qk_rope_head_dim"), \
    SH_FACT(nope_dim, 1, "qk_nope_head_dim"), SH_FACT(v_dim, 1, "v_head_dim"), \
    SH_FACT(dense_first, 0, "first_k_dense_replace"), SH_NEEDED_FACT(experts, "n_routed_experts"), \
    SH_NEEDED_FACT(used, "num_experts_per_tok"), SH_NEEDED_FACT(expert_ffn, "moe_intermediate_size")
#define KNOWS " moe_layer_freq num_nextn_predict_layers "
#define INDEX_KNOWS KNOWS "layer_types mlp_layer_types num_local_experts "

static const struct sh_fact_key facts[] = {LATENT, SH_FACT(q_latent, 1, "q_lora_rank"), {.json = {NULL}}};
static const struct sh_fact_key index_facts[] = {
    LATENT, SH_NEEDED_FACT(index_dim, "index_head_dim"), SH_NEEDED_FACT(index_heads, "index_n_heads"),
    SH_NEEDED_FACT(index_topk, "index_topk"), SH_NEEDED_FACT(q_latent, "q_lora_rank"), {.json = {NULL}}};

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    int step = 1, shared = 0;
    if (sh_facts_count(c, "moe_layer_freq", 1, &step, e) || sh_facts_count(c, "n_shared_experts", 0, &shared, e))
        return -1;
    if (step != 1)
        return sh_config_refuse(c, "moe_layer_freq", "1", e);
    long long width = (long long)shared * f->expert_ffn;
    f->shared_ffn = width <= 100000000 ? (int)width : 0;
    return width <= 100000000 ? 0 : sh_config_refuse(c, "n_shared_experts", "shared experts with a total width of at "
                                                     "most 10^8", e);
}

/* The leading plain layers as newer files list them. The pattern is made anew after that. */
static int listed_feeds(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    static const struct sh_word mixes[] = {{"indexed_attention", 'I'}, {NULL, 0}};
    static const struct sh_word feeds[] = {{"dense", '-'}, {"sparse", 'E'}, {NULL, 0}};
    if (sh_config_length(c, "layer_types") > 0 && sh_facts_pattern(c, "layer_types", mixes, f, e))
        return -1;
    if (sh_config_length(c, "mlp_layer_types") <= 0)
        return 0;
    if (sh_facts_pattern(c, "mlp_layer_types", feeds, f, e))
        return -1;
    f->dense_first = (int)strspn(f->pattern, "-");
    const char *late = strchr(f->pattern + f->dense_first, '-');
    char key[40];
    snprintf(key, sizeof key, "mlp_layer_types.%d", late ? (int)(late - f->pattern) : 0);
    return late ? sh_config_refuse(c, key, "sparse, like the layers before it", e) : 0;
}

/* Layers with an index of their own; the others ("shared") use the choice of the last one before them. They are given
 * by a list, by a word with a letter for each layer, or by a rule: every so many layers, from one on. */
static int index_pattern(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    static const struct sh_word words[] = {{"full", 'I'}, {"F", 'I'}, {"shared", 'G'}, {"S", 'G'}, {NULL, 0}};
    static const char spelled[] = "index_topk_pattern";
    int every = 1, offset = 2;
    const char *letters = NULL;
    struct sh_err ignored = {0};
    if (sh_facts_count(c, "index_topk_freq", 0, &every, e) ||
        sh_facts_count(c, "index_skip_topk_offset", 0, &offset, e))
        return -1;
    if (f->layers >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "num_hidden_layers", "fewer than 1024", e);
    for (const char *const *list = SH_WORDS("indexer_types", spelled); *list; list++)
        if (sh_config_length(c, *list) > 0)
            return sh_facts_pattern(c, *list, words, f, e);
    if (!sh_config_word(c, spelled, &letters, &ignored) && letters &&
        (strlen(letters) != (size_t)f->layers || strspn(letters, "FS") != strlen(letters)))
        return sh_config_refuse(c, spelled, "one letter, F or S, for each layer", e);
    for (int i = 0; i < f->layers; i++) {
        int past = i - offset + 1 > 0 ? i - offset + 1 : 0;
        int is_full = letters ? letters[i] == 'F' : past % (every ? every : 1) == 0;
        f->pattern[i] = is_full ? 'I' : 'G';
    }
    f->pattern[f->layers] = '\0';
    return 0;
}

static int count_indexed(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    return count(f, c, e) || listed_feeds(c, f, e) || index_pattern(c, f, e) ? -1 : 0;
}

const struct sh_family sh_family_deepseek = {
    .name = "deepseek", .model_types = SH_WORDS("deepseek_v2", "deepseek_v3", "kimi_k2"),
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .facts = facts, .knows = KNOWS, .count = count};

const struct sh_family sh_family_deepseek_v32 = {
    .name = "deepseek_v32", .model_types = SH_WORDS("deepseek_v32"),
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .facts = index_facts, .knows = INDEX_KNOWS, .count = count_indexed};

const struct sh_family sh_family_glm_moe_dsa = {
    .name = "glm_moe_dsa", .model_types = SH_WORDS("glm_moe_dsa"),
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .facts = index_facts,
    .knows = INDEX_KNOWS "indexer_types index_topk_freq index_topk_pattern index_skip_topk_offset ",
    .count = count_indexed};
