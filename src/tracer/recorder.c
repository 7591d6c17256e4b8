/* SPDX-License-Identifier: Apache-2.0 */
/* See recorder.h. Rows are gathered to blocks of about BLOCK_BYTES, unless the options say otherwise, before zstd:
 * small enough that a reader needs little memory, large enough that the coder's tables cost nothing. Rows of a sparse
 * block count as what they are in a reader's hands, f32; meanwhile only what will be stored is kept. */
#include "src/tracer/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/codec.h"

enum { BLOCK_BYTES = 1 << 20 };

_Static_assert(SH_STATS_MAX_LANES <= SH_MAX_LANES, "a backend takes all lanes that statistics can have");

struct head {                                   /* of one sequence */
    unsigned char *rows;                        /* full: packed rows of the block being gathered   */
    size_t cap;
    struct sh_codec_sparse *sparse;             /* sparse: the same                                */
    size_t bytes;                               /* of the block's rows                             */
    int first_row, n_rows;
    struct sh_batch done;
    struct sh_stats *stats;
};

struct sh_recorder {
    struct sh_recorder_options o;
    int n_seq;
    const int *n_tokens;
    const unsigned char *wanted;
    struct head *head;                          /* [n_seq, n_head] */
    size_t width;                               /* bytes of a score in a block's rows */
    struct sh_lanes *lanes;                     /* [n_seq]; NULL: no statistics are taken */
    struct sh_tap sets;                         /* of a full record with statistics */
};

void sh_recorder_thresholds(enum sh_record record, enum sh_codec codec, int named, struct sh_stats_spec *spec)
{
    int n = 0;
    if (record == SH_RECORD_FULL && (!named || codec != SH_CODEC_LOG8))
        spec->n_alpha = 0;
    for (int i = 0; i < spec->n_alpha; i++)
        if (record == SH_RECORD_SUMMARY || !(record == SH_RECORD_SPARSE ? sh_stats_sparse_can(&spec->alpha[i])
                                                                        : sh_stats_log8_can(&spec->alpha[i])))
            spec->alpha[n++] = spec->alpha[i];
    spec->n_alpha = n;
}

/* An empty block, which says something of the layer. */
static void say(struct sh_batch *b, char what, int n)
{
    struct sh_block block = {.kind = SH_BLOCK_VECTORS, .head = n, .codec = SH_CODEC_F32, .vector = what};
    block.bytes = sh_codec_bytes("", 0, SH_BYTES_RECORDS, &block.blob);
    sh_batch_add(b, block);
}

void sh_recorder_say_silent(struct sh_batch *b)
{
    say(b, 'n', 0);
}

void sh_recorder_say_heads(struct sh_batch *b, const struct sh_layer_heads *layer, const struct sh_layer_heads *model)
{
    if (layer->query < model->query)
        say(b, 'a', layer->query);
    if (layer->kv < model->kv)
        say(b, 'h', layer->kv);
}

static struct sh_lanes *lanes_of(const struct sh_recorder *r)
{
    struct sh_lanes *lanes = xcalloc((size_t)r->n_seq, sizeof *lanes);
    for (int i = 0; i < r->n_seq; i++) {
        struct sh_stats_limit limit[SH_STATS_MAX_LANES];
        lanes[i].n = sh_stats_limits(&r->o.statistics, r->n_tokens[i], limit);
        lanes[i].values = r->o.record == SH_RECORD_SPARSE;
        for (int k = 0; k < lanes[i].n; k++)
            lanes[i].lane[k] = (struct sh_lane){limit[k].value, limit[k].per_key};
    }
    return lanes;
}

struct sh_recorder *sh_recorder_new(const struct sh_recorder_options *o, int n_seq, const int *n_tokens,
                                    const unsigned char *wanted)
{
    struct sh_recorder *r = xcalloc(1, sizeof *r);
    r->o = *o;
    r->o.block_bytes = o->block_bytes ? o->block_bytes : BLOCK_BYTES;
    r->n_seq = n_seq;
    r->n_tokens = n_tokens;
    r->wanted = wanted;
    r->head = xcalloc((size_t)n_seq * (size_t)o->n_head, sizeof *r->head);
    r->width = o->record == SH_RECORD_FULL ? sh_codec_width(o->codec) : sizeof(float);
    r->lanes = o->record == SH_RECORD_FULL && !sh_stats_n_lane(&o->statistics) ? NULL : lanes_of(r);
    return r;
}

/* Memory that is only needed until the head's last row. */
static void drop_work(struct head *h)
{
    free(h->rows);
    h->rows = NULL;
    h->cap = 0;
    sh_codec_sparse_free(h->sparse);
    h->sparse = NULL;
    sh_stats_free(h->stats);
    h->stats = NULL;
}

void sh_recorder_free(struct sh_recorder *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->n_seq * r->o.n_head; i++) {
        drop_work(&r->head[i]);
        sh_batch_clear(&r->head[i].done);
    }
    free(r->head);
    free(r->lanes);
    free(r);
}

static unsigned long long end_stage(const struct sh_recorder *r, enum sh_stage stage, unsigned long long since)
{
    return sh_stage_end(r->o.stages, stage, since, sh_stage_sharers(r->o.stages, r->o.n_threads));
}

static void flush(struct sh_recorder *r, struct head *h, int head)
{
    if (!h->n_rows)
        return;
    struct sh_block b = {.head = head, .first_row = h->first_row, .n_rows = h->n_rows, .window = r->o.window,
                         .codec = (int)r->o.codec};
    if (r->o.record == SH_RECORD_FULL) {
        b.bytes = sh_codec_dense(r->o.codec, h->rows, h->bytes / r->width, &b.blob);
    } else {
        b.codec |= SH_CODEC_SPARSE;
        b.bytes = sh_codec_sparse_end(h->sparse, &b.blob);
    }
    sh_batch_add(&h->done, b);
    h->bytes = 0;
    h->n_rows = 0;
}

/* Count rows into the block that is being gathered, or into a new one when they would make it too long. */
static size_t enter(struct sh_recorder *r, struct head *h, int head, int first_row, int n_rows)
{
    size_t bytes = sh_rows_scores(first_row, n_rows, r->o.window) * r->width;
    if (h->bytes && h->bytes + bytes > r->o.block_bytes)
        flush(r, h, head);
    if (!h->n_rows)
        h->first_row = first_row;
    h->bytes += bytes;
    h->n_rows += n_rows;
    return bytes;
}

static void take_packed(struct sh_recorder *r, struct head *h, int head, int first_row, int n_rows, const void *packed)
{
    unsigned long long since = sh_stage_begin(r->o.stages);
    size_t bytes = enter(r, h, head, first_row, n_rows);
    if (h->bytes > h->cap) {
        h->cap = h->bytes > r->o.block_bytes ? h->bytes : r->o.block_bytes;
        h->rows = xreallocarray(h->rows, h->cap, 1);
    }
    memcpy(h->rows + h->bytes - bytes, packed, bytes);
    end_stage(r, SH_STAGE_COMPRESSION, since);
}

static void take_sets(struct sh_recorder *r, struct head *h, int sequence, int first_row, int n_rows,
                      const struct sh_row_sets *sets)
{
    size_t n_lane = (size_t)r->lanes[sequence].n, n_word = (size_t)sets->n_word;
    const uint64_t *bits = sets->bits;
    if (!h->stats)
        h->stats = sh_stats_new(&r->o.statistics, r->n_tokens[sequence]);
    unsigned long long since = sh_stage_begin(r->o.stages);
    for (int i = 0; i < n_rows; i++, bits += (n_lane + 1) * n_word) {
        int q = first_row + i, start = sh_row_start(q, r->o.window);
        sh_stats_row_sets(h->stats, q, start, bits, sets->first_word, sets->n_word, &sets->figures[i]);
    }
    end_stage(r, SH_STAGE_STATISTICS, since);
}

static void take_sparse(struct sh_recorder *r, struct head *h, int sequence, int head, int first_row, int n_rows,
                        const struct sh_row_sets *sets)
{
    size_t n_lane = (size_t)r->lanes[sequence].n, n_word = (size_t)sets->n_word;
    const uint64_t *low = sets->bits + n_lane * n_word;
    const float *value = sets->value;
    unsigned long long since = sh_stage_begin(r->o.stages);
    if (!h->sparse)
        h->sparse = sh_codec_sparse_new(r->o.codec);
    for (int i = 0; i < n_rows; i++, low += (n_lane + 1) * n_word) {
        int q = first_row + i, start = sh_row_start(q, r->o.window);
        enter(r, h, head, q, 1);
        value = sh_codec_sparse_row(h->sparse, start, q + 1 - start, low, sets->first_word, value,
                                    sets->figures[i].low_mass);
    }
    end_stage(r, SH_STAGE_COMPRESSION, since);
}

/* Statistics that lack a row are left out: a reader of the head is told that it has none. */
static void end_head(struct sh_recorder *r, struct head *h, int head)
{
    unsigned char *plain;
    struct sh_block b = {.kind = SH_BLOCK_STATS, .head = head};
    unsigned long long since = sh_stage_begin(r->o.stages);
    size_t n = h->stats ? sh_stats_pack(h->stats, &plain) : 0;
    if (h->stats)
        since = end_stage(r, SH_STAGE_STATISTICS, since);
    if (n) {
        b.bytes = sh_codec_bytes(plain, n, SH_BYTES_RECORDS, &b.blob);
        end_stage(r, SH_STAGE_COMPRESSION, since);
        sh_batch_add(&h->done, b);
        free(plain);
    }
    drop_work(h);
}

/* Called by the backend, from any of its threads. */
static void rows(void *to, int sequence, int head, int first_row, int n_rows, const void *packed)
{
    struct sh_recorder *r = to;
    struct head *h = &r->head[sequence * r->o.n_head + head];
    int is_full = r->o.record == SH_RECORD_FULL;
    if (is_full)
        take_packed(r, h, head, first_row, n_rows, packed);
    else
        take_sets(r, h, sequence, first_row, n_rows, packed);
    if (r->o.record == SH_RECORD_SPARSE)
        take_sparse(r, h, sequence, head, first_row, n_rows, packed);
    if (first_row + n_rows < r->n_tokens[sequence])
        return;
    unsigned long long since = sh_stage_begin(r->o.stages);
    flush(r, h, head);                          /* the head is whole, except for sets that come separately */
    end_stage(r, SH_STAGE_COMPRESSION, since);
    if (!is_full || !r->lanes)
        end_head(r, h, head);
}

/* A full record's sets come after the rows themselves. */
static void also_sets(void *to, int sequence, int head, int first_row, int n_rows, const void *sets)
{
    struct sh_recorder *r = to;
    struct head *h = &r->head[sequence * r->o.n_head + head];
    take_sets(r, h, sequence, first_row, n_rows, sets);
    if (first_row + n_rows == r->n_tokens[sequence])
        end_head(r, h, head);
}

struct sh_tap sh_recorder_tap(struct sh_recorder *r)
{
    static const enum sh_pack pack[] = {
        [SH_CODEC_F32] = SH_PACK_F32, [SH_CODEC_F16] = SH_PACK_F16, [SH_CODEC_LOG8] = SH_PACK_LOG8};
    struct sh_tap sets = {.pack = SH_PACK_SETS, .lanes = r->lanes, .rows = rows, .to = r, .wanted = r->wanted};
    if (r->o.record != SH_RECORD_FULL)
        return sets;
    r->sets = sets;
    r->sets.rows = also_sets;
    return (struct sh_tap){.pack = pack[r->o.codec], .rows = rows, .to = r, .wanted = r->wanted,
                           .also = r->lanes ? &r->sets : NULL};
}

void sh_recorder_end(struct sh_recorder *r, int sequence)
{
    for (int i = 0; i < r->o.n_head; i++) {
        struct head *h = &r->head[sequence * r->o.n_head + i];
        flush(r, h, i);
        end_head(r, h, i);
    }
}

void sh_recorder_take(struct sh_recorder *r, int sequence, struct sh_batch *b)
{
    for (int i = 0; i < r->o.n_head; i++) {
        struct sh_batch *done = &r->head[sequence * r->o.n_head + i].done;
        for (int k = 0; k < done->n_block; k++)
            sh_batch_add(b, done->block[k]);
        done->n_block = 0;                      /* the blobs have moved */
    }
}
