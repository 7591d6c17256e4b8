/* SPDX-License-Identifier: Apache-2.0 */
/* Attention whose queries come from experts (JetMoe, arXiv 2404.07413): a token's e-th expert, in the order of their
 * scores, makes the queries of the e-th set of heads and projects their output, multiplied by the expert's weight. All
 * sets share the same keys and values: each head has a copy of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/layers/layer_parts.h"

int sh_attention_experts_load(struct sh_layer *l, struct sh_model *m, struct sh_err *e)
{
    const struct sh_arch *c = sh_model_arch(m);
    static const enum sh_role role[] = {SH_Q_EXPERT_W, SH_O_EXPERT_W};
    if (!c->mix.attends)
        return 0;
    l->n_query_expert = c->mix.n;
    l->query_expert = xcalloc(2 * (size_t)c->mix.n, sizeof(struct sh_weight *));
    for (int i = 0, is_mapped; i < 2 * c->mix.n; i++) {
        if (sh_layer_numbered(l, role[i % 2], i / 2, 0, &l->query_expert[i], &is_mapped, e))
            return -1;
        if (!is_mapped)
            sh_model_drop_numbered(m, role[i % 2], l->index, i / 2);
    }
    return 0;
}

void sh_attention_experts_drop(struct sh_layer *l)
{
    for (int i = 0; i < 2 * l->n_query_expert; i++)
        l->b->drop(l->d, l->query_expert[i]);
    free(l->query_expert);
}

/* Columns of a set of heads. */
static struct sh_mat set_of(const struct sh_arch *c, struct sh_mat q, int set)
{
    int cols = q.cols / c->mix.used;
    q.at = (char *)q.at + (size_t)(set * cols) * sh_type_bytes(q.type);
    q.cols = cols;
    return q;
}

/* Rows by set and expert: those of group g = set * n + expert are [first[g], first[g + 1]) of row and share. */
static void group(const struct sh_activations *a, const int *chosen, const float *weight, int rows)
{
    const struct sh_mixture *m = &a->arch->mix;
    int *first = a->query_first, *row = xmalloc((size_t)rows * (size_t)m->used * sizeof *row), n = 0;
    float *share = xmalloc((size_t)rows * (size_t)m->used * sizeof *share);
    for (int g = 0; g < m->used * m->n; g++) {
        first[g] = n;
        for (int r = 0; r < rows; r++) {
            int at = r * m->used + g / m->n;
            if (chosen[at] == g % m->n) {
                row[n] = r;
                share[n++] = weight[at];
            }
        }
    }
    first[m->used * m->n] = n;
    a->backend->put(a->device, a->query_row, row, (size_t)n * sizeof *row);
    a->backend->put(a->device, a->query_share, share, (size_t)n * sizeof *share);
    free(row);
    free(share);
}

/* to += what the matrices [2 * expert + which] make of the rows of x that the groups name. */
static void run_groups(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat to, struct sh_mat from,
                       int which)
{
    const struct sh_arch *c = a->arch;
    for (int g = 0; g < c->mix.used * c->mix.n; g++) {
        int first = a->query_first[g], n = a->query_first[g + 1] - first, set = g / c->mix.n;
        struct sh_mat x = which ? set_of(c, from, set) : from, out = which ? to : set_of(c, to, set);
        struct sh_mat own = sh_dense(a->query_x, x.type, n, x.cols), y = sh_dense(a->query_y, SH_F32, n, out.cols);
        const int *row = (const int *)a->query_row + first;
        struct sh_gather gather = {.out = own, .x = x, .row = row};
        struct sh_linear product = {.out = y, .x = own, .w = l->query_expert[2 * (g % c->mix.n) + which]};
        struct sh_scatter scatter = {.out = out, .x = y, .row = row, .by = 1,
                                     .share = which ? (const float *)a->query_share + first : NULL};
        if (!n)
            continue;
        l->b->gather(l->d, &gather);
        l->b->linear(l->d, &product);
        l->b->scatter(l->d, &scatter);
    }
}

/* Keys or values for every set. */
static void copy_sets(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat all, struct sh_mat x,
                      enum sh_role role)
{
    const struct sh_arch *c = a->arch;
    struct sh_mat one = set_of(c, all, 0);
    struct sh_linear product = {.out = one, .x = x, .w = l->matrix[role]};
    l->b->linear(l->d, &product);
    for (int set = 1; set < c->mix.used; set++)
        l->b->cast(l->d, set_of(c, all, set), one);
}

void sh_attention_experts_project(const struct sh_layer *l, const struct sh_activations *a,
                                  const struct sh_attend *attend, struct sh_mat x)
{
    const struct sh_mixture *m = &a->arch->mix;
    size_t n = (size_t)x.rows * (size_t)m->n, all = (size_t)x.rows * (size_t)m->used;
    struct sh_linear router = {.out = sh_dense(a->mix_logits, SH_F32, x.rows, m->n), .x = x,
                               .w = l->matrix[SH_ATTN_ROUTER_W]};
    float *logits = xmalloc(n * sizeof *logits), *weight = xmalloc(all * sizeof *weight);
    int *chosen = xmalloc(all * sizeof *chosen);
    l->b->linear(l->d, &router);
    l->b->get(l->d, logits, a->mix_logits, n * sizeof *logits);
    sh_mixture_choose(a->arch, NULL, logits, x.rows, chosen, weight);
    group(a, chosen, weight, x.rows);
    sh_layer_fill(l, attend->q, NULL);
    run_groups(l, a, attend->q, x, 0);
    copy_sets(l, a, attend->k, x, SH_K_W);
    copy_sets(l, a, attend->v, x, SH_V_W);
    free(logits);
    free(weight);
    free(chosen);
}

void sh_attention_experts_finish(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out,
                                 struct sh_mat mixed)
{
    sh_layer_fill(l, out, l->attention_bias);
    run_groups(l, a, out, mixed, 1);
}
