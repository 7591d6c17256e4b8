/* SPDX-License-Identifier: Apache-2.0 */
/* The profile of keys (allot.h). One layer of a sequence is read at a time; its KV heads are processed in parallel. */
#include <stdlib.h>

#include "src/app/common/recorded.h"
#include "src/app/plan/allot.h"
#include "src/base/mem.h"

struct layer {
    struct sh_recorded r;
    int window;
    double *profile;                    /* [n_kv_head][n_key] */
    int n_key;
};

static int largest_first(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Adds what the last rows of a query head give each key to got [n_token]. */
static int add_head(const struct layer *l, int head, double *got, struct sh_err *e)
{
    struct sh_head_rows rows = {0};
    int n_token = l->r.sequence->n_tokens, from = n_token - l->window, bad = 0;
    sh_head_rows_begin(&rows, &l->r.scores, head);
    for (int t = 0; t < n_token && !bad; t++) {
        const float *row;
        int first;
        bad = sh_head_rows_next(&rows, t, &row, &first, e);
        for (int j = first; j < from && t >= from && !bad; j++)
            got[j] += (double)row[j - first];
    }
    sh_head_rows_end(&rows);
    return bad;
}

static int add_kv_head(void *to, int kv_head, struct sh_err *e)
{
    const struct layer *l = to;
    int group = sh_recorded_group(&l->r), n_token = l->r.sequence->n_tokens, bad = 0;
    double *got = xcalloc((size_t)n_token, sizeof *got), *profile = l->profile + (size_t)kv_head * (size_t)l->n_key;
    for (int i = 0; i < group && !bad; i++)
        bad = add_head(l, kv_head * group + i, got, e);
    qsort(got, (size_t)n_token, sizeof *got, largest_first);
    for (int j = 0; j < n_token && !bad; j++)
        profile[j] += got[j] / ((double)l->window * group);
    free(got);
    return bad ? sh_err_prefix(e, "KV head %d", kv_head) : 0;
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
        int done = sh_store_layer(s, q->id, layer, e), at = layer - run->first_layer;
        struct layer l = {.r = {.store = s, .run = run, .sequence = q, .layer = layer}, .window = window,
                          .profile = to->profile + (size_t)at * (size_t)run->n_kv_head * (size_t)to->n_key,
                          .n_key = to->n_key};
        if (done != SH_LAYER_DONE) {
            bad = done < 0 ? -1 : 0;
            continue;
        }
        bad = sh_recorded_read(&l.r, 0, e) || sh_each_head(l.r.n_kv_head, to->threads, add_kv_head, &l, e);
        to->n[at]++;
        bad = sh_recorded_end(&l.r, bad, e);
    }
    return bad;
}

int sh_key_profile(struct sh_store *s, const struct sh_runs *runs, int window, int threads, double **profile,
                   int *n_key, struct sh_err *e)
{
    const struct sh_stored_run *run = runs->run;
    int n_layer = run->last_layer - run->first_layer + 1, longest = 0, bad = 0;
    for (int i = 0; i < runs->n; i++)
        for (int k = 0; k < runs->n_sequence[i]; k++)
            longest = runs->sequence[i][k].n_tokens > longest ? runs->sequence[i][k].n_tokens : longest;
    if (longest < 1)
        return sh_fail(e, "%s: contains no sequence with tokens", sh_store_path(s));
    size_t per_layer = (size_t)run->n_kv_head * (size_t)longest;
    struct sum to = {.profile = xcalloc((size_t)n_layer * per_layer, sizeof(double)),
                     .n = xcalloc((size_t)n_layer, sizeof(int)), .n_key = longest, .threads = threads,
                     .window = window};
    for (int i = 0; i < runs->n && !bad; i++)
        for (int k = 0; k < runs->n_sequence[i] && !bad; k++)
            bad = add_sequence(s, &runs->run[i], &runs->sequence[i][k], &to, e);
    for (int l = 0; l < n_layer && !bad; l++) {
        if (!to.n[l])
            bad = sh_fail(e, "%s: layer %d is not finished in any sequence", sh_store_path(s), run->first_layer + l);
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
