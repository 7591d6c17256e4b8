/* SPDX-License-Identifier: Apache-2.0 */
/* See shard.h. */
#include "traces/shard.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/column.h"
#include "traces/db.h"

static const char noting[] = "noting what a shard holds", looking[] = "looking for what its shards held";

/* ---- what a store has ---- */

struct item { long long hash; int rows; };
struct content { struct item *at; size_t n; };

uint64_t sh_fnv(uint64_t h, const void *at, size_t bytes)
{
    for (const unsigned char *p = at; bytes--; p++)
        h = (h ^ *p) * 0x100000001b3u;
    return h;
}

static long long item_of(const char *kind, const char *name, const void *more, size_t bytes)
{
    uint64_t h = sh_fnv(SH_FNV_BASIS, kind, strlen(kind) + 1);
    return (long long)(sh_fnv(sh_fnv(h, name, strlen(name) + 1), more, bytes) >> 1);
}

static long long item_of_results(const char *command, const char *settings)
{
    return item_of("result", command, settings, strlen(settings));
}

static void put(struct content *c, long long hash, int rows)
{
    if ((c->n & (c->n - 1)) == 0)       /* double at each power of two */
        c->at = xreallocarray(c->at, c->n ? 2 * c->n : 1, sizeof *c->at);
    c->at[c->n++] = (struct item){hash, rows};
}

/* The finished layers of the run with that key; key NULL: of all runs. */
static int scan_layers(struct sh_store *s, const char *key, struct content *to, struct sh_err *e)
{
    sqlite3_stmt *q = sh_db_query(s, e,
        "SELECT key, b.sequence - (SELECT min(id) FROM sequence AS first WHERE first.run = run.id) AS sequence,"
        " b.layer, b.n FROM (SELECT sequence, layer, count(*) AS n FROM (SELECT sequence, layer FROM scores UNION ALL"
        " SELECT sequence, layer FROM vectors UNION ALL SELECT sequence, layer FROM head_stats)"
        " GROUP BY sequence, layer) AS b JOIN done ON done.sequence = b.sequence AND done.layer = b.layer"
        " JOIN sequence ON sequence.id = b.sequence JOIN run ON run.id = sequence.run WHERE ?1 IS NULL OR key = ?1",
        "t", key);
    struct sh_columns c = sh_columns_of(s, q, "done", looking, e);
    while (sh_columns_next(&c)) {
        const char *of = sh_column_text(&c, 0);
        const int at[2] = {sh_column_int(&c, 1, 0, SH_MOST_ID), sh_column_int(&c, 2, 0, SH_MOST_ID)};
        put(to, item_of("layer", of, at, sizeof at), sh_column_int(&c, 3, 1, INT_MAX));
    }
    return sh_columns_end(&c);
}

static int scan_results(struct sh_store *s, struct content *to, struct sh_err *e)
{
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT command, settings, count(*) AS n FROM result"
                                  " GROUP BY command, settings", "");
    struct sh_columns c = sh_columns_of(s, q, "result", looking, e);
    while (sh_columns_next(&c)) {
        const char *command = sh_column_text(&c, 0), *settings = sh_column_text(&c, 1);
        put(to, item_of_results(command, settings), sh_column_int(&c, 2, 1, INT_MAX));
    }
    return sh_columns_end(&c);
}

static int by_hash(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static void sort(struct content *c)
{
    if (c->n)
        qsort(c->at, c->n, sizeof *c->at, by_hash);
}

static int rows_of(const struct content *c, long long hash)
{
    const struct item wanted = {.hash = hash};
    const struct item *at = c->n ? bsearch(&wanted, c->at, c->n, sizeof *c->at, by_hash) : NULL;
    return at ? at->rows : 0;
}

/* ---- noting ---- */

static int forget(struct sh_store *s, const char *job, int part, struct sh_err *e)
{
    return sh_db_do(s, e, noting, "DELETE FROM held WHERE job = ? AND part = ?", "ti", job, part);
}

static int make_table(struct sh_store *s, struct sh_err *e)
{
    return sh_db_exec(s, "CREATE TABLE IF NOT EXISTS held (job TEXT NOT NULL, part INTEGER NOT NULL,"
                      " item INTEGER NOT NULL, n_rows INTEGER NOT NULL, PRIMARY KEY (job, part, item)) WITHOUT ROWID",
                      noting, e);
}

static int note(struct sh_store *s, const char *job, int part, long long item, int rows, struct sh_err *e)
{
    return sh_db_do(s, e, noting, "INSERT OR IGNORE INTO held (job, part, item, n_rows) VALUES (?,?,?,?)", "tili", job,
                    part, item, rows);
}

int sh_inventory_mark(struct sh_store *s, const struct sh_shard *h, const char *const *settings, int n, int is_made,
                      struct sh_err *e)
{
    struct content all = {0};
    if (sh_db_begin(s, noting, e))
        return -1;
    int bad = sh_shard_mark(s, h, e) || make_table(s, e);
    if (!bad && is_made)
        bad = (settings ? scan_results(s, &all, e) : scan_layers(s, h->job, &all, e)) || forget(s, h->job, h->part, e);
    sort(&all);
    for (size_t i = 0; !settings && i < all.n && !bad; i++)
        bad = note(s, h->job, h->part, all.at[i].hash, all.at[i].rows, e);
    for (int i = 0; i < n && !bad; i++) {
        long long item = item_of_results(h->command, settings[i]);
        bad = note(s, h->job, h->part, item, rows_of(&all, item), e);
    }
    free(all.at);
    return sh_db_end(s, bad, noting, e);
}

int sh_inventory_drop_begun(struct sh_store *s, const struct sh_shard *h, struct sh_err *e)
{
    int begun = sh_table_is_there(s, "held", looking, e);
    if (begun == 1)
        begun = sh_one_number(s, sh_db_query(s, e,
            "SELECT count(*) > 0 AND max(n_rows) = 0 FROM held WHERE job = ? AND part = ?", "ti", h->job, h->part),
            "held", 0, looking, e);
    if (begun < 1 || sh_db_begin(s, noting, e))
        return begun < 1 ? begun : -1;
    int bad = forget(s, h->job, h->part, e) ||
              sh_db_do(s, e, noting, "DELETE FROM shard WHERE job = ? AND part = ?", "ti", h->job, h->part);
    return sh_db_end(s, bad, noting, e) ? -1 : 1;
}

int sh_inventory_copy(struct sh_store *to, const struct sh_inventory *held, int n, struct sh_err *e)
{
    int bad = n && make_table(to, e);
    for (int i = 0; i < n && !bad; i++) {
        int is_next = !i || held[i].part != held[i - 1].part || strcmp(held[i].job, held[i - 1].job);
        bad = (is_next && forget(to, held[i].job, held[i].part, e)) ||
              note(to, held[i].job, held[i].part, held[i].item, held[i].rows, e);
    }
    return bad ? -1 : 0;
}

/* ---- reading ---- */

static int by_part(const char *job, int part, const char *other, int than)
{
    int jobs = strcmp(job, other);
    return jobs ? jobs : (part > than) - (part < than);
}

static void take(struct sh_columns *c, struct sh_inventory *to, const struct sh_inventory *before)
{
    *to = (struct sh_inventory){.part = sh_column_int(c, 1, 1, INT_MAX), .item = sh_column_long(c, 2),
                                .rows = sh_column_int(c, 3, 0, INT_MAX)};
    snprintf(to->job, sizeof to->job, "%s", sh_column_text(c, 0));
    int after = before ? by_part(to->job, to->part, before->job, before->part) : 1;
    if (!c->bad && (after < 0 || (!after && to->item <= before->item)))
        c->bad = sh_fail(c->e, "%s: damaged: table held: item %lld of part %d occurs twice", c->s->path, to->item,
                         to->part);
}

/* Does every row belong to a part that the store is marked as? */
static int match(const struct sh_store *s, const struct sh_shard *shard, int n_shard, const struct sh_inventory *held,
                 int n, struct sh_err *e)
{
    for (int i = 0, k = 0; i < n; i++) {
        while (k < n_shard && by_part(shard[k].job, shard[k].part, held[i].job, held[i].part) < 0)
            k++;
        if (k == n_shard || by_part(shard[k].job, shard[k].part, held[i].job, held[i].part))
            return sh_fail(e, "%s: damaged: it holds rows of part %d of job %s but is not marked as that part",
                           s->path, held[i].part, held[i].job);
    }
    return 0;
}

int sh_inventory_list(struct sh_store *s, const struct sh_shard *shard, int n_shard, struct sh_inventory **out, int *n,
                      struct sh_err *e)
{
    struct sh_inventory *list = NULL;
    size_t count = 0;
    int there = sh_table_is_there(s, "held", looking, e);
    *out = NULL;
    *n = 0;
    if (there < 1)
        return there;
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT job, part, item, n_rows FROM held ORDER BY job, part, item", "");
    struct sh_columns c = sh_columns_of(s, q, "held", looking, e);
    for (; count < INT_MAX && sh_columns_next(&c); count++) {
        if ((count & (count - 1)) == 0)
            list = xreallocarray(list, count ? 2 * count : 1, sizeof *list);
        take(&c, &list[count], count ? &list[count - 1] : NULL);
    }
    if (sh_columns_end(&c) || match(s, shard, n_shard, list, (int)count, e)) {
        free(list);
        return -1;
    }
    *out = list;
    *n = (int)count;
    return 0;
}

int sh_inventory_look(struct sh_store *s, struct sh_inventory *held, int n, struct sh_err *e)
{
    struct content all = {0};
    int bad = n && (scan_layers(s, NULL, &all, e) || scan_results(s, &all, e));
    sort(&all);
    for (int i = 0; i < n && !bad; i++)
        held[i].found = rows_of(&all, held[i].item);
    free(all.at);
    return bad ? -1 : 0;
}

/* ---- of several stores ---- */

struct claim { struct sh_inventory held; int file; };

struct sh_inventory_seen {
    struct claim *at;                   /* [n], by job and item                                   */
    size_t n;
    char **path;                        /* [n_path]                                               */
    int n_path;
};

struct sh_inventory_seen *sh_inventory_seen_new(void)
{
    return xcalloc(1, sizeof(struct sh_inventory_seen));
}

void sh_inventory_seen_free(struct sh_inventory_seen *seen)
{
    for (int i = 0; seen && i < seen->n_path; i++)
        free(seen->path[i]);
    if (seen) {
        free(seen->path);
        free(seen->at);
    }
    free(seen);
}

static int by_item(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    int jobs = strcmp(x->held.job, y->held.job);
    return jobs ? jobs : (x->held.item > y->held.item) - (x->held.item < y->held.item);
}

static int refuse(const struct sh_inventory_seen *seen, const struct claim *new, const struct claim *old,
                  struct sh_err *e)
{
    sh_fail(e, "%s: part %d of job %s has the same item as %s, part %d", seen->path[new->file], new->held.part,
            new->held.job, seen->path[old->file], old->held.part);
    return sh_hint(e, "one of the files is marked as the wrong part; nothing of this file was merged");
}

int sh_inventory_seen_add(struct sh_inventory_seen *seen, const char *path, const struct sh_inventory *held, int n,
                          struct sh_err *e)
{
    if (!n)
        return 0;
    seen->path = xreallocarray(seen->path, (size_t)seen->n_path + 1, sizeof *seen->path);
    seen->path[seen->n_path] = xstrdup(path);
    struct claim *new = xcalloc((size_t)n, sizeof *new), *all = xcalloc(seen->n + (size_t)n, sizeof *all);
    for (int i = 0; i < n; i++)
        new[i] = (struct claim){held[i], seen->n_path};
    seen->n_path++;
    qsort(new, (size_t)n, sizeof *new, by_item);
    size_t i = 0, k = 0, to = 0;
    int bad = 0;
    while ((i < seen->n || k < (size_t)n) && !bad) {
        int is_new = i == seen->n || (k < (size_t)n && by_item(&new[k], &seen->at[i]) < 0);
        const struct claim *c = is_new ? &new[k++] : &seen->at[i++];
        if (!to || by_item(&all[to - 1], c))
            all[to++] = *c;
        else if (all[to - 1].held.part != c->held.part)
            bad = all[to - 1].file < c->file ? refuse(seen, c, &all[to - 1], e) : refuse(seen, &all[to - 1], c, e);
    }
    free(new);
    free(seen->at);
    seen->at = all;
    seen->n = to;
    return bad;
}
