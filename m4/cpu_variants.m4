# SPDX-License-Identifier: Apache-2.0
# SH_CPU_VARIANTS: the instruction sets that the CPU kernels are compiled for besides the base one.
# The same sources are compiled once for each; kernels/cpu/variant.c picks one at run time.
AC_DEFUN([SH_CPU_VARIANT], [
    AC_MSG_CHECKING([whether the compiler can target $2])
    sh_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS $3"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <immintrin.h>
#include <sys/syscall.h>]], [[$4]])],
        [$1=yes; sh_cpu_variants="$sh_cpu_variants, $2"],
        [$1=no])
    CFLAGS=$sh_save_CFLAGS
    AC_MSG_RESULT([$$1])
])

AC_DEFUN([SH_CPU_VARIANTS], [
    sh_cpu_variants=" base"
    sh_amx=no
    sh_avxvnni=no
    SH_CPU_VARIANT([sh_x86], [AVX2 and AVX-512],
        [-mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mprefer-vector-width=512],
        [__m512 x = _mm512_setzero_ps(); (void)x;])
    AS_IF([test "$sh_x86" = yes],
        [SH_CPU_VARIANT([sh_avxvnni], [AVX-VNNI], [-mavx2 -mavxvnni],
            [__m256i x = _mm256_setzero_si256(); x = _mm256_dpbusd_avx_epi32(x, x, x); (void)x;])])
    AS_IF([test "$sh_x86" = yes],
        [SH_CPU_VARIANT([sh_amx], [AMX], [-mamx-tile -mamx-bf16], [int ask = SYS_arch_prctl; (void)ask; _tile_dpbf16ps(0, 1, 2);])])
    AM_CONDITIONAL([X86_VARIANTS], [test "$sh_x86" = yes])
    AM_CONDITIONAL([AVXVNNI_VARIANT], [test "$sh_avxvnni" = yes])
    AM_CONDITIONAL([AMX_VARIANT], [test "$sh_amx" = yes])
])
