/* SPDX-License-Identifier: Apache-2.0 */
/* The text part of Llama 3.2 Vision (Dubey et al., 2024): LLaMA 3. Its layers that attend to a picture compute nothing
 * if there is none, so they are left out. The embedding has eight more rows than the head. */
#include <stdio.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

enum { MORE_ROWS = 8 };

static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "embed_tokens.weight", VOCAB, EMBED, 0),
    {.role = SH_HEAD, .name = "lm_head.weight", .rows = SH_DIM_OUT, .cols = SH_DIM_EMBED, .unless = SH_TIED_HEAD,
     .form = SH_WHOLE_NAME},
    SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_FEED, {.name = NULL}};

/* Numbers past the last layer are ignored, as in transformers. */
static int leave_out(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char list[] = "cross_attention_layers";
    static const int usual[] = {3, 8, 13, 18, 23, 28, 33, 38};
    int has = sh_config_has(c, list) && !sh_config_is_null(c, list), n = has ? sh_config_length(c, list) : 8, left = 0;
    for (int i = 0; i < n && i < SH_MOST_LAYERS; i++) {
        char key[48];
        int layer = has ? -1 : usual[i];
        snprintf(key, sizeof key, "%s.%d", list, i);
        if (has && sh_config_at_least(c, key, 0, (int)1e8, &layer, e))
            return -1;
        if (layer < 0)
            return sh_config_refuse(c, key, "the number of a layer", e);
        left += layer < a->n_layer && sh_arch_leave_out(a, layer);
    }
    if (n < 0 || n > SH_MOST_LAYERS || left >= a->n_layer)
        return sh_config_refuse(c, list, "a list of layers, but not of all", e);
    a->n_layer -= left;
    return 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->flags &= ~(unsigned)(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS);       /* no keys of it */
    a->n_out = a->n_vocab;
    a->n_vocab += MORE_ROWS;
    if (a->flags & SH_TIED_HEAD)
        return sh_config_refuse(c, "tie_word_embeddings", "false: the embedding has more rows than the head", e);
    return leave_out(a, c, e);
}

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    return sh_facts_count(c, "vocab_size", 1, &f->head_rows, e);
}

const struct sh_family sh_family_mllama = {
    .special = "text of Llama 3.2 Vision: LLaMA without the layers that attend to pictures",
    .name = "mllama", .model_types = SH_WORDS("mllama_text_model"),
    .architectures = SH_WORDS("MllamaForCausalLM", "MllamaForConditionalGeneration"),
    .prefixes = sh_wrapper_prefixes,
    .start = {SH_LLAMA_START_WITH(1e-5f, 5e5f), .n_kv_head = 8, .flags = SH_LLAMA_FLAGS},
    .keys = sh_llama_keys, .params = params, .only = SH_WORDS("head_dim=null"),
    .knows = " cross_attention_layers ", .shape = shape, .finish = sh_config_whole_rope, .count = count};
