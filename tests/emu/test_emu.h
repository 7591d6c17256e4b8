/* SPDX-License-Identifier: Apache-2.0 */
/* The emulation's test: each file has a list of cases, each case fails by a message or not at all. A
 * case runs in a process of its own, since what the emulation finds ends the process. */
#ifndef SH_EMU_TEST_EMU_H
#define SH_EMU_TEST_EMU_H

#include <stddef.h>

struct Case {
    const char *name;
    void (*run)();
    const char *dies_with;              /* what the emulation must say, in order, parts between    */
                                        /* '|'; NULL: it must not die                              */
};

extern const Case device_cases[], runtime_cases[], stream_cases[], fault_cases[];  /* end: no name */

/* Ends the case as failed. */
[[noreturn]] void broken(const char *file, int line, const char *what);
#define EXPECT(condition) ((condition) ? (void)0 : broken(__FILE__, __LINE__, #condition))

/* Device memory with these bytes; and back. */
void *device_copy(const void *from, size_t bytes);
void host_copy(void *to, const void *device, size_t bytes);

#endif
