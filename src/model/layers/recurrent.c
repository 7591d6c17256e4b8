/* SPDX-License-Identifier: Apache-2.0 */
/* Layers, most of them without attention, that carry a state from token to token: the gated delta rule (Yang et al.,
 * 2024; Qwen3-Next), selective state spaces (Gu and Dao, 2023: Mamba; Dao and Gu, 2024: Mamba-2), short convolutions
 * (LFM2), linear attention (MiniMax-Text-01), and the RG-LRU (De et al., 2024: Griffin). Products of x pass through a
 * causal convolution into the backend's operation that updates the state (backend.h), and its output is multiplied by a
 * gate. */
#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/layers/layer_parts.h"

/* Linear attention has no tensor of the decays exp(-s): s is a geometric series over heads, less in later layers. */
static int load_lightning(struct sh_layer *l, const struct sh_arch *c, struct sh_err *e)
{
    static const enum sh_role none[] = {SH_RECUR_STEP, SH_RECUR_SKIP};
    int n = c->recurrent.n_v;
    float *x = xcalloc((size_t)n, sizeof *x);
    int bad = 0;
    for (int i = 0; i < 2 && !bad; i++)
        bad = !(l->vector[none[i]] = l->b->vector(l->d, x, (size_t)n, e));
    double share = 1 - l->index / (c->n_layer - 1 + 1e-5) + 1e-5;
    for (int h = 0; h < n; h++)
        x[h] = (float)(log(share) - 8.0 * (h + 1) / n * log(2));
    bad = bad || !(l->vector[SH_RECUR_LOG_A] = l->b->vector(l->d, x, (size_t)n, e));
    free(x);
    return bad ? -1 : 0;
}

/* The matrices of the gates, block by block. */
static int load_gates(struct sh_layer *l, struct sh_model *m, struct sh_err *e)
{
    static const enum sh_role role[] = {SH_RECUR_DECAY_W, SH_RECUR_INPUT_W};
    int n = sh_model_arch(m)->recurrent.n_v;
    l->n_block_gate = n;
    l->block_gate = xcalloc(2 * (size_t)n, sizeof(struct sh_weight *));
    for (int i = 0, is_mapped; i < 2 * n; i++) {
        if (sh_layer_numbered(l, role[i % 2], i / 2, 0, &l->block_gate[i], &is_mapped, e))
            return -1;
        if (!is_mapped)
            sh_model_drop_numbered(m, role[i % 2], l->index, i / 2);
    }
    return 0;
}

void sh_recurrent_drop(struct sh_layer *l)
{
    for (int i = 0; i < 2 * l->n_block_gate; i++)
        l->b->drop(l->d, l->block_gate[i]);
    free(l->block_gate);
}

int sh_recurrent_load(struct sh_layer *l, struct sh_model *m, struct sh_err *e)
{
    static const enum sh_role parts[] = {SH_RECUR_CONV, SH_RECUR_CONV_K, SH_RECUR_CONV_V};
    const struct sh_recurrent *r = &sh_model_arch(m)->recurrent;
    size_t n = (size_t)sh_recurrent_channels(r) * (size_t)r->kernel, used = 0;
    if (!sh_arch_recurs(sh_model_arch(m), l->index))
        return 0;
    if (r->kind == SH_LIGHTNING)
        return load_lightning(l, sh_model_arch(m), e);
    if (r->kind == SH_GATED_LRU && load_gates(l, m, e))
        return -1;
    float *all = xcalloc(n, sizeof *all);
    int bad = 0;
    for (int i = 0; i < 3 && !bad; i++) {
        struct sh_tensor t;
        bad = sh_model_tensor(m, parts[i], l->index, &t, e) || sh_model_check_finite(&t, e);
        for (size_t k = 0; !bad && t.at && k < (size_t)t.rows * (size_t)t.cols; k++)
            all[used++] = sh_tensor_element(&t, k);
    }
    l->vector[SH_RECUR_CONV] = bad ? NULL : l->b->vector(l->d, all, n, e);
    free(all);
    return l->vector[SH_RECUR_CONV] ? 0 : -1;
}

struct texts { int n; const int *start, *first, *position; float *state; };     /* sh_own_attention's */

struct run {
    const struct sh_layer *l;
    const struct sh_activations *a;
    const struct sh_recurrent *shape;
    struct texts texts;
};

/* Queues an operation on these texts, whose states lie sh_arch_state numbers apart. */
typedef void queue(const struct run *r, const struct texts *t, void *what);

/* On all texts; if nobody keeps their states, on one after another, from a state of zeros. */
static void run_texts(const struct run *r, queue *q, void *what)
{
    const struct sh_layer *l = r->l;
    if (r->texts.state) {
        q(r, &r->texts, what);
        return;
    }
    size_t n = sh_recurrent_state(r->shape);
    float *zeros = xcalloc(n, sizeof *zeros);
    for (int s = 0; s < r->texts.n; s++) {
        struct texts one = {.n = 1, .start = r->texts.start + s, .state = r->a->recur_state};
        l->b->put(l->d, one.state, zeros, n * sizeof *zeros);
        q(r, &one, what);
    }
    free(zeros);
}

/* After the rows of the convolution. */
static float *rule_state(const struct run *r, const struct texts *t)
{
    return t->state + (size_t)(r->shape->kernel - 1) * (size_t)sh_recurrent_channels(r->shape);
}

static void queue_conv(const struct run *r, const struct texts *t, void *arg)
{
    struct sh_conv *what = arg;
    what->n_seq = t->n;
    what->start = t->start;
    what->state = t->state;
    what->state_step = sh_arch_state(r->a->arch, r->l->index);
    r->l->b->conv(r->l->d, what);
}

static void queue_delta(const struct run *r, const struct texts *t, void *arg)
{
    struct sh_delta *what = arg;
    what->n_seq = t->n;
    what->start = t->start;
    what->state = rule_state(r, t);
    what->state_step = sh_arch_state(r->a->arch, r->l->index);
    r->l->b->delta(r->l->d, what);
}

static void queue_scan(const struct run *r, const struct texts *t, void *arg)
{
    struct sh_scan *what = arg;
    what->n_seq = t->n;
    what->start = t->start;
    what->state = rule_state(r, t);
    what->state_step = sh_arch_state(r->a->arch, r->l->index);
    r->l->b->scan(r->l->d, what);
}

static void queue_lru(const struct run *r, const struct texts *t, void *arg)
{
    struct sh_lru *what = arg;
    what->n_seq = t->n;
    what->start = t->start;
    what->first = t->first;
    what->position = t->position;
    what->state = rule_state(r, t);
    what->state_step = sh_recurrent_state(r->shape);
    r->l->b->lru(r->l->d, what);
}

static void convolve(const struct run *r, struct sh_mat x, enum sh_act act)
{
    struct sh_conv conv = {.x = x, .weight = r->l->vector[SH_RECUR_CONV], .bias = r->l->vector[SH_RECUR_CONV_B],
                           .act = act, .kernel = r->shape->kernel};
    run_texts(r, queue_conv, &conv);
}

static struct sh_linear product(const struct run *r, struct sh_mat out, struct sh_mat x, enum sh_role w,
                                enum sh_role bias)
{
    return (struct sh_linear){.out = out, .x = x, .w = r->l->matrix[w],
                              .bias = bias == SH_N_ROLE ? NULL : r->l->vector[bias]};
}

static void norm(const struct run *r, struct sh_mat out, struct sh_mat x, enum sh_role w, int n_own)
{
    struct sh_norm norm = {.out = out, .x = x, .weight = r->l->vector[w], .n_own = n_own, .kind = SH_NORM_RMS,
                           .eps = r->shape->norm_eps > 0 ? r->shape->norm_eps : r->a->arch->norm_eps};
    r->l->b->norm(r->l->d, &norm);
}

/* out = act(gate) up */
static void multiply(const struct run *r, struct sh_mat out, struct sh_mat gate, struct sh_mat up, enum sh_act act)
{
    struct sh_gate what = {.out = out, .gate = gate, .up = up, .act = act};
    r->l->b->gate(r->l->d, &what);
}

/* ---- the delta rule: normed head by head, then SiLU(z) or such times that ---- */

/* a and z of the few numbers that come from x first. */
static void from_ranks(const struct run *r, struct sh_mat by_a, struct sh_mat z, struct sh_mat low_a,
                       struct sh_mat low_z)
{
    const struct sh_linear a = product(r, by_a, low_a, SH_RECUR_A_W, SH_N_ROLE);
    const struct sh_linear gate = product(r, z, low_z, SH_RECUR_Z_W, SH_N_ROLE);
    r->l->b->linear(r->l->d, &a);
    r->l->b->linear(r->l->d, &gate);
}

static void run_delta(const struct run *r, struct sh_mat x, struct sh_mat in, struct sh_mat z, struct sh_mat y)
{
    const struct sh_recurrent *c = r->shape;
    int keys = c->n_k * c->d_k, values = c->n_v * c->d_v;
    struct sh_mat by_a = sh_dense(r->a->recur_a, SH_F32, x.rows, sh_dim_size(r->a->arch, SH_DIM_RECUR_DECAYS));
    struct sh_mat by_b = sh_dense(r->a->recur_b, SH_F32, x.rows, c->n_v), out = z;
    struct sh_mat low_a = sh_dense(r->a->recur_y, r->a->dtype, x.rows, c->gate_rank), low_z = low_a;
    out.at = r->a->recur_out;
    low_z.at = (char *)low_a.at + (size_t)x.rows * (size_t)c->gate_rank * sh_type_bytes(low_a.type);
    const struct sh_linear all[] = {product(r, sh_columns(in, 0, keys), x, SH_RECUR_Q_W, SH_N_ROLE),
                                    product(r, sh_columns(in, keys, keys), x, SH_RECUR_K_W, SH_N_ROLE),
                                    product(r, sh_columns(in, 2 * keys, values), x, SH_RECUR_V_W, SH_N_ROLE),
                                    product(r, by_b, x, SH_RECUR_B_W, SH_N_ROLE),
                                    c->gate_rank ? product(r, low_z, x, SH_RECUR_Z_IN_W, SH_N_ROLE)
                                                 : product(r, z, x, SH_RECUR_Z_W, SH_N_ROLE),
                                    c->gate_rank ? product(r, low_a, x, SH_RECUR_A_IN_W, SH_N_ROLE)
                                                 : product(r, by_a, x, SH_RECUR_A_W, SH_N_ROLE)};
    struct sh_delta what = {.out = out, .x = in, .a = by_a.at, .b = by_b.at, .log_a = r->l->vector[SH_RECUR_LOG_A],
                            .step = r->l->vector[SH_RECUR_STEP], .n_k = c->n_k, .n_v = c->n_v, .d_k = c->d_k,
                            .d_v = c->d_v, .in_turns = c->in_turns, .own_decays = c->own_decays,
                            .strength = c->strength > 0 ? c->strength : 1, .least = c->decay_bound};
    struct sh_mat heads = sh_dense(out.at, SH_F32, x.rows * c->n_v, c->d_v);
    sh_layer_linears(r->l, all, 6);
    if (c->gate_rank)
        from_ranks(r, by_a, z, low_a, low_z);
    convolve(r, in, SH_ACT_SILU);
    run_texts(r, queue_delta, &what);
    norm(r, heads, heads, SH_RECUR_NORM_W, 0);
    multiply(r, y, z, out, c->z_act ? c->z_act : SH_ACT_SILU);
}

/* ---- the state space: SiLU(z) times what it gives, maybe normed in parts before or after that ---- */

/* Mamba: steps, b and c come of what passed the convolution; Jamba norms them. */
static void split_mixed(const struct run *r, struct sh_mat in, struct sh_scan *what)
{
    const struct sh_layer *l = r->l;
    int rank = r->shape->rank, state = r->shape->d_k;
    struct sh_mat x = sh_dense(r->a->recur_y, r->a->dtype, in.rows, in.cols);
    struct sh_mat ranked = sh_dense(r->a->recur_y, r->a->dtype, in.rows, rank);
    struct sh_mat mixed = sh_dense(r->a->recur_b, SH_F32, in.rows, rank + 2 * state);
    struct sh_mat steps = sh_columns(mixed, 0, rank);
    struct sh_linear mix = product(r, mixed, x, SH_RECUR_MIX_W, SH_N_ROLE);
    struct sh_linear step = product(r, what->dt, ranked, SH_RECUR_STEP_W, SH_N_ROLE);
    what->b = sh_columns(mixed, rank, state);
    what->c = sh_columns(mixed, rank + state, state);
    l->b->cast(l->d, x, in);
    l->b->linear(l->d, &mix);
    if (l->vector[SH_RECUR_STEP_NORM_W])
        norm(r, steps, steps, SH_RECUR_STEP_NORM_W, 0);
    if (l->vector[SH_RECUR_B_NORM_W])
        norm(r, what->b, what->b, SH_RECUR_B_NORM_W, 0);
    if (l->vector[SH_RECUR_C_NORM_W])
        norm(r, what->c, what->c, SH_RECUR_C_NORM_W, 0);
    l->b->cast(l->d, ranked, steps);
    l->b->linear(l->d, &step);
}

/* The factors of what the products give. */
static void scale(const struct run *r, struct sh_mat z, struct sh_mat in, struct sh_mat dt)
{
    const float *at = r->a->recur_factor;
    if (!at)
        return;
    sh_layer_scale(r->l, z, at);
    sh_layer_scale(r->l, in, at + z.cols);
    sh_layer_scale(r->l, dt, at + z.cols + in.cols);
}

/* Of what the state space gives: the gate, and the norm in parts. */
static void finish(const struct run *r, struct sh_mat out, struct sh_mat z, struct sh_mat y)
{
    const struct sh_recurrent *c = r->shape;
    int rows = out.rows * c->n_k, cols = out.cols / c->n_k;
    struct sh_mat parts = sh_dense(out.at, SH_F32, rows, cols), last = sh_dense(y.at, y.type, rows, cols);
    if (c->normed && c->gated_last)
        norm(r, parts, parts, SH_RECUR_NORM_W, c->n_k);
    multiply(r, c->normed && !c->gated_last ? out : y, z, out, SH_ACT_SILU);
    if (c->normed && !c->gated_last)
        norm(r, last, parts, SH_RECUR_NORM_W, c->n_k);
}

static void run_scan(const struct run *r, struct sh_mat x, struct sh_mat in, struct sh_mat z, struct sh_mat y)
{
    const struct sh_recurrent *c = r->shape;
    int values = c->n_v * c->d_v, keys = c->n_k * c->d_k;
    struct sh_mat dt = sh_dense(r->a->recur_a, SH_F32, x.rows, c->n_v), out = z;
    out.at = r->a->recur_out;
    const struct sh_linear all[] = {product(r, z, x, SH_RECUR_Z_W, SH_RECUR_Z_B),
                                    product(r, in, x, SH_RECUR_X_W, SH_RECUR_X_B),
                                    product(r, dt, x, SH_RECUR_A_W, SH_RECUR_A_B)};
    struct sh_scan what = {.out = out, .x = sh_columns(in, 0, values), .b = sh_columns(in, values, keys),
                           .c = sh_columns(in, values + keys, keys), .dt = dt, .log_a = r->l->vector[SH_RECUR_LOG_A],
                           .dt_bias = r->l->vector[SH_RECUR_STEP], .skip = r->l->vector[SH_RECUR_SKIP],
                           .n_head = c->n_v, .d_head = c->d_v, .n_group = c->n_k, .d_state = c->d_k,
                           .own_decays = c->rank > 0, .least = c->least, .most = c->most > 0 ? c->most : INFINITY};
    sh_layer_linears(r->l, all, c->rank ? 2 : 3);
    scale(r, z, in, dt);
    convolve(r, in, SH_ACT_SILU);
    if (c->rank)
        split_mixed(r, in, &what);
    run_texts(r, queue_scan, &what);
    finish(r, out, z, y);
}

/* ---- linear attention: the state space with steps of 1, keys as b and queries as c; normed, then times a gate ---- */

static void run_lightning(const struct run *r, struct sh_mat x, struct sh_mat in, struct sh_mat z, struct sh_mat y)
{
    const struct sh_recurrent *c = r->shape;
    int values = c->n_v * c->d_v, keys = c->n_k * c->d_k;
    struct sh_mat q = sh_columns(in, 0, keys), k = sh_columns(in, keys, keys), v = sh_columns(in, 2 * keys, values);
    struct sh_mat out = z;
    struct sh_mat dt = sh_dense(r->a->recur_a, SH_F32, x.rows, c->n_v);
    out.at = r->a->recur_out;
    struct sh_linear all[] = {product(r, q, x, SH_RECUR_Q_W, SH_N_ROLE), product(r, k, x, SH_RECUR_K_W, SH_N_ROLE),
                              product(r, v, x, SH_RECUR_V_W, SH_N_ROLE), product(r, z, x, SH_RECUR_Z_W, SH_N_ROLE)};
    struct sh_scan what = {.out = out, .x = v, .b = k, .c = q, .dt = dt, .log_a = r->l->vector[SH_RECUR_LOG_A],
                           .dt_bias = r->l->vector[SH_RECUR_STEP], .skip = r->l->vector[SH_RECUR_SKIP],
                           .n_head = c->n_v, .d_head = c->d_v, .n_group = c->n_k, .d_state = c->d_k, .least = 1,
                           .most = 1};
    for (int i = 0; i < 3; i++)
        all[i].act = r->a->arch->act;
    sh_layer_linears(r->l, all, 4);
    sh_layer_fill(r->l, dt, NULL);
    run_texts(r, queue_scan, &what);
    norm(r, out, out, SH_RECUR_NORM_W, 0);
    multiply(r, y, z, out, SH_ACT_SIGMOID);
}

/* ---- the short convolution: of b x, times z ---- */

static void run_conv(const struct run *r, struct sh_mat x, struct sh_mat in, struct sh_mat z, struct sh_mat y)
{
    struct sh_mat b = in;
    b.at = r->a->recur_b;
    const struct sh_linear all[] = {product(r, b, x, SH_RECUR_B_W, SH_RECUR_B_B),
                                    product(r, z, x, SH_RECUR_Z_W, SH_RECUR_Z_B),
                                    product(r, in, x, SH_RECUR_X_W, SH_RECUR_X_B)};
    sh_layer_linears(r->l, all, 3);
    multiply(r, in, b, in, SH_ACT_NONE);
    convolve(r, in, SH_ACT_NONE);
    multiply(r, y, z, in, SH_ACT_NONE);
}

/* ---- the gated linear recurrence: both gates come of what passed the convolution, block by block ---- */

static void gate_blocks(const struct run *r, struct sh_mat x, struct sh_mat by_a, struct sh_mat by_b)
{
    const struct sh_layer *l = r->l;
    int width = r->shape->d_v;
    for (int i = 0; i < l->n_block_gate; i++) {
        int at = i * width;
        struct sh_mat block = sh_columns(x, at, width);
        const struct sh_linear both[] = {
            {.out = sh_columns(by_a, at, width), .x = block, .w = l->block_gate[2 * i],
             .bias = l->vector[SH_RECUR_A_B] + at},
            {.out = sh_columns(by_b, at, width), .x = block, .w = l->block_gate[2 * i + 1],
             .bias = l->vector[SH_RECUR_B_B] + at}};
        sh_layer_linears(l, both, 2);
    }
}

static void run_lru(const struct run *r, struct sh_mat x, struct sh_mat in, struct sh_mat z, struct sh_mat y)
{
    struct sh_mat by_a = in, by_b = in, out = z;
    by_a.at = r->a->recur_a;
    by_b.at = r->a->recur_b;
    out.at = r->a->recur_out;
    const struct sh_linear all[] = {product(r, z, x, SH_RECUR_Z_W, SH_RECUR_Z_B),
                                    product(r, in, x, SH_RECUR_X_W, SH_RECUR_X_B)};
    struct sh_lru what = {.out = out, .x = in, .a = by_a, .b = by_b, .rate = r->l->vector[SH_RECUR_STEP]};
    sh_layer_linears(r->l, all, 2);
    convolve(r, in, SH_ACT_NONE);
    r->l->b->cast(r->l->d, y, in);
    gate_blocks(r, y, by_a, by_b);
    run_texts(r, queue_lru, &what);
    multiply(r, y, z, out, r->a->arch->act);
}

struct sh_mat sh_recurrent_run(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x, int n_seq,
                               const int *start, const struct sh_own_attention *own)
{
    const struct sh_recurrent *c = &a->arch->recurrent;
    const struct run r = {.l = l, .a = a, .shape = c, .texts = {n_seq, start, own ? own->first : NULL,
                          own ? own->position : NULL, own ? own->state : NULL}};
    struct sh_mat in = sh_dense(a->recur_x, SH_F32, x.rows, sh_recurrent_channels(c));
    struct sh_mat z = sh_dense(a->recur_z, SH_F32, x.rows, c->n_v * c->d_v);
    struct sh_mat y = sh_dense(a->recur_y, a->dtype, x.rows, c->n_v * c->d_v);
    if (c->kind == SH_DELTA_RULE)
        run_delta(&r, x, in, z, y);
    else if (c->kind == SH_STATE_SPACE)
        run_scan(&r, x, in, z, y);
    else if (c->kind == SH_LIGHTNING)
        run_lightning(&r, x, in, z, y);
    else if (c->kind == SH_GATED_LRU)
        run_lru(&r, x, in, z, y);
    else
        run_conv(&r, x, in, z, y);
    return y;
}
