/* SPDX-License-Identifier: Apache-2.0 */
/* The unigram model (Kudo 2018): of all cuts of a piece into tokens, the one with the largest sum of scores (Viterbi).
 * */
#ifndef SH_TOKENIZER_TOK_UNIGRAM_H
#define SH_TOKENIZER_TOK_UNIGRAM_H

#include "src/tokenizer/tok_added.h"
#include "src/tokenizer/tok_json.h"
#include "src/tokenizer/tok_vocab.h"
#include "src/tokenizer/tokenizer.h"

struct sh_unigram {
    const struct sh_vocab *vocab;
    struct sh_added trie;
    double *score;                      /* by id */
    double unknown_score;
    int32_t unknown;                    /* id, -1: none */
    int32_t byte_id[256];               /* of <0x00> …, all of them or -1 */
    int single;                         /* sums are rounded to float, as SentencePiece's are */
};

struct sh_unigram_work;                 /* scratch of one call */

/* The "model" object of tokenizer.json with its "vocab" of [token, score] pairs, which fills `vocab`, too. */
int sh_unigram_read(struct sh_unigram *u, struct sh_vocab *vocab, const json_t *model, struct sh_err *e);

/* Adds a token that encoding may produce; its score must not be NaN. */
int sh_unigram_put(struct sh_unigram *u, int32_t id, double score, struct sh_err *e);
void sh_unigram_free(struct sh_unigram *u);

struct sh_unigram_work *sh_unigram_begin(const struct sh_unigram *u);
void sh_unigram_end(struct sh_unigram_work *w);

int sh_unigram_encode(struct sh_unigram_work *w, const char *piece, size_t n, struct sh_ids *out, struct sh_err *e);

#endif
