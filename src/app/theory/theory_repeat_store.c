/* SPDX-License-Identifier: Apache-2.0 */
/* Theorem 3.1 on a trace (theory_store.h). */
#include "src/app/theory/theory_store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/progress.h"
#include "src/base/mem.h"
#include "src/app/common/recorded.h"
#include "src/model/model.h"

struct work {
    const struct sh_theory_request *q;
    struct sh_recorded r;
    const struct sh_repeat_weights *weights;        /* [n_head] */
    struct sh_repeat *each;                         /* [n_head] */
    struct sh_repeat *sum;                          /* of the layer */
};

static float number(const struct sh_tensor *t, size_t i)
{
    return t->type == SH_F32 ? ((const float *)t->at)[i]
           : t->type == SH_F16 ? sh_f16_to_f32(((const uint16_t *)t->at)[i])
                               : sh_bf16_to_f32(((const uint16_t *)t->at)[i]);
}

/* The block of a matrix that begins at this row and column, transposed: [cols, rows]. */
static float *transposed(const struct sh_tensor *t, int row, int rows, int col, int cols)
{
    float *w = xmalloc((size_t)rows * (size_t)cols * sizeof *w);
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            w[(size_t)c * (size_t)rows + (size_t)r] =
                number(t, (size_t)(row + r) * (size_t)t->cols + (size_t)(col + c));
    return w;
}

/* group: query heads that share a KV head */
static int head_weights(const struct sh_tensor t[4], const struct sh_arch *a, int group, int h,
                        struct sh_repeat_weights *out, struct sh_err *e)
{
    int d = a->d_head, kv = h / group;
    float *q = transposed(&t[0], h * d, d, 0, t[0].cols), *k = transposed(&t[1], kv * d, d, 0, t[1].cols),
          *v = transposed(&t[2], kv * d, d, 0, t[2].cols), *o = transposed(&t[3], 0, t[3].rows, h * d, d);
    int bad = sh_repeat_weights_set(out, q, k, v, o, a->d_model, d, e);
    free(q);
    free(k);
    free(v);
    free(o);
    return bad;
}

static int layer_weights(struct sh_model *m, int layer, struct sh_repeat_weights *w, struct sh_err *e)
{
    static const enum sh_role role[4] = {SH_Q_W, SH_K_W, SH_V_W, SH_O_W};
    struct sh_tensor t[4];
    const struct sh_arch *a = sh_model_arch(m);
    int bad = 0;
    for (int i = 0; i < 4 && !bad; i++)
        bad = sh_model_tensor(m, role[i], layer, &t[i], e);
    int n = sh_arch_query_heads(a, layer);
    for (int h = 0; h < n && !bad; h++)
        bad = head_weights(t, a, n / sh_arch_kv_heads(a, layer), h, &w[h], e);
    sh_model_drop(m, layer);
    return bad;
}

/* ---- one head of one sequence ---- */

static int packed_rows(const struct sh_batch *scores, int head, int n, float *out, struct sh_err *e)
{
    struct sh_head_rows rows;
    int bad = 0;
    sh_head_rows_begin(&rows, scores, head);
    for (int t = 0; t < n && !bad; t++) {
        const float *score;
        int first;
        bad = sh_head_rows_next(&rows, t, &score, &first, e);
        if (!bad && first)
            bad = sh_fail(e, "has a sliding window, but Theorem 3.1 requires attention to all keys");
        if (!bad)
            memcpy(out + (size_t)t * ((size_t)t + 1) / 2, score, ((size_t)t + 1) * sizeof *out);
    }
    sh_head_rows_end(&rows);
    return bad;
}

static void add(struct sh_repeat *to, const struct sh_repeat *r)
{
    double old = (double)to->positive, new = (double)r->positive;
    if (r->positive) {
        to->mean_eps = ((to->positive ? to->mean_eps * old : 0) + r->mean_eps * new) / (old + new);
        to->step = ((to->positive ? to->step * old : 0) + r->step * new) / (old + new);
    }
    to->least_eps = fmin(to->least_eps, r->least_eps);
    to->lemma = fmax(to->lemma, r->lemma);
    to->pairs += r->pairs;
    to->positive += r->positive;
    to->informative += r->informative;
    to->above_zero += r->above_zero;
    to->violations += r->violations;
}

static int check_head(void *to, int h, struct sh_err *e)
{
    const struct work *w = to;
    const struct sh_recorded *r = &w->r;
    size_t n = (size_t)r->sequence->n_tokens;
    int kv = h / sh_recorded_group(r);
    if (sh_interrupted())
        return 0;
    float *attention = xmalloc(n * (n + 1) / 2 * sizeof *attention);
    struct sh_repeat_head head = {.n = (int)n, .q = sh_recorded_vectors(r, 'q', h),
                                  .k = sh_recorded_vectors(r, 'k', kv), .v = sh_recorded_vectors(r, 'v', kv),
                                  .attention = attention};
    int bad = packed_rows(&r->scores, h, (int)n, attention, e) ||
              sh_repeat_check(&w->weights[h], &head, &w->each[h], e);
    free(attention);
    return bad ? sh_err_prefix(e, "head %d", h) : 0;
}

static int check_sequence(struct work *w, struct sh_err *e)
{
    int done = sh_store_layer(w->r.store, w->r.sequence->id, w->r.layer, e);
    if (done != SH_LAYER_DONE || w->r.sequence->n_tokens < 2)
        return done < 0 ? -1 : 0;
    w->each = xcalloc((size_t)w->r.run->n_head, sizeof *w->each);
    int bad = sh_recorded_read(&w->r, 1, e) || sh_each_head(w->r.n_head, w->q->threads, check_head, w, e);
    for (int h = 0; h < w->r.n_head && !bad; h++)
        add(w->sum, &w->each[h]);
    free(w->each);
    return sh_recorded_end(&w->r, bad, e);
}

static int check_fits(const struct sh_model *m, struct sh_store *s, const struct sh_stored_run *r, const char *model,
                      struct sh_err *e)
{
    const struct sh_arch *a = sh_model_arch(m);
    char fingerprint[24];
    snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)sh_model_fingerprint(m));
    if (strcmp(fingerprint, r->fingerprint) || a->n_layer != r->n_layer || a->n_head != r->n_head ||
        a->n_kv_head != r->n_kv_head || a->d_head != r->d_head)
        return sh_fail(e, "%s: run %d is of a different model from %s", sh_store_path(s), r->id, model);
    if (!strchr(r->vectors, 'q') || !strchr(r->vectors, 'k') || !strchr(r->vectors, 'v'))
        return sh_fail(e, "%s: run %d: Theorem 3.1 requires queries, keys and values", sh_store_path(s), r->id),
               sh_runs_hint(e, "with --vectors qkv");
    if (a->pos == SH_POS_ROTARY || a->flags & SH_HAS_QK_NORM)
        return sh_fail(e, "%s: Theorem 3.1 covers plain x W_Q and x W_K; this model rotates or normalises them", model);
    return 0;
}

static int run_layer(struct work *w, struct sh_model *m, const struct sh_runs *runs, struct sh_err *e)
{
    int n_head = runs->run[0].n_head;
    struct sh_repeat_weights *weights = xcalloc((size_t)n_head, sizeof *weights);
    int bad = layer_weights(m, w->r.layer, weights, e);
    w->weights = weights;
    *w->sum = (struct sh_repeat){.least_eps = NAN, .mean_eps = NAN, .step = NAN, .lemma = NAN};
    for (int r = 0; r < runs->n && !bad; r++) {
        bad = check_fits(m, w->r.store, &runs->run[r], sh_model_name(m), e);
        w->r.run = &runs->run[r];
        for (int i = 0; i < runs->n_sequence[r] && !bad; i++) {
            w->r.sequence = &runs->sequence[r][i];
            bad = check_sequence(w, e);
        }
    }
    for (int h = 0; h < n_head; h++)
        sh_repeat_weights_clear(&weights[h]);
    free(weights);
    return bad;
}

int sh_theory_repeat_run(const struct sh_theory_request *q, const struct sh_theory_result *r, const char *model,
                         struct sh_store *s, struct sh_repeat **layer, struct sh_err *e)
{
    struct sh_runs runs = {0};
    *layer = NULL;
    struct sh_model *m = sh_model_open(model, e);
    int bad = !m || sh_runs_open(&runs, s, q->run, e) || check_fits(m, s, &runs.run[0], model, e);
    struct sh_repeat *sum = xcalloc((size_t)r->n_layer, sizeof *sum);
    for (int l = 0; l < r->n_layer && !bad; l++) {
        struct work w = {.q = q, .r = {.store = s, .layer = r->first_layer + l}, .sum = &sum[l]};
        bad = run_layer(&w, m, &runs, e);
    }
    sh_runs_close(&runs);
    sh_model_close(m);
    if (bad)
        free(sum);
    else
        *layer = sum;
    return bad ? -1 : 0;
}
