/* SPDX-License-Identifier: Apache-2.0 */
/* Baichuan 1 and 2 (Baichuan Inc., 2023), whose code comes with their files: LLaMA with q, k and v in one tensor; the
 * models of 13B have ALiBi in place of the rotation, and Baichuan 2 divides the rows of its head by their lengths. All
 * have the same model type, and most the same architecture. They differ in their keys: models that rotate have
 * max_position_embeddings, those with ALiBi only model_max_length; Baichuan 2 has z_loss_weight or its own vocabulary
 * size. llama.cpp tells models of 7B and 13B apart by their number of layers and leaves the head as it is, as its
 * converter does; here the head is divided, which changes nothing if it was divided before. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

enum { TOKENS_2 = 125696, WIDTH_7B = 4096, WIDTH_13B = 5120, LAYERS_7B = 32, LAYERS_13B = 40 };

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "gguf.rope_theta"),
    SH_COUNT_KEY(max_pos, 1e8, "max_position_embeddings", "model_max_length"), {.json = {NULL}}};

#define PACK SH_LAYER "self_attn.W_pack.weight"
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_MATRIX(Q_W, PACK, Q, MODEL, 0),
    SH_MATRIX(K_W, PACK, KV, MODEL, 0), SH_MATRIX(V_W, PACK, KV, MODEL, 0),
    SH_MATRIX(O_W, SH_LAYER "self_attn.o_proj.weight", MODEL, Q, 0), SH_LLAMA_FEED, {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int turns = sh_config_has(c, "max_position_embeddings");
    a->flags &= ~(unsigned)(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS);
    if (sh_config_is_gguf(c)) {
        turns = a->n_layer == LAYERS_7B;
        if (!turns && a->n_layer != LAYERS_13B)
            return sh_config_refuse(c, "num_hidden_layers", "32 (a model that rotates) or 40 (one with ALiBi)", e);
    } else if (a->d_model == (turns ? WIDTH_13B : WIDTH_7B)) {
        return sh_config_refuse(c, "max_position_embeddings", turns ? "none in a model of 13B, which has ALiBi"
                                                                    : "a number in a model of 7B, which rotates", e);
    }
    a->pos = turns ? SH_POS_ROTARY : SH_POS_ALIBI;
    return 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int second = a->n_vocab == TOKENS_2 || sh_config_has(c, "z_loss_weight");
    if (second && a->flags & SH_TIED_HEAD)
        return sh_config_refuse(c, "tie_word_embeddings", "false in Baichuan 2", e);
    a->head_norm = second ? SH_HEAD_ROWS : SH_HEAD_PLAIN;
    return a->pos == SH_POS_ROTARY ? sh_config_classic_rope(a, c, e) : 0;
}

const struct sh_family sh_family_baichuan = {
    .special = "q, k and v in one tensor, ALiBi in models of 13B, a normed head",
    .name = "baichuan", .model_types = SH_WORDS("baichuan"),
    .architectures = SH_WORDS("BaichuanForCausalLM", "BaiChuanForCausalLM"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS}, .keys = keys, .params = params, .gguf = &sh_gguf_baichuan,
    .only = SH_WORDS("rope_theta=null", "rope_parameters=null", "partial_rotary_factor=null", "attention_bias=false"),
    .shape = shape, .finish = finish};
