/* SPDX-License-Identifier: Apache-2.0 */
/* See key_profile.h. A layer of a sequence is read at a time; its KV heads are processed in parallel. */
#include "src/app/plan/key_profile.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/mem.h"
#include "src/app/common/head_rows.h"

struct layer {
    const struct sh_stored_run *run;
    struct sh_batch blocks;
    int n_token, window;
};

static int largest_first(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* What one query head's last rows give each key, added to got [n_token]. */
static int add_head(const struct layer *l, int head, double *got, struct sh_err *e)
{
    struct sh_head_rows rows = {0};
    int from = l->n_token - l->window, bad = 0;
    sh_head_rows_begin(&rows, &l->blocks, head);
    for (int t = 0; t < l->n_token && !bad; t++) {
        const float *row;
        int first;
        bad = sh_head_rows_next(&rows, t, &row, &first, e);
        for (int j = first; j < from && t >= from && !bad; j++)
            got[j] += (double)row[j - first];
    }
    sh_head_rows_end(&rows);
    return bad;
}

static int add_kv_head(const struct layer *l, int kv_head, double *profile, struct sh_err *e)
{
    int group = l->run->n_head / l->run->n_kv_head, bad = 0;
    double *got = xcalloc((size_t)l->n_token, sizeof *got);
    for (int i = 0; i < group && !bad; i++)
        bad = add_head(l, kv_head * group + i, got, e);
    qsort(got, (size_t)l->n_token, sizeof *got, largest_first);
    for (int j = 0; j < l->n_token && !bad; j++)
        profile[j] += got[j] / ((double)l->window * group);
    free(got);
    return bad ? sh_err_prefix(e, "KV head %d", kv_head) : 0;
}

/* profile [n_kv_head][n_key] of this layer. */
static int add_layer(const struct layer *l, double *profile, int n_key, int threads, struct sh_err *e)
{
    int bad = 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int h = 0; h < l->run->n_kv_head; h++) {
        struct sh_err mine;
        if (add_kv_head(l, h, profile + (size_t)h * (size_t)n_key, &mine)) {
#pragma omp critical
            if (!bad) {
                bad = -1;
                *e = mine;
            }
        }
    }
    return bad;
}

struct sum {
    double *profile;
    int *n;                             /* [n_layer]: sequences added */
    int n_key, threads, window;
};

static int add_sequence(struct sh_store *s, const struct sh_stored_run *run, const struct sh_stored_sequence *q,
                        struct sum *to, struct sh_err *e)
{
    int bad = 0, half = q->n_tokens > 1 ? q->n_tokens / 2 : 1, window = to->window < half ? to->window : half;
    for (int layer = run->first_layer; layer <= run->last_layer && !bad; layer++) {
        struct layer l = {.run = run, .n_token = q->n_tokens, .window = window};
        int done = sh_store_is_done(s, q->id, layer, e), at = layer - run->first_layer;
        if (done <= 0) {
            bad = done;
            continue;
        }
        bad = sh_store_blocks(s, SH_BLOCK_SCORES, q->id, layer, -1, sh_store_keep, &l.blocks, e) ||
              add_layer(&l, to->profile + (size_t)at * (size_t)run->n_kv_head * (size_t)to->n_key, to->n_key,
                        to->threads, e);
        to->n[at]++;
        sh_batch_clear(&l.blocks);
        if (bad)
            sh_err_prefix(e, "%s: sequence %d, layer %d", sh_store_path(s), q->id, layer);
        else if (sh_interrupted())
            bad = sh_fail(e, "interrupted");
    }
    return bad;
}

/* Each run's sequences in turn; NULL: only their longest is wanted. */
static int walk(struct sh_store *s, const struct sh_stored_run *runs, int n_run, struct sum *to, int *longest,
                struct sh_err *e)
{
    int bad = 0;
    for (int i = 0; i < n_run && !bad; i++) {
        struct sh_stored_sequence *q;
        int n;
        if (sh_store_sequences(s, runs[i].id, &q, &n, e))
            return -1;
        for (int k = 0; k < n && !bad; k++) {
            if (to)
                bad = add_sequence(s, &runs[i], &q[k], to, e);
            else if (q[k].n_tokens > *longest)
                *longest = q[k].n_tokens;
        }
        sh_stored_sequences_free(q, n);
    }
    return bad;
}

int sh_key_profile(struct sh_store *s, const struct sh_stored_run *runs, int n_run, int window, int threads,
                   double **profile, int *n_key, struct sh_err *e)
{
    int n_layer = runs[0].last_layer - runs[0].first_layer + 1, longest = 0;
    if (walk(s, runs, n_run, NULL, &longest, e))
        return -1;
    if (longest < 1)
        return sh_fail(e, "%s: contains no sequence with tokens", sh_store_path(s));
    size_t per_layer = (size_t)runs[0].n_kv_head * (size_t)longest;
    struct sum to = {.profile = xcalloc((size_t)n_layer * per_layer, sizeof(double)),
                     .n = xcalloc((size_t)n_layer, sizeof(int)), .n_key = longest, .threads = threads,
                     .window = window};
    int bad = walk(s, runs, n_run, &to, NULL, e);
    for (int l = 0; l < n_layer && !bad; l++) {
        if (!to.n[l])
            bad = sh_fail(e, "%s: layer %d is not finished in any sequence", sh_store_path(s),
                          runs[0].first_layer + l);
        for (size_t i = 0; i < per_layer && !bad; i++)
            to.profile[(size_t)l * per_layer + i] /= to.n[l];
    }
    free(to.n);
    if (bad) {
        free(to.profile);
        return -1;
    }
    *profile = to.profile;
    *n_key = longest;
    return 0;
}
