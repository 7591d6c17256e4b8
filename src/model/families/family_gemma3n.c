/* SPDX-License-Identifier: Apache-2.0 */
/* Gemma 3n (2025): Gemma 3 with several residual streams, a path next to attention, and embeddings for each layer
 * (streams.c). Gates of the first layers keep only values far above the mean; the last layers use keys and values of
 * earlier ones. */
#include <math.h>
#include <stdio.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_activation"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"),
    SH_REAL_KEY(rope.base, 1e12, "rope_parameters.full_attention.rope_theta", "rope_theta"),
    SH_REAL_KEY(local_rope.base, 1e12, "rope_parameters.sliding_attention.rope_theta", "rope_local_base_freq"),
    SH_COUNT_KEY(streams.n, 4, "altup_num_inputs"), SH_COUNT_KEY(streams.laurel, 1e5, "laurel_rank"),
    SH_COUNT_KEY(streams.d_own, 1e5, "hidden_size_per_layer_input"),
    SH_COUNT_KEY(streams.n_own, 1e8, "vocab_size_per_layer_input"), {.json = {NULL}}};

static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_GEMMA_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, SH_LLAMA_FEED,
    SH_OWN_EMBEDDINGS, SH_MATRIX(STREAM_IN_1, "altup_projections.0.weight", MODEL, MODEL, 0),
    SH_MATRIX(STREAM_IN_2, "altup_projections.1.weight", MODEL, MODEL, 0),
    SH_MATRIX(STREAM_IN_3, "altup_projections.2.weight", MODEL, MODEL, 0),
    SH_MATRIX(STREAM_OUT_1, "altup_unembed_projections.0.weight", MODEL, MODEL, 0),
    SH_MATRIX(STREAM_OUT_2, "altup_unembed_projections.1.weight", MODEL, MODEL, 0),
    SH_MATRIX(STREAM_OUT_3, "altup_unembed_projections.2.weight", MODEL, MODEL, 0),
    SH_VECTOR(ALTUP_NORM_W, SH_LAYER "altup.router_norm.weight", MODEL, 0, 0),
    SH_MATRIX(ALTUP_ROUTER_W, SH_LAYER "altup.modality_router.weight", STREAMS, MODEL, 0),
    SH_MATRIX(ALTUP_PREDICT, SH_LAYER "altup.prediction_coefs.weight", STREAM_PAIRS, STREAMS, 0),
    SH_MATRIX(ALTUP_CORRECT, SH_LAYER "altup.correction_coefs.weight", STREAMS, STREAMS, 0),
    SH_VECTOR(ALTUP_SCALE, SH_LAYER "altup.correct_output_scale", MODEL, 0, 0),
    SH_MATRIX(LAUREL_LEFT_W, SH_LAYER "laurel.linear_left.weight", LAUREL, MODEL, 0),
    SH_MATRIX(LAUREL_RIGHT_W, SH_LAYER "laurel.linear_right.weight", MODEL, LAUREL, 0),
    SH_VECTOR(LAUREL_NORM_W, SH_LAYER "laurel.post_laurel_norm.weight", MODEL, 0, 0), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_window(c, 512, a, e) || sh_config_windows(c, sh_but_each, 5, a, e) || sh_gemma_borrows(a, c, 15, e)
               ? -1 : 0;
}

/* The number x of deviations above the mean below which a share of normal numbers lies: erfc(-x / sqrt(2)) / 2 =
 * share. */
static double deviations(double share)
{
    double low = -40, high = 40;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (erfc(-middle / sqrt(2)) / 2 < share)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/* The share of a gate that becomes 0, in each layer. */
static int read_sparsity(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    float usual = 0.95f, found = 0;
    int listed = sh_config_length(c, "activation_sparsity_pattern") > 0;
    for (int i = 0; i < a->n_layer; i++) {
        char key[60];
        float own = listed ? -1 : a->n_layer > 10 && i < 10 ? usual : 0;
        snprintf(key, sizeof key, "activation_sparsity_pattern.%d", i);
        if (listed && sh_config_real(c, key, 0.999999, &own, e))
            return -1;
        if (own < 0 || (own > 0 && own <= 0.5f) || (own > 0 && found > 0 && (own < found || own > found)))
            return sh_config_refuse(c, key, "0, or one share above 0.5 in all layers that have one", e);
        if (own > 0)
            sh_arch_make_cut(a, i);
        found = own > 0 ? own : found;
    }
    a->cut = found > 0 ? (float)deviations((double)found) : 0;
    return 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const whole[] = {"rope_scaling", "rope_parameters.full_attention", NULL};
    static const char *const local[] = {"rope_parameters.sliding_attention", NULL};
    if (!a->window)
        return sh_config_refuse(c, "sliding_window", "a number of tokens", e);
    if (a->streams.n < 2)
        return sh_config_refuse(c, "altup_num_inputs", "2 to 4", e);
    if ((long long)a->n_layer * a->streams.d_own > 10000000)
        return sh_config_refuse(c, "hidden_size_per_layer_input", "embeddings of a total width of at most 10^7", e);
    if (sh_config_at_least(c, "altup_active_idx", 0, a->streams.n - 1, &a->streams.active, e) ||
        sh_config_flag(c, "altup_correct_scale", &a->streams.scales, e) || read_sparsity(a, c, e) ||
        sh_gemma_cap(c, "final_logit_softcapping", &a->head_softcap, e) ||
        sh_config_rope(c, whole, a, &a->rope, e) || sh_config_rope(c, local, a, &a->local_rope, e))
        return -1;
    sh_config_lengthen(a, &a->rope);
    a->scale = 1;
    a->embed_scale = (float)sqrt((double)a->d_model);
    return 0;
}

/* Streams, the path next to attention and the embeddings of layers. */
static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    int n = 4, rank = 64, rows = 262144, width = 256, borrow = 15;
    if (sh_facts_count(c, "altup_num_inputs", 1, &n, e) || sh_facts_count(c, "laurel_rank", 1, &rank, e) ||
        sh_facts_count(c, "vocab_size_per_layer_input", 1, &rows, e) ||
        sh_facts_count(c, "hidden_size_per_layer_input", 1, &width, e) ||
        sh_config_at_least(c, "num_kv_shared_layers", 0, f->layers - 1, &borrow, e))
        return -1;
    long long hidden = f->hidden, streams = n, all = (long long)width * f->layers;
    f->borrowed = borrow;
    f->layer_more = 2 * width * hidden + 2 * rank * hidden + streams * hidden + streams * streams * (streams + 1);
    f->vectors_more = 4 * hidden;
    f->ends_more = rows * all + all * hidden + width + 2 * (streams - 1) * hidden * hidden;
    return 0;
}

const struct sh_family sh_family_gemma3n = {
    .special = "several residual streams (AltUp), LAuReL, own embeddings, lent keys and values",
    .name = "gemma3n", .model_types = SH_WORDS("gemma3n_text", "gemma3n"),
    .architectures = SH_WORDS("Gemma3nForCausalLM", "Gemma3nTextModel", "Gemma3nForConditionalGeneration"),
    .prefixes = SH_WORDS("model.language_model.", "language_model.model.", "model.", ""),
    .start = {.n_kv_head = 2, .d_head = 256, .n_vocab = 262400, .norm = SH_NORM_RMS, .norm_place = SH_NORM_BOTH,
              .act = SH_ACT_GELU_TANH, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-6f, .init_std = 0.02f,
              .max_pos = 32768, .rotary_share = 1, .rope = {.base = 1e6f}, .local_rope = {.base = 1e4f},
              .head_softcap = 30, .norms_values = 1,
              .streams = {.n = 4, .laurel = 64, .d_own = 256, .n_own = 262144, .scales = 1},
              .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_TIED_HEAD},
    .keys = keys, .params = params,
    .gguf = &sh_gguf_gemma3n,
    .knows = " sliding_window layer_types num_kv_shared_layers altup_num_inputs laurel_rank "
             "hidden_size_per_layer_input ",
    .shape = shape, .finish = finish, .count = count};
