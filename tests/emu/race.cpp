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

/* A thread of the crowd that the running one has not met since. */
static int stranger(const Crowd &c)
{
    if (c.epoch != running.epoch)
        return NOBODY;
    if (c.is_many)
        return (int)(c.first / WARP == running.thread / WARP ? c.other : c.first);
    uint32_t warp = c.first / WARP;
    for (uint32_t left = c.lanes; left; left &= left - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(left), thread = warp * WARP + lane;
        if (!has_met(thread, c.clock[lane]))
            return (int)thread;
    }
    return NOBODY;
}

static void join(Crowd &c)
{
    uint32_t lane = running.thread % WARP;
    if (c.epoch != running.epoch) {
        c.epoch = running.epoch;
        c.first = running.thread;
        c.lanes = 0;
        c.is_many = false;
    }
    if (!c.is_many && c.first / WARP != running.thread / WARP) {
        c.is_many = true;
        c.other = running.thread;
    }
    c.lanes |= c.is_many ? 0 : 1u << lane;
    c.clock[lane] = running.clock[running.thread][lane];
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

static void check_after(const Place &p, const Crowd &c, const char *now, const char *before)
{
    int other = stranger(c);
    if (other != NOBODY)
        report(p, now, other, before);
}

void check_bounds(const Place &p)
{
    if (p.index >= p.count)
        fail("shared %s[%td]: the array has %zu elements", p.name, (ptrdiff_t)p.index, p.count);
}

void check_read(const Place &p)
{
    check_written(p);
    check_after_write(p, "reads");
    check_after(p, p.cells[p.index].atomics, "reads", "changed by an atomic");
    join(p.cells[p.index].readers);
}

void check_write(const Place &p)
{
    Cell &c = p.cells[p.index];
    check_after_write(p, "overwrites");
    check_after(p, c.readers, "overwrites", "read");
    check_after(p, c.atomics, "overwrites", "changed by an atomic");
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
    check_after(p, p.cells[p.index].readers, "changes by an atomic", "read");
    join(p.cells[p.index].atomics);
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
