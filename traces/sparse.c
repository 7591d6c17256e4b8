/* SPDX-License-Identifier: Apache-2.0 */
/* See codec.h. Comparisons with K/n are made in double, as in the statistics. */
#include "traces/codec.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clones.h"
#include "src/base/mem.h"

#define WIDEST 0.07739782               /* a cell, in logarithms: 4 % on either side */

enum {
    WHOLE = 100,                        /* the largest K that is a boundary      */
    CODES = 256,
    N_FRAME = 4,
    PARTS = 128,                        /* of an octave; short enough for at most one boundary in each     */
    COARSE = 25 * PARTS                 /* from 1 to more keys than a row has                              */
};

static double boundary[CODES + 1];      /* in units of the row's mean; code c: (boundary[c], boundary[c + 1]] */
static int coarse[COARSE];              /* the code at the beginning of each part of an octave */
static pthread_once_t built = PTHREAD_ONCE_INIT;

/* The index of the part of an octave that contains x, counted from 1; negative below 1. */
static inline int64_t part_of(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits >> 45) - 1023 * PARTS;
}

static void build(void)
{
    int n = 1;
    for (int k = 1; k < WHOLE; k++) {
        int cells = (int)ceil(log((k + 1.0) / k) / WIDEST);
        for (int i = 0; i < cells; i++)
            boundary[n++] = i ? k * pow((k + 1.0) / k, (double)i / cells) : k;
    }
    for (int i = 0; n <= CODES; i++)
        boundary[n++] = WHOLE * exp(i * WIDEST);
    for (int i = 0, code = 0; i < COARSE; i++) {
        double x = ldexp(1 + i % PARTS / (double)PARTS, i / PARTS);
        while (code + 2 < CODES && x > boundary[code + 1])
            code++;
        coarse[i] = code;
    }
}

/* A score times the number of keys is exact in double (24 bits times at most 24), so it exceeds K exactly when the
 * score exceeds K/keys in a reader's comparison. */
SH_CLONES static void codes_of(unsigned char *code, const float *score, uint32_t n, int keys)
{
    for (uint32_t i = 0; i < n; i++) {
        double x = (double)score[i] * keys;
        int64_t part = part_of(x);
        part = part < 0 ? 0 : part < COARSE ? part : COARSE - 1;
        int at = coarse[part];
        code[i] = (unsigned char)(at + (x > boundary[at + 1]));
    }
}

static float score_of(unsigned char code, int keys)
{
    if (code == 0)
        return (float)(1.0 / keys);
    double x = sqrt(boundary[code] * boundary[code + 1]) / keys;
    return x > 1 ? 1.0f : (float)x;
}

struct bytes {
    unsigned char *at;
    size_t n, cap;
};

/* Room for n more bytes; the writer adds what it wrote to the count. */
static unsigned char *reserve(struct bytes *b, size_t n)
{
    if (b->n + n > b->cap) {
        b->cap = 2 * (b->n + n) + 256;
        b->at = xreallocarray(b->at, b->cap, 1);
    }
    return b->at + b->n;
}

static void append(struct bytes *b, const void *from, size_t n)
{
    memcpy(reserve(b, n), from, n);
    b->n += n;
}

/* Bytes of a value. */
static size_t width_of(int codec)
{
    return (codec & ~SH_CODEC_SPARSE) == SH_CODEC_F32 ? 4 : 1;
}

/* ---- writing ---- */

struct sh_codec_sparse {
    size_t width;                       /* bytes per value */
    struct bytes part[N_FRAME];
};

struct sh_codec_sparse *sh_codec_sparse_new(enum sh_codec codec)
{
    struct sh_codec_sparse *s = xcalloc(1, sizeof *s);
    s->width = width_of(codec);
    pthread_once(&built, build);
    return s;
}

void sh_codec_sparse_free(struct sh_codec_sparse *s)
{
    for (int i = 0; s && i < N_FRAME; i++)
        free(s->part[i].at);
    free(s);
}

/* Keys first .. last that are in word `at` and not low. */
static inline uint64_t stored_of(uint64_t low, int at, int first, int last)
{
    uint64_t word = ~low;
    if (at == first / 64)
        word &= ~(uint64_t)0 << first % 64;
    if (at == last / 64)
        word &= ~(uint64_t)0 >> (63 - last % 64);
    return word;
}

const float *sh_codec_sparse_row(struct sh_codec_sparse *s, int first_key, int n, const uint64_t *low, int first_word,
                                 const float *value, double low_mass)
{
    int newest = first_key + n - 1, before = first_key - 1;
    uint32_t stored = 0;
    float residual = (float)low_mass;
    for (int w = first_key / 64; w <= newest / 64; w++)
        stored += (uint32_t)__builtin_popcountll(stored_of(low[w - first_word], w, first_key, newest));
    unsigned char *gap = reserve(&s->part[2], stored + (size_t)n / 255);
    unsigned char *code = reserve(&s->part[3], s->width * stored);
    for (int w = first_key / 64; w <= newest / 64; w++)
        for (uint64_t word = stored_of(low[w - first_word], w, first_key, newest); word; word &= word - 1) {
            int key = 64 * w + __builtin_ctzll(word), between = key - before - 1;
            for (; between >= 255; between -= 255)
                *gap++ = 255;
            *gap++ = (unsigned char)between;
            before = key;
        }
    if (s->width == 1)
        codes_of(code, value, stored, n);
    else if (stored)
        memcpy(code, value, 4 * (size_t)stored);
    s->part[2].n = (size_t)(gap - s->part[2].at);
    s->part[3].n += s->width * stored;
    append(&s->part[0], &stored, 4);
    append(&s->part[1], &residual, 4);
    return value + stored;
}

size_t sh_codec_sparse_end(struct sh_codec_sparse *s, unsigned char **out)
{
    static const enum sh_bytes like[N_FRAME] = {SH_BYTES_RECORDS, SH_BYTES_RECORDS, SH_BYTES_GAPS, SH_BYTES_NOISE};
    struct bytes whole = {0};
    unsigned char *frame[N_FRAME];
    uint32_t length[N_FRAME];
    for (int i = 0; i < N_FRAME; i++) {
        struct bytes *part = &s->part[i];
        length[i] = (uint32_t)sh_codec_bytes(part->at ? (void *)part->at : "", part->n, like[i], &frame[i]);
        part->n = 0;
    }
    append(&whole, length, sizeof length);
    for (int i = 0; i < N_FRAME; i++) {
        append(&whole, frame[i], length[i]);
        free(frame[i]);
    }
    *out = whole.at;
    return whole.n;
}

/* ---- reading ---- */

/* Unpack the four frames; every size is bounded by the number of scores the rows can have. */
static int frames(const struct sh_block *b, struct bytes part[N_FRAME], struct sh_err *e)
{
    uint32_t length[N_FRAME];
    size_t at = sizeof length, most = sh_rows_scores(b->first_row, b->n_rows, b->window);
    size_t limit[N_FRAME] = {4 * (size_t)b->n_rows, 4 * (size_t)b->n_rows, most, most * width_of(b->codec)};
    if (b->bytes < sizeof length)
        return sh_fail(e, "a sparse block of %zu bytes is too short", b->bytes);
    memcpy(length, b->blob, sizeof length);
    for (int i = 0; i < N_FRAME; i++) {
        if (length[i] > b->bytes - at)
            return sh_fail(e, "part %d of a sparse block reaches past its end", i);
        if (sh_codec_unbytes(b->blob + at, length[i], limit[i], &part[i].at, &part[i].n, e))
            return -1;
        at += length[i];
    }
    if (at != b->bytes)
        return sh_fail(e, "a sparse block has %zu extra bytes after its parts", b->bytes - at);
    if (part[0].n != limit[0] || part[1].n != limit[1])
        return sh_fail(e, "a sparse block has counts for %zu rows, expected %d", part[0].n / 4, b->n_rows);
    return 0;
}

/* The keys of one row from its gaps; -1 when a key is outside the row. */
static int keys_of(struct bytes *gaps, size_t *at, int *key, uint32_t stored, int start, int n)
{
    long long place = -1;
    for (uint32_t i = 0; i < stored; i++) {
        unsigned char gap;
        do {
            if (*at == gaps->n)
                return -1;
            gap = gaps->at[(*at)++];
            place += gap;
        } while (gap == 255);
        if (++place >= n)
            return -1;
        key[i] = start + (int)place;
    }
    return 0;
}

static int decode(const struct sh_block *b, struct bytes part[N_FRAME], sh_row_fn fn, void *to, struct sh_err *e)
{
    size_t width = width_of(b->codec), gap_at = 0, value_at = 0;
    int most = sh_row_keys(b->first_row + b->n_rows, b->window), status = 0;
    int *key = xmalloc((size_t)most * sizeof *key);
    float *score = xmalloc((size_t)most * sizeof *score);
    int i = 0;
    for (; i < b->n_rows; i++) {
        int t = b->first_row + i, start = sh_row_start(t, b->window), n = sh_row_keys(t, b->window);
        uint32_t stored;
        float residual;
        memcpy(&stored, part[0].at + 4 * (size_t)i, 4);
        memcpy(&residual, part[1].at + 4 * (size_t)i, 4);
        if (stored > (uint32_t)n || keys_of(&part[2], &gap_at, key, stored, start, n) ||
            (part[3].n - value_at) / width < stored) {
            status = sh_fail(e, "row %d of a sparse block is damaged", t);
            break;
        }
        for (uint32_t j = 0; j < stored; j++)
            score[j] = score_of(part[3].at[value_at + j * width], n);
        if (width == 4)
            memcpy(score, part[3].at + value_at, 4 * (size_t)stored);
        value_at += stored * width;
        struct sh_row row = {.q = t, .first_key = start, .n = n, .sparse = 1, .n_stored = (int)stored,
                             .key = key, .score = score, .residual = residual};
        if (fn && fn(to, &row))
            break;
    }
    if (!status && i == b->n_rows && (gap_at != part[2].n || value_at != part[3].n))
        status = sh_fail(e, "a sparse block holds more scores than its row counts add up to");
    free(key);
    free(score);
    return status;
}

static void free_parts(struct bytes part[N_FRAME])
{
    for (int i = 0; i < N_FRAME; i++)
        free(part[i].at);
}

int sh_sparse_plain(const struct sh_block *b, unsigned char **out, size_t *n, struct sh_err *e)
{
    struct bytes part[N_FRAME] = {{0}}, whole = {0};
    int bad = frames(b, part, e);
    for (int i = 0; i < N_FRAME && !bad; i++) {
        uint64_t length = part[i].n;
        append(&whole, &length, sizeof length);
        if (length)
            append(&whole, part[i].at, part[i].n);
    }
    free_parts(part);
    *out = whole.at;
    *n = whole.n;
    return bad;
}

int sh_sparse_rows(const struct sh_block *b, sh_row_fn fn, void *to, struct sh_err *e)
{
    struct bytes part[N_FRAME] = {{0}};
    pthread_once(&built, build);
    int bad = frames(b, part, e) || decode(b, part, fn, to, e);
    free_parts(part);
    return bad ? -1 : 0;
}
