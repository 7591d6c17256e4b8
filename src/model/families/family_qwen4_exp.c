/* SPDX-License-Identifier: Apache-2.0 */
/* Qwen4-Exp (Qwen team, 2026): as Qwen 3.5 with experts, the gated delta rule in three of four layers and gated
 * attention in the others, but with several residual streams (stream_mixer.c), embeddings of n-grams in some recurrent
 * layers (ngrams.c), and an index that chooses blocks of keys. It runs on texts so short that the index chooses all
 * tokens. Also the text part of models with pictures. */
#include <limits.h>
#include <stdio.h>

#include "src/model/config/config.h"
#include "src/model/families/families.h"
#include "src/model/ngrams.h"

static const struct sh_key keys[] = {
    SH_REAL_KEY(norm_eps, 1, "rms_norm_eps"), SH_REAL_KEY(rope.base, 1e12, "rope_theta"),
    SH_REAL_KEY(rotary_share, 1, "partial_rotary_factor"),
    SH_COUNT_KEY(recurrent.n_k, 1e5, "linear_num_key_heads"),
    SH_COUNT_KEY(recurrent.n_v, 1e5, "linear_num_value_heads"),
    SH_COUNT_KEY(recurrent.d_k, SH_DELTA_KEY, "linear_key_head_dim"),
    SH_COUNT_KEY(recurrent.d_v, 1e5, "linear_value_head_dim"),
    SH_COUNT_KEY(recurrent.kernel, SH_CONV_TAPS, "linear_conv_kernel_dim"), SH_COUNT_KEY(mix.n, 1e5, "num_experts"),
    SH_COUNT_KEY(mix.used, 1e5, "num_experts_per_tok"), SH_COUNT_KEY(mix.width, 1e8, "moe_intermediate_size"),
    SH_COUNT_KEY(mix.shared_width, 1e8, "shared_expert_intermediate_size"),
    SH_FLAG_KEY(SH_MIX_NORMED, "norm_topk_prob"), SH_COUNT_KEY(streams.n, 64, "hc_count"),
    SH_COUNT_KEY(streams.rank, 1e6, "hc_lowrank"), SH_COUNT_KEY(ngrams.n, SH_NGRAM_MOST, "ngram_size"),
    SH_COUNT_KEY(ngrams.heads, SH_NGRAM_HEADS, "heads_per_ngram"),
    SH_COUNT_KEY(ngrams.kernel, 1e5, "ple_conv_kernel_size"), SH_COUNT_KEY(ngrams.parts, 65536, "split_ngram_parts"),
    {.json = {NULL}}};

#define MIXER(part, stem) \
    SH_NORM_WEIGHT(MIXER_##part##_NORM, stem "hc_norm.weight", HYPER_IN, 0), \
    SH_MATRIX(MIXER_##part##_DOWN_W, stem "input_mix_weight_down.weight", MIXER_RANK, HYPER_IN, 0), \
    SH_MATRIX(MIXER_##part##_UP_W, stem "input_mix_weight_up.weight", HYPER_IN, MIXER_RANK, 0)
#define BLOCK_MIXER(part, stem) \
    MIXER(part, stem), SH_MATRIX(MIXER_##part##_ADD_W, stem "block_inject_weight.weight", STREAMS, HYPER_IN, 0)
#define PLE SH_LAYER "ple."
static const struct sh_param params[] = {
    SH_LLAMA_ENDS, SH_LLAMA_QK_NORMS, SH_GATED_ATTENTION, SH_DELTA_APART, SH_QWEN_SHARED, SH_QWEN_STACKS,
    SH_LLAMA_EXPERTS, BLOCK_MIXER(ATTN, SH_LAYER "attn_hyper_connection."),
    BLOCK_MIXER(MLP, SH_LAYER "mlp_hyper_connection."), MIXER(HEAD, "hyper_connection_mixer."),
    SH_MATRIX(NGRAM_EMBED, PLE "ple_embedding.ngram_embedding.weight", NGRAM_ROWS, NGRAM_HEAD, 0),
    {.role = SH_NGRAM_EMBED, .name = PLE "ple_embedding.ngram_embedding.shard_@.weight", .rows = SH_DIM_NGRAM_ROWS,
     .cols = SH_DIM_NGRAM_HEAD, .form = SH_OPTIONAL | SH_CUT_ANYWHERE, .count = SH_DIM_NGRAM_PARTS},
    SH_MATRIX(NGRAM_KEY_W, PLE "key_proj.weight", HYPER_IN, NGRAM, 0),
    SH_MATRIX(NGRAM_VALUE_W, PLE "value_proj.weight", MODEL, NGRAM, 0),
    SH_NORM_WEIGHT(NGRAM_KEY_NORM, PLE "norm_key.weight", HYPER_IN, 0),
    SH_NORM_WEIGHT(NGRAM_QUERY_NORM, PLE "norm_query.weight", HYPER_IN, 0),
    SH_NORM_WEIGHT(NGRAM_CONV_NORM, PLE "norm_conv.weight", HYPER_IN, 0),
    SH_MATRIX(NGRAM_CONV, PLE "conv1d.weight", HYPER_IN, NGRAM_KERNEL, 0), {.name = NULL}};

/* layer_types or, without it, every full_attention_interval-th layer attends. */
static int read_layers(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word kinds[] = {
        {"full_attention", SH_BLOCK_ATTENTION}, {"indexed_attention", SH_BLOCK_ATTENTION},
        {"linear_attention", SH_BLOCK_RECURRENT}, {NULL, 0}};
    int period = 4;
    if (sh_config_has(c, "layer_types.0"))
        return sh_config_blocks(c, "layer_types", kinds, a, e);
    if (sh_config_count(c, "full_attention_interval", 100000000, &period, e))
        return -1;
    for (int i = 0; i < a->n_layer; i++)
        sh_config_set_block(a, i, (i + 1) % period ? SH_BLOCK_RECURRENT : SH_BLOCK_ATTENTION);
    return 0;
}

/* Of the gate of recurrent layers: output_gate_type or, without it, hidden_act, which is SiLU. */
static int read_gate(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const struct sh_word acts[] = {{"silu", SH_ACT_SILU}, {"sigmoid", SH_ACT_SIGMOID}, {NULL, 0}};
    int act = SH_ACT_SILU;
    if (sh_config_choice(c, "output_gate_type", acts, &act, e))
        return -1;
    a->recurrent.z_act = (enum sh_act)act;
    return 0;
}

/* The share of each head that rotates: as the object that scales the rotation says, where there is one. */
static int read_share(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    const char *key = sh_config_is_filled(c, "rope_scaling") ? "rope_scaling.partial_rotary_factor"
                                                             : "rope_parameters.partial_rotary_factor";
    return sh_config_real(c, key, 1, &a->rotary_share, e);
}

/* ---- embeddings of n-grams ---- */

/* The layers in ple_layer_ids, numbered from 1, in the order of their numbers. */
static int read_ngram_layers(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    static const char list[] = "ple_layer_ids";
    struct sh_ngrams *g = &a->ngrams;
    int n = sh_config_length(c, list);
    if (!sh_config_has(c, list) || sh_config_is_null(c, list))
        return 0;
    if (n < 0)
        return sh_config_refuse(c, list, "a list of the numbers of layers, from 1 on", e);
    for (int i = 0; i < n; i++) {
        char key[48];
        int number = 0, k = 0;
        snprintf(key, sizeof key, "%s.%d", list, i);
        if (sh_config_count(c, key, a->n_layer, &number, e))
            return -1;
        if (!number || !sh_arch_recurs(a, number - 1))
            return sh_config_refuse(c, key, "the number of a layer of linear_attention, from 1 on", e);
        if (sh_arch_ngrams(a, number - 1))
            continue;
        if (g->n_layer == SH_NGRAM_LAYERS)
            return sh_config_refuse(c, list, "at most 64 layers", e);
        for (k = g->n_layer++; k && g->at[k - 1].layer > number - 1; k--)
            g->at[k] = g->at[k - 1];
        g->at[k] = (struct sh_ngram_layer){.layer = number - 1};
    }
    return 0;
}

/* Which token ends a text: the first, if there are several. */
static int read_end(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    const char *key = sh_config_length(c, "eos_token_id") > 0 ? "eos_token_id.0" : "eos_token_id";
    a->ngrams.end = -1;
    if (sh_config_at_least(c, key, 0, a->n_vocab - 1, &a->ngrams.end, e))
        return -1;
    return a->ngrams.end < 0 ? sh_config_refuse(c, key, "the number of a token, which ends n-grams", e) : 0;
}

static int read_ngrams(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    struct sh_ngrams *g = &a->ngrams;
    int least = 20000000, divisor = 128, seed = 1234;
    if (read_ngram_layers(a, c, e))
        return -1;
    if (!g->n_layer) {
        *g = (struct sh_ngrams){0};
        return 0;
    }
    g->d = a->d_model;
    if (sh_config_count(c, "ple_embed_dim", 1000000, &g->d, e) || read_end(a, c, e) ||
        sh_config_count(c, "ngram_vocab_size_base", 100000000, &least, e) ||
        sh_config_count(c, "make_ngram_vocab_size_divisible_by", 100000000, &divisor, e) ||
        sh_config_at_least(c, "seed", 0, INT_MAX, &seed, e))
        return -1;
    g->seed = (uint64_t)seed;
    if (g->n < 2)
        return sh_config_refuse(c, "ngram_size", "a whole number from 2 to 16", e);
    if ((g->n - 1) * g->heads > SH_NGRAM_HEADS)
        return sh_config_refuse(c, "heads_per_ngram", "at most 256 heads for all lengths of n-grams together", e);
    if (g->d % ((g->n - 1) * g->heads))
        return sh_config_refuse(c, "ple_embed_dim", "a multiple of (ngram_size - 1) heads_per_ngram", e);
    if (a->n_vocab > 1 << 24)
        return sh_config_refuse(c, "vocab_size", "at most 16777216 with ple_layer_ids", e);
    if (sh_ngrams_size(g, least, divisor))
        return sh_config_refuse(c, "ngram_vocab_size_base", "tables of fewer than 2^31 rows", e);
    if ((long long)g->kernel * g->n * a->streams.n * a->d_model > 1 << 29)
        return sh_config_refuse(c, "ple_conv_kernel_size", "states of at most 2^29 numbers a layer", e);
    return 0;
}

static int shape(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    a->d_ff = a->d_ff ? a->d_ff : a->mix.width;
    if (a->streams.n < 2 || (long long)a->streams.n * a->d_model > 100000000)
        return sh_config_refuse(c, "hc_count", "at least 2 streams, of at most 10^8 numbers together", e);
    return read_layers(a, c, e) || read_gate(a, c, e) || read_share(a, c, e) || read_ngrams(a, c, e) ||
           sh_config_check_delta(c, a, e) ? -1 : 0;
}

/* ---- the index ---- */

/* The index chooses blocks of `pool` tokens; all are chosen as long as no more blocks are whole than it may choose. */
static int read_index(const struct sh_config *c, int *chosen, int *pool, int *width, struct sh_err *e)
{
    static const char *const needed[] = {"indexer_n_heads", "indexer_kv_heads", "indexer_head_dim", "indexer_budget",
                                         "indexer_compress_ratio"};
    int read[5] = {0};
    for (int i = 0; i < 5; i++) {
        if (sh_config_count(c, needed[i], 100000000, &read[i], e))
            return -1;
        if (!read[i])
            return sh_config_refuse(c, needed[i], "a whole number from 1 on, since layers attend by an index", e);
    }
    *width = read[2];
    *chosen = read[3];
    *pool = read[4];
    if (read[1] != 1)
        return sh_config_refuse(c, "indexer_kv_heads", "1", e);
    return *chosen % *pool ? sh_config_refuse(c, "indexer_compress_ratio", "a divisor of indexer_budget", e) : 0;
}

static int finish(struct sh_arch *a, const struct sh_config *c, struct sh_err *e)
{
    const struct sh_ngrams *g = &a->ngrams;
    int chosen = 0, pool = 0, width = 0;
    if (sh_config_check_attends(c, "layer_types", a, e) || sh_config_classic_rope(a, c, e) ||
        read_index(c, &chosen, &pool, &width, e))
        return -1;
    if (a->n_rot > width)
        return sh_config_refuse(c, "indexer_head_dim", "at least the rotated part of head_dim", e);
    if (g->n_layer && (g->kernel - 1) * (long long)g->n >= SH_CONV_TAPS)
        return sh_config_refuse(c, "ple_conv_kernel_size", "at most 16 tokens from the first to the last of a "
                                "convolution over every ngram_size-th", e);
    a->max_pos = chosen + pool - 1 < a->max_pos ? chosen + pool - 1 : a->max_pos;
    return 0;
}

/* ---- what is counted ---- */

static const struct sh_fact_key facts[] = {
    SH_NEEDED_FACT(index_dim, "indexer_head_dim"), SH_NEEDED_FACT(index_heads, "indexer_n_heads"),
    SH_NEEDED_FACT(index_topk, "indexer_budget"), {.json = {NULL}}};

/* The layers that attend have an index of blocks. Besides: what mixes the streams before each block and at the end, and
 * the embeddings of n-grams with the states of their layers. */
static int count(struct sh_kv_facts *f, const struct sh_config *c, struct sh_err *e)
{
    struct sh_arch a;
    if (sh_config_shape(c, &sh_family_qwen4_exp, &a, e))
        return -1;
    if (f->layers >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "num_hidden_layers", "fewer than 1024", e);
    for (int i = 0; i < f->layers; i++) {
        f->pattern[i] = sh_arch_recurs(&a, i) ? 'S' : 'B';
        f->pattern[i + 1] = '\0';
    }
    long long n = a.streams.n, wide = n * a.d_model, mixes = 2 * wide * a.streams.rank;
    f->layer_more += 2 * (mixes + n * wide);
    f->vectors_more += 2 * wide;
    f->ends_more += mixes + wide;
    const struct sh_ngrams *g = &a.ngrams;
    f->n_own = g->n_layer ? f->layers : f->n_own;
    for (int i = 0; i < g->n_layer; i++) {
        f->own[g->at[i].layer].state_more = (int)sh_arch_state(&a, g->at[i].layer) -
                                            (int)sh_recurrent_state(&a.recurrent);
        f->ends_more += (long long)g->at[i].rows * sh_dim_size(&a, SH_DIM_NGRAM_HEAD) + (wide + a.d_model) * g->d +
                        wide * (3 + g->kernel);
    }
    return 0;
}

const struct sh_family sh_family_qwen4_exp = {
    .special = "gated delta rule in three of four layers, several residual streams, embeddings of n-grams, experts",
    .name = "qwen4_exp", .model_types = SH_WORDS("qwen4_exp_text", "qwen4_exp"),
    .architectures = SH_WORDS("Qwen4ExpForCausalLM", "Qwen4ExpForConditionalGeneration", "Qwen4ExpTextModel",
                              "Qwen4ExpModel"),
    .prefixes = SH_WORDS("model.language_model.", "language_model.model.", "model.", "", "language_model."),
    .start = {.norm = SH_NORM_RMS, .norm_place = SH_NORM_OUT, .act = SH_ACT_SILU, .pos = SH_POS_ROTARY, .type = SH_F32,
              .norm_eps = 1e-6f, .init_std = 0.02f, .max_pos = 32768, .rope = {.base = 10000}, .n_kv_head = 2,
              .d_head = 256, .rotary_share = 1,
              .recurrent = {.n_k = 16, .n_v = 32, .d_k = 128, .d_v = 128, .kernel = 4},
              .streams = {.n = 4, .hyper = 1, .rank = 320}, .ngrams = {.n = 3, .heads = 8, .kernel = 4, .parts = 512},
              .mix = {.n = 512, .used = 10, .width = 512, .shared_width = 512},
              .flags = SH_HAS_NORM_AFFINE | SH_GATED | SH_HAS_QK_NORM | SH_NORM_PLUS_ONE | SH_ATTENTION_GATE |
                       SH_MIX_NORMED},
    .keys = keys, .params = params, .facts = facts, .only = SH_WORDS("hidden_act=\"silu\""),
    .knows = " layer_types full_attention_interval ", .shape = shape, .finish = finish, .count = count};
