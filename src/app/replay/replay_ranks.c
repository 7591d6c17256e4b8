/* SPDX-License-Identifier: Apache-2.0 */
/* A replay by several ranks, which share the layers (replay_job.h). */
#include "src/app/replay/replay_job.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "traces/shard.h"

enum { UNITS_OF_A_RANK = 32 };          /* ranks wait for each other's last unit: about 1/64 of the work */

struct job {
    const struct sh_replay_share *a;
    struct sh_replay_request q;
    char name[SH_REPLAY_JOB];
    struct sh_replay_walk *walk;        /* NULL: nothing is to be replayed, or not asked yet          */
    int *first;                         /* [n_unit + 1]: layer of the walk that a unit begins with    */
    int n_unit;
};

/* As even as whole layers allow. */
static void cut(struct job *j)
{
    int n = sh_replay_walk_n(j->walk);
    double all = 0, unit = 0;
    for (int i = 0; i < n; i++)
        all += sh_replay_walk_scores(j->walk, i);
    j->first = xcalloc((size_t)n + 1, sizeof *j->first);
    for (int i = 0; i < n; i++) {
        if (i == 0 || unit >= all / (UNITS_OF_A_RANK * j->a->c->me.size)) {
            j->first[j->n_unit++] = i;
            unit = 0;
        }
        unit += sh_replay_walk_scores(j->walk, i);
    }
    j->first[j->n_unit] = n;
}

static int ask(struct job *j, struct sh_err *e)
{
    j->a->c->job = j->name;
    return j->a->ask(j->a->to, &j->q, j->name, e);
}

/* On rank 0 what an earlier job left goes into the store first, which may change what there is to do. */
static int open_job(struct job *j, struct sh_store *into, struct sh_err *e)
{
    if (j->walk)
        return 0;
    if (ask(j, e) || (into && (sh_job_gather(j->a->c, into, e) || ask(j, e))))
        return -1;
    if (!j->q.n_spec)
        return 0;
    j->walk = sh_replay_walk_open(&j->q, j->a->s, e);
    if (!j->walk)
        return -1;
    cut(j);
    return 0;
}

/* ---- sums as bytes: 64 bits each, little-endian like everything in stores ---- */

enum { NUMBERS = 2 * SH_N_REPLAY_FIGURE + 2, NUMBER = 8 };

static void pack(const struct sh_replay_sums *s, unsigned char *to)
{
    int64_t peak = s->peak_tokens, policy_bytes = (int64_t)s->policy_bytes;
    for (int f = 0; f < SH_N_REPLAY_FIGURE; f++) {
        int64_t rows = s->rows[f];
        memcpy(to + NUMBER * f, &s->sum[f], NUMBER);
        memcpy(to + NUMBER * (SH_N_REPLAY_FIGURE + f), &rows, NUMBER);
    }
    memcpy(to + NUMBER * (NUMBERS - 2), &peak, NUMBER);
    memcpy(to + NUMBER * (NUMBERS - 1), &policy_bytes, NUMBER);
}

static void unpack(const unsigned char *from, struct sh_replay_sums *s)
{
    int64_t peak, policy_bytes;
    for (int f = 0; f < SH_N_REPLAY_FIGURE; f++) {
        int64_t rows;
        memcpy(&s->sum[f], from + NUMBER * f, NUMBER);
        memcpy(&rows, from + NUMBER * (SH_N_REPLAY_FIGURE + f), NUMBER);
        s->rows[f] = rows;
    }
    memcpy(&peak, from + NUMBER * (NUMBERS - 2), NUMBER);
    memcpy(&policy_bytes, from + NUMBER * (NUMBERS - 1), NUMBER);
    s->peak_tokens = (int)peak;
    s->policy_bytes = (size_t)policy_bytes;
}

/* The sums of one layer, and the same as bytes. */
struct layer_sums {
    struct sh_replay_sums *sums;
    unsigned char *bytes;
    size_t n, n_bytes;
};

static void make_sums(struct layer_sums *l, const struct job *j)
{
    l->n = (size_t)sh_replay_walk_sums(j->walk);
    l->n_bytes = l->n * NUMBERS * NUMBER;
    l->sums = xcalloc(l->n + 1, sizeof *l->sums);
    l->bytes = xmalloc(l->n_bytes + 1);
}

static void free_sums(struct layer_sums *l)
{
    free(l->sums);
    free(l->bytes);
}

static double unit_scores(const struct job *j, int unit)
{
    double n = 0;
    for (int i = j->first[unit]; i < j->first[unit + 1]; i++)
        n += sh_replay_walk_scores(j->walk, i);
    return n;
}

static int run_layer(const struct job *j, int i, struct layer_sums *l, struct sh_store *own, struct sh_err *e)
{
    if (sh_replay_walk_layer(j->walk, i, l->sums, e))
        return -1;
    for (size_t k = 0; k < l->n; k++)
        pack(&l->sums[k], l->bytes + k * NUMBERS * NUMBER);
    return sh_partial_put(own, j->name, i, l->bytes, l->n_bytes, e);
}

static int run_unit(void *to, int unit, struct sh_err *e)
{
    struct job *j = to;
    struct sh_store *own = sh_job_own(j->a->c, e);
    struct sh_progress progress;
    if (!own || open_job(j, NULL, e))
        return -1;
    if (unit >= j->n_unit)
        return sh_fail(e, "%s: changed while the replay was starting", sh_store_path(j->a->s));
    if (sh_partial_begin(own, e))
        return -1;
    struct layer_sums l;
    double done = 0;
    int bad = 0;
    make_sums(&l, j);
    sh_progress_begin(&progress, "replaying", "scores", unit_scores(j, unit), 1);
    for (int i = j->first[unit]; i < j->first[unit + 1] && !bad; i++) {
        bad = run_layer(j, i, &l, own, e);
        done += sh_replay_walk_scores(j->walk, i);
        sh_progress_at(&progress, done, "");
    }
    sh_progress_end(&progress);
    free_sums(&l);
    return sh_partial_end(own, bad, e);
}

/* ---- the whole, on rank 0 ---- */

/* Keeps the last store open: neighbouring layers mostly are in the same one. */
struct reader { char *const *path; struct sh_store *s; int open; };

static int read_sums(struct reader *r, int store, const struct job *j, int i, struct layer_sums *l, struct sh_err *e)
{
    if (!store)
        return sh_fail(e, "%s: no rank stored the sums of layer %d of %d", j->a->c->db, i, sh_replay_walk_n(j->walk));
    if (r->open != store) {
        sh_store_close(r->s);
        r->s = sh_store_open_read_only(r->path[store - 1], e);
        r->open = r->s ? store : 0;
    }
    if (!r->s || sh_partial_get(r->s, j->name, i, l->bytes, l->n_bytes, e))
        return -1;
    for (size_t k = 0; k < l->n; k++)
        unpack(l->bytes + k * NUMBERS * NUMBER, &l->sums[k]);
    return 0;
}

static int join(void *to, char *const *path, int n, struct sh_err *e)
{
    struct job *j = to;
    if (!j->walk)
        return 0;
    int bad = 0, n_layer = sh_replay_walk_n(j->walk), *from = xcalloc((size_t)n_layer, sizeof *from);
    struct reader r = {.path = path};
    struct sh_replay_result all;
    struct layer_sums l;
    make_sums(&l, j);
    sh_replay_walk_begin(j->walk, &all);
    for (int k = 0; k < n && !bad; k++) {
        struct sh_store *s = sh_store_open_read_only(path[k], e);
        bad = !s || sh_partial_list(s, j->name, n_layer, from, k + 1, e) < 0;
        sh_store_close(s);
    }
    for (int i = 0; i < n_layer && !bad; i++) {
        bad = read_sums(&r, from[i], j, i, &l, e);
        if (!bad)
            sh_replay_walk_add(j->walk, i, l.sums, &all);
    }
    bad = bad || j->a->take(j->a->to, &all, e);
    sh_store_close(r.s);
    sh_replay_result_free(&all);
    free_sums(&l);
    free(from);
    return bad ? -1 : 0;
}

/* The sizes of units, and whether a job that was killed left their sums. */
static int find_done(const struct job *j, struct sh_work_unit *unit, struct sh_err *e)
{
    int n = j->walk ? sh_replay_walk_n(j->walk) : 0, *has = xcalloc((size_t)n + 1, sizeof *has);
    int bad = sh_job_parts(j->a->c, n, has, e);
    for (int u = 0; u < j->n_unit && !bad; u++) {
        unit[u] = (struct sh_work_unit){.size = unit_scores(j, u), .is_done = 1};
        for (int i = j->first[u]; i < j->first[u + 1]; i++)
            unit[u].is_done &= has[i] != 0;
    }
    free(has);
    return bad;
}

int sh_replay_share(const struct sh_replay_share *a, struct sh_store *into, struct sh_err *e)
{
    struct job j = {.a = a};
    struct sh_work_queue q = {.run = run_unit, .to = &j, .what = "replaying"};
    struct sh_work_unit *unit = NULL;
    int bad = 0;
    if (sh_job_is_first(a->c)) {
        bad = open_job(&j, into, e);
        unit = xcalloc((size_t)j.n_unit + 1, sizeof *unit);
        bad = bad || find_done(&j, unit, e);
        q.n = j.n_unit;
        q.unit = unit;
        a->c->join = join;
        a->c->join_to = &j;
    }
    bad = bad || sh_job_run(a->c, q, into, e);
    sh_replay_walk_close(j.walk);
    a->c->job = NULL;
    free(j.first);
    free(unit);
    return bad ? -1 : 0;
}
