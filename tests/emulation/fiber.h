/* SPDX-License-Identifier: Apache-2.0 */
/* Switching between stacks. The C library's swapcontext makes a system call each time; a block makes
 * thousands of switches, so on x86-64 this does by hand what the calling convention asks for. */
#ifndef EMU_FIBER_H
#define EMU_FIBER_H

#include <cstddef>

#ifdef __x86_64__

struct emu_context { void *stack; };

extern "C" void emu_switch(emu_context *from, const emu_context *to);

asm(".text\n"
    ".type emu_switch, @function\n"
    "emu_switch:\n"
    "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq (%rsi), %rsp\n"
    "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
    "    ret\n"
    ".size emu_switch, .-emu_switch\n");

/* The first switch to it calls `run`, which never returns. */
static inline void emu_context_new(emu_context *c, char *stack, size_t bytes, void (*run)())
{
    void **top = (void **)(stack + bytes);              /* 16-byte aligned, as before a call */
    *--top = nullptr;                                   /* where run would return to */
    *--top = (void *)run;
    for (int i = 0; i < 6; i++)
        *--top = nullptr;
    c->stack = top;
}

#else
#include <ucontext.h>

typedef ucontext_t emu_context;

static inline void emu_switch(emu_context *from, const emu_context *to) { swapcontext(from, to); }

static inline void emu_context_new(emu_context *c, char *stack, size_t bytes, void (*run)())
{
    getcontext(c);
    c->uc_stack.ss_sp = stack;
    c->uc_stack.ss_size = bytes;
    c->uc_link = nullptr;
    makecontext(c, run, 0);
}
#endif

#endif
