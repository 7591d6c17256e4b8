/* SPDX-License-Identifier: Apache-2.0 */
/* See shard.h: which parts of which jobs a store has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/column.h"
#include "traces/db.h"
#include "traces/shard.h"

enum { MOST_PARTS = 1000000 };

static const char doing[] = "looking for its shards";

int sh_shard_mark(struct sh_store *s, const struct sh_shard *h, struct sh_err *e)
{
    if (sh_db_exec(s, "CREATE TABLE IF NOT EXISTS shard (job TEXT NOT NULL, part INTEGER NOT NULL,"
                   " parts INTEGER NOT NULL, command TEXT NOT NULL, program TEXT NOT NULL, model TEXT NOT NULL,"
                   " PRIMARY KEY (job, part)) WITHOUT ROWID", "noting a shard", e))
        return -1;
    return sh_db_do(s, e, "noting a shard", "INSERT OR IGNORE INTO shard (job, part, parts, command, program, model)"
                    " VALUES (?,?,?,?,?,?)", "tiittt", h->job, h->part, h->parts, h->command, h->program, h->model);
}

static int comes_after(const struct sh_shard *h, const struct sh_shard *before)
{
    int jobs = strcmp(h->job, before->job);
    return jobs > 0 || (!jobs && h->part > before->part && h->parts == before->parts);
}

int sh_shard_list(struct sh_store *s, struct sh_shard **out, int *n, struct sh_err *e)
{
    struct sh_shard *list = NULL;
    int count = 0, there = sh_table_is_there(s, "shard", doing, e);
    *out = NULL;
    *n = 0;
    if (there < 1)
        return there;
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT job, part, parts, command, program, model FROM shard"
                                  " ORDER BY job, part", "");
    struct sh_columns c = sh_columns_of(s, q, "shard", doing, e);
    while (sh_columns_next(&c)) {
        list = xreallocarray(list, (size_t)count + 1, sizeof *list);
        struct sh_shard *h = &list[count++];
        *h = (struct sh_shard){.part = sh_column_int(&c, 1, 1, MOST_PARTS),
                               .parts = sh_column_int(&c, 2, 1, MOST_PARTS)};
        snprintf(h->job, sizeof h->job, "%s", sh_column_text(&c, 0));
        snprintf(h->command, sizeof h->command, "%s", sh_column_text(&c, 3));
        snprintf(h->program, sizeof h->program, "%s", sh_column_text(&c, 4));
        snprintf(h->model, sizeof h->model, "%s", sh_column_text(&c, 5));
        if (!c.bad && (h->part > h->parts || (count > 1 && !comes_after(h, h - 1))))
            c.bad = sh_fail(e, "%s: damaged: found shard %d of %d", s->path, h->part, h->parts);
    }
    if (sh_columns_end(&c)) {
        free(list);
        return -1;
    }
    *out = list;
    *n = count;
    return 0;
}

/* ---- is it this job's? ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int take_line(struct sh_store *s, sqlite3_stmt *q, const char *table, char **line, struct sh_err *e)
{
    struct sh_columns c = sh_columns_of(s, q, table, doing, e);
    const char *text = sh_columns_next(&c) ? sh_column_text(&c, 0) : NULL;
    if (text && !c.bad) {
        free(*line);
        *line = xstrdup(text);
    }
    return sh_columns_end(&c);
}

/* The settings in the store that are not among settings [n]; *line stays NULL when there are none. */
static int find_foreign(struct sh_store *s, const char *command, const char *const *ours, int n, char **line,
                        struct sh_err *e)
{
    sqlite3_stmt *q = sh_db_query(s, e, "SELECT settings FROM result WHERE command = ? GROUP BY settings", "t",
                                  command);
    struct sh_columns c = sh_columns_of(s, q, "result", doing, e);
    while (!*line && sh_columns_next(&c)) {
        const char *settings = sh_column_text(&c, 0);
        if (!c.bad && !bsearch(&settings, ours, (size_t)n, sizeof *ours, by_name))
            *line = xstrdup(settings);
    }
    return sh_columns_end(&c);
}

/* What made the rows of another job: the command as typed, or its settings when the command is unknown. *line NULL:
 * no such rows. Caller frees. */
static int foreign_rows(struct sh_store *s, const struct sh_shard *h, const char *const *settings, int n, char **line,
                        struct sh_err *e)
{
    *line = NULL;
    if (!settings)
        return take_line(s, sh_db_query(s, e, "SELECT command FROM run WHERE key <> ? LIMIT 1", "t", h->job), "run",
                         line, e);
    const char **ours = xcalloc((size_t)n + 1, sizeof *ours);
    memcpy(ours, settings, (size_t)n * sizeof *ours);
    qsort(ours, (size_t)n, sizeof *ours, by_name);
    int bad = find_foreign(s, h->command, ours, n, line, e);
    free(ours);
    int typed = bad || !*line ? 0 : sh_table_is_there(s, "typed", doing, e);
    if (typed == 1)
        bad = take_line(s, sh_db_query(s, e, "SELECT line FROM typed WHERE command = ? AND settings = ?", "tt",
                                       h->command, *line), "typed", line, e);
    return bad || typed < 0 ? -1 : 0;
}

int sh_shard_check(struct sh_store *s, const struct sh_shard *shard, const char *const *settings, int n,
                   struct sh_err *e)
{
    struct sh_shard *list;
    char *line, *what = NULL;
    int n_list;
    if (sh_shard_list(s, &list, &n_list, e))
        return -1;
    int bad = foreign_rows(s, shard, settings, n, &line, e);
    if (!bad && line)
        what = xasprintf("results of another %s: %.600s", shard->command, line);
    for (int i = 0; i < n_list && !bad && !what; i++) {
        const struct sh_shard *h = &list[i];
        if (strcmp(h->command, shard->command))
            continue;
        int other = strcmp(h->job, shard->job), dropped = other ? sh_inventory_drop_begun(s, h, e) : 0;
        if (dropped)
            bad = dropped < 0;
        else if (other)
            what = xasprintf("part %d of %d of another %s, with other settings or texts", h->part, h->parts,
                             h->command);
        else if (strcmp(h->program, shard->program))
            what = xasprintf("results of version %s of this program", h->program);
    }
    if (what) {
        sh_fail(e, "%s: holds %s, expected only a part of this %s", s->path, what, shard->command);
        bad = sh_hint(e, "merge the shards of that job and remove them, then run the same command again; or give "
                      "another --db");
    }
    free(what);
    free(line);
    free(list);
    return bad ? -1 : 0;
}
