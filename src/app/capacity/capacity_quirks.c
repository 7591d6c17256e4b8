/* SPDX-License-Identifier: Apache-2.0 */
/* What is particular to the config of each model type whose layers attend to tokens (capacity_config.h);
 * sources are the model types' own configuration classes in transformers. */
#include <stdio.h>
#include <string.h>

#include "src/app/capacity/capacity_config.h"

#define COUNT(key, min, field) sh_config_at_least(c, key, min, 100000000, field, e)

int sh_capacity_opt(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    int before = 1, removed = 0, bias = 1;
    if (COUNT("word_embed_proj_dim", 1, &f->embed_width) || sh_config_flag(c, "do_layer_norm_before", &before, e) ||
        sh_config_flag(c, "_remove_final_layer_norm", &removed, e) || sh_config_flag(c, "enable_bias", &bias, e))
        return -1;
    f->positions = f->max_pos + 2;
    f->post_norm = !before || removed;
    f->qkv_bias = f->o_bias = f->mlp_bias = bias;
    return 0;
}

int sh_capacity_gpt2(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    (void)c, (void)e;
    f->positions = f->max_pos;
    return 0;
}

/* attention_types is [[["global", "local"], times]]; without it the two kinds alternate. */
int sh_capacity_gpt_neo(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    static const struct sh_word words[] = {{"global", 'G'}, {"local", 'L'}, {NULL, 0}};
    f->positions = f->max_pos;
    f->window = 256;
    snprintf(f->pattern, sizeof f->pattern, "GL");
    if (COUNT("window_size", 1, &f->window))
        return -1;
    if (sh_config_has(c, "attention_types.1"))
        return sh_config_refuse(c, "attention_types", "a list of one pair: kinds and how often", e);
    for (int i = 0; sh_config_has(c, "attention_types.0.0.0") && i < 8; i++) {
        char key[40];
        int kind = 0;
        snprintf(key, sizeof key, "attention_types.0.0.%d", i);
        if (sh_config_choice(c, key, words, &kind, e))
            return -1;
        f->pattern[i] = (char)kind;     /* 0 behind the last */
        f->pattern[i + 1] = '\0';
    }
    return 0;
}

/* num_kv_heads counts in the new architecture only; the old one has one with multi_query and else as many as
 * heads. */
int sh_capacity_falcon(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    int newer = 0, multi = 1, parallel = 1, bias = 0, kv = 0, norms = 2;
    static const char *const names[3] = {"num_kv_heads", "n_head_kv", NULL};
    if (sh_config_flag(c, "new_decoder_architecture", &newer, e) || sh_config_flag(c, "multi_query", &multi, e) ||
        sh_config_flag(c, "parallel_attn", &parallel, e) || sh_config_flag(c, "bias", &bias, e) ||
        sh_capacity_count(c, names, 1, &kv, e) || COUNT("num_ln_in_parallel_attn", 1, &norms))
        return -1;
    f->kv_heads = newer ? kv : multi ? 1 : f->heads;
    f->norms = newer ? norms : parallel ? 1 : 2;
    f->qkv_bias = f->o_bias = f->mlp_bias = bias;
    return 0;
}

int sh_capacity_mpt(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    static const struct sh_word kinds[] = {{"multihead_attention", 0}, {"multiquery_attention", 1},
                                           {"grouped_query_attention", 2}, {NULL, 0}};
    int kind = 0, none = 1, alibi = 0;
    float expansion = 4;
    if (sh_config_choice(c, "attn_config.attn_type", kinds, &kind, e) || sh_config_flag(c, "no_bias", &none, e) ||
        sh_config_flag(c, "attn_config.alibi", &alibi, e) || COUNT("attn_config.kv_n_heads", 1, &f->kv_heads) ||
        sh_config_real(c, "expansion_ratio", 64, &expansion, e))
        return -1;
    if (kind == 2 && !f->kv_heads)
        return sh_config_refuse(c, "attn_config.kv_n_heads", "a count of KV heads", e);
    f->kv_heads = kind == 1 ? 1 : f->kv_heads;
    f->norm = none ? SH_KEPT_SCALE : SH_KEPT_LAYER;
    f->qkv_bias = f->o_bias = f->mlp_bias = !none;
    f->positions = alibi ? 0 : f->max_pos;
    f->ffn = (int)(expansion * (float)f->hidden);
    return 0;
}

/* A window of every layer; null means none. */
static int all_windowed(const struct sh_config *c, struct sh_kv_facts *f, int fallback, struct sh_err *e)
{
    f->window = sh_config_has(c, "sliding_window") ? 0 : fallback;
    if (COUNT("sliding_window", 1, &f->window))
        return -1;
    if (f->window)
        snprintf(f->pattern, sizeof f->pattern, "L");
    return 0;
}

int sh_capacity_mistral(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    return all_windowed(c, f, 4096, e);
}

int sh_capacity_phi3(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    return all_windowed(c, f, 0, e);
}

static int experts(const struct sh_config *c, const char *number, const char *used, const char *width,
                   struct sh_kv_facts *f, struct sh_err *e)
{
    if (COUNT(number, 1, &f->experts) || COUNT(used, 1, &f->used) || COUNT(width, 1, &f->expert_ffn))
        return -1;
    const char *missing = !f->experts ? number : !f->used ? used : !f->expert_ffn ? width : NULL;
    return missing ? sh_fail(e, "%s: key '%s' is missing", sh_config_path(c), missing) : 0;
}

int sh_capacity_mixtral(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    f->used = 2;
    return all_windowed(c, f, 0, e) || experts(c, "num_local_experts", "num_experts_per_tok", "intermediate_size", f,
                                               e)
               ? -1 : 0;
}

/* The window counts only with use_sliding_window, and in the layers from max_window_layers on. */
int sh_capacity_qwen(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    int uses = 0, first = 28;
    f->window = 4096;
    if (sh_config_flag(c, "use_sliding_window", &uses, e) || COUNT("sliding_window", 0, &f->window) ||
        COUNT("max_window_layers", 0, &first))
        return -1;
    int listed = sh_capacity_layer_types(c, f, e);
    if (listed <= 0 || !uses || !f->window)
        return listed < 0 ? -1 : 0;
    if (f->layers >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "num_hidden_layers", "fewer than 1024 with use_sliding_window", e);
    for (int i = 0; i < f->layers; i++) {
        f->pattern[i] = i >= first ? 'L' : 'G';
        f->pattern[i + 1] = '\0';
    }
    return 0;
}

/* Qwen 2 with biases of queries, keys and values alone. */
int sh_capacity_mimo(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    f->o_bias = 0;
    return sh_capacity_qwen(c, f, e);
}

/* Every layer has experts, or every decoder_sparse_step-th; a list of plain layers is not known here. */
static int expert_steps(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    if (sh_config_has(c, "mlp_only_layers.0"))
        return sh_config_refuse(c, "mlp_only_layers", "an empty list", e);
    if (COUNT("decoder_sparse_step", 1, &f->moe_every))
        return -1;
    f->moe_offset = f->moe_every - 1;
    return 0;
}

int sh_capacity_qwen_moe(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    return sh_capacity_qwen(c, f, e) || expert_steps(c, f, e) ||
           COUNT("shared_expert_intermediate_size", 0, &f->shared_ffn) ||
           experts(c, sh_config_has(c, "num_experts") ? "num_experts" : "num_local_experts", "num_experts_per_tok",
                   "moe_intermediate_size", f, e) ? -1 : 0;
}

/* MiniMax-M2: plain attention (1 in attn_type_list) in every layer, one norm over the queries of all heads, one over
 * the keys, and experts alone, of the width that others give their plain blocks. */
int sh_capacity_minimax(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    static const struct sh_word norms[] = {{"per_layer", 1}, {NULL, 0}};
    int normed = 1, wide = 1, shared = 0;
    if (sh_config_flag(c, "use_qk_norm", &normed, e) || sh_config_choice(c, "qk_norm_type", norms, &wide, e) ||
        COUNT("shared_intermediate_size", 0, &shared))
        return -1;
    if (!normed || shared)
        return sh_config_refuse(c, shared ? "shared_intermediate_size" : "use_qk_norm", shared ? "0" : "true", e);
    for (int i = 0; i < f->layers && sh_config_has(c, "attn_type_list.0"); i++) {
        char key[40];
        int kind = -1;
        snprintf(key, sizeof key, "attn_type_list.%d", i);
        if (COUNT(key, 0, &kind) || kind != 1)
            return kind < 0 ? -1 : sh_config_refuse(c, key, "1, which is plain attention", e);
    }
    return sh_capacity_layer_types(c, f, e) < 0 ||
           experts(c, "num_local_experts", "num_experts_per_tok", "intermediate_size", f, e) ? -1 : 0;
}

/* Gemma 2: every other layer local; Gemma 3: five local ones to one that sees everything. */
int sh_capacity_gemma(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    int period = f->qk_norm ? 6 : 2;
    f->window = f->qk_norm ? 1024 : 4096;
    if (COUNT("sliding_window", 1, &f->window) || COUNT("sliding_window_pattern", 1, &period))
        return -1;
    int listed = sh_capacity_layer_types(c, f, e);
    if (listed <= 0)
        return listed;
    if (period >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "sliding_window_pattern", "less than 1024", e);
    memset(f->pattern, 'L', (size_t)period);
    f->pattern[period - 1] = 'G';
    f->pattern[period] = '\0';
    return 0;
}

/* Newer files say of single layers what differs there. It must be the same in all that see all tokens, and
 * nothing in others: that is all that is known here. Layers are numbered with or without leading zeros. */
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
            if (COUNT(key[k], 1, k % 2 ? &heads : &width))
                return -1;
        }
        if (!is_global && !width && !heads)
            continue;
        if (!is_global || (seen++ && (width != f->global_head_dim || heads != f->global_kv_heads)))
            return sh_config_refuse(c, "per_layer_config", "the same for all layers that see all tokens, no others", e);
        f->global_head_dim = width;
        f->global_kv_heads = heads;
    }
    return 0;
}

/* With experts every layer has them beside its plain block, behind three more norms. */
static int gemma4_experts(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    f->norms = 7;
    f->router_scale = 1;
    f->shared_ffn = f->ffn;
    return experts(c, "num_experts", "top_k_experts", "moe_intermediate_size", f, e);
}

/* Gemma 4: layers that see all tokens have heads of their own, and maybe one matrix for keys and values. */
int sh_capacity_gemma4(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    int mixed = 0;
    f->window = 512;
    snprintf(f->pattern, sizeof f->pattern, "LLLLLG");
    if (COUNT("sliding_window", 1, &f->window) || COUNT("global_head_dim", 1, &f->global_head_dim) ||
        COUNT("num_global_key_value_heads", 1, &f->global_kv_heads) || sh_capacity_layer_types(c, f, e) < 0 ||
        sh_config_flag(c, "attention_k_eq_v", &f->keys_are_values, e) ||
        sh_config_flag(c, "enable_moe_block", &mixed, e))
        return -1;
    if (!sh_config_has(c, "hidden_size_per_layer_input"))       /* which would then be 256 */
        return sh_fail(e, "%s: key 'hidden_size_per_layer_input' is missing", sh_config_path(c));
    if (sh_config_has(c, "per_layer_config"))
        return single_layers(c, f, e) || (mixed && gemma4_experts(c, f, e)) ? -1 : 0;
    if (!f->keys_are_values)
        f->global_kv_heads = 0;         /* they have as many as the others */
    return mixed && gemma4_experts(c, f, e) ? -1 : 0;
}

int sh_capacity_deepseek(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    int step = 1, shared = 0;
    f->latent = f->rope_dim = f->nope_dim = f->v_dim = 0;
    if (COUNT("kv_lora_rank", 1, &f->latent) || COUNT("q_lora_rank", 1, &f->q_latent) ||
        COUNT("qk_rope_head_dim", 1, &f->rope_dim) || COUNT("qk_nope_head_dim", 1, &f->nope_dim) ||
        COUNT("v_head_dim", 1, &f->v_dim) || COUNT("first_k_dense_replace", 0, &f->dense_first) ||
        COUNT("moe_layer_freq", 1, &step) || COUNT("n_shared_experts", 0, &shared))
        return -1;
    if (!f->latent)
        return sh_fail(e, "%s: key 'kv_lora_rank' is missing", sh_config_path(c));
    if (step != 1)
        return sh_config_refuse(c, "moe_layer_freq", "1", e);
    if (experts(c, "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", f, e))
        return -1;
    long long width = (long long)shared * f->expert_ffn;
    f->shared_ffn = width <= 100000000 ? (int)width : 0;
    return width <= 100000000 ? 0 : sh_config_refuse(c, "n_shared_experts", "experts of at most 10^8 together", e);
}

/* The leading plain layers as newer files list them; 1: the lists say something else. */
static int listed_feeds(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    static const struct sh_word feeds[] = {{"dense", 0}, {"sparse", 1}, {NULL, 0}};
    static const struct sh_word mixes[] = {{"indexed_attention", 1}, {NULL, 0}};
    int plain = 0, seen = 0;
    for (int i = 0; i < f->layers; i++) {
        char key[2][40];
        int feed = -1, mix = -1;
        snprintf(key[0], sizeof key[0], "mlp_layer_types.%d", i);
        snprintf(key[1], sizeof key[1], "layer_types.%d", i);
        if (sh_config_choice(c, key[0], feeds, &feed, e) || sh_config_choice(c, key[1], mixes, &mix, e))
            return -1;
        if ((feed < 0 && sh_config_has(c, "mlp_layer_types.0")) || (mix < 0 && sh_config_has(c, "layer_types.0")))
            return sh_config_refuse(c, key[mix < 0 && sh_config_has(c, "layer_types.0")], "a word for each layer", e);
        if (feed == 0 && seen)
            return sh_config_refuse(c, key[0], "sparse, as the layers before it", e);
        seen += feed == 1;
        plain += feed == 0;
    }
    if (plain + seen)
        f->dense_first = plain;
    return 0;
}

/* Layers with an index of their own; the others ("shared") take the choice of the last one that has. */
static int index_pattern(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    static const struct sh_word words[] = {{"full", 'I'}, {"F", 'I'}, {"shared", 'G'}, {"S", 'G'}, {NULL, 0}};
    int every = 1, offset = 2;
    const char *letters = NULL, *list = sh_config_has(c, "indexer_types.0") ? "indexer_types" : "index_topk_pattern";
    struct sh_err ignored = {0};
    if (COUNT("index_topk_freq", 0, &every) || COUNT("index_skip_topk_offset", 0, &offset))
        return -1;
    if (f->layers >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "num_hidden_layers", "fewer than 1024", e);
    int spelled = !sh_config_has(c, "indexer_types.0") && !sh_config_word(c, list, &letters, &ignored) && letters;
    if (spelled && (strlen(letters) != (size_t)f->layers || strspn(letters, "FS") != strlen(letters)))
        return sh_config_refuse(c, list, "a letter F or S for each layer", e);
    for (int i = 0; i < f->layers; i++) {
        char key[40];
        int kind = 0, past = i - offset + 1 > 0 ? i - offset + 1 : 0;
        snprintf(key, sizeof key, "%s.%d", list, i);
        if (spelled)
            kind = letters[i] == 'F' ? 'I' : 'G';
        else if (sh_config_choice(c, key, words, &kind, e))
            return -1;
        else if (!kind && (sh_config_has(c, "indexer_types.0") || sh_config_has(c, "index_topk_pattern.0")))
            return sh_config_refuse(c, key, "full or shared for each layer", e);
        else if (!kind)
            kind = past % (every ? every : 1) ? 'G' : 'I';
        f->pattern[i] = (char)kind;
        f->pattern[i + 1] = '\0';
    }
    return 0;
}

/* DeepSeek-V3.2 and GLM-5: latent attention to the tokens that an index chooses. */
int sh_capacity_indexed(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    if (sh_capacity_deepseek(c, f, e) || COUNT("index_head_dim", 1, &f->index_dim) ||
        COUNT("index_n_heads", 1, &f->index_heads) || COUNT("index_topk", 1, &f->index_topk))
        return -1;
    const char *missing = !f->index_dim ? "index_head_dim" : !f->index_heads ? "index_n_heads"
                        : !f->index_topk ? "index_topk" : !f->q_latent ? "q_lora_rank" : NULL;
    if (missing)
        return sh_fail(e, "%s: key '%s' is missing", sh_config_path(c), missing);
    return listed_feeds(c, f, e) || index_pattern(c, f, e) ? -1 : 0;
}

int sh_capacity_gpt_oss(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    static const char *const used[3] = {"num_experts_per_tok", "experts_per_token", NULL};
    f->window = 128;
    f->used = 4;
    snprintf(f->pattern, sizeof f->pattern, "LG");
    return COUNT("sliding_window", 1, &f->window) || sh_capacity_layer_types(c, f, e) < 0 ||
           sh_capacity_count(c, used, 1, &f->used, e) ||
           experts(c, "num_local_experts", "num_experts_per_tok", "intermediate_size", f, e) ? -1 : 0;
}

/* Three chunked layers to one that sees everything, which is the one without rotation. */
int sh_capacity_llama4(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    int step = 1, width = 0;
    f->window = 8192;
    f->used = 1;
    snprintf(f->pattern, sizeof f->pattern, "CCCG");
    if (COUNT("attention_chunk_size", 1, &f->window) || sh_capacity_layer_types(c, f, e) < 0 ||
        COUNT("interleave_moe_layer_step", 1, &step) || COUNT("intermediate_size_mlp", 1, &width) ||
        experts(c, "num_local_experts", "num_experts_per_tok", "intermediate_size", f, e))
        return -1;
    int settled = sh_config_has(c, "layer_types.0") || !sh_config_has(c, "no_rope_layers.0");
    for (int i = 0; i < f->layers && !settled; i++) {
        char key[40];
        int rotates = -1;
        snprintf(key, sizeof key, "no_rope_layers.%d", i);
        if (COUNT(key, 0, &rotates) || rotates < 0)
            return rotates < 0 ? sh_config_refuse(c, key, "0 or 1 for each layer", e) : -1;
        if (!rotates != (i % 4 == 3))
            return sh_config_refuse(c, "no_rope_layers", "every fourth layer without rotation", e);
    }
    f->shared_ffn = f->expert_ffn;
    f->ffn = width ? width : f->ffn;
    f->moe_every = step;
    f->moe_offset = step - 1;
    return 0;
}
