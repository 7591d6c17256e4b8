/* SPDX-License-Identifier: Apache-2.0 */
/* Features of the processor for which some compilers' __builtin_cpu_supports has no name, and how it treats
 * subnormal numbers. */
#ifndef SH_BASE_CPU_H
#define SH_BASE_CPU_H

/* Vector conversions between f16 and f32; a cheap call. 0 if the processor is not an x86. */
int sh_cpu_has_f16c(void);

/* From here on this thread takes numbers below 2^-126 as 0, in operands and results, until sh_cpu_keep_subnormals gets
 * what this returned. On an x86 each such number costs some hundred cycles; elsewhere nothing changes. */
unsigned sh_cpu_drop_subnormals(void);
void sh_cpu_keep_subnormals(unsigned was);

#endif
