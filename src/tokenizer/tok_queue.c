/* SPDX-License-Identifier: Apache-2.0 */
/* See tok_queue.h. */
#include "src/tokenizer/tok_queue.h"

#include <stdlib.h>

#include "src/base/mem.h"

static void add(struct sh_keys *k, uint64_t key)
{
    if (k->n == k->cap) {
        k->cap = k->cap ? 2 * k->cap : 64;
        k->at = xreallocarray(k->at, k->cap, sizeof *k->at);
    }
    k->at[k->n++] = key;
}

static void late_push(struct sh_keys *k, uint64_t key)
{
    add(k, key);
    size_t i = k->n - 1;
    for (; i && k->at[(i - 1) / 2] > key; i = (i - 1) / 2)
        k->at[i] = k->at[(i - 1) / 2];
    k->at[i] = key;
}

static uint64_t late_pop(struct sh_keys *k)
{
    uint64_t top = k->at[0], key = k->at[--k->n];
    size_t i = 0, child;
    while ((child = 2 * i + 1) < k->n) {
        if (child + 1 < k->n && k->at[child + 1] < k->at[child])
            child++;
        if (key <= k->at[child])
            break;
        k->at[i] = k->at[child];
        i = child;
    }
    k->at[i] = key;
    return top;
}

void sh_queue_clear(struct sh_queue *q)
{
    for (int i = 0; i <= 64; i++)
        q->bucket[i].n = 0;
    q->late.n = 0;
    q->last = 0;
}

void sh_queue_free(struct sh_queue *q)
{
    for (int i = 0; i <= 64; i++)
        free(q->bucket[i].at);
    free(q->late.at);
}

static struct sh_keys *bucket_of(struct sh_queue *q, uint64_t key)
{
    return &q->bucket[key == q->last ? 0 : 64 - __builtin_clzll(key ^ q->last)];
}

void sh_queue_push(struct sh_queue *q, uint64_t key)
{
    if (key < q->last)
        late_push(&q->late, key);
    else
        add(bucket_of(q, key), key);
}

/* The smallest key of the first bucket that has one becomes `last`; the others move down. */
static int refill(struct sh_queue *q)
{
    int i = 1;
    while (i <= 64 && !q->bucket[i].n)
        i++;
    if (i > 64)
        return 0;
    struct sh_keys *from = &q->bucket[i];
    uint64_t least = from->at[0];
    for (size_t k = 1; k < from->n; k++)
        least = from->at[k] < least ? from->at[k] : least;
    q->last = least;
    for (size_t k = 0; k < from->n; k++)
        add(bucket_of(q, from->at[k]), from->at[k]);
    from->n = 0;
    return 1;
}

int sh_queue_pop(struct sh_queue *q, uint64_t *key)
{
    if (q->late.n) {
        *key = late_pop(&q->late);
        return 1;
    }
    if (!q->bucket[0].n && !refill(q))
        return 0;
    *key = q->bucket[0].at[--q->bucket[0].n];
    return 1;
}
