/* SPDX-License-Identifier: Apache-2.0 */
/* See memory.h. */
#include "tests/emu/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tests/emu/guard.h"
#include "tests/emu/running.h"
#include "tests/emu/settings.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

namespace emu {

enum {
    ALIGN = 256, EDGE = 256, EDGE_BYTE = 0xb7,
    FEW_LIVE = 16, SELDOM = 16          /* see memory_close */
};
static const size_t FILL_BYTES = 4 << 20;

/* By the first byte of their pages; freed ones stay, for messages. Never destroyed: the last look is
 * taken when the process ends. */
static std::map<const char *, Region> &regions = *new std::map<const char *, Region>;
/* Those that are not freed: a long process has many more that are. */
static std::vector<const Region *> &live = *new std::vector<const Region *>;
static size_t taken[MOST_DEVICES], taken_pinned;
static bool is_open[MOST_DEVICES];

static size_t &taken_of(int device)
{
    return device == PINNED ? taken_pinned : taken[device];
}

static size_t rounded(size_t bytes, size_t step)
{
    return (bytes + step - 1) / step * step;
}

/* A file of 0xff bytes: memory that is mapped from it privately is full of them and costs nothing until
 * it is written. */
static int fill_file()
{
    static int file = -1;
    if (file >= 0)
        return file;
    file = memfd_create("emu-fill", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, FILL_BYTES))
        fail("no memory for the fill");
    void *at = mmap(nullptr, FILL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED)
        fail("no memory for the fill");
    memset(at, 0xff, FILL_BYTES);
    munmap(at, FILL_BYTES);
    return file;
}

/* Everything around the caller's bytes, in the pages that can be touched. */
static void mark_edges(const Region &r)
{
    char *end = r.at + r.bytes, *map_end = r.map + r.map_bytes;
    memset(r.at - EDGE, EDGE_BYTE, EDGE);
    memset(end, EDGE_BYTE, (size_t)(map_end - end));
    ASAN_POISON_MEMORY_REGION(r.map, (size_t)(r.at - r.map));
    ASAN_POISON_MEMORY_REGION(end, (size_t)(map_end - end));
}

static bool is_within_reach(const Region &r)
{
    return r.device == PINNED || is_open[r.device];
}

/* A device's memory has a protection key where the processor has them: it opens and closes at once, however
 * many allocations there are, and for the thread that is inside. -1: there is none. */
static int key_of(int device)
{
    static int keys[MOST_DEVICES];
    static bool is_asked[MOST_DEVICES];
    if (!is_asked[device])
        keys[device] = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    is_asked[device] = true;
    return keys[device];
}

static void protect(const Region &r)
{
    if (mprotect(r.map, r.map_bytes, is_within_reach(r) ? PROT_READ | PROT_WRITE : PROT_NONE))
        fail("mprotect of %zu bytes", r.map_bytes);
}

static void protect_new(const Region &r)
{
    int key = r.device == PINNED ? -1 : key_of(r.device);
    if (key < 0)
        protect(r);
    else if (pkey_mprotect(r.map, r.map_bytes, PROT_READ | PROT_WRITE, key))
        fail("pkey_mprotect of %zu bytes", r.map_bytes);
}

static void set_open(int device, bool open)
{
    is_open[device] = open;
    int key = key_of(device);
    if (key >= 0) {
        pkey_set(key, open ? 0 : PKEY_DISABLE_ACCESS);
        return;
    }
    for (const Region *r : live)
        if (r->device == device)
            protect(*r);
}

void *region_new(size_t bytes, int device)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), own = rounded(bytes, ALIGN), map_bytes = rounded(own + EDGE, page);
    size_t most = device == PINNED ? pinned_memory() : device_memory();
    if (own > most || taken_of(device) > most - own)
        return nullptr;
    watch_faults();
    int flags = MAP_PRIVATE | MAP_NORESERVE;
    char *map = (char *)mmap(nullptr, map_bytes + 2 * page, PROT_NONE, flags | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        fail("no memory for an allocation of %zu bytes", bytes);
    map += page;
    for (size_t at = 0; at < map_bytes; at += FILL_BYTES) {
        size_t piece = map_bytes - at < FILL_BYTES ? map_bytes - at : FILL_BYTES;
        if (mmap(map + at, piece, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fill_file(), 0) == MAP_FAILED)
            fail("no memory for an allocation of %zu bytes", bytes);
    }
    Region r = {map + map_bytes - own, bytes, device, true, map, map_bytes};
    mark_edges(r);
    protect_new(r);
    live.push_back(&(regions[map] = r));
    taken_of(device) += own;
    return r.at;
}

static const Region *region_around(const char *at, bool is_live)
{
    auto next = regions.upper_bound(at);
    if (next == regions.begin())
        return nullptr;
    const Region *r = &(--next)->second;
    return at < r->map + r->map_bytes + sysconf(_SC_PAGESIZE) && (r->is_live || !is_live) ? r : nullptr;
}

const Region *region_of(const void *at)
{
    const char *c = (const char *)at;
    const Region *r = region_around(c, true);
    return r && c >= r->at && c <= r->at + r->bytes ? r : nullptr;
}

void region_free(const Region *r)
{
    Region *own = &regions[r->map];
    own->is_live = false;
    live.erase(std::find(live.begin(), live.end(), r));
    taken_of(own->device) -= rounded(own->bytes, ALIGN);
    int flags = MAP_PRIVATE | MAP_NORESERVE | MAP_ANONYMOUS | MAP_FIXED;
    if (mmap(own->map, own->map_bytes, PROT_NONE, flags, -1, 0) == MAP_FAILED)
        fail("no memory to free an allocation");
}

void check_range(const char *what, const void *at, size_t bytes, int device, bool pinned_too)
{
    const Region *r = region_of(at);
    if (!r)
        fail("%s: %p lies in no allocation", what, at);
    if (r->device != device && !(pinned_too && r->device == PINNED))
        fail("%s: %p is %s memory, device %d's is expected", what, at,
             r->device == PINNED ? "pinned" : "another device's", device);
    size_t offset = (size_t)((const char *)at - r->at);
    if (bytes > r->bytes - offset)
        fail("%s: %zu bytes from byte %zu on of an allocation of %zu", what, bytes, offset, r->bytes);
}

/* Without keys, opening and closing take a system call for each allocation, which can be half of a test's time. Then
 * memory is closed seldom where many allocations are live. What the host touches in between is not found there; the
 * tests that set SH_EMU_CLOSE=always, and machines with keys, find it. */
void memory_open(int device)
{
    for (int i = 0; i < MOST_DEVICES; i++)
        if (i != device && is_open[i])
            set_open(i, false);
    if (!is_open[device])
        set_open(device, true);
}

void memory_close()
{
    static unsigned long asked;
    bool is_due = ++asked % SELDOM == 0 || live.size() <= FEW_LIVE || closes_always();
    for (int i = 0; i < MOST_DEVICES; i++)
        if (is_open[i] && (is_due || key_of(i) >= 0))
            set_open(i, false);
}

#ifdef __SANITIZE_ADDRESS__
void check_edges(const char *) {}       /* the sanitizer watches them */
#else
static bool is_edge(const char *at, size_t bytes)
{
    return !bytes || ((unsigned char)*at == EDGE_BYTE && !memcmp(at, at + 1, bytes - 1));
}

void check_edges(const char *what)
{
    for (const Region *r : live) {
        if (!is_within_reach(*r))
            continue;
        const char *end = r->at + r->bytes;
        if (!is_edge(r->at - EDGE, EDGE))
            fail("%s has written before an allocation of %zu bytes", what, r->bytes);
        if (!is_edge(end, (size_t)(r->map + r->map_bytes - end)))
            fail("%s has written after an allocation of %zu bytes", what, r->bytes);
    }
}
#endif

static const Region *region_near(const void *at)
{
    const Region *r = region_around((const char *)at, false);
    return r ? r : region_around((const char *)at + sysconf(_SC_PAGESIZE), false);      /* the page before it */
}

bool was_ours(const void *at)
{
    return region_near(at) != nullptr;
}

bool describe(const void *at, char *text, size_t bytes)
{
    const Region *r = region_near(at);
    if (!r)
        return false;
    ptrdiff_t offset = (const char *)at - r->at;
    snprintf(text, bytes, "byte %td of %s%s of %zu bytes%s", offset, r->is_live ? "" : "freed ",
             r->device == PINNED ? "pinned memory" : "device memory", r->bytes,
             r->is_live && r->device != PINNED && !is_device && offset >= 0 && (size_t)offset < r->bytes
                 ? ", outside of all kernels and copies" : "");
    return true;
}

size_t memory_taken(int device)
{
    return taken_of(device);
}

int report_memory_leaks()
{
    for (const Region *r : live)
        fprintf(stderr, "emu: %zu bytes of %s memory are not freed\n", r->bytes,
                r->device == PINNED ? "pinned" : "device");
    return (int)live.size();
}

}
