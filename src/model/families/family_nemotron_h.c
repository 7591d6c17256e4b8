/* SPDX-License-Identifier: Apache-2.0 */
/* Nemotron-H and Nemotron 3 (NVIDIA, 2025): each layer is a single block: Mamba-2 (recurrent.c), attention without
 * positions, a feed-forward block or experts; the last two have a squared ReLU and no gate. The experts of Nemotron 3
 * Super and Ultra read and give a narrower vector. */
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("mlp_hidden_act"), SH_REAL_KEY(norm_eps, 1, "layer_norm_epsilon"),
    SH_COUNT_KEY(d_head, 1e5, "attention_head_dim"), SH_COUNT_KEY(recurrent.n_v, 1e6, "mamba_num_heads"),
    SH_COUNT_KEY(recurrent.d_v, 1e6, "mamba_head_dim"), SH_COUNT_KEY(recurrent.d_k, 1e5, "ssm_state_size"),
    SH_COUNT_KEY(recurrent.n_k, 1e5, "n_groups", "mamba_n_groups"),
    SH_COUNT_KEY(recurrent.kernel, SH_CONV_TAPS, "conv_kernel", "mamba_d_conv"),
    SH_REAL_KEY(recurrent.least, 1e6, "time_step_min", "mamba_dt_min"), SH_DEEPSEEK_MIXTURE,
    SH_COUNT_KEY(mix.shared_width, 1e8, "moe_shared_expert_intermediate_size"),
    SH_COUNT_KEY(mix.latent, 1e7, "moe_latent_size"), {.json = {NULL}}};

#define MIXER SH_LAYER "mixer."
static const struct sh_param params[] = {
    SH_MATRIX(TOK_EMBED, "embeddings.weight", VOCAB, EMBED, 0), SH_HEAD_PARAM("lm_head.weight"),
    SH_NORM_WEIGHT(FINAL_NORM, "norm_f.weight", MODEL, 0), SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "norm.weight", MODEL, 0),
    SH_LINEAR(Q, MIXER "q_proj", Q, MODEL, SH_HAS_BIAS, 0), SH_LINEAR(K, MIXER "k_proj", KV, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(V, MIXER "v_proj", KV, MODEL, SH_HAS_BIAS, 0),
    SH_LINEAR(O, MIXER "o_proj", MODEL, Q, SH_HAS_OUT_BIAS, 0), SH_MAMBA_2(MIXER),
    SH_DENSE(UP, "mixer.up_proj", FF, MODEL), SH_DENSE(DOWN, "mixer.down_proj", MODEL, FF),
    SH_ROUTER("mixer.gate.weight"), SH_CHOICE("mixer.gate.e_score_correction_bias"),
    SH_EXPERT_PART(UP, "mixer.experts.@.up_proj.weight", EXPERT_FF, EXPERT_IO, 0),
    SH_EXPERT_PART(DOWN, "mixer.experts.@.down_proj.weight", EXPERT_IO, EXPERT_FF, 0),
    {.role = SH_EXPERT_IN_W, .name = MIXER "fc1_latent_proj.weight", .rows = SH_DIM_EXPERT_IO, .cols = SH_DIM_MODEL,
     .needs = SH_EXPERT_LAYER},
    {.role = SH_EXPERT_OUT_W, .name = MIXER "fc2_latent_proj.weight", .rows = SH_DIM_MODEL, .cols = SH_DIM_EXPERT_IO,
     .needs = SH_EXPERT_LAYER},
    SH_SHARED_PART(UP, "mixer.shared_experts.up_proj.weight", SHARED_FF, MODEL),
    SH_SHARED_PART(DOWN, "mixer.shared_experts.down_proj.weight", MODEL, SHARED_FF), {.name = NULL}};

/* hybrid_override_pattern has a letter for each layer; newer files have a list. */
static int read_blocks(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word words[] = {
        {"mamba", SH_BLOCK_RECURRENT}, {"linear_attention", SH_BLOCK_RECURRENT}, {"attention", SH_BLOCK_ATTENTION},
        {"full_attention", SH_BLOCK_ATTENTION}, {"mlp", SH_BLOCK_FEED}, {"moe", SH_BLOCK_EXPERTS}, {NULL, 0}};
    static const char letters[] = "*M-E";       /* in the order of enum sh_layer_block                  */
    const char *pattern = NULL;
    for (int i = 0; i < 2; i++) {
        const char *list = i ? "layer_types" : "layers_block_type";
        if (sh_config_length(c, list) <= 0)
            continue;
        return sh_config_length(c, list) == a->n_layer ? sh_config_blocks(c, list, words, a, e)
                                                       : sh_config_refuse(c, list, "one string for each layer", e);
    }
    if (sh_config_word(c, "hybrid_override_pattern", &pattern, e))
        return -1;
    if (!pattern)
        return sh_fail(e, "%s: key 'hybrid_override_pattern' is missing", sh_config_path(c));
    if (strspn(pattern, letters) != strlen(pattern) || strlen(pattern) != (size_t)a->n_layer)
        return sh_config_refuse(c, "hybrid_override_pattern", "one letter for each layer: M, *, - or E", e);
    for (int i = 0; i < a->n_layer; i++)
        sh_config_set_block(a, i, (enum sh_layer_block)(strchr(letters, pattern[i]) - letters + SH_BLOCK_ATTENTION));
    return 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int conv = 1, biases = 0, mixes = 0;
    a->one_block = 1;
    a->flags &= ~(unsigned)SH_TIED_HEAD;        /* whatever tie_word_embeddings says            */
    if (read_blocks(a, c, e) || sh_config_flag(c, "use_conv_bias", &conv, e) ||
        sh_config_flag(c, "mamba_conv_bias", &conv, e) ||
        sh_config_flag(c, "use_bias", &biases, e))
        return -1;
    a->recurrent.has_conv_bias = conv;
    a->recurrent.has_bias = a->recurrent.has_out_bias = biases;
    for (int i = 0; i < a->n_layer; i++)
        mixes |= sh_arch_feeds(a, i) && !(a->mix.dense[i / 64] >> i % 64 & 1);
    if (!mixes)                         /* files without layers of experts may name counts of them all the same */
        a->mix = (struct sh_mixture){.n = 0};
    if (mixes && (sh_mixture_needs(c, a->mix.n, "n_routed_experts", e) ||
                  sh_mixture_needs(c, a->mix.used, "num_experts_per_tok", e) ||
                  sh_mixture_needs(c, a->mix.width, "moe_intermediate_size", e)))
        return -1;
    if (a->mix.latent > a->d_model)
        return sh_config_refuse(c, "moe_latent_size", "at most hidden_size", e);
    if (mixes && a->flags & SH_HAS_MLP_BIAS)
        return sh_config_refuse(c, "mlp_bias", "false in a model with experts", e);
    return sh_config_check_scan(c, "mamba_num_heads", a, e);
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_check_attends(c, "layers_block_type", a, e);
}

/* Experts may read a narrower vector. */
static const struct sh_fact_key facts[] = {SH_FACT(latent_ffn, 1, "moe_latent_size"), {.json = {NULL}}};

const struct sh_family sh_family_nemotron_h = {
    .special = "a block a layer: state space (Mamba-2), attention, feed-forward or experts",
    .name = "nemotron_h", .model_types = SH_WORDS("nemotron_h"),
    .architectures = SH_WORDS("NemotronHForCausalLM", "NemotronHModel"),
    .prefixes = SH_WORDS("backbone.", "model.", ""),
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_RELU2, .pos = SH_POS_NONE, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 4096, .d_head = 128, .d_ff = 21504,
              .recurrent = {.kind = SH_STATE_SPACE, .n_v = 128, .n_k = 8, .d_k = 128, .d_v = 64, .kernel = 4,
                            .normed = 1, .least = 0.001f},
              .mix = {.n = 8, .used = 2, .width = 7688, .shared_width = 7688, .groups = 1, .used_groups = 1,
                      .route = SH_ROUTE_SIGMOID, .by_best_two = 1, .scale = 1},
              .flags = SH_HAS_NORM_AFFINE | SH_HAS_FINAL_NORM | SH_MIX_NORMED},
    .keys = keys, .params = params, .gguf = &sh_gguf_nemotron_h, .facts = facts,
    .only = SH_WORDS("mamba_hidden_act=\"silu\""),
    .knows = " hybrid_override_pattern layers_block_type layer_types num_nextn_predict_layers num_local_experts ",
    .shape = shape, .finish = finish};
