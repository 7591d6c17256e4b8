/* SPDX-License-Identifier: Apache-2.0 */
/* What the threads of a block share: their numbers, barriers, shuffles and votes, and shared memory that
 * knows who wrote what and when. */
#ifndef EMU_BLOCK_H
#define EMU_BLOCK_H

#include <cstdint>
#include <cstring>

namespace emu {

struct number { unsigned x, y, z; };

[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct cell {                           /* of one element of shared memory                         */
    int writer = -1, reader = -1;       /* threads; -1 none, -2 several                            */
    unsigned wrote = 0, read = 0;       /* the block's barriers before that                        */
    unsigned wrote_warp = 0, read_warp = 0;     /* the writer's, reader's warp's barriers before that */
};

struct array {                          /* one shared array of the running block                   */
    const char *name;
    size_t count, width;
    char *at;
    cell *cells;
};

/* The array that `key` stands for, made on first use in a block. */
array *shared(const void *key, const char *name, size_t count, size_t width);
void note_read(array *a, size_t i);
void note_write(array *a, size_t i);

template <typename T> struct place {    /* &name[i], for atomics                                   */
    array *a;
    size_t i;
};

template <typename T> struct element {  /* name[i]                                                 */
    array *a;
    size_t i;
    operator T() const
    {
        T x;
        note_read(a, i);
        std::memcpy(&x, a->at + i * sizeof(T), sizeof x);
        return x;
    }
    element &operator=(T x)
    {
        note_write(a, i);
        std::memcpy(a->at + i * sizeof(T), &x, sizeof x);
        return *this;
    }
    element &operator=(const element &other) { return *this = (T)other; }
    element &operator+=(T x) { return *this = (T)((T)*this + x); }
    place<T> operator&() const { return {a, i}; }
};

template <typename T, size_t N> struct shared_array {
    array *a;
    template <typename I> element<T> operator[](I i) const { return {a, (size_t)i}; }
};

void note_atomic(array *a, size_t i);

/* A barrier of the whole block, or of the lanes `mask` of this thread's warp. */
void barrier();
void warp_barrier(unsigned mask);
/* Every lane of the mask gives `bytes` and gets what lane `from` gave. */
void exchange(unsigned mask, int from, const void *give, void *get, size_t bytes);
unsigned ballot(unsigned mask, int vote);
int lane();

} /* namespace emu */

extern thread_local emu::number threadIdx, blockIdx, blockDim, gridDim;

#define SH_SHARED(type, name, number)                                                                  \
    static const char name##_key = 0;                                                                  \
    const emu::shared_array<type, (number)> name = {emu::shared(&name##_key, #name, (number), sizeof(type))}

static inline void __syncthreads() { emu::barrier(); }
static inline void __syncwarp(unsigned mask = 0xffffffffu) { emu::warp_barrier(mask); }
static inline unsigned __ballot_sync(unsigned mask, int vote) { return emu::ballot(mask, vote); }

template <typename T> T __shfl_sync(unsigned mask, T x, int from)
{
    T y;
    emu::exchange(mask, from & 31, &x, &y, sizeof x);
    return y;
}

template <typename T> T __shfl_xor_sync(unsigned mask, T x, int other)
{
    return __shfl_sync(mask, x, emu::lane() ^ other);
}

template <typename T> T __shfl_up_sync(unsigned mask, T x, int by)
{
    return __shfl_sync(mask, x, emu::lane() < by ? emu::lane() : emu::lane() - by);
}

template <typename T> T atomicAdd(emu::place<T> at, T x)
{
    T old;
    emu::note_atomic(at.a, at.i);
    std::memcpy(&old, at.a->at + at.i * sizeof(T), sizeof old);
    T sum = (T)(old + x);
    std::memcpy(at.a->at + at.i * sizeof(T), &sum, sizeof sum);
    return old;
}

static inline int atomicMax(int *at, int x)
{
    int old = *at;
    *at = x > old ? x : old;
    return old;
}

#endif
