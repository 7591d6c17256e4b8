/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills. As CUDA does it: memory of the host that is not pinned is written before the call returns. It
 * is read at the call or when the stream comes to it, as the driver likes, so it must not change in between;
 * pinned memory is read and written when the stream comes to it. */
#include <cuda_runtime.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "tests/emu/call.h"
#include "tests/emu/memory.h"
#include "tests/emu/running.h"
#include "tests/emu/settings.h"
#include "tests/emu/stream.h"

namespace emu {

struct Rows {                           /* a block of bytes with a pitch                           */
    char *at;
    size_t pitch;
};

struct Copy {
    Rows to, from;
    size_t width, height;
};

static void run_copy(const Copy &c)
{
    for (size_t i = 0; i < c.height; i++)
        memmove(c.to.at + i * c.to.pitch, c.from.at + i * c.from.pitch, c.width);
}

static bool is_on_device(const Region *r)
{
    return r && r->device != PINNED;
}

static bool fits_kind(const Copy &c, cudaMemcpyKind kind)
{
    bool to = is_on_device(region_of(c.to.at)), from = is_on_device(region_of(c.from.at));
    switch (kind) {
    case cudaMemcpyHostToHost: return !to && !from;
    case cudaMemcpyHostToDevice: return to && !from;
    case cudaMemcpyDeviceToHost: return !to && from;
    case cudaMemcpyDeviceToDevice: return to && from;
    default: return kind == cudaMemcpyDefault;
    }
}

static void check_rows(const char *what, const Rows &rows, const Copy &c, int device)
{
    if (region_of(rows.at))
        check_range(what, rows.at, (c.height - 1) * rows.pitch + c.width, device, true);
    else if (was_ours(rows.at))
        fail("%s: %p is freed memory, or beside an allocation", what, (void *)rows.at);
}

static bool is_mapped(const Rows &rows, const Copy &c)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)rows.at, first = at / page * page;
    return !msync((void *)first, at - first + (c.height - 1) * rows.pitch + c.width, MS_ASYNC);
}

/* The stream has come to the copy `c`; `was` is what its source was at the call. */
static void check_source(const char *what, const Copy &c, const char *was)
{
    if (!is_mapped(c.from, c))
        fail("%s: the pageable memory at %p is gone: it was freed before the stream had read it", what,
             (void *)c.from.at);
    for (size_t i = 0; i < c.height; i++)
        if (memcmp(c.from.at + i * c.from.pitch, was + i * c.width, c.width))
            fail("%s: the pageable memory at %p has changed: it was written or freed before the stream had read it",
                 what, (void *)c.from.at);
}

/* Out of pageable memory: early out of a copy that nobody can change any more, late out of the memory itself. */
static std::function<void()> from_pageable(const char *what, const Copy &c)
{
    check_no_recording("pageable memory is copied");
    auto bytes = std::make_shared<std::vector<char>>(c.width * c.height);
    Copy now = c, early = c;
    now.to = early.from = {bytes->data(), c.width};
    run_copy(now);
    if (!reads_late())
        return [early, bytes] { run_copy(early); };
    return [what, c, bytes] {
        check_source(what, c, bytes->data());
        run_copy(c);
    };
}

static cudaError_t copy(const char *what, const Copy &c, cudaMemcpyKind kind, cudaStream_t stream, bool wait_for_host)
{
    Call call;
    if (call.failed())
        return call.status();
    if (!c.width || !c.height)
        return call.end(cudaSuccess);
    if (!c.to.at || !c.from.at || c.to.pitch < c.width || c.from.pitch < c.width || !fits_kind(c, kind))
        return call.end(cudaErrorInvalidValue);
    CUstream_st *s = stream_at(stream);
    check_rows(what, c.to, c, s->device);
    check_rows(what, c.from, c, s->device);
    const Region *to = region_of(c.to.at), *from = region_of(c.from.at);
    put(s, {from ? [c] { run_copy(c); } : from_pageable(what, c), nullptr, nullptr});
    if (!to || (wait_for_host && !(is_on_device(to) && is_on_device(from)))) {
        count_wait(false);
        settle(s, nullptr);
    }
    return call.end(cudaSuccess);
}

}

using namespace emu;

static Rows rows(const void *at, size_t pitch)
{
    return {(char *)at, pitch};
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    return copy("cudaMemcpy", {rows(to, bytes), rows(from, bytes), bytes, 1}, kind, 0, true);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy("cudaMemcpyAsync", {rows(to, bytes), rows(from, bytes), bytes, 1}, kind, stream, false);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy("cudaMemcpy2DAsync", {rows(to, to_pitch), rows(from, from_pitch), width, height}, kind, stream, false);
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream)
{
    Call call;
    if (call.failed())
        return call.status();
    if (!bytes)
        return call.end(cudaSuccess);
    if (!region_of(at))
        return call.end(cudaErrorInvalidValue);
    CUstream_st *s = stream_at(stream);
    check_range("cudaMemsetAsync", at, bytes, s->device, true);
    put(s, {[at, value, bytes] { memset(at, value, bytes); }, nullptr, nullptr});
    return call.end(cudaSuccess);
}
