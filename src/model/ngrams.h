/* SPDX-License-Identifier: Apache-2.0 */
/* Where the embeddings of n-grams lie in a layer's table (struct sh_ngrams in arch.h), as Qwen4-Exp has them: for each
 * length from 2 to n, the last tokens, each times a number of its own, are joined by exclusive or; the rest modulo a
 * prime, a different one for each head, is a row of the head's part of the table. */
#ifndef SH_MODEL_NGRAMS_H
#define SH_MODEL_NGRAMS_H

#include <stdint.h>

#include "src/model/arch.h"

/* Sets `after` and `rows` of g->at[], whose layers are set. Heads have primes from `least` on, each the next one, over
 * all layers; a table's rows are a multiple of `divisor`. -1: a table would have 2^31 rows or more. */
int sh_ngrams_size(struct sh_ngrams *g, int least, int divisor);

struct sh_ngram_hash {
    int n, heads, end;                              /* heads: of all lengths together             */
    uint64_t by[SH_NGRAM_MOST];                     /* of the token itself, of the one before, …  */
    int size[SH_NGRAM_HEADS], first[SH_NGRAM_HEADS];        /* each head's part of the table      */
};

/* at: of g->at. */
void sh_ngrams_hash(const struct sh_ngrams *g, const struct sh_ngram_layer *at, int n_vocab, struct sh_ngram_hash *out);

/* The rows [heads] of a token, recent[0], after recent[1], recent[2], … (-1: the text began later). */
void sh_ngrams_rows(const struct sh_ngram_hash *h, const int *recent, int *row);

#endif
