/* SPDX-License-Identifier: Apache-2.0 */
/* ERNIE 4.5 (Baidu, 2025): LLaMA with neighbouring elements that rotate together. */
#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_FLAG_KEY(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS, "use_bias"), {.json = {NULL}}};

const struct sh_family sh_family_ernie4_5 = {
    .special = "rotation of neighbours",
    .name = "ernie4_5", .model_types = SH_WORDS("ernie4_5"),
    .architectures = SH_WORDS("Ernie4_5ForCausalLM", "Ernie4_5Model"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 131072, .rotary_share = 1, .rope = {.base = 500000}, .d_head = 128,
              .flags = SH_LLAMA_FLAGS | SH_IN_PAIRS | SH_TIED_HEAD},
    .keys = keys, .params = sh_llama_params,
    .gguf = &sh_gguf_ernie4_5, .finish = sh_config_classic_rope};

/* The text part of PaddleOCR-VL (2025): the halves of a head rotate together; older files have no text_config. */
static int shape_ocr(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int biased = 0;                         /* attention_bias and mlp_bias are no keys of it          */
    if (sh_config_flag(c, "use_bias", &biased, e))
        return -1;
    a->flags &= ~(unsigned)(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS);
    a->flags |= biased ? SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS : 0;
    if (sh_config_is_null(c, "head_dim"))
        a->d_head = 0;
    if (sh_config_is_null(c, "num_key_value_heads"))
        a->n_kv_head = a->n_head;
    return 0;
}

const struct sh_family sh_family_paddleocr_vl = {
    .special = "text of PaddleOCR-VL: LLaMA's tables",
    .name = "paddleocr_vl", .model_types = SH_WORDS("paddleocr_vl_text", "paddleocr_vl"),
    .architectures = SH_WORDS("PaddleOCRVLForConditionalGeneration"), .prefixes = sh_wrapper_prefixes,
    .start = {SH_LLAMA_START_WITH(1e-5f, 5e5f), .d_head = 128, .n_kv_head = 2, .flags = SH_LLAMA_FLAGS | SH_TIED_HEAD},
    .keys = keys, .params = sh_llama_params, .gguf = &sh_gguf_paddleocr_vl, .shape = shape_ocr,
    .finish = sh_config_whole_rope};

/* The mixtures: experts are chosen by a softmax with a correction; the shared experts are one. */
static const struct sh_key keys_moe[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(mix.n, 1e5, "moe_num_experts"), SH_COUNT_KEY(mix.used, 1e5, "moe_k"),
    SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"), {.json = {NULL}}};

static const struct sh_param params_moe[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_FEED,
    SH_ROUTER("mlp.gate.weight"), SH_CHOICE("mlp.moe_statics.e_score_correction_bias"), SH_LLAMA_EXPERTS,
    SH_SHARED("mlp.shared_experts"), {.name = NULL}};

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int first = 1, last = -1, every = 1;
    if (sh_mixture_needs(c, a->mix.n, "moe_num_experts", e) ||
        sh_mixture_needs(c, a->mix.width, "moe_intermediate_size", e) ||
        sh_mixture_shared(a, c, "moe_num_shared_experts", 2, e) ||
        sh_config_at_least(c, "moe_layer_start_index", 0, 100000000, &first, e) ||
        sh_config_at_least(c, "moe_layer_end_index", -1, 100000000, &last, e) ||
        sh_config_count(c, "moe_layer_interval", 100000000, &every, e))
        return -1;
    for (int i = 0; i < a->n_layer; i++)
        if (i < first || (last >= 0 && i > last) || (i + 1) % every)
            sh_arch_keep_dense(a, i);
    return 0;
}

const struct sh_family sh_family_ernie4_5_moe = {
    .special = "experts by a corrected choice, shared experts",
    .name = "ernie4_5_moe", .model_types = SH_WORDS("ernie4_5_moe"),
    .architectures = SH_WORDS("Ernie4_5_MoeForCausalLM", "Ernie4_5_MoeModel"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 131072, .rotary_share = 1, .rope = {.base = 500000},
              .mix = {.n = 64, .used = 6}, .flags = SH_LLAMA_FLAGS | SH_IN_PAIRS | SH_TIED_HEAD | SH_MIX_NORMED},
    .keys = keys_moe, .params = params_moe,
    .gguf = &sh_gguf_ernie4_5_moe, .only = SH_WORDS("use_bias=false", "moe_use_aux_free=true"),
    .knows = " moe_num_experts num_nextn_predict_layers ", .shape = shape, .finish = sh_config_classic_rope};

/* ---- the text part of ERNIE 4.5 VL (2025), whose second half of experts is for tokens of pictures alone: the first
 * row of corrections and the first of two widths are those of texts ---- */

static const struct sh_key keys_vl[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(mix.n, 1e5, "moe_num_experts"), SH_COUNT_KEY(mix.used, 1e5, "moe_k"), {.json = {NULL}}};

static const struct sh_param params_vl[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_FEED,
    {.role = SH_ROUTER_W, .name = SH_LAYER "mlp.gate.weight", .rows = SH_DIM_EXPERTS, .cols = SH_DIM_MODEL,
     .needs = SH_EXPERT_LAYER, .form = SH_TRANSPOSED},
    {.role = SH_ROUTER_CHOICE, .name = SH_LAYER "mlp.moe_statics.e_score_correction_bias", .cols = SH_DIM_EXPERTS,
     .needs = SH_EXPERT_LAYER, .form = SH_FIRST_ROW},
    SH_LLAMA_EXPERTS, SH_SHARED("mlp.shared_experts"), {.name = NULL}};

static int shape_vl(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->mix.width = 1536;
    a->flags &= ~(unsigned)(SH_HAS_BIAS | SH_HAS_OUT_BIAS | SH_HAS_MLP_BIAS);       /* no keys of it */
    if (sh_config_length(c, "moe_intermediate_size") < 0)
        return sh_config_refuse(c, "moe_intermediate_size", "two widths", e);
    return sh_config_count(c, "moe_intermediate_size.0", (int)1e8, &a->mix.width, e) ||
           sh_mixture_shared(a, c, "moe_num_shared_experts", 2, e) || sh_mixture_listed(a, c, 1, e) ? -1 : 0;
}

/* If frequencies are scaled, transformers has them in another order than the pairs. */
static int finish_vl(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_classic_rope(a, c, e))
        return -1;
    return a->rope.kind == SH_ROPE_PLAIN ? 0
           : sh_config_refuse(c, sh_config_is_filled(c, "rope_scaling") ? "rope_scaling" : "rope_parameters",
                              "frequencies that are not scaled", e);
}

const struct sh_family sh_family_ernie4_5_vl_moe = {
    .special = "text of ERNIE 4.5 VL: ERNIE 4.5 with experts",
    .name = "ernie4_5_vl_moe", .model_types = SH_WORDS("ernie4_5_vl_moe_text"),
    .architectures = SH_WORDS("Ernie4_5_VLMoeTextModel"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 131072, .rotary_share = 1, .rope = {.base = 500000}, .n_kv_head = 4,
              .mix = {.n = 64, .used = 6}, .flags = SH_LLAMA_FLAGS | SH_IN_PAIRS | SH_TIED_HEAD | SH_MIX_NORMED},
    .keys = keys_vl, .params = params_vl,
    .only = SH_WORDS("use_bias=false", "first_k_dense_replace=1", "moe_norm_min=1e-12", "num_experts=null",
                     "num_experts_per_tok=null"),
    .knows = " moe_num_experts moe_intermediate_size mlp_layer_types ", .shape = shape_vl, .finish = finish_vl};
