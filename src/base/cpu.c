/* SPDX-License-Identifier: Apache-2.0 */
/* See cpu.h. The conversions use AVX registers, which the system must save: __builtin_cpu_supports("avx") knows. CPUID
 * is slow in a virtual machine, so it is executed once. */
#include "src/base/cpu.h"

#if defined __x86_64__ && defined __GNUC__
#include <cpuid.h>
#include <stdatomic.h>
#include <xmmintrin.h>

static int ask(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}

int sh_cpu_has_f16c(void)
{
    static atomic_int known = -1;
    int has = atomic_load_explicit(&known, memory_order_relaxed);
    if (has < 0)
        atomic_store_explicit(&known, has = ask(), memory_order_relaxed);
    return has;
}

/* Bits of MXCSR. */
enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x40 };

unsigned sh_cpu_drop_subnormals(void)
{
    unsigned was = _mm_getcsr();
    _mm_setcsr(was | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
    return was;
}

void sh_cpu_keep_subnormals(unsigned was)
{
    _mm_setcsr(was);
}
#else
int sh_cpu_has_f16c(void) { return 0; }
unsigned sh_cpu_drop_subnormals(void) { return 0; }
void sh_cpu_keep_subnormals(unsigned was) { (void)was; }
#endif
