/* SPDX-License-Identifier: Apache-2.0 */
/* Gemma 4 (2026): layers that see all tokens have other head sizes, rotate only a part of each head, and may have one
 * matrix for keys and values; values are normed; the last layers may use keys and values of earlier ones; layers may
 * have embeddings of their own, and a mixture of experts next to their plain block. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_activation"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"),
    SH_COUNT_KEY(mix.n, 1e5, "num_experts"), SH_COUNT_KEY(mix.used, 1e5, "top_k_experts"),
    SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"),
    SH_COUNT_KEY(streams.n_own, 1e8, "vocab_size_per_layer_input"), {.json = {NULL}}};

static const struct sh_key keys_unified[] = {
    SH_ACT_KEY("hidden_activation"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), {.json = {NULL}}};

#define NEXT_TO(part, tensor, width) \
    {.role = SH_##part, .name = SH_LAYER tensor, .cols = SH_DIM_##width, .needs = SH_EXPERT_LAYER}
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_GEMMA_NORMS, SH_LLAMA_ATTENTION, SH_LLAMA_QK_NORMS, SH_OWN_EMBEDDINGS,
    SH_MATRIX(GATE_W, SH_LAYER "mlp.gate_proj.weight", FF, MODEL, 0),
    SH_MATRIX(UP_W, SH_LAYER "mlp.up_proj.weight", FF, MODEL, 0),
    SH_MATRIX(DOWN_W, SH_LAYER "mlp.down_proj.weight", MODEL, FF, 0),
    SH_VECTOR(LAYER_SCALE, SH_LAYER "layer_scalar", ONE_ROW, 0, 0), SH_ROUTER("router.proj.weight"),
    SH_EXPERT_PART(GATE, "experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(UP, "experts.gate_up_proj", EXPERT_FF, MODEL, 0),
    SH_EXPERT_PART(DOWN, "experts.down_proj", MODEL, EXPERT_FF, 0), NEXT_TO(ROUTER_NORM_W, "router.scale", MODEL),
    NEXT_TO(EXPERT_SCALE, "router.per_expert_scale", EXPERTS),
    NEXT_TO(EXPERT_NORM_W, "pre_feedforward_layernorm_2.weight", MODEL),
    NEXT_TO(MLP_POST_1_W, "post_feedforward_layernorm_1.weight", MODEL),
    NEXT_TO(MLP_POST_2_W, "post_feedforward_layernorm_2.weight", MODEL), {.name = NULL}};

/* ---- its memory ---- */

static const struct sh_fact_key facts[] = {
    SH_USUAL_FACT(window, 1, 512, "sliding_window"), SH_USUAL_FACT(global_head_dim, 1, 512, "global_head_dim"),
    SH_FACT(global_kv_heads, 1, "num_global_key_value_heads"), {.json = {NULL}}};
static const struct sh_fact_key facts_unified[] = {
    SH_USUAL_FACT(window, 1, 1024, "sliding_window"), SH_USUAL_FACT(global_head_dim, 1, 512, "global_head_dim"),
    SH_FACT(global_kv_heads, 1, "num_global_key_value_heads"), {.json = {NULL}}};
static const struct sh_fact_key mixture[] = {
    SH_NEEDED_FACT(experts, "num_experts"), SH_NEEDED_FACT(used, "top_k_experts"),
    SH_NEEDED_FACT(expert_ffn, "moe_intermediate_size"), {.json = {NULL}}};

/* Newer files list what differs in single layers. It must be the same in all full-attention layers, and absent in
 * others. Layers are numbered with or without leading zeros. */
static int single_layers(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    int seen = 0;
    f->global_head_dim = f->global_kv_heads = 0;
    for (int i = 0; i < f->layers; i++) {
        char key[4][80];
        int width = 0, heads = 0, is_global = f->pattern[(size_t)i % strlen(f->pattern)] == 'G';
        for (int k = 0; k < 4; k++) {
            snprintf(key[k], sizeof key[k], k < 2 ? "per_layer_config.%d.%s" : "per_layer_config.%02d.%s", i,
                     k % 2 ? "num_key_value_heads" : "head_dim");
            if (sh_facts_count(c, key[k], 1, k % 2 ? &heads : &width, e))
                return -1;
        }
        if (!is_global && !width && !heads)
            continue;
        if (!is_global || (seen++ && (width != f->global_head_dim || heads != f->global_kv_heads)))
            return sh_config_refuse(c, "per_layer_config", "one value for all full-attention layers, and no other "
                                    "layers", e);
        f->global_head_dim = width;
        f->global_kv_heads = heads;
    }
    return 0;
}

/* With experts, every layer has them in addition to its plain block, and three more norms. */
static int experts(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    f->norms = 7;
    f->router_scale = 1;
    f->shared_ffn = f->ffn;
    return sh_facts_read(c, mixture, f, e);
}

static int count_unified(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    int mixed = 0, width = 0, rows = 262144, doubles = 0;
    if (sh_config_flag(c, "attention_k_eq_v", &f->keys_are_values, e) ||
        sh_config_flag(c, "enable_moe_block", &mixed, e))
        return -1;
    if (sh_config_at_least(c, "hidden_size_per_layer_input", 0, 100000, &width, e) ||
        sh_facts_count(c, "vocab_size_per_layer_input", 1, &rows, e) ||
        sh_config_at_least(c, "num_kv_shared_layers", 0, f->layers - 1, &f->borrowed, e) ||
        sh_config_flag(c, "use_double_wide_mlp", &doubles, e))
        return -1;
    long long all = (long long)width * f->layers;
    f->late_ffn = doubles && f->ffn <= 50000000 ? 2 * f->ffn : 0;
    f->layer_more = 2LL * width * f->hidden;
    f->vectors_more = width ? f->hidden : 0;
    f->ends_more = width ? rows * all + all * f->hidden + width : 0;
    if (sh_config_has(c, "per_layer_config") && single_layers(c, f, e))
        return -1;
    if (!sh_config_has(c, "per_layer_config") && !f->keys_are_values)
        f->global_kv_heads = 0;         /* they have as many as the others */
    return mixed ? experts(f, c, e) : 0;
}

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    if (!sh_config_has(c, "hidden_size_per_layer_input"))       /* which would then be 256 */
        return sh_fail(e, "%s: key 'hidden_size_per_layer_input' is missing", sh_config_path(c));
    return count_unified(f, c, e);
}

/* ---- running it ---- */

int sh_gemma_borrows(struct sh_arch *a, const struct sh_config *c, int usual, struct sh_err *e)
{
    int n = usual, kinds[2] = {0};
    if (sh_config_at_least(c, "num_kv_shared_layers", 0, a->n_layer - 1, &n, e))
        return -1;
    a->borrows_from = n ? a->n_layer - n : 0;
    for (int i = 0; i < a->n_layer && n; i++) {
        int kind = !sh_arch_window(a, i);
        if (i >= a->borrows_from && !kinds[kind])
            return sh_config_refuse(c, "num_kv_shared_layers", "a number that leaves a layer of each kind unshared",
                                    e);
        kinds[kind] = 1;
    }
    return 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    int mixed = 0;
    if (sh_config_flag(c, "enable_moe_block", &mixed, e))
        return -1;
    if (!mixed)
        a->mix = (struct sh_mixture){0};
    return sh_config_window(c, 512, a, e) || sh_config_windows(c, sh_but_each, 6, a, e) ? -1 : 0;
}

static int shape_unified(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_window(c, 1024, a, e) || sh_config_windows(c, sh_but_each, 6, a, e) ? -1 : 0;
}

/* Feed-forward blocks of layers that borrow may be twice as wide. */
static int read_feeds(struct sh_arch *a, const struct sh_config *c, struct sh_layer_sizes *sizes, struct sh_err *e)
{
    int doubles = 0, d_ff = a->d_ff;
    if (sh_config_flag(c, "use_double_wide_mlp", &doubles, e))
        return -1;
    if (!doubles || !a->borrows_from || d_ff > 50000000)
        return 0;
    a->d_ff = 2 * d_ff;
    for (int i = 0; i < a->borrows_from; i++)
        sizes[i].d_ff = d_ff;
    return 0;
}

/* Heads of layers that see all tokens. */
static int read_heads(struct sh_arch *a, const struct sh_config *c, struct sh_layer_sizes *sizes, struct sh_err *e)
{
    struct sh_kv_facts f = {.layers = a->n_layer, .global_head_dim = 512};
    if (a->n_layer >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "num_hidden_layers", "fewer than 1024 layers", e);
    for (int i = 0; i < a->n_layer; i++)
        f.pattern[i] = sh_arch_window(a, i) ? 'L' : 'G';
    if (sh_config_has(c, "per_layer_config") ? single_layers(c, &f, e)
        : sh_facts_count(c, "global_head_dim", 1, &f.global_head_dim, e) ||
              (a->values_are_keys && sh_facts_count(c, "num_global_key_value_heads", 1, &f.global_kv_heads, e)))
        return -1;
    const struct sh_layer_sizes local = {.n_kv_head = a->n_kv_head, .d_head = a->d_head};
    const struct sh_layer_sizes global = {.n_kv_head = f.global_kv_heads ? f.global_kv_heads : a->n_kv_head,
                                          .d_head = f.global_head_dim ? f.global_head_dim : a->d_head};
    for (int i = 0; i < a->n_layer; i++)
        sizes[i] = sh_arch_window(a, i) ? local : global;
    if (local.d_head % 2 || global.d_head % 2 || (long long)a->n_head * global.d_head > 100000000)
        return sh_config_refuse(c, "global_head_dim", "an even width, with all heads at most 10^8", e);
    if (a->n_head % global.n_kv_head)
        return sh_config_refuse(c, "num_global_key_value_heads", "a divisor of num_attention_heads", e);
    a->local_n_rot = local.d_head;
    a->n_rot = global.d_head;
    a->d_head = local.d_head > global.d_head ? local.d_head : global.d_head;
    a->n_kv_head = local.n_kv_head > global.n_kv_head ? local.n_kv_head : global.n_kv_head;
    return 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const whole[] = {"rope_parameters.full_attention", NULL};
    static const char *const local[] = {"rope_parameters.sliding_attention", NULL};
    struct sh_layer_sizes *sizes = sh_config_sizes(c, a);
    if (!a->window)
        return sh_config_refuse(c, "sliding_window", "a number of tokens", e);
    sh_arch_see_all(a, a->n_layer - 1);                             /* whatever layer_types says */
    if (sh_config_flag(c, "attention_k_eq_v", &a->values_are_keys, e) || read_heads(a, c, sizes, e) ||
        sh_gemma_borrows(a, c, 0, e) || read_feeds(a, c, sizes, e) ||
        sh_config_at_least(c, "hidden_size_per_layer_input", 0, 100000, &a->streams.d_own, e) ||
        sh_gemma_cap(c, "final_logit_softcapping", &a->head_softcap, e) ||
        sh_config_rope(c, local, a, &a->local_rope, e))
        return -1;
    if ((long long)a->n_layer * a->streams.d_own > 10000000)
        return sh_config_refuse(c, "hidden_size_per_layer_input", "embeddings of a total width of at most 10^7", e);
    a->scale = 1;
    a->embed_scale = (float)sqrt((double)a->d_model);
    a->mix.next_to = a->mix.n ? SH_NEXT_TO_PLAIN : SH_NEXT_TO_NOTHING;
    a->mix.router_scale = 1 / sqrtf((float)a->d_model);
    a->rope.kind = SH_ROPE_PROPORTIONAL;
    a->rope.factor = 1;
    a->rope.pairs = a->n_rot / 8;
    return sh_config_has(c, "rope_parameters") ? sh_config_rope(c, whole, a, &a->rope, e) : 0;
}

#define START \
    .norm = SH_NORM_RMS, .norm_place = SH_NORM_BOTH, .act = SH_ACT_GELU_TANH, .pos = SH_POS_ROTARY, .type = SH_F32, \
    .norm_eps = 1e-6f, .init_std = 0.02f, .rotary_share = 1, .rope = {.base = 1e6f}, .local_rope = {.base = 1e4f}, \
    .d_head = 256, .n_vocab = 262144, .norms_values = 1, \
    .flags = SH_LLAMA_FLAGS | SH_HAS_QK_NORM | SH_TIED_HEAD | SH_MIX_NORMED

const struct sh_family sh_family_gemma4 = {
    .special = "heads that vary by layer, lent keys and values, own embeddings, experts",
    .name = "gemma4", .model_types = SH_WORDS("gemma4_text", "gemma4"),
    .architectures = SH_WORDS("Gemma4ForCausalLM", "Gemma4TextModel", "Gemma4ForConditionalGeneration"),
    .prefixes = SH_WORDS("model.language_model.", "language_model.model.", "model.", ""),
    .start = {START, .max_pos = 131072, .streams = {.n_own = 262144, .d_own = 256}},
    .keys = keys, .params = params, .gguf = &sh_gguf_gemma4, .facts = facts, .pattern = "LLLLLG",
    .only = SH_WORDS("use_bidirectional_attention=\"vision\""),
    .knows = " attention_k_eq_v num_experts per_layer_config sliding_window num_kv_shared_layers use_double_wide_mlp "
             "hidden_size_per_layer_input ",
    .shape = shape, .finish = finish, .count = count};

/* The 12B that reads images and sound without towers of their own: the same text part, without experts and without
 * embeddings of layers. */
const struct sh_family sh_family_gemma4_unified = {
    .special = "heads that vary by layer, lent keys and values",
    .name = "gemma4_unified", .model_types = SH_WORDS("gemma4_unified_text", "gemma4_unified"),
    .architectures = SH_WORDS("Gemma4UnifiedForCausalLM", "Gemma4UnifiedTextModel",
                              "Gemma4UnifiedForConditionalGeneration"),
    .prefixes = SH_WORDS("model.language_model.", "language_model.model.", "model.", ""),
    .start = {START, .max_pos = 262144},
    .keys = keys_unified, .params = params, .facts = facts_unified, .pattern = "LLLLLG",
    .only = SH_WORDS("use_bidirectional_attention=\"vision\"", "hidden_size_per_layer_input=0",
                     "enable_moe_block=false"),
    .knows = " attention_k_eq_v per_layer_config sliding_window num_kv_shared_layers use_double_wide_mlp ",
    .shape = shape_unified, .finish = finish, .count = count_unified};
