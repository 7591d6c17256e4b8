/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding of attention rows. All formats end in zstd frames with checksums.
 *
 * Dense (f32, f16, log8): the packed rows, one after another. f32 and f16 are split into byte planes first; only then
 * do they compress. The bytes of log8 are those of src/base/log8.h, row by row.
 *
 * Sparse: only the scores >= 1/n of each row (n = visible keys), and the total mass of the others. The lengths of
 * four zstd frames (u32 each), then the frames: number of stored scores per row (u32), residual mass per row (f32),
 * gaps between stored keys (one byte each; 255 means "add 255 and read on"), values. Values are f32, or one code
 * (log8) relative to the row's mean: code c > 0 stands for the interval (b[c], b[c+1]] / n of a lattice b in which
 * every whole number up to 100 is a boundary and no cell is wider than 0.0774 in logarithms. So "score > K/n" is
 * exact for whole K <= 100, and every stored score is within 4 %. Code 0 stands for exactly 1/n. */
#ifndef SH_TRACES_CODEC_H
#define SH_TRACES_CODEC_H

#include "traces/trace.h"

/* Bytes that one packed score takes before zstd. */
size_t sh_codec_width(enum sh_codec codec);

/* Pack one row of n scores in [0, 1 + a little] with `codec`: n * sh_codec_width(codec) bytes. */
void sh_codec_pack(enum sh_codec codec, void *to, const float *score, int n);

/* Encode packed rows (format of `codec`, `count` scores). *out: new buffer, owned by the caller. */
size_t sh_codec_dense(enum sh_codec codec, const void *packed, size_t count, unsigned char **out);

/* Input of a sparse block: rows in the form that backends produce, as the set of low keys (score < 1/n) and the
 * scores of the others. */
struct sh_codec_sparse;

struct sh_codec_sparse *sh_codec_sparse_new(enum sh_codec codec);       /* SH_CODEC_F32 or SH_CODEC_LOG8 */
void sh_codec_sparse_free(struct sh_codec_sparse *s);                   /* NULL is fine                  */

/* Add the next row, of n keys from first_key on: key j is low when bit j % 64 of low[j / 64 - first_word] is set,
 * `value` holds the scores of the others, keys ascending. Returns the end of the scores consumed. */
const float *sh_codec_sparse_row(struct sh_codec_sparse *s, int first_key, int n, const uint64_t *low, int first_word,
                                 const float *value, double low_mass);

/* Encode the rows added since the last block. *out: new buffer, owned by the caller. */
size_t sh_codec_sparse_end(struct sh_codec_sparse *s, unsigned char **out);

/* The kind of data, which decides how hard to look for repetitions: frequent in records of counts and positions, few
 * in the gaps between stored keys, none in codes of scores. */
enum sh_bytes { SH_BYTES_RECORDS, SH_BYTES_GAPS, SH_BYTES_NOISE };

/* Plain bytes through zstd and back; `limit` bounds the size that a hostile frame may unpack to. */
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

/* Decode one block of causal attention and pass on its rows in order. -1: the blob does not match its columns, or the
 * rows are not causal, which few callers can use. */
int sh_codec_rows(const struct sh_block *b, sh_row_fn fn, void *to, struct sh_err *e);

/* The same, also for rows that all see the same keys: first_key 0 and any n. fn NULL: only check the block. */
int sh_codec_rows_any(const struct sh_block *b, sh_row_fn fn, void *to, struct sh_err *e);

/* The content of a block of rows before zstd, whatever the compression. *out: owned by the caller. */
int sh_codec_plain(const struct sh_block *b, unsigned char **out, size_t *n, struct sh_err *e);

/* Iterator over the causal rows of a dense block, decoded on demand. The block must outlive it. */
struct sh_codec_reader {
    const struct sh_block *block;
    unsigned char *packed;
    const unsigned char *at;            /* next row        */
    float *score;                       /* last row        */
    int next;
};

int sh_codec_open(struct sh_codec_reader *r, const struct sh_block *b, struct sh_err *e);
/* The row is valid until the next call. 0: end. */
int sh_codec_next(struct sh_codec_reader *r, struct sh_row *row);
void sh_codec_close(struct sh_codec_reader *r);                         /* may be zeroed memory */

/* The `count` numbers of an f32 or f16 blob that is not attention rows (vectors). */
int sh_codec_floats(const struct sh_block *b, float *to, size_t count, struct sh_err *e);

/* The same when only the blob knows the count. New array; NULL: the blob is damaged. */
float *sh_codec_all_floats(const struct sh_block *b, size_t *count, struct sh_err *e);

/* Order-0 entropy, in bits, of the codes of a log8 block: the size that an ideal coder of single codes reaches. Adds
 * the block's code counts to histogram[256]. */
int sh_codec_histogram(const struct sh_block *b, uint64_t histogram[256], struct sh_err *e);

/* ---- log8.c: rows of log8 codes (src/base/log8.h) ---- */

/* The n scores of one row from its codes, 1 <= n < 2^24; any codes form a valid row. Each score is its cell's mean,
 * at most 4 % from anything in the cell; one above a half is what the others leave of the sum 1. The scores are on
 * the same side of K/n, K = 1, 2, 5, 10, as the coded ones, and the number below 1 % of the largest is the same. */
void sh_log8_scores(float *to, const uint8_t *code, int n);

/* The codes of a row of n scores, 1 <= n < 2^24, each in [0, 1]; the same codes that a backend computes from logits. */
void sh_log8_codes(uint8_t *to, const float *score, int n);

/* ---- sparse.c: sparse blocks, for codec.c ---- */

int sh_sparse_rows(const struct sh_block *b, sh_row_fn fn, void *to, struct sh_err *e);

/* The unpacked frames of a block, each after its length (u64), independent of zstd's version. *out: owned by the
 * caller. */
int sh_sparse_plain(const struct sh_block *b, unsigned char **out, size_t *n, struct sh_err *e);

#endif
