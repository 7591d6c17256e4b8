/* SPDX-License-Identifier: Apache-2.0 */
/* See record_layer.h. Sets depend on the sequence's length. So a sequence that grows keeps its rows as f32 until the
 * end, and they are packed again then, where the run has statistics. */
#include "src/app/record/record_layer.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/row_codes.h"
#include "src/base/team.h"
#include "src/tracer/packer.h"
#include "traces/codec.h"

enum { BLOCK_BYTES = 128 << 10 };       /* of rows: every head of every layer of a growing sequence has some */

#define TOLERANCE 0.01                  /* of a row's sum, as for imported 16-bit scores */

static const char kinds[] = "qkvs";

struct kept {                           /* a block in the spool */
    struct sh_block block;
    uint64_t at;
};

struct piece {                          /* vectors in the spool, as stored: [n_head of the kind, n_row, width] */
    int kind, n_row;                    /* kind: index of `kinds`                                  */
    uint64_t at;
};

struct sh_record_layer {
    const struct sh_record_setup *s;
    int grows, window, rows, n_tokens;
    int is_broken;                      /* rows of some heads only have come                       */
    struct sh_recorder *recorder;       /* NULL: no row has come                                   */
    int n_head;                         /* query heads, once a row has come                        */
    struct sh_recorder_options options; /* the recorder's                                          */
    struct sh_tap tap;
    struct kept *kept;
    struct piece *piece;
    int n_kept, n_piece;
    int own_heads[4], vector_rows[4];   /* by kind                                                 */
};

struct sh_record_layer *sh_record_layer_new(const struct sh_record_setup *s, int grows)
{
    struct sh_record_layer *l = xcalloc(1, sizeof *l);
    l->s = s;
    l->grows = grows;
    return l;
}

void sh_record_layer_free(struct sh_record_layer *l)
{
    if (!l)
        return;
    sh_recorder_free(l->recorder);
    free(l->kept);
    free(l->piece);
    free(l);
}

/* ---- rows ---- */

static int repacks(const struct sh_record_layer *l)
{
    return l->grows && l->s->record.record != SH_RECORD_FULL;
}

static void begin(struct sh_record_layer *l, int window, int n_head, int n_tokens)
{
    static const unsigned char wanted = 1;
    l->window = window;
    l->n_head = n_head;
    l->n_tokens = l->grows ? INT_MAX : n_tokens;
    l->options = l->s->record;
    l->options.window = window;
    l->options.n_head = l->n_head;
    l->options.block_bytes = BLOCK_BYTES;
    if (repacks(l)) {
        l->options.record = SH_RECORD_FULL;
        l->options.codec = SH_CODEC_F32;
        l->options.statistics.n_alpha = 0;
    }
    l->recorder = sh_recorder_new(&l->options, 1, &l->n_tokens, &wanted);
    l->tap = sh_recorder_tap(l->recorder);
}

static int check_rows(const struct sh_record_layer *l, const struct sh_recording_rows *r, int n_tokens,
                      struct sh_err *e)
{
    int last = r->first_row + r->n_row - 1, first_seen = sh_row_start(r->first_row, r->window);
    if (l->is_broken)
        return sh_misused(e, "found more rows, expected none after rows that were refused");
    if (r->n_row < 1 || r->first_row != l->rows || r->n_row > n_tokens - l->rows)
        return sh_misused(e, "found %d rows from %d on, expected rows from %d on, at most %d", r->n_row, r->first_row,
                          l->rows, n_tokens - l->rows);
    int most = l->s->n_head, n_head = r->n_head ? r->n_head : most, queries = l->recorder ? l->n_head : l->own_heads[0];
    if (n_head < 1 || n_head > most || (queries && n_head != queries))
        return sh_misused(e, "found rows of %d query heads, expected %s%d%s", n_head, queries ? "" : "1 to ",
                          queries ? queries : most, queries ? " as before" : "");
    if (l->recorder && r->window != l->window)
        return sh_misused(e, "found the window %d, expected %d as before", r->window, l->window);
    if (l->s->orderless ? r->window >= 0 : r->window < 0)
        return sh_misused(e, "found the window %d, expected %s", r->window,
                          l->s->orderless ? "less than 0: the run is not causal" : "0 or more: the run is causal");
    if (r->window < 0 ? r->first_key != 0 || r->n_key != -r->window
                      : r->first_key < 0 || r->first_key > first_seen || r->n_key < 1 ||
                        r->n_key - 1 < last - r->first_key)
        return sh_misused(e, "found %d keys from %d on, expected those that rows %d to %d see with the window %d",
                          r->n_key, r->first_key, r->first_row, last, r->window);
    if (r->form == SH_RECORDING_LOG8 &&
        (l->s->record.record != SH_RECORD_FULL || l->s->record.codec != SH_CODEC_LOG8))
        return sh_misused(e, "found log8 codes, expected scores: codes require record full and codec log8");
    if (l->rows && !r->sink != !l->vector_rows[3])
        return sh_misused(e, "found rows %s a sink, expected them %s it as before", r->sink ? "with" : "without",
                          r->sink ? "without" : "with");
    return 0;
}

static int check_row(const struct sh_recording_rows *r, int q, const float *score, int start, int keys,
                     struct sh_err *e)
{
    double sum;
    if (sh_row_total(score, keys, &sum))
        for (int k = 0; k < keys; k++)
            if (!(score[k] >= 0))
                return sh_fail(e, "row %d: found %g at key %d, expected a number >= 0", q, (double)score[k], start + k);
    if (r->sink ? !(sum <= 1 + TOLERANCE) : !(fabs(sum - 1) <= TOLERANCE))
        return sh_fail(e, "row %d: its %d scores sum to %.6g, expected 1 within %g", q, keys, sum, TOLERANCE);
    return 0;
}

struct putting {                        /* rows of all heads, by several threads */
    struct sh_record_layer *l;
    const struct sh_recording_rows *r;
    pthread_mutex_t lock;               /* of what follows */
    int bad_head;                       /* the first that has a fault, or -1 */
    struct sh_err *e;
};

static void note_fault(struct putting *p, int head, struct sh_err *mine)
{
    pthread_mutex_lock(&p->lock);
    if (p->bad_head < 0 || head < p->bad_head) {
        p->bad_head = head;
        sh_err_prefix(mine, "head %d", head);
        *p->e = *mine;
    }
    pthread_mutex_unlock(&p->lock);
}

static void put_codes(const struct putting *p, int head)
{
    const struct sh_recording_rows *r = p->r;
    const unsigned char *from = (const unsigned char *)r->at + (size_t)head * (size_t)r->n_row * (size_t)r->n_key;
    unsigned char *packed = xmalloc(sh_rows_scores(r->first_row, r->n_row, r->window)), *to = packed;
    for (int q = r->first_row; q < r->first_row + r->n_row; q++, from += r->n_key) {
        size_t keys = (size_t)sh_row_keys(q, r->window);
        memcpy(to, from + sh_row_start(q, r->window) - r->first_key, keys);
        to += keys;
    }
    p->l->tap.rows(p->l->tap.to, 0, head, r->first_row, r->n_row, packed);
    free(packed);
}

/* Scores whose logits are known, as codes. */
static int put_logits(const struct putting *p, int head, struct sh_err *e)
{
    const struct sh_recording_rows *r = p->r;
    size_t from = (size_t)head * (size_t)r->n_row * (size_t)r->n_key;
    unsigned char *packed = xmalloc(sh_rows_scores(r->first_row, r->n_row, r->window)), *to = packed;
    int bad = 0;
    for (int q = r->first_row; q < r->first_row + r->n_row && !bad; q++, from += (size_t)r->n_key) {
        int start = sh_row_start(q, r->window), keys = sh_row_keys(q, r->window);
        const float *score = (const float *)r->at + from + start - r->first_key;
        bad = check_row(r, q, score, start, keys, e);
        sh_row_codes(to, r->logit + from + start - r->first_key, score, keys);
        to += keys;
    }
    if (!bad)
        p->l->tap.rows(p->l->tap.to, 0, head, r->first_row, r->n_row, packed);
    free(packed);
    return bad;
}

static int put_scores(const struct putting *p, int head, struct sh_err *e)
{
    const struct sh_recording_rows *r = p->r;
    const float *from = (const float *)r->at + (size_t)head * (size_t)r->n_row * (size_t)r->n_key;
    struct sh_packer *packer = sh_packer_new(&p->l->tap, 0, p->l->options.codec, r->n_key);
    int bad = 0, end = r->first_row + r->n_row;
    for (int q0 = r->first_row; q0 < end && !bad; q0 += SH_PACKER_ROWS) {
        int n = end - q0 < SH_PACKER_ROWS ? end - q0 : SH_PACKER_ROWS;
        sh_packer_begin(packer, q0, n, r->window);
        for (int q = q0; q < q0 + n && !bad; q++, from += r->n_key) {
            int start = sh_row_start(q, r->window);
            const float *score = from + start - r->first_key;
            bad = check_row(r, q, score, start, sh_row_keys(q, r->window), e);
            if (!bad)
                sh_packer_row(packer, score);
        }
        if (!bad)
            sh_packer_end(packer, head);
    }
    sh_packer_free(packer);
    return bad;
}

static void put_head(void *arg, int head)
{
    struct putting *p = arg;
    struct sh_err mine = {0};
    int is_log8 = p->l->tap.pack == SH_PACK_LOG8;
    if (p->r->form == SH_RECORDING_LOG8)
        put_codes(p, head);
    else if ((p->r->logit && is_log8 ? put_logits : put_scores)(p, head, &mine))
        note_fault(p, head, &mine);
}

/* Finished blocks to the spool. */
static int spool_blocks(struct sh_record_layer *l, struct sh_err *e)
{
    struct sh_batch b = {0};
    int bad = 0;
    sh_recorder_take(l->recorder, 0, &b);
    if (b.n_block)
        l->kept = xreallocarray(l->kept, (size_t)(l->n_kept + b.n_block), sizeof *l->kept);
    for (int i = 0; i < b.n_block && !bad; i++) {
        struct kept *k = &l->kept[l->n_kept];
        *k = (struct kept){.block = b.block[i]};
        k->block.blob = NULL;
        bad = sh_spool_put(l->s->spool, b.block[i].blob, b.block[i].bytes, &k->at, e);
        l->n_kept += !bad;
    }
    sh_batch_clear(&b);
    return bad;
}

static int keep_piece(struct sh_record_layer *l, int kind, int n_row, const void *from, size_t bytes, struct sh_err *e)
{
    l->piece = xreallocarray(l->piece, (size_t)l->n_piece + 1, sizeof *l->piece);
    struct piece *p = &l->piece[l->n_piece];
    *p = (struct piece){.kind = kind, .n_row = n_row};
    if (sh_spool_put(l->s->spool, from, bytes, &p->at, e))
        return -1;
    l->n_piece++;
    l->vector_rows[kind] += n_row;
    return 0;
}

int sh_record_layer_rows(struct sh_record_layer *l, const struct sh_recording_rows *r, int n_tokens, struct sh_err *e)
{
    if (check_rows(l, r, n_tokens, e))
        return -1;
    if (!l->recorder)
        begin(l, r->window, r->n_head ? r->n_head : l->s->n_head, n_tokens);
    struct putting p = {.l = l, .r = r, .lock = PTHREAD_MUTEX_INITIALIZER, .bad_head = -1, .e = e};
    sh_team_each(l->s->n_threads, l->n_head, put_head, &p);
    if (p.bad_head >= 0) {
        l->is_broken = 1;
        return -1;
    }
    l->own_heads[3] = l->n_head;
    size_t bytes = (size_t)l->n_head * (size_t)r->n_row * sizeof *r->sink;
    l->rows += r->n_row;
    return spool_blocks(l, e) || (r->sink && keep_piece(l, 3, r->n_row, r->sink, bytes, e)) ? -1 : 0;
}

/* ---- vectors ---- */

static enum sh_codec codec_of(const struct sh_record_layer *l, int kind)
{
    return kinds[kind] == 's' || l->s->record.codec == SH_CODEC_F32 ? SH_CODEC_F32 : SH_CODEC_F16;
}

static int check_vectors(const struct sh_record_layer *l, const struct sh_recording_vectors *v, int kind, int n_tokens,
                         struct sh_err *e)
{
    const struct sh_record_setup *s = l->s;
    if (kind < 0)
        return sh_misused(e, "found vectors '%c', expected those of the run: \"%s\"", v->kind, s->vectors);
    int is_query = v->kind == 'q', most = is_query ? s->n_head : s->n_kv_head;
    int before = is_query && l->recorder ? l->n_head : l->own_heads[kind];
    if (v->n_row < 1 || v->n_row > n_tokens - l->vector_rows[kind])
        return sh_misused(e, "%c: found vectors of %d tokens, expected 1 to %d", v->kind, v->n_row,
                          n_tokens - l->vector_rows[kind]);
    if (v->n_head < 1 || v->n_head > most || (!is_query && most % v->n_head) || (before && v->n_head != before))
        return sh_misused(e, "%c: found %d heads, expected %s%d%s", v->kind, v->n_head,
                          before || !is_query ? "" : "1 to ", before ? before : most,
                          before ? " as before" : is_query ? "" : " or a divisor");
    if (v->width < 1 || v->width > s->d_head)
        return sh_misused(e, "%c: found %d numbers in each vector, expected at most %d", v->kind, v->width, s->d_head);
    size_t n = (size_t)v->n_head * (size_t)v->n_row * (size_t)v->width;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(v->at[i]))
            return sh_fail(e, "%c: token %d: found %g, expected a number", v->kind,
                           l->vector_rows[kind] + (int)(i / (size_t)v->width % (size_t)v->n_row), (double)v->at[i]);
    return 0;
}

int sh_record_layer_vectors(struct sh_record_layer *l, const struct sh_recording_vectors *v, int n_tokens,
                            struct sh_err *e)
{
    const char *found = v->kind && strchr(l->s->vectors, v->kind) ? strchr(kinds, v->kind) : NULL;
    int kind = found ? (int)(found - kinds) : -1;
    if (check_vectors(l, v, kind, n_tokens, e))
        return -1;
    enum sh_codec codec = codec_of(l, kind);
    size_t rows = (size_t)v->n_head * (size_t)v->n_row, width = sh_codec_width(codec);
    size_t row_bytes = (size_t)l->s->d_head * width;
    unsigned char *packed = xcalloc(rows, row_bytes);       /* zeros after a narrow vector */
    for (size_t i = 0; i < rows; i++)
        sh_codec_pack(codec, packed + i * row_bytes, v->at + i * (size_t)v->width, v->width);
    l->own_heads[kind] = v->n_head;
    int bad = keep_piece(l, kind, v->n_row, packed, rows * row_bytes, e);
    free(packed);
    return bad;
}

/* ---- the end ---- */

int sh_record_layer_is_empty(const struct sh_record_layer *l)
{
    return !l || (!l->rows && !l->n_piece && !l->is_broken);
}

/* Those of its keys or values; without these the model's. */
static int kv_heads(const struct sh_record_layer *l)
{
    int own = l->own_heads[1] ? l->own_heads[1] : l->own_heads[2];
    return own ? own : l->s->n_kv_head;
}

int sh_record_layer_check(const struct sh_record_layer *l, int n_tokens, struct sh_err *e)
{
    if (l->is_broken)
        return sh_misused(e, "rows of this layer were refused, expected all rows of the sequence");
    if (l->rows != n_tokens)
        return sh_misused(e, "found %d rows, expected %d: one for each token", l->rows, n_tokens);
    if (l->n_head % kv_heads(l))
        return sh_misused(e, "found %d query heads and %d KV heads, expected a multiple", l->n_head, kv_heads(l));
    for (const char *v = l->s->vectors; *v; v++) {
        int have = l->vector_rows[strchr(kinds, *v) - kinds];
        if (have != n_tokens)
            return sh_misused(e, "found vectors %c of %d tokens, expected %d", *v, have, n_tokens);
    }
    return 0;
}

/* All vectors of a kind to the batch, head by head. */
static int take_vectors(const struct sh_record_layer *l, int kind, int n_tokens, struct sh_batch *b, struct sh_err *e)
{
    enum sh_codec codec = codec_of(l, kind);
    int n_own = l->own_heads[kind], n_head = kinds[kind] == 'k' || kinds[kind] == 'v' ? l->s->n_kv_head : n_own;
    size_t row_bytes = sh_codec_width(codec) * (size_t)(kinds[kind] == 's' ? 1 : l->s->d_head);
    size_t head_bytes = (size_t)n_tokens * row_bytes, row = 0;
    unsigned char *all = xmalloc((size_t)n_own * head_bytes), *part = xmalloc((size_t)n_own * head_bytes);
    int bad = 0;
    for (int i = 0; i < l->n_piece && !bad; i++) {
        const struct piece *p = &l->piece[i];
        size_t bytes = (size_t)p->n_row * row_bytes;
        if (p->kind != kind)
            continue;
        bad = sh_spool_get(l->s->spool, part, (size_t)n_own * bytes, p->at, e);
        for (int h = 0; h < n_own && !bad; h++)
            memcpy(all + (size_t)h * head_bytes + row * row_bytes, part + (size_t)h * bytes, bytes);
        row += (size_t)p->n_row;
    }
    for (int h = 0; h < n_head && !bad; h++) {
        struct sh_block block = {.kind = SH_BLOCK_VECTORS, .head = h, .codec = codec, .vector = kinds[kind]};
        block.bytes = sh_codec_dense(codec, all + (size_t)(h * n_own / n_head) * head_bytes,
                                     head_bytes / sh_codec_width(codec), &block.blob);
        sh_batch_add(b, block);
    }
    free(all);
    free(part);
    return bad;
}

static int read_block(const struct sh_record_layer *l, const struct kept *k, struct sh_block *to, struct sh_err *e)
{
    *to = k->block;
    to->blob = xmalloc(to->bytes + 1);
    int bad = sh_spool_get(l->s->spool, to->blob, to->bytes, k->at, e);
    if (bad)
        free(to->blob);
    return bad;
}

struct repacking {                      /* of one head */
    struct sh_packer *packer;
    int head, n_tokens, window;
};

static int repack_row(void *to, const struct sh_row *row)
{
    struct repacking *r = to;
    int in_block = row->q % SH_PACKER_ROWS, left = r->n_tokens - row->q;
    if (!in_block)
        sh_packer_begin(r->packer, row->q, left < SH_PACKER_ROWS ? left : SH_PACKER_ROWS, r->window);
    sh_packer_row(r->packer, row->score);
    if (in_block == SH_PACKER_ROWS - 1 || left == 1)
        sh_packer_end(r->packer, r->head);
    return 0;
}

struct repack {
    struct putting p;
    struct sh_tap tap;
    int n_tokens;
};

static void repack_head(void *arg, int head)
{
    struct repack *a = arg;
    const struct sh_record_layer *l = a->p.l;
    struct repacking r = {sh_packer_new(&a->tap, 0, l->s->record.codec, sh_row_keys(a->n_tokens - 1, l->window)), head,
                          a->n_tokens, l->window};
    struct sh_err mine = {0};
    int bad = 0;
    for (int i = 0; i < l->n_kept && !bad; i++) {
        struct sh_block b;
        if (l->kept[i].block.head != head || (bad = read_block(l, &l->kept[i], &b, &mine)))
            continue;
        bad = sh_codec_rows(&b, repack_row, &r, &mine);
        free(b.blob);
    }
    sh_packer_free(r.packer);
    if (bad)
        note_fault(&a->p, head, &mine);
}

/* The rows as the run wants them, now that the length is known. */
static int repack(struct sh_record_layer *l, int n_tokens, struct sh_batch *b, struct sh_err *e)
{
    static const unsigned char wanted = 1;
    struct sh_recorder_options options = l->s->record;
    options.window = l->window;
    options.n_head = l->n_head;
    struct sh_recorder *recorder = sh_recorder_new(&options, 1, &n_tokens, &wanted);
    struct repack a = {.p = {.l = l, .lock = PTHREAD_MUTEX_INITIALIZER, .bad_head = -1, .e = e},
                       .tap = sh_recorder_tap(recorder), .n_tokens = n_tokens};
    sh_team_each(l->s->n_threads, l->n_head, repack_head, &a);
    sh_recorder_end(recorder, 0);
    if (a.p.bad_head < 0)
        sh_recorder_take(recorder, 0, b);
    sh_recorder_free(recorder);
    return a.p.bad_head < 0 ? 0 : -1;
}

static int by_head_and_row(const void *x, const void *y)
{
    const struct sh_block *a = &((const struct kept *)x)->block, *b = &((const struct kept *)y)->block;
    return a->head != b->head ? (a->head > b->head) - (a->head < b->head)
           : a->kind != b->kind ? (a->kind > b->kind) - (a->kind < b->kind)
                                : (a->first_row > b->first_row) - (a->first_row < b->first_row);
}

int sh_record_layer_take(struct sh_record_layer *l, int n_tokens, struct sh_batch *b, struct sh_err *e)
{
    sh_recorder_end(l->recorder, 0);
    int bad = spool_blocks(l, e);
    if (!bad && l->n_kept)
        qsort(l->kept, (size_t)l->n_kept, sizeof *l->kept, by_head_and_row);
    if (!bad && repacks(l))
        bad = repack(l, n_tokens, b, e);
    for (int i = 0; i < l->n_kept && !bad && !repacks(l); i++) {
        struct sh_block block;
        bad = read_block(l, &l->kept[i], &block, e);
        if (!bad)
            sh_batch_add(b, block);
    }
    for (const char *v = l->s->vectors; *v && !bad; v++)
        bad = take_vectors(l, (int)(strchr(kinds, *v) - kinds), n_tokens, b, e);
    if (!bad && l->vector_rows[3])
        bad = take_vectors(l, 3, n_tokens, b, e);
    const struct sh_layer_heads model = {l->s->n_head, l->s->n_kv_head}, own = {l->n_head, kv_heads(l)};
    if (!bad)
        sh_recorder_say_heads(b, &own, &model);
    return bad;
}
