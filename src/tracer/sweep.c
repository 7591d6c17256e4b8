/* SPDX-License-Identifier: Apache-2.0 */
/* See sweep.h. */
#include "src/tracer/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/mem.h"
#include "src/model/layer.h"
#include "src/tracer/hidden.h"
#include "traces/codec.h"

enum { CHUNK_ROWS = 1024 };             /* tokens that go through a layer together: enough for full speed */

struct chunk {                          /* consecutive sequences */
    int first, n, rows;
    size_t row0;                        /* of the hidden states */
    int *start;                         /* [n + 1] */
};

struct state {
    const struct sh_sweep *s;
    const struct sh_arch *arch;
    struct chunk *chunk;
    int n_chunk, most_rows;
    size_t n_rows;
    struct sh_hidden hidden;
    struct sh_activations act;
    void *on_device;                    /* hidden states of one chunk; NULL: they are used where they are */
};

static void cut_into_chunks(struct state *st)
{
    const struct sh_sweep *s = st->s;
    for (int i = 0; i < s->n;) {
        struct chunk c = {.first = i, .row0 = st->n_rows, .start = xcalloc((size_t)s->n - (size_t)i + 1, sizeof(int))};
        do {
            c.rows += s->sequence[i++].n_tokens;
            c.start[++c.n] = c.rows;
        } while (i < s->n && c.rows + s->sequence[i].n_tokens <= CHUNK_ROWS);
        st->n_rows += (size_t)c.rows;
        if (c.rows > st->most_rows)
            st->most_rows = c.rows;
        st->chunk = xreallocarray(st->chunk, (size_t)st->n_chunk + 1, sizeof *st->chunk);
        st->chunk[st->n_chunk++] = c;
    }
}

static void free_chunks(struct state *st)
{
    for (int i = 0; i < st->n_chunk; i++)
        free(st->chunk[i].start);
    free(st->chunk);
}

void sh_sweep_needs(const struct sh_sweep *s, struct sh_sweep_needs *out)
{
    struct state st = {.s = s, .arch = sh_model_arch(s->model)};
    cut_into_chunks(&st);
    *out = (struct sh_sweep_needs){0};
    for (int l = 0; l <= s->last_layer; l++) {
        size_t stored = sh_model_layer_bytes(s->model, l) / sh_type_bytes(sh_model_type(s->model));
        size_t bytes = stored * sh_type_bytes(s->dtype);
        out->layer_bytes = bytes > out->layer_bytes ? bytes : out->layer_bytes;
    }
    out->activation_bytes = sh_activations_bytes(st.arch, st.most_rows, s->dtype);
    out->hidden_bytes = st.n_rows * (size_t)st.arch->d_model * sizeof(float);
    out->spills = out->hidden_bytes > s->memory_bytes;
    free_chunks(&st);
}

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

static int embed_all(struct state *st, struct sh_err *e)
{
    size_t row = 0;
    for (int i = 0; i < st->s->n; i++) {
        const struct sh_trace_sequence *q = &st->s->sequence[i];
        if (sh_embed(st->s->backend, st->s->device, st->s->model, q->tokens, q->n_tokens,
                     sh_hidden_row(&st->hidden, row), e))
            return sh_err_prefix(e, "%s: sequence %s", st->s->model_path, q->source);
        sh_hidden_rest(&st->hidden, row, (size_t)q->n_tokens);
        row += (size_t)q->n_tokens;
    }
    sh_model_drop(st->s->model, -1);
    return 0;
}

/* One of q, k, v of one sequence, head by head. */
static void take_vectors(const struct state *st, const struct chunk *c, int i, char kind, struct sh_batch *b)
{
    const struct sh_arch *a = st->arch;
    int n_head = kind == 'q' ? a->n_head : a->n_kv_head, d = a->d_head, n = c->start[i + 1] - c->start[i];
    const float *from = kind == 'q' ? st->act.q : kind == 'k' ? st->act.k : st->act.v;
    size_t width = (size_t)n_head * (size_t)d, count = (size_t)n * width;
    size_t per_head = (size_t)n * (size_t)d;
    float *host = xmalloc(count * sizeof *host), *one = xmalloc(per_head * sizeof *one);
    uint16_t *half = xmalloc(per_head * sizeof *half);
    st->s->backend->get(st->s->device, host, from + (size_t)c->start[i] * width, count * sizeof *host);
    enum sh_codec codec = st->s->record.codec == SH_CODEC_F32 ? SH_CODEC_F32 : SH_CODEC_F16;
    for (int h = 0; h < n_head; h++) {
        struct sh_block block = {.kind = SH_BLOCK_VECTORS, .head = h, .codec = codec, .vector = kind};
        for (int t = 0; t < n; t++)
            memcpy(one + (size_t)t * (size_t)d, host + (size_t)t * width + (size_t)(h * d), (size_t)d * sizeof *one);
        for (size_t k = 0; codec == SH_CODEC_F16 && k < per_head; k++)
            half[k] = sh_f32_to_f16(one[k]);
        block.bytes = sh_codec_dense(codec, codec == SH_CODEC_F16 ? (void *)half : one, per_head, &block.blob);
        sh_batch_add(b, block);
    }
    free(host);
    free(one);
    free(half);
}

/* Send one chunk through a layer and queue what it recorded. */
static int run_chunk(struct state *st, const struct sh_layer *l, int layer, const struct chunk *c, int is_last,
                     struct sh_err *e)
{
    const struct sh_sweep *s = st->s;
    size_t bytes = (size_t)c->rows * st->hidden.row_bytes;
    unsigned char *wanted = xcalloc((size_t)c->n, 1);
    int *n_tokens = xcalloc((size_t)c->n, sizeof *n_tokens), any = 0, bad = 0;
    for (int i = 0; i < c->n; i++) {
        n_tokens[i] = c->start[i + 1] - c->start[i];
        wanted[i] = !is_done(s, c->first + i, layer);
        any |= wanted[i];
    }
    if (any || !is_last) {
        struct sh_recorder *r = sh_recorder_new(&s->record, c->n, n_tokens, wanted);
        struct sh_tap tap = any ? sh_recorder_tap(r) : (struct sh_tap){0};
        float *here = sh_hidden_row(&st->hidden, c->row0);
        if (st->on_device)
            s->backend->put(s->device, st->on_device, here, bytes);
        sh_layer_run(l, &st->act, st->on_device ? st->on_device : here, c->n, c->start, &tap, is_last);
        if (st->on_device && !is_last)
            s->backend->get(s->device, here, st->on_device, bytes);
        bad = s->backend->sync(s->device, e);
        if (bad)
            sh_err_prefix(e, "%s: layer %d, from sequence %s on", s->model_path, layer,
                          s->sequence[c->first].source);
        for (int i = 0; i < c->n && !bad; i++) {
            struct sh_batch b = {.sequence = c->first + i, .layer = layer};
            if (!wanted[i])
                continue;
            sh_recorder_take(r, i, &b);
            for (const char *v = s->vectors; *v; v++)
                take_vectors(st, c, i, *v, &b);
            bad = sh_writer_push(s->writer, &b, e);
        }
        sh_recorder_free(r);
        sh_hidden_rest(&st->hidden, c->row0, (size_t)c->rows);
    }
    free(wanted);
    free(n_tokens);
    return bad;
}

static int run_layers(struct state *st, int last, struct sh_err *e)
{
    const struct sh_sweep *s = st->s;
    double step = 0;
    for (int layer = 0; layer <= last; layer++) {
        struct sh_layer *l = sh_layer_load(s->backend, s->device, s->model, layer, s->dtype, e);
        if (!l)
            return sh_err_prefix(e, "%s: layer %d", s->model_path, layer);
        int bad = 0;
        for (int i = 0; i < st->n_chunk && !bad; i++) {
            char where[48];
            bad = run_chunk(st, l, layer, &st->chunk[i], layer == last, e);
            if (!bad && sh_interrupted())
                bad = sh_fail(e, "interrupted in layer %d of %d", layer, last + 1);
            step += st->chunk[i].rows;
            snprintf(where, sizeof where, "layer %d/%d", layer + 1, last + 1);
            sh_progress_at(s->progress, step, where);
        }
        sh_layer_drop(l);
        if (bad)
            return -1;
    }
    return 0;
}

int sh_sweep_run(const struct sh_sweep *s, struct sh_err *e)
{
    int last = last_needed(s);
    if (last < 0)
        return 0;
    struct state st = {.s = s, .arch = sh_model_arch(s->model)};
    cut_into_chunks(&st);
    int bad = sh_hidden_new(&st.hidden, st.n_rows, (size_t)st.arch->d_model, s->memory_bytes, s->spill_folder, e);
    if (!bad)
        bad = sh_activations_new(&st.act, s->backend, s->device, st.arch, st.most_rows, s->dtype, e);
    struct sh_props props;
    s->backend->props(s->device, &props);
    if (!bad && !props.is_host)
        bad = !(st.on_device = s->backend->alloc(s->device, (size_t)st.most_rows * st.hidden.row_bytes, e));
    if (!bad)
        bad = embed_all(&st, e);
    if (!bad)
        bad = run_layers(&st, last, e);
    s->backend->release(s->device, st.on_device);
    sh_activations_free(&st.act);
    sh_hidden_free(&st.hidden);
    free_chunks(&st);
    return bad ? -1 : 0;
}
