/* SPDX-License-Identifier: Apache-2.0 */
/* SH_CLONES in front of a function compiles it once for each level of the x86-64 instruction sets;
 * the loader picks the best one that the machine has. Elsewhere it is nothing. The clones must give
 * the same numbers: integer work, or floating sums whose order is written out.
 * What such functions call is SH_INLINE, so that it is compiled with them.
 * Not under the sanitizers, whose runtime is not ready when the loader chooses. */
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
