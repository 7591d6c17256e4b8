/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of CUDA about devices, errors and memory. */
#include <cuda_runtime.h>
#include <stdio.h>

#include <atomic>

#include "tests/emu/call.h"
#include "tests/emu/emu.h"
#include "tests/emu/memory.h"
#include "tests/emu/running.h"
#include "tests/emu/settings.h"
#include "tests/emu/stream.h"

namespace emu {

thread_local int current_device;
thread_local cudaError_t last_error;

static std::mutex &the_lock = *new std::mutex;

static cudaError_t state_of_devices()
{
    int count;
    cudaError_t error = device_count(&count);
    return error != cudaSuccess ? error : lasting_error();
}

Call::Call() : hold(the_lock), device(cudaSuccess)
{
    if (is_device)
        fail("a kernel calls the runtime");
    device = state_of_devices();
}

}

using namespace emu;

static const struct { cudaError_t error; const char *name, *text; } known[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable", "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
};

const char *cudaGetErrorString(cudaError_t error)
{
    for (const auto &k : known)
        if (k.error == error)
            return k.text;
    return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t error)
{
    for (const auto &k : known)
        if (k.error == error)
            return k.name;
    return "unrecognized error code";
}

cudaError_t cudaGetLastError(void)
{
    Call call;
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return lasting_error() != cudaSuccess ? lasting_error() : error;
}

cudaError_t cudaPeekAtLastError(void)
{
    Call call;
    return lasting_error() != cudaSuccess ? lasting_error() : last_error;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    Call call;
    device_count(count);
    return call.end(cudaSuccess);
}

cudaError_t cudaSetDevice(int device)
{
    Call call;
    int count;
    device_count(&count);
    if (device < 0 || device >= count)
        return call.end(cudaErrorInvalidDevice);
    current_device = device;
    return call.end(cudaSuccess);
}

cudaError_t cudaGetDevice(int *device)
{
    Call call;
    *device = current_device;
    return call.end(cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *about, int device)
{
    Call call;
    int count;
    device_count(&count);
    if (device < 0 || device >= count)
        return call.end(cudaErrorInvalidDevice);
    *about = cudaDeviceProp();
    if (device)
        snprintf(about->name, sizeof about->name, "Emulated device %d", device);
    else
        snprintf(about->name, sizeof about->name, "Emulated device");
    about->totalGlobalMem = device_memory();
    about->sharedMemPerBlock = 48 * 1024;
    about->major = 9;
    about->multiProcessorCount = 1;
    return call.end(cudaSuccess);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *about, const void *kernel)
{
    Call call;
    *about = cudaFuncAttributes();
    return call.end(!kernel ? cudaErrorInvalidValue : has_code() ? cudaSuccess : cudaErrorNoKernelImageForDevice);
}

/* Versions are known without a device; a driver that is too old has one too. */
cudaError_t cudaDriverGetVersion(int *version)
{
    int count;
    *version = device_count(&count) == cudaErrorInsufficientDriver ? 10000 : 12040;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 12040;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    Call call;
    if (call.failed())
        return call.status();
    count_wait(false);
    settle_device(current_device);
    return call.end(cudaSuccess);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    Call call;
    if (call.failed())
        return call.status();
    size_t taken = memory_taken(current_device);
    *total_bytes = device_memory();
    *free_bytes = *total_bytes > taken ? *total_bytes - taken : 0;
    return call.end(cudaSuccess);
}

cudaError_t cudaMalloc(void **at, size_t bytes)
{
    Call call;
    if (call.failed())
        return call.status();
    if (!at)
        return call.end(cudaErrorInvalidValue);
    check_no_recording("cudaMalloc");
    *at = bytes ? region_new(bytes, current_device) : nullptr;
    return call.end(*at || !bytes ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags)
{
    Call call;
    if (call.failed())
        return call.status();
    if (!at || flags & ~(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined))
        return call.end(cudaErrorInvalidValue);
    *at = bytes ? region_new(bytes, PINNED) : nullptr;
    return call.end(*at || !bytes ? cudaSuccess : cudaErrorMemoryAllocation);
}

/* Both kinds of memory are freed when all devices are done, also after an error that lasts: what the
 * program gives back then is no leak. */
static cudaError_t give_back(void *at, bool is_pinned)
{
    Call call;
    const Region *r = at ? region_of(at) : nullptr;
    if (!at)
        return call.end(cudaSuccess);
    if (!r || r->at != at || (r->device == PINNED) != is_pinned)
        return call.end(cudaErrorInvalidValue);
    settle_all();
    check_edges("something");
    region_free(r);
    return call.end(cudaSuccess);
}

static std::atomic<void (*)(void)> before_free;

void emu_before_free(void (*fn)(void))
{
    before_free = fn;
}

cudaError_t cudaFree(void *at)
{
    void (*fn)(void) = before_free;
    if (fn && at)
        fn();
    return give_back(at, false);
}

cudaError_t cudaFreeHost(void *at)
{
    return give_back(at, true);
}
