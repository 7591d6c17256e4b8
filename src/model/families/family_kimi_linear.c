/* SPDX-License-Identifier: Apache-2.0 */
/* Kimi Linear (Moonshot AI, 2025): for every three layers of Kimi Delta Attention, a delta rule with a decay for each
 * element of a key (recurrent.c), one of DeepSeek's latent attention, without rotation; experts chosen by sigmoids with
 * a correction. */
#include <stdio.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

#define LISTS "linear_attn_config."

static const struct sh_key keys[] = {
    SH_LATENT_KEYS, SH_KIMI_MIXTURE,
    SH_COUNT_KEY(recurrent.n_v, 1e5, LISTS "num_heads", "linear_num_heads"),
    SH_COUNT_KEY(recurrent.d_k, SH_DELTA_KEY, LISTS "head_dim", "linear_head_dim"),
    SH_COUNT_KEY(recurrent.kernel, SH_CONV_TAPS, LISTS "short_conv_kernel_size", "linear_conv_kernel_dim"),
    {.json = {NULL}}};

/* Plain blocks are `mlp` in the released files, and named like experts in those that transformers writes. */
#define A SH_LAYER "self_attn."
#define MIX "block_sparse_moe."
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_FINAL_NORM, SH_LLAMA_IN_NORMS, SH_LATENT_ATTENTION(A, "o_proj"), SH_KDA(A, "o_proj"),
    SH_KDA_RANKED(A, A "f_a_proj", A "f_b_proj", RECUR_DECAYS),
    SH_KDA_RANKED(Z, A "g_a_proj", A "g_b_proj", RECUR_VALUES), SH_LLAMA_FEED,
    SH_DENSE(GATE, MIX "gate_proj", FF, MODEL), SH_DENSE(UP, MIX "up_proj", FF, MODEL),
    SH_DENSE(DOWN, MIX "down_proj", MODEL, FF), SH_ROUTER(MIX "gate.weight"),
    SH_CHOICE(MIX "gate.e_score_correction_bias"), SH_MIXTRAL_EXPERTS, SH_SHARED(MIX "shared_experts"),
    {.name = NULL}};

int sh_kda_shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    struct sh_recurrent *r = &a->recurrent;
    r->n_k = r->n_v;
    r->d_v = r->d_k;
    r->own_decays = 1;
    r->z_act = SH_ACT_SIGMOID;
    return sh_config_check_delta(c, a, e);
}

/* The layers that a list names, from 1 on. */
static int read_list(struct sh_arch *a, const struct sh_config *c, const char *list, enum sh_layer_block block,
                     unsigned char *seen, struct sh_err *e)
{
    for (int i = 0; i < sh_config_length(c, list); i++) {
        char key[64];
        int layer = 0;
        snprintf(key, sizeof key, "%s.%d", list, i);
        if (sh_config_count(c, key, a->n_layer, &layer, e))
            return -1;
        if (!layer || seen[layer - 1]++)
            return sh_config_refuse(c, key, "the number of a layer, from 1 on, in one list only", e);
        sh_config_set_block(a, layer - 1, block);
    }
    return 0;
}

/* layer_types or, in the released files, two lists; without them every fourth layer from the fifth on
 * attends. */
static int read_layers(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {
        {"full_attention", SH_BLOCK_ATTENTION}, {"linear_attention", SH_BLOCK_RECURRENT}, {NULL, 0}};
    static const char attend[] = LISTS "full_attn_layers", recur[] = LISTS "kda_layers";
    unsigned char seen[SH_MOST_LAYERS] = {0};
    if (sh_config_has(c, "layer_types.0"))
        return sh_config_blocks(c, "layer_types", kinds, a, e);
    for (int i = 0; i < a->n_layer; i++)
        sh_config_set_block(a, i, i && i % 4 == 0 ? SH_BLOCK_ATTENTION : SH_BLOCK_RECURRENT);
    if (!sh_config_has(c, attend) || !sh_config_has(c, recur))
        return 0;
    if (sh_config_length(c, attend) < 1)
        return sh_config_refuse(c, attend, "a list of the numbers of layers", e);
    if (read_list(a, c, attend, SH_BLOCK_ATTENTION, seen, e) || read_list(a, c, recur, SH_BLOCK_RECURRENT, seen, e))
        return -1;
    for (int i = 0; i < a->n_layer; i++)
        if (!seen[i])
            return sh_config_refuse(c, recur, "all layers that full_attn_layers does not name", e);
    return 0;
}

int sh_kimi_shared(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char *const names[] = {"num_shared_experts", "n_shared_experts"};
    return sh_mixture_shared(a, c, sh_config_first(c, names, 2), 1, e);
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->flags &= ~(unsigned)SH_TIED_HEAD;        /* whatever tie_word_embeddings says            */
    a->recurrent.gate_rank = a->recurrent.d_k;
    if (sh_latent_shape(a, c, e) || sh_kimi_shared(a, c, e) || sh_mixture_listed(a, c, 1, e) || read_layers(a, c, e))
        return -1;
    a->n_rot = 0;
    return sh_kda_shape(a, c, e);
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    return sh_config_check_attends(c, "layer_types", a, e) || sh_latent_still(a, c, e) ? -1 : 0;
}

/* Kimi K3's files: experts of a latent, wide gates of attention and of the delta rule, and residuals over blocks of
 * layers, each with a norm and a weight for each number. It is counted, not run. */
static const struct sh_fact_key facts[] = {SH_FACT(latent_ffn, 1, "routed_expert_hidden_size"), {.json = {NULL}}};

static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    int normed = 0, block = 0, n = (int)strlen(f->feeds);
    if (sh_config_flag(c, "mla_use_output_gate", &f->query_gate, e) ||
        sh_config_flag(c, LISTS "use_full_rank_gate", &f->ssm_wide_gate, e) ||
        sh_config_flag(c, "latent_moe_use_norm", &normed, e) || sh_facts_count(c, "attn_res_block_size", 1, &block, e))
        return -1;
    for (int i = 0; i < f->layers && n && normed; i++)
        f->ends_more += f->feeds[i % n] == 'E' ? f->latent_ffn : 0;
    f->vectors_more += block ? 4LL * f->hidden : 0;
    f->ends_more += block ? 2LL * f->hidden : 0;
    return 0;
}

const struct sh_family sh_family_kimi_linear = {
    .special = "Kimi delta attention in three of four layers, latent attention, experts by corrected sigmoids",
    .name = "kimi_linear", .model_types = SH_WORDS("kimi_linear"),
    .architectures = SH_WORDS("KimiLinearForCausalLM", "KimiLinearModel"), .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_SILU, .pos = SH_POS_NONE, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 1048576,
              .latent = {.rank = 512, .d_rope = 64, .d_nope = 128, .d_v = 128},
              .recurrent = {.n_v = 32, .d_k = 128, .kernel = 4},
              .mix = {.n = 256, .used = 8, .width = 1024, .groups = 1, .used_groups = 1, .scale = 2.446f,
                      .route = SH_ROUTE_SIGMOID, .by_best_two = 1},
              .flags = SH_LLAMA_FLAGS | SH_MIX_NORMED},
    .keys = keys, .params = params, .gguf = &sh_gguf_kimi_linear, .facts = facts, .count = count,
    /* Kimi K3's files, which call their text part kimi_linear, too, have more than this. */
    .only = SH_WORDS("hidden_act=\"silu\"", "mlp_bias=false", "moe_layer_freq=1", "mla_use_nope=true",
                     "moe_router_activation_func=\"sigmoid\"", "mla_use_output_gate=false",
                     LISTS "gate_lower_bound=null", LISTS "use_full_rank_gate=false", "routed_expert_hidden_size=null",
                     "attn_res_block_size=null"),
    .knows = " layer_types mlp_layer_types first_k_dense_replace linear_attn_config moe_layer_freq "
             "num_nextn_predict_layers ",
    .shape = shape, .finish = finish};
