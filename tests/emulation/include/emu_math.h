/* SPDX-License-Identifier: Apache-2.0 */
/* Device arithmetic that rounds each operation by itself. */
#ifndef EMU_MATH_H
#define EMU_MATH_H

#include <cmath>
#include <cstdint>
#include <cstring>

static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline uint32_t __float_as_uint(float x) { uint32_t u; std::memcpy(&u, &x, 4); return u; }
static inline float __uint_as_float(uint32_t u) { float x; std::memcpy(&x, &u, 4); return x; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }

#endif
