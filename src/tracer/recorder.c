/* SPDX-License-Identifier: Apache-2.0 */
/* See recorder.h. Rows are gathered to blocks of about BLOCK_BYTES before zstd: small enough that a
 * reader needs little memory, large enough that the coder's tables cost nothing. */
#include "src/tracer/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/codec.h"

enum { BLOCK_BYTES = 1 << 20 };

struct head {                                   /* of one sequence */
    unsigned char *rows;                        /* packed rows of the block that is being gathered */
    size_t bytes, cap;
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
    size_t width;                               /* bytes of a packed score */
};

struct sh_recorder *sh_recorder_new(const struct sh_recorder_options *o, int n_seq, const int *n_tokens,
                                    const unsigned char *wanted)
{
    struct sh_recorder *r = xcalloc(1, sizeof *r);
    r->o = *o;
    r->n_seq = n_seq;
    r->n_tokens = n_tokens;
    r->wanted = wanted;
    r->head = xcalloc((size_t)n_seq * (size_t)o->n_head, sizeof *r->head);
    r->width = o->record == SH_RECORD_FULL ? sh_codec_width(o->codec) : sizeof(float);
    return r;
}

void sh_recorder_free(struct sh_recorder *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->n_seq * r->o.n_head; i++) {
        free(r->head[i].rows);
        sh_batch_clear(&r->head[i].done);
        sh_stats_free(r->head[i].stats);
    }
    free(r->head);
    free(r);
}

static void flush(struct sh_recorder *r, struct head *h, int head)
{
    if (!h->n_rows)
        return;
    struct sh_block b = {.head = head, .first_row = h->first_row, .n_rows = h->n_rows, .codec = r->o.codec};
    if (r->o.record == SH_RECORD_FULL) {
        b.bytes = sh_codec_dense(r->o.codec, h->rows, h->bytes / r->width, &b.blob);
    } else {
        b.codec |= SH_CODEC_SPARSE;
        b.bytes = sh_codec_sparse(r->o.codec, (const float *)(void *)h->rows, h->first_row, h->n_rows, 0, &b.blob);
    }
    sh_batch_add(&h->done, b);
    h->bytes = 0;
    h->n_rows = 0;
}

static void gather(struct sh_recorder *r, struct head *h, int head, int first_row, int n_rows, const void *packed)
{
    size_t bytes = sh_rows_scores(first_row, n_rows, 0) * r->width;
    if (h->bytes && h->bytes + bytes > BLOCK_BYTES)
        flush(r, h, head);
    if (h->bytes + bytes > h->cap) {
        h->cap = h->bytes + bytes > BLOCK_BYTES ? h->bytes + bytes : BLOCK_BYTES;
        h->rows = xreallocarray(h->rows, h->cap, 1);
    }
    if (!h->n_rows)
        h->first_row = first_row;
    memcpy(h->rows + h->bytes, packed, bytes);
    h->bytes += bytes;
    h->n_rows += n_rows;
}

/* Called by the backend, from any of its threads. */
static void rows(void *to, int sequence, int head, int first_row, int n_rows, const void *packed)
{
    struct sh_recorder *r = to;
    struct head *h = &r->head[sequence * r->o.n_head + head];
    int n_tokens = r->n_tokens[sequence];
    if (r->o.record != SH_RECORD_FULL) {
        const float *row = packed;
        if (!h->stats)
            h->stats = sh_stats_new(&r->o.statistics, n_tokens);
        for (int t = first_row; t < first_row + n_rows; row += ++t)
            sh_stats_row(h->stats, t, 0, row, t + 1);
    }
    if (r->o.record != SH_RECORD_SUMMARY)
        gather(r, h, head, first_row, n_rows, packed);
    if (first_row + n_rows < n_tokens)
        return;
    flush(r, h, head);                          /* the head is whole: give its memory back */
    free(h->rows);
    h->rows = NULL;
    h->cap = 0;
    if (h->stats) {
        unsigned char *plain;
        struct sh_block b = {.kind = SH_BLOCK_STATS, .head = head};
        size_t n = sh_stats_pack(h->stats, &plain);
        b.bytes = sh_codec_bytes(plain, n, &b.blob);
        sh_batch_add(&h->done, b);
        free(plain);
        sh_stats_free(h->stats);
        h->stats = NULL;
    }
}

struct sh_tap sh_recorder_tap(struct sh_recorder *r)
{
    static const enum sh_pack pack[] = {
        [SH_CODEC_F32] = SH_PACK_F32, [SH_CODEC_F16] = SH_PACK_F16, [SH_CODEC_LOG8] = SH_PACK_LOG8};
    return (struct sh_tap){.pack = r->o.record == SH_RECORD_FULL ? pack[r->o.codec] : SH_PACK_F32,
                           .rows = rows, .to = r, .wanted = r->wanted};
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
