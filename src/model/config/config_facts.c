/* SPDX-License-Identifier: Apache-2.0 */
/* The facts that determine a model's memory (facts.h), from config.json (config.h): the shape, what the family counts
 * in addition, and the formats of the published weights. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/model/config/config.h"
#include "src/model/config/config_quant.h"
#include "src/model/files/checkpoint.h"

/* Keys that change a model's memory where they are more than null, false, 0 or an empty list. */
static const char *const structural[] = {
    "kv_lora_rank", "q_lora_rank", "n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts",
    "first_k_dense_replace", "moe_layer_freq", "num_nextn_predict_layers", "index_topk", "index_head_dim",
    "layer_types", "sliding_window", "use_sliding_window", "max_window_layers", "sliding_window_pattern",
    "attention_chunk_size", "attention_types", "window_size", "no_rope_layers", "moe_layers",
    "interleave_moe_layer_step", "hybrid_override_pattern", "full_attention_interval", "attn_layer_period",
    "expert_layer_period", "mamba_num_heads", "mamba_d_state", "ssm_state_size", "linear_num_value_heads",
    "attention_k_eq_v", "num_global_key_value_heads", "global_head_dim", "num_kv_shared_layers", "multi_query",
    "new_decoder_architecture", "num_ln_in_parallel_attn", "word_embed_proj_dim", "cross_attention_layers",
    "block_types", "layers_block_type", "is_encoder_decoder", "add_cross_attention", "hidden_size_per_layer_input",
    "altup_num_inputs", "laurel_rank", "kv_sharing_map", "compress_ratios", "mtp_num_layers", "attention_layer_pattern",
    "block_configs", "per_layer_config", "use_double_wide_mlp", "linear_attn_config", "sparse_attention_config",
    "attn_type_list", "mlp_layer_types", "indexer_types",
    "num_mem_blocks", "index_topk_freq", "index_topk_pattern", "index_skip_topk_offset", "moe_latent_size",
    "routed_expert_hidden_size", NULL};

static int is_among(const char *key, const char *const *names, int n)
{
    for (int i = 0; i < n && names[i]; i++)
        if (!strcmp(key, names[i]))
            return 1;
    return 0;
}

/* What the family reads by a table, or says itself. */
static int is_known(const struct sh_family *f, const char *key)
{
    char word[64];
    for (const struct sh_key *k = f->keys; k && k->json[0]; k++)
        if (is_among(key, k->json, SH_MOST_NAMES))
            return 1;
    for (const struct sh_fact_key *k = f->facts; k && k->json[0]; k++)
        if (is_among(key, k->json, 2))
            return 1;
    snprintf(word, sizeof word, " %s ", key);
    return (f->pattern && !strcmp(key, "layer_types")) || (f->knows && strstr(f->knows, word));
}

static int refuse_unknown(const struct sh_config *c, const struct sh_family *f, struct sh_err *e)
{
    for (int i = 0; structural[i]; i++) {
        char expected[160];
        if (is_known(f, structural[i]) || !sh_config_is_set(c, structural[i]))
            continue;
        snprintf(expected, sizeof expected, "no such key: its effect on the memory of model type '%s' is not "
                 "known", f->model_types[0]);
        return sh_config_refuse(c, structural[i], expected, e);
    }
    return 0;
}

/* ---- from the shape ---- */

typedef char layer_letter(const struct sh_arch *a, int layer);

static int has_experts(const struct sh_arch *a, int layer)
{
    return (sh_arch_flags(a, layer) & SH_EXPERT_LAYER) != 0;
}

/* As models.txt has them. */
static char kind_letter(const struct sh_arch *a, int layer)
{
    if (sh_arch_shares(a, layer))
        return 'H';
    if (sh_arch_attention_kind(a, layer) || sh_arch_feed_kind(a, layer))
        return sh_arch_attends(a, layer) ? '*' : sh_arch_feeds(a, layer) ? '-' : '.';
    if (a->one_block)
        return sh_arch_recurs(a, layer) ? 'M' : sh_arch_attends(a, layer) ? '*' : has_experts(a, layer) ? 'E' : '-';
    if (sh_arch_recurs(a, layer) && sh_arch_attends(a, layer))
        return 'H';
    return sh_arch_recurs(a, layer) ? 'S' : sh_arch_window(a, layer) ? 'L' : 'G';
}

static char feed_letter(const struct sh_arch *a, int layer)
{
    return has_experts(a, layer) ? 'E' : '-';
}

/* The shortest pattern that, repeated, gives the letters of all layers. */
static int pattern(const struct sh_config *c, const struct sh_arch *a, layer_letter *of, char *to, struct sh_err *e)
{
    int period = 1;
    for (int i = 1; i < a->n_layer && period < SH_FACTS_PATTERN; i++)
        if (of(a, i) != of(a, i % period)) {
            period++;
            i = period - 1;
        }
    if (period >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "num_hidden_layers", "fewer than 1024 layers if their kinds follow no pattern", e);
    for (int i = 0; i < period; i++)
        to[i] = of(a, i);
    return 0;
}

/* What is more than any model has is refused later. */
static int at_most_int(long long n)
{
    return n < INT_MAX ? (int)n : INT_MAX;
}

/* How many numbers of the layer (or of none) have the role; 0: the family has no such tensor. */
static long long numbers_of(const struct sh_family *family, const struct sh_arch *a, enum sh_role role, int layer)
{
    for (const struct sh_param *p = family->params; p->name; p++)
        if (p->role == role && sh_param_exists(p, a, layer))
            return (long long)sh_dim_size(a, p->count) * sh_dim_size(a, p->rows) * sh_dim_size(a, p->cols);
    return 0;
}

/* What the tables of a family that runs say about vectors. */
static void from_table(const struct sh_family *family, const struct sh_arch *shape, struct sh_kv_facts *f)
{
    static const enum sh_role norms[] = {SH_ATTN_NORM_W, SH_MLP_NORM_W, SH_ATTN_POST_W, SH_MLP_POST_W};
    static const enum sh_role more[] = {SH_Q_NORM_B, SH_K_NORM_B, SH_O_NORM_W, SH_O_NORM_B, SH_DOWN_NORM_W,
                                        SH_DOWN_NORM_B, SH_ACT_AP, SH_ACT_AN, SH_ACT_BETA, SH_ACT_EPS, SH_Q_A_B,
                                        SH_KV_A_B, SH_ATTN_GATE_B,
                                        SH_LAMBDA_Q_1, SH_LAMBDA_K_1, SH_LAMBDA_Q_2, SH_LAMBDA_K_2, SH_QUERY_LOG,
                                        SH_QUERY_KEPT, SH_QUERY_FACTOR, SH_ATTN_GATE_FACTOR, SH_GATE_FACTOR,
                                        SH_UP_FACTOR, SH_ATTN_RATE, SH_MLP_RATE};
    struct sh_arch a = *shape;
    a.d_head = a.d_head ? a.d_head : a.d_model / a.n_head;
    a.n_kv_head = a.n_kv_head ? a.n_kv_head : a.n_head;
    int attends = 0;
    while (attends < a.n_layer - 1 && !sh_arch_attends(&a, attends))
        attends++;
    long long each = numbers_of(family, &a, SH_Q_NORM_W, attends) + numbers_of(family, &a, SH_K_NORM_W, attends);
    long long biases = numbers_of(family, &a, SH_ATTN_NORM_B, 0) + numbers_of(family, &a, SH_MLP_NORM_B, 0);
    long long last = numbers_of(family, &a, SH_FINAL_NORM_W, -1);
    long long norm_more = 0;
    f->norms = 0;
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
        int there = numbers_of(family, &a, norms[i], 0) > 0;
        /* The first may lack the block, or the norm. */
        for (int l = 1; l < a.n_layer && (a.sizes || a.first_bare) && !there; l++)
            there = numbers_of(family, &a, norms[i], l) > 0;
        f->norms += there;
    }
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        norm_more += numbers_of(family, &a, more[i], attends);
    f->norm = biases ? SH_KEPT_LAYER : SH_KEPT_RMS;
    f->post_norm = !last;
    f->embed_norm = numbers_of(family, &a, SH_EMBED_NORM_W, -1) > 0;
    f->head_bias = numbers_of(family, &a, SH_HEAD_B, -1) > 0;
    f->qk_norm = each > 0 && !(a.flags & (SH_QK_NORM_WIDE | SH_QK_NORM_EACH));
    f->qk_norm_wide = each > 0 && !f->qk_norm && !(a.flags & SH_QK_NORM_EACH);
    norm_more += f->qk_norm || f->qk_norm_wide ? 0 : each;
    f->norm_more = at_most_int(f->norm_more + norm_more);
    int feeds = 0;
    while (feeds < a.n_layer - 1 && !sh_arch_feeds(&a, feeds))
        feeds++;
    int mixes = has_experts(&a, feeds);
    f->gated = numbers_of(family, &a, mixes ? SH_EXPERT_GATE_W : SH_GATE_W, feeds) > 0;
    f->qkv_bias = numbers_of(family, &a, SH_Q_B, attends) > 0;
    f->o_bias = numbers_of(family, &a, SH_O_B, attends) > 0;
    f->mlp_bias = numbers_of(family, &a, mixes ? SH_EXPERT_UP_B : SH_UP_B, feeds) > 0;
    int last_mix = a.n_layer - 1;
    while (last_mix && !has_experts(&a, last_mix))
        last_mix--;
    f->experts = a.mix.n;
    f->used = a.mix.used;
    f->expert_ffn = a.mix.width;
    f->shared_ffn = a.mix.shared_width;
    f->router_bias = numbers_of(family, &a, SH_ROUTER_B, last_mix) > 0;
    f->shared_gate = numbers_of(family, &a, SH_SHARED_SCALE_W, last_mix) > 0;
    f->query_gate = numbers_of(family, &a, SH_ATTN_GATE_W, attends) > 0 && !a.gates_heads;
    f->head_gate = numbers_of(family, &a, SH_ATTN_GATE_W, attends) > 0 && a.gates_heads;
}

/* What the head has besides the final norm and the last product, and a bias that only the last layer has, less a norm
 * that the first layer lacks. */
static void from_ends(const struct sh_family *family, const struct sh_arch *a, struct sh_kv_facts *f)
{
    static const enum sh_role of_head[] = {SH_HEAD_DENSE_W, SH_HEAD_DENSE_B, SH_HEAD_NORM_W, SH_HEAD_NORM_B,
                                           SH_LOGIT_FACTOR};
    for (size_t i = 0; i < sizeof of_head / sizeof *of_head; i++)
        f->ends_more += numbers_of(family, a, of_head[i], -1);
    if (a->last_out_bias && a->n_layer > 1)
        f->ends_more += numbers_of(family, a, SH_O_B, a->n_layer - 1);
    if (a->first_bare)
        f->ends_more -= numbers_of(family, a, SH_ATTN_NORM_W, a->n_layer - 1) +
                        numbers_of(family, a, SH_ATTN_NORM_B, a->n_layer - 1);
}

/* What recurrent layers keep and compute. */
static void from_recurrent(const struct sh_family *family, const struct sh_arch *a, struct sh_kv_facts *f)
{
    static const enum sh_role biases[] = {SH_RECUR_X_B, SH_RECUR_Z_B, SH_RECUR_B_B, SH_RECUR_A_B, SH_RECUR_OUT_B};
    const struct sh_recurrent *r = &a->recurrent;
    int layer = 0;
    while (layer < a->n_layer - 1 && !sh_arch_recurs(a, layer))
        layer++;
    static const int kinds[] = {[SH_DELTA_RULE] = 3, [SH_STATE_SPACE] = 2, [SH_SHORT_CONV] = 4, [SH_LIGHTNING] = 5,
                                [SH_GATED_LRU] = 6};
    f->ssm = r->kind == SH_STATE_SPACE && r->rank ? 1 : kinds[r->kind];
    int has_keys = f->ssm == 3 || f->ssm == 5;
    f->ssm_conv = r->kernel;
    f->ssm_inner = r->n_v * r->d_v;
    f->ssm_rank = r->kind == SH_DELTA_RULE ? r->gate_rank : r->rank;
    f->ssm_own_decays = r->own_decays;
    f->ssm_state = f->ssm < 3 || f->ssm == 6 ? r->d_k : 0;
    f->ssm_groups = f->ssm == 2 ? r->n_k : 0;
    f->ssm_heads = f->ssm == 2 || f->ssm == 6 || has_keys ? r->n_v : 0;
    f->ssm_head_dim = f->ssm_heads ? r->d_v : 0;
    f->ssm_key_heads = has_keys ? r->n_k : 0;
    f->ssm_key_dim = has_keys ? r->d_k : 0;
    f->ssm_bare = !r->has_conv_bias;
    f->ssm_unnormed = f->ssm == 2 && !r->normed;
    long long all = 0;
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++)
        all += numbers_of(family, a, biases[i], layer);
    f->ssm_biases = at_most_int(all);
}

/* Layers that differ in their heads, widths or blocks. */
static int from_sizes(const struct sh_config *c, const struct sh_arch *a, struct sh_kv_facts *f, struct sh_err *e)
{
    if (a->sizes && a->n_layer >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, "num_hidden_layers", "fewer than 1024 layers if they differ", e);
    f->n_own = a->sizes ? a->n_layer : 0;
    for (int i = 0; i < f->n_own; i++)
        f->own[i] = (struct sh_layer_facts){
            .heads = sh_arch_query_heads(a, i), .kv_heads = sh_arch_kv_heads(a, i), .ffn = sh_arch_d_ff(a, i),
            .still = a->latent.d_rope && !sh_arch_latent(a, i).d_rope,
            .products = (sh_arch_attention_kind(a, i) == SH_BLOCK_PRODUCT ? SH_FACTS_ATTENTION : 0) |
                        (sh_arch_feed_kind(a, i) == SH_BLOCK_PRODUCT ? SH_FACTS_FEED : 0)};
    return 0;
}

static int from_shape(const struct sh_config *c, const struct sh_family *family, const struct sh_arch *a,
                      struct sh_kv_facts *f, struct sh_err *e)
{
    *f = (struct sh_kv_facts){
        .layers = a->n_layer, .hidden = a->d_model, .heads = a->n_head, .kv_heads = a->n_kv_head,
        .head_dim = a->d_head, .ffn = a->d_ff, .vocab = a->n_vocab, .embed_width = a->d_embed, .window = a->window,
        .max_pos = a->pos == SH_POS_ALIBI ? 0 : a->max_pos,
        .positions = a->pos == SH_POS_LEARNED ? a->max_pos + a->pos_offset : 0,
        .norm = a->norm == SH_NORM_LAYER ? SH_KEPT_LAYER : SH_KEPT_RMS, .norms = a->norm_place == SH_NORM_BOTH ? 4 : 2,
        .post_norm = family->params && !(a->flags & SH_HAS_FINAL_NORM), .moe_every = 1,
        .gated = (a->flags & SH_GATED) != 0, .tied = (a->flags & SH_TIED_HEAD) != 0,
        .qk_norm = (a->flags & SH_HAS_QK_NORM) != 0, .qkv_bias = (a->flags & SH_HAS_BIAS) != 0,
        .o_bias = (a->flags & SH_HAS_OUT_BIAS) != 0, .mlp_bias = (a->flags & SH_HAS_MLP_BIAS) != 0};
    snprintf(f->family, sizeof f->family, "%s", family->model_types[0]);
    if (family->params) {
        from_table(family, a, f);
        from_ends(family, a, f);
    }
    f->latent = a->latent.rank;
    f->q_latent = a->latent.q_rank;
    f->rope_dim = a->latent.d_rope;
    f->nope_dim = a->latent.d_nope;
    f->v_dim = a->d_value ? a->d_value : a->latent.d_v;
    f->again_from = a->loop.first + a->loop.n;
    f->again = a->loop.n ? a->loop.n * (a->loop.times - 1) : 0;
    f->loop = a->loop.n;
    if (from_sizes(c, a, f, e))
        return -1;
    if (family->params && a->recurrent.n_v)
        from_recurrent(family, a, f);
    if (family->params && a->mix.n && !a->one_block && pattern(c, a, feed_letter, f->feeds, e))
        return -1;
    if (!family->pattern)
        return pattern(c, a, kind_letter, f->pattern, e);
    snprintf(f->pattern, sizeof f->pattern, "%s", family->pattern);
    return sh_facts_layer_types(c, f, e) < 0 ? -1 : 0;
}

/* ---- what the family counts ---- */

int sh_facts_pattern(const struct sh_config *c, const char *list, const struct sh_word *words, struct sh_kv_facts *f,
                     struct sh_err *e)
{
    if (f->layers >= SH_FACTS_PATTERN)
        return sh_config_refuse(c, list, "a list of fewer than 1024 strings", e);
    for (int i = 0; i < f->layers; i++) {
        int kind;
        if (sh_config_choice_at(c, list, i, words, &kind, e))
            return -1;
        f->pattern[i] = (char)kind;
        f->pattern[i + 1] = '\0';
    }
    return 0;
}

int sh_facts_layer_types(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    static const struct sh_word words[] = {{"full_attention", 'G'}, {"sliding_attention", 'L'},
                                           {"chunked_attention", 'C'}, {"linear_attention", 'S'}, {NULL, 0}};
    return sh_config_has(c, "layer_types.0") ? sh_facts_pattern(c, "layer_types", words, f, e) : 1;
}

int sh_facts_count(const struct sh_config *c, const char *key, int min, int *field, struct sh_err *e)
{
    return sh_config_at_least(c, key, min, 100000000, field, e);
}

int sh_facts_read(const struct sh_config *c, const struct sh_fact_key *k, struct sh_kv_facts *f, struct sh_err *e)
{
    for (; k && k->json[0]; k++) {
        int *field = (int *)(void *)((char *)f + k->field), value = k->usual;
        if (k->json[0][0] && sh_facts_count(c, sh_config_first(c, k->json, 2), k->min, &value, e))
            return -1;
        if (!value && k->needed)
            return sh_fail(e, "%s: key '%s' is missing", sh_config_path(c), k->json[0]);
        *field = value ? value : *field;
    }
    return 0;
}

/* How the files of the weights are written. */
static int published(const struct sh_config *c, const struct sh_family *family, const struct sh_arch *a,
                     struct sh_kv_facts *f, struct sh_err *e)
{
    snprintf(f->published, sizeof f->published, "%s", a->type == SH_F32 ? "f32" : "f16");
    return sh_config_quant_published(c, family, a, f, e);
}

static int read_facts(const struct sh_config *c, struct sh_kv_facts *f, struct sh_err *e)
{
    struct sh_arch a;
    const struct sh_family *family = sh_config_counted(c, e);
    if (!family || refuse_unknown(c, family, e) || sh_config_shape(c, family, &a, e) ||
        from_shape(c, family, &a, f, e) || sh_facts_read(c, family->facts, f, e) ||
        (family->count && family->count(f, c, e)) || published(c, family, &a, f, e))
        return -1;
    f->no_vision = sh_config_is_set(c, "vision_config");
    return 0;
}

/* The folder's name, also of a file of it, or that of another file. */
static void name_of(const char *given, char *to, size_t bytes)
{
    char *folder = strchr(given, '/') ? sh_checkpoint_folder(given) : NULL;
    const char *path = folder ? folder : given;
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t from = n;
    while (from && path[from - 1] != '/')
        from--;
    snprintf(to, bytes, "%.*s", (int)(n - from < bytes ? n - from : bytes - 1), path + from);
    free(folder);
}

int sh_config_facts(const char *path, struct sh_kv_facts *out, struct sh_err *e)
{
    struct sh_kv_facts f;
    struct sh_config *c = sh_config_open(path, e);
    int bad = !c || read_facts(c, &f, e);
    sh_config_close(c);
    if (bad)
        return -1;
    name_of(path, f.name, sizeof f.name);
    *out = f;
    return 0;
}
