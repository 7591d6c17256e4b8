/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment asks for. Read when it is needed, so that a test may change it as it goes.
 *
 *     SH_EMU_DEVICES   how many devices there are (default 1, at most 8; 0: cudaErrorNoDevice),
 *                      or "driver": cudaErrorInsufficientDriver. All but the first have their
 *                      number in their name
 *     SH_EMU_MEMORY    bytes of each device, with K, M or G behind (default 1G); cudaMalloc beyond
 *                      is refused
 *     SH_EMU_CODE=0    the devices are of a kind that the module has no code for
 *     SH_EMU_FAIL=N    the N-th kernel or cuBLAS product of the process makes it and every later call
 *                      return cudaErrorIllegalAddress
 *     SH_EMU_LOST=N    the same with cudaErrorDevicesUnavailable
 *     SH_EMU_STREAMS   lazy (default): only what a wait needs runs; others: at a wait the other streams
 *                      run first, as far as events let them; eager: work runs when it is queued
 *     SH_EMU_LEAKS=1   what is not given back when the process ends makes it fail */
#ifndef SH_EMU_SETTINGS_H
#define SH_EMU_SETTINGS_H

#include <cuda_runtime.h>

namespace emu {

enum { MOST_DEVICES = 8 };
enum Order { LAZY, OTHERS, EAGER };

cudaError_t device_count(int *count);
size_t device_memory();
bool has_code();
Order stream_order();
bool leaks_fail();

/* Each kernel and product that is started; says whether the device stands it. */
bool count_launch();
/* The error that the device is in for good. */
cudaError_t lasting_error();

}

#endif
