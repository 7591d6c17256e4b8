/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with an access to shared memory. Two accesses of which one writes need a barrier in
 * between: __syncthreads, which opens a new epoch, or within a warp __syncwarp, where lanes learn each
 * other's clocks. Shuffles and votes order no memory (CUDA C++ programming guide, warp shuffle functions),
 * so they do not count. Atomic accesses are ordered among themselves. */
#include "emu/shared.h"
#include "tests/emu/running.h"

namespace emu {

/* The running thread has met `thread` since that one's clock stood there. */
static bool has_met(uint32_t thread, uint32_t clock)
{
    return thread == running.thread ||
           (thread / WARP == running.thread / WARP && running.clock[running.thread][thread % WARP] >= clock);
}

static const int NOBODY = -1;

/* A thread of the crowd that the running one has not met since; clock: the lanes' at their accesses. */
static int stranger(const Crowd &c, const uint32_t *clock)
{
    if (c.epoch != running.epoch)
        return NOBODY;
    if (c.other != c.first)
        return c.first / WARP == running.thread / WARP ? c.other : c.first;
    uint32_t warp = c.first / WARP;
    for (uint32_t left = c.lanes; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left), thread = warp * WARP + lane;
        if (!has_met(thread, clock[lane]))
            return (int)thread;
    }
    return NOBODY;
}

static void join(Crowd &c, uint32_t *clock)
{
    uint32_t lane = running.thread % WARP;
    if (c.epoch != running.epoch) {
        c.epoch = running.epoch;
        c.first = c.other = (uint16_t)running.thread;
        c.lanes = 0;
    }
    if (c.other != c.first)
        return;
    if (c.first / WARP != running.thread / WARP) {
        c.other = (uint16_t)running.thread;
        return;
    }
    c.lanes |= 1u << lane;
    clock[lane] = running.clock[running.thread][lane];
}

static void report(const Place &p, const char *now, int other, const char *before)
{
    fail("shared %s[%zu]: it %s what thread %d %s with no barrier in between", p.name, p.index, now, other, before);
}

static void check_written(const Place &p)
{
    if (p.cells[p.index].block != running.block)
        fail("shared %s[%zu] is read and no thread of the block has written it", p.name, p.index);
}

static void check_after_write(const Place &p, const char *now)
{
    const Cell &c = p.cells[p.index];
    if (c.epoch == running.epoch && !has_met(c.thread, c.clock))
        report(p, now, (int)c.thread, "wrote");
}

static void check_after_reads(const Place &p, const char *now)
{
    int other = stranger(p.cells[p.index].readers, p.clocks[p.index].reader);
    if (other != NOBODY)
        report(p, now, other, "read");
}

static void check_after_atomics(const Place &p, const char *now)
{
    int other = stranger(p.cells[p.index].atomics, p.clocks[p.index].atomic);
    if (other != NOBODY)
        report(p, now, other, "changed by an atomic");
}

void report_bounds(const char *name, size_t index, size_t count)
{
    fail("shared %s[%td]: the array has %zu elements", name, (ptrdiff_t)index, count);
}

void check_read(const Place &p)
{
    check_written(p);
    check_after_write(p, "reads");
    check_after_atomics(p, "reads");
    join(p.cells[p.index].readers, p.clocks[p.index].reader);
}

void check_write(const Place &p)
{
    Cell &c = p.cells[p.index];
    check_after_write(p, "overwrites");
    check_after_reads(p, "overwrites");
    check_after_atomics(p, "overwrites");
    c.block = running.block;
    c.epoch = running.epoch;
    c.thread = running.thread;
    c.clock = running.clock[running.thread][running.thread % WARP];
    c.readers.epoch = c.atomics.epoch = 0;
}

void check_atomic(const Place &p)
{
    check_written(p);
    check_after_write(p, "changes by an atomic");
    check_after_reads(p, "changes by an atomic");
    join(p.cells[p.index].atomics, p.clocks[p.index].atomic);
}

void enter_array(Array *array, const char *name, size_t bytes)
{
    static uint64_t launch;
    static size_t taken;
    if (array->launch == running.launch)
        return;
    array->launch = running.launch;
    taken = (launch == running.launch ? taken : 0) + bytes;
    launch = running.launch;
    if (taken > 48 * 1024)
        fail("shared %s: with it the kernel's arrays take %zu bytes, a block has 49152", name, taken);
}

}
