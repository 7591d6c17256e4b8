/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory whose every access is looked at: bounds, reads of what the block has not written, and
 * races (race.cpp). Blocks run one after another, so one static array serves them all. */
#ifndef SH_EMU_SHARED_H
#define SH_EMU_SHARED_H

#include <stddef.h>
#include <stdint.h>

#include <type_traits>

#include "emu/device.h"

namespace emu {

/* The accesses of one kind since the last barrier. */
struct Crowd {
    uint64_t epoch;                     /* of these accesses; others are past a barrier            */
    uint32_t lanes;                     /* of the first accessor's warp                            */
    uint16_t first, other;              /* threads; other: of another warp, or first if there is none */
};

/* What is known of an element: one line of a cache without the clocks, which few kernels need. */
struct Cell {
    uint64_t block;                     /* the block that has written it                           */
    uint64_t epoch;                     /* when it was written last                                */
    uint32_t thread, clock;             /* by whom                                                 */
    Crowd readers, atomics;             /* since then                                              */
};

/* The lanes' clocks at their accesses, while these are of one warp. */
struct Clocks { uint32_t reader[32], atomic[32]; };

struct Place {                          /* where an access goes, for checks and messages           */
    const char *name;
    size_t index, count;
    Cell *cells;
    Clocks *clocks;
};

struct Array { uint64_t launch; };      /* the last launch that used it                            */

[[noreturn]] void report_bounds(const char *name, size_t index, size_t count);
void check_read(const Place &p);
void check_write(const Place &p);
void check_atomic(const Place &p);
/* When a thread comes upon a declaration: a kernel's arrays may take 48 KiB together. */
void enter_array(Array *array, const char *name, size_t bytes);

template <typename T> struct Pointer {  /* &array[i]; for atomics only */
    T *at;
    Place place;
};

template <typename T> class Element {
    T *at;
    Place place;

public:
    Element(T *at_, const char *name, size_t index, size_t count, Cell *cells, Clocks *clocks)
        : at(at_), place{name, index, count, cells, clocks}
    {
    }
    Element(const Element &) = default;
    operator T() const
    {
        check_read(place);
        return *at;
    }
    T operator=(T x)
    {
        check_write(place);
        return *at = x;
    }
    T operator=(const Element &x) { return *this = (T)x; }
    T operator+=(T x) { return *this = (T)((T)*this + x); }
    T operator-=(T x) { return *this = (T)((T)*this - x); }
    T operator*=(T x) { return *this = (T)((T)*this * x); }
    T operator|=(T x) { return *this = (T)((T)*this | x); }
    T operator&=(T x) { return *this = (T)((T)*this & x); }
    Pointer<T> operator&() const { return {at, place}; }
};

template <typename T, size_t N> struct Store {
    static_assert(std::is_trivially_copyable<T>::value, "shared memory holds plain values");
    static_assert(N * sizeof(T) <= 48 * 1024, "static shared memory ends at 48 KiB");
    Array array;
    Cell cells[N];
    Clocks clocks[N];
    T values[N];
};

template <typename T, size_t N> class Shared {
    const char *name;
    Store<T, N> *store;

public:
    Shared(const char *name_, Store<T, N> *store_) : name(name_), store(store_)
    {
        enter_array(&store->array, name, N * sizeof(T));
    }
    Shared(const Shared &) = delete;
    Element<T> operator[](size_t i) const
    {
        if (i >= N)
            report_bounds(name, i, N);
        return Element<T>(&store->values[i], name, i, N, store->cells, store->clocks);
    }
};

template <typename T> struct Same { typedef T type; };

}

#define SH_AND_OR(to, x, mask, bits) ((to) = ((x) & (mask)) | (bits))

#define SH_SHARED(type, name, count)                     \
    static emu::Store<type, (count)> name##_emu_store;   \
    emu::Shared<type, (count)> name(#name, &name##_emu_store)

template <typename T> static inline T atomicAdd(emu::Pointer<T> p, typename emu::Same<T>::type by)
{
    emu::check_atomic(p.place);
    return atomicAdd(p.at, by);
}

static inline int atomicMax(emu::Pointer<int> p, int value)
{
    emu::check_atomic(p.place);
    return atomicMax(p.at, value);
}

#endif
