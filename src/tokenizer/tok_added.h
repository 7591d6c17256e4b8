/* SPDX-License-Identifier: Apache-2.0 */
/* Added tokens: strings that are cut out of the text as they are, before BPE sees it. */
#ifndef SH_TOKENIZER_TOK_ADDED_H
#define SH_TOKENIZER_TOK_ADDED_H

#include "src/base/err.h"
#include "src/tokenizer/tok_text.h"

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
    struct sh_added_edge *edge;         /* those of the others: a hash table, since lists of 256
                                           would make a step slow where a file wants it */
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

#endif
