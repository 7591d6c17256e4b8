/* SPDX-License-Identifier: Apache-2.0 */
/* See layer.h. This is the transformer: what a layer does, in the order it does it. */
#include "src/model/layer.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

struct sh_layer {
    int index;
    const struct sh_backend *b;
    struct sh_dev *d;
    struct sh_weight *matrix[SH_N_ROLE];
    float *vector[SH_N_ROLE];
};

static float *widened(const struct sh_tensor *t)
{
    size_t n = (size_t)t->rows * (size_t)t->cols;
    float *to = xmalloc(n * sizeof *to);
    const uint16_t *half = t->at;
    if (t->type == SH_F32)
        memcpy(to, t->at, n * sizeof *to);
    for (size_t i = 0; i < n && t->type != SH_F32; i++)
        to[i] = t->type == SH_F16 ? sh_f16_to_f32(half[i]) : sh_bf16_to_f32(half[i]);
    return to;
}

float *sh_layer_vector(const struct sh_backend *b, struct sh_dev *d, const struct sh_arch *arch, enum sh_role role,
                       const struct sh_tensor *t, int *bad, struct sh_err *e)
{
    *bad = 0;
    if (!t->at)
        return NULL;
    float *host = widened(t);
    if (sh_role_is_norm(role) && (arch->flags & SH_NORM_PLUS_ONE))
        for (int i = 0; i < t->cols; i++)
            host[i] += 1;
    float *at = b->vector(d, host, (size_t)t->cols, e);
    free(host);
    *bad = !at;
    return at;
}

/* What is a matrix is said by the role: a matrix may have one row. */
static const unsigned char is_matrix[SH_N_ROLE] = {
    [SH_Q_W] = 1, [SH_K_W] = 1, [SH_V_W] = 1, [SH_O_W] = 1, [SH_UP_W] = 1, [SH_GATE_W] = 1,
    [SH_DOWN_W] = 1};

static int load_role(struct sh_layer *l, struct sh_model *m, enum sh_role role, int layer, enum sh_type dtype,
                     struct sh_err *e)
{
    struct sh_tensor t;
    int bad;
    if (sh_model_tensor(m, role, layer, &t, e))
        return -1;
    if (!t.at)
        return 0;
    if (sh_model_check_finite(&t, e))
        return -1;
    if (!is_matrix[role]) {
        l->vector[role] = sh_layer_vector(l->b, l->d, sh_model_arch(m), role, &t, &bad, e);
        return bad ? -1 : 0;
    }
    l->matrix[role] = l->b->weight(l->d, t.at, t.type, t.rows, t.cols, dtype, e);
    return l->matrix[role] ? 0 : sh_err_prefix(e, "%s", t.name);
}

struct sh_layer *sh_layer_load(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, int layer,
                               enum sh_type dtype, struct sh_err *e)
{
    struct sh_layer *l = xcalloc(1, sizeof *l);
    l->index = layer;
    l->b = b;
    l->d = d;
    int bad = 0;
    for (int role = SH_LAYER_ROLE; role < SH_N_ROLE && !bad; role++)
        bad = load_role(l, m, (enum sh_role)role, layer, dtype, e);
    sh_model_drop(m, layer);
    if (bad) {
        sh_layer_drop(l);
        return NULL;
    }
    return l;
}

void sh_layer_drop(struct sh_layer *l)
{
    if (!l)
        return;
    for (int role = 0; role < SH_N_ROLE; role++) {
        l->b->drop(l->d, l->matrix[role]);
        l->b->release(l->d, l->vector[role]);
    }
    free(l);
}

static struct sh_mat dense(void *at, enum sh_type type, int rows, int cols)
{
    return (struct sh_mat){at, type, rows, cols, (size_t)cols};
}

/* out (+)= act(x w^T + bias) with the layer's own w and bias */
static struct sh_linear product(const struct sh_layer *l, struct sh_mat out, struct sh_mat x, enum sh_role w,
                                enum sh_role bias, enum sh_act act, int add)
{
    return (struct sh_linear){
        .out = out, .x = x, .w = l->matrix[w], .bias = l->vector[bias], .act = act, .add = add};
}

static void linear(const struct sh_layer *l, struct sh_mat out, struct sh_mat x, enum sh_role w, enum sh_role bias,
                   enum sh_act act, int add)
{
    struct sh_linear a = product(l, out, x, w, bias, act, add);
    l->b->linear(l->d, &a);
}

/* Several products of one x. */
static void linears(const struct sh_layer *l, const struct sh_linear *a, int n)
{
    if (l->b->linears)
        l->b->linears(l->d, a, n);
    for (int i = 0; i < n && !l->b->linears; i++)
        l->b->linear(l->d, &a[i]);
}

/* out = or, with add, out += the norm of x */
static void norm(const struct sh_layer *l, const struct sh_arch *c, struct sh_mat out, struct sh_mat x, enum sh_role w,
                 enum sh_role bias, int add)
{
    struct sh_norm a = {.out = out, .x = x, .weight = l->vector[w], .eps = c->norm_eps, .kind = c->norm, .add = add};
    a.bias = bias == SH_N_ROLE ? NULL : l->vector[bias];
    l->b->norm(l->d, &a);
}

struct sh_attend sh_layer_attend(const struct sh_arch *c, int layer, int rows, enum sh_type dtype)
{
    int q = c->n_head * c->d_head, kv = c->n_kv_head * c->d_head;
    return (struct sh_attend){
        .q = dense(NULL, SH_F32, rows, q), .k = dense(NULL, SH_F32, rows, kv), .v = dense(NULL, SH_F32, rows, kv),
        .out = dense(NULL, dtype, rows, q),
        .n_head = c->n_head, .n_kv_head = c->n_kv_head, .d_head = c->d_head,
        .window = sh_arch_window(c, layer), .scale = sh_arch_scale(c, layer), .softcap = c->softcap};
}

static void norm_heads(const struct sh_layer *l, const struct sh_arch *c, struct sh_mat x, enum sh_role w)
{
    struct sh_mat heads = dense(x.at, SH_F32, x.rows * (x.cols / c->d_head), c->d_head);
    norm(l, c, heads, heads, w, SH_N_ROLE, 0);
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
    attend.n_seq = n_seq;
    attend.start = start;
    attend.tap = *tap;
    const struct sh_linear qkv[] = {product(l, attend.q, x, SH_Q_W, SH_Q_B, SH_ACT_NONE, 0),
                                    product(l, attend.k, x, SH_K_W, SH_K_B, SH_ACT_NONE, 0),
                                    product(l, attend.v, x, SH_V_W, SH_V_B, SH_ACT_NONE, 0)};
    linears(l, qkv, 3);
    if (a->arch->flags & SH_HAS_QK_NORM) {
        norm_heads(l, a->arch, attend.q, SH_Q_NORM_W);
        norm_heads(l, a->arch, attend.k, SH_K_NORM_W);
    }
    if (a->arch->pos == SH_POS_ROTARY && !(own && own->turns))
        sh_activations_turn(a, l->index, x.rows, n_seq, start, own);
    if (own)
        own->attend(own->to, l->index, &attend);
    else
        l->b->attend(l->d, &attend);
}

/* hidden += what the block's last product gives, normed first where the model has a norm there */
static void add_block(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat h, struct sh_mat x,
                      enum sh_role w, enum sh_role bias, enum sh_role post)
{
    if (a->arch->norm_place != SH_NORM_BOTH) {
        linear(l, h, x, w, bias, SH_ACT_NONE, 1);
        return;
    }
    struct sh_mat block = dense(a->block, SH_F32, h.rows, h.cols);
    linear(l, block, x, w, bias, SH_ACT_NONE, 0);
    norm(l, a->arch, h, block, post, SH_N_ROLE, 1);
}

static void feed_forward(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat h, struct sh_mat x)
{
    const struct sh_arch *c = a->arch;
    struct sh_mat up = dense(a->up, a->dtype, x.rows, c->d_ff);
    if (c->flags & SH_GATED) {
        struct sh_gate gate = {.out = up, .gate = dense(a->gate, SH_F32, x.rows, c->d_ff),
                               .up = dense(a->gated, SH_F32, x.rows, c->d_ff), .act = c->act};
        const struct sh_linear both[] = {product(l, gate.gate, x, SH_GATE_W, SH_GATE_B, SH_ACT_NONE, 0),
                                         product(l, gate.up, x, SH_UP_W, SH_UP_B, SH_ACT_NONE, 0)};
        linears(l, both, 2);
        l->b->gate(l->d, &gate);
    } else {
        linear(l, up, x, SH_UP_W, SH_UP_B, c->act, 0);
    }
    add_block(l, a, h, up, SH_DOWN_W, SH_DOWN_B, SH_MLP_POST_W);
}

static void run(const struct sh_layer *l, struct sh_activations *a, void *hidden, int n_seq, const int *start,
                const struct sh_tap *tap, int attention_only, const struct sh_own_attention *own)
{
    const struct sh_arch *c = a->arch;
    int n = start[n_seq], post = c->norm_place == SH_NORM_POST, parallel = (c->flags & SH_PARALLEL) != 0;
    struct sh_mat h = dense(hidden, SH_F32, n, c->d_model), x = dense(a->x, a->dtype, n, c->d_model);
    struct sh_mat mixed = dense(a->mixed, a->dtype, n, c->n_head * c->d_head);

    if (post)
        l->b->cast(l->d, x, h);
    else
        norm(l, c, x, h, SH_ATTN_NORM_W, SH_ATTN_NORM_B, 0);
    attention(l, a, x, n_seq, start, tap, attention_only, own);
    if (attention_only)
        return;
    if (parallel)
        norm(l, c, x, h, SH_MLP_NORM_W, SH_MLP_NORM_B, 0);
    add_block(l, a, h, mixed, SH_O_W, SH_O_B, SH_ATTN_POST_W);
    if (post) {
        norm(l, c, h, h, SH_ATTN_NORM_W, SH_ATTN_NORM_B, 0);
        l->b->cast(l->d, x, h);
    } else if (!parallel) {
        norm(l, c, x, h, SH_MLP_NORM_W, SH_MLP_NORM_B, 0);
    }
    feed_forward(l, a, h, x);
    if (post)
        norm(l, c, h, h, SH_MLP_NORM_W, SH_MLP_NORM_B, 0);
}

void sh_layer_run(const struct sh_layer *l, struct sh_activations *a, void *hidden, int n_seq, const int *start,
                  const struct sh_tap *tap, int attention_only)
{
    run(l, a, hidden, n_seq, start, tap, attention_only, NULL);
}

void sh_layer_step(const struct sh_layer *l, struct sh_activations *a, void *hidden, int n_seq, const int *start,
                   const struct sh_own_attention *own)
{
    static const struct sh_tap nothing = {0};
    run(l, a, hidden, n_seq, start, &nothing, 0, own);
}
