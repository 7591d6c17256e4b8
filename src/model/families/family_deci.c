/* SPDX-License-Identifier: Apache-2.0 */
/* DeciLM (Deci, 2023) and the models that architecture search made from LLaMA 3 (NVIDIA's Llama-Nemotron Super and
 * Ultra; Bercovich et al., 2024, arXiv 2411.19146): LLaMA whose layers differ in their numbers of KV heads and
 * feed-forward widths, or have a product or nothing in the place of a block. The code comes with the files. */
#include <stdio.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_FEED,
    SH_MATRIX(ATTN_PRODUCT_W, SH_LAYER "self_attn.linear_attn.weight", MODEL, MODEL, 0),
    SH_MATRIX(FEED_PRODUCT_W, SH_LAYER "mlp.linear_mlp.weight", MODEL, MODEL, 0), {.name = NULL}};

/* Refuses keys of a block that are not read here and change what it computes, unless they are null, false or 0. */
static int check_block(const struct sh_config *c, const char *block, const char *known, struct sh_err *e)
{
    const char *name;
    for (int i = 0; (name = sh_config_key_at(c, block, i)) != NULL; i++) {
        char key[128], word[64];
        snprintf(key, sizeof key, "%s.%s", block, name);
        snprintf(word, sizeof word, " %.60s ", name);
        if (!strstr(known, word) && sh_config_is_set(c, key))
            return sh_config_refuse(c, key, "null or false", e);
    }
    return 0;
}

static int read_kind(const struct sh_config *c, const char *block, enum sh_block_kind *out, struct sh_err *e)
{
    char none[64], product[64];
    int is_none = 0, is_product = 0;
    snprintf(none, sizeof none, "%s.no_op", block);
    snprintf(product, sizeof product, "%s.replace_with_linear", block);
    if (sh_config_flag(c, none, &is_none, e) || sh_config_flag(c, product, &is_product, e))
        return -1;
    if (is_none && is_product)
        return sh_config_refuse(c, product, "false in a block that is none", e);
    *out = is_none ? SH_BLOCK_NONE : is_product ? SH_BLOCK_PRODUCT : SH_BLOCK_USUAL;
    return 0;
}

static int read_attention(const struct sh_arch *a, const struct sh_config *c, int layer, struct sh_layer_sizes *s,
                          struct sh_err *e)
{
    char block[48], key[80];
    int group = 0;
    snprintf(block, sizeof block, "block_configs.%d.attention", layer);
    snprintf(key, sizeof key, "%s.n_heads_in_group", block);
    if (read_kind(c, block, &s->attention, e) ||
        check_block(c, block, " n_heads_in_group no_op replace_with_linear ", e) ||
        sh_config_count(c, key, 100000, &group, e))
        return -1;
    if (s->attention)
        return 0;
    if (!group || a->n_head % group)
        return sh_config_refuse(c, key, "a divisor of num_attention_heads", e);
    s->n_kv_head = a->n_head / group;
    return 0;
}

/* The width is two thirds of the multiplied model's width, rounded up to a multiple of 256. */
static int read_feed(const struct sh_arch *a, const struct sh_config *c, int layer, struct sh_layer_sizes *s,
                     struct sh_err *e)
{
    char block[48], key[80];
    float by = 0;
    snprintf(block, sizeof block, "block_configs.%d.ffn", layer);
    snprintf(key, sizeof key, "%s.ffn_mult", block);
    if (read_kind(c, block, &s->feed, e) ||
        check_block(c, block, " ffn_mult no_op replace_with_linear gated hidden_act ", e) ||
        sh_config_real(c, key, 1e4, &by, e))
        return -1;
    if (s->feed)
        return 0;
    double width = 2 * (double)by * a->d_model / 3;
    if (!(width >= 1) || width > 99999000)
        return sh_config_refuse(c, key, "a multiplier of hidden_size that gives a width from 1 to 10^8", e);
    s->d_ff = ((int)width + 255) / 256 * 256;
    snprintf(key, sizeof key, "%s.hidden_act", block);
    if (!sh_config_is(c, key, "\"silu\""))
        return sh_config_refuse(c, key, "silu", e);
    snprintf(key, sizeof key, "%s.gated", block);
    return sh_config_is(c, key, "true") ? 0 : sh_config_refuse(c, key, "true", e);
}

static int read_block(const struct sh_arch *a, const struct sh_config *c, int layer, struct sh_layer_sizes *s,
                      struct sh_err *e)
{
    char block[48];
    snprintf(block, sizeof block, "block_configs.%d", layer);
    return check_block(c, block, " attention ffn ", e) || read_attention(a, c, layer, s, e) ||
           read_feed(a, c, layer, s, e) ? -1 : 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char blocks[] = "block_configs";
    if (!sh_config_is_set(c, blocks))
        return sh_config_read_sizes(c, a, sh_config_is_gguf(c), e);
    if (sh_config_length(c, blocks) != a->n_layer)
        return sh_config_refuse(c, blocks, "a list with an object for each layer", e);
    struct sh_layer_sizes *sizes = sh_config_sizes(c, a);
    for (int i = 0; i < a->n_layer; i++)
        if (read_block(a, c, i, &sizes[i], e))
            return -1;
    return sh_config_take_largest(c, blocks, a, e);
}

const struct sh_family sh_family_deci = {
    .special = "KV heads and widths by layer, layers without a block or with a product in its place",
    .name = "deci", .model_types = SH_WORDS("deci", "nemotron-nas"),
    .architectures = SH_WORDS("DeciLMForCausalLM", "DeciLMModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS},
    .keys = sh_llama_keys, .params = params, .gguf = &sh_gguf_deci, .knows = " block_configs ", .shape = shape,
    .finish = sh_config_whole_rope};
