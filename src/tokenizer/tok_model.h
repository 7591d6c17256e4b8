/* SPDX-License-Identifier: Apache-2.0 */
/* What turns a piece of text into ids: the vocabulary, added tokens, and the two models, BPE and unigram. */
#ifndef SH_TOKENIZER_TOK_MODEL_H
#define SH_TOKENIZER_TOK_MODEL_H

#include "src/tokenizer/tok_json.h"

/* ---- the vocabulary (tok_vocab.c): id to string, and string to id for tokens that the model may produce ---- */

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

/* Hashes depend on a random number, so that no file can put all its tokens into one slot. Results do not depend on
 * it. */
uint64_t sh_tok_seed(void);
uint64_t sh_tok_hash(uint64_t seed, const char *text, size_t n);

static inline uint64_t sh_tok_mix(uint64_t seed, uint64_t x)
{
    x = (x ^ seed) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 32;
    x *= seed | 1;
    return x ^ x >> 29;
}

/* ---- added tokens (tok_added.c): strings that are cut out of the text as they are, before the model sees it ---- */

#define SH_ADDED_LONGEST 512u           /* bytes; published ones have 40. What a text can cost is
                                           its length times the longest of them */

/* Strip the space before, the space after; match whole words only. */
enum { SH_ADDED_LSTRIP = 1, SH_ADDED_RSTRIP = 2, SH_ADDED_WORD = 4 };

struct sh_added_node { int32_t id; unsigned flags; };   /* id -1: no token ends here */
struct sh_added_edge { uint64_t from; int32_t to; };    /* from: node << 8 | byte; 0: free */

struct sh_added {                       /* a trie; node 0 is the root, so 0 also means none */
    struct sh_added_node *node;
    int32_t n, cap;
    int32_t first[256];                 /* the root's children */
    struct sh_added_edge *edge;         /* those of the others: a hash table; lists of 256 would be slow */
    size_t n_edge, n_slot;
    uint64_t seed;
};

struct sh_added_match { size_t at, end; int32_t id; };

/* -1, and nothing is added, if it or the total is too long; an empty string is never found. */
int sh_added_put(struct sh_added *a, const char *text, size_t n, int32_t id, unsigned flags, struct sh_err *e);
void sh_added_free(struct sh_added *a);

/* The node that a byte leads to, 0 when there is none. */
int32_t sh_added_child(const struct sh_added *a, int32_t node, unsigned char byte);

/* The bytes of the longest string that text[0..n) begins with, 0: none. */
size_t sh_added_longest(const struct sh_added *a, const char *text, size_t n, int32_t *node);

/* The next token in text[from..n): the leftmost, and of those that begin there the longest. */
int sh_added_next(const struct sh_added *a, const char *text, size_t n, size_t from, struct sh_added_match *m);

/* ---- BPE (tok_bpe.c, tok_bpe_read.c): repeatedly merges the leftmost occurrence of the pair that is first in the list
 * of merges or, in SentencePiece's files, of the pair whose token has the highest score ---- */

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
    struct sh_vocab lone;               /* by_score: characters that are only parts of tokens; ids from lone_at */
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
/* From ids, which are ranks (tok_ranks.c): the lowest of those that can come out first. */
int sh_bpe_from_ranks(struct sh_bpe *b, const struct sh_vocab *vocab, struct sh_err *e);
void sh_bpe_free(struct sh_bpe *b);

/* Building: an empty table for n merges; one more merge (the last of a repeated pair wins); the final step. */
void sh_bpe_room(struct sh_bpe *b, size_t n);
void sh_bpe_put(struct sh_bpe *b, int32_t left, int32_t right, int32_t rank, int32_t id);
void sh_bpe_ready(struct sh_bpe *b);

struct sh_bpe_work *sh_bpe_begin(const struct sh_bpe *b);
void sh_bpe_end(struct sh_bpe_work *w);

/* Appends the ids of a piece; fails on a character that the vocabulary cannot represent. */
int sh_bpe_encode(struct sh_bpe_work *w, const char *piece, size_t n, struct sh_ids *out, struct sh_err *e);

/* ---- unigram (tok_unigram.c; Kudo 2018): of all cuts of a piece into tokens, the one with the largest sum of scores
 * (Viterbi) ---- */

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
