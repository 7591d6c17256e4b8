/* SPDX-License-Identifier: Apache-2.0 */
/* LongCat-Flash (Meituan, 2025): a layer of the file becomes two layers here, each with latent attention, whose latents
 * have factors, and a plain block. Experts read the input of the first plain block, and their output is added after the
 * second one. Some of the experts return their input. */
#include <math.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

enum { PARTS = 2 };

static const struct sh_key keys[] = {
    SH_LATENT_KEYS, SH_COUNT_KEY(n_layer, 5000, "num_layers", "num_hidden_layers"),
    SH_COUNT_KEY(d_ff, 1e8, "ffn_hidden_size", "intermediate_size"),
    SH_COUNT_KEY(mix.n, 1e5, "n_routed_experts", "num_local_experts"),
    SH_COUNT_KEY(mix.used, 1e5, "moe_topk", "num_experts_per_tok"),
    SH_COUNT_KEY(mix.width, 1e8, "expert_ffn_hidden_size", "moe_intermediate_size"),
    SH_REAL_KEY(mix.scale, 1e6, "routed_scaling_factor"), {.json = {NULL}}};

#define FEED(part, tensor, out, in) SH_MATRIX(part##_W, SH_LAYER "mlps.%." tensor ".weight", out, in, 0)
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "input_layernorm.%.weight", MODEL, 0),
    SH_NORM_WEIGHT(MLP_NORM, SH_LAYER "post_attention_layernorm.%.weight", MODEL, 0),
    SH_LATENT_ATTENTION(SH_LAYER "self_attn.%.", "o_proj"), FEED(GATE, "gate_proj", FF, MODEL),
    FEED(UP, "up_proj", FF, MODEL), FEED(DOWN, "down_proj", MODEL, FF),
    {.role = SH_ROUTER_W, .name = SH_LAYER "mlp.router.classifier.weight", .rows = SH_DIM_ROUTES, .cols = SH_DIM_MODEL,
     .needs = SH_EXPERT_LAYER},
    {.role = SH_ROUTER_CHOICE, .name = SH_LAYER "mlp.router.e_score_correction_bias", .cols = SH_DIM_ROUTES,
     .needs = SH_EXPERT_LAYER},
    SH_LLAMA_EXPERTS, {.name = NULL}};

/* num_layers are pairs; num_hidden_layers, which some files have instead, counts both. */
static int double_layers(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char pairs[] = "num_layers", all[] = "num_hidden_layers";
    int n = 0;
    if (sh_config_count(c, all, 2 * 5000, &n, e))
        return -1;
    if (sh_config_is_set(c, pairs) && n && n != PARTS * a->n_layer)
        return sh_config_refuse(c, all, "twice num_layers", e);
    if (!sh_config_is_set(c, pairs) && n % PARTS)
        return sh_config_refuse(c, all, "an even number", e);
    a->n_layer = sh_config_is_set(c, pairs) ? PARTS * a->n_layer : n;
    return 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (sh_config_is_null(c, "q_lora_rank"))
        return sh_config_refuse(c, "q_lora_rank", "a whole number", e);
    if (double_layers(a, c, e) || sh_latent_shape(a, c, e) ||
        sh_config_at_least(c, "zero_expert_num", 0, 100000, &a->mix.zero, e))
        return -1;
    if (sh_config_is_null(c, "zero_expert_num"))
        a->mix.zero = 0;
    for (int layer = 1; layer < a->n_layer; layer += PARTS)
        sh_arch_keep_dense(a, layer);
    return 0;
}

/* Checks a key whose value follows from other keys; it may be absent. */
static int check_same(const struct sh_config *c, const char *key, int usual, int wanted, const char *expected,
                      struct sh_err *e)
{
    int found = usual;
    if (sh_config_count(c, key, 100000000, &found, e))
        return -1;
    return found == wanted ? 0 : sh_config_refuse(c, key, expected, e);
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    const struct sh_latent *t = &a->latent;
    float share = 1;
    int keys_width = t->d_nope + t->d_rope;
    if (check_same(c, "head_dim", 64, t->d_rope, "the same as qk_rope_head_dim (64 if the key is missing)", e) ||
        check_same(c, "qk_head_dim", keys_width, keys_width, "qk_nope_head_dim + qk_rope_head_dim", e) ||
        check_same(c, "num_key_value_heads", a->n_head, a->n_head, "the same as num_attention_heads", e) ||
        sh_config_real(c, "partial_rotary_factor", 1, &share, e) || sh_latent_finish(a, c, e))
        return -1;
    a->scale *= sqrtf((float)a->d_model / (float)t->q_rank);
    a->latent.by = sqrtf((float)a->d_model / (float)t->rank);
    return share < 1 ? sh_config_refuse(c, "partial_rotary_factor", "1", e) : 0;
}

/* In a layer with experts, the plain block is counted as a shared expert. Of the experts that a token chooses, only
 * those count that compute something, on average. */
static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    int zero = 256;
    if (sh_config_at_least(c, "zero_expert_num", 0, 100000, &zero, e))
        return -1;
    zero = sh_config_is_null(c, "zero_expert_num") ? 0 : zero;
    int used = (int)((double)f->used * f->experts / (f->experts + zero) + 0.5);
    f->used = used > 1 ? used : 1;
    f->shared_ffn = f->ffn;
    f->ends_more = (long long)zero * f->hidden * (f->layers / PARTS);
    return 0;
}

const struct sh_family sh_family_longcat_flash = {
    .special = "latent attention in pairs of layers with experts across them, some of which compute nothing",
    .name = "longcat_flash", .model_types = SH_WORDS("longcat_flash"),
    .architectures = SH_WORDS("LongcatFlashForCausalLM", "LongcatFlashModel"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START_WITH(1e-5f, 1e7f),
              .latent = {.rank = 512, .q_rank = 1536, .d_rope = 64, .d_nope = 128, .d_v = 128},
              .mix = {.n = 512, .used = 12, .width = 2048, .zero = 256, .late = 1, .scale = 6},
              .flags = SH_LLAMA_FLAGS | SH_HAS_CORRECTION},
    .keys = keys, .params = params, .parts = PARTS,
    .only = SH_WORDS("rope_interleave=true", "mlp_bias=false", "router_bias=false", "norm_topk_prob=false",
                     "mla_scale_q_lora=true", "mla_scale_kv_lora=true", "zero_expert_type=\"identity\"",
                     "attention_method=\"MLA\""),
    .knows = " num_nextn_predict_layers ", .shape = shape, .finish = finish, .count = count};
