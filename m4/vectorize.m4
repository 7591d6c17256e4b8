# SPDX-License-Identifier: Apache-2.0
# SH_VECTORIZE: VECTORIZE_CFLAGS has loops vectorised at any -O, PEEL_CFLAGS has short ones unrolled wholly. With
# UNTRACKED_CFLAGS, debuggers are not told which register a variable is in at each instruction: with -g, GCC spends half
# of its time on this where loops are unrolled. GCC 12 weighs the cost of vectors by -O unless it is told otherwise;
# Clang does not, and does not know these flags.
AC_DEFUN([SH_IF_FLAG], [
    AC_MSG_CHECKING([whether the compiler takes $1])
    sh_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -Werror $1"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()], [$2="$$2 $1"; AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])])
    CFLAGS=$sh_save_CFLAGS
])

AC_DEFUN([SH_VECTORIZE], [
    VECTORIZE_CFLAGS=-ftree-vectorize
    PEEL_CFLAGS=
    UNTRACKED_CFLAGS=
    SH_IF_FLAG([-fvect-cost-model=dynamic], [VECTORIZE_CFLAGS])
    SH_IF_FLAG([-fpeel-loops], [PEEL_CFLAGS])
    SH_IF_FLAG([-fno-var-tracking], [UNTRACKED_CFLAGS])
    AC_SUBST([VECTORIZE_CFLAGS])
    AC_SUBST([PEEL_CFLAGS])
    AC_SUBST([UNTRACKED_CFLAGS])
])
