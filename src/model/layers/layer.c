/* SPDX-License-Identifier: Apache-2.0 */
/* See layer.h. This is the transformer: what a layer does, in the order it does it. */
#include "src/model/layers/layer_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

/* As it is multiplied by its codes, where it lies or as blocks; 0: it is not. Numbers of 16 bits that are no expert's
 * are faster as a copy. */
static int find_packed(const struct sh_layer *l, enum sh_role role, int number, struct sh_packed *p, const char **name)
{
    int maps_halves = l->dtype == SH_F32 && l->weight_bits == 16 && sh_model_count(l->m, role) > 1;
    return l->b->packed && (sh_model_packed(l->m, role, l->index, number, p, name) ||
                            (maps_halves && sh_model_halves(l->m, role, l->index, number, p, name)));
}

/* Devices with memory of their own have copies. */
static int reads_the_file(const struct sh_layer *l)
{
    return l->weight_bits == 16 && !l->b->slots;
}

int sh_layer_maps(const struct sh_layer *l, enum sh_role role)
{
    struct sh_packed p;
    const char *name;
    return reads_the_file(l) && find_packed(l, role, 0, &p, &name) && !p.blocks;
}

int sh_layer_scratch_bits(const struct sh_backend *b, const struct sh_model *m, enum sh_type dtype, int weight_bits)
{
    int n_layer = sh_model_arch(m)->n_layer, any = dtype == SH_F32 && sh_model_arch(m)->mix.n;
    for (int i = -1; i < n_layer && !any; i++)
        any = sh_model_has_codes(m, i);
    return weight_bits == 16 && b->packed && any ? 8 : weight_bits;
}

int sh_layer_numbered(const struct sh_layer *l, enum sh_role role, int number, int is_sound, struct sh_weight **out,
                      int *is_mapped, struct sh_err *e)
{
    struct sh_packed p;
    struct sh_tensor t = {0};
    int is_packed = find_packed(l, role, number, &p, &t.name);
    *out = NULL;
    if (is_mapped)
        *is_mapped = is_packed && !p.blocks && reads_the_file(l);
    if (is_packed ? !is_sound && sh_packed_check_finite(&p, t.name, e)
                  : sh_model_numbered(l->m, role, l->index, number, &t, e) ||
                        (!is_sound && sh_model_check_finite(&t, e)))
        return -1;
    if (is_packed)
        *out = l->b->packed(l->d, &p, l->dtype, e);
    else if (t.at)
        *out = l->b->weight(l->d, t.at, t.type, t.rows, t.cols, l->dtype, e);
    return *out || !(is_packed || t.at) ? 0 : sh_err_prefix(e, "%s", t.name);
}

void sh_layer_settle(struct sh_layer *l, int settles)
{
    unsigned char settled[SH_N_ROLE] = {0};
    for (int role = 0; role < SH_N_ROLE && l->b->settle; role++)
        settled[role] = l->matrix[role] && l->b->settle(l->d, l->matrix[role]);
    for (int role = 0; role < SH_N_ROLE; role++)    /* some share a tensor */
        if (settled[role])
            sh_model_drop_numbered(l->m, (enum sh_role)role, l->index, 0);
    sh_experts_settle(l, settles);
}

int sh_layer_matrix(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, enum sh_role role, int layer,
                    enum sh_type dtype, struct sh_weight **out, struct sh_err *e)
{
    const struct sh_layer l = {.index = layer, .b = b, .d = d, .m = m, .dtype = dtype, .weight_bits = 16};
    return sh_layer_numbered(&l, role, 0, 0, out, NULL, e);
}

/* What is a matrix is said by the role: a matrix may have one row. */
static const unsigned char is_matrix[SH_N_ROLE] = {
    [SH_Q_W] = 1, [SH_K_W] = 1, [SH_V_W] = 1, [SH_O_W] = 1, [SH_UP_W] = 1, [SH_GATE_W] = 1, [SH_DOWN_W] = 1,
    [SH_ATTN_GATE_W] = 1, [SH_ROUTER_W] = 1, [SH_SHARED_GATE_W] = 1, [SH_SHARED_UP_W] = 1, [SH_SHARED_DOWN_W] = 1,
    [SH_SHARED_SCALE_W] = 1, [SH_EXPERT_IN_W] = 1, [SH_EXPERT_OUT_W] = 1, [SH_Q_A_W] = 1,
    [SH_Q_B_W] = 1, [SH_KV_A_W] = 1,
    [SH_RECUR_Q_W] = 1, [SH_RECUR_K_W] = 1, [SH_RECUR_V_W] = 1, [SH_RECUR_Z_W] = 1, [SH_RECUR_B_W] = 1,
    [SH_RECUR_A_W] = 1, [SH_RECUR_X_W] = 1, [SH_RECUR_MIX_W] = 1, [SH_RECUR_STEP_W] = 1, [SH_RECUR_OUT_W] = 1,
    [SH_OWN_GATE_W] = 1, [SH_OWN_OUT_W] = 1, [SH_ALTUP_ROUTER_W] = 1, [SH_LAUREL_LEFT_W] = 1,
    [SH_LAUREL_RIGHT_W] = 1, [SH_ATTN_ROUTER_W] = 1, [SH_RECUR_A_IN_W] = 1, [SH_RECUR_Z_IN_W] = 1,
    [SH_BLOCK_OUT_W] = 1, [SH_Q_ADAPT_IN_W] = 1, [SH_Q_ADAPT_W] = 1, [SH_K_ADAPT_IN_W] = 1, [SH_K_ADAPT_W] = 1,
    [SH_V_ADAPT_IN_W] = 1, [SH_V_ADAPT_W] = 1, [SH_FEED_ADAPT_W] = 1, [SH_GATE_ADAPT_W] = 1, [SH_UP_ADAPT_W] = 1,
    [SH_KEY_BIAS_W] = 1, [SH_ATTN_PRODUCT_W] = 1, [SH_FEED_PRODUCT_W] = 1,
    [SH_ATTN_NORM_IN_W] = 1, [SH_ATTN_NORM_OUT_W] = 1, [SH_MLP_NORM_IN_W] = 1, [SH_MLP_NORM_OUT_W] = 1,
    [SH_NGRAM_KEY_W] = 1, [SH_NGRAM_VALUE_W] = 1};

/* What is loaded by other ways. */
static const unsigned char is_apart[SH_N_ROLE] = {
    [SH_KV_B_W] = 1, [SH_K_B_W] = 1, [SH_V_B_W] = 1, [SH_SINKS] = 1, [SH_ROUTER_CHOICE] = 1, [SH_EXPERT_GATE_W] = 1,
    [SH_EXPERT_GATE_B] = 1, [SH_EXPERT_UP_W] = 1,
    [SH_EXPERT_UP_B] = 1, [SH_EXPERT_DOWN_W] = 1, [SH_EXPERT_DOWN_B] = 1, [SH_ACT_AP] = 1, [SH_ACT_AN] = 1,
    [SH_ACT_BETA] = 1, [SH_ACT_EPS] = 1, [SH_LAYER_SCALE] = 1, [SH_ALTUP_PREDICT] = 1, [SH_ALTUP_CORRECT] = 1,
    [SH_HYPER_ATTN_W] = 1, [SH_HYPER_ATTN_BASE] = 1, [SH_HYPER_ATTN_SCALE] = 1, [SH_HYPER_MLP_W] = 1,
    [SH_HYPER_MLP_BASE] = 1, [SH_HYPER_MLP_SCALE] = 1,
    [SH_RECUR_CONV] = 1, [SH_RECUR_CONV_K] = 1, [SH_RECUR_CONV_V] = 1, [SH_RECUR_DECAY_W] = 1, [SH_RECUR_INPUT_W] = 1,
    [SH_LAMBDA_Q_1] = 1, [SH_LAMBDA_K_1] = 1, [SH_LAMBDA_Q_2] = 1, [SH_LAMBDA_K_2] = 1,
    [SH_QUERY_LOG] = 1, [SH_QUERY_KEPT] = 1,
    [SH_QUERY_FACTOR] = 1, [SH_ATTN_GATE_FACTOR] = 1, [SH_GATE_FACTOR] = 1, [SH_UP_FACTOR] = 1, [SH_ATTN_RATE] = 1,
    [SH_MLP_RATE] = 1,
    [SH_MIXER_ATTN_NORM_W] = 1, [SH_MIXER_ATTN_DOWN_W] = 1, [SH_MIXER_ATTN_UP_W] = 1, [SH_MIXER_ATTN_ADD_W] = 1,
    [SH_MIXER_MLP_NORM_W] = 1, [SH_MIXER_MLP_DOWN_W] = 1, [SH_MIXER_MLP_UP_W] = 1, [SH_MIXER_MLP_ADD_W] = 1,
    [SH_NGRAM_EMBED] = 1, [SH_NGRAM_CONV] = 1,
    [SH_EXPERT_SCALE] = 1, [SH_Q_EXPERT_W] = 1, [SH_O_EXPERT_W] = 1, [SH_ATTN_MIX_B] = 1, [SH_MIX_B] = 1};

struct sh_layer *sh_layer_load(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, int layer,
                               enum sh_type dtype, int weight_bits, struct sh_err *e)
{
    struct sh_layer *l = xcalloc(1, sizeof *l);
    *l = (struct sh_layer){.index = layer, .b = b, .d = d, .m = m, .dtype = dtype, .weight_bits = weight_bits};
    sh_model_enter(m);
    b->weight_bits(d, weight_bits);
    int bad = sh_layer_read_knobs(l, m, e) || sh_layer_read(l, m, SH_SINKS, &l->sinks, e) ||
              sh_layer_read(l, m, SH_ATTN_MIX_B, &l->attention_bias, e) ||
              sh_layer_read(l, m, SH_MIX_B, &l->mixture_bias, e);
    for (int i = SH_LAYER_ROLE; i < SH_N_ROLE && !bad; i++) {
        enum sh_role role = (enum sh_role)i;
        if (is_apart[role])
            continue;
        bad = is_matrix[role] ? sh_layer_matrix(b, d, m, role, layer, dtype, &l->matrix[role], e)
                              : sh_layer_vector(b, d, m, role, layer, &l->vector[role], e);
    }
    bad = bad || sh_latent_load(l, m, dtype, e) || sh_experts_new(l, m, e) || sh_streams_load(l, m, e) ||
          sh_attention_experts_load(l, m, e) || sh_recurrent_load(l, m, e) || sh_differential_load(l, m, e) ||
          sh_head_temper_load(l, m, e) || sh_ngpt_load(l, m, e) || sh_ngrams_load(l, m, e);
    b->weight_bits(d, 16);
    sh_model_drop(m, layer);
    sh_model_leave(m);
    if (bad) {
        sh_layer_drop(l);
        return NULL;
    }
    return l;
}

const float *sh_layer_sinks(const struct sh_layer *l)
{
    return l->sinks;
}

void sh_layer_drop(struct sh_layer *l)
{
    if (!l)
        return;
    if (l->b->packed && !l->b->slots)   /* the pages that packed weights were read from           */
        sh_model_drop(l->m, l->index);
    for (int role = 0; role < SH_N_ROLE; role++) {
        l->b->drop(l->d, l->matrix[role]);
        l->b->release(l->d, l->vector[role]);
    }
    sh_latent_drop(l);
    free(l->sinks);
    sh_experts_drop(l);
    sh_streams_drop(l);
    sh_ngrams_drop(l);
    sh_attention_experts_drop(l);
    sh_recurrent_drop(l);
    l->b->release(l->d, l->differential);
    l->b->release(l->d, l->query_log);
    l->b->release(l->d, l->query_kept);
    free(l->attention_bias);
    free(l->mixture_bias);
    free(l);
}

/* out (+)= act(x w^T + bias) with the layer's own w and bias */
static struct sh_linear product(const struct sh_layer *l, struct sh_mat out, struct sh_mat x, enum sh_role w,
                                enum sh_role bias, enum sh_act act, int add)
{
    return (struct sh_linear){
        .out = out, .x = x, .w = l->matrix[w], .bias = bias == SH_N_ROLE ? NULL : l->vector[bias], .act = act,
        .add = add};
}

void sh_layer_linear(const struct sh_layer *l, struct sh_mat out, struct sh_mat x, enum sh_role w, enum sh_role bias,
                     enum sh_act act, int add)
{
    struct sh_linear a = product(l, out, x, w, bias, act, add);
    l->b->linear(l->d, &a);
}

void sh_layer_fill(const struct sh_layer *l, struct sh_mat out, const float *row)
{
    size_t n = (size_t)out.cols;
    float *all = xcalloc((size_t)out.rows, n * sizeof *all);
    for (int i = 0; i < out.rows && row; i++)
        memcpy(all + (size_t)i * n, row, n * sizeof *all);
    l->b->put(l->d, out.at, all, (size_t)out.rows * n * sizeof *all);
    free(all);
}

void sh_layer_linears(const struct sh_layer *l, const struct sh_linear *a, int n)
{
    if (l->b->linears)
        l->b->linears(l->d, a, n);
    for (int i = 0; i < n && !l->b->linears; i++)
        l->b->linear(l->d, &a[i]);
}

void sh_layer_scale(const struct sh_layer *l, struct sh_mat x, const float *factor)
{
    struct sh_norm a = {.out = x, .x = x, .weight = factor, .kind = SH_NORM_SCALE};
    if (factor)
        l->b->norm(l->d, &a);
}

void sh_layer_norm(const struct sh_layer *l, const struct sh_arch *c, struct sh_mat out, struct sh_mat x,
                   enum sh_role w, enum sh_role bias, int add)
{
    struct sh_norm a = {.out = out, .x = x, .weight = l->vector[w], .eps = c->norm_eps, .kind = c->norm, .add = add};
    if ((w == SH_ATTN_POST_W || w == SH_MLP_POST_W) && c->post_eps > 0)
        a.eps = c->post_eps;
    a.bias = bias == SH_N_ROLE ? NULL : l->vector[bias];
    l->b->norm(l->d, &a);
}

struct sh_attend sh_layer_attend(const struct sh_arch *c, int layer, int rows, enum sh_type dtype)
{
    int n_head = sh_arch_query_heads(c, layer), n_kv = sh_arch_kv_heads(c, layer);
    int d = sh_arch_d_head(c, layer), q = n_head * d, kv = n_kv * d;
    return (struct sh_attend){
        .q = sh_dense(NULL, SH_F32, rows, q), .k = sh_dense(NULL, SH_F32, rows, kv),
        .v = sh_dense(NULL, SH_F32, rows, kv), .out = sh_dense(NULL, sh_arch_mixes_f32(c) ? SH_F32 : dtype, rows, q),
        .n_head = n_head, .n_kv_head = n_kv, .d_head = d,
        .window = sh_arch_window(c, layer), .scale = sh_arch_scale(c, layer), .softcap = c->softcap,
        .rounds_slopes = (c->flags & SH_ROUNDS_SLOPES) != 0,
        .chunk = c->flags & SH_CHUNKED ? sh_arch_window(c, layer) : 0};
}

/* Of queries or keys: each head by itself, or all of a token together. */
static void norm_heads(const struct sh_layer *l, const struct sh_arch *c, struct sh_mat x, enum sh_role w,
                       enum sh_role bias)
{
    int n = c->flags & SH_QK_NORM_WIDE ? 1 : x.cols / sh_arch_d_head(c, l->index);
    struct sh_mat heads = sh_dense(x.at, SH_F32, x.rows * n, x.cols / n);
    struct sh_norm a = {.out = heads, .x = heads, .weight = w == SH_N_ROLE ? NULL : l->vector[w],
                        .bias = bias == SH_N_ROLE ? NULL : l->vector[bias],
                        .n_own = c->flags & SH_QK_NORM_EACH ? n : 0, .eps = c->norm_eps, .kind = c->norm};
    if (c->qk_layer_eps > 0) {
        a.eps = c->qk_layer_eps;
        a.kind = SH_NORM_LAYER;
    }
    l->b->norm(l->d, &a);
}

static void norm_queries_keys(const struct sh_layer *l, const struct sh_arch *c, const struct sh_attend *a, int late)
{
    int is_late = (c->flags & SH_QK_NORM_LATE) != 0;
    if (!(c->flags & SH_HAS_QK_NORM) || is_late != late || (late && !sh_arch_turns(c, l->index)))
        return;
    struct sh_scatter scale = {.out = a->q, .x = a->q, .by = c->query_scale - 1};
    norm_heads(l, c, a->q, SH_Q_NORM_W, SH_Q_NORM_B);
    if (c->query_scale > 0)
        l->b->scatter(l->d, &scale);
    if (!sh_arch_borrows(c, l->index))
        norm_heads(l, c, a->k, SH_K_NORM_W, SH_K_NORM_B);
}

/* Queries, keys and values, as far as the layer makes them itself, not yet normed. */
static void project(const struct sh_layer *l, const struct sh_activations *a, const struct sh_attend *attend,
                    struct sh_mat x)
{
    const struct sh_linear qkv[] = {product(l, attend->q, x, SH_Q_W, SH_Q_B, SH_ACT_NONE, 0),
                                    product(l, attend->k, x, SH_K_W, SH_K_B, SH_ACT_NONE, 0),
                                    product(l, sh_values_made(a, attend->v), x, SH_V_W, SH_V_B, SH_ACT_NONE, 0)};
    int borrows = sh_arch_borrows(a->arch, l->index);
    if (l->n_query_expert)
        sh_attention_experts_project(l, a, attend, x);
    else if (l->n_latent)
        sh_latent_project(l, a, attend->q, attend->k, x);
    else if (l->differential)
        sh_differential_project(l, a, attend, x);
    else if (a->arch->has_key_bias)
        sh_key_bias_project(l, a, attend, x);
    else
        sh_layer_linears(l, qkv, borrows ? 1 : l->matrix[SH_V_W] ? 3 : 2);
    sh_shared_adapt(l, a, attend, x);
    sh_values_widen(l, a, attend->v);
    if (!borrows && !l->n_latent && !l->matrix[SH_V_W])
        l->b->cast(l->d, attend->v, attend->k);
}

/* Before the rotation. */
static void norm_values(const struct sh_layer *l, const struct sh_arch *c, struct sh_mat v)
{
    if (c->norms_values && !sh_arch_borrows(c, l->index))
        norm_heads(l, c, v, SH_N_ROLE, SH_N_ROLE);
}

static void clip(const struct sh_layer *l, float most, struct sh_mat x)
{
    struct sh_gate a = {.out = x, .gate = x, .act = SH_ACT_CLIP, .knob = {most}};
    if (most > 0)
        l->b->gate(l->d, &a);
}

/* out = values times what a product of x makes, for each number or head */
static void gate_values(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out,
                        struct sh_mat values, struct sh_mat x)
{
    const struct sh_arch *c = a->arch;
    struct sh_gate gate = {.out = out, .up = values, .act = c->gate_act ? c->gate_act : SH_ACT_SIGMOID};
    gate.gate = sh_dense(a->attn_gate, SH_F32, x.rows, c->gates_heads ? sh_arch_query_heads(c, l->index)
                                                                         : values.cols);
    sh_layer_linear(l, gate.gate, x, SH_ATTN_GATE_W, SH_ATTN_GATE_B, SH_ACT_NONE, 0);
    sh_layer_scale(l, gate.gate, l->vector[SH_ATTN_GATE_FACTOR]);
    l->b->gate(l->d, &gate);
}

/* What the output product reads: what attention gives; before that, its norm or its product with a gate. */
static struct sh_mat finished(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x)
{
    const struct sh_arch *c = a->arch;
    struct sh_mat mixed = sh_layer_attend(c, l->index, x.rows, a->dtype).out, sub = mixed;
    mixed.at = a->mixed;
    if (!sh_arch_has_sub(c))
        return mixed;
    sub.at = a->sub;
    sub.type = a->dtype;
    if (l->n_latent) {
        int gates = (c->flags & SH_ATTENTION_GATE) != 0, cols = c->n_head * c->latent.d_v;
        struct sh_mat both = sh_dense(a->latent_x, a->dtype, x.rows, 2 * c->latent.q_rank);
        struct sh_mat values = sh_dense(a->latent_v, SH_F32, x.rows, cols);
        sub = sh_dense(a->sub, a->dtype, x.rows, cols);
        sh_latent_values(l, a, gates ? values : sub, mixed);
        if (gates)
            gate_values(l, a, sub, values, c->latent.both ? both : x);
    } else if (c->d_value) {
        sub = sh_values_narrow(l, a, mixed);
    } else if (l->differential) {
        sub = sh_differential_finish(l, a, mixed);
    } else if (c->flags & SH_HAS_SUB_NORM) {
        if (c->flags & SH_ATTENTION_GATE)
            gate_values(l, a, mixed, mixed, x);
        sh_layer_norm(l, c, sub, mixed, SH_O_NORM_W, SH_O_NORM_B, 0);
    } else {
        gate_values(l, a, sub, mixed, x);
    }
    return sub;
}

/* own: the caller's attention; NULL: the backend's. */
static void attention(const struct sh_layer *l, struct sh_activations *a, struct sh_mat x, int n_seq, const int *start,
                      const struct sh_tap *tap, int probabilities_only, const struct sh_own_attention *own)
{
    struct sh_attend attend = sh_layer_attend(a->arch, l->index, x.rows, a->dtype);
    attend.q.at = a->q;
    attend.k.at = a->k;
    attend.v.at = a->v;
    attend.out.at = probabilities_only ? NULL : a->mixed;
    attend.slopes = a->slopes;
    attend.sinks = l->sinks;
    attend.mass = a->sink;
    attend.n_seq = n_seq;
    attend.start = start;
    attend.tap = tap ? *tap : (struct sh_tap){0};
    struct sh_mat v = attend.v;
    const struct sh_mat qkv[] = {attend.q, attend.k, attend.v};
    project(l, a, &attend, x);
    norm_queries_keys(l, a->arch, &attend, 0);
    norm_values(l, a->arch, v);
    for (int i = 0; i < 3; i++)
        clip(l, a->arch->clip, qkv[i]);
    sh_head_temper_run(l, a, attend.q, n_seq, start, own);
    if ((sh_arch_turns(a->arch, l->index) || sh_arch_tempers(a->arch, l->index)) && !(own && own->turns))
        sh_activations_turn(a, l->index, x.rows, n_seq, start, own);
    norm_queries_keys(l, a->arch, &attend, 1);
    sh_layer_scale(l, attend.q, l->vector[SH_QUERY_FACTOR]);
    if (l->n_latent)
        l->b->cast(l->d, v, attend.k);
    sh_streams_exchange(l, a, &attend);
    if (a->sink && !l->sinks)           /* which only other layers have */
        sh_layer_fill(l, sh_dense(a->sink, SH_F32, x.rows, attend.n_head), NULL);
    if (own)
        own->attend(own->to, l->index, &attend);
    else
        l->b->attend(l->d, &attend);
}

/* hidden += what a->block holds, normed or scaled first where the model does that */
static void add_block(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat h, enum sh_adding what,
                      enum sh_role post)
{
    enum sh_norm_place place = sh_arch_norm_place(a->arch, l->index);
    /* In some models, only certain blocks have that norm. */
    int normed = (place == SH_NORM_BOTH || place == SH_NORM_OUT || place == SH_NORM_TAKEN) && l->vector[post];
    struct sh_mat block = sh_dense(a->block, SH_F32, h.rows, h.cols);
    struct sh_scatter add = {.out = h, .x = block, .by = sh_arch_added_by(a->arch, what)};
    if (a->arch->streams.hyper) {
        sh_hyper_add(l, a, block);
        return;
    }
    int scaled = !normed || sh_arch_scales(a->arch);
    if (normed)
        sh_layer_norm(l, a->arch, scaled ? block : h, block, post, SH_N_ROLE, !scaled);
    if (scaled)
        l->b->scatter(l->d, &add);
}

/* hidden += what the block's last product, or the one in the block's place, gives of x */
static void add_product(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat h, struct sh_mat x,
                        enum sh_adding what)
{
    static const enum sh_role roles[SH_N_ADDING][4] = {
        [SH_ADDS_ATTENTION] = {SH_O_W, SH_O_B, SH_ATTN_POST_W, SH_ATTN_PRODUCT_W},
        [SH_ADDS_RECURRENCE] = {SH_RECUR_OUT_W, SH_RECUR_OUT_B, SH_ATTN_POST_W, SH_RECUR_OUT_W},
        [SH_ADDS_FEED] = {SH_DOWN_W, SH_DOWN_B, SH_MLP_POST_W, SH_FEED_PRODUCT_W}};
    const enum sh_role *r = roles[what], w = l->matrix[r[3]] ? r[3] : r[0];
    struct sh_mat block = sh_dense(a->block, SH_F32, h.rows, h.cols);
    sh_layer_linear(l, a->block ? block : h, x, w, r[1], SH_ACT_NONE, !a->block);
    if (a->block)
        add_block(l, a, h, what, r[2]);
}

void sh_layer_feed(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out, struct sh_mat x,
                   const struct sh_expert *w, enum sh_limited what)
{
    const struct sh_arch *c = a->arch;
    const struct sh_limits *limits = sh_arch_limits(c, l->index, what);
    struct sh_gate gate = {.out = out, .gate = sh_dense(a->gate, SH_F32, out.rows, out.cols),
                           .up = sh_dense(c->flags & SH_GATED ? a->gated : NULL, SH_F32, out.rows, out.cols),
                           .act = c->act};
    struct sh_linear up = {.out = gate.up.at ? gate.up : gate.gate, .x = x, .w = w->up, .bias = w->up_bias};
    const struct sh_linear both[] = {{.out = gate.gate, .x = x, .w = w->gate, .bias = w->gate_bias}, up};
    memcpy(gate.knob, l->knob, sizeof gate.knob);
    if (c->flags & SH_GATED) {
        struct sh_norm cut = {.out = gate.gate, .x = gate.gate, .eps = c->cut, .kind = SH_NORM_CUT};
        sh_layer_linears(l, both, 2);
        sh_shared_adapt_feed(l, a, gate.gate, gate.up, x);
        sh_layer_scale(l, gate.gate, a->gate_factor);
        sh_layer_scale(l, gate.gate, l->vector[SH_GATE_FACTOR]);
        sh_layer_scale(l, gate.up, l->vector[SH_UP_FACTOR]);
        if (sh_arch_cuts(c, l->index))
            l->b->norm(l->d, &cut);
        if (limits)
            sh_limits_apply(l, limits, &gate);
        l->b->gate(l->d, &gate);
    } else if (c->act == SH_ACT_XIELU) {
        l->b->linear(l->d, &up);
        l->b->gate(l->d, &gate);
    } else {
        up.out = out;
        up.act = c->act;
        l->b->linear(l->d, &up);
    }
}

/* hidden += the norm of: the norm of what the plain block gives, and that of what experts give, both of h as it is. */
static void add_both(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat h, struct sh_mat up)
{
    const struct sh_arch *c = a->arch;
    struct sh_mat block = sh_dense(a->block, SH_F32, h.rows, h.cols), mixed = block;
    struct sh_mat x = sh_dense(a->next_to_x, a->dtype, h.rows, h.cols), by = x;
    mixed.at = a->next_to;
    by.at = a->next_to_by;
    sh_layer_linear(l, block, up, SH_DOWN_W, SH_DOWN_B, SH_ACT_NONE, 0);
    sh_layer_norm(l, c, block, block, SH_MLP_POST_1_W, SH_N_ROLE, 0);
    sh_layer_norm(l, c, x, h, SH_EXPERT_NORM_W, SH_N_ROLE, 0);
    sh_layer_norm(l, c, by, h, SH_ROUTER_NORM_W, SH_N_ROLE, 0);
    sh_mixture_run(l, a, mixed, x, by, 0);
    sh_layer_norm(l, c, block, mixed, SH_MLP_POST_2_W, SH_N_ROLE, 1);
    add_block(l, a, h, SH_ADDS_FEED, SH_MLP_POST_W);
}

static void feed_forward(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat h, struct sh_mat x)
{
    const struct sh_arch *c = a->arch;
    const struct sh_expert w = {.gate = l->matrix[SH_GATE_W], .gate_bias = l->vector[SH_GATE_B],
                                .up = l->matrix[SH_UP_W], .up_bias = l->vector[SH_UP_B]};
    int d_ff = sh_arch_d_ff(c, l->index);
    struct sh_mat up = sh_dense(a->up, a->dtype, x.rows, d_ff), wide = sh_dense(a->gate, SH_F32, x.rows, d_ff);
    if (l->n_expert && c->mix.next_to) {
        struct sh_mat read = sh_dense(a->next_to_x, a->dtype, h.rows, h.cols);
        sh_layer_feed(l, a, up, x, &w, SH_LIMITS_OTHERS);
        if (c->mix.next_to == SH_NEXT_TO_ATTENTION) {
            add_product(l, a, h, up, SH_ADDS_FEED);
            sh_mixture_run(l, a, h, read, read, 1);
        } else {
            add_both(l, a, h, up);
        }
        return;
    }
    if (c->mix.late) {
        sh_mixture_late(l, a, h, x);
    } else if (l->n_expert) {
        struct sh_mat block = sh_dense(a->block, SH_F32, h.rows, h.cols);
        sh_mixture_run(l, a, a->block ? block : h, x, x, !a->block);
        if (a->block)
            add_block(l, a, h, SH_ADDS_FEED, SH_MLP_POST_W);
        return;
    }
    if (c->flags & SH_HAS_SUB_NORM) {
        sh_layer_feed(l, a, wide, x, &w, SH_LIMITS_OTHERS);
        sh_layer_norm(l, c, up, wide, SH_DOWN_NORM_W, SH_DOWN_NORM_B, 0);
    } else {
        sh_layer_feed(l, a, up, x, &w, SH_LIMITS_OTHERS);
    }
    add_product(l, a, h, up, SH_ADDS_FEED);
}

/* The feed-forward block, or what is in its place. */
static void second_block(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat h, struct sh_mat x)
{
    enum sh_block_kind kind = sh_arch_feed_kind(a->arch, l->index);
    if (kind == SH_BLOCK_NONE)
        return;
    sh_block_between(l, a, x, h);
    if (kind == SH_BLOCK_PRODUCT)
        add_product(l, a, h, x, SH_ADDS_FEED);
    else
        feed_forward(l, a, h, x);
}

void sh_layer_run(const struct sh_layer *l, struct sh_activations *a, void *hidden, int n_seq, const int *start,
                  const struct sh_tap *tap, int attention_only, const struct sh_own_attention *own)
{
    const struct sh_arch *c = a->arch;
    enum sh_norm_place place = sh_arch_norm_place(c, l->index);
    int n = start[n_seq], post = place == SH_NORM_POST, parallel = (c->flags & SH_PARALLEL) != 0;
    int bare = post || place == SH_NORM_OUT || (c->first_bare && !l->index);   /* the block reads hidden states */
    if (l->ngrams && !attention_only)
        sh_ngrams_run(l, a, hidden, n_seq, start, own ? own->state : NULL);
    struct sh_mat h = sh_streams_begin(l, a, hidden, n), x = sh_dense(a->x, a->dtype, n, c->d_model);

    a->hidden = hidden;
    if (!attention_only)
        sh_mixture_begin(l, a, x, h);
    enum sh_block_kind kind = sh_arch_attention_kind(c, l->index);
    if (bare)
        l->b->cast(l->d, x, h);
    else if (kind != SH_BLOCK_NONE)
        sh_block_norm(l, a, x, h, SH_ATTN_NORM_W, SH_ATTN_NORM_B);
    int attends = sh_arch_attends(c, l->index), recurs = sh_arch_recurs(c, l->index);
    if (c->streams.laurel && !attention_only)
        sh_laurel_run(l, a, x);
    int shares = sh_arch_shares(c, l->index);
    struct sh_mat read = shares ? sh_shared_begin(l, a, n) : x;
    if (attends)
        attention(l, a, read, n_seq, start, tap, attention_only, own);
    if (attention_only) {
        sh_streams_undo(l, a, hidden, n);
        return;
    }
    struct sh_mat mixed = x, moved = x;
    sh_block_take(l, a, h, attends ? SH_ADDS_ATTENTION : SH_ADDS_RECURRENCE);
    if (attends)
        mixed = finished(l, a, x);
    if (shares)
        sh_shared_end(l, a, h, x, mixed);
    if (recurs)
        moved = sh_recurrent_run(l, a, x, n_seq, start, own);
    if (parallel && !(c->flags & SH_ONE_NORM))
        sh_block_norm(l, a, x, h, SH_MLP_NORM_W, SH_MLP_NORM_B);
    if (l->n_query_expert) {
        sh_attention_experts_finish(l, a, sh_dense(a->block, SH_F32, n, c->d_model), mixed);
        add_block(l, a, h, SH_ADDS_ATTENTION, SH_ATTN_POST_W);
    } else if (attends && !shares) {
        add_product(l, a, h, mixed, SH_ADDS_ATTENTION);
    }
    if (recurs)
        add_product(l, a, h, moved, SH_ADDS_RECURRENCE);
    if (kind == SH_BLOCK_PRODUCT)
        add_product(l, a, h, x, SH_ADDS_ATTENTION);
    if (c->one_block) {
        if (sh_arch_feeds(c, l->index) && !shares)
            feed_forward(l, a, h, x);
        return;
    }
    if (c->streams.laurel)
        sh_laurel_join(l, a, h);
    if (c->streams.hyper)
        h = sh_hyper_begin(l, a, hidden, n, 1);
    second_block(l, a, h, x);
    if (post)
        sh_layer_norm(l, c, h, h, SH_MLP_NORM_W, SH_MLP_NORM_B, 0);
    sh_streams_end(l, a, hidden, h);
}
