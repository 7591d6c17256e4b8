/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the instruction set at run time. What is asked for here is what local.mk compiles with. */
#include "kernels/cpu/variant.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/cpu.h"

#ifdef SH_X86_VARIANTS
int cpu_runs_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && sh_cpu_has_f16c();
}

int cpu_runs_avx512(void)
{
    return cpu_runs_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}
#endif

int cpu_runs_bf16(void)
{
#ifdef SH_X86_VARIANTS
    return cpu_runs_avx512() && __builtin_cpu_supports("avx512bf16");
#else
    return 0;
#endif
}

int cpu_runs_vnni(void)
{
#ifdef SH_X86_VARIANTS
    return cpu_runs_avx512() && __builtin_cpu_supports("avx512vnni");
#else
    return 0;
#endif
}

#if defined SH_AVXVNNI_VARIANT || defined SH_AMX_VARIANT
#include <cpuid.h>
#endif

#ifdef SH_AVXVNNI_VARIANT
int cpu_runs_avxvnni(void)
{
    enum { AVXVNNI = 1 << 4 };          /* CPUID 7.1, EAX                                         */
    unsigned a, b, c, d;
    return cpu_runs_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && a & AVXVNNI;
}
#endif

#ifdef SH_AMX_VARIANT
#include <sys/syscall.h>
#include <unistd.h>

enum { ASK_FOR_STATE = 0x1023, TILE_DATA = 18 };        /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
enum { BF16_TILES = 1 << 22, TILES = 1 << 24 };         /* CPUID 7, EDX                            */

int cpu_runs_amx(void)
{
    unsigned a, b, c, d;
    return cpu_runs_bf16() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & BF16_TILES && d & TILES &&
           !syscall(SYS_arch_prctl, ASK_FOR_STATE, TILE_DATA);
}
#endif

static int runs_base(void)
{
    return 1;
}

/* The best first; what oneDNN may use with them. */
static const struct choice { const struct cpu_kernels *kernels; int (*runs)(void); dnnl_cpu_isa_t isa; } choices[] = {
#ifdef SH_AMX_VARIANT
    {&cpu_kernels_amx, cpu_runs_amx, dnnl_cpu_isa_all},
#endif
#ifdef SH_X86_VARIANTS
    {&cpu_kernels_avx512, cpu_runs_avx512, dnnl_cpu_isa_avx512_core_bf16},
#ifdef SH_AVXVNNI_VARIANT
    {&cpu_kernels_avxvnni, cpu_runs_avxvnni, dnnl_cpu_isa_avx2},
#endif
    {&cpu_kernels_avx2, cpu_runs_avx2, dnnl_cpu_isa_avx2},
#endif
    {&cpu_kernels_base, runs_base, dnnl_cpu_isa_sse41}};

enum { N_CHOICE = sizeof choices / sizeof *choices };

const struct cpu_kernels *cpu_kernels_pick(struct sh_err *e)
{
    const char *named = getenv("SH_KERNELS");
    int i = 0;
    while (i < N_CHOICE && (named && *named ? strcmp(choices[i].kernels->name, named) : !choices[i].runs()))
        i++;
    if (i == N_CHOICE || !choices[i].runs()) {
        sh_misused(e, "SH_KERNELS: found '%s', expected kernels that this processor can run: base, avx2, avxvnni, "
                      "avx512 or amx", named);
        return NULL;
    }
    if (named && *named)
        dnnl_set_max_cpu_isa(choices[i].isa);
    return choices[i].kernels;
}
