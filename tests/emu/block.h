/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of the block that runs: block.cpp goes from one to another, warp.cpp lets the lanes of a
 * warp meet. */
#ifndef SH_EMU_BLOCK_H
#define SH_EMU_BLOCK_H

#include <stdint.h>

#include "tests/emu/fiber.h"
#include "tests/emu/running.h"

namespace emu {

enum State { GOES, AT_BARRIER, AT_WARP, GONE };

struct Thread {
    Fiber *fiber;
    State state;
    Site site;                          /* where it waits                                          */
};

/* Lanes of a warp: threads as bits, and what each has brought to the others, side by side. */
struct Warp {
    uint32_t ready, waiting, gone;      /* can go on; wait in warp.cpp; have returned              */
    uint32_t mask[WARP];                /* for whom each waits or waited last, and for what        */
    Collective kind[WARP];
    int from[WARP];                     /* the lane whose value it gets                            */
    uint64_t value[WARP], result[WARP];
};

struct Block {
    Thread thread[MOST_THREADS];
    Warp warp[MOST_THREADS / WARP];
    unsigned n, n_begun, n_gone, n_at_barrier;
    bool is_backward;                   /* threads take their turns from the last to the first     */
    Site barrier;                       /* where those at the barrier are, and the first of them   */
    unsigned first_at_barrier;
    uint32_t ready_warps;               /* with a lane that can go on                              */
};

extern Block block;

/* The running thread cannot go on: comes back when somebody has made it ready. */
void wait_for_others(State state);
void make_ready(unsigned warp, uint32_t lanes);
/* warp.cpp: fails when a lane waits for the running thread, which returns. */
void check_lanes_left();
/* The warp function that a thread waits in. */
const char *waits_in(unsigned thread);

}

#endif
