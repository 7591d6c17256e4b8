/* SPDX-License-Identifier: Apache-2.0 */
/* The BPE model: one piece of text to ids, by repeatedly merging the leftmost occurrence of the
 * pair that stands first in the list of merges. */
#ifndef SH_MODEL_TOK_BPE_H
#define SH_MODEL_TOK_BPE_H

#include "src/model/tok_vocab.h"
#include "src/model/tokenizer.h"

struct sh_merge {
    uint64_t pair;                      /* left id << 32 | right id */
    int32_t rank, id;                   /* rank -1: a free slot     */
};

struct sh_bpe {
    const struct sh_vocab *vocab;
    struct sh_merge *merge;             /* hash table */
    size_t n_slot;
    int32_t unknown;                    /* id, -1: none */
    int32_t byte_id[256];               /* of <0x00> … <0xFF>, -1: no such token */
    int fuse_unknown, byte_fallback, whole_first;
};

struct sh_bpe_work;                     /* scratch and cached words, of one call and one thread */

int sh_bpe_read(struct sh_bpe *b, const struct sh_vocab *vocab, const json_t *model,
                struct sh_err *e);
void sh_bpe_free(struct sh_bpe *b);

struct sh_bpe_work *sh_bpe_begin(const struct sh_bpe *b);
void sh_bpe_end(struct sh_bpe_work *w);

/* Appends the ids of a piece; fails on a character that nothing in the vocabulary stands for. */
int sh_bpe_encode(struct sh_bpe_work *w, const char *piece, size_t n, struct sh_ids *out,
                  struct sh_err *e);

void sh_ids_add(struct sh_ids *ids, int32_t id);

#endif
