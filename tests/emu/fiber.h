/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of execution with their own stacks that hand the host thread to each other. They are made once
 * and never end. */
#ifndef SH_EMU_FIBER_H
#define SH_EMU_FIBER_H

#include <stddef.h>

namespace emu {

struct Fiber;

/* One that runs `main` when it is first switched to; main does not return. */
Fiber *fiber_new(void (*main)());
/* Stands for the host thread's own stack: where the first switch leaves from. */
Fiber *fiber_of_host();
void fiber_switch(Fiber *from, Fiber *to);

}

#endif
