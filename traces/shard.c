/* SPDX-License-Identifier: Apache-2.0 */
/* See merge.h: which parts of which jobs a store has. */
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/db.h"
#include "traces/merge.h"

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

static void take(char *to, size_t size, sqlite3_stmt *q, int column)
{
    const unsigned char *t = sqlite3_column_text(q, column);
    snprintf(to, size, "%s", t ? (const char *)t : "");
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
        list = xreallocarray(list, (size_t)count + 1, sizeof *list);
        struct sh_shard *h = &list[count++];
        *h = (struct sh_shard){.part = sqlite3_column_int(q, 1), .parts = sqlite3_column_int(q, 2)};
        take(h->job, sizeof h->job, q, 0);
        take(h->command, sizeof h->command, q, 3);
        take(h->program, sizeof h->program, q, 4);
        take(h->model, sizeof h->model, q, 5);
        int bad = h->part < 1 || h->part > h->parts || h->parts > 1000000;
        if (bad)
            sh_fail(e, "%s: is damaged: shard %d of %d", s->path, h->part, h->parts);
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
