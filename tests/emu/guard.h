/* SPDX-License-Identifier: Apache-2.0 */
/* Faults (SIGSEGV) on the emulation's memory and in kernels are reported by name; others are none of
 * its business and go where they went before. */
#ifndef SH_EMU_GUARD_H
#define SH_EMU_GUARD_H

#include <stddef.h>

namespace emu {

void watch_faults();
/* memory.cpp: what lies at an address, or false when nothing of the emulation's does. */
bool describe(const void *at, char *text, size_t bytes);

}

#endif
