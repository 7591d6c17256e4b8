/* SPDX-License-Identifier: Apache-2.0 */
/* Differential attention (Ye et al., arXiv 2410.05258) as DiffLLaMA has it. With m heads of queries in each half,
 *
 *     out of i = (1 - initial) * norm((softmax(q_i k_i) - lambda * softmax(q_{i+m} k_{i+m})) [v, v'])
 *
 * where v and v' are values of one KV head of each half: every head attends to values of twice its width. Caches and
 * attention have one width for keys and values, that of the values; queries and keys are followed by zeros, written
 * once (sh_activations_new), and a pair of values is kept by both KV heads that read it. */
#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/layers/layer_parts.h"

static double initial(int layer)
{
    return 0.8 - 0.6 * exp(-0.3 * layer);
}

/* exp of the product of two vectors */
static int read_exp(struct sh_layer *l, struct sh_model *m, enum sh_role first, enum sh_role second, float *out,
                    struct sh_err *e)
{
    float *x = NULL, *y = NULL, sum = 0;
    int bad = sh_layer_read(l, m, first, &x, e) || sh_layer_read(l, m, second, &y, e);
    for (int i = 0; i < sh_model_arch(m)->d_key && !bad; i++)
        sum += x[i] * y[i];
    *out = expf(sum);
    free(x);
    free(y);
    return bad ? -1 : 0;
}

int sh_differential_load(struct sh_layer *l, struct sh_model *m, struct sh_err *e)
{
    float first, second;
    int n = sh_model_arch(m)->d_head;
    if (!sh_model_arch(m)->d_key || sh_model_arch(m)->has_key_bias)
        return 0;
    if (read_exp(l, m, SH_LAMBDA_Q_1, SH_LAMBDA_K_1, &first, e) ||
        read_exp(l, m, SH_LAMBDA_Q_2, SH_LAMBDA_K_2, &second, e))
        return -1;
    l->lambda = first - second + (float)initial(l->index);
    if (!isfinite(l->lambda))
        return sh_fail(e, "layer %d: the lambda of differential attention: found %g, expected a finite number",
                       l->index, (double)l->lambda);
    float *factor = xmalloc((size_t)n * sizeof *factor);
    for (int i = 0; i < n; i++)
        factor[i] = (float)(1 - initial(l->index));
    l->differential = l->b->vector(l->d, factor, (size_t)n, e);
    free(factor);
    return l->differential ? 0 : -1;
}

void sh_differential_project(const struct sh_layer *l, const struct sh_activations *a, const struct sh_attend *attend,
                             struct sh_mat x)
{
    const struct sh_arch *c = a->arch;
    int d = c->d_key, n_kv = c->n_kv_head, half = n_kv / 2;
    size_t rows = (size_t)x.rows;
    float *at = a->narrow;
    struct sh_mat q = sh_dense(at, SH_F32, x.rows, c->n_head * d), k = q, v;
    k.at = at += rows * (size_t)q.cols;
    k.cols = n_kv * d;
    k.stride = (size_t)k.cols;
    v = k;
    v.at = at + rows * (size_t)k.cols;
    const struct sh_linear qkv[] = {{.out = q, .x = x, .w = l->matrix[SH_Q_W], .bias = l->vector[SH_Q_B]},
                                    {.out = k, .x = x, .w = l->matrix[SH_K_W], .bias = l->vector[SH_K_B]},
                                    {.out = v, .x = x, .w = l->matrix[SH_V_W], .bias = l->vector[SH_V_B]}};
    sh_layer_linears(l, qkv, 3);
    l->b->cast(l->d, sh_columns_of(attend->q, c->n_head, 0, d), sh_columns_of(q, c->n_head, 0, d));
    l->b->cast(l->d, sh_columns_of(attend->k, n_kv, 0, d), sh_columns_of(k, n_kv, 0, d));
    for (int head = 0; head < n_kv; head++)
        for (int i = 0; i < 2; i++)
            l->b->cast(l->d, sh_columns(attend->v, (2 * head + i) * d, d),
                       sh_columns(v, (head % half + i * half) * d, d));
}

struct sh_mat sh_differential_finish(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat mixed)
{
    const struct sh_arch *c = a->arch;
    int half = c->n_head * c->d_key;
    struct sh_mat first = sh_columns(mixed, 0, half), sub = sh_dense(a->sub, a->dtype, mixed.rows, half),
                  heads = sh_dense(mixed.at, SH_F32, mixed.rows * c->n_head, c->d_head);
    struct sh_scatter less = {.out = first, .x = sh_columns(mixed, half, half), .by = -l->lambda};
    struct sh_norm norm = {.out = heads, .x = heads, .weight = l->differential, .eps = c->norm_eps,
                           .kind = SH_NORM_RMS};
    l->b->scatter(l->d, &less);
    l->b->norm(l->d, &norm);                /* also of the second halves, which nothing reads        */
    l->b->cast(l->d, sub, first);
    return sub;
}
