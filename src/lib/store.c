/* SPDX-License-Identifier: Apache-2.0 */
/* Stores: opening, what they hold, and what commands computed from them. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/lib/lib.h"

int sh_lib_store(struct shears_error **to, const char *function, const struct shears_store *s)
{
    if (sh_lib_given(to, function, "a store", s))
        return -1;
    return s->pid == getpid() ? 0
           : sh_lib_misused(to, "%s: found a store that was opened before fork(), expected one of this process",
                            sh_store_path(s->store));
}

static void forget(struct shears_store *s)
{
    sh_stored_runs_free(s->run, s->n_run);
    sh_stored_sequences_free(s->sequence, s->n_sequence);
    s->run = NULL;
    s->sequence = NULL;
    s->n_run = s->n_sequence = 0;
}

static int look(struct shears_store *s, struct sh_err *e)
{
    forget(s);
    return sh_store_runs(s->store, &s->run, &s->n_run, e) ||
           sh_store_sequences(s->store, 0, &s->sequence, &s->n_sequence, e) ? -1 : 0;
}

static struct shears_store *open_by(struct sh_store *(*how)(const char *path, struct sh_err *e), const char *path,
                                    const char *function, struct shears_error **e)
{
    struct sh_err why = {0};
    if (sh_lib_given(e, function, "a path", path))
        return NULL;
    if (!*path) {
        sh_lib_misused(e, "%s: found an empty path, expected a file's name", function);
        return NULL;
    }
    struct sh_store *opened = how(path, &why);
    if (!opened) {
        sh_lib_fail(e, &why);
        return NULL;
    }
    struct shears_store *s = xcalloc(1, sizeof *s);
    s->store = opened;
    s->pid = getpid();
    return s;
}

struct shears_store *shears_store_open(const char *path, struct shears_error **e)
{
    return open_by(sh_store_open, path, "shears_store_open", e);
}

struct shears_store *shears_store_create(const char *path, struct shears_error **e)
{
    return open_by(sh_store_create, path, "shears_store_create", e);
}

void shears_store_close(struct shears_store *s)
{
    if (!s)
        return;
    forget(s);
    if (s->pid == getpid())
        sh_store_close(s->store);
    free(s);
}

const char *shears_store_path(const struct shears_store *s)
{
    return s ? sh_store_path(s->store) : "";
}

/* ---- what is in it ---- */

static const struct sh_stored_sequence *sequence_of(const struct shears_store *s, int id)
{
    int low = 0, high = s->n_sequence;              /* ids ascend */
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (s->sequence[middle].id == id)
            return &s->sequence[middle];
        if (s->sequence[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct sh_stored_sequence *sh_lib_sequence(struct shears_store *s, int id, const struct sh_stored_run **run,
                                                 struct sh_err *e)
{
    const struct sh_stored_sequence *q = sequence_of(s, id);
    if (!q && look(s, e))                           /* it may have come since */
        return NULL;
    if (!q && !(q = sequence_of(s, id))) {
        sh_misused(e, "%s: sequence %d: not in the store, which has %d", sh_store_path(s->store), id, s->n_sequence);
        return NULL;
    }
    for (int i = 0; i < s->n_run; i++)
        if (s->run[i].id == q->run) {
            *run = &s->run[i];
            return q;
        }
    return sh_fail_null(e, "%s: sequence %d: damaged: its run %d is missing", sh_store_path(s->store), id, q->run);
}

static void write_run(struct sh_out *o, const struct sh_stored_run *r)
{
    sh_out_item(o);
    sh_out_int(o, "run", "run", r->id);
    sh_out_text(o, "model", "model", r->model);
    sh_out_text(o, "family", "family", r->family);
    sh_out_text(o, "weights", "weights", r->weights);
    sh_out_int(o, "layers", "layers", r->n_layer);
    sh_out_int(o, "heads", "heads", r->n_head);
    sh_out_int(o, "kv_heads", "KV heads", r->n_kv_head);
    sh_out_int(o, "head_dim", "head width", r->d_head);
    sh_out_int(o, "first_layer", "first layer", r->first_layer);
    sh_out_int(o, "last_layer", "last layer", r->last_layer);
    sh_out_text(o, "record", "record", sh_record_names[r->record]);
    sh_out_text(o, "codec", "codec", sh_codec_names[r->codec]);
    sh_out_text(o, "vectors", "vectors", r->vectors);
    sh_out_bool(o, "causal", "causal", !r->orderless);
    sh_out_text(o, "dtype", "dtype", r->dtype);
    sh_out_int(o, "weight_bits", "weight bits", r->weight_bits);
    sh_out_text(o, "backend", "backend", r->backend);
    sh_out_text(o, "device", "device", r->device);
    sh_out_int(o, "sequences", "sequences", r->n_sequence);
    sh_out_int(o, "tokens", "tokens", r->n_tokens);
    sh_out_int(o, "layers_done", "layers finished", r->n_done);
    sh_out_real(o, "seconds", "seconds", r->seconds, 1);
    sh_out_text(o, "started", "started", r->started);
    sh_out_text(o, "command", "command", r->command);
}

struct shears_result *shears_store_describe(struct shears_store *s, struct shears_error **e)
{
    struct sh_err why = {0};
    if (sh_lib_store(e, "shears_store_describe", s))
        return NULL;
    if (look(s, &why)) {
        sh_lib_fail(e, &why);
        return NULL;
    }
    struct sh_out *o = sh_out_new();
    sh_out_text(o, "db", "store", sh_store_path(s->store));
    sh_out_list(o, "runs", "runs");
    for (int i = 0; i < s->n_run; i++)
        write_run(o, &s->run[i]);
    sh_out_end(o);
    sh_out_list(o, "sequences", "sequences");
    for (int i = 0; i < s->n_sequence; i++) {
        sh_out_item(o);
        sh_out_int(o, "id", "id", s->sequence[i].id);
        sh_out_int(o, "run", "run", s->sequence[i].run);
        sh_out_int(o, "tokens", "tokens", s->sequence[i].n_tokens);
        sh_out_text(o, "source", "source", s->sequence[i].source);
    }
    sh_out_end(o);
    return sh_lib_result(o);
}

static int write_result(void *to, const struct sh_stored_result *r, struct sh_err *e)
{
    struct sh_out *o = to;
    (void)e;
    sh_out_item(o);
    sh_out_text(o, "command", "command", r->command);
    sh_out_text(o, "settings", "settings", r->settings);
    sh_out_text(o, "metric", "metric", r->metric);
    sh_out_int(o, "layer", "layer", r->layer);
    sh_out_int(o, "head", "head", r->head);
    sh_out_real(o, "value", "value", r->value, 6);
    return 0;
}

struct shears_result *shears_store_results(struct shears_store *s, const char *command, struct shears_error **e)
{
    struct sh_err why = {0};
    if (sh_lib_store(e, "shears_store_results", s))
        return NULL;
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "results", "results");
    int bad = sh_store_read_results(s->store, command, NULL, write_result, o, &why);
    sh_out_end(o);
    if (bad) {
        sh_out_free(o);
        sh_lib_fail(e, &why);
        return NULL;
    }
    return sh_lib_result(o);
}

int64_t shears_store_tokens(struct shears_store *s, int sequence, int32_t *to, size_t room, struct shears_error **e)
{
    struct sh_err why = {0};
    int32_t *tokens;
    int n;
    if (sh_lib_store(e, "shears_store_tokens", s))
        return -1;
    const struct sh_stored_run *run;
    const struct sh_stored_sequence *q = sh_lib_sequence(s, sequence, &run, &why);
    if (!q)
        return sh_lib_fail(e, &why);
    if (!to)
        return q->n_tokens;
    if (sh_store_tokens(s->store, sequence, &tokens, &n, &why))
        return sh_lib_fail(e, &why);
    memcpy(to, tokens, ((size_t)n < room ? (size_t)n : room) * sizeof *to);
    free(tokens);
    return n;
}
