/* SPDX-License-Identifier: Apache-2.0 */
/* Added tokens: strings that are cut out of the text as they are, before BPE sees it. */
#ifndef SH_MODEL_TOK_ADDED_H
#define SH_MODEL_TOK_ADDED_H

#include "src/model/tok_text.h"

/* Swallow the space before, the space behind; whole words only. */
enum { SH_ADDED_LSTRIP = 1, SH_ADDED_RSTRIP = 2, SH_ADDED_WORD = 4 };

struct sh_added_node {
    int32_t id;                         /* -1: no token ends here */
    int32_t child, next;
    unsigned char byte, flags;
};

struct sh_added {                       /* a trie; node 0 is the root, so 0 also ends lists */
    struct sh_added_node *node;
    int32_t n, cap;
    int32_t first[256];                 /* the root's children, 0: none */
};

struct sh_added_match { size_t at, end; int32_t id; };

/* -1 (nothing added) when the strings together are too many; an empty string is never found. */
int sh_added_put(struct sh_added *a, const char *text, size_t n, int32_t id, unsigned flags);
void sh_added_free(struct sh_added *a);

/* The next token in text[from..n): the leftmost, and of those that begin there the longest. */
int sh_added_next(const struct sh_added *a, const char *text, size_t n, size_t from,
                  struct sh_added_match *m);

#endif
