/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled variants of the CPU backend's loops, so that each is tested on any machine that runs it. */
#ifndef TESTS_UNIT_VARIANTS_H
#define TESTS_UNIT_VARIANTS_H

#include "kernels/cpu/cpu.h"

enum variant { VARIANT_BASE, VARIANT_AVX2, VARIANT_AVXVNNI, VARIANT_AVX512, VARIANT_AMX };

/* The CPU backend opened with this variant's loops. NULL: the running test has been skipped, because
 * the variant was not compiled or the machine has no such instructions. Close with sh_backend_cpu. */
struct sh_dev *variant_open(enum variant v, int n_threads);

/* Four tests for each function `void fn(enum variant v)`. (avxvnni has avx2's functions but for packed weights.) */
#define EACH_VARIANT(fn)                                        \
    static void fn##_base(void) { fn(VARIANT_BASE); }           \
    static void fn##_avx2(void) { fn(VARIANT_AVX2); }           \
    static void fn##_avx512(void) { fn(VARIANT_AVX512); }       \
    static void fn##_amx(void) { fn(VARIANT_AMX); }
#define LIST_VARIANTS(text, fn) \
    {text " (base)", fn##_base}, {text " (avx2)", fn##_avx2}, {text " (avx512)", fn##_avx512}, {text " (amx)", fn##_amx}

/* n numbers, normal with this deviation; the caller frees them. */
float *variant_normal(size_t n, uint64_t seed, double deviation);

#endif
