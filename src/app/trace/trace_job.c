/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/trace/trace_job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/app/store/begin.h"
#include "src/app/store/describe.h"
#include "src/jobs/pipeline.h"

/* FNV-1a over everything that decides the content of a run. */
static void hash(uint64_t *h, const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        *h = (*h ^ ((const unsigned char *)at)[i]) * 0x100000001b3u;
}

static void run_key(const struct sh_trace_job *t, char key[20])
{
    uint64_t h = 0xcbf29ce484222325u, fingerprint = t->run.model.fingerprint;
    int is_without = t->run.record == SH_RECORD_FULL && !t->sweep.record.statistics.n_alpha;
    /* Settings of statistics do not distinguish traces that have none. */
    const char *text[] = {t->weights, t->a->dtype, t->a->record, t->a->codec, t->a->vectors,
                          is_without ? "" : t->statistics};
    hash(&h, &fingerprint, sizeof fingerprint);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        hash(&h, text[i], strlen(text[i]) + 1);
    hash(&h, &t->sweep.first_layer, sizeof(int));
    hash(&h, &t->sweep.last_layer, sizeof(int));
    if (t->sweep.weight_bits < 16)              /* the runs of stores from before there were codes keep their keys */
        hash(&h, &t->sweep.weight_bits, sizeof(int));
    for (int i = 0; i < t->texts.n; i++) {
        const struct sh_trace_sequence *q = &t->texts.sequence[i];
        hash(&h, &q->n_tokens, sizeof q->n_tokens);     /* the same tokens cut otherwise are another run */
        hash(&h, q->tokens, 4 * (size_t)q->n_tokens);
    }
    snprintf(key, 20, "%016" PRIx64, h);
}

static void describe_run(struct sh_trace_job *t)
{
    const struct sh_arch *c = sh_model_arch(t->model);
    char pruned[32] = "";
    if (t->a->weight_prune > 0)
        snprintf(pruned, sizeof pruned, "%spruned:%g", t->a->random_weights ? "," : "", t->a->weight_prune);
    t->weights = t->a->random_weights ? xasprintf("random:%lld%s", t->common->seed, pruned)
                                      : xstrdup(*pruned ? pruned : "checkpoint");
    t->statistics = sh_stats_spec_write(&t->sweep.record.statistics);
    t->run = (struct sh_trace_run){
        .model = {.name = sh_model_name(t->model), .family = sh_model_family(t->model), .weights = t->weights,
                  .fingerprint = sh_model_fingerprint(t->model), .n_layer = c->n_layer, .n_head = c->n_head,
                  .n_kv_head = c->n_kv_head, .d_head = c->d_head, .d_model = c->d_model, .n_vocab = c->n_vocab,
                  .max_pos = c->max_pos},
        .program = PACKAGE_VERSION, .backend = t->devices.backend->name, .device = t->chips, .dtype = t->a->dtype,
        .vectors = t->a->vectors, .statistics = t->statistics, .command = t->common->line, .record = t->run.record,
        .codec = t->run.codec, .weight_bits = t->sweep.weight_bits, .first_layer = t->sweep.first_layer,
        .last_layer = t->sweep.last_layer, .seed = t->common->seed};
}

static int say_needs(struct sh_trace_job *t, struct sh_err *e)
{
    const struct sh_sweep_needs *n = &t->needs;
    const double mib = 1 << 20;
    if (sh_sweep_needs(&t->sweep, &t->needs, e))
        return -1;
    if (t->common->verbose || (n->spills && !t->common->quiet))
        sh_sayf("shears: ", "%s; one layer %.1f MiB, activations %.1f MiB, hidden states %.1f MiB%s",
                t->chips, (double)n->layer_bytes / mib, (double)n->activation_bytes / mib,
                (double)n->hidden_bytes / mib, n->spills ? " in a temporary file" : "");
    if (n->device_bytes && t->common->verbose)
        sh_sayf("shears: ", "%.1f MiB of device memory: %d layer%s, %d tokens at once",
                (double)n->device_bytes / mib, n->layers_at_once, n->layers_at_once == 1 ? "" : "s", n->rows);
    return 0;
}

/* Which layers of a unit are finished, [n, its layers]; caller frees. */
static unsigned char *done_of(const struct sh_trace_job *t, const struct sh_unit *u)
{
    int n_layer = u->last_layer - u->first_layer + 1, all = t->run.last_layer - t->run.first_layer + 1;
    unsigned char *done = xcalloc((size_t)u->n * (size_t)n_layer, 1);
    for (int i = 0; i < u->n; i++)
        memcpy(done + i * n_layer, t->done + (u->first + i) * all + u->first_layer - t->run.first_layer,
               (size_t)n_layer);
    return done;
}

static double choose_unit(struct sh_trace_job *t, const struct sh_unit *u)
{
    double tokens = 0;
    t->sweep.sequence = t->texts.sequence + u->first;
    t->sweep.n = u->n;
    t->sweep.first_sequence = u->first;
    t->sweep.first_layer = u->first_layer;
    t->sweep.last_layer = u->last_layer;
    for (int i = 0; i < u->n; i++)
        tokens += t->sweep.sequence[i].n_tokens;
    const struct sh_sweep_link *link = t->sweep.link;
    return tokens * (link ? link->last - link->first + 1 : u->last_layer + 1);
}

/* The trace is blocked; said even with -q. */
static void tell_waiting(void *to, const char *path)
{
    (void)to;
    sh_begin_tell_waiting(path);
}

/* One unit into a run of a store. */
static int sweep(struct sh_trace_job *t, const struct sh_unit *u, struct sh_store *store, int run, struct sh_err *e)
{
    struct sh_progress progress;
    double work = choose_unit(t, u);
    sh_progress_begin(&progress, "tracing", "tokens x layers", work, t->common->quiet);
    t->sweep.progress = &progress;
    if (say_needs(t, e))
        return -1;
    if (!(t->sweep.writer = sh_writer_begin(store, run, (size_t)256 << 20, e)))
        return -1;
    sh_writer_watch(t->sweep.writer, t->sweep.stages, tell_waiting, NULL);
    unsigned char *done = done_of(t, u);
    t->sweep.done = done;
    double began = sh_now_s();
    int bad = sh_sweep_run(&t->sweep, e);
    struct sh_err write_error;
    if (sh_writer_end(t->sweep.writer, &write_error)) {
        *e = write_error;
        bad = -1;
    }
    free(done);
    sh_progress_end(&progress);
    struct sh_err ignored;
    sh_store_add_seconds(store, run, sh_now_s() - began, bad ? &ignored : e);
    return bad;
}

/* ---- by several ranks ---- */

/* A run has one backend: rows of another would be refused when joined, after the work. */
static int check_backend(const struct sh_trace_job *t, struct sh_store *joint, int run, struct sh_err *e)
{
    struct sh_stored_run *runs;
    int n, bad = 0;
    if (sh_store_runs(joint, &runs, &n, e))
        return -1;
    for (int i = 0; i < n && !bad; i++)
        if (runs[i].id == run && strcmp(runs[i].backend, t->run.backend)) {
            bad = sh_fail(e, "%s: the run was started with backend %s, this process has %s", t->path, runs[i].backend,
                          t->run.backend);
            sh_hint(e, "--backend %s shows on every rank why it is not available", runs[i].backend);
        }
    sh_stored_runs_free(runs, n);
    return bad;
}

/* This rank's run; what the joint store has is not repeated. */
static int begin_own(struct sh_trace_job *t, struct sh_err *e)
{
    struct sh_store *joint = sh_job_is_first(&t->cluster) ? NULL : sh_store_open_read_only(t->a->db, e);
    int run = joint ? sh_store_finished(joint, &t->run, t->key, t->texts.n, t->done, e) : 0;
    int bad = run < 0 || (run > 0 && check_backend(t, joint, run, e));
    sh_store_close(joint);
    struct sh_store *own = bad || (!joint && !sh_job_is_first(&t->cluster)) ? NULL : sh_job_own(&t->cluster, e);
    if (!own)
        return -1;
    t->own_run = sh_store_begin(own, &t->run, t->key, t->texts.sequence, t->texts.n, t->done, e);
    return t->own_run < 0 ? -1 : 0;
}

static int run_unit(void *to, int unit, struct sh_err *e)
{
    struct sh_trace_job *t = to;
    if (!t->own_run && begin_own(t, e))
        return -1;
    return sweep(t, &t->unit[unit], t->cluster.own, t->own_run, e);
}

static int share(struct sh_trace_job *t, struct sh_err *e)
{
    struct sh_work_unit *unit = xcalloc((size_t)t->n_unit, sizeof *unit);
    for (int i = 0; i < t->n_unit; i++) {
        const struct sh_unit *u = &t->unit[i];
        unsigned char *done = done_of(t, u);
        unit[i].size = u->work;
        unit[i].is_done = !memchr(done, 0, (size_t)(u->n * (u->last_layer - u->first_layer + 1)));
        free(done);
    }
    struct sh_work_queue q = {.n = t->n_unit, .unit = unit, .run = run_unit, .to = t, .what = "tracing"};
    int bad = sh_job_run(&t->cluster, q, t->store, e);
    free(unit);
    return bad;
}

/* All sequences through this rank's layers. */
static int pass_on(struct sh_trace_job *t, struct sh_err *e)
{
    const struct sh_unit whole = {.n = t->texts.n, .first_layer = t->run.first_layer, .last_layer = t->run.last_layer};
    size_t cells = (size_t)t->texts.n * (size_t)(t->run.last_layer - t->run.first_layer + 1);
    struct sh_pipeline p;
    if (sh_pipeline_begin(&p, &t->cluster, t->run.last_layer, e))
        return -1;
    sh_job_together(&t->cluster);
    int bad = sh_pipeline_start(&p, e) || begin_own(t, e);
    t->sweep.link = &p.link;
    if (!bad && memchr(t->done, 0, cells))      /* all ranks see the same */
        bad = sweep(t, &whole, t->cluster.own, t->own_run, e);
    sh_pipeline_finish(&p, &t->cluster, bad, e);
    sh_job_apart(&t->cluster);
    return sh_job_is_first(&t->cluster) ? sh_job_gather(&t->cluster, t->store, e) : 0;
}

static void cut(struct sh_trace_job *t)
{
    enum { UNITS_OF_A_RANK = 4 };
    int wanted = t->part.parts ? t->part.parts : t->cluster.ranks ? UNITS_OF_A_RANK * t->cluster.me.size : 1;
    t->unit = xcalloc((size_t)wanted, sizeof *t->unit);
    t->n_unit = sh_units_cut(t->unit, wanted, t->texts.sequence, t->texts.n, t->run.first_layer, t->run.last_layer);
}

/* Alone: all of it, or the one unit that is this shard; a shard may be empty. */
static int record_alone(struct sh_trace_job *t, int run, struct sh_err *e)
{
    uint64_t job = strtoull(t->key, NULL, 16);
    if (t->part.parts && sh_part_mark(t->store, &t->part, job, t->run.model.fingerprint, 0, e))
        return -1;
    int i = t->part.parts ? t->part.part - 1 : 0, bad = i < t->n_unit && sweep(t, &t->unit[i], t->store, run, e);
    return bad || (t->part.parts && sh_part_mark(t->store, &t->part, job, t->run.model.fingerprint, 1, e)) ? -1 : 0;
}

int sh_trace_record(struct sh_trace_job *t, struct sh_err *e)
{
    int is_first = sh_job_is_first(&t->cluster), run = 0, bad = 0;
    describe_run(t);
    run_key(t, t->key);
    cut(t);
    size_t cells = (size_t)t->texts.n * (size_t)(t->run.last_layer - t->run.first_layer + 1);
    t->done = xcalloc(cells, 1);
    if (is_first && !(t->store = sh_store_create(t->path, e)))
        return -1;
    if (t->part.parts && sh_part_check(t->store, &t->part, strtoull(t->key, NULL, 16), e))
        return -1;
    if (is_first && !t->cluster.ranks && !t->part.parts && sh_begin_claim(t->store, e))
        return -1;
    if (is_first) {                             /* the run first: it decides which leftovers belong to it */
        run = sh_store_begin(t->store, &t->run, t->key, t->texts.sequence, t->texts.n, t->done, e);
        bad = run < 0 || sh_begin_tell(t->store, run, t->common->quiet, e) ||
              (t->cluster.ranks && (sh_job_gather(&t->cluster, t->store, e) ||
              sh_store_finished(t->store, &t->run, t->key, t->texts.n, t->done, e) < 0 ||
              (memchr(t->done, 0, cells) && check_backend(t, t->store, run, e))));
    }
    t->cluster.in_line &= bad;
    if (!bad)
        bad = t->a->pipeline ? pass_on(t, e) : t->cluster.ranks ? share(t, e) : record_alone(t, run, e);
    if (!bad && is_first)
        bad = t->report(t, run, e);
    if (bad && t->store && sh_store_was_made(t->store) && sh_store_is_empty(t->store)) {
        sh_store_close(t->store);
        t->store = NULL;
        sh_store_remove(t->path);
    } else if (bad && run >= 0 && !e->hint[0] && e->status != SH_MISUSED) {
        sh_hint(e, "all layers committed to %s are complete; run the same command again to resume", t->path);
    }
    return bad;
}
