/* SPDX-License-Identifier: Apache-2.0 */
/* What gemm.cpp needs of runtime.cpp. */
#ifndef EMU_RUNTIME_H
#define EMU_RUNTIME_H

#include <functional>

#include <cuda_runtime.h>

namespace emu {

bool is_device_memory(const void *at, size_t bytes);
void enqueue_work(cudaStream_t s, std::function<void()> run);
cudaError_t broken_state();

} /* namespace emu */

#endif
