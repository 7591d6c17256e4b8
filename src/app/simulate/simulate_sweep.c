/* SPDX-License-Identifier: Apache-2.0 */
/* See simulate_run.h: which rows are run by whom. A row is a unit; with --max-rate, whose search serves all rows of a
 * cache, those are one unit together. */
#include <stdlib.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/app/simulate/simulate_run.h"

static int rows_of_unit(const struct sh_sim_study *s)
{
    return s->args->max_rate ? s->source.n : 1;
}

int sh_sim_is_own(const struct sh_sim_study *s, int i)
{
    return sh_part_has(&s->shard, i / rows_of_unit(s));
}

/* ---- by one process: all, or a shard ---- */

static int run_own(struct sh_sim_study *s, struct sh_store *store, struct sh_err *e)
{
    int per = rows_of_unit(s), bad = 0, kept = 0;
    s->all_runs = s->runs = 0;
    for (int u = 0; u * per < s->n_row; u++)
        s->all_runs += sh_part_has(&s->shard, u) ? sh_sim_runs(s, u * per, per) : 0;
    sh_progress_begin(&s->progress, "simulating", "percent", 100, s->common->quiet);
    for (int u = 0; u * per < s->n_row && !bad; u++) {
        if (!sh_part_has(&s->shard, u) || !(sh_sim_runs(s, u * per, per) > 0))
            continue;
        bad = sh_sim_run(s, u * per, per, e) || (store && sh_sim_keep(s, u * per, per, store, e));
        kept |= store && !bad;
    }
    sh_progress_end(&s->progress);
    if (bad && kept && !e->hint[0])
        sh_hint(e, "finished results are in %s; run the same command again to resume", s->args->db);
    return bad ? -1 : 0;
}

/* ---- by several ranks ---- */

static int run_unit(void *to, int unit, struct sh_err *e)
{
    struct sh_sim_study *s = to;
    struct sh_store *own = sh_job_own(&s->cluster, e);
    int per = rows_of_unit(s), first = unit * per;
    s->all_runs = sh_sim_runs(s, first, per);
    s->runs = 0;
    sh_progress_begin(&s->progress, "simulating", "percent", 100, 1);
    int bad = !own || sh_sim_run(s, first, per, e) || sh_sim_keep(s, first, per, own, e);
    sh_progress_end(&s->progress);
    return bad ? -1 : 0;
}

static int share(struct sh_sim_study *s, struct sh_store *store, struct sh_err *e)
{
    int per = rows_of_unit(s), units = s->n_row / per;
    struct sh_work_unit *unit = xcalloc((size_t)units, sizeof *unit);
    for (int u = 0; u < units; u++) {
        unit[u].size = sh_sim_runs(s, u * per, per);
        unit[u].is_done = !(unit[u].size > 0);
    }
    struct sh_work_queue q = {.n = units, .unit = unit, .run = run_unit, .to = s, .what = "simulating"};
    int bad = sh_job_run(&s->cluster, q, store, e);
    free(unit);
    return bad;
}

/* Rank 0 begins with the results of the store and of ranks that were killed, and joins those of all. With --force it
 * erases the store's before the ranks' stores are merged, so that different results do not conflict, and afterwards. */
static int work_shared(struct sh_sim_study *s, struct sh_store *store, struct sh_err *e)
{
    int force = s->args->force;
    if (!sh_job_is_first(&s->cluster))
        return share(s, NULL, e);
    return (force && sh_sim_forget(s, store, e)) || sh_job_gather(&s->cluster, store, e) ||
                   (!force && sh_sim_find(s, 0, store, e)) || sh_sim_forget(s, store, e) || share(s, store, e) ||
                   sh_sim_find(s, 1, store, e)
               ? -1 : 0;
}

int sh_sim_sweep(struct sh_sim_study *s, struct sh_store *store, struct sh_err *e)
{
    const struct sh_simulate_args *a = s->args;
    if (s->cluster.ranks)
        return work_shared(s, store, e);
    /* Logs and timelines are not in the store. */
    if (store && !a->force && !a->log && !a->timeline && !a->plot_occupancy && sh_sim_find(s, 0, store, e))
        return -1;
    struct sh_file *f = a->log ? sh_file_begin(a->log, e) : NULL;
    if (a->log && !f)
        return -1;
    s->log = f ? sh_file_stream(f) : NULL;
    if (f)
        fputs("plan,gpu,tp,kv,speed,request,arrival_s,prompt_tokens,output_tokens,admitted_s,first_token_s,finished_s,"
              "preemptions\n", s->log);
    int bad = run_own(s, store, e);
    s->log = NULL;
    return sh_file_end(f, bad, e);
}
