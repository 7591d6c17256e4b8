/* SPDX-License-Identifier: Apache-2.0 */
/* SmallThinker (PowerInfer, 2025), whose code comes with its files: experts with a ReLU in every layer; the router
 * reads the layer's input, before its norm and attention; lists say which layers have a window and which rotate. GGUF
 * files say only whether there are windows: if so, the first of each four layers has none and does not rotate, as in
 * the published model. llama.cpp uses windows of 4096 tokens, whatever the file says. */
#include <stdio.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(mix.n, 1e5, "moe_num_primary_experts"), SH_COUNT_KEY(mix.used, 1e5, "moe_num_active_primary_experts"),
    SH_COUNT_KEY(d_ff, 1e8, "moe_ffn_hidden_size"), {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION,
    SH_ROUTER("block_sparse_moe.primary_router.weight"), SH_EXPERTS("block_sparse_moe.experts", "gate", "up", "down"),
    {.name = NULL}};

/* Entry `layer` of a list with 0 or 1 for each of n layers; *out stays if there is none. */
static int flag_of(const struct sh_config *c, const char *list, int n, int layer, int *out, struct sh_err *e)
{
    char key[64];
    if (sh_config_length(c, list) == 0)
        return 0;
    if (sh_config_length(c, list) != n)
        return sh_config_refuse(c, list, "0 or 1 for each layer", e);
    snprintf(key, sizeof key, "%s.%d", list, layer);
    *out = -1;
    if (sh_config_at_least(c, key, 0, 1, out, e))
        return -1;
    return *out < 0 ? sh_config_refuse(c, key, "0 or 1 for each layer", e) : 0;
}

static int read_layers(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int window = sh_config_is_gguf(c) ? 0 : 4096, any = 0;
    const char *key = sh_config_is_gguf(c) ? "sliding_window" : "sliding_window_size";
    if (sh_config_count(c, key, (int)1e8, &window, e))
        return -1;
    a->window = window;
    for (int i = 0; i < a->n_layer; i++) {
        int of_gguf = sh_config_is_gguf(c) && window, local = of_gguf && i % 4, turns = !of_gguf || i % 4;
        if (flag_of(c, "sliding_window_layout", a->n_layer, i, &local, e) ||
            flag_of(c, "rope_layout", a->n_layer, i, &turns, e))
            return -1;
        any |= local;
        if (!local)
            sh_arch_see_all(a, i);
        if (!turns)
            sh_arch_keep_still(a, i);
    }
    a->window = any ? window : 0;
    return 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int softmax = 0;
    a->flags &= ~(unsigned)(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS);
    a->mix.width = a->d_ff;
    if (sh_config_flag(c, "moe_primary_router_apply_softmax", &softmax, e) || read_layers(a, c, e))
        return -1;
    softmax |= sh_config_has(c, "gguf.gating") && sh_config_is(c, "gguf.gating", "\"softmax\"");
    a->mix.route = softmax ? SH_ROUTE_CHOSEN : SH_ROUTE_CHOSEN_SIGMOID;     /* sigmoids may be 1 for several */
    a->flags |= softmax ? 0u : SH_MIX_NORMED;
    return 0;
}

const struct sh_family sh_family_smallthinker = {
    .special = "experts chosen by what the layer reads, windows and rotation by lists of layers",
    .name = "smallthinker", .model_types = SH_WORDS("smallthinker"),
    .architectures = SH_WORDS("SmallThinkerForCausalLM", "SmallthinkerForCausalLM"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_RELU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-6f,
              .init_std = 0.02f, .max_pos = 131072, .rotary_share = 1, .rope = {.base = 1e6f}, .d_head = 128,
              .n_kv_head = 2, .d_ff = 768, .mix = {.n = 32, .used = 4, .early = 1},
              .flags = SH_LLAMA_FLAGS | SH_TIED_HEAD},
    .keys = keys, .params = params, .gguf = &sh_gguf_smallthinker,
    .only = SH_WORDS("moe_enable_early_router=true", "moe_enable_secondary_experts=false",
                     "moe_shared_primary_experts=0", "use_qk_norm=false"),
    .knows = " sliding_window sliding_window_pattern ", .shape = shape, .finish = sh_config_whole_rope};
