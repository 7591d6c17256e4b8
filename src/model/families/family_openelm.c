/* SPDX-License-Identifier: Apache-2.0 */
/* OpenELM (Mehta et al., 2024, arXiv 2404.14619): the number of heads and the feed-forward width grow from layer to
 * layer, each between two multiples of the model's width. Its code comes with its files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("activation_fn_name"), SH_REAL_KEY(rope.base, 1e12, "rope_freq_constant"),
    SH_COUNT_KEY(n_layer, 1e4, "num_transformer_layers"), SH_COUNT_KEY(d_model, 1e7, "model_dim"),
    SH_COUNT_KEY(max_pos, 1e8, "max_context_length"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"),
    SH_FLAG_KEY(SH_HAS_QK_NORM, "normalize_qk_projections"),
    SH_FLAG_KEY(SH_TIED_HEAD, "share_input_output_layers"), {.json = {NULL}}};

#define LAYER "layers.#."
#define QKV LAYER "attn.qkv_proj.weight"
#define GATE_UP LAYER "ffn.proj_1.weight"

static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "token_embeddings.weight", VOCAB, EMBED, 0), SH_HEAD_PARAM("lm_head.weight"),
    SH_NORM_WEIGHT(FINAL_NORM, "norm.weight", MODEL, 0), SH_NORM_WEIGHT(ATTN_NORM, LAYER "attn_norm.weight", MODEL, 0),
    SH_MATRIX(Q_W, QKV, Q, MODEL, 0), SH_MATRIX(K_W, QKV, KV, MODEL, 0), SH_MATRIX(V_W, QKV, KV, MODEL, 0),
    SH_MATRIX(O_W, LAYER "attn.out_proj.weight", MODEL, Q, 0), SH_QK_NORM(Q_NORM, "attn.q_norm.weight", Q),
    SH_QK_NORM(K_NORM, "attn.k_norm.weight", KV), SH_NORM_WEIGHT(MLP_NORM, LAYER "ffn_norm.weight", MODEL, 0),
    SH_MATRIX(GATE_W, GATE_UP, FF, MODEL, 0), SH_MATRIX(UP_W, GATE_UP, FF, MODEL, 0),
    SH_MATRIX(DOWN_W, LAYER "ffn.proj_2.weight", MODEL, FF, 0), {.name = NULL}};

/* The multiple of `by` nearest to x; the next one where that is less than nine tenths of x. 0: too large. */
static int divisible(double x, int by)
{
    double n = floor(floor(x + by / 2.0) / by) * by;
    n = n < by ? by : n;
    n = n < 0.9 * x ? n + by : n;
    return n <= 1e8 ? (int)n : 0;
}

/* A multiplier as it is written: a double, not the float next to it. */
static int read_multiplier(const struct sh_config *c, const char *key, double *out, struct sh_err *e)
{
    char text[32];
    float x = -1;
    if (sh_config_real(c, key, 1e4, &x, e))
        return -1;
    if (!(x > 0))
        return sh_config_refuse(c, key, "a number above 0", e);
    snprintf(text, sizeof text, "%.7g", (double)x);
    *out = strtod(text, NULL);
    return 0;
}

/* A layer's multiplier: the key is a number for all layers, or a list with a number for each layer, or with the first
 * and the last number, between which it grows evenly, rounded to two digits. */
static int multiplier(const struct sh_config *c, const char *key, int layer, int layers, double *out, struct sh_err *e)
{
    char at[2][48], text[32];
    int n = sh_config_length(c, key);
    double of[2];
    if (!sh_config_has(c, key) || sh_config_is_null(c, key))
        return 0;
    if (n < 0)
        return read_multiplier(c, key, out, e);
    if (n != 2 && n != layers)
        return sh_config_refuse(c, key, "a number, two numbers or one for each layer", e);
    for (int i = 0; i < 2; i++)
        snprintf(at[i], sizeof at[i], "%s.%d", key, n == layers && n != 2 ? layer : i);
    if (read_multiplier(c, at[0], &of[0], e) || read_multiplier(c, at[1], &of[1], e))
        return -1;
    *out = of[0];
    if (n != 2)
        return 0;
    double step = layers > 1 ? (of[1] - of[0]) / (layers - 1) : 0;
    snprintf(text, sizeof text, "%.2f", layer && layer == layers - 1 ? of[1] : layer * step + of[0]);
    *out = strtod(text, NULL);
    return 0;
}

/* Heads by the lists or, without them, by the multipliers. */
static int read_heads(const struct sh_arch *a, const struct sh_config *c, int layer, struct sh_layer_sizes *s,
                      struct sh_err *e)
{
    static const char queries[] = "num_query_heads", kv[] = "num_kv_heads";
    int groups = 1;
    double by = 1;
    char key[2][32];
    snprintf(key[0], sizeof key[0], "%s.%d", queries, layer);
    snprintf(key[1], sizeof key[1], "%s.%d", kv, layer);
    if (sh_config_count(c, "num_gqa_groups", 100000, &groups, e) || sh_config_count(c, key[0], 100000, &s->n_head, e) ||
        sh_config_count(c, key[1], 100000, &s->n_kv_head, e))
        return -1;
    int listed = sh_config_is_set(c, queries) || sh_config_is_set(c, kv);
    if (listed && (!s->n_head || !s->n_kv_head))
        return sh_config_refuse(c, s->n_head ? kv : queries, "a number for each layer", e);
    if (listed)
        return 0;
    if (multiplier(c, "qkv_multipliers", layer, a->n_layer, &by, e))
        return -1;
    if ((long long)a->d_head * groups > 100000000)
        return sh_config_refuse(c, "num_gqa_groups", "groups that make 10^8 numbers at most", e);
    s->n_head = divisible(a->d_model * by, a->d_head * groups) / a->d_head;
    s->n_kv_head = s->n_head / groups;
    return s->n_kv_head && s->n_head <= 100000 ? 0 : sh_config_refuse(c, "qkv_multipliers", "1 to 10^5 heads", e);
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int divisor = 256;
    if (sh_config_is_gguf(c))
        return sh_config_read_sizes(c, a, 0, e);
    struct sh_layer_sizes *sizes = sh_config_sizes(c, a);
    if (sh_config_count(c, "ffn_dim_divisor", 1000000, &divisor, e))
        return -1;
    for (int i = 0; i < a->n_layer; i++) {
        double by = 4;
        if (read_heads(a, c, i, &sizes[i], e) || multiplier(c, "ffn_multipliers", i, a->n_layer, &by, e))
            return -1;
        sizes[i].d_ff = divisible(by * a->d_model, divisor);
        if (!sizes[i].d_ff)
            return sh_config_refuse(c, "ffn_multipliers", "a width of at most 10^8", e);
    }
    return sh_config_take_largest(c, "num_query_heads", a, e);
}

const struct sh_family sh_family_openelm = {
    .special = "heads and widths that grow with the layers",
    .name = "openelm", .model_types = SH_WORDS("openelm"),
    .architectures = SH_WORDS("OpenELMForCausalLM", "OpenELMModel"),
    .prefixes = SH_WORDS("transformer.", ""),
    .start = {SH_LLAMA_START, .n_head = 1, .d_head = 128, .n_vocab = 32000, .flags = SH_LLAMA_FLAGS},
    .keys = keys, .params = params, .gguf = &sh_gguf_openelm,
    .only = SH_WORDS("ffn_with_glu=true", "normalization_layer_name=\"rms_norm\"", "rope_scaling=null"),
    .shape = shape, .finish = sh_config_whole_rope};
