/* SPDX-License-Identifier: Apache-2.0 */
/* What runs at the moment, for checks and messages. One kernel runs at a time, under the lock of
 * runtime.h, on one host thread. */
#ifndef SH_EMU_RUNNING_H
#define SH_EMU_RUNNING_H

#include <stdint.h>

#include "emu/launch.h"

namespace emu {

enum { WARP = 32, MOST_THREADS = 1024 };

struct Running {
    const char *kernel;                 /* NULL: none                                              */
    uint64_t launch, block, epoch;      /* numbers that never come again; epoch: between barriers  */
    unsigned thread;
    /* What a thread knows of its warp: [thread][lane], the lane's clock when they last met. A thread's
     * own clock counts what it has met; both only ever grow. */
    uint32_t clock[MOST_THREADS][WARP];
};

extern Running running;
extern thread_local bool is_device;     /* this host thread runs the kernel                        */

/* One line on stderr, "emu: ...", with the kernel, block and thread when one runs; then the process is
 * aborted, so that no test passes over it. */
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* block.cpp: the whole grid. */
void run_grid(const Launch &work);

}

#endif
