# SPDX-License-Identifier: Apache-2.0
# SH_CPU_VARIANTS: the instruction sets that the CPU kernels are compiled for besides the base one.
# The same sources are compiled once for each; kernels/cpu/variant.c picks one at run time.
AC_DEFUN([SH_CPU_VARIANTS], [
    sh_cpu_variants=" base"
    AC_MSG_CHECKING([whether the compiler can target AVX2 and AVX-512])
    sh_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mprefer-vector-width=512"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <immintrin.h>]], [[__m512 x = _mm512_setzero_ps(); (void)x;]])],
        [sh_x86=yes; sh_cpu_variants=" base, AVX2, AVX-512"],

        [sh_x86=no])
    CFLAGS=$sh_save_CFLAGS
    AC_MSG_RESULT([$sh_x86])
    AM_CONDITIONAL([X86_VARIANTS], [test "$sh_x86" = yes])
])
