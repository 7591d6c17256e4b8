/* SPDX-License-Identifier: Apache-2.0 */
/* DeepSeek-V4 (DeepSeek, 2026), which is counted but not run. Layers attend to a window of tokens and, before it, to
 * entries that stand for several tokens each: in some layers for few tokens and chosen by an index, in others for many.
 * One vector is key and value of all heads. Queries and outputs have latents, those of outputs for each group of heads;
 * manifold-constrained hyper-connections (hyper.c); a mixture of experts in every layer. */
#include <stdio.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define FEW "compressed_sparse_attention"
#define MANY "heavily_compressed_attention"

static const struct sh_key keys[] = {SH_COUNT_KEY(streams.n, 64, "hc_mult"), {.json = {NULL}}};
static const struct sh_fact_key facts[] = {
    SH_USUAL_FACT(window, 1, 128, "sliding_window"), SH_USUAL_FACT(q_latent, 1, 1024, "q_lora_rank"),
    SH_USUAL_FACT(o_groups, 1, 8, "o_groups"), SH_USUAL_FACT(o_rank, 1, 1024, "o_lora_rank"),
    SH_USUAL_FACT(index_dim, 1, 128, "index_head_dim"), SH_USUAL_FACT(index_heads, 1, 64, "index_n_heads"),
    SH_USUAL_FACT(index_topk, 1, 512, "index_topk"), SH_USUAL_FACT(experts, 1, 256, "n_routed_experts"),
    SH_USUAL_FACT(used, 1, 6, "num_experts_per_tok"), SH_USUAL_FACT(expert_ffn, 1, 2048, "moe_intermediate_size"),
    {.json = {NULL}}};

/* How many tokens an entry stands for. */
static int read_pools(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    f->pool = 4;
    f->wide_pool = 128;
    return sh_facts_count(c, "compress_rates." FEW, 1, &f->pool, e) ||
           sh_facts_count(c, "compress_rates." MANY, 1, &f->wide_pool, e) ||
           sh_facts_count(c, "compress_rate_csa", 1, &f->pool, e) ||
           sh_facts_count(c, "compress_rate_hca", 1, &f->wide_pool, e) ? -1 : 0;
}

/* The released files list a number for each layer, and more for those that predict further tokens. */
static int read_ratios(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    for (int i = 0; i < f->layers; i++) {
        char key[40];
        int tokens = -1;
        snprintf(key, sizeof key, "compress_ratios.%d", i);
        if (sh_config_at_least(c, key, 0, 1 << 20, &tokens, e))
            return -1;
        if (tokens && tokens != f->pool && tokens != f->wide_pool)
            return sh_config_refuse(c, key, "0, 4 or 128, or a rate that compress_rates names", e);
        f->pattern[i] = !tokens ? 'L' : tokens == f->pool ? 'P' : 'Q';
        f->pattern[i + 1] = '\0';
    }
    return 0;
}

/* layer_types, else those numbers, else two layers of many tokens, and then few and many in turns. */
static int read_layers(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word words[] = {{"sliding_attention", 'L'}, {FEW, 'P'}, {MANY, 'Q'}, {NULL, 0}};
    if (f->layers >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "num_hidden_layers", "fewer than 1024", e);
    if (sh_config_length(c, "layer_types") > 0)
        return sh_facts_pattern(c, "layer_types", words, f, e);
    if (sh_config_length(c, "compress_ratios") > 0)
        return read_ratios(f, c, e);
    for (int i = 0; i < f->layers; i++)
        f->pattern[i] = i < 2 || i % 2 == 0 ? 'Q' : 'P';
    f->pattern[f->layers] = '\0';
    return 0;
}

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word types[] = {{"fp4", 1}, {"fp8", 0}, {NULL, 0}}, algos[] = {{"NVFP4", 1}, {NULL, 0}};
    int n = 4, shared = 1, is_narrow = 0, is_nv = 0;
    if (read_pools(f, c, e) || read_layers(f, c, e) || sh_facts_count(c, "hc_mult", 1, &n, e) ||
        sh_facts_count(c, "n_shared_experts", 1, &shared, e) ||
        sh_config_choice(c, "expert_dtype", types, &is_narrow, e) ||
        sh_config_choice(c, "quantization_config.expert_dtype", types, &is_narrow, e) ||
        sh_config_choice(c, "quantization_config.moe_quant_algo", algos, &is_nv, e))
        return -1;
    long long weights = (2LL + n) * n, width = (long long)shared * f->expert_ffn;
    if (width > 100000000)
        return sh_config_refuse(c, "n_shared_experts", "shared experts with a total width of at most 10^8", e);
    f->cached_once = f->sinks = f->gated = 1;
    f->shared_ffn = (int)width;
    f->layer_more += 2 * weights * n * f->hidden;
    f->vectors_more += 2 * (weights + 3);
    f->ends_more += (long long)n * n * f->hidden + n + 1;
    if ((is_narrow || is_nv) && sh_config_is_set(c, "quantization_config"))
        snprintf(f->published_experts, sizeof f->published_experts, is_nv ? "nvfp4" : "mxfp4");
    return 0;
}

const struct sh_family sh_family_deepseek_v4 = {
    .special = "entries that stand for several tokens, an index, mixed residual streams; counted, not run",
    .name = "deepseek_v4", .model_types = SH_WORDS("deepseek_v4", "deepseek_ref"),
    .architectures = SH_WORDS("DeepseekV4ForCausalLM", "DeepseekV4Model"),
    .start = {SH_LLAMA_START, .n_kv_head = 1, .d_head = 512, .d_ff = 2048, .flags = SH_LLAMA_FLAGS},
    .keys = keys, .facts = facts, .only = SH_WORDS("attention_bias=false", "mlp_bias=false"),
    .knows = " layer_types mlp_layer_types compress_ratios num_nextn_predict_layers ", .count = count};
