/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the threads of a block as fibers on stacks of their own. A thread runs until it has to wait for
 * others; blocks run one after another. Whatever a GPU would leave undefined is an error here: a barrier
 * that some thread never reaches, shared memory that is read before it is written, or written and read by
 * two threads without a barrier between them. */
#include "block.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

#include <sys/mman.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#include "fiber.h"

thread_local emu::number threadIdx, blockIdx, blockDim, gridDim;

namespace emu {

enum { STACK_BYTES = 64 << 10, LANES = 32, MOST_WIDTH = 16 };
enum state { READY, AT_BARRIER, AT_WARP, DONE };

struct fiber {
    emu_context context;
    char *stack;
    void *shadow;                       /* of the address sanitizer */
    enum state state;
    unsigned mask;                      /* of the warp barrier it waits at */
    unsigned turn;                      /* exchanges so far: odd and even ones have their own places */
    char gave[2][MOST_WIDTH];
    int vote[2];
};

struct block {
    const char *kernel;
    const std::function<void()> *body;
    std::vector<fiber> fibers;
    int n, current;
    emu_context scheduler;
    const void *scheduler_stack;
    size_t scheduler_bytes;
    void *scheduler_shadow;
    unsigned barriers;
    std::vector<unsigned> warp_barriers;
    std::map<const void *, array> arrays;
};

static thread_local block running;

void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    std::fprintf(stderr, "emu: ");
    std::vfprintf(stderr, format, args);
    std::fprintf(stderr, "\n");
    va_end(args);
    std::abort();
}

[[noreturn]] static void fail_here(const char *what, const array *a, size_t i)
{
    fail("%s: %s[%zu]: %s (block %u,%u,%u thread %u)", running.kernel, a->name, i, what, blockIdx.x, blockIdx.y,
         blockIdx.z, threadIdx.x);
}

/* ---- fibers ---- */

static void enter(void *shadow)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(shadow, &running.scheduler_stack, &running.scheduler_bytes);
#else
    (void)shadow;
#endif
}

static void to_scheduler(fiber &f, bool is_over)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(is_over ? nullptr : &f.shadow, running.scheduler_stack, running.scheduler_bytes);
#else
    (void)is_over;
#endif
    emu_switch(&f.context, &running.scheduler);
    enter(f.shadow);
}

static void thread_main()
{
    enter(nullptr);
    (*running.body)();
    fiber &f = running.fibers[(size_t)running.current];
    f.state = DONE;
    to_scheduler(f, true);
}

static void wait(enum state s)
{
    fiber &f = running.fibers[(size_t)running.current];
    f.state = s;
    to_scheduler(f, false);
}

static void resume(int i)
{
    fiber &f = running.fibers[(size_t)i];
    running.current = i;
    threadIdx = {(unsigned)i, 0, 0};
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&running.scheduler_shadow, f.stack, STACK_BYTES);
#endif
    emu_switch(&running.scheduler, &f.context);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(running.scheduler_shadow, nullptr, nullptr);
#endif
}

static void prepare(int n)
{
    while ((int)running.fibers.size() < n) {
        running.fibers.emplace_back();
        void *at = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            fail("no memory for the stack of a thread");
        running.fibers.back().stack = (char *)at;
    }
    for (int i = 0; i < n; i++) {
        fiber &f = running.fibers[(size_t)i];
#ifdef __SANITIZE_ADDRESS__
        __asan_unpoison_memory_region(f.stack, STACK_BYTES);    /* a thread ends without unwinding */
#endif
        emu_context_new(&f.context, f.stack, STACK_BYTES, thread_main);
        f.state = READY;
        f.turn = 0;
    }
}

/* ---- barriers ---- */

/* Let the warp's lanes of one mask go on when all of them are there. */
static bool release_warp(int first)
{
    int end = first + LANES < running.n ? first + LANES : running.n;
    for (int i = first; i < end; i++) {
        if (running.fibers[(size_t)i].state != AT_WARP)
            continue;
        unsigned mask = running.fibers[(size_t)i].mask, there = 0;
        for (int k = first; k < end; k++)
            if (running.fibers[(size_t)k].state == AT_WARP && running.fibers[(size_t)k].mask == mask)
                there |= 1u << (k - first);
        if (there != mask)
            continue;
        running.warp_barriers[(size_t)(first / LANES)]++;
        for (int k = first; k < end; k++)
            if (mask >> (k - first) & 1)
                running.fibers[(size_t)k].state = READY;
        return true;
    }
    return false;
}

static bool release_block()
{
    for (int i = 0; i < running.n; i++)
        if (running.fibers[(size_t)i].state != AT_BARRIER)
            return false;
    running.barriers++;
    for (int i = 0; i < running.n; i++)
        running.fibers[(size_t)i].state = READY;
    return true;
}

[[noreturn]] static void stuck()
{
    static const char *const name[] = {"ready", "at __syncthreads", "at a warp's barrier, shuffle or vote", "ended"};
    int i = 0, k = 0;
    while (running.fibers[(size_t)i].state == DONE)
        i++;
    while (k < running.n - 1 && running.fibers[(size_t)k].state == running.fibers[(size_t)i].state)
        k++;
    fail("%s: block %u,%u,%u waits for ever: thread %d is %s (mask %08x), thread %d is %s", running.kernel, blockIdx.x,
         blockIdx.y, blockIdx.z, i, name[running.fibers[(size_t)i].state], running.fibers[(size_t)i].mask, k,
         name[running.fibers[(size_t)k].state]);
}

static void run_block()
{
    running.barriers = 0;
    running.warp_barriers.assign((size_t)(running.n + LANES - 1) / LANES, 0);
    prepare(running.n);
    for (;;) {
        bool moved = false;
        int done = 0;
        for (int first = 0; first < running.n; first += LANES) {
            bool again = true;
            while (again) {             /* a warp runs on as long as it can by itself */
                for (int i = first; i < first + LANES && i < running.n; i++)
                    if (running.fibers[(size_t)i].state == READY) {
                        resume(i);
                        moved = true;
                    }
                again = release_warp(first);
            }
        }
        for (int i = 0; i < running.n; i++)
            done += running.fibers[(size_t)i].state == DONE;
        if (done == running.n)
            return;
        if (!release_block() && !moved)
            stuck();
    }
}

void run_grid(const char *kernel, dim3 grid, dim3 block, const std::function<void()> &body)
{
    running.kernel = kernel;
    running.body = &body;
    running.n = (int)block.x;
    blockDim = {block.x, 1, 1};
    gridDim = {grid.x, grid.y, grid.z};
    if (!block.x || block.x > 1024 || block.y != 1 || block.z != 1 || !grid.x || !grid.y || !grid.z ||
        grid.y > 65535 || grid.z > 65535)
        fail("%s: a grid of %u,%u,%u blocks of %u,%u,%u threads cannot be launched", kernel, grid.x, grid.y, grid.z,
             block.x, block.y, block.z);
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = {x, y, z};
                run_block();
                for (auto &a : running.arrays) {
                    std::free(a.second.at);
                    delete[] a.second.cells;
                }
                running.arrays.clear();
            }
}

void barrier() { wait(AT_BARRIER); }

void warp_barrier(unsigned mask)
{
    fiber &f = running.fibers[(size_t)running.current];
    if (!(mask >> (running.current % LANES) & 1))
        fail("%s: block %u,%u,%u thread %d is not in its own mask %08x", running.kernel, blockIdx.x, blockIdx.y,
             blockIdx.z, running.current, mask);
    int left = running.n - running.current / LANES * LANES;
    f.mask = left >= LANES ? mask : mask & ((1u << left) - 1u);
    wait(AT_WARP);
}

int lane() { return running.current % LANES; }

/* Places alternate, so that nobody gives again before all have taken: that would need two more barriers. */
void exchange(unsigned mask, int from, const void *give, void *get, size_t bytes)
{
    fiber &f = running.fibers[(size_t)running.current];
    unsigned turn = f.turn++ & 1;
    std::memcpy(f.gave[turn], give, bytes);
    warp_barrier(mask);
    int source = running.current / LANES * LANES + from;
    if (!(mask >> from & 1) || source >= running.n)
        fail("%s: block %u,%u,%u thread %d asks lane %d, which does not take part", running.kernel, blockIdx.x,
             blockIdx.y, blockIdx.z, running.current, from);
    std::memcpy(get, running.fibers[(size_t)source].gave[turn], bytes);
}

unsigned ballot(unsigned mask, int vote)
{
    fiber &f = running.fibers[(size_t)running.current];
    unsigned turn = f.turn++ & 1, votes = 0;
    f.vote[turn] = vote;
    warp_barrier(mask);
    int first = running.current / LANES * LANES;
    for (int i = 0; i < LANES && first + i < running.n; i++)
        if (mask >> i & 1 && running.fibers[(size_t)(first + i)].vote[turn])
            votes |= 1u << i;
    return votes;
}

/* ---- shared memory ---- */

array *shared(const void *key, const char *name, size_t count, size_t width)
{
    array &a = running.arrays[key];
    if (!a.at) {
        a.name = name;
        a.count = count;
        a.width = width;
        a.at = (char *)std::malloc(count * width);
        a.cells = new cell[count];
    }
    return &a;
}

/* Whether this thread may rely on what another did when the block's and that one's warp's barriers stood
 * there. */
static bool is_apart(int other, unsigned block_then, unsigned warp_then)
{
    if (other == running.current || running.barriers != block_then)
        return true;
    return other / LANES == running.current / LANES && other >= 0 &&
           running.warp_barriers[(size_t)(other / LANES)] != warp_then;
}

static cell *cell_of(array *a, size_t i)
{
    if (i >= a->count)
        fail_here("is past its end", a, i);
    return &a->cells[i];
}

void note_read(array *a, size_t i)
{
    cell *c = cell_of(a, i);
    if (c->writer == -1)
        fail_here("is read before anything was written there", a, i);
    if (!is_apart(c->writer, c->wrote, c->wrote_warp))
        fail_here("is read while another thread writes it: a barrier is missing", a, i);
    bool many = c->reader >= -1 && c->reader != -1 && c->reader != running.current && c->read == running.barriers;
    c->reader = many || (c->reader == -2 && c->read == running.barriers) ? -2 : running.current;
    c->read = running.barriers;
    c->read_warp = running.warp_barriers[(size_t)(running.current / LANES)];
}

void note_write(array *a, size_t i)
{
    cell *c = cell_of(a, i);
    if (c->writer != -1 && !is_apart(c->writer, c->wrote, c->wrote_warp))
        fail_here("is written by two threads: a barrier is missing", a, i);
    if (c->reader != -1 && !is_apart(c->reader, c->read, c->read_warp))
        fail_here("is written while another thread reads it: a barrier is missing", a, i);
    c->writer = running.current;
    c->wrote = running.barriers;
    c->wrote_warp = running.warp_barriers[(size_t)(running.current / LANES)];
}

/* Atomics do not race with each other: the last of them stands for all, as one writer of its own kind. */
void note_atomic(array *a, size_t i)
{
    cell *c = cell_of(a, i);
    if (c->writer == -1)
        fail_here("is added to before anything was written there", a, i);
    if (c->writer >= 0 && !is_apart(c->writer, c->wrote, c->wrote_warp))
        fail_here("is added to while another thread writes it: a barrier is missing", a, i);
    if (c->reader != -1 && !is_apart(c->reader, c->read, c->read_warp))
        fail_here("is added to while another thread reads it: a barrier is missing", a, i);
    c->writer = -2;
    c->wrote = running.barriers;
}

} /* namespace emu */
