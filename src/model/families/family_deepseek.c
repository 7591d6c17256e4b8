/* SPDX-License-Identifier: Apache-2.0 */
/* DeepSeek-V2 and V3 and Kimi-K2: latent attention, and experts in groups, which V2 ranks by their best score and V3 by
 * their two best; Mistral Small 4. Youtu-LLM (Tencent, 2025): latent attention without experts. DeepSeek-V3.2 and
 * GLM-5: latent attention to the tokens that an index chooses; they run on texts so short that it chooses all. A.X-K1
 * (SK Telecom, 2026): V3 with a norm on the experts' output. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define LATENT \
    SH_NEEDED_FACT(latent, "kv_lora_rank"), SH_FACT(rope_dim, 1, "qk_rope_head_dim"), \
    SH_FACT(nope_dim, 1, "qk_nope_head_dim"), SH_FACT(v_dim, 1, "v_head_dim"), \
    SH_FACT(dense_first, 0, "first_k_dense_replace"), SH_NEEDED_FACT(experts, "n_routed_experts"), \
    SH_NEEDED_FACT(used, "num_experts_per_tok"), SH_NEEDED_FACT(expert_ffn, "moe_intermediate_size")
#define KNOWS " moe_layer_freq num_nextn_predict_layers "
#define INDEX_KNOWS KNOWS "layer_types mlp_layer_types num_local_experts "

static const struct sh_fact_key facts[] = {LATENT, SH_FACT(q_latent, 1, "q_lora_rank"), {.json = {NULL}}};
static const struct sh_fact_key index_facts[] = {
    LATENT, SH_NEEDED_FACT(index_dim, "index_head_dim"), SH_NEEDED_FACT(index_heads, "index_n_heads"),
    SH_NEEDED_FACT(index_topk, "index_topk"), SH_NEEDED_FACT(q_latent, "q_lora_rank"), {.json = {NULL}}};

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    int step = 1, shared = 0;
    if (sh_facts_count(c, "moe_layer_freq", 1, &step, e) || sh_facts_count(c, "n_shared_experts", 0, &shared, e))
        return -1;
    if (step != 1)
        return sh_config_refuse(c, "moe_layer_freq", "1", e);
    long long width = (long long)shared * f->expert_ffn;
    f->shared_ffn = width <= 100000000 ? (int)width : 0;
    return width <= 100000000 ? 0 : sh_config_refuse(c, "n_shared_experts", "shared experts with a total width of at "
                                                     "most 10^8", e);
}

/* The leading plain layers as newer files list them. The pattern is made anew after that. */
static int listed_feeds(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    static const struct sh_word mixes[] = {{"indexed_attention", 'I'}, {"deepseek_sparse_attention", 'I'}, {NULL, 0}};
    static const struct sh_word feeds[] = {{"dense", '-'}, {"sparse", 'E'}, {NULL, 0}};
    if (sh_config_length(c, "layer_types") > 0 && sh_facts_pattern(c, "layer_types", mixes, f, e))
        return -1;
    if (sh_config_length(c, "mlp_layer_types") <= 0)
        return 0;
    if (sh_facts_pattern(c, "mlp_layer_types", feeds, f, e))
        return -1;
    f->dense_first = (int)strspn(f->pattern, "-");
    const char *late = strchr(f->pattern + f->dense_first, '-');
    char key[40];
    snprintf(key, sizeof key, "mlp_layer_types.%d", late ? (int)(late - f->pattern) : 0);
    return late ? sh_config_refuse(c, key, "sparse, like the layers before it", e) : 0;
}

/* Layers with an index of their own; the others ("shared") use the choice of the last one before them. They are given
 * by a list, by a word with a letter for each layer, or by a rule: every so many layers, from one on. */
int sh_index_pattern(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    static const struct sh_word words[] = {{"full", 'I'}, {"F", 'I'}, {"shared", 'G'}, {"S", 'G'}, {NULL, 0}};
    static const char spelled[] = "index_topk_pattern";
    int every = 1, offset = 2;
    const char *letters = NULL;
    struct sh_err ignored = {0};
    if (sh_facts_count(c, "index_topk_freq", 0, &every, e) ||
        sh_facts_count(c, "index_skip_topk_offset", 0, &offset, e))
        return -1;
    if (f->layers >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "num_hidden_layers", "fewer than 1024", e);
    for (const char *const *list = SH_WORDS("indexer_types", spelled); *list; list++)
        if (sh_config_length(c, *list) > 0)
            return sh_facts_pattern(c, *list, words, f, e);
    if (!sh_config_word(c, spelled, &letters, &ignored) && letters &&
        (strlen(letters) != (size_t)f->layers || strspn(letters, "FS") != strlen(letters)))
        return sh_config_refuse(c, spelled, "one letter, F or S, for each layer", e);
    for (int i = 0; i < f->layers; i++) {
        int past = i - offset + 1 > 0 ? i - offset + 1 : 0;
        int is_full = letters ? letters[i] == 'F' : past % (every ? every : 1) == 0;
        f->pattern[i] = is_full ? 'I' : 'G';
    }
    f->pattern[f->layers] = '\0';
    return 0;
}

static int count_indexed(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    return count(f, c, e) || listed_feeds(c, f, e) || sh_index_pattern(c, f, e) ? -1 : 0;
}

/* ---- what runs ---- */

const struct sh_key sh_deepseek_keys[] = {SH_LATENT_KEYS, SH_DEEPSEEK_MIXTURE, {.json = {NULL}}};
const struct sh_key sh_latent_keys[] = {SH_LATENT_KEYS, {.json = {NULL}}};

#define LATENT_PARAMS \
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LLAMA_FEED, \
    SH_LATENT_ATTENTION(SH_LAYER "self_attn.", "o_proj")

const struct sh_param sh_deepseek_params[] = {
    LATENT_PARAMS, SH_ROUTER("mlp.gate.weight"), SH_LLAMA_EXPERTS, SH_SHARED("mlp.shared_experts"),
    {.role = SH_ROUTER_CHOICE, .name = SH_LAYER "mlp.gate.e_score_correction_bias", .cols = SH_DIM_EXPERTS,
     .needs = SH_EXPERT_LAYER | SH_HAS_CORRECTION},
    {.name = NULL}};
const struct sh_param sh_latent_params[] = {LATENT_PARAMS, {.name = NULL}};

int sh_latent_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    const struct sh_latent *t = &a->latent;
    if (t->q_rank)
        a->flags |= SH_Q_LATENT;
    if (t->rank && t->d_rope)
        a->d_head = t->d_rope + t->rank;
    a->n_rot = t->d_rope;
    a->n_kv_head = 1;
    return sh_mixture_needs(c, t->rank, "kv_lora_rank", e) || sh_mixture_needs(c, t->d_rope, "qk_rope_head_dim", e) ||
           sh_mixture_needs(c, t->d_nope, "qk_nope_head_dim", e) || sh_mixture_needs(c, t->d_v, "v_head_dim", e)
               ? -1 : 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word scores[] = {{"softmax", 0}, {"sigmoid", 1}, {NULL, 0}};
    static const struct sh_word methods[] = {{"greedy", 0}, {"group_limited_greedy", 1}, {"noaux_tc", 2}, {NULL, 0}};
    const char *type = "";
    if (sh_config_word(c, "model_type", &type, e))
        return -1;
    int older = !strcmp(type, "deepseek_v2"), sigmoid = !older, method = older ? 0 : 2;
    if (!older && !sh_config_has(c, "norm_topk_prob"))
        a->flags |= SH_MIX_NORMED;
    if (!older && !sh_config_has(c, "routed_scaling_factor"))
        a->mix.scale = 2.5f;
    if (sh_latent_shape(a, c, e) || sh_mixture_needs(c, a->mix.n, "n_routed_experts", e) ||
        sh_mixture_needs(c, a->mix.used, "num_experts_per_tok", e) ||
        sh_mixture_needs(c, a->mix.width, "moe_intermediate_size", e) ||
        sh_mixture_shared(a, c, "n_shared_experts", older ? 2 : 1, e) ||
        sh_mixture_after(a, c, "first_k_dense_replace", older ? 0 : 3, e) ||
        sh_config_choice(c, "scoring_func", scores, &sigmoid, e) ||
        sh_config_choice(c, "topk_method", methods, &method, e))
        return -1;
    if (older && a->flags & SH_MIX_NORMED)
        return sh_config_refuse(c, "norm_topk_prob", "false", e);
    a->mix.route = sigmoid ? SH_ROUTE_SIGMOID : SH_ROUTE_SOFTMAX;
    a->mix.by_best_two = method == 2;
    a->mix.groups = method ? a->mix.groups : 0;
    a->flags |= method == 2 ? SH_HAS_CORRECTION : 0;
    return 0;
}

int sh_latent_still(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    const struct sh_latent *t = &a->latent;
    long long width = (long long)a->n_head * (t->rank + t->d_rope), b = (long long)a->n_head * (t->d_nope + t->d_rope);
    if (width > 100000000 || b > 100000000 || (long long)a->n_head * (t->d_nope + t->d_v) > 100000000)
        return sh_config_refuse(c, "kv_lora_rank", "a latent of at most 10^8 numbers over all heads", e);
    a->scale = (float)(1 / sqrt((double)(t->d_nope + t->d_rope)));
    return 0;
}

/* One KV head of [rotary key, latent]. YaRN sharpens the scores by mscale_all_dim, too. */
int sh_latent_finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    const struct sh_latent *t = &a->latent;
    float weight = 0;
    int pairs = 1;
    if (t->d_rope % 2)
        return sh_config_refuse(c, "qk_rope_head_dim", "an even number", e);
    if (sh_latent_still(a, c, e) || sh_config_flag(c, "rope_interleave", &pairs, e) ||
        sh_config_classic_rope(a, c, e) ||
        sh_config_real(c, sh_config_is_filled(c, "rope_scaling") ? "rope_scaling.mscale_all_dim"
                                                                  : "rope_parameters.mscale_all_dim", 1e6, &weight, e))
        return -1;
    a->flags |= pairs ? SH_IN_PAIRS : 0;
    double sharper = a->rope.kind == SH_ROPE_YARN && weight > 0
                         ? sh_rope_sharpening((double)a->rope.factor, (double)weight) : 1;
    a->scale = (float)(sharper * sharper / sqrt((double)(t->d_nope + t->d_rope)));
    return 0;
}

const struct sh_family sh_family_deepseek = {
    .special = "latent attention, experts in groups, shared experts",
    .name = "deepseek", .model_types = SH_WORDS("deepseek_v2", "deepseek_v3", "kimi_k2"),
    .architectures = SH_WORDS("DeepseekV3ForCausalLM", "DeepseekV2ForCausalLM", "DeepseekV3Model", "DeepseekV2Model"),
    .prefixes = SH_WORDS("model.", "", "language_model.model.", "model.language_model."),
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS}, .keys = sh_deepseek_keys,
    .params = sh_deepseek_params,
    .gguf = &sh_gguf_deepseek,
    .only = SH_WORDS("moe_layer_freq=1", "mlp_bias=false"), .facts = facts, .knows = KNOWS, .shape = shape,
    .finish = sh_latent_finish, .count = count};

const struct sh_family sh_family_youtu = {
    .special = "latent attention, plain feed-forward blocks",
    .name = "youtu", .model_types = SH_WORDS("youtu"), .architectures = SH_WORDS("YoutuForCausalLM", "YoutuModel"),
    .prefixes = sh_llama_prefixes, .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS | SH_TIED_HEAD},
    .keys = sh_latent_keys, .params = sh_latent_params,
    .gguf = &sh_gguf_deepseek, .only = SH_WORDS("mlp_bias=false"), .shape = sh_latent_shape,
    .finish = sh_latent_finish};

/* ---- Mistral Small 4 (Mistral AI, 2026): softmax, and queries that grow with the logarithm of their position ---- */

static const struct sh_param params_mistral[] = {
    LATENT_PARAMS, SH_ROUTER("mlp.gate.weight"),
    SH_EXPERT_PART(GATE, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(UP, "mlp.experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(DOWN, "mlp.experts.down_proj", MODEL, EXPERT_FF, 0), SH_LLAMA_EXPERTS,
    SH_SHARED("mlp.shared_experts"), {.name = NULL}};

static int shape_mistral(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_latent_shape(a, c, e) || sh_mixture_needs(c, a->mix.n, "n_routed_experts", e) ||
           sh_mixture_needs(c, a->mix.used, "num_experts_per_tok", e) ||
           sh_mixture_needs(c, a->mix.width, "moe_intermediate_size", e) ||
           sh_mixture_shared(a, c, "n_shared_experts", 1, e) ||
           sh_mixture_after(a, c, "first_k_dense_replace", 0, e) ? -1 : 0;
}

/* Its rotary share is that of qk_rope_head_dim in a head, which transformers computes right with YaRN alone. */
static int finish_mistral(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    const char *object = sh_config_is_filled(c, "rope_scaling") ? "rope_scaling" : "rope_parameters";
    float share = (float)a->latent.d_rope / (float)(a->latent.d_rope + a->latent.d_nope), said = share;
    char key[64];
    snprintf(key, sizeof key, "%s.partial_rotary_factor", object);
    if (sh_latent_finish(a, c, e) || sh_config_real(c, key, 1, &said, e))
        return -1;
    if (fabsf(said - share) > 1e-6f)
        return sh_config_refuse(c, key, "the part of qk_rope_head_dim in a head", e);
    if (a->rope.kind != SH_ROPE_YARN)
        return sh_config_refuse(c, object, "the parameters of YaRN", e);
    snprintf(key, sizeof key, "%s.llama_4_scaling_beta", object);
    if (!sh_config_has(c, key) || sh_config_is_null(c, key))
        return sh_fail(e, "%s: key '%s' is missing", sh_config_path(c), key);
    a->temper_length = (float)a->rope.original;
    return sh_config_real(c, key, 1e6, &a->temper, e);
}

const struct sh_family sh_family_mistral4 = {
    .special = "latent attention, temperature by position, experts in groups, shared experts",
    .name = "mistral4", .model_types = SH_WORDS("mistral4"),
    .architectures = SH_WORDS("Mistral4ForCausalLM", "Mistral4Model"), .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .flags = SH_LLAMA_FLAGS | SH_MIX_NORMED,
              .mix = {.groups = 1, .used_groups = 1, .route = SH_ROUTE_SOFTMAX, .by_best_two = 1}},
    .keys = sh_deepseek_keys, .params = params_mistral, .gguf = &sh_gguf_mistral4,
    .only = SH_WORDS("mlp_bias=false"), .facts = facts, .shape = shape_mistral, .finish = finish_mistral,
    .count = count};

/* ---- V3.2 and GLM-5: up to index_topk tokens, the index chooses all that there are ---- */

static int shape_indexed(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_latent_shape(a, c, e) || sh_mixture_shared(a, c, "n_shared_experts", 1, e) ||
           sh_mixture_listed(a, c, 3, e) ? -1 : 0;
}

int sh_index_limit(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int chosen = 2048;
    if (sh_config_count(c, "index_topk", (int)1e8, &chosen, e))
        return -1;
    a->max_pos = chosen < a->max_pos ? chosen : a->max_pos;
    return 0;
}

int sh_indexed_finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_latent_finish(a, c, e) || sh_index_limit(a, c, e) ? -1 : 0;
}

#define INDEXED(eps) \
    SH_LLAMA_START_EPS(eps), \
    .flags = SH_LLAMA_FLAGS | SH_MIX_NORMED | SH_HAS_CORRECTION, .mix = { \
        .n = 256, .used = 8, .width = 2048, .scale = 2.5f, .route = SH_ROUTE_SIGMOID, .by_best_two = 1
#define INDEXED_FAMILY \
    .special = "latent attention to the tokens that an index chooses", .prefixes = sh_llama_prefixes, \
    .keys = sh_deepseek_keys, .params = sh_deepseek_params, .facts = index_facts, .shape = shape_indexed, \
    .finish = sh_indexed_finish, .count = count_indexed, .only = SH_WORDS("moe_layer_freq=1", "mlp_bias=false")

const struct sh_family sh_family_deepseek_v32 = {
    .name = "deepseek_v32", .model_types = SH_WORDS("deepseek_v32"),
    .architectures = SH_WORDS("DeepseekV32ForCausalLM", "DeepseekV32Model"), INDEXED_FAMILY,
    .start = {INDEXED(1e-6f), .groups = 8, .used_groups = 4}, .latent = {.rank = 512, .q_rank = 1536, .d_rope = 64,
                                                                          .d_nope = 128, .d_v = 128}},
    .gguf = &sh_gguf_deepseek_v32, .knows = INDEX_KNOWS "first_k_dense_replace "};

const struct sh_family sh_family_glm_moe_dsa = {
    .name = "glm_moe_dsa", .model_types = SH_WORDS("glm_moe_dsa"),
    .architectures = SH_WORDS("GlmMoeDsaForCausalLM", "GlmMoeDsaModel"), INDEXED_FAMILY,
    .start = {INDEXED(1e-5f), .groups = 1, .used_groups = 1}, .latent = {.rank = 512, .q_rank = 2048, .d_rope = 64,
                                                                          .d_nope = 192, .d_v = 256}},
    .gguf = &sh_gguf_glm_moe_dsa,
    .knows = INDEX_KNOWS "first_k_dense_replace indexer_types index_topk_freq index_topk_pattern "
             "index_skip_topk_offset "};

/* ---- A.X-K1, whose released files have no corrections ---- */

static const struct sh_param params_axk1[] = {
    LATENT_PARAMS, SH_ROUTER("mlp.gate.weight"), SH_LLAMA_EXPERTS, SH_SHARED("mlp.shared_experts"),
    {.role = SH_ROUTER_CHOICE, .name = SH_LAYER "mlp.gate.e_score_correction_bias", .cols = SH_DIM_EXPERTS,
     .needs = SH_EXPERT_LAYER, .form = SH_OPTIONAL},
    {.role = SH_MLP_POST_W, .name = SH_LAYER "post_mlp_layernorm.weight", .cols = SH_DIM_MODEL,
     .needs = SH_EXPERT_LAYER}, {.name = NULL}};

static int shape_axk1(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_latent_shape(a, c, e) || sh_mixture_shared(a, c, "n_shared_experts", 1, e) ||
           sh_mixture_listed(a, c, 1, e) ? -1 : 0;
}

/* The norms of a layer are counted from the first one, which may have no experts and so lack that norm. */
static int count_axk1(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    int n = (int)strlen(f->feeds);              /* a pattern that repeats                             */
    (void)c;
    (void)e;
    for (int i = 0; i < f->layers && n && f->feeds[0] != 'E'; i++)
        f->ends_more += f->feeds[i % n] == 'E' ? f->hidden : 0;
    return 0;
}

const struct sh_family sh_family_axk1 = {
    .special = "latent attention, experts in groups, a norm on what they give",
    .name = "axk1", .model_types = SH_WORDS("axk1"), .architectures = SH_WORDS("AXK1ForCausalLM", "AXK1Model"),
    .prefixes = sh_llama_prefixes,
    .start = {SH_LLAMA_START, .norm_place = SH_NORM_BOTH,
              .latent = {.rank = 512, .q_rank = 1536, .d_rope = 64, .d_nope = 128, .d_v = 128},
              .mix = {.n = 192, .used = 8, .width = 2048, .groups = 8, .used_groups = 4, .scale = 2.5f,
                      .route = SH_ROUTE_SIGMOID, .by_best_two = 1},
              .flags = SH_LLAMA_FLAGS | SH_MIX_NORMED},
    .keys = sh_deepseek_keys, .params = params_axk1, .only = SH_WORDS("moe_layer_freq=1", "mlp_bias=false"),
    .knows = " mlp_layer_types first_k_dense_replace moe_layer_freq num_nextn_predict_layers ", .shape = shape_axk1,
    .finish = sh_latent_finish, .count = count_axk1};
