/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed number of clients, as in closed_loop.h, of a server that reads prompts on some GPUs and decodes on others:
 *
 *  1. Prompts wait in one queue. A prefill worker that is idle takes as many as fit into a step, oldest first; one that
 *     is longer than a step it reads alone, in several. The step's end gives each its first token.
 *  2. A prompt's cache then goes over its worker's link, one after the other: bytes of a GPU / transfer. The worker
 *     reads the next prompts meanwhile; caches that have not gone yet take its memory, and it waits if that is full.
 *  3. A request whose cache has come joins the decode worker with the fewest requests, the first of equals. It is
 *     admitted there at the end of a step, oldest first, as in a closed loop, and each worker decodes all that it has.
 *  4. An answer of one token is over after its prompt, without a transfer.
 *  5. With a prefix cache (prefix_cache.h), each prefill worker has one of its own. A prompt that it takes begins after
 *     the blocks that are there; the step lasts longer by the time to load those of host and disk. The blocks of a step
 *     are there when it ends, and are held until the request's cache has gone, which goes as a whole. With a budget,
 *     the blocks are whole, and the request leaves them at the step's end for its copy of what it keeps, which that
 *     step reads and writes. Decode workers have no prefix cache.
 *
 * With a budget, a request's cache is what the budget keeps of its prompt, on both sides and on the link. */
#ifndef SH_PLANNER_SIMULATE_SPLIT_LOOP_H
#define SH_PLANNER_SIMULATE_SPLIT_LOOP_H

#include "planner/simulate/closed_loop.h"

struct sh_split_ask {
    struct sh_loop_ask loop;            /* the clients, and a decode worker, pp 1; the prefix cache is
                                         * that of a prefill worker                               */
    const struct sh_clock *prefill;     /* a prefill worker, pp 1                                 */
    const struct sh_capacity_ask *prefill_ask;
    uint32_t n_prefill, n_decode;       /* workers, each at least 1                                */
    double transfer;                    /* bytes/s that a GPU of a prefill worker sends, above 0; may be infinite */
};

/* loop.chunk is that of a prefill worker. out->pool: of a GPU that decodes; busy_s: of decode workers, in the mean. */
int sh_split_loop(const struct sh_split_ask *a, struct sh_loop_result *out, struct sh_err *e);

#endif
