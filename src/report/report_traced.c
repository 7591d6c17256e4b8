/* SPDX-License-Identifier: Apache-2.0 */
/* Report: what was traced, from which texts, and the scores of one head. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/mem.h"
#include "src/report/figures/figure_data.h"
#include "src/report/report.h"

static void write_run(struct sh_out *o, const char *store, const struct sh_stored_run *run)
{
    static const char *const record[] = {[SH_RECORD_FULL] = "full", [SH_RECORD_SPARSE] = "sparse",
                                         [SH_RECORD_SUMMARY] = "summary"};
    long long unfinished = (long long)run->n_sequence * (run->last_layer - run->first_layer + 1) - run->n_done;
    sh_out_item(o);
    sh_out_text(o, "store", "store", store);
    sh_out_int(o, "run", "run", run->id);
    sh_out_text(o, "model", "model", run->model);
    sh_out_text(o, "weights", "weights", run->weights);
    sh_out_int(o, "layers", "layers", run->n_layer);
    sh_out_int(o, "heads", "heads", run->n_head);
    sh_out_int(o, "kv_heads", "KV heads", run->n_kv_head);
    sh_out_int(o, "sequences", "sequences", run->n_sequence);
    sh_out_int(o, "tokens", "tokens", run->n_tokens);
    sh_out_real(o, "unfinished", "unfinished layers", unfinished ? (double)unfinished : (double)NAN, 0);
    sh_out_text(o, "record", "record", record[run->record]);
    sh_out_text(o, "codec", "codec", sh_codec_names[run->codec]);
    sh_out_text(o, "dtype", "dtype", run->dtype);
    sh_out_text(o, "backend", "backend", run->backend);
    sh_out_text(o, "device", "device", run->device);
    sh_out_real(o, "seconds", "seconds", run->seconds, 1);
    sh_out_text(o, "program", "shears", run->program);
    sh_out_text(o, "started", "started (UTC)", run->started);
}

/* "book.txt:3" is a piece of book.txt: one row for all pieces of one text. */
static size_t source_bytes(const char *source)
{
    const char *colon = strrchr(source, ':');
    return colon ? (size_t)(colon - source) : strlen(source);
}

static int write_texts(struct sh_report *r, struct sh_out *o, int i_store, int run, struct sh_err *e)
{
    struct sh_stored_sequence *q;
    int n;
    struct sh_store *s = sh_store_open(r->store[i_store].path, e);
    int bad = !s || sh_store_sequences(s, run, &q, &n, e);
    sh_store_close(s);
    if (bad)
        return -1;
    for (int i = 0, from = 0; i < n; i++) {
        size_t bytes = source_bytes(q[from].source);
        if (i + 1 < n && bytes == source_bytes(q[i + 1].source) && !memcmp(q[from].source, q[i + 1].source, bytes))
            continue;
        long long tokens = 0;
        int least = q[from].n_tokens, most = least;
        for (int k = from; k <= i; k++) {
            tokens += q[k].n_tokens;
            least = q[k].n_tokens < least ? q[k].n_tokens : least;
            most = q[k].n_tokens > most ? q[k].n_tokens : most;
        }
        char *name = xasprintf("%.*s", (int)bytes, q[from].source);
        sh_out_item(o);
        sh_out_text(o, "store", "store", r->store[i_store].path);
        sh_out_int(o, "run", "run", run);
        sh_out_text(o, "text", "text", name);
        sh_out_int(o, "sequences", "sequences", i - from + 1);
        sh_out_int(o, "tokens", "tokens", tokens);
        sh_out_int(o, "shortest", "shortest", least);
        sh_out_int(o, "longest", "longest", most);
        free(name);
        from = i + 1;
    }
    sh_stored_sequences_free(q, n);
    return 0;
}

static int tables(struct sh_report *r, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    int bad = 0;
    sh_out_list(o, "runs", "runs");
    for (int i = 0; i < r->n_store; i++)
        for (int k = 0; k < r->store[i].n_run; k++)
            write_run(o, r->store[i].path, &r->store[i].run[k]);
    sh_out_end(o);
    sh_out_list(o, "texts", "texts");
    for (int i = 0; i < r->n_store; i++)
        for (int k = 0; k < r->store[i].n_run && !bad; k++)
            bad = write_texts(r, o, i, r->store[i].run[k].id, e);
    sh_out_end(o);
    sh_out_list(o, "files", "stores");
    for (int i = 0; i < r->n_store; i++) {
        struct stat file;
        sh_out_item(o);
        sh_out_text(o, "store", "store", r->store[i].path);
        sh_out_real(o, "mib", "MiB", stat(r->store[i].path, &file) ? 0 : (double)file.st_size / 0x1p20, 1);
    }
    sh_out_end(o);
    if (bad)
        sh_out_free(o);
    else
        sh_report_table(r, "Runs, texts and stores", o);
    return bad;
}

/* A sentence for each model: the table is for those who want more. */
static void say_runs(struct sh_report *r)
{
    for (int i = 0; i < r->n_store; i++) {
        const struct sh_stored_run *run = r->store[i].run;
        long long tokens = 0;
        int sequences = 0;
        for (int k = 0; k < r->store[i].n_run; k++) {
            tokens += run[k].n_tokens;
            sequences += run[k].n_sequence;
        }
        if (r->store[i].n_run && sh_report_is_random(run))
            sh_report_say(r, "The control: a model of the same shape as %s with random weights read %d sequences "
                          "(%lld tokens in all).", run->model, sequences, tokens);
        else if (r->store[i].n_run)
            sh_report_say(r, "%s (%d layers of %d heads) read %d sequences (%lld tokens in all).", run->model,
                          run->n_layer, run->n_head, sequences, tokens);
    }
}

static int write(struct sh_report *r, struct sh_err *e)
{
    const char *full[2];                        /* the first trained and the first random one: scores take room */
    int n_full = 0, has[2] = {0, 0};
    say_runs(r);
    if (tables(r, e))
        return -1;
    for (int i = 0; i < r->n_store; i++)
        for (int k = 0; k < r->store[i].n_run; k++) {
            sh_report_command(r, "%s", r->store[i].run[k].command);
            int is_random = sh_report_is_random(&r->store[i].run[k]);
            if (!k && !has[is_random] && r->store[i].run[k].record == SH_RECORD_FULL && r->store[i].run[k].n_done) {
                full[n_full++] = r->store[i].path;
                has[is_random] = 1;
            }
        }
    if (!n_full) {
        sh_report_trace(r, 0, "full.db", " --record full",
                        "a look at the scores of one head: no run recorded them in full.");
        return 0;
    }
    struct sh_figure_request q = {.db = full, .n_db = n_full, .threads = r->threads, .quiet = 1, .split = 0.5};
    struct sh_figure_data *d = sh_figure_data_new(SH_FIG_BIT(heatmap), &q, e);
    int bad = d ? sh_report_figure(r, &sh_figure_heatmap, NULL, &d->out, e) : sh_report_lacks(r, NULL, e);
    sh_figure_data_free(d);
    return bad;
}

const struct sh_report_part sh_report_traced = {
    .name = "traced", .title = "What was traced", .write = write};
