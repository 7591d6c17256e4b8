/* SPDX-License-Identifier: Apache-2.0 */
/* See merge.h: which parts of which jobs a store has. */
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/column.h"
#include "traces/db.h"
#include "traces/merge.h"

enum { MOST_PARTS = 1000000 };

static const char doing[] = "looking for its shards";

int sh_shard_mark(struct sh_store *s, const struct sh_shard *h, struct sh_err *e)
{
    if (sh_db_exec(s, "CREATE TABLE IF NOT EXISTS shard (job TEXT NOT NULL, part INTEGER NOT NULL,"
                   " parts INTEGER NOT NULL, command TEXT NOT NULL, program TEXT NOT NULL, model TEXT NOT NULL,"
                   " PRIMARY KEY (job, part)) WITHOUT ROWID", "noting a shard", e))
        return -1;
    return sh_db_once(s, sh_db_query(s, e, "INSERT OR IGNORE INTO shard (job, part, parts, command, program, model)"
                                     " VALUES (?,?,?,?,?,?)", "tiittt", h->job, h->part, h->parts, h->command,
                                     h->program, h->model), "noting a shard", e);
}

static void take(char *to, size_t size, struct sh_columns *c, int column)
{
    snprintf(to, size, "%s", sh_column_text(c, column));
}

static int comes_after(const struct sh_shard *h, const struct sh_shard *before)
{
    int jobs = strcmp(h->job, before->job);
    return jobs > 0 || (!jobs && h->part > before->part && h->parts == before->parts);
}

int sh_shard_list(struct sh_store *s, struct sh_shard **out, int *n, struct sh_err *e)
{
    struct sh_shard *list = NULL;
    int count = 0, got;
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'shard'", "");
    got = q ? sh_db_step(s, q, doing, e) : -1;
    sqlite3_finalize(q);
    q = got == 1 ? sh_db_query(s, e, "SELECT job, part, parts, command, program, model FROM shard ORDER BY job, part",
                               "") : NULL;
    got = got == 1 && !q ? -1 : got;
    while (q && (got = sh_db_step(s, q, doing, e)) == 1) {
        struct sh_columns c = sh_columns_of(s, q, "shard", e);
        list = xreallocarray(list, (size_t)count + 1, sizeof *list);
        struct sh_shard *h = &list[count++];
        *h = (struct sh_shard){.part = sh_column_int(&c, 1, 1, MOST_PARTS),
                               .parts = sh_column_int(&c, 2, 1, MOST_PARTS)};
        take(h->job, sizeof h->job, &c, 0);
        take(h->command, sizeof h->command, &c, 3);
        take(h->program, sizeof h->program, &c, 4);
        take(h->model, sizeof h->model, &c, 5);
        int bad = c.bad;
        if (!bad && (h->part > h->parts || (count > 1 && !comes_after(h, h - 1))))
            bad = sh_fail(e, "%s: is damaged: shard %d of %d", s->path, h->part, h->parts);
        if (bad) {
            got = -1;
            break;
        }
    }
    sqlite3_finalize(q);
    *out = list;
    *n = count;
    return got < 0 ? -1 : 0;
}
