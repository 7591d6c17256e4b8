/* SPDX-License-Identifier: Apache-2.0 */
/* Ling 3.0 (inclusionAI, 2026): Kimi Delta Attention (recurrent.c), whose decays have a bound, in most layers;
 * DeepSeek's latent attention with a gate for each head in the last layer of each group; experts chosen by sigmoids
 * with a correction. Ling 2.5, whose files have the same model type, has linear attention of another kind. Some files
 * also limit activations in the last layers: these are refused. */
#include <stdio.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_LATENT_KEYS, SH_KIMI_MIXTURE, SH_COUNT_KEY(recurrent.n_v, 1e5, "linear_num_heads", "num_attention_heads"),
    SH_COUNT_KEY(recurrent.d_k, SH_DELTA_KEY, "linear_head_dim", "head_dim"),
    SH_COUNT_KEY(recurrent.kernel, SH_CONV_TAPS, "linear_conv_kernel_dim", "short_conv_kernel_size"),
    {.json = {NULL}}};

#define A SH_LAYER "attention."
static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "word_embeddings.weight", VOCAB, EMBED, 0), SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM,
    SH_LLAMA_IN_NORMS, SH_LATENT_ATTENTION(A, "dense"), SH_MATRIX(O_W, A "o_proj.weight", MODEL, VALUES, 0),
    SH_VECTOR(O_B, A "o_proj.bias", MODEL, SH_HAS_OUT_BIAS, 0),
    SH_MATRIX(ATTN_GATE_W, A "g_proj.weight", GATES, MODEL, 0),
    SH_KDA(A, "dense"), SH_MATRIX(RECUR_OUT_W, A "o_proj.weight", MODEL, RECUR_VALUES, 0),
    SH_KDA_IN(A, A "f_proj", RECUR_DECAYS), SH_KDA_IN(Z, A "g_proj", RECUR_VALUES),
    SH_LLAMA_FEED, SH_ROUTER("mlp.gate.weight"), SH_CHOICE("mlp.gate.expert_bias"),
    SH_CHOICE("mlp.gate.e_score_correction_bias"), SH_LLAMA_EXPERTS, SH_SHARED("mlp.shared_experts"), {.name = NULL}};

/* layer_types or, without it, the last layer of each group attends. */
static int read_layers(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {
        {"full_attention", SH_BLOCK_ATTENTION}, {"linear_attention", SH_BLOCK_RECURRENT}, {NULL, 0}};
    int group = 6;
    if (sh_config_has(c, "layer_types.0"))
        return sh_config_blocks(c, "layer_types", kinds, a, e);
    if (sh_config_count(c, "layer_group_size", 100000000, &group, e))
        return -1;
    for (int i = 0; i < a->n_layer; i++)
        sh_config_set_block(a, i, (i + 1) % group ? SH_BLOCK_RECURRENT : SH_BLOCK_ATTENTION);
    return 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int bounded = 1;
    float bound = -5;
    a->flags &= ~(unsigned)SH_TIED_HEAD;        /* whatever tie_word_embeddings says            */
    if (sh_latent_shape(a, c, e) || sh_kimi_shared(a, c, e) || sh_mixture_listed(a, c, 2, e) || read_layers(a, c, e) ||
        sh_config_flag(c, "kda_safe_gate", &bounded, e) || sh_config_below(c, "kda_lower_bound", -1000, &bound, e))
        return -1;
    a->recurrent.decay_bound = bounded ? bound : 0;
    return sh_kda_shape(a, c, e);
}

/* Limits of activations, layer by layer: 0 is none. */
static int check_limits(const struct sh_config *c, const char *list, struct sh_err *e)
{
    for (int i = 0; i < sh_config_length(c, list); i++) {
        char key[64];
        snprintf(key, sizeof key, "%s.%d", list, i);
        if (sh_config_is_set(c, key))
            return sh_config_refuse(c, key, "0: activations of experts without a limit", e);
    }
    return sh_config_length(c, list) < 0 && sh_config_is_set(c, list) ? sh_config_refuse(c, list, "a list", e) : 0;
}

/* The released files state the rotated share of an earlier version of the model; it has no effect unless the rotation
 * is scaled. */
static int check_share(const struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const keys_of_share[] = {
        "rope_scaling.partial_rotary_factor", "rope_parameters.partial_rotary_factor", "partial_rotary_factor"};
    const char *key = sh_config_first(c, keys_of_share, 3);
    float share = 1;
    if (sh_config_real(c, key, 1, &share, e))
        return -1;
    return share < 1 && a->rope.kind != SH_ROPE_PLAIN
               ? sh_config_refuse(c, key, "1, where the rotation is scaled", e) : 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return check_limits(c, "expert_swiglu_limit_list", e) || check_limits(c, "share_expert_swiglu_limit_list", e) ||
           sh_config_check_attends(c, "layer_types", a, e) || sh_latent_finish(a, c, e) || check_share(a, c, e)
               ? -1 : 0;
}

const struct sh_family sh_family_bailing_hybrid = {
    .special = "Kimi delta attention in most layers, latent attention with a gate for each head, experts in groups",
    .name = "bailing_hybrid", .model_types = SH_WORDS("bailing_hybrid"),
    .architectures = SH_WORDS("BailingMoeV3ForCausalLM", "BailingHybridForCausalLM", "BailingHybridModel"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-6f,
              .init_std = 0.02f, .max_pos = 262144, .rotary_share = 1, .rope = {.base = 6e6f}, .gates_heads = 1,
              .latent = {.rank = 512, .d_rope = 64, .d_nope = 128, .d_v = 128},
              .recurrent = {.d_k = 128, .kernel = 4},
              .mix = {.n = 512, .used = 8, .width = 768, .groups = 8, .used_groups = 4, .scale = 2.5f,
                      .route = SH_ROUTE_SIGMOID, .by_best_two = 1},
              .flags = SH_LLAMA_FLAGS | SH_MIX_NORMED | SH_ATTENTION_GATE},
    .keys = keys, .params = params, .gguf = &sh_gguf_bailing_hybrid,
    .only = SH_WORDS("hidden_act=\"silu\"", "mlp_bias=false", "rope_interleave=true", "use_mla_nope=false",
                     "no_kda_lora=true", "use_kda_lora=false", "kda_allow_neg_eigval=false", "use_bias=false",
                     "use_qkv_bias=false", "score_function=\"sigmoid\"", "moe_router_enable_expert_bias=true",
                     "gated_attention_proj_granularity_type=\"head_wise\"", "up_proj_norm=false", "value_norm=false",
                     "use_nGPT=false", "scale_router_input=false"),
    .knows = " layer_types mlp_layer_types first_k_dense_replace num_nextn_predict_layers max_window_layers ",
    .shape = shape, .finish = finish};
