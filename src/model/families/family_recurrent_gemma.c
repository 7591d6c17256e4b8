/* SPDX-License-Identifier: Apache-2.0 */
/* RecurrentGemma (Botev et al., 2024; Griffin, De et al., 2024): in two of three layers a gated linear recurrence after
 * a short convolution (recurrent.c), in the third attention with a window. Gemma's norms, scaled embedding and tied
 * head, and capped logits. */
#include <math.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_activation"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"),
    SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(rotary_share, 1, "rope_parameters.partial_rotary_factor", "rope_scaling.partial_rotary_factor",
                "partial_rotary_factor"),
    SH_COUNT_KEY(recurrent.kernel, SH_CONV_TAPS, "conv1d_width"), {.json = {NULL}}};

#define BLOCK SH_LAYER "temporal_block."
#define GATE(part, bias, stem) \
    {.role = SH_RECUR_##part##_W, .name = BLOCK "rg_lru." stem "_weight", .rows = SH_DIM_RECUR_HEAD, \
     .cols = SH_DIM_RECUR_HEAD, .form = SH_TRANSPOSED, .count = SH_DIM_RECUR_HEADS}, \
    SH_MATRIX(RECUR_##bias##_B, BLOCK "rg_lru." stem "_bias", RECUR_HEADS, RECUR_HEAD, 0)
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_NORM_WEIGHT(FINAL_NORM, "final_norm.weight", MODEL, 0),
    SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "temporal_pre_norm.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_NORM, SH_LAYER "channel_pre_norm.weight", MODEL, 0),
    SH_LINEAR(Q, BLOCK "q_proj", Q, MODEL, SH_HAS_BIAS, 0), SH_LINEAR(K, BLOCK "k_proj", KV, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(V, BLOCK "v_proj", KV, MODEL, SH_HAS_BIAS, 0), SH_LINEAR(O, BLOCK "o_proj", MODEL, Q, 0, 0),
    SH_MAMBA_PART(Z, BLOCK "linear_y", RECUR_VALUES), SH_MAMBA_PART(X, BLOCK "linear_x", RECUR_VALUES),
    SH_MATRIX(RECUR_CONV, BLOCK "conv_1d.weight", RECUR_CHANNELS, RECUR_KERNEL, 0),
    SH_VECTOR(RECUR_CONV_B, BLOCK "conv_1d.bias", RECUR_CHANNELS, 0, 0),
    GATE(DECAY, A, "recurrent_gate"), GATE(INPUT, B, "input_gate"),
    SH_VECTOR(RECUR_STEP, BLOCK "rg_lru.recurrent_param", RECUR_VALUES, 0, 0),
    SH_LINEAR(RECUR_OUT, BLOCK "linear_out", MODEL, RECUR_VALUES, 0, 0),
    SH_LINEAR(GATE, SH_LAYER "mlp_block.gate_proj", FF, MODEL, 0, 0),
    SH_LINEAR(UP, SH_LAYER "mlp_block.up_proj", FF, MODEL, 0, 0),
    SH_LINEAR(DOWN, SH_LAYER "mlp_block.down_proj", MODEL, FF, 0, 0), {.name = NULL}};

/* block_types is repeated over the layers. */
static int read_layers(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {
        {"recurrent", SH_BLOCK_RECURRENT}, {"attention", SH_BLOCK_ATTENTION}, {NULL, 0}};
    int n = sh_config_length(c, "block_types"), given = sh_config_has(c, "block_types");
    if (given && n < 1)
        return sh_config_refuse(c, "block_types", "a list of recurrent and attention", e);
    for (int i = 0; i < a->n_layer; i++) {
        int kind = i % 3 == 2 ? SH_BLOCK_ATTENTION : SH_BLOCK_RECURRENT;
        if (given && sh_config_choice_at(c, "block_types", i % n, kinds, &kind, e))
            return -1;
        sh_config_set_block(a, i, (enum sh_layer_block)kind);
    }
    return 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const windows[] = {"sliding_window", "attention_window_size"};
    struct sh_recurrent *r = &a->recurrent;
    int width = a->d_model;
    a->window = 2048;
    if (sh_config_count(c, "lru_width", 1000000, &width, e) ||
        sh_config_count(c, sh_config_first(c, windows, 2), (int)1e8, &a->window, e))
        return -1;
    if (width > 1000000 || width % a->n_head)
        return sh_config_refuse(c, "lru_width", "at most 10^6, a multiple of num_attention_heads", e);
    if (a->d_ff == 1)
        return sh_config_refuse(c, "intermediate_size", "at least 2: the feed-forward block is half as wide", e);
    r->n_v = a->n_head;
    r->d_v = width / a->n_head;
    a->d_ff /= 2;
    return read_layers(a, c, e);
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->head_softcap = 30;
    a->embed_scale = sh_bf16_to_f32(sh_f32_to_bf16(sqrtf((float)a->d_model)));
    if (sh_gemma_cap(c, "logits_soft_cap", &a->head_softcap, e) ||
        sh_config_check_attends(c, "block_types", a, e) || sh_config_classic_rope(a, c, e))
        return -1;
    if (!(a->head_softcap > 0))
        return sh_config_refuse(c, "logits_soft_cap", "a number above 0", e);
    return a->rope.kind == SH_ROPE_PLAIN ? 0 : sh_fail(e, "%s: found scaled rotary positions, expected none for this "
                                                       "model type", sh_config_path(c));
}

const struct sh_family sh_family_recurrent_gemma = {
    .special = "gated linear recurrences, attention with a window in one of three layers, capped logits",
    .name = "recurrent_gemma", .model_types = SH_WORDS("recurrent_gemma"),
    .architectures = SH_WORDS("RecurrentGemmaForCausalLM", "RecurrentGemmaModel"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_GELU_TANH, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-6f,
              .init_std = 0.02f, .max_pos = 8192, .rotary_share = 0.5f, .rope = {.base = 10000},
              .recurrent = {.kind = SH_GATED_LRU, .d_k = 1, .kernel = 4, .has_bias = 1, .has_out_bias = 1,
                            .has_conv_bias = 1},
              .flags = SH_LLAMA_FLAGS | SH_NORM_PLUS_ONE | SH_TIED_HEAD},
    .keys = keys, .params = params, .unread = SH_WORDS("mlp_bias"),
    .knows = " block_types sliding_window ", .shape = shape, .finish = finish};
