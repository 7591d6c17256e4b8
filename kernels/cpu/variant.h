/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of the CPU backend that are worth more than one instruction set. attend.c and rows.c
 * are compiled once per variant with CPU_VARIANT set (base, avx2, avx512), each exporting one table. */
#ifndef SH_KERNELS_CPU_VARIANT_H
#define SH_KERNELS_CPU_VARIANT_H

#include "kernels/backend.h"

struct cpu_kernels {
    const char *name;
    /* 0, or 1 + the number of a sequence with scores that are no numbers */
    int (*attend)(const struct sh_attend *a, int n_threads);
    void (*norm)(const struct sh_norm *a, int n_threads);
    void (*widen)(float *to, const void *from, enum sh_type type, size_t n, int n_threads);
    void (*round_bf16)(uint16_t *to, const void *from, enum sh_type type, size_t n, int n_threads);
};

extern const struct cpu_kernels cpu_kernels_base;
#ifdef SH_X86_VARIANTS
extern const struct cpu_kernels cpu_kernels_avx2, cpu_kernels_avx512;
#endif

/* The best variant that this machine runs. */
const struct cpu_kernels *cpu_kernels_pick(void);

/* Each variant of attend.c and rows.c: the name with the variant's suffix. */
#define CPU_PASTE_(a, b) a##_##b
#define CPU_PASTE(a, b) CPU_PASTE_(a, b)
#define CPU_NAME(a) CPU_PASTE(a, CPU_VARIANT)

#ifdef CPU_VARIANT
int CPU_NAME(cpu_attend)(const struct sh_attend *a, int n_threads);      /* attend.c, for the table in rows.c */
#endif

#endif
