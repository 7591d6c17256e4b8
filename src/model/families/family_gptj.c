/* SPDX-License-Identifier: Apache-2.0 */
/* GPT-J (Wang and Komatsuzaki, 2021): both blocks read one layer norm, neighbouring elements of a part of each head
 * rotate together, biases in the feed-forward block and the head. CodeGen (Nijkamp et al., 2022) stores q, v and k of
 * each fourth of the heads one after another. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define H "h.#."

static const struct sh_key keys[] = {
    SH_ACT_KEY("activation_function"), SH_REAL_KEY(norm_eps, 1, "layer_norm_epsilon"),
    SH_COUNT_KEY(n_rot, 1e5, "rotary_dim"), {.json = {NULL}}};

#define ENDS \
    SH_MATRIX(TOK_EMBED, "wte.weight", VOCAB, EMBED, 0), SH_NORM_PAIR(FINAL_NORM, "ln_f", 0), \
    SH_HEAD_PARAM("lm_head.weight"), SH_VECTOR(HEAD_B, "lm_head.bias", VOCAB, 0, SH_WHOLE_NAME)
#define REST \
    SH_MATRIX(O_W, H "attn.out_proj.weight", MODEL, Q, 0), SH_NORM_PAIR(ATTN_NORM, H "ln_1", 0), \
    SH_LINEAR(UP, H "mlp.fc_in", FF, MODEL, 0, 0), SH_LINEAR(DOWN, H "mlp.fc_out", MODEL, FF, 0, 0)
#define START {SH_LAYER_NORM_START, .act = SH_ACT_GELU_TANH, .rotary_share = 1, .n_rot = 64, \
               .flags = SH_HAS_MLP_BIAS | SH_HAS_NORM_AFFINE | SH_HAS_FINAL_NORM | SH_HAS_HEAD_BIAS | SH_PARALLEL | \
                        SH_ONE_NORM | SH_IN_PAIRS}

static const struct sh_param params[] = {
    ENDS, SH_MATRIX(Q_W, H "attn.q_proj.weight", Q, MODEL, 0), SH_MATRIX(K_W, H "attn.k_proj.weight", KV, MODEL, 0),
    SH_MATRIX(V_W, H "attn.v_proj.weight", KV, MODEL, 0), REST, {.name = NULL}};

static const struct sh_param params_codegen[] = {
    ENDS, SH_MATRIX(Q_W, H "attn.qkv_proj.weight", Q, MODEL, SH_IN_FOURTHS),
    SH_MATRIX(V_W, H "attn.qkv_proj.weight", KV, MODEL, SH_IN_FOURTHS),
    SH_MATRIX(K_W, H "attn.qkv_proj.weight", KV, MODEL, SH_IN_FOURTHS), REST, {.name = NULL}};

static int fourths(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return a->n_head % 4 ? sh_config_refuse(c, "n_head", "a multiple of 4", e) : sh_four_wide(a, c, e);
}

const struct sh_family sh_family_gptj = {
    .special = "parallel blocks, rotation of neighbours",
    .name = "gptj", .model_types = SH_WORDS("gptj"), .architectures = SH_WORDS("GPTJForCausalLM", "GPTJModel"),
    .prefixes = SH_WORDS("transformer.", ""), .start = START, .keys = keys, .params = params,
    .only = SH_WORDS("rope_scaling=null"), .shape = sh_four_wide, .finish = sh_config_classic_rope};

const struct sh_family sh_family_codegen = {
    .special = "parallel blocks, q, v and k in fourths of one tensor",
    .name = "codegen", .model_types = SH_WORDS("codegen"),
    .architectures = SH_WORDS("CodeGenForCausalLM", "CodeGenModel"), .prefixes = SH_WORDS("transformer.", ""),
    .start = START, .keys = keys, .params = params_codegen, .only = SH_WORDS("rope_scaling=null"), .shape = fourths,
    .finish = sh_config_classic_rope};
