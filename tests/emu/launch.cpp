/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on their way into a stream. */
#include <sys/mman.h>
#include <unistd.h>

#include "tests/emu/call.h"
#include "tests/emu/memory.h"
#include "tests/emu/running.h"
#include "tests/emu/settings.h"
#include "tests/emu/stream.h"

namespace emu {

/* An address that the host's code could use: what a structure's word can only be by mistake. Below the
 * limit lie two small whole numbers side by side, and the sanitizer's tables, which are mapped. */
static bool is_host_memory(uint64_t word)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), least = 5ull << 44, most = 1ull << 48;
    return word >= least && word < most && !msync((void *)(uintptr_t)(word / page * page), (size_t)page, MS_ASYNC);
}

void check_argument(const char *kernel, int number, const void *at, size_t bytes, bool is_struct)
{
    Call call;
    for (size_t i = 0; i + 8 <= bytes && !call.failed(); i += 8) {
        uint64_t word;
        memcpy(&word, (const char *)at + i, sizeof word);
        const void *pointer = (const void *)(uintptr_t)word;
        const Region *r = word ? region_of(pointer) : nullptr;
        if (!word || (r && (r->device == PINNED || r->device == current_device)))
            continue;
        if (r && !is_struct)
            fail("kernel %s: argument %d points to memory of device %d, the current one is %d", kernel, number,
                 r->device, current_device);
        if (!is_struct)
            fail("kernel %s: argument %d: %p is no memory of the device and not pinned", kernel, number, pointer);
        if (!was_ours(pointer) && is_host_memory(word))
            fail("kernel %s: argument %d: the word at byte %zu points to host memory", kernel, number, i);
    }
}

static bool is_possible(const Launch &work)
{
    const dim3 &g = work.grid, &b = work.block;
    return g.x && g.y && g.z && b.x && b.y && b.z && g.x <= 0x7fffffffu && g.y <= 65535 && g.z <= 65535 &&
           (uint64_t)b.x * b.y * b.z <= MOST_THREADS;
}

static void run_and_check(const Launch &work)
{
    run_grid(work);
    check_edges(work.kernel);
}

void launch(cudaStream_t stream, Launch work)
{
    Call call;
    if (call.failed())
        return;
    CUstream_st *s = stream_at(stream);
    if (!is_possible(work)) {
        call.end(cudaErrorInvalidConfiguration);
        return;
    }
    if (work.block.y != 1 || work.block.z != 1)
        fail("kernel %s: blocks of more than one dimension are not emulated", work.kernel);
    if (s->device != current_device) {
        call.end(cudaErrorInvalidResourceHandle);
        return;
    }
    if (spoils_recording(s)) {
        call.end(cudaErrorStreamCaptureUnsupported);
        return;
    }
    if (s->recording || count_launch())
        put(s, {[work] { run_and_check(work); }, nullptr, nullptr});
    else
        drop_all();
}

}
