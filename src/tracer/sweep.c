/* SPDX-License-Identifier: Apache-2.0 */
/* See sweep.h. A lane is one device with its chunks and its place in the sweep; each has a thread, and
 * one more brings its next layer. Lanes share the model, the progress (a lock each), the writer (which
 * locks itself) and the hidden states (each its own rows). */
#include "src/tracer/sweep.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/model/layers/layer.h"
#include "src/tracer/units.h"
#include "traces/codec.h"

struct state {                          /* what the lanes share */
    const struct sh_sweep *s;
    const struct sh_arch *arch;
    struct sh_chunks chunks;
    struct sh_hidden hidden;
    int last;                           /* the last layer with something to record */
    int layers_at_once, stay;
    size_t expert_room;                 /* that experts of a layer may take */
    pthread_mutex_t progress;           /* guards step and stop, too */
    double step;                        /* tokens x layers that are done */
    int stop;                           /* some lane has failed */
};

struct lane {
    struct state *st;
    struct sh_dev *device;
    int number;                         /* takes every n_device-th chunk from here on */
    struct sh_activations act;
    void *on_device;                    /* of one chunk, or all the lane's where they stay; NULL: used where they are */
    size_t row;                         /* where the chunk's begin there                          */
    pthread_t thread;
    int bad, was_stopped;               /* was_stopped: another lane failed first */
    struct sh_err error;
};

struct load {                           /* a layer on its way to a device */
    struct lane *lane;
    int layer, is_apart;
    pthread_t thread;
    struct sh_layer *loaded;            /* NULL: error */
    struct sh_err error;
};

static int is_done(const struct sh_sweep *s, int sequence, int layer)
{
    int n_layer = s->last_layer - s->first_layer + 1;
    return layer < s->first_layer || s->done[sequence * n_layer + layer - s->first_layer];
}

/* The last layer that still has something to record, or -1. */
static int last_needed(const struct sh_sweep *s)
{
    for (int layer = s->last_layer; layer >= s->first_layer; layer--)
        for (int i = 0; i < s->n; i++)
            if (!is_done(s, i, layer))
                return layer;
    return -1;
}

static int embed_chunk(struct state *st, const struct sh_chunk *c, struct sh_err *e)
{
    size_t row = c->row0;
    for (int i = c->first; i < c->first + c->n; i++) {
        const struct sh_trace_sequence *q = &st->s->sequence[i];
        if (sh_embed(st->s->backend, st->s->device[0], st->s->model, q->tokens, q->n_tokens,
                     sh_hidden_row(&st->hidden, row), e))
            return sh_err_prefix(e, "%s: sequence %s", st->s->model_path, q->source);
        sh_hidden_rest(&st->hidden, row, (size_t)q->n_tokens);
        row += (size_t)q->n_tokens;
    }
    return 0;
}

/* One of q, k, v of one sequence, head by head; 's': what the sink took of each row, a number of a query head. Where
 * layers differ in their heads, vectors are as wide as the widest, with zeros, and a KV head stands for all that other
 * layers have in its place; of queries there are as many as the layer has. */
static void take_vectors(const struct lane *lane, const struct sh_chunk *c, int i, char kind, struct sh_batch *b)
{
    const struct sh_sweep *s = lane->st->s;
    const struct sh_arch *a = lane->st->arch;
    int is_sink = kind == 's', is_query = kind == 'q' || is_sink, d = is_sink ? 1 : a->d_head;
    int own_head = is_query ? sh_arch_query_heads(a, b->layer) : sh_arch_kv_heads(a, b->layer);
    int n_head = is_query ? own_head : a->n_kv_head;
    int own_d = is_sink ? 1 : sh_arch_d_head(a, b->layer), n = c->start[i + 1] - c->start[i];
    const float *from = kind == 'q' ? lane->act.q : kind == 'k' ? lane->act.k : is_sink ? lane->act.sink : lane->act.v;
    size_t width = (size_t)own_head * (size_t)own_d, count = (size_t)n * width;
    size_t per_head = (size_t)n * (size_t)d;
    float *host = xmalloc(count * sizeof *host), *one = xcalloc(per_head, sizeof *one);
    uint16_t *half = xmalloc(per_head * sizeof *half);
    s->backend->get(lane->device, host, from + (size_t)c->start[i] * width, count * sizeof *host);
    enum sh_codec codec = is_sink || s->record.codec == SH_CODEC_F32 ? SH_CODEC_F32 : SH_CODEC_F16;
    unsigned long long since = sh_stage_begin(s->stages);
    for (int h = 0; h < n_head; h++) {
        struct sh_block block = {.kind = SH_BLOCK_VECTORS, .head = h, .codec = codec, .vector = kind};
        for (int t = 0; t < n; t++)
            memcpy(one + (size_t)t * (size_t)d, host + (size_t)t * width + (size_t)(h * own_head / n_head * own_d),
                   (size_t)own_d * sizeof *one);
        for (size_t k = 0; codec == SH_CODEC_F16 && k < per_head; k++)
            half[k] = sh_f32_to_f16(one[k]);
        block.bytes = sh_codec_dense(codec, codec == SH_CODEC_F16 ? (void *)half : one, per_head, &block.blob);
        sh_batch_add(b, block);
    }
    sh_stage_end(s->stages, SH_STAGE_COMPRESSION, since, sh_stage_sharers(s->stages, 1));
    free(host);
    free(one);
    free(half);
}

/* The chunk through the layer, what it records into r. */
static int compute(struct lane *lane, const struct sh_layer *l, int layer, const struct sh_chunk *c,
                   const struct sh_tap *tap, struct sh_err *e)
{
    const struct sh_sweep *s = lane->st->s;
    const struct sh_hidden *hidden = &lane->st->hidden;
    size_t bytes = (size_t)c->rows * hidden->row_bytes;
    int is_last = layer == lane->st->last, stay = lane->st->stay;
    float *here = sh_hidden_row(hidden, c->row0);
    void *there = lane->on_device ? (char *)lane->on_device + lane->row * hidden->row_bytes : (void *)here;
    if (lane->on_device && (!stay || layer == 0))
        s->backend->put(lane->device, there, here, bytes);
    sh_layer_run(l, &lane->act, there, c->n, c->start, tap, is_last, NULL);
    if (lane->on_device && !is_last && !stay)
        s->backend->get(lane->device, here, there, bytes);
    if (s->backend->sync(lane->device, e) || sh_layer_failed(l, e))
        return sh_err_prefix(e, "%s: layer %d, from sequence %s on", s->model_path, layer,
                             s->sequence[c->first].source);
    return 0;
}

/* Send one chunk through a layer and queue what it recorded. */
static int run_chunk(struct lane *lane, const struct sh_layer *l, int layer, const struct sh_chunk *c, struct sh_err *e)
{
    const struct sh_sweep *s = lane->st->s;
    unsigned char *wanted = xcalloc((size_t)c->n, 1);
    int *n_tokens = xcalloc((size_t)c->n, sizeof *n_tokens), any = 0, bad = 0;
    for (int i = 0; i < c->n; i++) {
        n_tokens[i] = c->start[i + 1] - c->start[i];
        wanted[i] = !is_done(s, c->first + i, layer);
        any |= wanted[i];
    }
    if (any || layer != lane->st->last) {
        struct sh_recorder_options options = s->record;
        const struct sh_arch *a = lane->st->arch;
        int attends = sh_arch_attends(a, layer);
        const struct sh_layer_heads model = {a->n_head, a->n_kv_head};
        const struct sh_layer_heads own = {sh_arch_query_heads(a, layer), sh_arch_kv_heads(a, layer)};
        options.window = sh_arch_window(a, layer);
        options.n_head = attends ? own.query : model.query;
        options.stages = s->stages;
        options.n_threads = s->n_threads;
        struct sh_recorder *r = sh_recorder_new(&options, c->n, n_tokens, wanted);
        struct sh_tap tap = any ? sh_recorder_tap(r) : (struct sh_tap){0};
        bad = compute(lane, l, layer, c, &tap, e);
        for (int i = 0; i < c->n && !bad; i++) {
            struct sh_batch b = {.sequence = s->first_sequence + c->first + i, .layer = layer};
            if (!wanted[i])
                continue;
            sh_recorder_take(r, i, &b);
            if (attends)
                sh_recorder_say_heads(&b, &own, &model);
            else
                sh_recorder_say_silent(&b);
            for (const char *v = s->vectors; *v && attends; v++)
                take_vectors(lane, c, i, *v, &b);
            if (a->flags & SH_HAS_SINKS && attends)
                take_vectors(lane, c, i, 's', &b);
            bad = sh_writer_push(s->writer, &b, e);
        }
        sh_recorder_free(r);
        sh_hidden_rest(&lane->st->hidden, c->row0, (size_t)c->rows);
    }
    free(wanted);
    free(n_tokens);
    return bad;
}

static void *load_layer(void *argument)
{
    struct load *l = argument;
    struct state *st = l->lane->st;
    const struct sh_sweep *s = st->s;
    l->loaded = sh_layer_load(s->backend, l->lane->device, s->model, l->layer, s->dtype, s->weight_bits, &l->error);
    if (l->loaded)
        sh_experts_limit(l->loaded, st->expert_room);
    else
        sh_err_prefix(&l->error, "%s: layer %d", s->model_path, l->layer);
    return NULL;
}

static void begin_load(struct load *l, struct lane *lane, int layer, int at_once)
{
    *l = (struct load){.lane = lane, .layer = layer};
    l->is_apart = at_once && !pthread_create(&l->thread, NULL, load_layer, l);
}

/* The layer, or NULL. */
static struct sh_layer *end_load(struct load *l)
{
    if (l->is_apart)
        pthread_join(l->thread, NULL);
    else
        load_layer(l);
    return l->loaded;
}

/* After a chunk: say so, and find out whether to go on. */
static int move_on(struct lane *lane, int layer, const struct sh_chunk *c, struct sh_err *e)
{
    struct state *st = lane->st;
    char where[48];
    snprintf(where, sizeof where, "layer %d/%d", layer + 1, st->last + 1);
    pthread_mutex_lock(&st->progress);
    st->step += c->rows;
    sh_progress_at(st->s->progress, st->step, where);
    lane->was_stopped = st->stop;
    pthread_mutex_unlock(&st->progress);
    if (sh_interrupted())
        return sh_fail(e, "interrupted in layer %d of %d", layer, st->last + 1);
    return lane->was_stopped ? -1 : 0;
}

static int run_layers(struct lane *lane, struct sh_err *e)
{
    struct state *st = lane->st;
    struct load next;
    int at_once = st->layers_at_once > 1;
    begin_load(&next, lane, 0, at_once);
    for (int layer = 0; layer <= st->last; layer++) {
        struct sh_layer *l = end_load(&next);
        if (!l) {
            *e = next.error;
            return -1;
        }
        if (layer < st->last)
            begin_load(&next, lane, layer + 1, at_once);
        int bad = 0;
        lane->row = 0;
        for (int i = lane->number; i < st->chunks.n && !bad; i += st->s->n_device) {
            const struct sh_chunk *c = &st->chunks.at[i];
            bad = run_chunk(lane, l, layer, c, e) || move_on(lane, layer, c, e);
            lane->row += st->stay ? (size_t)c->rows : 0;
        }
        sh_layer_drop(l);
        if (bad) {
            if (layer < st->last && next.is_apart)
                sh_layer_drop(end_load(&next));
            return -1;
        }
    }
    return 0;
}

/* ---- neighbouring layers in several processes ---- */

/* A chunk through the layers that are here; its hidden states are the only ones in memory. */
static int pass_chunk(struct lane *lane, struct sh_layer *const *held, const struct sh_chunk *c, struct sh_err *e)
{
    struct state *st = lane->st;
    const struct sh_sweep_link *k = st->s->link;
    float *rows = sh_hidden_row(&st->hidden, 0);
    size_t bytes = (size_t)c->rows * st->hidden.row_bytes;
    if (k->first ? k->take(k->to, rows, bytes, e) : embed_chunk(st, c, e))
        return -1;
    for (int layer = k->first; layer <= k->last; layer++)
        if (run_chunk(lane, held[layer - k->first], layer, c, e) || move_on(lane, layer, c, e))
            return -1;
    return k->last < st->last ? k->give(k->to, rows, bytes, e) : 0;
}

static int run_held(struct lane *lane, struct sh_err *e)
{
    struct state *st = lane->st;
    const struct sh_sweep_link *k = st->s->link;
    int n = k->last - k->first + 1, bad = 0, loaded = 0;
    struct sh_layer **held = xcalloc((size_t)n, sizeof *held);
    while (loaded < n && !bad) {
        struct load l;
        begin_load(&l, lane, k->first + loaded, 0);
        if ((held[loaded] = end_load(&l))) {
            loaded++;
        } else {
            *e = l.error;
            bad = -1;
        }
    }
    for (int i = 0; i < st->chunks.n && !bad; i++)
        bad = pass_chunk(lane, held, &st->chunks.at[i], e);
    while (loaded > 0)
        sh_layer_drop(held[--loaded]);
    free(held);
    return bad;
}

static int open_lane(struct lane *lane, int is_host, struct sh_err *e)
{
    const struct sh_sweep *s = lane->st->s;
    const struct sh_chunks *chunks = &lane->st->chunks;
    int rows = chunks->most_rows;
    size_t held = lane->st->stay ? sh_chunks_rows(chunks, lane->number, s->n_device) : (size_t)rows;
    if (sh_activations_new(&lane->act, s->backend, lane->device, lane->st->arch, rows, s->dtype, e))
        return -1;
    if (is_host)
        return 0;
    lane->on_device = s->backend->alloc(lane->device, held * lane->st->hidden.row_bytes, e);
    return lane->on_device ? 0 : -1;
}

static void *run_lane(void *argument)
{
    struct lane *lane = argument;
    struct state *st = lane->st;
    struct sh_props props;
    st->s->backend->props(lane->device, &props);
    lane->bad = open_lane(lane, props.is_host, &lane->error) ||
                (st->s->link ? run_held(lane, &lane->error) : run_layers(lane, &lane->error));
    st->s->backend->release(lane->device, lane->on_device);
    sh_activations_free(&lane->act);
    if (lane->bad) {
        pthread_mutex_lock(&st->progress);
        st->stop = 1;
        pthread_mutex_unlock(&st->progress);
    }
    return NULL;
}

/* All lanes to their ends; the error is that of a lane that failed, not of one that was stopped. */
static int run_lanes(struct state *st, struct sh_err *e)
{
    int n = st->s->n_device, bad = 0, started = 1;
    struct lane *lane = xcalloc((size_t)n, sizeof *lane);
    for (int i = 0; i < n; i++)
        lane[i] = (struct lane){.st = st, .device = st->s->device[i], .number = i};
    while (started < n && !pthread_create(&lane[started].thread, NULL, run_lane, &lane[started]))
        started++;
    if (started < n)
        bad = sh_fail(e, "cannot start a thread for device %d of %d", started + 1, n);
    else
        run_lane(&lane[0]);
    for (int i = 1; i < started; i++)
        pthread_join(lane[i].thread, NULL);
    for (int i = 0; i < n && !bad; i++)
        if (lane[i].bad && !lane[i].was_stopped) {
            *e = lane[i].error;
            bad = -1;
        }
    free(lane);
    return bad;
}

/* In a pipeline one chunk is here at a time: all begin at row 0. */
static size_t rows_kept(struct state *st)
{
    if (!st->s->link)
        return st->chunks.n_rows;
    for (int i = 0; i < st->chunks.n; i++)
        st->chunks.at[i].row0 = 0;
    return (size_t)st->chunks.most_rows;
}

int sh_sweep_run(const struct sh_sweep *s, struct sh_err *e)
{
    struct state st = {.s = s, .arch = sh_model_arch(s->model), .last = s->link ? s->last_layer : last_needed(s)};
    struct sh_sweep_needs needs;
    if (st.last < 0)
        return 0;
    if (sh_sweep_needs(s, &needs, e))
        return -1;
    st.layers_at_once = needs.layers_at_once;
    st.stay = needs.stay;
    st.expert_room = needs.expert_room;
    sh_chunks_cut(&st.chunks, s->sequence, s->n, needs.rows);
    pthread_mutex_init(&st.progress, NULL);
    int bad = sh_hidden_new(&st.hidden, rows_kept(&st), sh_arch_row(st.arch), s->memory_bytes, s->spill_folder, e);
    for (int i = 0; i < st.chunks.n && !bad && !s->link; i++)
        bad = embed_chunk(&st, &st.chunks.at[i], e);
    if (!bad && !s->link)
        sh_model_drop(s->model, -1);
    if (!bad)
        bad = run_lanes(&st, e);
    pthread_mutex_destroy(&st.progress);
    sh_hidden_free(&st.hidden);
    sh_chunks_free(&st.chunks);
    return bad ? -1 : 0;
}
