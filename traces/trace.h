/* SPDX-License-Identifier: Apache-2.0 */
/* A trace in memory: the settings, the tokens, and the recorded attention. No SQLite here.
 *
 * A row of attention is causal: row t (0-based) has one score per visible key, oldest first. With a window W > 0
 * these are keys max(0, t - W + 1)..t, otherwise keys 0..t. The scores of a row sum to 1. Rows of one head are
 * contiguous, without padding.
 *
 * Imported attention may also be orderless: every row sees the same n keys 0..n - 1 (n = T in an encoder, the number
 * of encoder positions in cross-attention). Its window is -n. */
#ifndef SH_TRACES_TRACE_H
#define SH_TRACES_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/err.h"

enum sh_record { SH_RECORD_FULL, SH_RECORD_SPARSE, SH_RECORD_SUMMARY };
enum sh_codec { SH_CODEC_F32, SH_CODEC_F16, SH_CODEC_LOG8, SH_CODEC_SPARSE = 16 };

extern const char *const sh_record_names[];             /* names by enum value, NULL ends */
extern const char *const sh_codec_names[];

/* The first key that row t sees, and the number of scores in rows [first_row, first_row + n_rows). */
static inline int sh_row_start(int t, int window)
{
    return window > 0 && t >= window ? t - window + 1 : 0;
}

/* Number of keys that row t sees. */
static inline int sh_row_keys(int t, int window)
{
    return window < 0 ? (int)(0u - (unsigned)window) : t + 1 - sh_row_start(t, window);
}

static inline size_t sh_rows_scores(int first_row, int n_rows, int window)
{
    size_t n = 0;
    for (int t = first_row; t < first_row + n_rows; t++)
        n += (size_t)sh_row_keys(t, window);
    return n;
}

/* A model as described in traces. The caller owns the strings. */
struct sh_trace_model {
    const char *name, *family, *weights;
    uint64_t fingerprint;
    int n_layer, n_head, n_kv_head, d_head, d_model, n_vocab, max_pos;
};

/* Query and KV heads, of a layer or of a model. */
struct sh_layer_heads { int query, kv; };

struct sh_trace_run {
    struct sh_trace_model model;
    const char *program, *backend, *device, *dtype, *vectors, *statistics, *command;
    enum sh_record record;
    enum sh_codec codec;
    int weight_bits;                    /* 16, 8 or 4: of the layers' matrices, as run */
    int first_layer, last_layer;
    int orderless;                      /* not causal: every row sees the same keys                    */
    long long seed;
};

struct sh_trace_sequence {
    char *source;
    int n_tokens;
    int32_t *tokens;
};

/* One layer of one sequence: what one transaction writes. */
struct sh_block {                       /* block of scores, vectors or head_stats */
    enum { SH_BLOCK_SCORES, SH_BLOCK_VECTORS, SH_BLOCK_STATS } kind;
    int head, first_row, n_rows, window;
    int codec;                          /* enum sh_codec, plus SH_CODEC_SPARSE                     */
    char vector;                        /* 'q', 'k', 'v'; 's': what the sink takes of each row; else see schema.sql */
    unsigned char *blob;                /* owned                                                   */
    size_t bytes;
};

struct sh_batch {
    int sequence, layer;                /* sequence: index within the run                          */
    struct sh_trace_sequence *made;     /* owned; the sequence itself, which is new; NULL: the run has it */
    struct sh_block *block;             /* [n_block], owned                                        */
    int n_block;
};

void sh_batch_add(struct sh_batch *b, struct sh_block block);   /* takes the blob */
void sh_batch_clear(struct sh_batch *b);
void sh_sequences_free(struct sh_trace_sequence *s, int n);

#endif
