/* SPDX-License-Identifier: Apache-2.0 */
/* See fiber.h. On x86-64 a switch is twenty instructions; elsewhere it is swapcontext, which also saves
 * the signal mask by a system call. AddressSanitizer is told of every switch. */
#include "tests/emu/fiber.h"

#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/emu/running.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace emu {

struct Fiber {
    void *stack;
    size_t bytes;
    void (*main)();                     /* NULL: the host thread                                   */
#ifdef __SANITIZE_ADDRESS__
    void *fake;
#endif
#ifdef __x86_64__
    void *sp;
#else
    ucontext_t context;
#endif
};

#ifdef __SANITIZE_ADDRESS__
enum { STACK_BYTES = 256 << 10 };
#else
enum { STACK_BYTES = 64 << 10 };
#endif
/* Stacks begin at different places in their pages: else their first lines would all share one set of the caches. */
enum { COLOURS = 64, COLOUR_BYTES = 64 };

static Fiber *leaving, *arriving;       /* one host thread at a time switches                      */

/* The first thing on the other side of a switch. */
static void arrived()
{
#ifdef __SANITIZE_ADDRESS__
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(arriving->fake, &bottom, &bytes);
    if (!leaving->main) {               /* the host thread's stack is known only now */
        leaving->stack = (void *)(uintptr_t)bottom;
        leaving->bytes = bytes;
    }
#endif
}

static void begin()
{
    arrived();
    arriving->main();
    fail("a fiber has ended");
}

#ifdef __x86_64__
extern "C" void emu_swap_stacks(void **from, void *to);
asm(".text\n"
    ".hidden emu_swap_stacks\n"
    ".globl emu_swap_stacks\n"
    ".type emu_swap_stacks, @function\n"
    "emu_swap_stacks:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n"
    ".size emu_swap_stacks, .-emu_swap_stacks\n");

static void prepare(Fiber *f)
{
    void **top = (void **)((char *)f->stack + f->bytes);
    *--top = nullptr;                   /* a function finds the stack eight bytes past its alignment */
    *--top = (void *)begin;
    for (int i = 0; i < 6; i++)
        *--top = nullptr;
    f->sp = top;
}

static void swap(Fiber *from, Fiber *to)
{
    emu_swap_stacks(&from->sp, to->sp);
}
#else
static void prepare(Fiber *f)
{
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = f->bytes;
    makecontext(&f->context, begin, 0);
}

static void swap(Fiber *from, Fiber *to)
{
    swapcontext(&from->context, &to->context);
}
#endif

Fiber *fiber_new(void (*main)())
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = STACK_BYTES;
    char *at = (char *)mmap(nullptr, bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at, page, PROT_NONE))      /* a stack that is too small faults */
        fail("no memory for a thread's stack");
    static unsigned n;
    Fiber *f = new Fiber();
    f->stack = at + page;
    f->bytes = bytes - n++ % COLOURS * COLOUR_BYTES;
    f->main = main;
    prepare(f);
    return f;
}

Fiber *fiber_of_host()
{
    static Fiber host;
    return &host;
}

void fiber_switch(Fiber *from, Fiber *to)
{
    leaving = from;
    arriving = to;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&from->fake, to->stack, to->bytes);
#endif
    swap(from, to);
    arrived();
}

}
