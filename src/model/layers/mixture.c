/* SPDX-License-Identifier: Apache-2.0 */
/* A mixture of experts. The router's products are copied to the host, which chooses the experts. Then each chosen
 * expert, in the order of the file (experts.c), multiplies the gathered rows of its tokens, and its results are added
 * to these rows with their weights. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/model/layers/layer_parts.h"

/* ---- routing, one token on the host ---- */

/* The greatest of the scores, the first of equal ones; -1: all are -INFINITY or NaN. */
static int best_of(const float *score, int n)
{
    int at = -1;
    for (int i = 0; i < n; i++)
        if (score[i] > -INFINITY && (at < 0 || score[i] > score[at]))
            at = i;
    return at;
}

static void softmax(float *x, int n)
{
    float top = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++)
        top = fmaxf(top, x[i]);
    for (int i = 0; i < n; i++)
        sum += x[i] = expf(x[i] - top);
    for (int i = 0; i < n; i++)
        x[i] /= sum;
}

/* Scores outside the best groups become -INFINITY, or 0. */
static void keep_groups(const struct sh_mixture *m, float *score)
{
    int size = m->n / m->groups;
    float *rank = xmalloc((size_t)m->groups * sizeof *rank);
    unsigned char *kept = xcalloc((size_t)m->groups, 1);
    for (int g = 0; g < m->groups; g++) {
        float *own = score + g * size, best[2] = {-INFINITY, -INFINITY};
        for (int i = 0; i < size; i++) {
            best[1] = fmaxf(best[1], fminf(best[0], own[i]));
            best[0] = fmaxf(best[0], own[i]);
        }
        rank[g] = m->by_best_two && size > 1 ? best[0] + best[1] : best[0];
    }
    for (int i = 0; i < m->used_groups; i++) {
        int g = best_of(rank, m->groups);
        if (g < 0)
            break;
        kept[g] = 1;
        rank[g] = -INFINITY;
    }
    for (int i = 0; i < m->n; i++)
        score[i] = kept[i / size] ? score[i] : m->others_are_0 ? 0 : -INFINITY;
    free(rank);
    free(kept);
}

/* Sparsemixer: the best, and its share among those that are near; then the same without it. */
static void mix_sparsely(const struct sh_mixture *m, const float *logit, int *chosen, float *weight)
{
    float *left = xmalloc((size_t)m->n * sizeof *left);
    memcpy(left, logit, (size_t)m->n * sizeof *left);
    for (int k = 0; k < m->used; k++) {
        int at = best_of(left, m->n);
        chosen[k] = at < 0 ? k : at;
        float top = logit[chosen[k]], sum = 0;
        for (int i = 0; i < m->n; i++)
            if (left[i] > -INFINITY && !((top - logit[i]) / fmaxf(fabsf(logit[i]), top) > 2 * m->jitter))
                sum += expf(logit[i] - top);
        weight[k] = 1 / sum;
        left[chosen[k]] = -INFINITY;
    }
    free(left);
}

static float sigmoid(float x)
{
    return 1 / (1 + expf(-x));
}

/* The `used` experts of a token with these products, and their weights. score: [2, n] of scratch. */
static void route(const struct sh_mixture *m, int is_normed, const float *choice, const float *logit, float *score,
                  int *chosen, float *weight)
{
    int n = m->n + m->zero;
    float *rank = score + n, sum = 0;
    if (m->route == SH_ROUTE_SPARSEMIXER) {
        mix_sparsely(m, logit, chosen, weight);
        return;
    }
    for (int i = 0; i < n; i++)
        score[i] = m->route == SH_ROUTE_SIGMOID ? sigmoid(logit[i]) : logit[i];
    if (m->route == SH_ROUTE_SOFTMAX)
        softmax(score, n);
    for (int i = 0; i < n; i++)
        rank[i] = score[i] + (choice ? choice[i] : 0);
    if (m->used_groups)
        keep_groups(m, rank);
    for (int k = 0; k < m->used; k++) {
        int at = best_of(rank, n);
        chosen[k] = at < 0 ? k : at;
        weight[k] = score[chosen[k]];
        rank[chosen[k]] = -INFINITY;
    }
    if (m->route == SH_ROUTE_CHOSEN)
        softmax(weight, m->used);
    for (int k = 0; k < m->used && m->route == SH_ROUTE_CHOSEN_SIGMOID; k++)
        weight[k] = sigmoid(weight[k]);
    for (int k = 0; k < m->used; k++)
        sum += weight[k];
    for (int k = 0; k < m->used; k++)
        weight[k] *= m->scale / (is_normed ? sum + 1e-20f : 1);
}

void sh_mixture_choose(const struct sh_arch *c, const float *choice, const float *logits, int rows, int *chosen,
                       float *weight)
{
    const struct sh_mixture *m = &c->mix;
    size_t n = (size_t)(m->n + m->zero);
    float *score = xmalloc(2 * n * sizeof *score);
    for (int row = 0; row < rows; row++) {
        size_t at = (size_t)row * (size_t)m->used;
        route(m, (c->flags & SH_MIX_NORMED) != 0, choice, logits + (size_t)row * n, score, chosen + at,
              weight + at);
    }
    free(score);
}

/* ---- a layer's rows ---- */

struct routed {                         /* host; experts one after another, rows ascending        */
    int *first;                         /* [n + zero + 1]: of each expert's                       */
    int *row;                           /* [rows * used]                                          */
    float *share;
};

static struct routed route_rows(const struct sh_layer *l, const struct sh_arch *c, const float *logits, int rows)
{
    const struct sh_mixture *m = &c->mix;
    size_t all = (size_t)rows * (size_t)m->used;
    struct routed r = {xcalloc((size_t)(m->n + m->zero) + 2, sizeof *r.first), xmalloc(all * sizeof *r.row),
                       xmalloc(all * sizeof *r.share)};
    int *chosen = xmalloc(all * sizeof *chosen);
    float *weight = xmalloc(all * sizeof *weight);
    sh_mixture_choose(c, l->choice, logits, rows, chosen, weight);
    for (size_t i = 0; i < all; i++)
        r.first[chosen[i] + 2]++;
    for (int i = 2; i <= m->n + m->zero; i++)
        r.first[i + 1] += r.first[i];
    for (size_t i = 0; i < all; i++) {
        int to = r.first[chosen[i] + 1]++;
        r.row[to] = (int)(i / (size_t)m->used);
        r.share[to] = l->expert_scale ? weight[i] * l->expert_scale[chosen[i]] : weight[i];
    }
    free(chosen);
    free(weight);
    return r;
}

static void run_expert(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out, struct sh_mat x,
                       const struct sh_expert *w, int first, int n)
{
    const struct sh_mixture *m = &a->arch->mix;
    const int *row = (const int *)a->mix_row + first;
    const float *share = (const float *)a->mix_share + first;
    struct sh_mat own = sh_dense(a->mix_x, a->dtype, n, x.cols), up = sh_dense(a->up, a->dtype, n, m->width);
    struct sh_mat y = sh_dense(a->mix_out, SH_F32, n, x.cols);
    struct sh_gather gather = {.out = own, .x = x, .row = row, .share = m->weighs_input ? share : NULL};
    struct sh_linear down = {.out = y, .x = up, .w = w->down, .bias = w->down_bias};
    struct sh_scatter scatter = {.out = out, .x = y, .row = row, .share = m->weighs_input ? NULL : share, .by = 1};
    l->b->gather(l->d, &gather);
    sh_layer_feed(l, a, up, own, w, SH_LIMITS_EXPERTS);
    l->b->linear(l->d, &down);
    l->b->scatter(l->d, &scatter);
}

static int scales_shared(const struct sh_layer *l, const struct sh_activations *a)
{
    return l->matrix[SH_SHARED_SCALE_W] || a->arch->mix.shared_scale > 0;
}

/* out = or += the expert that every token uses, maybe by sigmoid(scale x) or by a number. */
static void run_shared(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out, struct sh_mat x,
                       int add)
{
    const struct sh_expert w = {.gate = l->matrix[SH_SHARED_GATE_W], .up = l->matrix[SH_SHARED_UP_W]};
    struct sh_mat up = sh_dense(a->up, a->dtype, x.rows, a->arch->mix.shared_width);
    struct sh_mat y = sh_dense(a->mix_out, SH_F32, x.rows, x.cols);
    struct sh_linear down = {.out = out, .x = up, .w = l->matrix[SH_SHARED_DOWN_W], .add = add};
    float by = a->arch->mix.shared_scale;
    sh_layer_feed(l, a, up, x, &w, SH_LIMITS_OTHERS);
    if (!scales_shared(l, a)) {
        l->b->linear(l->d, &down);
        return;
    }
    struct sh_linear scale = {.out = sh_dense(a->mix_share, SH_F32, x.rows, 1), .x = x, .act = SH_ACT_SIGMOID,
                              .w = l->matrix[SH_SHARED_SCALE_W]};
    struct sh_scatter scatter = {.out = out, .x = y, .by = by > 0 ? by : 1};
    down.out = y;
    down.add = 0;
    l->b->linear(l->d, &down);
    if (scale.w) {
        l->b->linear(l->d, &scale);
        scatter.share = a->mix_share;
    }
    l->b->scatter(l->d, &scatter);
}

/* Each expert that has rows. */
static void run_experts(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out, struct sh_mat x,
                        const int *first)
{
    const int *order = sh_experts_order(l);
    int *used = xmalloc((size_t)l->n_expert * sizeof *used), n = 0;
    for (int i = 0; i < l->n_expert; i++)
        if (first[order[i] + 1] > first[order[i]])
            used[n++] = order[i];
    for (int i = 0; i < n; i++) {
        const struct sh_expert *w = sh_experts_get(l, used[i], i + 1 < n ? used[i + 1] : -1);
        if (!w)
            break;
        run_expert(l, a, out, x, w, first[used[i]], first[used[i] + 1] - first[used[i]]);
        sh_experts_done(l, used[i]);
    }
    free(used);
}

/* out += x by the weights of those that give what they read. */
static void run_zero(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out, struct sh_mat x,
                     const struct routed *r)
{
    const struct sh_mixture *m = &a->arch->mix;
    float *share = xcalloc((size_t)x.rows, sizeof *share);
    struct sh_mat as_f32 = sh_dense(a->mix_out, SH_F32, x.rows, x.cols);
    struct sh_scatter scatter = {.out = out, .x = as_f32, .share = a->mix_share, .by = 1};
    for (int i = r->first[m->n]; i < r->first[m->n + m->zero]; i++)
        share[r->row[i]] += r->share[i];
    l->b->put(l->d, a->mix_share, share, (size_t)x.rows * sizeof *share);
    l->b->cast(l->d, as_f32, x);
    l->b->scatter(l->d, &scatter);
    free(share);
}

static void run_router(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat by)
{
    const struct sh_mixture *m = &a->arch->mix;
    struct sh_linear router = {.out = sh_dense(a->mix_logits, SH_F32, by.rows, m->n + m->zero), .x = by,
                               .w = l->matrix[SH_ROUTER_W], .bias = l->vector[SH_ROUTER_B]};
    l->b->linear(l->d, &router);
}

void sh_mixture_begin(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat x, struct sh_mat h)
{
    const struct sh_mixture *m = &a->arch->mix;
    if (l->n_expert && m->next_to == SH_NEXT_TO_ATTENTION)
        sh_layer_norm(l, a->arch, sh_dense(a->next_to_x, a->dtype, h.rows, h.cols), h, SH_EXPERT_NORM_W, SH_N_ROLE, 0);
    if (!m->early || !l->n_expert)
        return;
    l->b->cast(l->d, x, h);
    run_router(l, a, x);
}

/* The same for experts that read and give a latent. */
static void run_latent(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out, struct sh_mat x,
                       const int *first)
{
    int latent = a->arch->mix.latent;
    struct sh_mat in = sh_dense(a->latent_in, a->dtype, x.rows, latent);
    struct sh_mat sum = sh_dense(a->latent_out, SH_F32, x.rows, latent);
    struct sh_linear narrow = {.out = in, .x = x, .w = l->matrix[SH_EXPERT_IN_W]};
    struct sh_linear widen = {.out = out, .x = in, .w = l->matrix[SH_EXPERT_OUT_W], .add = 1};
    l->b->linear(l->d, &narrow);
    sh_layer_fill(l, sum, NULL);
    run_experts(l, a, sum, in, first);
    l->b->cast(l->d, in, sum);
    l->b->linear(l->d, &widen);
}

void sh_mixture_run(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat out, struct sh_mat x,
                    struct sh_mat by, int add)
{
    const struct sh_mixture *m = &a->arch->mix;
    size_t all = (size_t)x.rows * (size_t)m->used, n_logit = (size_t)x.rows * (size_t)(m->n + m->zero);
    float *logits = xcalloc(n_logit, sizeof *logits);
    if (!m->early)
        run_router(l, a, by);
    l->b->get(l->d, logits, a->mix_logits, n_logit * sizeof *logits);
    for (size_t i = 0; m->router_scale > 0 && i < n_logit; i++)
        logits[i] *= m->router_scale;
    struct routed r = route_rows(l, a->arch, logits, x.rows);
    int fills = m->shared_width && !scales_shared(l, a);        /* all of `out` */
    if (!add && !fills)
        sh_layer_fill(l, out, l->mixture_bias);
    if (m->shared_width)
        run_shared(l, a, out, x, add);
    if (m->zero)
        run_zero(l, a, out, x, &r);
    l->b->put(l->d, a->mix_row, r.row, all * sizeof *r.row);
    l->b->put(l->d, a->mix_share, r.share, all * sizeof *r.share);
    (m->latent ? run_latent : run_experts)(l, a, out, x, r.first);
    free(logits);
    free(r.first);
    free(r.row);
    free(r.share);
}

/* The part of a token's row where what experts gave waits for the next layer. */
void sh_mixture_late(const struct sh_layer *l, const struct sh_activations *a, struct sh_mat h, struct sh_mat x)
{
    const struct sh_arch *c = a->arch;
    struct sh_mat late = sh_layer_part(c, a->hidden, x.rows, sh_arch_late_at(c), c->d_model);
    struct sh_mat mixed = sh_dense(a->next_to, SH_F32, x.rows, x.cols);
    struct sh_scatter add = {.out = h, .x = late, .by = 1};
    if (l->n_expert) {
        sh_mixture_run(l, a, mixed, x, x, 0);
        l->b->cast(l->d, late, mixed);
    } else {
        l->b->scatter(l->d, &add);
    }
}
