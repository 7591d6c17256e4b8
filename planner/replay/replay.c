/* SPDX-License-Identifier: Apache-2.0 */
/* See replay.h. The row is laid out once, by position, and every cell gathers from it: only kept slots are touched. */
#include "planner/replay/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/policy/vectors.h"
#include "planner/replay/output_error.h"
#include "planner/replay/replay_row.h"
#include "src/base/mem.h"
#include "src/base/num.h"

struct query {                          /* the row of one query head */
    float *score;                       /* [1 + n_token], [0] = 0: by position + 1, keys not seen 0 */
    struct sh_row_shares of;
};

struct cell {
    struct sh_kept *kept;
    struct sh_replay_sums sums;
};

struct sh_replay {
    struct sh_replay_setup setup;
    struct cell *cell;
    int n_cell;
    struct query *query;                /* [group] */
    float *by_slot;                     /* [n_token]: the row that the policy sees */
    float *one;                         /* [n_token]: of one query head */
    float *future;                      /* [n_token] */
    double *left;                       /* [n_token]: of setup.received, what is still to come */
    struct sh_output_error *error;
    sh_replay_watch *watch;
    void *watch_to;
};

struct sh_replay *sh_replay_new(const struct sh_replay_setup *setup, const struct sh_replay_cell *cell, int n_cell)
{
    struct sh_replay *r = xcalloc(1, sizeof *r);
    size_t n = (size_t)setup->n_token;
    r->setup = *setup;
    r->n_cell = n_cell;
    r->cell = xcalloc((size_t)n_cell, sizeof *r->cell);
    r->query = xcalloc((size_t)setup->group, sizeof *r->query);
    for (int g = 0; g < setup->group; g++)
        r->query[g].score = xcalloc(n + 1, sizeof(float));
    r->by_slot = xcalloc(n, sizeof *r->by_slot);
    r->one = xcalloc(n, sizeof *r->one);
    for (int i = 0; i < n_cell; i++) {
        struct sh_kept_setup k = {.spec = cell[i].spec, .budget = cell[i].budget, .prefill = setup->prefill,
                                  .window = setup->window, .n_token = setup->n_token, .layer = setup->layer,
                                  .head = setup->head, .n_layer = setup->n_layer, .k = setup->k, .v = setup->v,
                                  .d_head = setup->d_head, .seed = setup->seed};
        if (!cell[i].spec)
            continue;
        r->cell[i].kept = sh_kept_new(&k);
        r->cell[i].sums.policy_bytes = sh_kept_policy_bytes(r->cell[i].kept);
    }
    if (setup->received) {
        r->left = xmalloc(n * sizeof *r->left);
        memcpy(r->left, setup->received, n * sizeof *r->left);
        r->future = xcalloc(n, sizeof *r->future);
    }
    if (setup->v && setup->error_rows)
        r->error = sh_output_error_new(setup->n_token, setup->group, setup->d_head, setup->v);
    return r;
}

void sh_replay_free(struct sh_replay *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->n_cell; i++)
        sh_kept_free(r->cell[i].kept);
    sh_output_error_free(r->error);
    for (int g = 0; g < r->setup.group; g++)
        free(r->query[g].score);
    free(r->query);
    free(r->cell);
    free(r->by_slot);
    free(r->one);
    free(r->future);
    free(r->left);
    free(r);
}

void sh_replay_set_watch(struct sh_replay *r, sh_replay_watch *fn, void *to)
{
    r->watch = fn;
    r->watch_to = to;
}

struct row {                            /* what all cells share of one */
    int t;
    float limit;                        /* 1/n, of the whole row */
    int with_error;
};

/* A figure is one value a row: the mean over the query heads that have it. */
struct means {
    double sum[SH_N_REPLAY_FIGURE];
    int n[SH_N_REPLAY_FIGURE];
};

static void count(struct means *m, enum sh_replay_figure f, double value)
{
    m->sum[f] += value;
    m->n[f]++;
}

static void measure(struct means *m, const struct query *q, int t, const struct sh_kept_row *k)
{
    double own = t >= SH_REPLAY_SINKS ? (double)q->score[t + 1] : 0;
    count(m, SH_KEPT_MASS, k->mass / q->of.mass);
    if (q->of.no_sink > 0)
        count(m, SH_KEPT_MASS_NO_SINK, (k->mass - k->sink_mass - own) / q->of.no_sink);
    if (q->of.above)
        count(m, SH_PIVOTAL_RECALL, (double)k->above / q->of.above);
}

/* The row as the policy sees it: every query head's over the kept tokens, then their mean. */
static void look(struct sh_replay *r, const struct row *row, const struct sh_cache *cache, struct means *m)
{
    int group = r->setup.group;
    for (int g = 0; g < group; g++) {
        struct sh_kept_row kept;
        float *to = g ? r->one : r->by_slot;
        sh_row_gather(r->query[g].score + 1, cache->pos, cache->n_slot, row->limit, SH_REPLAY_SINKS, to, &kept);
        measure(m, &r->query[g], row->t, &kept);
        double scale = r->setup.rows == SH_ROWS_RENORMALISED && kept.mass > 0 ? 1 / (kept.mass * group) : 1.0 / group;
        if (g)
            sh_add_scaled(r->by_slot, to, (float)scale, cache->n_slot);
        else if (scale != 1)
            sh_row_scale(to, (float)scale, cache->n_slot);
    }
}

/* How many of the kept tokens the query sees. */
static int seen(const struct sh_replay *r, const struct sh_cache *cache, int t)
{
    int first = r->setup.window > 0 ? t + 1 - r->setup.window : 0, n = 0;
    for (int i = 0; i < cache->n_slot && first > 0; i++)
        n += cache->pos[i] >= first;
    return first > 0 ? n : cache->n;
}

static void step(struct sh_replay *r, int i_cell, const struct row *row, const float *q)
{
    struct cell *c = &r->cell[i_cell];
    const struct sh_cache *cache = sh_kept_cache(c->kept);
    struct means m = {{0}, {0}};
    int before = cache->n, dropped = sh_kept_make_room(c->kept, row->t, r->future, NULL);
    sh_kept_admit(c->kept, row->t);
    look(r, row, cache, &m);
    if (row->t)
        count(&m, SH_STABILITY, (double)(before - dropped) / (before + 1));
    count(&m, SH_OCCUPANCY, cache->n);
    double error = row->with_error ? sh_output_error_of(r->error, cache->pos, cache->n_slot) : (double)NAN;
    if (!isnan(error))
        count(&m, SH_OUTPUT_ERROR, error);
    for (int f = 0; f < SH_N_REPLAY_FIGURE; f++)
        if (m.n[f]) {
            c->sums.sum[f] += m.n[f] > 1 ? m.sum[f] / m.n[f] : m.sum[f];
            c->sums.rows[f]++;
        }
    if (cache->n > c->sums.peak_tokens)
        c->sums.peak_tokens = cache->n;
    if (r->watch)
        r->watch(r->watch_to, i_cell, row->t, cache);
    struct sh_step s = {.t = row->t, .n_row = seen(r, cache, row->t), .row = r->by_slot, .q = q,
                        .n_query = r->setup.group};
    sh_kept_observe(c->kept, &s);
}

/* Lay a query head's row out by position. */
static int lay_out(struct query *q, int t, int first_key, float limit, int has_sinks, const float *score,
                   struct sh_err *e)
{
    int n = t + 1 - first_key;
    memcpy(q->score + 1 + first_key, score, (size_t)n * sizeof *score);
    if (first_key > 0)                  /* the window moves one key at a time */
        q->score[first_key] = 0;
    return sh_row_shares(score, t, first_key, limit, has_sinks, &q->of, e);
}

int sh_replay_row(struct sh_replay *r, int t, int first_key, const float *const *score, struct sh_err *e)
{
    struct row row = {.t = t, .limit = sh_round_down(1.0 / (t + 1 - first_key))};
    for (int g = 0; g < r->setup.group; g++)
        if (lay_out(&r->query[g], t, first_key, row.limit, r->setup.has_sinks, score[g], e))
            return -1;
    row.with_error = r->error && t % r->setup.error_rows == 0;
    if (row.with_error)
        sh_output_error_row(r->error, t, first_key, score);
    float queries[r->setup.q ? (size_t)r->setup.group * (size_t)r->setup.d_head : 1];
    const float *q = r->setup.q ? sh_replay_queries(&r->setup, t, queries) : NULL;
    for (int i = 0; i < r->n_cell; i++)
        if (r->cell[i].kept)
            step(r, i, &row, q);
    if (r->left)
        sh_replay_look_ahead(&r->setup, t, first_key, score, r->left, r->future);
    return 0;
}

const struct sh_replay_sums *sh_replay_sums(const struct sh_replay *r, int cell)
{
    return &r->cell[cell].sums;
}
