/* SPDX-License-Identifier: Apache-2.0 */
/* See import.h. Heads are worked on in parallel, some rows at a time. */
#include "src/tracer/import.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/base/team.h"
#include "src/tracer/packer.h"
#include "traces/codec.h"

#define MASKED_MOST 1e-6f               /* what may stand where nothing should be */

const char *const sh_import_kinds[] = {"causal", "bidirectional", "cross", NULL};

struct work {                           /* a layer of a sequence */
    const struct sh_import *m;
    const struct sh_dump_part *part;
    int n_row, window;                  /* n_row: without the padding; window: as in a block */
    const struct sh_tap *tap;           /* NULL: only look */
};

struct span {                           /* rows [q0, q0 + n) of a head */
    int head, q0, n;
};

/* Nothing may stand at the keys [from, to), which the row does not see. */
static int check_masked(const struct work *w, const float *row, int from, int to, struct sh_err *e)
{
    for (int k = from; k < to; k++)
        if (!(fabsf(row[k]) <= MASKED_MOST) && w->window < 0)
            return sh_fail(e, "found %g at key %d, expected 0: the sequence has %d tokens, the rest is padding",
                           (double)row[k], k, w->n_row);
        else if (!(fabsf(row[k]) <= MASKED_MOST)) {
            sh_fail(e, "found %g at key %d, expected 0: %s", (double)row[k], k,
                    w->window > 0 ? "it is outside the window" : "it is after the query");
            return sh_hint(e, w->window > 0 ? "--window W sets how far back a query sees"
                                            : "--kind bidirectional or cross allows later keys");
        }
    return 0;
}

static int check_row(const struct work *w, const float *row, int start, int n, struct sh_err *e)
{
    double sum = 0;
    for (int k = start; k < start + n; k++) {
        if (!(row[k] >= 0))
            return sh_fail(e, "found %g at key %d, expected a number >= 0", (double)row[k], k);
        sum += (double)row[k];
    }
    if (!(fabs(sum - 1) <= w->m->tolerance)) {
        sh_fail(e, "its %d scores sum to %.6g, expected 1 within %g", n, sum, w->m->tolerance);
        for (int k = start + n; k < w->part->n_col; k++)
            sum += (double)row[k];
        return w->window > 0 ? sh_hint(e, "--window W sets how far back a query sees")
               : !w->window && fabs(sum - 1) <= w->m->tolerance
                   ? sh_hint(e, "the whole row sums to 1: for a ViT or another encoder add --kind bidirectional") : -1;
    }
    return check_masked(w, row, start + n, w->part->n_col, e) || check_masked(w, row, 0, start, e) ? -1 : 0;
}

/* Rows [q0, q0 + n) of a head: looked at, and handed out. row: [n_col], scratch. */
static int put_block(const struct work *w, struct sh_packer *packer, float *row, const struct span *at,
                     struct sh_err *e)
{
    size_t n_col = (size_t)w->part->n_col;
    if (packer)
        sh_packer_begin(packer, at->q0, at->n, w->window);
    for (int q = at->q0; q < at->q0 + at->n; q++) {
        int start = sh_row_start(q, w->window), keys = sh_row_keys(q, w->window);
        sh_dump_read(w->part, ((size_t)at->head * (size_t)w->part->n_row + (size_t)q) * n_col, n_col, row);
        if (check_row(w, row, start, keys, e))
            return sh_err_prefix(e, "%s: sequence %d, layer %d, head %d, row %d", w->part->tensor->file,
                                 w->part->sequence, w->part->layer, at->head, q);
        if (packer)
            sh_packer_row(packer, row + start);
    }
    if (packer)
        sh_packer_end(packer, at->head);
    return 0;
}

static int put_head(const struct work *w, int head, struct sh_err *e)
{
    float *row = xcalloc((size_t)w->part->n_col, sizeof *row);
    struct sh_packer *packer = w->tap ? sh_packer_new(w->tap, 0, w->m->record.codec, w->part->n_col) : NULL;
    int bad = 0;
    for (int q = 0; q < w->n_row && !bad; q += SH_PACKER_ROWS) {
        const struct span at = {head, q, w->n_row - q < SH_PACKER_ROWS ? w->n_row - q : SH_PACKER_ROWS};
        bad = put_block(w, packer, row, &at, e);
    }
    free(row);
    sh_packer_free(packer);
    return bad;
}

struct putting {
    const struct work *w;
    pthread_mutex_t lock;               /* of what follows */
    int bad_head;                       /* the first that has a fault, or -1 */
    struct sh_err *e;
};

static void put_one(void *arg, int head)
{
    struct putting *p = arg;
    struct sh_err mine;
    if (!put_head(p->w, head, &mine))
        return;
    pthread_mutex_lock(&p->lock);
    if (p->bad_head < 0 || head < p->bad_head) {
        p->bad_head = head;
        *p->e = mine;
    }
    pthread_mutex_unlock(&p->lock);
}

/* All heads; the fault of the first one that has one. */
static int put_heads(const struct work *w, struct sh_err *e)
{
    struct putting p = {.w = w, .lock = PTHREAD_MUTEX_INITIALIZER, .bad_head = -1, .e = e};
    sh_team_each(w->m->n_threads, w->part->n_head, put_one, &p);
    return p.bad_head < 0 ? 0 : -1;
}

static const struct sh_dump_part *find_vectors(const struct sh_import *m, int i, int layer, char vector)
{
    enum sh_dump_kind kind = vector == 'q' ? SH_DUMP_Q : vector == 'k' ? SH_DUMP_K : SH_DUMP_V;
    return sh_dump_find(m->dump, kind, m->dump->sequence[i].number, layer);
}

static void put_vectors(const struct sh_import *m, int i, int layer, struct sh_batch *b)
{
    enum sh_codec codec = m->record.codec == SH_CODEC_F32 ? SH_CODEC_F32 : SH_CODEC_F16;
    for (const char *v = m->vectors; *v; v++) {
        const struct sh_dump_part *p = find_vectors(m, i, layer, *v);
        size_t n = (size_t)m->sequence[i].n_tokens * (size_t)p->n_col;
        float *plain = xcalloc(n, sizeof *plain);
        unsigned char *packed = xcalloc(n, sh_codec_width(codec));
        for (int h = 0; h < p->n_head; h++) {
            struct sh_block block = {.kind = SH_BLOCK_VECTORS, .head = h, .codec = codec, .vector = *v};
            sh_dump_read(p, (size_t)h * (size_t)p->n_row * (size_t)p->n_col, n, plain);
            for (size_t k = 0; k < n; k += (size_t)p->n_col)
                sh_codec_pack(codec, packed + k * sh_codec_width(codec), plain + k, p->n_col);
            block.bytes = sh_codec_dense(codec, packed, n, &block.blob);
            sh_batch_add(b, block);
        }
        free(plain);
        free(packed);
        sh_dump_drop(p);
    }
}

/* Vectors are numbers. */
static int check_vectors(const struct sh_import *m, int i, int layer, struct sh_err *e)
{
    for (const char *v = m->vectors; *v; v++) {
        const struct sh_dump_part *p = find_vectors(m, i, layer, *v);
        float *row = xcalloc((size_t)p->n_col, sizeof *row);
        size_t n_col = (size_t)p->n_col, n_row = (size_t)p->n_head * (size_t)p->n_row, r = 0, k = n_col;
        for (; r < n_row && k == n_col; r++) {
            sh_dump_read(p, r * n_col, n_col, row);
            k = r % (size_t)p->n_row < (size_t)m->sequence[i].n_tokens ? 0 : n_col;
            while (k < n_col && isfinite(row[k]))
                k++;
        }
        int bad = 0;
        if (k < n_col)
            bad = sh_fail(e, "%s: sequence %d, layer %d, %s, head %zu, token %zu: found %g, expected a number",
                          p->tensor->file, p->sequence, layer, sh_dump_kinds[p->kind], (r - 1) / (size_t)p->n_row,
                          (r - 1) % (size_t)p->n_row, (double)row[k]);
        free(row);
        sh_dump_drop(p);
        if (bad)
            return -1;
    }
    return 0;
}

static struct work work_of(const struct sh_import *m, int i, int layer)
{
    const struct sh_dump_part *p = sh_dump_find(m->dump, SH_DUMP_ATTN, m->dump->sequence[i].number, layer);
    int n = m->sequence[i].n_tokens;
    int window = m->kind == SH_IMPORT_CROSS ? -p->n_col : m->kind == SH_IMPORT_BIDIRECTIONAL ? -n
                 : m->n_window ? m->window[layer % m->n_window] : 0;
    return (struct work){.m = m, .part = p, .n_row = n, .window = window};
}

static int record_layer(const struct sh_import *m, int i, int layer, struct sh_writer *writer, struct sh_err *e)
{
    const unsigned char wanted = 1;
    struct work w = work_of(m, i, layer);
    struct sh_recorder_options options = m->record;
    options.window = w.window;
    options.n_head = m->dump->n_head;
    struct sh_recorder *r = sh_recorder_new(&options, 1, &w.n_row, &wanted);
    struct sh_tap tap = sh_recorder_tap(r);
    w.tap = &tap;
    struct sh_batch b = {.sequence = i, .layer = layer};
    int bad = put_heads(&w, e);
    if (!bad) {
        sh_recorder_take(r, 0, &b);
        put_vectors(m, i, layer, &b);
        bad = sh_writer_push(writer, &b, e);
    }
    sh_recorder_free(r);
    sh_dump_drop(w.part);
    return bad;
}

int sh_import(const struct sh_import *m, struct sh_writer *writer, struct sh_err *e)
{
    int n_layer = m->dump->last_layer - m->dump->first_layer + 1;
    for (int i = 0; i < m->dump->n_seq; i++)
        for (int layer = m->dump->first_layer; layer <= m->dump->last_layer; layer++) {
            int at = i * n_layer + layer - m->dump->first_layer, bad = 0;
            if (writer && !m->done[at]) {
                bad = record_layer(m, i, layer, writer, e);
            } else if (!writer) {
                struct work w = work_of(m, i, layer);
                bad = put_heads(&w, e) || check_vectors(m, i, layer, e);
                sh_dump_drop(w.part);
            }
            if (bad)
                return -1;
            char where[48];
            snprintf(where, sizeof where, "sequence %d/%d", i + 1, m->dump->n_seq);
            sh_progress_at(m->progress, at + 1, where);
            if (sh_interrupted())
                return sh_fail(e, "interrupted in sequence %d, layer %d", m->dump->sequence[i].number, layer);
        }
    return 0;
}
