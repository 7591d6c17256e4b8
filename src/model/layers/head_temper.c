/* SPDX-License-Identifier: Apache-2.0 */
/* Queries whose scale grows with the logarithm of their position as each head has learned it (Mistral Large 4; scalable
 * softmax, arXiv 2501.19399): at position p, head h has its query times s_h ln(1 + p) + b_h. Made of two products with
 * columns, so that backends need no operation for it. */
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/layers/layer_parts.h"

/* A number for each head as one for each column of the queries. */
static int spread(struct sh_layer *l, struct sh_model *m, enum sh_role role, float **out, struct sh_err *e)
{
    const struct sh_arch *c = sh_model_arch(m);
    size_t d = (size_t)sh_arch_d_head(c, l->index), n = (size_t)sh_arch_query_heads(c, l->index) * d;
    struct sh_tensor t;
    if (sh_model_tensor(m, role, l->index, &t, e) || sh_model_check_finite(&t, e))
        return -1;
    if (!t.at)
        return 0;
    float *host = xmalloc(n * sizeof *host);
    for (size_t i = 0; i < n; i++)
        host[i] = sh_tensor_element(&t, i / d);
    *out = l->b->vector(l->d, host, n, e);
    free(host);
    return *out ? 0 : -1;
}

int sh_head_temper_load(struct sh_layer *l, struct sh_model *m, struct sh_err *e)
{
    return spread(l, m, SH_QUERY_LOG, &l->query_log, e) || spread(l, m, SH_QUERY_KEPT, &l->query_kept, e) ? -1 : 0;
}

void sh_head_temper_run(const struct sh_layer *l, struct sh_activations *a, struct sh_mat q, int n_seq,
                        const int *start, const struct sh_own_attention *own)
{
    struct sh_mat logged = sh_dense(a->logged, SH_F32, q.rows, q.cols);
    struct sh_scatter add = {.out = q, .x = logged, .by = 1};
    if (!l->query_log)
        return;
    l->b->cast(l->d, logged, q);
    sh_activations_temper(a, logged, n_seq, start, own);
    sh_layer_scale(l, logged, l->query_log);
    sh_layer_scale(l, q, l->query_kept);
    l->b->scatter(l->d, &add);
}
