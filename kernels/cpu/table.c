/* SPDX-License-Identifier: Apache-2.0 */
/* The table of this variant. */
#include "kernels/cpu/variant.h"

#define CPU_TEXT_(x) #x
#define CPU_TEXT(x) CPU_TEXT_(x)

const struct cpu_kernels CPU_NAME(cpu_kernels) = {
    .name = CPU_TEXT(CPU_VARIANT),
    .attend = CPU_NAME(cpu_attend),
    .attend_bytes = CPU_NAME(cpu_attend_bytes),
    .embed = CPU_NAME(cpu_embed),
    .norm = CPU_NAME(cpu_norm),
    .rotary = CPU_NAME(cpu_rotary),
    .gate = CPU_NAME(cpu_gate),
    .convert = CPU_NAME(cpu_convert),
    .snap = CPU_NAME(cpu_snap),
    .few = CPU_NAME(cpu_few),
    .many = CPU_NAME(cpu_many),
    .few_codes = CPU_NAME(cpu_few_codes),
    .few_codes_room = CPU_NAME(cpu_few_codes_room),
#ifdef CPU_HAS_BF16
    .few_bf16 = CPU_NAME(cpu_few_bf16),
#endif
#ifdef CPU_HAS_AMX
    .few_amx = CPU_NAME(cpu_few_amx),
#endif
};
