/* SPDX-License-Identifier: Apache-2.0 */
/* Apertus (Swiss AI, 2025): LLaMA with norms on queries and keys, and xIELU without gate. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define ACT SH_LAYER "mlp.act_fn."

#define LAYERS \
    SH_LLAMA_FINAL_NORM, SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "attention_layernorm.weight", MODEL, 0), \
    SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, \
    SH_NORM_WEIGHT(MLP_NORM, SH_LAYER "feedforward_layernorm.weight", MODEL, 0), SH_LLAMA_PLAIN_FEED, \
    {.role = SH_ACT_AP, .name = ACT "alpha_p"}, {.role = SH_ACT_AN, .name = ACT "alpha_n"}, \
    {.role = SH_ACT_BETA, .name = ACT "beta"}, {.role = SH_ACT_EPS, .name = ACT "eps"}, {.name = NULL}
static const struct sh_param params[] = {SH_LLAMA_ENDS, LAYERS};

/* A file that says nothing about the rotation means LLaMA 3's scaling. */
static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_whole_rope(a, c, e))
        return -1;
    if (!sh_config_says_rope(c) && !sh_config_is_gguf(c))
        a->rope = (struct sh_rope){.kind = SH_ROPE_LLAMA3, .base = a->rope.base, .factor = 8, .low = 1, .high = 4,
                                   .original = 8192};
    return 0;
}

#define ONLY SH_WORDS("hidden_act=\"xielu\"", "qk_norm=true", "post_norm=false")
#define START \
    .norm = SH_NORM_RMS, .act = SH_ACT_XIELU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f, \
    .init_std = 0.02f, .max_pos = 65536, .rotary_share = 1, .rope = {.base = 12e6f}, \
    .flags = SH_HAS_NORM_AFFINE | SH_HAS_FINAL_NORM | SH_HAS_QK_NORM

const struct sh_family sh_family_apertus = {
    .special = "xIELU, a norm of each query and key",
    .name = "apertus", .model_types = SH_WORDS("apertus"),
    .architectures = SH_WORDS("ApertusForCausalLM", "ApertusModel"), .prefixes = sh_llama_prefixes,
    .start = {START},
    .keys = sh_llama_keys, .params = params, .gguf = &sh_gguf_apertus,
    .only = ONLY, .finish = finish};

/* ---- 1.5 (2026): tokens of images and sound, for which the output head has no rows ---- */

static const struct sh_key keys_1p5[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(rotary_share, 1, "rope_scaling.partial_rotary_factor", "rope_parameters.partial_rotary_factor",
                "partial_rotary_factor"),
    SH_COUNT_KEY(n_out, 1e8, "output_vocab_size"), {.json = {NULL}}};

static const struct sh_param params_1p5[] = {
    SH_MATRIX(TOK_EMBED, "embed_tokens.weight", VOCAB, EMBED, 0),
    {.role = SH_HEAD, .name = "lm_head.weight", .rows = SH_DIM_OUT, .cols = SH_DIM_EMBED, .unless = SH_TIED_HEAD,
     .form = SH_WHOLE_NAME}, LAYERS};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (a->n_out > a->n_vocab)
        return sh_config_refuse(c, "output_vocab_size", "at most vocab_size", e);
    if (a->n_out == a->n_vocab)
        a->n_out = 0;
    return a->n_out && a->flags & SH_TIED_HEAD
               ? sh_config_refuse(c, "tie_word_embeddings", "false, with a head of output_vocab_size rows", e) : 0;
}

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    return sh_facts_count(c, "output_vocab_size", 1, &f->head_rows, e);
}

const struct sh_family sh_family_apertus1p5 = {
    .special = "xIELU, a norm of each query and key, maybe a head for the first tokens only",
    .name = "apertus1p5", .model_types = SH_WORDS("apertus1p5_text", "apertus1p5"),
    .architectures = SH_WORDS("Apertus1p5TextForCausalLM", "Apertus1p5TextModel", "Apertus1p5ForConditionalGeneration"),
    .prefixes = SH_WORDS("model.language_model.", "model.", ""), .start = {START, .n_vocab = 266752},
    .keys = keys_1p5, .params = params_1p5, .only = ONLY, .shape = shape, .finish = finish, .count = count};
