/* SPDX-License-Identifier: Apache-2.0 */
/* As much of CUDA C as kernels/cuda uses, for the host: the same sources are compiled by a C++ compiler
 * against these headers and run block after block, thread by thread (block.cpp), with streams that run as
 * late as they may (runtime.cpp) and memory that is watched (runtime.cpp). What a GPU would do silently
 * wrong - a race on shared memory, a barrier that not all reach, a missing wait between streams, an index
 * past the end - ends the program with a line that begins "emu:".
 *
 * Faults by environment: SH_EMU_DEVICES (how many there are; "driver": the driver is too old),
 * SH_EMU_MEMORY (bytes of each), SH_EMU_FAIL=N and SH_EMU_LOST=N (the N-th kernel launch of the process
 * breaks the device for good: an illegal address, or the device is gone). */
#ifndef EMU_CUDA_RUNTIME_H
#define EMU_CUDA_RUNTIME_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#define SH_EMU 1
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline

#include "emu_block.h"
#include "emu_math.h"

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

enum cudaError_t {
    cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorInsufficientDriver = 35,
    cudaErrorDevicesUnavailable = 46, cudaErrorNoDevice = 100, cudaErrorInvalidDevice = 101,
    cudaErrorIllegalAddress = 700
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2, cudaHostAllocDefault = 0 };

struct cudaDeviceProp {
    char name[256];
    int major, minor, multiProcessorCount;
    size_t totalGlobalMem;
};

typedef struct emu_stream *cudaStream_t;
typedef struct emu_event *cudaEvent_t;

const char *cudaGetErrorString(cudaError_t e);
const char *cudaGetErrorName(cudaError_t e);
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total);
cudaError_t cudaMalloc(void **at, size_t bytes);
cudaError_t cudaFree(void *at);
cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *at);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t s);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t s);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t e);
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s);
cudaError_t cudaEventSynchronize(cudaEvent_t e);
cudaError_t cudaGetLastError(void);

namespace emu {

/* Queue a kernel; body runs one thread of it. */
void launch(const char *kernel, dim3 grid, dim3 block, cudaStream_t s, std::function<void()> body);
/* A pointer that a kernel gets must be device or pinned memory, or NULL. */
void check_pointer(const char *kernel, int argument, const void *at);

template <typename T> void check_argument(const char *, int, const T &) {}
template <typename T> void check_argument(const char *kernel, int i, T *const &at) { check_pointer(kernel, i, at); }

template <typename... P, typename... A>
void launch_kernel(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t s, A... a)
{
    int i = 0;
    (check_argument(name, i++, static_cast<P>(a)), ...);
    launch(name, grid, block, s, [=] { kernel(static_cast<P>(a)...); });
}

} /* namespace emu */

#define SH_LAUNCH(kernel, grid, block, stream, ...) \
    emu::launch_kernel(#kernel, kernel, grid, block, stream, __VA_ARGS__)

#endif
