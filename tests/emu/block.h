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
    Collective kind;                    /* AT_WARP: for what, for whom, with what                  */
    unsigned mask;
    uint64_t value, result;
    int from;
};

struct Block {
    Thread thread[MOST_THREADS];
    unsigned n, n_begun, n_gone, n_at_barrier;
    bool is_backward;                   /* threads take their turns from the last to the first     */
    Site barrier;                       /* where those at the barrier are, and the first of them   */
    unsigned first_at_barrier;
    /* Threads as bits, a word a warp: that can go on, that wait in warp.cpp, that have returned. */
    uint32_t ready[WARP], waiting[WARP], gone[WARP];
    uint32_t ready_warps;               /* with a bit in `ready`                                   */
};

extern Block block;

/* The running thread cannot go on: comes back when somebody has made it ready. */
void wait_for_others(State state);
void make_ready(unsigned warp, uint32_t lanes);
/* warp.cpp: fails when a lane waits for the running thread, which returns. */
void check_lanes_left();
const char *collective_name(Collective kind);

}

#endif
