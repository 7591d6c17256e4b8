/* SPDX-License-Identifier: Apache-2.0 */
/* shears merge: merges the shards of a job into one store. */
#include <stdlib.h>

#include "src/base/progress.h"
#include "src/cli/commands.h"
#include "src/cli/paths.h"
#include "traces/merge.h"

struct merge_args {
    const char *db;
};

static const struct sh_opt opts[] = {
    SH_TEXT("db", offsetof(struct merge_args, db), "OUT", "store to create or append to"), {0}};

static int report(const struct sh_merge *m, const char *out, int n_in, const struct sh_common *common, struct sh_err *e)
{
    const struct sh_merge_counts *c = sh_merge_counts(m);
    struct sh_out *o = sh_out_new();
    sh_out_text(o, "db", "store", out);
    sh_out_int(o, "files", "files", n_in);
    sh_out_int(o, "layers", "layers of sequences, new", c->layers);
    sh_out_int(o, "layers_same", "  already there", c->layers_same);
    sh_out_int(o, "results", "sets of results, new", c->results);
    sh_out_int(o, "results_same", "  already there", c->results_same);
    sh_out_int(o, "plans", "plans, new", c->plans);
    return sh_common_write(common, o, 0, e);
}

static int add(struct sh_merge *m, const char *path, const char *out, struct sh_err *e)
{
    int bad = sh_merge_add(m, path, e);
    if (bad && sh_merge_counts(m)->differs && !e->hint[0])
        sh_hint(e, "merge replaces nothing: merge these files into another store; to replace results in %.200s, run "
                "their command with --force and without --shard", out);
    return bad;
}

/* Checks all files before the first byte is written. */
static int merge(struct sh_store *s, const struct sh_list *in, const struct sh_common *common, struct sh_err *e)
{
    struct sh_progress progress;
    struct sh_merge *m = sh_merge_begin(s, e);
    int bad = !m;
    for (int i = 0; i < in->n && !bad; i++)
        bad = sh_merge_look(m, in->at[i], e);
    sh_progress_begin(&progress, "merging", "files", in->n, common->quiet);
    for (int i = 0; i < in->n && !bad; i++) {
        bad = add(m, in->at[i], sh_store_path(s), e);
        sh_progress_at(&progress, i + 1, in->at[i]);
        if (!bad && i + 1 < in->n && sh_interrupted())
            bad = (sh_fail(e, "interrupted after %d of %d files", i + 1, in->n),
                   sh_hint(e, "run the same command again to resume"));
    }
    sh_progress_end(&progress);
    if (!bad)
        bad = report(m, sh_store_path(s), in->n, common, e);
    sh_merge_end(m);
    return bad;
}

/* A store without content or a record of a merged shard. */
static int is_empty(struct sh_store *s)
{
    struct sh_err ignored;
    struct sh_shard *shards = NULL;
    int n = 1;
    sh_shard_list(s, &shards, &n, &ignored);
    free(shards);
    return !n && sh_store_is_empty(s);
}

static int are_apart(const char *out, const struct sh_list *in, struct sh_err *e)
{
    for (int i = 0; i < in->n; i++)
        if (sh_output_differs("--db", out, in->at[i], e))
            return -1;
    return 0;
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    const struct merge_args *a = args;
    const struct sh_need needs[] = {{"--db OUT", a->db != NULL}, {"the files to merge", positional->n > 0}, {0}};
    if (sh_args_need("merge", needs, e) || are_apart(a->db, positional, e))
        return -1;
    struct sh_store *s = sh_store_create(a->db, e);
    if (!s)
        return -1;
    int bad = are_apart(a->db, positional, e) ||        /* again: a link may lead to the store that was just created */
              merge(s, positional, common, e);
    int drop = bad && sh_store_was_made(s) && is_empty(s);
    sh_store_close(s);
    if (drop)
        sh_store_remove(a->db);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_merge = {
    .name = "merge",
    .usage = "--db OUT IN...",
    .summary = "merge the shards of a job into one store",
    .about = "Merges the shards written by `--shard I/N` of trace, replay, eval and simulate. Every file is checked\n"
             "before anything is written. A file is refused, and named, if its model, settings, program version or\n"
             "number of shards differs from the others' or from what OUT has of that job, if part of it is missing,\n"
             "or if it holds results of another shard. Content that OUT already has must be identical and is left\n"
             "alone, so a file may be merged twice, and the same command resumes a merge that was killed. The input\n"
             "files are only read. `shears info OUT --hash` gives the hash of the unsplit job; `shears verify --db\n"
             "OUT` lists what is missing.\n"
             "\n"
             "  shears merge --db traces.db traces.db.shard-*-of-8",
    .opts = opts, .args_bytes = sizeof(struct merge_args), .run = run};
