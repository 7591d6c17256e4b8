/* SPDX-License-Identifier: Apache-2.0 */
/* Zamba2 (Zyphra, 2024): Mamba-2 in every layer; some layers first run one of a few transformer blocks that they share
 * (shared_block.c). */
#include <math.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"

static const struct sh_key keys[] = {
    SH_ACT_KEY("hidden_act"), SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_COUNT_KEY(recurrent.n_v, 1e6, "n_mamba_heads"), SH_COUNT_KEY(recurrent.n_k, 1e5, "mamba_ngroups"),
    SH_COUNT_KEY(recurrent.d_k, 1e5, "mamba_d_state"), SH_COUNT_KEY(recurrent.kernel, SH_CONV_TAPS, "mamba_d_conv"),
    SH_COUNT_KEY(shared.n, 1e4, "num_mem_blocks"), SH_COUNT_KEY(shared.rank, 1e6, "adapter_rank"),
    SH_FLAG_KEY(SH_HAS_MLP_BIAS, "add_bias_linear"), {.json = {NULL}}};

#define BLOCK SH_LAYER "shared_transformer."
#define FEED "feed_forward.gate_up_proj"
#define OF_BLOCK(part, tensor, out, in) SH_MATRIX(part##_W, BLOCK tensor ".weight", out, in, SH_OF_BLOCK)
#define ADAPTER(part, of) \
    OF_BLOCK(part##_ADAPT_IN, "self_attn.linear_" of "_adapter_list.%.0", ADAPTER, PAIR), \
    OF_BLOCK(part##_ADAPT, "self_attn.linear_" of "_adapter_list.%.1", PAIR, ADAPTER)
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_NORM_WEIGHT(FINAL_NORM, "final_layernorm.weight", MODEL, 0),
    SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "mamba_decoder.input_layernorm.weight", MODEL, 0),
    SH_NORM_WEIGHT(ATTN_NORM, SH_LAYER "input_layernorm.weight", MODEL, 0),
    SH_MAMBA_2(SH_LAYER "mamba_decoder.mamba."), SH_MAMBA_2(SH_LAYER "mamba."),
    SH_VECTOR(PAIR_NORM_W, BLOCK "input_layernorm.weight", PAIR, 0, SH_OF_BLOCK),
    OF_BLOCK(Q, "self_attn.q_proj", Q, PAIR), OF_BLOCK(K, "self_attn.k_proj", KV, PAIR),
    OF_BLOCK(V, "self_attn.v_proj", KV, PAIR), OF_BLOCK(O, "self_attn.o_proj", MODEL, Q),
    ADAPTER(Q, "q"), ADAPTER(K, "k"), ADAPTER(V, "v"),
    SH_VECTOR(MLP_NORM_W, BLOCK "pre_ff_layernorm.weight", MODEL, 0, SH_OF_BLOCK),
    OF_BLOCK(GATE, FEED, FF, MODEL), OF_BLOCK(UP, FEED, FF, MODEL), OF_BLOCK(DOWN, "feed_forward.down_proj", MODEL, FF),
    SH_VECTOR(GATE_B, BLOCK FEED ".bias", FF, SH_HAS_MLP_BIAS, SH_OF_BLOCK),
    SH_VECTOR(UP_B, BLOCK FEED ".bias", FF, SH_HAS_MLP_BIAS, SH_OF_BLOCK),
    SH_VECTOR(DOWN_B, BLOCK "feed_forward.down_proj.bias", MODEL, SH_HAS_MLP_BIAS, SH_OF_BLOCK),
    OF_BLOCK(FEED_ADAPT, FEED "_adapter_list.%.0", ADAPTER, MODEL),
    OF_BLOCK(GATE_ADAPT, FEED "_adapter_list.%.1", FF, ADAPTER),
    OF_BLOCK(UP_ADAPT, FEED "_adapter_list.%.1", FF, ADAPTER),
    SH_MATRIX(BLOCK_OUT_W, SH_LAYER "linear.weight", MODEL, MODEL, 0), {.name = NULL}};

/* From a list or, without it, as in Zamba2 2.7B. */
static int read_layers(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {{"linear_attention", 1}, {"mamba", 1}, {"hybrid", 2}, {NULL, 0}};
    static const char *const lists[] = {"layers_block_type", "layer_types"};
    const char *list = sh_config_first(c, lists, 2);
    int listed = sh_config_is_set(c, list);
    if (!listed && a->n_layer != 54)
        return sh_config_refuse(c, list, "a list of linear_attention and hybrid, unless there are 54 layers", e);
    for (int i = 0; i < a->n_layer; i++) {
        int kind = (i && i % 6 == 0 && i < 48) || i == 47 || i == 51 ? 2 : 1;
        if (listed && sh_config_choice_at(c, list, i, kinds, &kind, e))
            return -1;
        sh_arch_make_linear(a, i);
        if (kind == 2)
            sh_arch_make_shared(a, i);
    }
    return 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    struct sh_recurrent *r = &a->recurrent;
    int expand = 2, rotates = 0;
    if (sh_config_count(c, "mamba_expand", 1000, &expand, e) || sh_config_flag(c, "use_mem_rope", &rotates, e) ||
        sh_config_flag(c, "use_shared_attention_adapter", &a->shared.adapts, e) || read_layers(a, c, e))
        return -1;
    long long inner = (long long)expand * a->d_model;
    if (inner > 1000000 || inner % r->n_v)
        return sh_config_refuse(c, "n_mamba_heads", "heads that are mamba_expand * hidden_size wide together, which is "
                                "at most 10^6", e);
    r->d_v = (int)inner / r->n_v;
    r->has_bias = r->has_out_bias = (a->flags & SH_HAS_MLP_BIAS) != 0;
    r->has_conv_bias = 1;
    a->pos = rotates ? SH_POS_ROTARY : SH_POS_NONE;
    a->d_head = a->d_head ? a->d_head : 2 * a->d_model / a->n_head;
    a->d_ff = a->d_ff || a->d_model > 25000000 ? a->d_ff : 4 * a->d_model;
    if (!a->d_head)
        return sh_config_refuse(c, "num_attention_heads", "no more heads than twice hidden_size", e);
    return sh_config_check_scan(c, "n_mamba_heads", a, e);
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    if (a->shared.adapts && (a->n_kv_head != a->n_head || a->n_head * a->d_head != 2 * a->d_model))
        return sh_config_refuse(c, "use_shared_attention_adapter", "false, unless all heads together are twice as wide "
                                "as hidden_size and num_key_value_heads is the same as num_attention_heads", e);
    if (sh_config_real(c, "time_step_min", 1e6, &a->recurrent.least, e) ||
        sh_config_check_attends(c, "layers_block_type", a, e))
        return -1;
    a->scale = (float)(1 / sqrt(a->d_head / 2.0));
    return a->pos == SH_POS_ROTARY ? sh_config_whole_rope(a, c, e) : 0;
}

/* The shared blocks, with the layers' own parts of them, are counted once, outside the layers. Without
 * tie_word_embeddings nothing is shared. */
static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    int n = 1, rank = 128, adapts = 0, hybrids = 0;
    size_t period = strlen(f->pattern);
    if (sh_facts_count(c, "num_mem_blocks", 1, &n, e) || sh_facts_count(c, "adapter_rank", 1, &rank, e) ||
        sh_config_flag(c, "use_shared_attention_adapter", &adapts, e))
        return -1;
    for (int i = 0; i < f->layers; i++)
        hybrids += f->pattern[(size_t)i % period] == 'H';
    double d = f->hidden, q = (double)f->heads * f->head_dim, ff = f->ffn;
    double kv = (double)(f->kv_heads ? f->kv_heads : f->heads) * f->head_dim;
    double block = 3 * d + d * (3 * q + 4 * kv) + 3 * ff * d + (f->mlp_bias ? 2 * ff + d : 0);
    double own = d * d + rank * (d + 2 * ff + (adapts ? 12 * d : 0));
    double all = block * (f->tied && n < hybrids ? n : hybrids) + own * hybrids;
    if (all > 1e15)
        return sh_config_refuse(c, "intermediate_size", "shared blocks of at most 10^15 numbers", e);
    f->apart = 1;
    f->ends_more = (long long)all;
    return 0;
}

const struct sh_family sh_family_zamba2 = {
    .special = "state-space layers (Mamba-2), some after transformer blocks that they share",
    .name = "zamba2", .model_types = SH_WORDS("zamba2"), .architectures = SH_WORDS("Zamba2ForCausalLM", "Zamba2Model"),
    .prefixes = sh_llama_prefixes,
    .start = {.norm = SH_NORM_RMS, .act = SH_ACT_GELU, .pos = SH_POS_NONE, .type = SH_F32, .norm_eps = 1e-5f,
              .init_std = 0.02f, .max_pos = 4096, .rotary_share = 1, .rope = {.base = 10000}, .one_block = 1,
              .shared = {.n = 1, .rank = 128},
              .recurrent = {.kind = SH_STATE_SPACE, .n_v = 8, .n_k = 1, .d_k = 64, .kernel = 4, .normed = 1,
                            .norm_eps = 1e-5f, .least = 0.001f},
              .flags = SH_LLAMA_FLAGS | SH_TIED_HEAD},
    .keys = keys, .params = params,
    .only = SH_WORDS("use_long_context=false", "attention_bias=false", "mlp_bias=false"),
    .knows = " layers_block_type layer_types ", .shape = shape, .finish = finish, .count = count};
