/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of attention to bytes and back. All formats end in zstd frames with checksums.
 *
 * Dense (f32, f16, log8): the packed rows, one after another. f32 and f16 are split into byte planes
 * first, which is what makes them compress. The bytes of log8 are src/base/score.h's, row by row.
 *
 * Sparse: of each row only the scores >= 1/n (n = visible keys), and the mass of the others. Four
 * zstd frames behind their lengths (u32 each): number of stored scores per row (u32), residual mass
 * per row (f32), gaps between stored keys (a byte each; 255 means "255 more and go on"), values.
 * Values are f32, or one code (log8) relative to the row's mean: code c > 0 stands for the interval
 * (b[c], b[c+1]] / n of a lattice b in which every whole number up to 100 is a boundary and no cell
 * is wider than 0.0774 in logarithms. So "score > K/n" is answered exactly for whole K <= 100, and every
 * stored score is within 4 %. Code 0 stands for exactly 1/n. */
#ifndef SH_TRACES_CODEC_H
#define SH_TRACES_CODEC_H

#include "traces/trace.h"

/* Bytes that one packed score takes before zstd. */
size_t sh_codec_width(enum sh_codec codec);

/* One row of n scores in [0, 1 + a little] as `codec` packs it, n * sh_codec_width(codec) bytes. */
void sh_codec_pack(enum sh_codec codec, void *to, const float *score, int n);

/* Encode packed rows (format of `codec`, `count` scores) into a new buffer, *out is the caller's. */
size_t sh_codec_dense(enum sh_codec codec, const void *packed, size_t count, unsigned char **out);

/* Rows on their way into a sparse block. They come as backends hand them out: the set of low keys (their
 * score is < 1/n) and the other scores. */
struct sh_codec_sparse;

struct sh_codec_sparse *sh_codec_sparse_new(enum sh_codec codec);       /* SH_CODEC_F32 or SH_CODEC_LOG8 */
void sh_codec_sparse_free(struct sh_codec_sparse *s);                   /* NULL is fine                  */

/* The next row, of the n keys from first_key on: key j is low when bit j % 64 of low[j / 64 - first_word]
 * is set, `value` holds the scores of the others, keys ascending. Returns what lies behind those. */
const float *sh_codec_sparse_row(struct sh_codec_sparse *s, int first_key, int n, const uint64_t *low, int first_word,
                                 const float *value, double low_mass);

/* A block of the rows given since the last one: its bytes in a new buffer, *out is the caller's. */
size_t sh_codec_sparse_end(struct sh_codec_sparse *s, unsigned char **out);

/* What bytes are like, which tells how hard to look for repetitions: in records of counts and positions they
 * pay; in the gaps between stored keys few do; in codes of scores none. */
enum sh_bytes { SH_BYTES_RECORDS, SH_BYTES_GAPS, SH_BYTES_NOISE };

/* Bytes as they are through zstd and back; `limit` bounds what a hostile frame may unpack to. */
size_t sh_codec_bytes(const void *from, size_t bytes, enum sh_bytes like, unsigned char **out);
int sh_codec_unbytes(const void *blob, size_t bytes, size_t limit, unsigned char **out, size_t *n, struct sh_err *e);

/* One decoded row. Dense: score[n]. Sparse: key[n_stored] (ascending) and score[n_stored], and the
 * mass of the scores that were not stored. Pointers are valid during the callback. */
struct sh_row {
    int q, first_key, n;
    int sparse, n_stored;
    const int *key;
    const float *score;
    float residual;
};

typedef int (*sh_row_fn)(void *to, const struct sh_row *row);           /* nonzero stops */

/* Decode one block of causal attention and hand out its rows in order. -1: the blob is not what its row
 * says, or the rows are not causal, which few can do something with. */
int sh_codec_rows(const struct sh_block *b, sh_row_fn fn, void *to, struct sh_err *e);

/* The same, also of rows that all see the same keys: first_key 0 and any n. */
int sh_codec_rows_any(const struct sh_block *b, sh_row_fn fn, void *to, struct sh_err *e);

/* What a block of rows holds before zstd, however that packed it; *out is the caller's. */
int sh_codec_plain(const struct sh_block *b, unsigned char **out, size_t *n, struct sh_err *e);

/* Causal rows of a block that is not sparse, row by row when they are asked for. The block must outlive it. */
struct sh_codec_reader {
    const struct sh_block *block;
    unsigned char *packed;
    const unsigned char *at;            /* of the next row */
    float *score;                       /* of the last one */
    int next;
};

int sh_codec_open(struct sh_codec_reader *r, const struct sh_block *b, struct sh_err *e);
int sh_codec_next(struct sh_codec_reader *r, struct sh_row *row);       /* 0: there is no more; valid until the next */
void sh_codec_close(struct sh_codec_reader *r);                         /* zeroed memory is fine */

/* `count` numbers of an f32 or f16 blob that is not rows of attention (vectors). */
int sh_codec_floats(const struct sh_block *b, float *to, size_t count, struct sh_err *e);

/* The same of a blob that alone knows how many there are. New array; NULL: it is damaged. */
float *sh_codec_all_floats(const struct sh_block *b, size_t *count, struct sh_err *e);

/* Order-0 entropy in bits of the codes of a log8 block: what an ideal coder of single codes needs.
 * Adds the block's code counts to histogram[256]. */
int sh_codec_histogram(const struct sh_block *b, uint64_t histogram[256], struct sh_err *e);

#endif
