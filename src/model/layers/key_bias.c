/* SPDX-License-Identifier: Apache-2.0 */
/* Keys with a number that is added to all their scores (Doge's dynamic mask, arXiv 2412.11834): for a token's values v,
 * the number of KV head h is exp(decay_h softplus(W_h v + b_h)). It follows the key's elements; at the same place every
 * query has 1 / scale, written once (sh_activations_new). Then come zeros up to a width that all attention accepts.
 * Before that, queries, keys and values have the widths of their products. */
#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/layers/layer_parts.h"

static void norm(const struct sh_layer *l, struct sh_mat x, int heads, enum sh_role w, float eps)
{
    struct sh_mat each = sh_dense(x.at, SH_F32, x.rows * heads, x.cols / heads);
    struct sh_norm a = {.out = each, .x = each, .weight = l->vector[w], .eps = eps, .kind = SH_NORM_RMS};
    if (a.weight)
        l->b->norm(l->d, &a);
}

/* The numbers of all KV heads, [rows, n_kv_head]. */
static struct sh_mat make(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat v)
{
    int n_kv = a->arch->n_kv_head;
    size_t n = (size_t)v.rows * (size_t)n_kv;
    struct sh_mat x = sh_dense(a->sub, a->dtype, v.rows, v.cols), bias = sh_dense(a->key_bias, SH_F32, v.rows, n_kv);
    struct sh_gate gate = {.out = bias, .gate = bias, .act = SH_ACT_SOFTPLUS};
    float *host = xmalloc(n * sizeof *host);
    l->b->cast(l->d, x, v);
    sh_layer_linear(l, bias, x, SH_KEY_BIAS_W, SH_KEY_BIAS_B, SH_ACT_NONE, 0);
    l->b->gate(l->d, &gate);
    sh_layer_scale(l, bias, l->vector[SH_KEY_DECAY]);
    l->b->get(l->d, host, bias.at, n * sizeof *host);
    for (size_t i = 0; i < n; i++)
        host[i] = expf(host[i]);
    l->b->put(l->d, bias.at, host, n * sizeof *host);
    free(host);
    return bias;
}

void sh_key_bias_project(const struct sh_layer *l, const struct sh_activations *a, const struct sh_attend *attend,
                         struct sh_mat x)
{
    const struct sh_arch *c = a->arch;
    int d = c->d_key, n = c->n_head, n_kv = c->n_kv_head;
    struct sh_mat q = sh_dense(a->narrow, SH_F32, x.rows, n * d), v = sh_values_made(a, attend->v);
    struct sh_mat k = sh_dense((float *)a->narrow + (size_t)x.rows * (size_t)q.cols, SH_F32, x.rows, n_kv * d);
    const struct sh_linear qkv[] = {{.out = q, .x = x, .w = l->matrix[SH_Q_W], .bias = l->vector[SH_Q_B]},
                                    {.out = k, .x = x, .w = l->matrix[SH_K_W], .bias = l->vector[SH_K_B]},
                                    {.out = v, .x = x, .w = l->matrix[SH_V_W], .bias = l->vector[SH_V_B]}};
    sh_layer_linears(l, qkv, 3);
    norm(l, q, n, SH_Q_NORM_W, c->norm_eps);
    norm(l, k, n_kv, SH_K_NORM_W, c->norm_eps);
    l->b->cast(l->d, sh_columns_of(attend->q, n, 0, d), sh_columns_of(q, n, 0, d));
    l->b->cast(l->d, sh_columns_of(attend->k, n_kv, 0, d), sh_columns_of(k, n_kv, 0, d));
    l->b->cast(l->d, sh_columns_of(attend->k, n_kv, d, 1), sh_columns_of(make(l, a, v), n_kv, 0, 1));
}
