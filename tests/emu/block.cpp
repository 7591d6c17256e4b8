/* SPDX-License-Identifier: Apache-2.0 */
/* A grid, block after block. A thread runs until it waits; then the next one that can go on does, or a
 * new one begins. A block that never waits so runs thread after thread on one fiber. The order is turned
 * round from block to block and from launch to launch: what depends on it shows. */
#include "tests/emu/block.h"

#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emu {

Block block;

static const Launch *grid;
static Fiber *current;
/* Each goes on by beginning a thread. Never destroyed: who looks for leaks looks after that. */
static std::vector<Fiber *> &idle = *new std::vector<Fiber *>;

static void go_to(Fiber *to)
{
    Fiber *from = current;
    current = to;
    fiber_switch(from, to);
}

static void become(unsigned thread)
{
    running.thread = thread;
    threadIdx.x = thread;
    block.thread[thread].state = GOES;
}

void make_ready(unsigned warp, uint32_t lanes)
{
    for (uint32_t left = lanes; left; left &= left - 1)
        block.thread[warp * WARP + (unsigned)__builtin_ctz(left)].state = GOES;
    block.warp[warp].ready |= lanes;
    block.ready_warps |= lanes ? 1u << warp : 0;
}

/* The lowest or highest bit. */
static unsigned bit_of(uint32_t word)
{
    return (unsigned)(block.is_backward ? 31 - __builtin_clz(word) : __builtin_ctz(word));
}

/* NULL: nobody is ready. */
static Thread *take_ready()
{
    if (!block.ready_warps)
        return nullptr;
    unsigned warp = bit_of(block.ready_warps), lane = bit_of(block.warp[warp].ready);
    block.warp[warp].ready &= ~(1u << lane);
    if (!block.warp[warp].ready)
        block.ready_warps &= ~(1u << warp);
    return &block.thread[warp * WARP + lane];
}

static void thread_gone()
{
    unsigned own = running.thread;
    if (block.n_at_barrier)
        fail("it returns, and thread %u waits for it in __syncthreads (%s:%d)", block.first_at_barrier,
             block.barrier.file, block.barrier.line);
    check_lanes_left();
    block.thread[own].state = GONE;
    block.warp[own / WARP].gone |= 1u << own % WARP;
    block.n_gone++;
}

static void run_new_thread()
{
    unsigned k = block.n_begun++, thread = block.is_backward ? block.n - 1 - k : k;
    become(thread);
    block.thread[thread].fiber = current;
    grid->thread();
    thread_gone();
}

[[noreturn]] static void report_deadlock()
{
    const Thread *at[2] = {};
    unsigned n = 0;
    for (unsigned t = 0; t < block.n && n < 2; t++) {
        const Thread *own = &block.thread[t];           /* all have begun, or somebody could go on */
        if ((own->state == AT_BARRIER || own->state == AT_WARP) &&
            (!n || own->state != at[0]->state || own->site.line != at[0]->site.line))
            at[n++] = own;
    }
    if (n < 2)
        at[1] = at[0];
    const char *name[2];
    for (int i = 0; i < 2; i++)
        name[i] = at[i]->state == AT_BARRIER ? "__syncthreads" : waits_in((unsigned)(at[i] - block.thread));
    fail("no thread can go on: thread %td waits in %s (%s:%d), thread %td in %s (%s:%d)", at[0] - block.thread, name[0],
         at[0]->site.file, at[0]->site.line, at[1] - block.thread, name[1], at[1]->site.file, at[1]->site.line);
}

/* The life of a fiber. */
static void fiber_main()
{
    for (;;) {
        run_new_thread();
        Thread *next = take_ready();
        if (!next && block.n_begun < block.n)
            continue;
        if (!next && block.n_gone < block.n)
            report_deadlock();
        idle.push_back(current);
        go_to(next ? next->fiber : fiber_of_host());
    }
}

static Fiber *idle_fiber()
{
    if (idle.empty())
        return fiber_new(fiber_main);
    Fiber *f = idle.back();
    idle.pop_back();
    return f;
}

void wait_for_others(State state)
{
    unsigned own = running.thread;
    block.thread[own].state = state;
    Thread *next = take_ready();
    if (!next && block.n_begun == block.n)
        report_deadlock();
    go_to(next ? next->fiber : idle_fiber());
    become(own);
}

void sync_threads(Site site)
{
    unsigned own = running.thread;
    block.thread[own].site = site;
    if (block.n_gone)
        fail("__syncthreads (%s:%d) when %u threads of the block have returned", site.file, site.line, block.n_gone);
    if (!block.n_at_barrier) {
        block.barrier = site;
        block.first_at_barrier = own;
    }
    if (block.barrier.line != site.line || (block.barrier.file != site.file && strcmp(block.barrier.file, site.file)))
        fail("__syncthreads (%s:%d), thread %u waits in another (%s:%d)", site.file, site.line, block.first_at_barrier,
             block.barrier.file, block.barrier.line);
    if (++block.n_at_barrier < block.n) {
        wait_for_others(AT_BARRIER);
        return;
    }
    block.n_at_barrier = 0;
    running.epoch++;
    for (unsigned warp = 0; warp * WARP < block.n; warp++) {
        uint32_t lanes = block.n - warp * WARP < WARP ? (1u << (block.n - warp * WARP)) - 1 : ~0u;
        make_ready(warp, warp == own / WARP ? lanes & ~(1u << own % WARP) : lanes);
    }
}

static void run_block(unsigned x, unsigned y, unsigned z)
{
    running.block++;
    running.epoch++;
    blockIdx = {x, y, z};
    block.n_begun = block.n_gone = block.n_at_barrier = 0;
    block.is_backward = running.block % 2;
    for (unsigned warp = 0; warp * WARP < block.n; warp++)
        block.warp[warp].gone = 0;
    current = fiber_of_host();
    go_to(idle_fiber());
}

/* Nobody has met anybody. */
static void start_clocks()
{
    for (unsigned t = 0; t < MOST_THREADS && !running.launch; t++)
        running.clock[t][t % WARP] = 1;
}

void run_grid(const Launch &work)
{
    start_clocks();
    grid = &work;
    gridDim = work.grid;
    blockDim = work.block;
    block.n = work.block.x;
    running.kernel = work.kernel;
    running.launch++;
    is_device = true;
    uint64_t all = (uint64_t)work.grid.x * work.grid.y * work.grid.z;
    for (uint64_t k = 0; k < all; k++) {
        uint64_t i = running.launch % 2 ? k : all - 1 - k, row = i / work.grid.x;
        run_block((unsigned)(i % work.grid.x), (unsigned)(row % work.grid.y), (unsigned)(row / work.grid.y));
    }
    is_device = false;
    running.kernel = nullptr;
}

}
