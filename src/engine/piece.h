/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of a batch of sequences that go through the layers together, and who looks on. */
#ifndef SH_ENGINE_PIECE_H
#define SH_ENGINE_PIECE_H

#include "planner/policy/policy.h"

/* What the query of token t attends over, its own token included, with the group's mean row of attention
 * [n_slot]: called once for each sequence, layer and KV head (on a device row by row, then by sequence; of a block
 * some rows at a time, head by head). There are no keys and values to see on a device. */
typedef void sh_watch(void *to, int sequence, int layer, int head, int t, const struct sh_cache *c, const float *row);

struct sh_piece {
    const int *start, *first;           /* host: the rows of sequence i are [start[i], start[i + 1]), and */
                                        /* first[i] is the position of the first of them          */
    int by_block;                       /* those of each sequence are a block (block.h)           */
    sh_watch *watch;                    /* NULL: nobody looks                                     */
    void *watch_to;
};

#endif
