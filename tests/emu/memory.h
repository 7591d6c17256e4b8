/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of devices and pinned host memory. An allocation lies between two pages that nobody may
 * touch, its end against the second; addresses are never used again. New memory is filled with 0xff:
 * NaN in every floating type. A device's memory can be read and written only between memory_open and
 * memory_close, which may have no effect (SH_EMU_CLOSE in settings.h); the host's code otherwise faults, and so does a
 * kernel on another device's memory. */
#ifndef SH_EMU_MEMORY_H
#define SH_EMU_MEMORY_H

#include <stddef.h>

namespace emu {

enum { PINNED = -1 };

struct Region {
    char *at;
    size_t bytes;
    int device;                         /* or PINNED                                               */
    bool is_live;
    char *map;                          /* the pages, without those around                         */
    size_t map_bytes;
};

/* The address is 256-byte aligned. NULL: there is no more of it. */
void *region_new(size_t bytes, int device);
/* NULL: no allocation, or freed. An allocation's end counts as inside: nothing is read through it. */
const Region *region_of(const void *at);
void region_free(const Region *r);
/* The address lies in an allocation or a freed one, or in the pages around. */
bool was_ours(const void *at);
/* Fails unless [at, at + bytes) lies in memory of the device or, when allowed, pinned. */
void check_range(const char *what, const void *at, size_t bytes, int device, bool pinned_too);

void memory_open(int device);
void memory_close();                    /* of all devices                                          */
/* Fails when the bytes around an allocation have changed; `what` has run since the last check. */
void check_edges(const char *what);

size_t memory_taken(int device);
/* A line on stderr for each allocation that is live; their number. */
int report_memory_leaks();

}

#endif
