/* SPDX-License-Identifier: Apache-2.0 */
/* See record.h. The run is created when its first sequence is complete, so that a recording without sequences leaves
 * the store unchanged. */
#include "src/app/record/record.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/app/record/record_layer.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "traces/writer.h"

enum { MOST_TOKENS = 1 << 22, MOST = 1 << 20, QUEUE_BYTES = 64 << 20 };

struct sequence {
    char *source;                       /* NULL: ended                                             */
    int32_t *token;
    int n, room, grows;
    struct sh_record_layer **layer;     /* [n_layer]; NULL: no rows                                */
};

struct sh_recording {
    struct sh_store *store;
    struct sh_writer *writer;           /* NULL: no run yet                                        */
    struct sh_record_setup setup;
    struct sh_trace_run run;            /* strings are owned; program NULL: not begun              */
    struct sequence *sequence;          /* [n]                                                     */
    int n, n_open, n_written, id;       /* id: of the run                                          */
    double began;
};

struct sh_recording *sh_recording_open(const char *path, int n_threads, struct sh_err *e)
{
    struct sh_store *store = sh_store_create(path, e);
    if (!store)
        return NULL;
    if (sh_store_lock(store, e)) {
        sh_store_close(store);
        return NULL;
    }
    struct sh_recording *r = xcalloc(1, sizeof *r);
    r->store = store;
    r->setup.n_threads = n_threads;
    r->setup.spool = sh_spool_new(path);
    r->began = sh_now_s();
    return r;
}

/* ---- what is recorded ---- */

static int check_number(const char *what, int found, int least, int most, struct sh_err *e)
{
    return found >= least && found <= most
               ? 0 : sh_misused(e, "%s: found %d, expected %d to %d", what, found, least, most);
}

static int check_numbers(const struct sh_trace_model *m, struct sh_err *e)
{
    return check_number("layers", m->n_layer, 1, MOST, e) || check_number("heads", m->n_head, 1, MOST, e) ||
           check_number("KV heads", m->n_kv_head, 1, m->n_head, e) ||
           check_number("width of a head", m->d_head, 1, MOST, e) ||
           check_number("width of the model", m->d_model, 0, INT_MAX, e) ||
           check_number("vocabulary", m->n_vocab, 0, INT_MAX, e) ||
           check_number("longest text", m->max_pos, 0, INT_MAX, e) ? -1 : 0;
}

static int check_run(const struct sh_trace_run *run, struct sh_err *e)
{
    const struct sh_trace_model *m = &run->model;
    if (check_numbers(m, e))
        return -1;
    if (m->n_head % m->n_kv_head)
        return sh_misused(e, "KV heads: found %d, expected a divisor of the %d query heads", m->n_kv_head, m->n_head);
    if (run->record == SH_RECORD_SPARSE && run->codec == SH_CODEC_F16)
        return sh_misused(e, "record sparse: found codec f16, expected log8 or f32: rounding to f16 moves scores "
                             "across its thresholds");
    if (run->orderless && run->record != SH_RECORD_FULL)
        return sh_misused(e, "record: found %s, expected full: statistics are defined for causal rows only",
                          sh_record_names[run->record]);
    size_t n = strlen(run->vectors);
    if (n > 3 || strspn(run->vectors, "qkv") != n || (n > 1 && strchr(run->vectors + 1, run->vectors[0])) ||
        (n > 2 && run->vectors[1] == run->vectors[2]))
        return sh_misused(e, "vectors: found \"%.20s\", expected any of q, k, v, each once", run->vectors);
    return 0;
}

static void copy_strings(struct sh_trace_run *to, const struct sh_trace_run *from)
{
    *to = *from;
    to->model.name = xstrdup(from->model.name);
    to->model.family = xstrdup(from->model.family);
    to->model.weights = xstrdup(from->model.weights);
    to->program = xstrdup(PACKAGE_VERSION);
    to->backend = xstrdup(from->backend);
    to->device = xstrdup(from->device);
    to->dtype = xstrdup(from->dtype);
    to->vectors = xstrdup(from->vectors);
    to->command = xstrdup(from->command);
}

static void free_strings(struct sh_trace_run *r)
{
    const char *all[] = {r->model.name, r->model.family, r->model.weights, r->program, r->backend,
                         r->device, r->dtype, r->vectors, r->command, r->statistics};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free((char *)(uintptr_t)all[i]);
}

int sh_recording_begin(struct sh_recording *r, const struct sh_trace_run *run, struct sh_err *e)
{
    if (r->run.program)
        return sh_misused(e, "%s: the recording has already begun", sh_store_path(r->store));
    if (check_run(run, e))
        return -1;
    copy_strings(&r->run, run);
    struct sh_stats_spec spec;
    sh_stats_spec_default(&spec);
    sh_recorder_thresholds(run->record, run->codec, 0, &spec);
    r->run.statistics = sh_stats_spec_write(&spec);
    r->run.first_layer = 0;
    r->run.last_layer = run->model.n_layer - 1;
    r->setup.record = (struct sh_recorder_options){.record = run->record, .codec = run->codec, .statistics = spec,
                                                   .n_head = run->model.n_head, .n_threads = r->setup.n_threads};
    memcpy(r->setup.vectors, run->vectors, strlen(run->vectors) + 1);
    r->setup.n_head = run->model.n_head;
    r->setup.n_kv_head = run->model.n_kv_head;
    r->setup.d_head = run->model.d_head;
    r->setup.orderless = run->orderless;
    return 0;
}

/* ---- sequences ---- */

static int add_tokens(struct sequence *q, const int32_t *token, int n, struct sh_err *e)
{
    if (n < 1 || n > MOST_TOKENS - q->n)
        return sh_misused(e, "found %d tokens, expected 1 to %d", n, MOST_TOKENS - q->n);
    if (q->n + n > q->room) {
        q->room = 2 * q->n > q->n + n ? 2 * q->n : q->n + n;
        q->token = xreallocarray(q->token, (size_t)q->room, sizeof *q->token);
    }
    memcpy(q->token + q->n, token, (size_t)n * sizeof *token);
    q->n += n;
    return 0;
}

int sh_recording_sequence(struct sh_recording *r, const char *source, const int32_t *token, int n, int grows,
                          struct sh_err *e)
{
    struct sequence q = {.grows = grows};
    if (!r->run.program)
        return sh_misused(e, "%s: the recording has not begun", sh_store_path(r->store));
    if (add_tokens(&q, token, n, e))
        return -1;
    q.source = xstrdup(source);
    q.layer = xcalloc((size_t)r->run.model.n_layer, sizeof *q.layer);
    r->sequence = xreallocarray(r->sequence, (size_t)r->n + 1, sizeof *r->sequence);
    r->sequence[r->n] = q;
    r->n_open++;
    return r->n++;
}

static struct sequence *find(struct sh_recording *r, int sequence, struct sh_err *e)
{
    if (sequence >= 0 && sequence < r->n && r->sequence[sequence].source)
        return &r->sequence[sequence];
    sh_misused(e, "%s: sequence %d: is not being recorded", sh_store_path(r->store), sequence);
    return NULL;
}

int sh_recording_more(struct sh_recording *r, int sequence, const int32_t *token, int n, struct sh_err *e)
{
    struct sequence *q = find(r, sequence, e);
    if (q && !q->grows)
        return sh_misused(e, "%s: sequence %d: found more tokens, expected none: it was begun as complete",
                          sh_store_path(r->store), sequence);
    return q ? add_tokens(q, token, n, e) : -1;
}

static struct sh_record_layer *find_layer(struct sh_recording *r, struct sequence *q, int layer, struct sh_err *e)
{
    if (check_number("layer", layer, 0, r->run.model.n_layer - 1, e))
        return NULL;
    if (!q->layer[layer])
        q->layer[layer] = sh_record_layer_new(&r->setup, q->grows);
    return q->layer[layer];
}

static int in_layer(const struct sh_recording *r, int sequence, int layer, struct sh_err *e)
{
    return sh_err_prefix(e, "%s: sequence %d, layer %d", sh_store_path(r->store), sequence, layer);
}

int sh_recording_vectors(struct sh_recording *r, const struct sh_recording_vectors *v, struct sh_err *e)
{
    struct sequence *q = find(r, v->sequence, e);
    struct sh_record_layer *l = q ? find_layer(r, q, v->layer, e) : NULL;
    if (!l)
        return -1;
    return sh_record_layer_vectors(l, v, q->n, e) ? in_layer(r, v->sequence, v->layer, e) : 0;
}

int sh_recording_rows(struct sh_recording *r, const struct sh_recording_rows *rows, struct sh_err *e)
{
    struct sequence *q = find(r, rows->sequence, e);
    struct sh_record_layer *l = q ? find_layer(r, q, rows->layer, e) : NULL;
    if (!l)
        return -1;
    return sh_record_layer_rows(l, rows, q->n, e) ? in_layer(r, rows->sequence, rows->layer, e) : 0;
}

/* ---- the end of a sequence ---- */

static void forget(struct sh_recording *r, struct sequence *q)
{
    for (int layer = 0; layer < r->run.model.n_layer; layer++)
        sh_record_layer_free(q->layer[layer]);
    free(q->layer);
    free(q->source);
    free(q->token);
    *q = (struct sequence){0};
    r->n_open--;
}

/* Every recording is a run of its own. */
static void make_key(const struct sh_recording *r, char key[20])
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t h = r->run.model.fingerprint;
    const long long parts[] = {now.tv_sec, now.tv_nsec, getpid(), (long long)(uintptr_t)r};
    const unsigned char *at = (const unsigned char *)parts;
    for (size_t i = 0; i < sizeof parts; i++)
        h = (h ^ at[i]) * 0x100000001b3u;               /* FNV-1a */
    snprintf(key, 20, "%016" PRIx64, h);
}

static int begin_run(struct sh_recording *r, struct sh_err *e)
{
    char key[20];
    unsigned char done;
    if (r->writer)
        return 0;
    make_key(r, key);
    if (!r->id && (r->id = sh_store_begin(r->store, &r->run, key, NULL, 0, &done, e)) < 0) {
        r->id = 0;
        return -1;
    }
    r->writer = sh_writer_begin(r->store, r->id, QUEUE_BYTES, e);
    return r->writer ? 0 : -1;
}

/* Every layer is complete or silent, and one at least attends. */
static int check_complete(const struct sh_recording *r, const struct sequence *q, int sequence, struct sh_err *e)
{
    int any = 0;
    for (int layer = 0; layer < r->run.model.n_layer; layer++)
        if (!sh_record_layer_is_empty(q->layer[layer]) && sh_record_layer_check(q->layer[layer], q->n, e))
            return in_layer(r, sequence, layer, e);
        else if (!sh_record_layer_is_empty(q->layer[layer]))
            any = 1;
    return any ? 0 : sh_misused(e, "%s: sequence %d: found no rows of any layer", sh_store_path(r->store), sequence);
}

static struct sh_trace_sequence *made_of(const struct sequence *q)
{
    struct sh_trace_sequence *made = xcalloc(1, sizeof *made);
    *made = (struct sh_trace_sequence){.source = xstrdup(q->source), .n_tokens = q->n,
                                       .tokens = xreallocarray(NULL, (size_t)q->n, sizeof *q->token)};
    memcpy(made->tokens, q->token, (size_t)q->n * sizeof *q->token);
    return made;
}

static int write_sequence(struct sh_recording *r, struct sequence *q, struct sh_err *e)
{
    int bad = begin_run(r, e), n_pushed = 0;
    for (int layer = 0; layer < r->run.model.n_layer && !bad; layer++) {
        struct sh_batch b = {.sequence = r->n_written, .layer = layer};
        if (layer == 0)
            b.made = made_of(q);
        if (sh_record_layer_is_empty(q->layer[layer]))
            sh_recorder_say_silent(&b);
        else
            bad = sh_record_layer_take(q->layer[layer], q->n, &b, e);
        bad = bad || sh_writer_push(r->writer, &b, e);
        n_pushed += !bad;
        sh_batch_clear(&b);
        sh_record_layer_free(q->layer[layer]);
        q->layer[layer] = NULL;
    }
    r->n_written += n_pushed > 0;               /* the store has, or will have, a part of it at least */
    return bad;
}

int sh_recording_finish(struct sh_recording *r, int sequence, int keep, struct sh_err *e)
{
    struct sequence *q = find(r, sequence, e);
    if (!q)
        return -1;
    int bad = keep && (check_complete(r, q, sequence, e) || write_sequence(r, q, e));
    forget(r, q);
    if (!r->n_open)
        sh_spool_empty(r->setup.spool);
    return bad ? -1 : 0;
}

int sh_recording_count(const struct sh_recording *r)
{
    return r->n_written;
}

/* ---- the end ---- */

static void free_all(struct sh_recording *r)
{
    for (int i = 0; i < r->n; i++)
        if (r->sequence[i].source)
            forget(r, &r->sequence[i]);
    sh_spool_free(r->setup.spool);
    free_strings(&r->run);
    free(r->sequence);
    free(r);
}

int sh_recording_close(struct sh_recording *r, struct sh_err *e)
{
    if (!r)
        return 0;
    struct sh_err write_error = {0};
    int bad = r->writer && sh_writer_end(r->writer, &write_error);
    if (bad)
        *e = write_error;
    if (!bad && r->id)
        bad = sh_store_add_seconds(r->store, r->id, sh_now_s() - r->began, e);
    char *path = sh_store_was_made(r->store) && sh_store_is_empty(r->store) ? xstrdup(sh_store_path(r->store)) : NULL;
    sh_store_close(r->store);
    if (path)
        sh_store_remove(path);
    free(path);
    free_all(r);
    return bad ? -1 : 0;
}

void sh_recording_leave(struct sh_recording *r)
{
    if (r)
        free_all(r);
}
