/* SPDX-License-Identifier: Apache-2.0 */
/* See guard.h. */
#include "tests/emu/guard.h"

#include <signal.h>

#include "tests/emu/running.h"

namespace emu {

static struct sigaction before;

static void on_fault(int, siginfo_t *about, void *)
{
    char text[200];
    if (describe(about->si_addr, text, sizeof text))
        fail("it touches %s", text);
    if (is_device)
        fail("it touches %p, where there is no memory", about->si_addr);
    sigaction(SIGSEGV, &before, nullptr);               /* and fault again */
}

void watch_faults()
{
    static bool is_watched;
    if (is_watched)
        return;
    is_watched = true;
    struct sigaction own = {};
    own.sa_sigaction = on_fault;
    own.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &own, &before);
}

}
