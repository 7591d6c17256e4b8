/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/common/recorded.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/base/team.h"
#include "src/model/model.h"

int sh_runs_hint(struct sh_err *e, const char *how)
{
    return sh_hint(e, "trace %s, or select a run recorded that way with --run N", how);
}

int sh_runs_choose(struct sh_store *s, int run, struct sh_stored_run **out, int *n, struct sh_err *e)
{
    struct sh_stored_run *all;
    int count, kept = 0;
    if (sh_store_runs(s, &all, &count, e))
        return -1;
    for (int i = 0; i < count; i++)
        if (!run || all[i].id == run) {
            struct sh_stored_run swap = all[kept];
            all[kept++] = all[i];
            all[i] = swap;
        }
    int bad = 0;
    if (!kept)
        bad = run ? sh_misused(e, "%s: contains no run %d", sh_store_path(s), run)
                  : sh_fail(e, "%s: contains no runs, expected a trace", sh_store_path(s));
    for (int i = 1; i < kept && !bad; i++)
        if (strcmp(all[i].fingerprint, all[0].fingerprint) || strcmp(all[i].weights, all[0].weights) ||
            all[i].n_layer != all[0].n_layer || all[i].n_head != all[0].n_head)
            bad = (sh_misused(e, "%s: contains runs of several models (run %d: %s, %s; run %d: %s, %s)",
                              sh_store_path(s), all[0].id, all[0].model, all[0].weights, all[i].id, all[i].model,
                              all[i].weights),
                   sh_hint(e, "select one with --run N; shears info %s lists them", sh_store_path(s)));
    for (int i = 0; i < kept && !bad; i++)
        if (all[i].orderless)
            bad = (sh_misused(e, "%s: run %d (%s): attention is not causal", sh_store_path(s), all[i].id, all[i].model),
                   sh_hint(e, "every query sees all keys, so no cache grows; info, export, verify, report and plot "
                           "heatmap accept such runs"));
    if (bad) {
        sh_stored_runs_free(all, count);
        return -1;
    }
    for (int i = kept; i < count; i++) {        /* free the runs that were not chosen */
        struct sh_stored_run *one = xcalloc(1, sizeof *one);
        *one = all[i];
        sh_stored_runs_free(one, 1);
    }
    *out = all;
    *n = kept;
    return 0;
}

int sh_runs_fit(struct sh_store *s, const char *model, int *run, struct sh_err *e)
{
    struct sh_stored_run *all;
    char fingerprint[24];
    int n, fit = 0, found = 0, several = 0;
    if (*run)
        return 0;
    if (sh_store_runs(s, &all, &n, e))
        return -1;
    for (int i = 1; i < n; i++)
        several |= strcmp(all[i].fingerprint, all[0].fingerprint) || strcmp(all[i].weights, all[0].weights);
    struct sh_model *m = several ? sh_model_open(model, e) : NULL;
    if (m)
        snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, sh_model_fingerprint(m));
    for (int i = 0; i < n && m; i++)
        if (!strcmp(all[i].fingerprint, fingerprint) && !strcmp(all[i].weights, "checkpoint")) {
            found = all[i].id;
            fit++;
        }
    *run = fit == 1 ? found : 0;
    sh_model_close(m);
    sh_stored_runs_free(all, n);
    return several && !m ? -1 : 0;
}

int sh_runs_open(struct sh_runs *r, struct sh_store *s, int run, struct sh_err *e)
{
    *r = (struct sh_runs){0};
    if (sh_runs_choose(s, run, &r->run, &r->n, e))
        return -1;
    r->sequence = xcalloc((size_t)r->n, sizeof(struct sh_stored_sequence *));
    r->n_sequence = xcalloc((size_t)r->n, sizeof *r->n_sequence);
    for (int i = 0; i < r->n; i++)
        if (sh_store_sequences(s, r->run[i].id, &r->sequence[i], &r->n_sequence[i], e)) {
            sh_runs_close(r);
            return -1;
        }
    return 0;
}

void sh_runs_close(struct sh_runs *r)
{
    for (int i = 0; i < r->n; i++)
        sh_stored_sequences_free(r->sequence[i], r->n_sequence[i]);
    free(r->sequence);
    free(r->n_sequence);
    sh_stored_runs_free(r->run, r->n);
    *r = (struct sh_runs){0};
}

int sh_runs_agree(const struct sh_runs *r, struct sh_store *s, struct sh_err *e)
{
    const struct sh_stored_run *one = r->run;
    for (int i = 1; i < r->n; i++) {
        const struct sh_stored_run *other = &r->run[i];
        if (other->n_kv_head != one->n_kv_head)
            return sh_fail(e, "%s: run %d has %d KV heads, but run %d of the same model has %d", sh_store_path(s),
                           other->id, other->n_kv_head, one->id, one->n_kv_head);
        if (other->first_layer != one->first_layer || other->last_layer != one->last_layer)
            return sh_misused(e, "%s: run %d has layers %d-%d, but run %d has layers %d-%d", sh_store_path(s), one->id,
                              one->first_layer, one->last_layer, other->id, other->first_layer, other->last_layer),
                   sh_hint(e, "select one with --run N");
    }
    return 0;
}

/* Its KV heads in a sequence; 0: the layer does not attend; -2: it is not finished. */
static int heads_in(const struct sh_stored_run *r, const struct sh_stored_sequence *q, int layer, struct sh_store *s,
                    struct sh_err *e)
{
    struct sh_layer_heads n;
    int state = sh_store_layer(s, q->id, layer, e);
    return state == SH_LAYER_SILENT ? 0 : state == SH_LAYER_UNFINISHED ? -2
           : state < 0 || sh_store_heads(s, q->id, layer, r, &n, e) ? -1 : n.kv;
}

/* The same of all sequences; -2: it is not finished in any. */
static int heads_of_layer(const struct sh_runs *r, int layer, struct sh_store *s, struct sh_err *e)
{
    int n = -2, of = -1;
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < r->n_sequence[i]; k++) {
            int found = heads_in(&r->run[i], &r->sequence[i][k], layer, s, e);
            if (found == -1)
                return -1;
            if (found == -2 || found == n)
                continue;
            if (n != -2) {
                sh_fail(e, "%s: layer %d has %d KV heads in sequence %d, but %d in sequence %d", sh_store_path(s),
                        layer, n, of, found, r->sequence[i][k].id);
                return sh_hint(e, "trace again into a new store: an older version, or a recorder without "
                               "vectors, did not know it");
            }
            n = found;
            of = r->sequence[i][k].id;
        }
    return n;
}

int sh_runs_layer_heads(const struct sh_runs *r, struct sh_store *s, int *heads, struct sh_err *e)
{
    const struct sh_stored_run *one = r->run;
    for (int layer = one->first_layer; layer <= one->last_layer; layer++) {
        int n = heads_of_layer(r, layer, s, e);
        if (n == -1)
            return -1;
        heads[layer - one->first_layer] = n < 0 ? one->n_kv_head : n;
    }
    return 0;
}

/* ---- one layer of one sequence ---- */

static const char kinds[] = "qkv";

static int heads_of(const struct sh_recorded *r, int kind)
{
    return kind ? r->run->n_kv_head : r->n_head;
}

struct taking {
    struct sh_recorded *r;
    unsigned char *seen[3];             /* [heads]                                                */
};

static int take(void *to, const struct sh_block *b, struct sh_err *e)
{
    struct taking *t = to;
    const char *at = b->vector ? strchr(kinds, b->vector) : NULL;
    if (b->vector == 's')
        t->r->has_sinks = 1;
    if (b->vector == 's' || b->vector == 'h' || b->vector == 'a')
        return 0;
    if (!at)
        return sh_fail(e, "found vectors of kind %d, expected q, k or v", b->vector);
    int k = (int)(at - kinds), n_head = heads_of(t->r, k);
    size_t count = (size_t)t->r->sequence->n_tokens * (size_t)t->r->run->d_head;
    if (!t->r->vector[k])
        return 0;                       /* the run does not say so: not wanted */
    if (b->head < 0 || b->head >= n_head)
        return sh_fail(e, "found vectors of head %d, expected 0 to %d", b->head, n_head - 1);
    t->seen[k][b->head] = 1;
    return sh_codec_floats(b, t->r->vector[k] + (size_t)b->head * count, count, e);
}

static int read_vectors(struct sh_recorded *r, struct sh_err *e)
{
    struct taking t = {.r = r};
    for (int k = 0; k < 3; k++)
        if (strchr(r->run->vectors, kinds[k])) {
            size_t n = (size_t)heads_of(r, k);
            r->vector[k] = xcalloc(n * (size_t)r->sequence->n_tokens, (size_t)r->run->d_head * sizeof(float));
            t.seen[k] = xcalloc(n, 1);
        }
    int bad = sh_store_blocks(r->store, SH_BLOCK_VECTORS, r->sequence->id, r->layer, -1, take, &t, e);
    for (int k = 0; k < 3; k++) {
        for (int h = 0; r->vector[k] && h < heads_of(r, k) && !bad; h++)
            if (!t.seen[k][h])
                bad = sh_fail(e, "the %c vectors of head %d are missing", kinds[k], h);
        free(t.seen[k]);
    }
    return bad ? -1 : 0;
}

int sh_recorded_heads(struct sh_recorded *r, struct sh_err *e)
{
    struct sh_layer_heads n;
    if (sh_store_heads(r->store, r->sequence->id, r->layer, r->run, &n, e))
        return -1;
    r->n_head = n.query;
    r->n_kv_head = n.kv;
    return 0;
}

int sh_recorded_read(struct sh_recorded *r, int with_vectors, struct sh_err *e)
{
    if (sh_recorded_heads(r, e) ||
        sh_store_blocks(r->store, SH_BLOCK_SCORES, r->sequence->id, r->layer, -1, sh_store_keep, &r->scores, e))
        return -1;
    return with_vectors ? read_vectors(r, e) : 0;
}

int sh_recorded_end(struct sh_recorded *r, int bad, struct sh_err *e)
{
    sh_batch_clear(&r->scores);
    for (int k = 0; k < 3; k++) {
        free(r->vector[k]);
        r->vector[k] = NULL;
    }
    if (bad)
        return sh_err_prefix(e, "%s: sequence %d, layer %d", sh_store_path(r->store), r->sequence->id, r->layer);
    return sh_interrupted() ? sh_fail(e, "interrupted") : 0;
}

int sh_recorded_group(const struct sh_recorded *r)
{
    return r->n_head / r->n_kv_head;
}

const float *sh_recorded_vectors(const struct sh_recorded *r, char kind, int head)
{
    const float *at = r->vector[strchr(kinds, kind) - kinds];
    int own = r->n_kv_head, stored = r->run->n_kv_head;
    if (kind != 'q')                    /* a layer with fewer heads is stored with several copies of each */
        head = (head * stored + own - 1) / own;
    return at ? at + (size_t)head * (size_t)r->sequence->n_tokens * (size_t)r->run->d_head : NULL;
}

struct heads {
    int (*work)(void *to, int head, struct sh_err *e);
    void *to;
    pthread_mutex_t lock;               /* of what follows */
    int bad;
    struct sh_err *e;
};

static void one_head(void *arg, int head)
{
    struct heads *h = arg;
    struct sh_err mine;
    if (!h->work(h->to, head, &mine))
        return;
    pthread_mutex_lock(&h->lock);
    if (!h->bad)
        *h->e = mine;
    h->bad = -1;
    pthread_mutex_unlock(&h->lock);
}

int sh_each_head(int n, int threads, int (*work)(void *to, int head, struct sh_err *e), void *to, struct sh_err *e)
{
    struct heads h = {.work = work, .to = to, .lock = PTHREAD_MUTEX_INITIALIZER, .e = e};
    sh_team_each(threads, n, one_head, &h);
    return h.bad;
}

void sh_head_rows_begin(struct sh_head_rows *h, const struct sh_batch *blocks, int head)
{
    *h = (struct sh_head_rows){.blocks = blocks, .head = head, .i_block = -1};
}

void sh_head_rows_end(struct sh_head_rows *h)
{
    sh_codec_close(&h->reader);
    *h = (struct sh_head_rows){0};
}

static int next_block(struct sh_head_rows *h, int t, struct sh_err *e)
{
    const struct sh_block *b = NULL;
    while (!b && ++h->i_block < h->blocks->n_block)
        if (h->blocks->block[h->i_block].head == h->head)
            b = &h->blocks->block[h->i_block];
    if (!b || b->first_row != t)
        return sh_fail(e, "row %d is missing", t);
    sh_codec_close(&h->reader);
    return sh_codec_open(&h->reader, b, e) ? sh_err_prefix(e, "rows from %d on", t) : 0;
}

int sh_head_rows_next(struct sh_head_rows *h, int t, const float **score, int *first_key, struct sh_err *e)
{
    struct sh_row row;
    while (!h->reader.block || !sh_codec_next(&h->reader, &row))
        if (next_block(h, t, e))
            return -1;
    *first_key = row.first_key;
    *score = row.score;
    return 0;
}

void sh_group_rows_begin(struct sh_group_rows *g, const struct sh_recorded *r, int kv_head)
{
    g->n = sh_recorded_group(r);
    g->row = xcalloc((size_t)g->n, sizeof *g->row);
    g->head = xcalloc((size_t)g->n, sizeof *g->head);
    for (int i = 0; i < g->n; i++)
        sh_head_rows_begin(&g->head[i], &r->scores, kv_head * g->n + i);
}

void sh_group_rows_end(struct sh_group_rows *g)
{
    for (int i = 0; i < g->n; i++)
        sh_head_rows_end(&g->head[i]);
    free(g->row);
    free(g->head);
}

int sh_group_rows_next(struct sh_group_rows *g, int t, int *first_key, struct sh_err *e)
{
    for (int i = 0; i < g->n; i++) {
        int first;
        if (sh_head_rows_next(&g->head[i], t, &g->row[i], &first, e))
            return -1;
        if (i && first != *first_key)
            return sh_fail(e, "row %d begins at key %d in one head and at key %d in another", t, *first_key, first);
        *first_key = first;
    }
    return 0;
}
