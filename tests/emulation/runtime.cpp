/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, their memory, streams and events. Work that is put into a stream is only queued; it runs when
 * something waits for it: a synchronisation, the freeing of memory. An event makes the work before it run.
 * So a wait between streams that is missing shows: what should have come first has not happened yet. */
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "block.h"
#include "runtime.h"

struct emu_work {
    std::function<void()> run;          /* empty: wait for `event` to have happened `stamp` times  */
    emu_event *event;
    unsigned long stamp;
};

struct emu_stream {
    int device;
    std::deque<emu_work> queue;
};

struct emu_event {
    emu_stream *stream;                 /* of the last record; NULL: never                         */
    unsigned long recorded, happened;   /* counted                                                 */
};

namespace {

enum { GUARD = 256, MOST_DEVICES = 16 };
const unsigned char guard_byte = 0xd7;

struct allocation {
    size_t bytes;
    int device;                         /* -1: pinned host memory                                  */
};

std::recursive_mutex lock;              /* one GPU at a time runs, and nothing beside it           */
std::map<const char *, allocation> memory;      /* by first byte                                   */
size_t used[MOST_DEVICES];
std::vector<emu_stream *> streams;
unsigned long launches;
cudaError_t broken = cudaSuccess;       /* sticks */
thread_local int current;
thread_local cudaError_t last;

long long setting(const char *name, long long otherwise)
{
    const char *text = std::getenv(name);
    return text && *text ? std::strtoll(text, nullptr, 10) : otherwise;
}

size_t capacity() { return (size_t)setting("SH_EMU_MEMORY", 1LL << 30); }

cudaError_t give(cudaError_t e)
{
    if (e != cudaSuccess)
        last = e;
    return e;
}

/* Every call begins so: the error that sticks, or success. */
cudaError_t state() { return give(broken); }

void check_guards(const char *at, size_t bytes)
{
    for (int i = 0; i < GUARD; i++)
        if ((unsigned char)at[-1 - i] != guard_byte || (unsigned char)at[bytes + (size_t)i] != guard_byte)
            emu::fail("device memory was written outside an allocation of %zu bytes", bytes);
}

char *new_memory(size_t bytes, int device)
{
    char *whole = (char *)std::malloc(bytes + 2 * GUARD);
    if (!whole)
        return nullptr;
    std::memset(whole, guard_byte, bytes + 2 * GUARD);
    std::memset(whole + GUARD, 0xff, bytes);            /* NaN in every format */
    memory[whole + GUARD] = {bytes, device};
    return whole + GUARD;
}

/* The allocation that holds the byte, or memory.end(). */
std::map<const char *, allocation>::iterator find(const void *at)
{
    auto it = memory.upper_bound((const char *)at);
    if (it == memory.begin())
        return memory.end();
    --it;
    return (const char *)at < it->first + std::max<size_t>(it->second.bytes, 1) ? it : memory.end();
}

bool is_device(const void *at, size_t bytes)
{
    auto it = find(at);
    return it != memory.end() && it->second.device >= 0 && (const char *)at + bytes <= it->first + it->second.bytes;
}

bool is_pinned(const void *at)
{
    auto it = find(at);
    return it != memory.end() && it->second.device < 0;
}

void run_until(emu_stream *s, emu_event *e, unsigned long stamp);

void run_one(emu_stream *s)
{
    emu_work w = s->queue.front();
    s->queue.pop_front();
    if (w.run)
        w.run();
    else
        run_until(w.event->stream, w.event, w.stamp);
}

void run_until(emu_stream *s, emu_event *e, unsigned long stamp)
{
    while (e->happened < stamp && s && !s->queue.empty())
        run_one(s);
}

void drain(emu_stream *s)
{
    while (!s->queue.empty())
        run_one(s);
}

void drain_all()
{
    for (emu_stream *s : streams)
        drain(s);
}

void enqueue(emu_stream *s, std::function<void()> run)
{
    if (!s)
        emu::fail("work was put into no stream");
    s->queue.push_back({run, nullptr, 0});
}

struct last_check {
    ~last_check()
    {
        for (auto &m : memory)
            check_guards(m.first, m.second.bytes);
    }
} at_exit;

} /* namespace */

/* ---- for gemm.cpp ---- */

bool emu::is_device_memory(const void *at, size_t bytes)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    return is_device(at, bytes);
}

void emu::enqueue_work(cudaStream_t s, std::function<void()> run)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    enqueue(s, run);
}

cudaError_t emu::broken_state() { return broken; }

/* ---- kernels ---- */

void emu::check_pointer(const char *kernel, int argument, const void *at)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    if (at && find(at) == memory.end())
        fail("%s: argument %d is a pointer to neither device nor pinned memory", kernel, argument);
}

void emu::launch(const char *kernel, dim3 grid, dim3 block, cudaStream_t s, std::function<void()> body)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    if (state() != cudaSuccess)
        return;
    launches++;
    if ((long long)launches == setting("SH_EMU_FAIL", 0))
        broken = cudaErrorIllegalAddress;
    if ((long long)launches == setting("SH_EMU_LOST", 0))
        broken = cudaErrorDevicesUnavailable;
    if (broken == cudaSuccess)
        enqueue(s, [=] { run_grid(kernel, grid, block, body); });
}

/* ---- devices and errors ---- */

const char *cudaGetErrorName(cudaError_t e)
{
    switch (e) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorDevicesUnavailable: return "cudaErrorDevicesUnavailable";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    }
    return "unknown error";
}

const char *cudaGetErrorString(cudaError_t e)
{
    switch (e) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorDevicesUnavailable: return "CUDA-capable device(s) is/are busy or unavailable";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    }
    return "unknown error";
}

cudaError_t cudaGetDeviceCount(int *n)
{
    const char *text = std::getenv("SH_EMU_DEVICES");
    if (text && !std::strcmp(text, "driver"))
        return give(cudaErrorInsufficientDriver);
    *n = (int)std::min(setting("SH_EMU_DEVICES", 1), (long long)MOST_DEVICES);
    return *n ? state() : give(cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device)
{
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess)
        return last;
    if (device < 0 || device >= n)
        return give(cudaErrorInvalidDevice);
    current = device;
    return state();
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
    *p = cudaDeviceProp{};
    std::snprintf(p->name, sizeof p->name, "emulated device");
    p->major = 8;
    p->multiProcessorCount = 1;
    p->totalGlobalMem = capacity();
    return state();
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t e = broken != cudaSuccess ? broken : last;
    last = cudaSuccess;
    return e;
}

/* ---- memory ---- */

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    *total = capacity();
    *free_bytes = *total - std::min(*total, used[current]);
    return state();
}

cudaError_t cudaMalloc(void **at, size_t bytes)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    if (state() != cudaSuccess)
        return broken;
    if (used[current] + bytes > capacity() || !(*at = new_memory(bytes, current)))
        return give(cudaErrorMemoryAllocation);
    used[current] += bytes;
    return cudaSuccess;
}

static cudaError_t free_memory(void *at, bool pinned)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    if (!at)
        return state();
    drain_all();
    auto it = memory.find((const char *)at);
    if (it == memory.end() || (it->second.device < 0) != pinned)
        emu::fail("memory is freed that was not allocated so");
    check_guards(it->first, it->second.bytes);
    if (!pinned)
        used[it->second.device] -= it->second.bytes;
    memory.erase(it);
    std::free((char *)at - GUARD);
    return state();
}

cudaError_t cudaFree(void *at) { return free_memory(at, false); }

cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    if (state() != cudaSuccess)
        return broken;
    return (*at = new_memory(bytes, -1)) ? cudaSuccess : give(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *at) { return free_memory(at, true); }

/* As the runtime does it: pageable memory is read before the call returns and written before it returns;
 * pinned memory is touched when the copy's turn comes. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t s)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    if (state() != cudaSuccess || !bytes)
        return broken;
    bool down = kind == cudaMemcpyDeviceToHost;
    if (!is_device(down ? from : to, bytes))
        emu::fail("a copy of %zu bytes %s memory that is not the device's", bytes, down ? "reads" : "writes");
    if (down && !is_pinned(to)) {
        drain(s);
        std::memcpy(to, from, bytes);
    } else if (!down && !is_pinned(from)) {
        std::string kept((const char *)from, bytes);
        enqueue(s, [=] { std::memcpy(to, kept.data(), bytes); });
    } else {
        enqueue(s, [=] { std::memcpy(to, from, bytes); });
    }
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t s)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    if (state() != cudaSuccess)
        return broken;
    if (!is_device(at, bytes))
        emu::fail("%zu bytes are set that are not the device's", bytes);
    enqueue(s, [=] { std::memset(at, value, bytes); });
    return cudaSuccess;
}

/* ---- streams and events ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    if (state() != cudaSuccess)
        return broken;
    *s = new emu_stream{current, {}};
    streams.push_back(*s);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    drain_all();
    streams.erase(std::find(streams.begin(), streams.end(), s));
    delete s;
    return state();
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    drain(s);
    return state();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned)
{
    if (state() != cudaSuccess)
        return broken;
    *e = new emu_event{nullptr, 0, 0};
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    drain_all();                        /* nothing in a queue names it any more */
    delete e;
    return state();
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    if (state() != cudaSuccess)
        return broken;
    unsigned long stamp = ++e->recorded;
    e->stream = s;
    enqueue(s, [=] { e->happened = stamp; });
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    if (state() == cudaSuccess && e->stream && e->stream != s)
        s->queue.push_back({nullptr, e, e->recorded});
    return state();
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    std::lock_guard<std::recursive_mutex> hold(lock);
    run_until(e->stream, e, e->recorded);
    return state();
}
