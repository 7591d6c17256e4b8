/* SPDX-License-Identifier: Apache-2.0 */
/* The evidence that an allocator needs: recorded rows of some of the searched texts, in a temporary store like a
 * trace's; and losses of layers in the live model (live_probe.c). */
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/app/plan/live_plan.h"
#include "src/base/mem.h"
#include "src/tracer/sweep.h"

enum { RECORDED = 6 };                  /* texts whose rows are recorded, at most                 */

static const double most_scores = 2e9;  /* recorded                                               */

/* ---- rows ---- */

/* What all policies of the search look at, as letters of qkv. */
static const char *vectors_of(const struct sh_live_plan *w, char to[4])
{
    unsigned needs = 0;
    for (int i = 0; i < w->n_setting; i++)
        needs |= w->setting[i].policy.policy->needs;
    snprintf(to, 4, "%s%s%s", needs & SH_NEEDS_QUERIES ? "q" : "", needs & SH_NEEDS_KEYS ? "k" : "",
             needs & SH_NEEDS_VALUES ? "v" : "");
    return to;
}

/* The first of the searched texts, as many as their rows should take room; of a text that is too long alone its
 * beginning, as shares of the length are what counts. */
static int choose_recorded(const struct sh_live_plan *w, struct sh_trace_sequence *to)
{
    const struct sh_arch *a = sh_model_arch(w->live.model);
    double scores = 0;
    int n = 0;
    for (int i = 0; i < w->n_search && n < RECORDED; i++) {
        struct sh_trace_sequence q = w->source.texts.sequence[w->order[i]];
        double heads = (double)a->n_layer * a->n_head, longest = sqrt(2 * most_scores / heads);
        q.n_tokens = q.n_tokens < longest ? q.n_tokens : (int)longest;
        scores += (double)q.n_tokens * q.n_tokens / 2 * heads;
        if (n && scores > most_scores)
            break;
        to[n++] = q;
    }
    return n;
}

static int begin_run(struct sh_live_plan *w, struct sh_sweep *s, const char *vectors, unsigned char *done,
                     struct sh_err *e)
{
    const struct sh_arch *a = sh_model_arch(w->live.model);
    struct sh_trace_run run = {
        .model = {.name = sh_model_name(w->live.model), .family = sh_model_family(w->live.model),
                  .weights = "checkpoint", .fingerprint = sh_model_fingerprint(w->live.model), .n_layer = a->n_layer,
                  .n_head = a->n_head, .n_kv_head = a->n_kv_head, .d_head = a->d_head, .d_model = a->d_model,
                  .n_vocab = a->n_vocab, .max_pos = a->max_pos},
        .program = PACKAGE_VERSION, .backend = w->live.devices.backend->name, .device = "", .dtype = w->a->live.dtype,
        .vectors = vectors, .statistics = "", .command = "", .record = SH_RECORD_FULL, .codec = SH_CODEC_LOG8,
        .weight_bits = s->weight_bits, .last_layer = a->n_layer - 1, .seed = w->common->seed};
    return sh_store_begin(w->rows, &run, "plan", s->sequence, s->n, done, e);
}

static int sweep(struct sh_live_plan *w, struct sh_sweep *s, struct sh_err *e)
{
    struct sh_err write_error;
    char vectors[4];
    double tokens = 0;
    unsigned char *done = xcalloc((size_t)s->n * (size_t)(s->last_layer + 1), 1);
    s->vectors = vectors_of(w, vectors);
    s->done = done;
    for (int i = 0; i < s->n; i++)
        tokens += s->sequence[i].n_tokens;
    int run = begin_run(w, s, s->vectors, done, e);
    s->writer = run < 0 ? NULL : sh_writer_begin(w->rows, run, (size_t)256 << 20, e);
    int bad = !s->writer;
    if (!bad) {
        sh_progress_begin(&w->progress, "recording", "tokens x layers", tokens * (s->last_layer + 1), w->common->quiet);
        bad = sh_sweep_run(s, e);
        if (sh_writer_end(s->writer, bad ? &write_error : e))
            bad = -1;
        sh_progress_end(&w->progress);
    }
    free(done);
    return bad ? -1 : 0;
}

static const char *temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

/* Temporary stores of plans that were killed: nobody holds their lock. `begin`: path up to the six last characters. */
static void drop_abandoned(const char *begin)
{
    const char *slash = strrchr(begin, '/'), *name = slash ? slash + 1 : begin;
    char *folder = slash ? xasprintf("%.*s", (int)(name - begin), begin) : xstrdup("./");
    DIR *d = opendir(folder);
    for (const struct dirent *at; d && (at = readdir(d));) {
        size_t own = strlen(name) + 6;
        if (strncmp(at->d_name, name, strlen(name)) || strlen(at->d_name) < own)
            continue;
        char *path = xasprintf("%s%.*s", folder, (int)own, at->d_name);
        int is_store = !at->d_name[own];
        int file = is_store ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
        if (file >= 0 && !flock(file, LOCK_EX | LOCK_NB))
            sh_store_remove(path);
        if (!is_store)                  /* perhaps of one that was killed while it made the store */
            sh_store_remove_leftovers(path);
        if (file >= 0)
            close(file);
        free(path);
    }
    if (d)
        closedir(d);
    free(folder);
}

/* A new store of that name, locked as long as it is in use. 1: another program has taken it for abandoned. */
static int create_locked(struct sh_live_plan *w, char *path, struct sh_err *e)
{
    struct stat opened, named;
    int file = mkstemp(path);
    if (file < 0) {
        sh_fail(e, "%s: cannot create this temporary store", path);
        return sh_hint(e, "it holds the rows that allocators need; TMPDIR sets its folder");
    }
    close(file);
    unlink(path);
    if (!(w->rows = sh_store_create(path, e)))
        return -1;
    w->rows_path = xstrdup(path);
    w->rows_lock = open(path, O_RDONLY | O_CLOEXEC);
    if (w->rows_lock >= 0 && !flock(w->rows_lock, LOCK_EX | LOCK_NB) && !fstat(w->rows_lock, &opened) &&
        !stat(path, &named) && named.st_ino == opened.st_ino)
        return 0;
    sh_live_rows_drop(w);
    return 1;
}

/* Next to the store, or where temporary files are. */
static int create_rows(struct sh_live_plan *w, struct sh_err *e)
{
    char *begin = w->a->db ? xasprintf("%s.rows-", w->a->db) : xasprintf("%s/shears-rows-", temporary_folder());
    int taken = 1;
    drop_abandoned(begin);
    for (int i = 0; i < 8 && taken > 0; i++) {
        char *path = xasprintf("%sXXXXXX", begin);
        taken = create_locked(w, path, e);
        free(path);
    }
    if (taken > 0)
        sh_fail(e, "%s*: a temporary store cannot be locked", begin);
    free(begin);
    return taken ? -1 : 0;
}

static int record(struct sh_live_plan *w, struct sh_err *e)
{
    const struct sh_devices *d = &w->live.devices;
    const struct sh_arch *a = sh_model_arch(w->live.model);
    struct sh_trace_sequence text[RECORDED];
    struct sh_sweep s = {.backend = d->backend, .device = d->at, .n_device = 1, .model = w->live.model,
                         .model_path = w->a->live.model, .dtype = w->live.dtype,
                         .weight_bits = (int)w->a->live.weight_bits, .last_layer = a->n_layer - 1,
                         .sequence = text, .n = choose_recorded(w, text), .memory_bytes = (size_t)1 << 32,
                         .spill_folder = temporary_folder(), .progress = &w->progress, .n_threads = d->n_threads,
                         .record = {.record = SH_RECORD_FULL, .codec = SH_CODEC_LOG8}};
    sh_stats_spec_default(&s.record.statistics);
    s.record.statistics.n_alpha = 0;
    if (create_rows(w, e))
        return -1;
    return sweep(w, &s, e);
}

void sh_live_rows_drop(struct sh_live_plan *w)
{
    sh_store_close(w->rows);
    if (w->rows_path) {
        sh_store_remove(w->rows_path);
        if (w->rows_lock >= 0)
            close(w->rows_lock);
    }
    free(w->rows_path);
    w->rows = NULL;
    w->rows_path = NULL;
}

/* ---- what an allocator needs ---- */

/* The first layer that does not attend, if the allocator needs all; else -1. */
static int missing_layer(const struct sh_live_plan *w, const struct sh_allocator_spec *s)
{
    const struct sh_arch *a = sh_model_arch(w->live.model);
    int *heads = sh_live_heads(a), l = sh_allot_missing(s, heads, a->n_layer);
    free(heads);
    return l;
}

int sh_live_can_allot(const struct sh_live_plan *w, const struct sh_allocator_spec *s)
{
    return missing_layer(w, s) < 0;
}

int sh_live_evidence(struct sh_live_plan *w, struct sh_live_setting *s, struct sh_err *e)
{
    unsigned needs = s->allocator.allocator->needs;
    const struct sh_arch *a = sh_model_arch(w->live.model);
    struct sh_replay_request q = {.spec = &s->policy, .n_spec = 1, .prefill = (int)w->a->live.prefill,
                                  .seed = (uint64_t)w->common->seed, .threads = (int)w->common->threads,
                                  .quiet = w->common->quiet, .leave_out_small = 1, .dump_every = 1};
    if (!needs) {
        s->allot = (struct sh_allot){.spec = s->allocator, .n_layer = a->n_layer, .n_head = a->n_kv_head,
                                     .heads = sh_live_heads(a), .floor = sh_policy_least_budget(&s->policy)};
        return 0;
    }
    int missing = missing_layer(w, &s->allocator);
    if ((missing >= 0 && sh_allot_refuse(&s->allocator, missing, e)) || (!w->rows && record(w, e)))
        return -1;
    if (sh_allot_open_live(&s->allot, &s->allocator, &q, w->rows, e))
        return -1;
    return needs & SH_EVIDENCE_LOSS ? sh_live_probe(w, s, e) : 0;
}
