/* SPDX-License-Identifier: Apache-2.0 */
/* The last look: what was not given back, and what was written beside allocations. */
#include <stdio.h>

#include "tests/emu/blas.h"
#include "tests/emu/call.h"
#include "tests/emu/emu.h"
#include "tests/emu/memory.h"
#include "tests/emu/running.h"
#include "tests/emu/settings.h"
#include "tests/emu/stream.h"

int emu_leaks(void)
{
    emu::Call call;
    return emu::report_memory_leaks() + emu::report_stream_leaks() + emu::report_graph_leaks() + emu::report_handle_leaks();
}

/* When the process ends or the module is unloaded. */
__attribute__((destructor)) static void last_look()
{
    if (emu::is_device)
        return;                         /* a kernel has ended the process */
    emu::check_edges("the process");
    int n = emu::leaks_fail() ? emu_leaks() : 0;
    if (n)
        emu::fail("%d things are not given back", n);
}
