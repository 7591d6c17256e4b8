/* SPDX-License-Identifier: Apache-2.0 */
/* GPT-Neo (Black et al., 2021): GPT-2 with plain matrices, no biases on q, k and v, scores that are not
 * scaled, and a window in every other layer. */
#include <stdio.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define LAYER "h.#."

static const struct sh_word types[] = {{"global", 0}, {"local", 1}, {NULL, 0}};

static const struct sh_key keys[] = {
    SH_COUNT_KEY(window, 1e8, "window_size"),
    SH_ACT_KEY("activation_function"),
    SH_REAL_KEY(norm_eps, 1, "layer_norm_epsilon"),
    {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "wte.weight", VOCAB, EMBED, 0),
    SH_MATRIX(POS_EMBED, "wpe.weight", POS, MODEL, 0),
    SH_NORM_PAIR(FINAL_NORM, "ln_f", 0),
    SH_HEAD_PARAM("lm_head.weight"),
    SH_NORM_PAIR(ATTN_NORM, LAYER "ln_1", 0),
    SH_MATRIX(Q_W, LAYER "attn.attention.q_proj.weight", Q, MODEL, 0),
    SH_MATRIX(K_W, LAYER "attn.attention.k_proj.weight", KV, MODEL, 0),
    SH_MATRIX(V_W, LAYER "attn.attention.v_proj.weight", KV, MODEL, 0),
    SH_LINEAR(O, LAYER "attn.attention.out_proj", MODEL, Q, 0, 0),
    SH_NORM_PAIR(MLP_NORM, LAYER "ln_2", 0),
    SH_LINEAR(UP, LAYER "mlp.c_fc", FF, MODEL, 0, 0),
    SH_LINEAR(DOWN, LAYER "mlp.c_proj", MODEL, FF, 0, 0),
    {.name = NULL}};

/* attention_types: [[["global", "local"], 12], …]: each list, so many times. */
static int read_group(struct sh_arch *a, const struct sh_config *c, int group, int *layer, struct sh_err *e)
{
    char key[96];
    int times = 0, n = 0, is_local;
    snprintf(key, sizeof key, "attention_types.%d.1", group);
    if (sh_config_count(c, key, (int)1e4, &times, e))
        return -1;
    do
        snprintf(key, sizeof key, "attention_types.%d.0.%d", group, n);
    while (sh_config_has(c, key) && ++n < a->n_layer);
    if (!times || !n)
        return sh_config_refuse(c, "attention_types", "a type for every layer", e);
    for (int i = 0; i / n < times && *layer < a->n_layer; i++, ++*layer) {
        snprintf(key, sizeof key, "attention_types.%d.0.%d", group, i % n);
        is_local = -1;
        if (sh_config_choice(c, key, types, &is_local, e))
            return -1;
        if (is_local < 0)
            return sh_config_refuse(c, key, "global or local", e);
        if (!is_local)
            sh_arch_see_all(a, *layer);
    }
    return 0;
}

static int says_layers(const struct sh_config *c)
{
    return sh_config_has(c, "attention_layers.0") || sh_config_is_set(c, "attention_types");
}

/* The memory of models whose files do not say is computed with a window in every other layer; they are not run. */
static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    sh_four_wide(a, c, e);
    if (sh_config_has(c, "attention_layers.0"))
        return sh_config_layer_types(c, "attention_layers", a, e);
    if (!says_layers(c)) {
        for (int layer = 0; layer < a->n_layer; layer += 2)
            sh_arch_see_all(a, layer);
        return 0;
    }
    for (int group = 0, layer = 0; layer < a->n_layer; group++)
        if (read_group(a, c, group, &layer, e))
            return -1;
    return 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    (void)a;
    return says_layers(c) ? 0 : sh_config_refuse(c, "attention_types", "a type for every layer", e);
}

const struct sh_family sh_family_gpt_neo = {
    .special = "a window in every other layer, unscaled scores",
    .name = "gpt_neo", .model_types = SH_WORDS("gpt_neo"),
    .architectures = SH_WORDS("GPTNeoForCausalLM", "GPTNeoModel"), .prefixes = SH_WORDS("transformer.", ""),
    .start = {.norm = SH_NORM_LAYER, .act = SH_ACT_GELU_TANH, .pos = SH_POS_LEARNED, .type = SH_F32, .scale = 1,
              .norm_eps = 1e-5f, .init_std = 0.02f, .window = 256,
              .flags = SH_TIED_HEAD | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS | SH_HAS_NORM_AFFINE | SH_HAS_FINAL_NORM},
    .keys = keys, .params = params, .knows = " attention_types ", .shape = shape, .finish = finish};
