/* SPDX-License-Identifier: Apache-2.0 */
/* A block of a prompt's tokens in one KV head of one layer: all of them attend over what the cache holds and
 * causally over each other, the policy observes every row, and only then the cache is brought down to what
 * its budget leaves when the next token comes (planner/policy/policy.h, step 1 of that token). So a block of one
 * token is the stream, and a block as long as the prompt lets the whole prompt see everything, and compresses
 * it once.
 *
 * Within the block keys and values are floats as they were computed; what stays is put into the cache's
 * format then, and what the cache held already is not coded again. While a block is at work, its head holds
 * cached and new tokens as floats; what a session needs for that is told by sh_block_run. */
#ifndef SH_ENGINE_BLOCK_H
#define SH_ENGINE_BLOCK_H

#include "src/base/stages.h"
#include "src/engine/cache.h"

struct sh_block {
    const struct sh_attend *what;       /* of the layer: shapes, scale, window, slopes            */
    int sequence, layer, head;
    struct sh_kv_head *h;
    const struct sh_turn *turn;         /* positions inside the cache: rotary; else NULL          */
    int first, n;                       /* tokens [first, first + n)                              */
    const float *q, *k, *v;             /* of the first token: rows as wide as in `what`          */
    float *mixed;                       /* likewise; NULL: somebody has attended already          */
    unsigned needs;                     /* the policy's (enum sh_needs)                           */
    int observes;                       /* it wants the rows                                      */
    sh_watch *watch;                    /* NULL: nobody                                           */
    void *watch_to;
    struct sh_stages *stages;           /* NULL: time is not measured                             */
    int sharers;                        /* threads of the time                                    */
};

/* -1: it does not fit into memory, and the head is as it was. *bytes: that it took besides the cache, and are
 * free again. */
int sh_block_run(const struct sh_block *b, size_t *bytes, struct sh_err *e);

#endif
