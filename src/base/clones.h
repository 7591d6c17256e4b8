/* SPDX-License-Identifier: Apache-2.0 */
/* SH_CLONES before a function compiles it once for each level of the x86-64 instruction sets; the loader picks the best
 * that the machine has. Elsewhere, and under the sanitizers, whose runtime is not ready when the loader chooses, it is
 * empty. Clones must give the same numbers: integer work, or floating sums in a fixed order. Functions that they call
 * are SH_INLINE, so that they are compiled with them. */
#ifndef SH_BASE_CLONES_H
#define SH_BASE_CLONES_H

#if defined __x86_64__ && defined __gnu_linux__ && defined __GNUC__ && !defined __clang__ && \
    __GNUC__ >= 12 && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#ifdef SH_AVX2_ONLY                     /* bench/avx2_only.h */
#define SH_CLONES __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define SH_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#endif
#define SH_HAS_CLONES
#else
#define SH_CLONES
#endif

#define SH_INLINE static inline __attribute__((always_inline))

#endif
