/* SPDX-License-Identifier: Apache-2.0 */
/* See variants.h. */
#include "tests/unit/variants.h"

#include "src/base/mem.h"
#include "src/base/rng.h"
#include "tests/tap.h"

static const struct cpu_kernels *find(enum variant v, const char **why)
{
    if (v == VARIANT_BASE)
        return &cpu_kernels_base;
#ifdef SH_X86_VARIANTS
    *why = "this processor has no such instructions";
    if (v == VARIANT_AVX2)
        return cpu_runs_avx2() ? &cpu_kernels_avx2 : NULL;
    if (v == VARIANT_AVX512)
        return cpu_runs_avx512() ? &cpu_kernels_avx512 : NULL;
#endif
#ifdef SH_AVXVNNI_VARIANT
    if (v == VARIANT_AVXVNNI)
        return cpu_runs_avxvnni() ? &cpu_kernels_avxvnni : NULL;
#endif
#ifdef SH_AMX_VARIANT
    if (v == VARIANT_AMX)
        return cpu_runs_amx() ? &cpu_kernels_amx : NULL;
#endif
    *why = "not compiled for this kind of processor";
    return NULL;
}

struct sh_dev *variant_open(enum variant v, int n_threads)
{
    const char *why = "";
    struct sh_err e;
    struct sh_open what = {.n_threads = n_threads};
    const struct cpu_kernels *kernels = find(v, &why);
    if (!kernels) {
        tap_skip(why);
        return NULL;
    }
    struct sh_dev *d = sh_backend_cpu.open(&what, &e);
    CU_ASSERT_PTR_NOT_NULL_FATAL(d);
    d->kernels = kernels;
    if (v == VARIANT_AVX2 || v == VARIANT_AVXVNNI) {    /* as on a processor that has no more */
        d->own_sums = 1;
        d->native_bf16 = 0;
    }
    return d;
}

float *variant_normal(size_t n, uint64_t seed, double deviation)
{
    float *to = xmalloc(n * sizeof *to);
    for (size_t i = 0; i < n; i++)
        to[i] = (float)(deviation * sh_rng_normal(seed, i));
    return to;
}
