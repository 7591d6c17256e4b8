/* SPDX-License-Identifier: Apache-2.0 */
/* The BPE model: one piece of text to ids, by repeatedly merging the leftmost occurrence of the pair that is first in
 * the list of merges or, for SentencePiece's files, the pair whose token has the highest score. */
#ifndef SH_TOKENIZER_TOK_BPE_H
#define SH_TOKENIZER_TOK_BPE_H

#include "src/tokenizer/tok_vocab.h"
#include "src/tokenizer/tokenizer.h"

struct sh_merge {
    uint64_t pair;                      /* left id << 32 | right id */
    int32_t rank, id;                   /* rank -1: a free slot     */
};

struct sh_bpe {
    const struct sh_vocab *vocab;
    struct sh_merge *merge;             /* hash table */
    size_t n_slot;
    uint64_t seed;                      /* of the hash table */
    int32_t unknown;                    /* id, -1: none */
    int32_t byte_id[256];               /* of <0x00> … <0xFF>, -1: no such token */
    int fuse_unknown, byte_fallback, whole_first;

    int by_score;                       /* unknown characters are resolved after merging */
    struct sh_vocab lone;               /* by_score: characters that are no tokens, but parts of
                                           some; their ids begin at lone_at    */
    int32_t lone_at;
    unsigned char *unused;              /* by id, by_score: is taken apart again; NULL: none   */
    int cut_words;                      /* no token has U+2581 after another character         */
};

struct sh_bpe_work;                     /* scratch and cached words, of one call and one thread */

int sh_bpe_read(struct sh_bpe *b, const struct sh_vocab *vocab, const json_t *model, struct sh_err *e);

/* From scores by id. `type`: of enum sh_tok_type; the vocabulary finds NORMAL and UNUSED ones.
 * The caller sets unknown, byte_id and byte_fallback. */
int sh_bpe_from_scores(struct sh_bpe *b, const struct sh_vocab *vocab, const float *score,
                       const int32_t *type, struct sh_err *e);
void sh_bpe_free(struct sh_bpe *b);

/* Building: an empty table for n merges; one more merge (the last of a repeated pair wins); the final step. */
void sh_bpe_room(struct sh_bpe *b, size_t n);
void sh_bpe_put(struct sh_bpe *b, int32_t left, int32_t right, int32_t rank, int32_t id);
void sh_bpe_ready(struct sh_bpe *b);

struct sh_bpe_work *sh_bpe_begin(const struct sh_bpe *b);
void sh_bpe_end(struct sh_bpe_work *w);

/* Appends the ids of a piece; fails on a character that the vocabulary cannot represent. */
int sh_bpe_encode(struct sh_bpe_work *w, const char *piece, size_t n, struct sh_ids *out, struct sh_err *e);

#endif
