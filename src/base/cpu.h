/* SPDX-License-Identifier: Apache-2.0 */
/* Features of the processor for which some compilers' __builtin_cpu_supports has no name. */
#ifndef SH_BASE_CPU_H
#define SH_BASE_CPU_H

/* Vector conversions between f16 and f32; a cheap call. 0 if the processor is not an x86. */
int sh_cpu_has_f16c(void);

#endif
