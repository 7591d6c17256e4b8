/* SPDX-License-Identifier: Apache-2.0 */
/* See layer.h. This is the transformer: what a layer does, in the order it does it. */
#include "src/model/layer.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

struct sh_layer {
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

static int load_vector(struct sh_layer *l, enum sh_role role, const struct sh_tensor *t, struct sh_err *e)
{
    size_t bytes = (size_t)t->cols * sizeof(float);
    float *host = widened(t);
    l->vector[role] = l->b->alloc(l->d, bytes, e);
    if (l->vector[role])
        l->b->put(l->d, l->vector[role], host, bytes);
    free(host);
    return l->vector[role] ? 0 : -1;
}

/* What is a matrix is said by the role: a matrix may have one row. */
static const unsigned char is_matrix[SH_N_ROLE] = {
    [SH_Q_W] = 1, [SH_K_W] = 1, [SH_V_W] = 1, [SH_O_W] = 1, [SH_UP_W] = 1, [SH_DOWN_W] = 1};

static int load_role(struct sh_layer *l, struct sh_model *m, enum sh_role role, int layer, enum sh_type dtype,
                     struct sh_err *e)
{
    struct sh_tensor t;
    if (sh_model_tensor(m, role, layer, &t, e))
        return -1;
    if (!t.at)
        return 0;
    if (sh_model_check_finite(&t, e))
        return -1;
    if (!is_matrix[role])
        return load_vector(l, role, &t, e);
    l->matrix[role] = l->b->weight(l->d, t.at, t.type, t.rows, t.cols, dtype, e);
    return l->matrix[role] ? 0 : sh_err_prefix(e, "%s", t.name);
}

struct sh_layer *sh_layer_load(const struct sh_backend *b, struct sh_dev *d, struct sh_model *m, int layer,
                               enum sh_type dtype, struct sh_err *e)
{
    struct sh_layer *l = xcalloc(1, sizeof *l);
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

static void sizes(const struct sh_arch *a, int rows, enum sh_type dtype, size_t bytes[6])
{
    size_t n = (size_t)rows, operand = sh_type_bytes(dtype);
    size_t q = (size_t)a->n_head * (size_t)a->d_head, kv = (size_t)a->n_kv_head * (size_t)a->d_head;
    bytes[0] = n * (size_t)a->d_model * operand;
    bytes[1] = n * q * sizeof(float);
    bytes[2] = bytes[3] = n * kv * sizeof(float);
    bytes[4] = n * q * operand;
    bytes[5] = n * (size_t)a->d_ff * operand;
}

size_t sh_activations_bytes(const struct sh_arch *arch, int rows, enum sh_type dtype)
{
    size_t bytes[6], sum = 0;
    sizes(arch, rows, dtype, bytes);
    for (int i = 0; i < 6; i++)
        sum += bytes[i];
    return sum;
}

int sh_activations_new(struct sh_activations *a, const struct sh_backend *b, struct sh_dev *d,
                       const struct sh_arch *arch, int rows, enum sh_type dtype, struct sh_err *e)
{
    *a = (struct sh_activations){.backend = b, .device = d, .arch = arch, .dtype = dtype, .rows = rows};
    void **part[6] = {&a->x, &a->q, &a->k, &a->v, &a->mixed, &a->up};
    size_t bytes[6];
    sizes(arch, rows, dtype, bytes);
    for (int i = 0; i < 6; i++)
        if (!(*part[i] = b->alloc(d, bytes[i], e))) {
            sh_activations_free(a);
            return -1;
        }
    return 0;
}

void sh_activations_free(struct sh_activations *a)
{
    void *part[6] = {a->x, a->q, a->k, a->v, a->mixed, a->up};
    for (int i = 0; i < 6 && a->backend; i++)
        a->backend->release(a->device, part[i]);
    *a = (struct sh_activations){0};
}

static struct sh_mat dense(void *at, enum sh_type type, int rows, int cols)
{
    return (struct sh_mat){at, type, rows, cols, (size_t)cols};
}

/* out (+)= act(x w^T + bias) with the layer's own w and bias */
static void linear(const struct sh_layer *l, struct sh_mat out, struct sh_mat x, enum sh_role w, enum sh_role bias,
                   enum sh_act act, int add)
{
    struct sh_linear a = {
        .out = out, .x = x, .w = l->matrix[w], .bias = l->vector[bias], .act = act, .add = add};
    l->b->linear(l->d, &a);
}

static void norm(const struct sh_layer *l, struct sh_mat out, struct sh_mat x, enum sh_role w, enum sh_role bias,
                 float eps)
{
    struct sh_norm a = {.out = out, .x = x, .weight = l->vector[w], .bias = l->vector[bias], .eps = eps};
    l->b->norm(l->d, &a);
}

static void attention(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x, int n_seq,
                      const int *start, const struct sh_tap *tap, int probabilities_only)
{
    const struct sh_arch *c = a->arch;
    int n = x.rows, q_width = c->n_head * c->d_head, kv_width = c->n_kv_head * c->d_head;
    struct sh_attend attend = {
        .q = dense(a->q, SH_F32, n, q_width),
        .k = dense(a->k, SH_F32, n, kv_width),
        .v = dense(a->v, SH_F32, n, kv_width),
        .out = dense(probabilities_only ? NULL : a->mixed, a->dtype, n, q_width),
        .n_head = c->n_head, .n_kv_head = c->n_kv_head, .d_head = c->d_head, .scale = c->scale,
        .n_seq = n_seq, .start = start, .tap = *tap};
    linear(l, attend.q, x, SH_Q_W, SH_Q_B, SH_ACT_NONE, 0);
    linear(l, attend.k, x, SH_K_W, SH_K_B, SH_ACT_NONE, 0);
    linear(l, attend.v, x, SH_V_W, SH_V_B, SH_ACT_NONE, 0);
    l->b->attend(l->d, &attend);
}

void sh_layer_run(const struct sh_layer *l, struct sh_activations *a, void *hidden, int n_seq, const int *start,
                  const struct sh_tap *tap, int attention_only)
{
    const struct sh_arch *c = a->arch;
    int n = start[n_seq], pre = c->norm_place == SH_NORM_PRE;
    struct sh_mat h = dense(hidden, SH_F32, n, c->d_model), x = dense(a->x, a->dtype, n, c->d_model);
    struct sh_mat mixed = dense(a->mixed, a->dtype, n, c->n_head * c->d_head);
    struct sh_mat up = dense(a->up, a->dtype, n, c->d_ff);

    if (pre)
        norm(l, x, h, SH_ATTN_NORM_W, SH_ATTN_NORM_B, c->norm_eps);
    else
        l->b->cast(l->d, x, h);
    attention(l, a, x, n_seq, start, tap, attention_only);
    if (attention_only)
        return;
    linear(l, h, mixed, SH_O_W, SH_O_B, SH_ACT_NONE, 1);
    if (pre) {
        norm(l, x, h, SH_MLP_NORM_W, SH_MLP_NORM_B, c->norm_eps);
    } else {
        norm(l, h, h, SH_ATTN_NORM_W, SH_ATTN_NORM_B, c->norm_eps);
        l->b->cast(l->d, x, h);
    }
    linear(l, up, x, SH_UP_W, SH_UP_B, c->act, 0);
    linear(l, h, up, SH_DOWN_W, SH_DOWN_B, SH_ACT_NONE, 1);
    if (!pre)
        norm(l, h, h, SH_MLP_NORM_W, SH_MLP_NORM_B, c->norm_eps);
}
