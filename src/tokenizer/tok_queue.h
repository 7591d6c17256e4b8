/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest key first: a radix heap (Ahuja and others 1990), which touches memory in order where
 * a binary heap jumps. Keys below the one taken last are rare here (a token seldom stands before its
 * halves in the list of merges) and wait in a small binary heap. */
#ifndef SH_TOKENIZER_TOK_QUEUE_H
#define SH_TOKENIZER_TOK_QUEUE_H

#include <stddef.h>
#include <stdint.h>

struct sh_keys { uint64_t *at; size_t n, cap; };

struct sh_queue {                       /* start with {0} */
    struct sh_keys bucket[65];          /* by the highest bit in which a key differs from `last` */
    struct sh_keys late;                /* smaller than `last` */
    uint64_t last;
};

void sh_queue_clear(struct sh_queue *q);                /* keeps the memory */
void sh_queue_free(struct sh_queue *q);
void sh_queue_push(struct sh_queue *q, uint64_t key);
int sh_queue_pop(struct sh_queue *q, uint64_t *key);    /* 0: it is empty */

#endif
