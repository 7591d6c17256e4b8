/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/replay/replay_job.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/app/store/measured.h"
#include "src/app/store/results.h"
#include "src/app/common/recorded.h"

int sh_replay_work_runs(struct sh_replay_job *w, struct sh_err *e)
{
    w->on = (struct sh_measured){0};
    return sh_runs_choose(w->store, w->q.run, &w->runs, &w->n_run, e) ||
           sh_measured_runs(&w->on, w->store, w->runs, w->n_run, e) ? -1 : 0;
}

void sh_replay_work_rows(struct sh_replay_job *w)
{
    char allocator[SH_ALLOT_TEXT];
    sh_allot_text(&w->allocator, allocator);
    w->n_row = w->q.n_spec * w->q.n_budget;
    w->row = xcalloc((size_t)w->n_row, sizeof *w->row);
    w->settings = xcalloc((size_t)w->n_row, sizeof *w->settings);
    for (int i = 0; i < w->n_row; i++) {
        for (int m = 0; m < SH_N_REPLAY_METRIC; m++)
            w->row[i].all[m] = (double)NAN;
        w->row[i].spec = &w->spec[i / w->q.n_budget];
        w->row[i].budget = &w->budget[i % w->q.n_budget];
        w->settings[i] = sh_replay_row_settings(&w->row[i], &w->q, allocator, w->runs, w->n_run);
    }
}

void sh_replay_work_clear(struct sh_replay_job *w)
{
    for (int i = 0; i < w->n_row; i++) {
        free(w->row[i].layer);
        free(w->settings[i]);
    }
    free(w->settings);
    free(w->row);
    sh_stored_runs_free(w->runs, w->n_run);
    w->settings = NULL;
    w->row = NULL;
    w->runs = NULL;
    w->n_row = 0;
}

/* Fill the rows of the policies that were replayed: policy i of q is policy of[i] of the request, its budgets are
 * those from `first` on. */
static void fill_rows(struct sh_replay_job *w, const struct sh_replay_request *q, const int *of, int first,
                      const struct sh_replay_result *r)
{
    for (int i = 0; i < q->n_spec * q->n_budget; i++) {
        struct sh_replay_row *row = &w->row[of[i / q->n_budget] * w->q.n_budget + first + i % q->n_budget];
        free(row->layer);
        sh_replay_row_fill(row, r, i, q->seed);
        row->all[SH_M_BUDGET_TOKENS] = r->budget_tokens[i % q->n_budget];
        row->is_known = 0;
    }
}

static int run_some(struct sh_replay_job *w, const struct sh_replay_request *q, const int *of, int first,
                    struct sh_err *e)
{
    struct sh_replay_result r = {0};
    int bad = sh_replay_run(q, w->store, &r, e);
    if (!bad)
        fill_rows(w, q, of, first, &r);
    sh_replay_result_free(&r);
    return bad;
}

/* One policy under budgets that an allocator divides: they depend on what the policy protects. */
static int run_shared_out(struct sh_replay_job *w, const struct sh_replay_request *one, int of, struct sh_err *e)
{
    struct sh_replay_request q = *one;
    struct sh_allot a = {0};
    int bad = sh_allot_open(&a, &w->allocator, one, w->store, e) || sh_allot_budgets(&a, &q, e) ||
              run_some(w, &q, &of, 0, e);
    sh_allot_close(&a);
    return bad;
}

static int is_uniform(const struct sh_replay_job *w)
{
    return !strcmp(w->allocator.allocator->name, "uniform");
}

/* Replay these policies (of[n]) under the budgets [first, first + n_budget). */
static int run_policies(struct sh_replay_job *w, const int *of, int n, int first, int n_budget, struct sh_err *e)
{
    struct sh_policy_spec spec[SH_REPLAY_POLICIES];
    struct sh_replay_request q = w->q;
    int bad = 0;
    for (int i = 0; i < n; i++)
        spec[i] = w->spec[of[i]];
    q.spec = spec;
    q.n_spec = n;
    q.budget = &w->budget[first];
    q.n_budget = n_budget;
    if (is_uniform(w))
        return n ? run_some(w, &q, of, first, e) : 0;
    q.n_spec = 1;
    for (int i = 0; i < n && !bad; i++) {
        q.spec = &spec[i];
        bad = run_shared_out(w, &q, of[i], e);
    }
    return bad;
}

/* ---- in shards: some policies under neighbouring budgets are a unit, so each shard reads the store once for each
 * of its pieces; with an allocator also by ranks, since what it shares out depends on the policy ---- */

struct cut { int groups, pieces, n; };  /* of the policies, of the budgets; units                 */

/* Two units for each of `parts`, if there are so many cells: every unit reads the store once, so more would cost
 * more than they balance. An allocator looks at all budgets. */
static struct cut cut(const struct sh_replay_job *w, int parts)
{
    int wanted = 2 * parts, groups = w->q.n_spec < wanted ? w->q.n_spec : wanted;
    int pieces = is_uniform(w) ? (wanted + w->q.n_spec - 1) / w->q.n_spec : 1;
    pieces = pieces < w->q.n_budget ? pieces : w->q.n_budget;
    return (struct cut){groups, pieces, pieces * groups};
}

/* Neighbours in the list cost alike: a group takes every so many-th policy. */
static int unit_of(const struct cut *c, int i_spec, int piece)
{
    return i_spec % c->groups * c->pieces + piece;
}

static int piece_first(const struct sh_replay_job *w, const struct cut *c, int piece)
{
    return piece * w->q.n_budget / c->pieces;
}

/* The policies of which a row is missing under the budgets of a piece: of[n]; unit -1: those of this shard. */
static int missing(const struct sh_replay_job *w, const struct cut *c, int unit, int piece, int *of)
{
    int n = 0;
    for (int i = 0; i < w->q.n_spec; i++) {
        int u = unit_of(c, i, piece), known = 1;
        for (int b = piece_first(w, c, piece); b < piece_first(w, c, piece + 1); b++)
            known &= w->row[i * w->q.n_budget + b].is_known;
        if ((unit < 0 ? sh_part_has(&w->shard, u) : u == unit) && !known)
            of[n++] = i;
    }
    return n;
}

static struct cut cut_alone(const struct sh_replay_job *w)
{
    return w->shard.parts ? cut(w, w->shard.parts) : (struct cut){w->q.n_spec, 1, w->q.n_spec};
}

int sh_replay_work_is_own(const struct sh_replay_job *w, int row)
{
    struct cut c = cut_alone(w);
    int piece = 0;
    while (piece_first(w, &c, piece + 1) <= row % w->q.n_budget)
        piece++;
    return sh_part_has(&w->shard, unit_of(&c, row / w->q.n_budget, piece));
}

/* Replay what is missing: one walk over the store for each piece. */
int sh_replay_work_alone(struct sh_replay_job *w, struct sh_err *e)
{
    struct cut c = cut_alone(w);
    int bad = 0;
    for (int piece = 0; piece < c.pieces && !bad; piece++) {
        int of[SH_REPLAY_POLICIES], n = missing(w, &c, -1, piece, of), first = piece_first(w, &c, piece);
        if (n)
            bad = run_policies(w, of, n, first, piece_first(w, &c, piece + 1) - first, e);
    }
    return bad;
}

int sh_replay_work_keep(const struct sh_replay_job *w, int from, int n, struct sh_store *s, struct sh_err *e)
{
    int bad = 0;
    if (sh_store_group_begin(s, e))
        return -1;
    for (int i = from; i < from + n && !bad; i++)
        if (!w->row[i].is_known && w->row[i].layer)
            bad = sh_replay_row_keep(&w->row[i], w->settings[i], &w->on, s, e);
    return sh_store_group_end(s, bad, e);
}

/* One unit of policies. */
static int run_unit(void *to, int unit, struct sh_err *e)
{
    struct sh_replay_job *w = to;
    struct cut c = cut(w, w->cluster.me.size);
    int piece = unit % c.pieces, first = piece_first(w, &c, piece), n_budget = piece_first(w, &c, piece + 1) - first;
    int of[SH_REPLAY_POLICIES], n = missing(w, &c, unit, piece, of), bad = 0;
    struct sh_store *own = sh_job_own(&w->cluster, e);
    if (!own || run_policies(w, of, n, first, n_budget, e))
        return -1;
    for (int i = 0; i < n && !bad; i++)
        bad = sh_replay_work_keep(w, of[i] * w->q.n_budget + first, n_budget, own, e);
    return bad ? -1 : 0;
}

static int share_policies(struct sh_replay_job *w, struct sh_store *into, struct sh_err *e)
{
    struct cut c = cut(w, w->cluster.me.size);
    struct sh_work_unit *unit = xcalloc((size_t)c.n, sizeof *unit);
    for (int u = 0; u < c.n; u++) {
        int of[SH_REPLAY_POLICIES], piece = u % c.pieces, n = missing(w, &c, u, piece, of);
        double work = 1;                        /* every unit reads the store; a larger cache costs more */
        for (int b = piece_first(w, &c, piece); b < piece_first(w, &c, piece + 1); b++)
            work += w->budget[b].tokens ? 1 : 0.5 + w->budget[b].share;
        unit[u] = (struct sh_work_unit){.size = n * work, .is_done = n == 0};
    }
    struct sh_work_queue q = {.n = c.n, .unit = unit, .run = run_unit, .to = w, .what = "replaying"};
    int bad = sh_job_run(&w->cluster, q, into, e);
    free(unit);
    return bad;
}

/* The policies that are to be replayed: place i of what ranks do is policy of[i] of the request. */
struct ranks {
    struct sh_replay_job *w;
    struct sh_store *into;
    struct sh_replay_request q;
    struct sh_policy_spec spec[SH_REPLAY_POLICIES];
    int of[SH_REPLAY_POLICIES];
};

static int ask(void *to, struct sh_replay_request *q, char *job, struct sh_err *e)
{
    struct ranks *r = to;
    struct sh_replay_job *w = r->w;
    uint64_t hash = SH_PART_HASH;
    sh_replay_work_clear(w);                    /* the store may have changed */
    if (sh_replay_work_runs(w, e))
        return -1;
    sh_replay_work_rows(w);
    if (!w->force && sh_replay_rows_find(w->row, w->settings, w->n_row, 0, w->store, e))
        return -1;
    sh_part_hash(&hash, PACKAGE_VERSION);       /* sums of two versions are not added up */
    struct cut all = {w->q.n_spec, 1, w->q.n_spec};
    r->q = w->q;
    r->q.spec = r->spec;
    r->q.n_spec = missing(w, &all, -1, 0, r->of);
    for (int i = 0; i < r->q.n_spec; i++) {
        r->spec[i] = w->spec[r->of[i]];
        for (int b = 0; b < w->q.n_budget; b++)
            sh_part_hash(&hash, w->settings[r->of[i] * w->q.n_budget + b]);
    }
    snprintf(job, SH_REPLAY_JOB, "%016" PRIx64, hash);
    *q = r->q;
    return 0;
}

static int take(void *to, const struct sh_replay_result *all, struct sh_err *e)
{
    struct ranks *r = to;
    fill_rows(r->w, &r->q, r->of, 0, all);
    return sh_replay_work_keep(r->w, 0, r->w->n_row, r->into, e);
}

static int share_layers(struct sh_replay_job *w, struct sh_store *into, struct sh_err *e)
{
    struct ranks *r = xcalloc(1, sizeof *r);
    struct sh_replay_share s = {.c = &w->cluster, .s = w->store, .ask = ask, .take = take, .to = r};
    r->w = w;
    r->into = into;
    int bad = sh_replay_share(&s, into, e);
    free(r);
    return bad;
}

/* Erases what the ranks will compute: merging their results replaces nothing. */
static int forget_unknown(const struct sh_replay_job *w, struct sh_store *into, struct sh_err *e)
{
    int bad = 0;
    if (sh_store_group_begin(into, e))
        return -1;
    for (int i = 0; i < w->n_row && !bad; i++)
        if (!w->row[i].is_known)
            bad = sh_store_results_erase(into, "replay", w->settings[i], e);
    return sh_store_group_end(into, bad, e);
}

int sh_replay_work_ranks(struct sh_replay_job *w, const char *path, struct sh_err *e)
{
    if (!sh_job_is_first(&w->cluster))
        return is_uniform(w) ? share_layers(w, NULL, e) : share_policies(w, NULL, e);
    struct sh_store *into = sh_store_typed(sh_store_update(path, e), w->cluster.common.line);
    int bad = !into || (w->force && forget_unknown(w, into, e));        /* so that they do not conflict */
    if (!bad && is_uniform(w))
        bad = share_layers(w, into, e);
    else if (!bad)
        bad = sh_job_gather(&w->cluster, into, e) ||
              (!w->force && sh_replay_rows_find(w->row, w->settings, w->n_row, 0, into, e)) ||
              forget_unknown(w, into, e) || share_policies(w, into, e) ||
              sh_replay_rows_find(w->row, w->settings, w->n_row, 1, into, e);
    sh_store_close(into);
    return bad ? -1 : 0;
}
