/* SPDX-License-Identifier: Apache-2.0 */
/* The program as it runs on a processor with AVX2 and no AVX-512, for measuring that on one which has it:
 *
 *     ./configure CPPFLAGS="-include $PWD/bench/avx2_only.h" && make -j2
 *     ONEDNN_MAX_CPU_ISA=AVX2 ./shears ... */
#ifndef SH_AVX2_ONLY
#define SH_AVX2_ONLY

/* Of the features that are asked for, those of AVX-512 alone have a 5 there. */
#define __builtin_cpu_supports(feature) ((feature)[3] != '5' && (__builtin_cpu_supports)(feature))

#endif
