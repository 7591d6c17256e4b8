/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA C's words for the host compiler: qualifiers, indices, barriers, warp functions, atomics, numbers.
 * A barrier or a warp function is a place where the emulation goes to another thread of the block. */
#ifndef SH_EMU_DEVICE_H
#define SH_EMU_DEVICE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

struct uint3 { unsigned x, y, z; };
struct uint2 { unsigned x, y; };
struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(16) uint4 { unsigned x, y, z, w; };

static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

/* Of the thread that runs now; set whenever the emulation goes to another one. */
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static const int warpSize = 32;

namespace emu {

struct Site { const char *file; int line; };

enum Collective { SYNCWARP, SHUFFLE, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR, BALLOT, ANY, ALL };

void sync_threads(Site site);
/* Comes back when all lanes of the mask are here: with the value that lane `from` of the warp brought
 * (shuffles) or with the lanes whose value is not 0. */
uint64_t collect(Collective kind, unsigned mask, uint64_t value, int from, Site site);
/* The lane that a shuffle reads; the lane itself where CUDA gives it its own value. */
int shuffle_from(Collective kind, int operand, int width, Site site);

template <typename T> T shuffle(Collective kind, unsigned mask, T value, int operand, int width, Site site)
{
    uint64_t bits = 0;
    static_assert(sizeof(T) <= sizeof bits, "shuffles move four or eight bytes");
    memcpy(&bits, &value, sizeof value);
    bits = collect(kind, mask, bits, shuffle_from(kind, operand, width, site), site);
    memcpy(&value, &bits, sizeof value);
    return value;
}

}

/* Default arguments are where the call stands: messages name it. */
#define EMU_HERE const char *emu_file = __builtin_FILE(), int emu_line = __builtin_LINE()
#define EMU_SITE emu::Site{emu_file, emu_line}

static inline void __syncthreads(EMU_HERE) { emu::sync_threads(EMU_SITE); }

template <typename T> static inline T __ldcs(const T *at) { return *at; }

static inline void __syncwarp(unsigned mask = 0xffffffffu, EMU_HERE)
{
    emu::collect(emu::SYNCWARP, mask, 0, 0, EMU_SITE);
}

static inline unsigned __ballot_sync(unsigned mask, int predicate, EMU_HERE)
{
    return (unsigned)emu::collect(emu::BALLOT, mask, predicate != 0, 0, EMU_SITE);
}

static inline int __any_sync(unsigned mask, int predicate, EMU_HERE)
{
    return emu::collect(emu::ANY, mask, predicate != 0, 0, EMU_SITE) != 0;
}

static inline int __all_sync(unsigned mask, int predicate, EMU_HERE)
{
    return (unsigned)emu::collect(emu::ALL, mask, predicate != 0, 0, EMU_SITE) == mask;
}

#define EMU_SHUFFLES(T)                                                                            \
    static inline T __shfl_sync(unsigned mask, T x, int lane, int width = 32, EMU_HERE)            \
    {                                                                                              \
        return emu::shuffle<T>(emu::SHUFFLE, mask, x, lane, width, EMU_SITE);                      \
    }                                                                                              \
    static inline T __shfl_up_sync(unsigned mask, T x, unsigned by, int width = 32, EMU_HERE)      \
    {                                                                                              \
        return emu::shuffle<T>(emu::SHUFFLE_UP, mask, x, (int)by, width, EMU_SITE);                \
    }                                                                                              \
    static inline T __shfl_down_sync(unsigned mask, T x, unsigned by, int width = 32, EMU_HERE)    \
    {                                                                                              \
        return emu::shuffle<T>(emu::SHUFFLE_DOWN, mask, x, (int)by, width, EMU_SITE);              \
    }                                                                                              \
    static inline T __shfl_xor_sync(unsigned mask, T x, int lanes, int width = 32, EMU_HERE)       \
    {                                                                                              \
        return emu::shuffle<T>(emu::SHUFFLE_XOR, mask, x, lanes, width, EMU_SITE);                 \
    }
EMU_SHUFFLES(int)
EMU_SHUFFLES(unsigned)
EMU_SHUFFLES(long long)
EMU_SHUFFLES(unsigned long long)
EMU_SHUFFLES(float)
EMU_SHUFFLES(double)
#undef EMU_SHUFFLES
#undef EMU_HERE
#undef EMU_SITE

/* On device memory: one thread runs at a time, so plain arithmetic is atomic. shared.h has the same on
 * shared memory. */
#define EMU_ATOMIC_ADD(T)                      \
    static inline T atomicAdd(T *at, T by)     \
    {                                          \
        T old = *at;                           \
        *at = (T)(old + by);                   \
        return old;                            \
    }
EMU_ATOMIC_ADD(int)
EMU_ATOMIC_ADD(unsigned)
EMU_ATOMIC_ADD(unsigned long long)
EMU_ATOMIC_ADD(float)
#undef EMU_ATOMIC_ADD

static inline int atomicMax(int *at, int value)
{
    int old = *at;
    *at = old > value ? old : value;
    return old;
}

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }

template <typename To, typename From> static inline To emu_bits_as(From from)
{
    static_assert(sizeof(To) == sizeof(From), "bits are moved, not converted");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

static inline unsigned __float_as_uint(float x) { return emu_bits_as<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return emu_bits_as<float>(x); }
static inline int __float_as_int(float x) { return emu_bits_as<int>(x); }
static inline float __int_as_float(int x) { return emu_bits_as<float>(x); }

/* The compiler is told not to contract (-ffp-contract=off), so these are what they say. */
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dsub_rn(double x, double y) { return x - y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline double __ddiv_rn(double x, double y) { return x / y; }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }

#define EMU_MIN_MAX(T)                                              \
    static inline T min(T a, T b) { return b < a ? b : a; }         \
    static inline T max(T a, T b) { return a < b ? b : a; }
EMU_MIN_MAX(int)
EMU_MIN_MAX(unsigned)
EMU_MIN_MAX(long)
EMU_MIN_MAX(unsigned long)
EMU_MIN_MAX(long long)
EMU_MIN_MAX(unsigned long long)
#undef EMU_MIN_MAX
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }

#endif
