/* SPDX-License-Identifier: Apache-2.0 */
/* A block of a prompt's tokens in one KV head of one layer: all of them attend over the cached tokens and causally over
 * each other, the policy observes every row, and then tokens are evicted as for the next token
 * (planner/policy/policy.h, step 1). A block of one token is the stream; a block as long as the prompt is compressed
 * once.
 *
 * Within the block, keys and values are floats as computed. New tokens that stay are then put into the cache's format;
 * cached tokens are not coded again. Meanwhile the head holds all tokens as floats; sh_block_run reports the memory. */
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
    float *mixed;                       /* likewise; NULL: attention has been computed already    */
    unsigned needs;                     /* the policy's (enum sh_needs)                           */
    int observes;                       /* it wants the rows                                      */
    sh_watch *watch;                    /* may be NULL                                            */
    void *watch_to;
    struct sh_stages *stages;           /* NULL: time is not measured                             */
    int sharers;                        /* threads of the time                                    */
};

/* -1: it does not fit into memory, and the head is unchanged. *bytes: what it took in addition to the cache, free again
 * now. */
int sh_block_run(const struct sh_block *b, size_t *bytes, struct sh_err *e);

#endif
