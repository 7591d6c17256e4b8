/* SPDX-License-Identifier: Apache-2.0 */
/* See merge.h: do the files belong together? Model, settings and program are compared column by column, so that a
 * refusal can name the difference. */
#include "traces/merge.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/column.h"
#include "traces/db.h"

enum { FINGERPRINT = 2, N_COLUMN = 15 };

static const char columns[] =
    "SELECT name, weights, fingerprint, program, backend, dtype, weight_bits, record, codec, vectors, statistics,"
    " first_layer, last_layer, seed, key, run.id FROM run JOIN model ON model.id = run.model ORDER BY run.id";
static const char *const column_name[N_COLUMN] = {
    "model", "weights", "model's fingerprint", "program version", "backend", "dtype", "weight bits", "record", "codec",
    "vectors", "statistics", "first layer", "last layer", "seed", "texts (key)"};

static const char kinds[] = "ttttttittttiilt";

struct identity { char *at[N_COLUMN]; };

/* The job of one command whose shards are being merged: taken from the first shard, with the path of its file. */
struct first { struct sh_shard shard; char *of; };

struct sh_match {
    struct identity *run;               /* that may be merged                                          */
    int n;
    char *run_of;                       /* the file it came from                                  */
    struct first *first;                /* [n_first]: one per command                             */
    int n_first;
    struct sh_shard *there;             /* [n_there]: parts already in the merged store  */
    int n_there;
    const char *out;                    /* its path                                               */
};

static void forget(struct identity *run, int n)
{
    for (int i = 0; i < n; i++)
        for (int c = 0; c < N_COLUMN; c++)
            free(run[i].at[c]);
    free(run);
}

static int read_runs(struct sh_store *s, struct identity **out, int *n, struct sh_err *e)
{
    struct sh_columns c = sh_columns_of(s, sh_db_query(s, e, columns, ""), "run", "comparing runs", e);
    int id = 0;
    *out = NULL;
    *n = 0;
    while (sh_columns_next(&c)) {
        c.row = id = sh_column_int(&c, N_COLUMN, id + 1, SH_MOST_ID);
        if (sh_columns_are(&c, kinds))
            break;
        *out = xreallocarray(*out, (size_t)*n + 1, sizeof **out);
        for (int k = 0; k < N_COLUMN; k++)      /* numbers as text, to be compared and shown */
            (*out)[*n].at[k] = xstrdup((const char *)sqlite3_column_text(c.q, k));
        ++*n;
    }
    if (c.bad)
        forget(*out, *n);
    return sh_columns_end(&c);
}

static int differ_at(const struct identity *a, const struct identity *b)
{
    int c = 0;
    while (c < N_COLUMN && !strcmp(a->at[c], b->at[c]))
        c++;
    return c;
}

/* The file itself may be complete and sound. */
static int tell(struct sh_err *e)
{
    return sh_hint(e, "nothing was merged: leave out this file, or merge it with the shards of its own job into "
                   "another store");
}

/* An unexpected run: name a column in which it differs from the most similar expected run. */
static int refuse(const struct sh_match *m, const struct sh_store *in, const struct identity *r, struct sh_err *e)
{
    const struct identity *near = NULL;
    int most = -1;
    for (int i = 0; i < m->n; i++) {
        int at = differ_at(&m->run[i], r);
        near = at > most ? &m->run[i] : near;
        most = at > most ? at : most;
    }
    sh_fail(e, "%s: not a shard of the same run as %s: %s: found \"%.200s\", expected \"%.200s\"", in->path,
            m->run_of, column_name[most], r->at[most], near->at[most]);
    return tell(e);
}

static int match_runs(struct sh_match *m, struct sh_store *in, struct sh_err *e)
{
    struct identity *run;
    int n, bad = 0;
    if (read_runs(in, &run, &n, e))
        return -1;
    if (!m->n && n) {
        m->run = run;
        m->n = n;
        m->run_of = xstrdup(in->path);
        return 0;
    }
    for (int i = 0; i < n && !bad; i++) {
        int known = 0;
        for (int k = 0; k < m->n; k++)
            known |= differ_at(&m->run[k], &run[i]) == N_COLUMN;
        bad = known ? 0 : refuse(m, in, &run[i], e);
    }
    forget(run, n);
    return bad;
}

/* Results name neither program nor run; the mark of the shard does. */
static int same_job(const struct sh_store *in, const struct sh_shard *h, const char *of, const struct sh_shard *is,
                    struct sh_err *e)
{
    const struct { const char *what, *found, *expected; } pair[] = {
        {"model's fingerprint", h->model, is->model},
        {"program version", h->program, is->program},
        {"command", h->command, is->command},
        {"job (its settings and texts)", h->job, is->job}};
    size_t i = 0, n = sizeof pair / sizeof *pair;
    while (i < n && !strcmp(pair[i].found, pair[i].expected))
        i++;
    if (i == n && is->parts == h->parts)
        return 0;
    if (i < n)
        sh_fail(e, "%s: not a shard of the same job as %s: its %s is %s, expected %s", in->path, of, pair[i].what,
                pair[i].found, pair[i].expected);
    else
        sh_fail(e, "%s: not a shard of the same job as %s: it is one of %d parts, expected one of %d", in->path, of,
                h->parts, is->parts);
    return tell(e);
}

static int match_shard(struct sh_match *m, const struct sh_store *in, const struct sh_shard *h, struct sh_err *e)
{
    int known = m->n == 0 || !strncmp(h->model, SH_SHARD_SHAPE, strlen(SH_SHARD_SHAPE));
    for (int i = 0; i < m->n; i++)
        known |= !strcmp(m->run[i].at[FINGERPRINT], h->model);
    if (!known) {
        sh_fail(e, "%s: a different model from %s: fingerprint %s, expected %s", in->path, m->run_of, h->model,
                m->run[0].at[FINGERPRINT]);
        return tell(e);
    }
    for (int i = 0; i < m->n_there; i++) {      /* the merged store may also have parts of other jobs */
        if (strcmp(m->there[i].job, h->job))
            continue;
        if (same_job(in, h, m->out, &m->there[i], e))
            return -1;
        if (m->there[i].part == h->part)        /* merged before: its content is compared, and it adds no job */
            return 0;
    }
    for (int i = 0; i < m->n_first; i++)
        if (!strcmp(m->first[i].shard.command, h->command))
            return same_job(in, h, m->first[i].of, &m->first[i].shard, e);
    m->first = xreallocarray(m->first, (size_t)m->n_first + 1, sizeof *m->first);
    m->first[m->n_first++] = (struct first){*h, xstrdup(in->path)};
    return 0;
}

struct sh_match *sh_match_begin(struct sh_store *out, struct sh_err *e)
{
    struct sh_match *m = xcalloc(1, sizeof *m);
    m->out = sh_store_path(out);
    if (match_runs(m, out, e) || sh_shard_list(out, &m->there, &m->n_there, e)) {
        sh_match_end(m);
        return NULL;
    }
    return m;
}

void sh_match_end(struct sh_match *m)
{
    if (!m)
        return;
    forget(m->run, m->n);
    for (int i = 0; i < m->n_first; i++)
        free(m->first[i].of);
    free(m->first);
    free(m->run_of);
    free(m->there);
    free(m);
}

int sh_match_store(struct sh_match *m, struct sh_store *in, struct sh_err *e)
{
    struct sh_shard *list;
    int n;
    if (match_runs(m, in, e) || sh_shard_list(in, &list, &n, e))
        return -1;
    int bad = 0;
    for (int i = 0; i < n && !bad; i++)
        bad = match_shard(m, in, &list[i], e);
    free(list);
    return bad;
}
