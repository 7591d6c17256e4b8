/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the instruction set at run time. */
#include "kernels/cpu/variant.h"

const struct cpu_kernels *cpu_kernels_pick(void)
{
#ifdef SH_X86_VARIANTS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return &cpu_kernels_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
        return &cpu_kernels_avx2;
#endif
    return &cpu_kernels_base;
}
