/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment asks for. Read when it is needed, so that a test may change it as it goes.
 *
 *     SH_EMU_DEVICES   how many devices there are (default 1, at most 8; 0: cudaErrorNoDevice),
 *                      or "driver": cudaErrorInsufficientDriver. All but the first have their
 *                      number in their name
 *     SH_EMU_MEMORY    bytes of each device, with K, M or G after it (default 1G); cudaMalloc beyond
 *                      is refused
 *     SH_EMU_PINNED    bytes of pinned memory that there are (default: no limit); cudaHostAlloc beyond is refused
 *     SH_EMU_PAGEABLE  late (default): host memory that is not pinned is read when the stream comes to the copy,
 *                      and it must not have changed by then; early: at the call. CUDA promises neither
 *     SH_EMU_CODE=0    the devices are of a kind that the module has no code for
 *     SH_EMU_FAIL=N    the N-th kernel or cuBLAS product of the process makes it and every later call
 *                      return cudaErrorIllegalAddress
 *     SH_EMU_LOST=N    the same with cudaErrorDevicesUnavailable
 *     SH_EMU_GRAPH     begin, kernel, end or make: what fails of capturing a stream: the call that begins it,
 *                      a kernel of it (and so its end), the call that ends it, the one that makes it
 *                      executable. With :N appended: of the N-th capture of the process and all after it
 *     SH_EMU_STREAMS   lazy (default): only what a wait needs runs; others: at a wait the other streams
 *                      run first, as far as events let them; eager: work runs when it is queued
 *     SH_EMU_CLOSE     when a device's memory is closed to the host again, on processors without protection keys (with
 *                      keys: always). seldom (default): if there are many allocations, every 16th time; always
 *     SH_EMU_LEAKS=1   what is not given back when the process ends makes it fail */
#ifndef SH_EMU_SETTINGS_H
#define SH_EMU_SETTINGS_H

#include <cuda_runtime.h>

namespace emu {

enum { MOST_DEVICES = 8 };
enum Order { LAZY, OTHERS, EAGER };

cudaError_t device_count(int *count);
size_t device_memory();
size_t pinned_memory();
bool reads_late();
bool has_code();
Order stream_order();
bool closes_always();
bool leaks_fail();
/* Does this part of the capture with this number, from 1 on, fail? */
bool graph_fails(const char *part, unsigned long capture);

/* Each kernel and product that is started; says whether the device stands it. */
bool count_launch();
/* The error that the device is in for good. */
cudaError_t lasting_error();

}

#endif
