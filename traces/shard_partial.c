/* SPDX-License-Identifier: Apache-2.0 */
/* See shard.h. */
#include "traces/shard.h"

#include <limits.h>
#include <string.h>

#include "traces/column.h"
#include "traces/db.h"

static const char doing[] = "keeping a part", looking[] = "looking for parts";

static long long check_sum(const char *job, int part, const void *at, size_t bytes)
{
    uint64_t h = sh_fnv(SH_FNV_BASIS ^ (uint64_t)part, job, strlen(job));
    return (long long)(sh_fnv(h, at, bytes) >> 1);
}

int sh_partial_begin(struct sh_store *s, struct sh_err *e)
{
    if (sh_db_begin(s, doing, e))
        return -1;
    int bad = sh_db_exec(s, "CREATE TABLE IF NOT EXISTS partial (job TEXT NOT NULL, part INTEGER NOT NULL,"
                         " sum INTEGER NOT NULL, blob BLOB NOT NULL, PRIMARY KEY (job, part))", doing, e);
    return bad ? sh_db_end(s, bad, doing, e) : 0;
}

int sh_partial_put(struct sh_store *s, const char *job, int part, const void *at, size_t bytes, struct sh_err *e)
{
    if (bytes > 1 << 30)
        return sh_fail(e, "%s: a part of %zu bytes is too large for this store", s->path, bytes);
    return sh_db_do(s, e, doing, "INSERT OR REPLACE INTO partial (job, part, sum, blob) VALUES (?,?,?,?)", "tilb", job,
                    part, check_sum(job, part, at, bytes), at, (int)bytes);
}

int sh_partial_end(struct sh_store *s, int bad, struct sh_err *e)
{
    return sh_db_end(s, bad, doing, e);
}

int sh_partial_list(struct sh_store *s, const char *job, int n, int *has, int mark, struct sh_err *e)
{
    int count = 0, there = sh_table_is_there(s, "partial", looking, e);
    if (there < 1)
        return there;
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT part FROM partial WHERE job = ?", "t", job);
    struct sh_columns c = sh_columns_of(s, q, "partial", looking, e);
    for (; sh_columns_next(&c); count++) {
        int part = sh_column_int(&c, 0, 0, INT_MAX);
        if (!c.bad && part < n)
            has[part] = mark;
    }
    return sh_columns_end(&c) ? -1 : count;
}

int sh_partial_get(struct sh_store *s, const char *job, int part, void *at, size_t bytes, struct sh_err *e)
{
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT sum, blob FROM partial WHERE job = ? AND part = ?", "ti", job, part);
    struct sh_columns c = sh_columns_of(s, q, "partial", looking, e);
    if (sh_columns_next(&c)) {
        size_t has;
        c.row = part;
        long long sum = sh_column_long(&c, 0);
        const void *blob = sh_column_blob(&c, 1, &has);
        if (!c.bad && has != bytes)
            c.bad = sh_fail(e, "%s: part %d: found %zu bytes, expected %zu", s->path, part, has, bytes);
        if (!c.bad && check_sum(job, part, blob, bytes) != sum)
            c.bad = sh_fail(e, "%s: damaged: part %d does not match its checksum", s->path, part);
        if (!c.bad)
            memcpy(at, blob, bytes);
    } else if (!c.bad) {
        c.bad = sh_fail(e, "%s: contains no part %d of this job", s->path, part);
    }
    return sh_columns_end(&c);
}
