/* SPDX-License-Identifier: Apache-2.0 */
/* See capacity_config.h: the table of model types, and what all of them share. */
#include "src/app/capacity/capacity_config.h"

#include <stdio.h>
#include <string.h>

/* What is said of a type in the words of models.txt, its quirk, and which of `structural` it may have. */
static const struct kind {
    const char *types[4];
    const char *facts;
    sh_capacity_quirk *quirk;
    const char *knows;                  /* between blanks                                         */
    int default_ffn;                    /* 1: four times the width, where nothing is said          */
} kinds[] = {
    {{"opt"}, "norm=layer qkv_bias o_bias mlp_bias tied", sh_capacity_opt, " word_embed_proj_dim ", 0},
    {{"gpt2"}, "norm=layer qkv_bias o_bias mlp_bias tied", sh_capacity_gpt2, " ", 1},
    {{"gpt_neo"}, "norm=layer o_bias mlp_bias tied", sh_capacity_gpt_neo, " attention_types window_size ", 1},
    {{"gptj"}, "norm=layer norms=1 mlp_bias head_bias", NULL, " ", 1},
    {{"gpt_neox"}, "norm=layer qkv_bias o_bias mlp_bias", NULL, " ", 0},
    {{"bloom"}, "norm=layer qkv_bias o_bias mlp_bias embed_norm tied", NULL, " ", 1},
    {{"llama"}, "gated", NULL, " ", 0},
    {{"mistral"}, "gated", sh_capacity_mistral, " sliding_window ", 0},
    {{"mixtral"}, "gated", sh_capacity_mixtral, " sliding_window num_local_experts ", 0},
    {{"qwen2"}, "gated qkv_bias", sh_capacity_qwen,
     " sliding_window use_sliding_window max_window_layers layer_types ", 0},
    {{"qwen3", "qwen3_vl_text", "qwen3_vl"}, "gated qk_norm head_dim=128", sh_capacity_qwen,
     " sliding_window use_sliding_window max_window_layers layer_types ", 0},
    {{"qwen2_moe"}, "gated qkv_bias shared_gate", sh_capacity_qwen_moe,
     " sliding_window use_sliding_window max_window_layers layer_types num_experts num_local_experts ", 0},
    {{"qwen3_moe", "qwen3_vl_moe_text", "qwen3_vl_moe"}, "gated qk_norm head_dim=128", sh_capacity_qwen_moe,
     " sliding_window use_sliding_window max_window_layers layer_types num_experts num_local_experts ", 0},
    {{"qwen3_next"}, "gated qk_norm query_gate shared_gate", sh_capacity_qwen_next,
     " layer_types full_attention_interval num_experts linear_num_value_heads ", 0},
    {{"qwen3_5_text", "qwen3_5"}, "gated qk_norm query_gate head_dim=256", sh_capacity_qwen_5,
     " layer_types full_attention_interval linear_num_value_heads ", 0},
    {{"qwen3_5_moe_text", "qwen3_5_moe"}, "gated qk_norm query_gate shared_gate head_dim=256",
     sh_capacity_qwen_5_moe, " layer_types full_attention_interval num_experts num_local_experts "
     "linear_num_value_heads ", 0},
    {{"mimo"}, "gated qkv_bias", sh_capacity_mimo,
     " sliding_window use_sliding_window max_window_layers layer_types num_nextn_predict_layers ", 0},
    {{"minimax_m2"}, "gated qk_norm_wide", sh_capacity_minimax,
     " num_local_experts attn_type_list layer_types ", 0},
    {{"gemma"}, "gated tied", NULL, " ", 0},
    {{"gemma2"}, "gated norms=4 tied", sh_capacity_gemma, " sliding_window layer_types ", 0},
    {{"gemma3_text", "gemma3"}, "gated norms=4 qk_norm tied heads=8 kv_heads=4 head_dim=256 vocab=262208",
     sh_capacity_gemma, " sliding_window layer_types sliding_window_pattern ", 0},
    {{"gemma4_text"}, "gated norms=4 qk_norm tied head_dim=256 global_head_dim=512 vocab=262144", sh_capacity_gemma4,
     " sliding_window layer_types attention_k_eq_v num_global_key_value_heads global_head_dim num_experts "
     "per_layer_config ", 0},
    {{"phi3"}, "gated", sh_capacity_phi3, " sliding_window ", 0},
    {{"falcon"}, "norm=layer tied", sh_capacity_falcon,
     " multi_query new_decoder_architecture num_ln_in_parallel_attn ", 1},
    {{"mpt"}, "tied", sh_capacity_mpt, " ", 1},
    {{"deepseek_v2", "deepseek_v3", "kimi_k2"}, "gated", sh_capacity_deepseek,
     " kv_lora_rank q_lora_rank n_routed_experts first_k_dense_replace moe_layer_freq num_nextn_predict_layers ", 0},
    {{"deepseek_v32"}, "gated", sh_capacity_indexed,
     " kv_lora_rank q_lora_rank n_routed_experts first_k_dense_replace moe_layer_freq num_nextn_predict_layers "
     "index_topk index_head_dim layer_types mlp_layer_types num_local_experts ", 0},
    {{"glm_moe_dsa"}, "gated", sh_capacity_indexed,
     " kv_lora_rank q_lora_rank n_routed_experts first_k_dense_replace moe_layer_freq num_nextn_predict_layers "
     "index_topk index_head_dim layer_types mlp_layer_types num_local_experts indexer_types index_topk_freq "
     "index_topk_pattern index_skip_topk_offset ", 0},
    {{"gpt_oss"}, "gated qkv_bias o_bias mlp_bias router_bias sinks", sh_capacity_gpt_oss,
     " sliding_window layer_types num_local_experts ", 0},
    {{"nemotron_h"}, "", sh_capacity_nemotron,
     " hybrid_override_pattern layers_block_type mamba_num_heads ssm_state_size "
     "n_routed_experts num_nextn_predict_layers moe_latent_size num_local_experts ", 0},
    {{"jamba"}, "gated", sh_capacity_jamba,
     " attn_layer_period expert_layer_period num_experts mamba_d_state sliding_window ", 0},
    {{"llama4_text"}, "gated", sh_capacity_llama4,
     " attention_chunk_size layer_types num_local_experts no_rope_layers moe_layers interleave_moe_layer_step ", 0},
};
enum { N_KIND = sizeof kinds / sizeof *kinds };

/* Keys that change a model's memory where they are more than null, false, 0 or an empty list. */
static const char *const structural[] = {
    "kv_lora_rank", "q_lora_rank", "n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts",
    "first_k_dense_replace", "moe_layer_freq", "num_nextn_predict_layers", "index_topk", "index_head_dim",
    "layer_types", "sliding_window", "use_sliding_window", "max_window_layers", "sliding_window_pattern",
    "attention_chunk_size", "attention_types", "window_size", "no_rope_layers", "moe_layers",
    "interleave_moe_layer_step", "hybrid_override_pattern", "full_attention_interval", "attn_layer_period",
    "expert_layer_period", "mamba_num_heads", "mamba_d_state", "ssm_state_size", "linear_num_value_heads",
    "attention_k_eq_v", "num_global_key_value_heads", "global_head_dim", "num_kv_shared_layers", "multi_query",
    "new_decoder_architecture", "num_ln_in_parallel_attn", "word_embed_proj_dim", "cross_attention_layers",
    "block_types", "layers_block_type", "is_encoder_decoder", "add_cross_attention", "hidden_size_per_layer_input",
    "altup_num_inputs", "laurel_rank", "kv_sharing_map", "compress_ratios", "mtp_num_layers", "attention_layer_pattern",
    "block_configs", "per_layer_config", "use_double_wide_mlp", "linear_attn_config", "sparse_attention_config",
    "attn_type_list", "mlp_layer_types", "indexer_types",
    "index_topk_freq", "index_topk_pattern", "index_skip_topk_offset", "moe_latent_size", NULL};

/* Neutral values say that the model has no such thing. */
static int is_set(const struct sh_config *c, const char *key)
{
    char first[96];
    struct sh_err ignored = {0};
    int flag = -1, number = -1;
    const char *word = NULL;
    float real = -1;
    snprintf(first, sizeof first, "%s.0", key);
    if (!sh_config_has(c, key))
        return 0;
    if (!sh_config_flag(c, key, &flag, &ignored))
        return flag == 1;               /* -1: null */
    if (!sh_config_at_least(c, key, 0, 1000000000, &number, &ignored))
        return number != 0;
    if (!sh_config_word(c, key, &word, &ignored) || !sh_config_real(c, key, 1e30, &real, &ignored))
        return 1;
    size_t n = strlen(key);
    return sh_config_has(c, first) || (n > 7 && !strcmp(key + n - 7, "_config"));      /* a list, an object */
}

static int refuse_unknown(const struct sh_config *c, const struct kind *k, struct sh_err *e)
{
    for (int i = 0; structural[i]; i++) {
        char word[64];
        snprintf(word, sizeof word, " %s ", structural[i]);
        if (!strstr(k->knows, word) && is_set(c, structural[i])) {
            char expected[160];
            snprintf(expected, sizeof expected, "nothing: it changes the memory of model type '%s' in a way that is "
                     "not known here", k->types[0]);
            return sh_config_refuse(c, structural[i], expected, e);
        }
    }
    return 0;
}

static const struct kind *find(const struct sh_config *c, struct sh_err *e)
{
    const char *type = NULL;
    if (sh_config_word(c, "model_type", &type, e))
        return NULL;
    if (!type) {
        sh_fail(e, "%s: key 'model_type' is missing", sh_config_path(c));
        return NULL;
    }
    char expected[800] = "one of";
    for (int i = 0; i < N_KIND; i++)
        for (int t = 0; t < 4 && kinds[i].types[t]; t++) {
            size_t used = strlen(expected);
            if (!strcmp(kinds[i].types[t], type))
                return &kinds[i];
            snprintf(expected + used, sizeof expected - used, " %s", kinds[i].types[t]);
        }
    sh_config_refuse(c, "model_type", expected, e);
    sh_hint(e, "shears capacity and shears simulate take any model that a row of a --models FILE describes");
    return NULL;
}

int sh_capacity_count(const struct sh_config *c, const char *const names[3], int min, int *out, struct sh_err *e)
{
    for (int i = 0; i < 3 && names[i]; i++)
        if (sh_config_has(c, names[i])) {
            int was = *out;
            if (sh_config_at_least(c, names[i], min, 100000000, out, e))
                return -1;
            if (*out != was)
                return 0;
        }
    return 0;
}

int sh_capacity_layer_types(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    static const struct sh_word words[] = {{"full_attention", 'G'}, {"sliding_attention", 'L'},
                                           {"chunked_attention", 'C'}, {"linear_attention", 'S'}, {NULL, 0}};
    if (!sh_config_has(c, "layer_types.0"))
        return 1;
    if (f->layers >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "layer_types", "a list of fewer than 1024 words", e);
    for (int i = 0; i < f->layers; i++) {
        char key[40];
        int kind = 0;
        snprintf(key, sizeof key, "layer_types.%d", i);
        if (sh_config_choice(c, key, words, &kind, e))
            return -1;
        if (!kind)
            return sh_config_refuse(c, key, "a word for each layer", e);
        f->pattern[i] = (char)kind;
        f->pattern[i + 1] = '\0';
    }
    return 0;
}

/* Files that list the kinds of their layers may leave out how many there are. */
static int listed(const struct sh_config *c, const char *list)
{
    char key[64];
    int n = 0;
    do
        snprintf(key, sizeof key, "%s.%d", list, n);
    while (sh_config_has(c, key) && ++n < SH_FACTS_PATTERN);
    return n;
}

/* The facts of a type, and keys that mean the same in every type. */
static int preset(const char *facts, struct sh_kv_facts *f, struct sh_err *e)
{
    char row[256];
    snprintf(row, sizeof row, "config %s", facts);
    return sh_kv_facts_row(row, "config", f, e);
}

static int common(const struct sh_config *c, const struct kind *k, struct sh_kv_facts *f, struct sh_err *e)
{
    static const struct { const char *names[3]; size_t field; int required; } counts[] = {
        {{"num_layers", NULL, NULL}, offsetof(struct sh_kv_facts, layers), 0},
        {{"num_heads", NULL, NULL}, offsetof(struct sh_kv_facts, heads), 0},
        {{"num_hidden_layers", "n_layer", "n_layers"}, offsetof(struct sh_kv_facts, layers), 1},
        {{"hidden_size", "n_embd", "d_model"}, offsetof(struct sh_kv_facts, hidden), 0},
        {{"n_embed", NULL, NULL}, offsetof(struct sh_kv_facts, hidden), 1},
        {{"num_attention_heads", "n_head", "n_heads"}, offsetof(struct sh_kv_facts, heads), 1},
        {{"num_key_value_heads", NULL, NULL}, offsetof(struct sh_kv_facts, kv_heads), 0},
        {{"head_dim", NULL, NULL}, offsetof(struct sh_kv_facts, head_dim), 0},
        {{"intermediate_size", "ffn_dim", "n_inner"}, offsetof(struct sh_kv_facts, ffn), 0},
        {{"vocab_size", NULL, NULL}, offsetof(struct sh_kv_facts, vocab), 1},
        {{"max_position_embeddings", "n_positions", "max_seq_len"}, offsetof(struct sh_kv_facts, max_pos), 0}};
    static const struct { const char *name; size_t field; } flags[] = {
        {"tie_word_embeddings", offsetof(struct sh_kv_facts, tied)},
        {"mlp_bias", offsetof(struct sh_kv_facts, mlp_bias)}};
    f->layers = listed(c, "layers_block_type");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int *field = (int *)((char *)f + counts[i].field);
        if (sh_capacity_count(c, counts[i].names, 1, field, e))
            return -1;
        if (counts[i].required && !*field)
            return sh_fail(e, "%s: key '%s' is missing", sh_config_path(c),
                           counts[i].field == offsetof(struct sh_kv_facts,
                                                       hidden) ? "hidden_size" : counts[i].names[0]);
    }
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (sh_config_flag(c, flags[i].name, (int *)((char *)f + flags[i].field), e))
            return -1;
    if (sh_config_has(c, "attention_bias")) {
        if (sh_config_flag(c, "attention_bias", &f->qkv_bias, e))
            return -1;
        f->o_bias = f->qkv_bias;
    }
    if (!f->ffn && k->default_ffn)
        f->ffn = f->hidden <= 25000000 ? 4 * f->hidden : 0;
    return 0;
}

/* What is left at 16 bits: the head must be, routers and vision towers may be, and by the three expressions of
 * Kimi-K2.5 all but the experts. Lists of single layers are not known here. */
static int left_out(const struct sh_config *c, int *experts_alone, struct sh_err *e)
{
    static const char *const blocks[] = {"re:.*self_attn.*", "re:.*shared_experts.*",
                                         "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"};
    const char *name = "";
    int head = 0, block = 0;
    for (int i = 0; name; i++) {
        char key[64];
        snprintf(key, sizeof key, "quantization_config.ignore.%d", i);
        name = NULL;
        if (sh_config_word(c, key, &name, e))
            return -1;
        size_t n = name ? strlen(name) : 0, was = (size_t)block;
        if (!name || strstr(name, "vision") || strstr(name, "visual") || (n > 5 && !strcmp(name + n - 5, ".gate")))
            continue;
        for (int k = 0; k < 3; k++)
            block |= !strcmp(name, blocks[k]) << k;
        int is_head = n >= 7 && !strcmp(name + n - 7, "lm_head");
        head |= is_head;
        if (!is_head && (size_t)block == was)
            return sh_config_refuse(c, key, "lm_head, routers, vision towers, or all blocks but the experts", e);
    }
    *experts_alone = block == 7;
    return head && (!block || block == 7) ? 0
               : sh_config_refuse(c, "quantization_config.ignore", "lm_head, and all other blocks but the experts or "
                                  "none", e);
}

/* compressed-tensors and modelopt: one group of settings for all matrices. */
static int grouped(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    static const struct sh_word types[] = {{"int", 1}, {"float", 2}, {NULL, 0}};
    static const struct sh_word ways[] = {{"group", 1}, {"tensor", 2}, {NULL, 0}};
    static const struct sh_word algos[] = {{"FP8", 8}, {"NVFP4", 4}, {NULL, 0}};
#define WEIGHTS "quantization_config.config_groups.group_0.weights"
    int bits = 0, type = 0, group = 0, way = 0, algo = 0, even = 1, alone = 0;
    if (sh_config_has(c, "quantization_config.config_groups.group_1"))
        return sh_config_refuse(c, "quantization_config.config_groups", "one group", e);
    if (sh_config_choice(c, "quantization_config.quant_algo", algos, &algo, e) ||
        sh_config_choice(c, WEIGHTS ".type", types, &type, e) ||
        sh_config_choice(c, WEIGHTS ".strategy", ways, &way, e) ||
        sh_config_count(c, WEIGHTS ".num_bits", 8, &bits, e) ||
        sh_config_count(c, WEIGHTS ".group_size", 65536, &group, e) ||
        sh_config_flag(c, WEIGHTS ".symmetric", &even, e) || left_out(c, &alone, e))
        return -1;
    int f8 = bits == 8 && type == 2 && !group && way != 1 && algo != 4;
    int nvfp4 = bits == 4 && type == 2 && group == 16 && algo == 4;
    int int4 = bits == 4 && type == 1 && group && !((group * 4) % 8) && way == 1 && even && !algo;
    if ((!f8 && !nvfp4 && !int4) || (sh_config_has(c, "quantization_config.config_groups.group_0.targets.0") &&
                                     sh_config_has(c, "quantization_config.config_groups.group_0.targets.1")))
        return sh_config_refuse(c, WEIGHTS, "8 bits float of whole tensors, NVFP4 in groups of 16, or symmetric 4 bits "
                                "int in groups", e);
    char *to = alone ? f->published_experts : f->published;
    size_t room = alone ? sizeof f->published_experts : sizeof f->published;
    if (int4)
        snprintf(to, room, "int4:group=%d:scale=16:zero=0", group);
    else
        snprintf(to, room, "%s", f8 ? "f8" : "nvfp4");
    return 0;
#undef WEIGHTS
}

/* How the files of the weights are written. */
static int published(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    static const struct sh_word types[] = {{"float32", 32}, {"float16", 16}, {"bfloat16", 16}, {"torch.float32", 32},
                                           {"torch.float16", 16}, {"torch.bfloat16", 16}, {NULL, 0}};
    const char *method = NULL;
    int bits = 16, group = 128;
    if (sh_config_choice(c, sh_config_has(c, "dtype") ? "dtype" : "torch_dtype", types, &bits, e) ||
        sh_config_word(c, "quantization_config.quant_method", &method, e))
        return -1;
    snprintf(f->published, sizeof f->published, "%s", bits == 32 ? "f32" : "f16");
    if ((!method && sh_config_has(c, "quantization_config.quant_algo")) ||
        (method && (!strcmp(method, "compressed-tensors") || !strcmp(method, "modelopt"))))
        return grouped(c, f, e);
    if (!method)
        return sh_config_has(c, "quantization_config") && is_set(c, "quantization_config")
                   ? sh_config_refuse(c, "quantization_config", "a quant_method in it", e) : 0;
    if (!strcmp(method, "fp8")) {
        int block = 0;
        if (sh_config_count(c, "quantization_config.weight_block_size.0", 65536, &block, e))
            return -1;
        snprintf(f->published, sizeof f->published, block ? "f8:block=%d" : "f8", block);
    } else if (!strcmp(method, "mxfp4")) {
        snprintf(f->published_experts, sizeof f->published_experts, "mxfp4");
    } else if (!strcmp(method, "gptq") || !strcmp(method, "awq")) {
        if (sh_config_at_least(c, "quantization_config.bits", 4, 8, &bits, e) ||
            sh_config_count(c, "quantization_config.group_size", 65536, &group, e))
            return -1;
        if (bits != 4)
            return sh_config_refuse(c, "quantization_config.bits", "4", e);
        snprintf(f->published, sizeof f->published, "int4:group=%d:scale=16:zero=4", group);
        if ((group * 4 + 20) % 8)
            snprintf(f->published, sizeof f->published, "int4:group=%d:scale=16:zero=8", group);
    } else {
        sh_config_refuse(c, "quantization_config.quant_method", "one of fp8 mxfp4 gptq awq compressed-tensors "
                         "modelopt", e);
        return sh_hint(e, "shears capacity and shears simulate take any format that a row of a --models FILE "
                       "gives as published=");
    }
    return 0;
}

static int read_facts(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    const struct kind *k = find(c, e);
    if (!k || preset(k->facts, f, e) || refuse_unknown(c, k, e) || common(c, k, f, e) ||
        (k->quirk && k->quirk(c, f, e)) || published(c, f, e))
        return -1;
    snprintf(f->family, sizeof f->family, "%s", k->types[0]);
    f->no_vision = is_set(c, "vision_config");
    return 0;
}

/* The folder's name, or the file's without its end. */
static void name_of(const char *path, char *to, size_t bytes)
{
    size_t n = strlen(path);
    if (n > 12 && !strcmp(path + n - 12, "/config.json"))
        n -= 12;
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t from = n;
    while (from && path[from - 1] != '/')
        from--;
    snprintf(to, bytes, "%.*s", (int)(n - from < bytes ? n - from : bytes - 1), path + from);
}

int sh_capacity_config(const char *path, struct sh_kv_facts *out, struct sh_err *e)
{
    struct sh_kv_facts f;
    struct sh_config *c = sh_config_open(path, e);
    int bad = !c || read_facts(c, &f, e);
    sh_config_close(c);
    if (bad)
        return -1;
    name_of(path, f.name, sizeof f.name);
    *out = f;
    return 0;
}
