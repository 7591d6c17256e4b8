/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens: id to string, and string to id for those the model itself may produce. */
#ifndef SH_TOKENIZER_TOK_VOCAB_H
#define SH_TOKENIZER_TOK_VOCAB_H

#include "src/tokenizer/tok_json.h"

#define SH_TOK_MAX_ID 4194303           /* sixteen times the largest published vocabulary */

struct sh_vocab {
    struct sh_text text;                /* all strings, one after the other        */
    struct sh_span *at;                 /* by id; at == (size_t)-1: no such token  */
    int32_t *slot;                      /* hash table of ids, -1: free             */
    size_t n_id, cap_id, n_slot, n_used;
    uint64_t seed;                      /* of the hash table */
};

/* The "vocab" object of tokenizer.json, or all of vocab.json. */
int sh_vocab_read(struct sh_vocab *v, const json_t *object, struct sh_err *e);
void sh_vocab_free(struct sh_vocab *v);

int sh_vocab_has(const struct sh_vocab *v, long long id);
int32_t sh_vocab_find(const struct sh_vocab *v, const char *text, size_t n); /* -1: none */

/* The ids of the tokens <0x00> to <0xFF>, -1 where there is none. */
void sh_vocab_bytes(const struct sh_vocab *v, int32_t ids[256]);

/* hidden: it has an id but sh_vocab_find does not return it (added tokens are not part of the model). */
void sh_vocab_put(struct sh_vocab *v, int32_t id, const char *text, size_t n, int hidden);

/* Hashes depend on a random number, so that no file can put all its tokens into one slot. Results do not depend on it.
 * */
uint64_t sh_tok_seed(void);
uint64_t sh_tok_hash(uint64_t seed, const char *text, size_t n);

static inline uint64_t sh_tok_mix(uint64_t seed, uint64_t x)
{
    x = (x ^ seed) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 32;
    x *= seed | 1;
    return x ^ x >> 29;
}

#endif
