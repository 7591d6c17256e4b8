/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/drift/drift_store.h"

#include <stdlib.h>

#include "src/base/progress.h"
#include "src/base/mem.h"
#include "src/app/common/recorded.h"

struct sequence {                       /* being compared */
    const struct sh_drift_request *q;
    const struct sh_stored_run *run;
    const struct sh_stored_sequence *stored;
    int32_t *tokens;
    int *live;                          /* [n_layer of the model * n_kv_head, n_token]: see drift.h */
    int *replayed;                      /* [n_token]: of the head in hand */
    int step;                           /* rows t with t % step == step - 1 are compared as rows, too */
    float *row;                         /* [heads, n_token / step, n_token]: live ones, by position; 0: not kept */
    struct sh_score_change *change;
};

enum { ROWS_MOST = 64, ROWS_BYTES = 1 << 28 };

/* A compared row of a head. */
static float *row_of(const struct sequence *s, int layer, int head, int t)
{
    size_t n = (size_t)s->stored->n_tokens, rows = n / (size_t)s->step;
    return s->row + ((size_t)(layer * s->run->n_kv_head + head) * rows + (size_t)(t / s->step)) * n;
}

static int is_compared(const struct sequence *s, int t)
{
    return t % s->step == s->step - 1;
}

static void see_live(void *to, int sequence, int layer, int head, int t, const struct sh_cache *c, const float *row)
{
    const struct sequence *s = to;
    (void)sequence;
    if (is_compared(s, t)) {
        float *own = row_of(s, layer, head, t);
        for (int i = 0; i < c->n_slot; i++)
            if (c->pos[i] >= 0)
                own[c->pos[i]] = row[i];
    }
    sh_drift_see(s->live + (size_t)(layer * s->run->n_kv_head + head) * (size_t)s->stored->n_tokens, t, c);
}

static int run_live(struct sequence *s, struct sh_err *e)
{
    const struct sh_drift_request *q = s->q;
    int n = s->stored->n_tokens, bad = 0, block = q->live->resident->setup.rows;
    struct sh_live_cache cache = {.policy = q->spec, .budget = q->budget, .watched = 1};
    struct sh_live_shape shape;
    if (sh_live_shape(q->live, &cache, n, n, &shape, e))
        return -1;
    struct sh_session *session = sh_live_session(q->live, &cache, &shape, 1, e);
    if (!session)
        return -1;
    sh_session_set_watch(session, see_live, s);
    for (int t = 0, m; t < n && !bad; t += m) {
        m = n - t < block ? n - t : block;
        bad = sh_session_step(session, s->tokens + t, (int[]){0, m}, NULL, NULL, e);
        if (!bad && q->progress)
            q->progress(q->progress_to, m);
        if (!bad && sh_interrupted())
            bad = sh_fail(e, "interrupted");
    }
    sh_session_free(session);
    return bad;
}

/* ---- the replay of one layer ---- */

struct layer {
    struct sequence *s;
    struct sh_recorded r;
};

static void see_replayed(void *to, int cell, int t, const struct sh_cache *c)
{
    const struct sequence *s = to;
    (void)cell;
    sh_drift_see(s->replayed, t, c);
}

static struct sh_replay *begin_replay(const struct layer *l, int head, struct sh_replay_cell *cell)
{
    const struct sh_drift_request *q = l->s->q;
    const struct sh_stored_run *run = l->s->run;
    int n = l->s->stored->n_tokens, group = sh_recorded_group(&l->r);
    *cell = (struct sh_replay_cell){q->spec, sh_budget_tokens(q->budget, n)};
    struct sh_replay_setup setup = {
        .n_token = n, .window = l->r.scores.n_block ? l->r.scores.block[0].window : 0,
        .prefill = (int)q->live->options->prefill, .layer = l->r.layer, .head = head, .n_layer = run->n_layer,
        .group = group, .rows = q->rows, .q = sh_recorded_vectors(&l->r, 'q', head * group),
        .k = sh_recorded_vectors(&l->r, 'k', head), .v = sh_recorded_vectors(&l->r, 'v', head),
        .d_head = run->d_head, .seed = q->live->seed, .has_sinks = l->r.has_sinks};
    struct sh_replay *r = sh_replay_new(&setup, cell, 1);
    sh_replay_set_watch(r, see_replayed, l->s);
    return r;
}

/* Compares the recorded row of the group [t + 1 - first] with the live one, if that lacks a token. */
static void compare_row(const struct layer *l, int head, int t, int first, const struct sh_group_rows *rows)
{
    const struct sequence *s = l->s;
    const float *own = row_of(s, l->r.layer, head, t);
    int kept = 0;
    for (int j = 0; j <= t; j++)
        kept += own[j] > 0;
    if (kept == t + 1)
        return;
    for (int j = first; j <= t; j++) {
        double full = 0;
        for (int g = 0; g < rows->n; g++)
            full += (double)rows->row[g][j - first] / rows->n;
        sh_score_change_add(s->change, full, (double)own[j]);
    }
}

static int replay_head(const struct layer *l, int head, struct sh_err *e)
{
    int bad = 0, first = 0;
    struct sh_group_rows rows;
    struct sh_replay_cell cell;
    struct sh_replay *r = begin_replay(l, head, &cell);
    sh_group_rows_begin(&rows, &l->r, head);
    for (int t = 0; t < l->s->stored->n_tokens && !bad; t++) {
        bad = sh_group_rows_next(&rows, t, &first, e) || sh_replay_row(r, t, first, rows.row, e);
        if (!bad && is_compared(l->s, t))
            compare_row(l, head, t, first, &rows);
    }
    sh_group_rows_end(&rows);
    sh_replay_free(r);
    return bad ? sh_err_prefix(e, "KV head %d", head) : 0;
}

static void add_head(struct sh_drift_layer *d, const struct sh_drift_head *h, const double *like, int n)
{
    int first = h->first_left[0] < h->first_left[1] ? h->first_left[0] : h->first_left[1];
    for (int t = 0; t < n; t++) {
        d->at[t] += like[t];
        d->n_at[t]++;
        if (t >= first) {
            d->sum += like[t];
            d->steps++;
            d->least = like[t] < d->least ? like[t] : d->least;
        }
    }
    d->heads++;
    d->same_first += h->same_first;
    if (h->first_difference < n && (d->first_difference < 0 || h->first_difference < d->first_difference))
        d->first_difference = h->first_difference;
}

static int compare_layer(struct sequence *s, int layer, struct sh_drift_layer *d, struct sh_err *e)
{
    struct layer l = {s, {.store = s->q->store, .run = s->run, .sequence = s->stored, .layer = layer}};
    int n = s->stored->n_tokens, most = s->run->n_kv_head;      /* layers may have fewer */
    int done = sh_store_layer(s->q->store, s->stored->id, layer, e);
    if (done == SH_LAYER_SILENT)
        return 0;
    int bad = done < 0 || (done && sh_recorded_read(&l.r, 1, e));
    if (!done)
        bad = (sh_fail(e, "the recording is not finished"),
               sh_hint(e, "run the same trace command again to finish it"));
    int heads = sh_arch_kv_heads(s->q->live->resident->arch, layer);
    if (!bad && l.r.n_kv_head != heads)
        bad = (sh_fail(e, "found %d KV heads, expected the model's %d", l.r.n_kv_head, heads),
               sh_hint(e, "trace again into a new store: an older version, or a recorder without vectors, did not "
                       "know it"));
    double *like = xcalloc((size_t)n, sizeof *like);
    for (int h = 0; h < l.r.n_kv_head && !bad; h++) {
        const int *live = s->live + (size_t)(layer * most + h) * (size_t)n;
        if ((bad = replay_head(&l, h, e)))
            break;
        struct sh_drift_head head = sh_drift_compare(live, s->replayed, n, like);
        add_head(d, &head, like, n);
    }
    free(like);
    return sh_recorded_end(&l.r, bad, e);
}

static int compare_sequence(struct sequence *s, struct sh_drift *out, struct sh_err *e)
{
    int n = 0, bad = sh_store_tokens(s->q->store, s->stored->id, &s->tokens, &n, e);
    size_t heads = (size_t)(s->run->n_layer * s->run->n_kv_head);
    if (!bad && n != s->stored->n_tokens)
        bad = sh_fail(e, "%s: sequence %d: found %d tokens, expected %d", sh_store_path(s->q->store), s->stored->id, n,
                      s->stored->n_tokens);
    if (bad)
        return -1;
    s->live = xcalloc(heads * (size_t)n, sizeof *s->live);
    s->replayed = xcalloc((size_t)n, sizeof *s->replayed);
    size_t rows = ROWS_BYTES / sizeof *s->row / heads / (size_t)n;
    rows = rows > ROWS_MOST ? ROWS_MOST : rows ? rows : 1;
    s->step = (int)(((size_t)n + rows - 1) / rows);
    s->row = xcalloc(heads * (size_t)(n / s->step) * (size_t)n + 1, sizeof *s->row);
    s->change = &out->change;
    bad = run_live(s, e);
    for (int i = 0; i < out->n_layer && !bad; i++)
        bad = compare_layer(s, out->layer[i].layer, &out->layer[i], e);
    free(s->tokens);
    free(s->live);
    free(s->replayed);
    free(s->row);
    return bad;
}

int sh_drift_run(const struct sh_drift_request *q, struct sh_drift *out, struct sh_err *e)
{
    int bad = 0, first = q->run[0].first_layer, n_step = q->live->resident->setup.positions;
    *out = (struct sh_drift){.n_layer = q->run[0].last_layer - first + 1, .n_step = n_step};
    out->layer = xcalloc((size_t)out->n_layer, sizeof *out->layer);
    for (int i = 0; i < out->n_layer; i++)
        out->layer[i] = (struct sh_drift_layer){.layer = first + i, .least = 1, .first_difference = -1,
                                                .at = xcalloc((size_t)n_step, sizeof(double)),
                                                .n_at = xcalloc((size_t)n_step, sizeof(int))};
    for (int i = 0; i < q->n_run && !bad; i++) {
        struct sh_stored_sequence *stored;
        int n;
        if (sh_store_sequences(q->store, q->run[i].id, &stored, &n, e))
            return -1;
        for (int k = 0; k < n && !bad && (!q->most || out->n_sequence < q->most); k++) {
            struct sequence s = {.q = q, .run = &q->run[i], .stored = &stored[k]};
            bad = compare_sequence(&s, out, e);
            out->budget_tokens += sh_budget_tokens(q->budget, stored[k].n_tokens);
            out->n_sequence++;
        }
        sh_stored_sequences_free(stored, n);
    }
    out->budget_tokens /= out->n_sequence ? out->n_sequence : 1;
    return bad;
}

void sh_drift_free(struct sh_drift *d)
{
    for (int i = 0; i < d->n_layer; i++) {
        free(d->layer[i].at);
        free(d->layer[i].n_at);
    }
    free(d->layer);
    *d = (struct sh_drift){0};
}
