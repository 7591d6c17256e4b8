/* SPDX-License-Identifier: Apache-2.0 */
/* See codec.h: zstd frames, byte planes, and dense blocks. Sparse blocks are in sparse.c. */
#include "traces/codec.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "src/base/mem.h"
#include "src/base/num.h"

/* Scores are noise to a match finder: the entropy coder does the compressing. A tiny hash table makes the search for
 * matches cheap and keeps it from finding worthless ones: 0.423 byte per score at 423 MB/s, compared with 0.436 at
 * 304 MB/s with the level's own table; level 3 is worse still. */
enum { FAST_LEVEL = 1, RECORDS_LEVEL = 3, NOISE_HASH_LOG = 6, NOISE_MIN_MATCH = 7 };

enum { LEAST_BLOCK = 4 };               /* bytes of a zstd block, which gives at most ZSTD_BLOCKSIZE_MAX */

size_t sh_codec_width(enum sh_codec codec)
{
    return codec == SH_CODEC_F32 ? 4 : codec == SH_CODEC_F16 ? 2 : 1;
}

void sh_codec_pack(enum sh_codec codec, void *to, const float *score, int n)
{
    uint16_t *half = to;
    if (codec == SH_CODEC_F32)
        memcpy(to, score, (size_t)n * sizeof *score);
    else if (codec == SH_CODEC_F16)
        for (int i = 0; i < n; i++)
            half[i] = sh_f32_to_f16(score[i]);
    else
        sh_log8_codes(to, score, n);
}

size_t sh_codec_bytes(const void *from, size_t bytes, enum sh_bytes like, unsigned char **out)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    size_t bound = ZSTD_compressBound(bytes);
    if (!context)
        sh_no_memory(bound);
    *out = xmalloc(bound);
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, like == SH_BYTES_RECORDS ? RECORDS_LEVEL : FAST_LEVEL);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    if (like == SH_BYTES_NOISE) {
        ZSTD_CCtx_setParameter(context, ZSTD_c_hashLog, NOISE_HASH_LOG);
        ZSTD_CCtx_setParameter(context, ZSTD_c_minMatch, NOISE_MIN_MATCH);
    }
    size_t n = ZSTD_compress2(context, *out, bound, from, bytes);
    if (ZSTD_isError(n))                /* the bound is zstd's own, so only its tables can lack memory */
        sh_no_memory(bound);
    ZSTD_freeCCtx(context);
    *out = xreallocarray(*out, 1, n);
    return n;
}

/* Out of memory is a fault of the machine, not of the store. */
static int no_room(int failed, struct sh_err *e)
{
    e->is_io = 1;
    return failed;
}

int sh_codec_unbytes(const void *blob, size_t bytes, size_t limit, unsigned char **out, size_t *n, struct sh_err *e)
{
    unsigned long long size = ZSTD_getFrameContentSize(blob, bytes);
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
        return sh_fail(e, "not a zstd frame with a stated size");
    if (size > limit)
        return sh_fail(e, "a zstd frame of %llu bytes, expected at most %zu", size, limit);
    if (size / ZSTD_BLOCKSIZE_MAX > bytes / LEAST_BLOCK)
        return sh_fail(e, "%zu bytes are too few for a zstd frame that unpacks to %llu", bytes, size);
    unsigned char *to = malloc(size ? (size_t)size : 1);
    if (!to)
        return no_room(sh_fail(e, "a zstd frame of %llu bytes does not fit into memory", size), e);
    size_t got = ZSTD_decompress(to, (size_t)size, blob, bytes);
    if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
        sh_no_memory((size_t)size);
    if (ZSTD_isError(got) || got != size) {
        free(to);
        return sh_fail(e, "damaged: %s", ZSTD_isError(got) ? ZSTD_getErrorName(got) : "shorter than its stated size");
    }
    *out = to;
    *n = (size_t)size;
    return 0;
}

/* [count][width] to [width][count] */
static void to_planes(unsigned char *to, const unsigned char *from, size_t count, size_t width)
{
    for (size_t b = 0; b < width; b++)
        for (size_t i = 0; i < count; i++)
            to[b * count + i] = from[i * width + b];
}

static void from_planes(unsigned char *to, const unsigned char *from, size_t count, size_t width)
{
    for (size_t b = 0; b < width; b++)
        for (size_t i = 0; i < count; i++)
            to[i * width + b] = from[b * count + i];
}

size_t sh_codec_dense(enum sh_codec codec, const void *packed, size_t count, unsigned char **out)
{
    size_t width = sh_codec_width(codec);
    if (width == 1)
        return sh_codec_bytes(packed, count, SH_BYTES_NOISE, out);
    unsigned char *planes = xmalloc(count * width);
    to_planes(planes, packed, count, width);
    size_t n = sh_codec_bytes(planes, count * width, SH_BYTES_NOISE, out);
    free(planes);
    return n;
}

/* The packed numbers of a blob, which must hold exactly `count`. */
static int unpack(const struct sh_block *b, size_t count, unsigned char **packed, struct sh_err *e)
{
    size_t width = sh_codec_width((enum sh_codec)b->codec), bytes;
    unsigned char *planes;
    if (sh_codec_unbytes(b->blob, b->bytes, count * width, &planes, &bytes, e))
        return -1;
    if (bytes != count * width) {
        free(planes);
        return sh_fail(e, "%zu bytes of numbers, expected %zu", bytes, count * width);
    }
    *packed = planes;
    if (width > 1) {
        *packed = malloc(bytes ? bytes : 1);
        if (*packed)
            from_planes(*packed, planes, count, width);
        free(planes);
    }
    return *packed ? 0 : no_room(sh_fail(e, "%zu numbers do not fit into memory", count), e);
}

/* Unpacked f32 or f16 numbers. */
static void to_floats(float *to, enum sh_codec codec, const unsigned char *packed, size_t count)
{
    if (codec == SH_CODEC_F32) {
        memcpy(to, packed, count * sizeof *to);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint16_t h;
        memcpy(&h, packed + 2 * i, 2);
        to[i] = sh_f16_to_f32(h);
    }
}

static int check_block(const struct sh_block *b, struct sh_err *e)
{
    enum { MOST = 1 << 22,              /* tokens; keeps every product below far from overflow */
           MOST_SCORES = 1 << 26 };     /* 32 rows of two million: blocks are far smaller      */
    if (b->first_row < 0 || b->n_rows < 1 || b->window < -MOST || b->first_row > MOST || b->n_rows > MOST)
        return sh_fail(e, "not a block: first row %d, %d rows, window %d", b->first_row, b->n_rows, b->window);
    int base = b->codec & ~SH_CODEC_SPARSE;
    if (base < SH_CODEC_F32 || base > SH_CODEC_LOG8)
        return sh_fail(e, "codec %d is unknown", b->codec);
    size_t n = sh_rows_scores(b->first_row, b->n_rows, b->window);
    if (n > MOST_SCORES)
        return sh_fail(e, "a block of %zu scores (first row %d, %d rows), expected at most %d", n, b->first_row,
                       b->n_rows, MOST_SCORES);
    return 0;
}

static int check_causal(const struct sh_block *b, struct sh_err *e)
{
    if (b->window >= 0)
        return 0;
    return sh_fail(e, "every row has the same %u keys, expected causal attention", 0u - (unsigned)b->window);
}

/* The scores of a dense block, whose size is checked against the row counts. */
static int open_dense(struct sh_codec_reader *r, const struct sh_block *b, struct sh_err *e)
{
    *r = (struct sh_codec_reader){.block = b, .next = b->first_row};
    if (unpack(b, sh_rows_scores(b->first_row, b->n_rows, b->window), &r->packed, e))
        return -1;
    size_t most = (size_t)sh_row_keys(b->first_row + b->n_rows - 1, b->window);
    r->at = r->packed;
    r->score = malloc(most * sizeof *r->score);
    if (r->score)
        return 0;
    sh_codec_close(r);
    return no_room(sh_fail(e, "rows of %zu scores do not fit into memory", most), e);
}

int sh_codec_open(struct sh_codec_reader *r, const struct sh_block *b, struct sh_err *e)
{
    *r = (struct sh_codec_reader){0};
    if (check_causal(b, e) || check_block(b, e))
        return -1;
    if (b->codec & SH_CODEC_SPARSE)
        return sh_fail(e, "the block stores only large scores (sparse), expected full rows");
    return open_dense(r, b, e);
}

/* One row at a time, so that a row is still in the cache when it is used. */
int sh_codec_next(struct sh_codec_reader *r, struct sh_row *row)
{
    const struct sh_block *b = r->block;
    if (r->next == b->first_row + b->n_rows)
        return 0;
    int t = r->next++, start = sh_row_start(t, b->window), n = sh_row_keys(t, b->window);
    if (b->codec == SH_CODEC_LOG8)
        sh_log8_scores(r->score, r->at, n);
    else
        to_floats(r->score, (enum sh_codec)b->codec, r->at, (size_t)n);
    r->at += (size_t)n * sh_codec_width((enum sh_codec)b->codec);
    *row = (struct sh_row){.q = t, .first_key = start, .n = n, .score = r->score};
    return 1;
}

void sh_codec_close(struct sh_codec_reader *r)
{
    free(r->packed);
    free(r->score);
    *r = (struct sh_codec_reader){0};
}

int sh_codec_rows(const struct sh_block *b, sh_row_fn fn, void *to, struct sh_err *e)
{
    return check_causal(b, e) ? -1 : sh_codec_rows_any(b, fn, to, e);
}

int sh_codec_rows_any(const struct sh_block *b, sh_row_fn fn, void *to, struct sh_err *e)
{
    struct sh_codec_reader r;
    struct sh_row row;
    if (check_block(b, e))
        return -1;
    if (b->codec & SH_CODEC_SPARSE)
        return sh_sparse_rows(b, fn, to, e);
    if (open_dense(&r, b, e))
        return -1;
    while (sh_codec_next(&r, &row) && !(fn && fn(to, &row)))
        ;
    sh_codec_close(&r);
    return 0;
}

int sh_codec_plain(const struct sh_block *b, unsigned char **out, size_t *n, struct sh_err *e)
{
    if (check_block(b, e))
        return -1;
    if (b->codec & SH_CODEC_SPARSE)
        return sh_sparse_plain(b, out, n, e);
    size_t bytes = sh_rows_scores(b->first_row, b->n_rows, b->window) * sh_codec_width((enum sh_codec)b->codec);
    return sh_codec_unbytes(b->blob, b->bytes, bytes, out, n, e);
}

int sh_codec_histogram(const struct sh_block *b, uint64_t histogram[256], struct sh_err *e)
{
    unsigned char *codes;
    if (check_block(b, e))
        return -1;
    if (b->codec != SH_CODEC_LOG8)
        return sh_fail(e, "found codec %d, expected %d (log8)", b->codec, SH_CODEC_LOG8);
    size_t count = sh_rows_scores(b->first_row, b->n_rows, b->window);
    if (unpack(b, count, &codes, e))
        return -1;
    for (size_t i = 0; i < count; i++)
        histogram[codes[i]]++;
    free(codes);
    return 0;
}

int sh_codec_floats(const struct sh_block *b, float *to, size_t count, struct sh_err *e)
{
    unsigned char *packed;
    if (b->codec != SH_CODEC_F32 && b->codec != SH_CODEC_F16)
        return sh_fail(e, "codec of vectors: found %d, expected %d (f32) or %d (f16)", b->codec, SH_CODEC_F32,
                       SH_CODEC_F16);
    if (unpack(b, count, &packed, e))
        return -1;
    to_floats(to, (enum sh_codec)b->codec, packed, count);
    free(packed);
    return 0;
}

float *sh_codec_all_floats(const struct sh_block *b, size_t *count, struct sh_err *e)
{
    unsigned long long bytes = ZSTD_getFrameContentSize(b->blob, b->bytes);
    size_t width = sh_codec_width((enum sh_codec)b->codec), most = (size_t)1 << 26;
    if (bytes >= ZSTD_CONTENTSIZE_ERROR || bytes > most * width || bytes % width) {
        sh_fail(e, "not a zstd frame of at most %zu numbers", most);
        return NULL;
    }
    float *to = malloc(bytes ? bytes / width * sizeof *to : 1);
    if (!to)
        no_room(sh_fail(e, "%llu numbers do not fit into memory", bytes / width), e);
    if (to && sh_codec_floats(b, to, bytes / width, e)) {
        free(to);
        to = NULL;
    }
    *count = bytes / width;
    return to;
}
