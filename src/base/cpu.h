/* SPDX-License-Identifier: Apache-2.0 */
/* What the processor can do, where not every compiler's __builtin_cpu_supports has a name for it. */
#ifndef SH_BASE_CPU_H
#define SH_BASE_CPU_H

/* Conversions between f16 and f32, of vectors; cheap to ask. 0 where the processor is no x86. */
int sh_cpu_has_f16c(void);

#endif
