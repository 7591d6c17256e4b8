# SPDX-License-Identifier: Apache-2.0
# SH_CHECK_MPI: --with-mpi[=auto|yes|no]. Builds the module mpi.so where a program that starts MPI with
# threads can be linked: with pkg-config's ompi-c (Open MPI), or with what mpicc says.
# Sets MPI_CFLAGS, MPI_LIBS and the conditional WITH_MPI.
AC_DEFUN([SH_CHECK_MPI], [
    AC_ARG_WITH([mpi],
        [AS_HELP_STRING([--with-mpi@<:@=auto|yes|no@:>@],
            [build the module for mpirun and srun (default: auto)])],
        [], [with_mpi=auto])
    sh_mpi_state=no
    AS_CASE([$with_mpi], [auto|yes|no], [], [AC_MSG_ERROR([--with-mpi=$with_mpi: expected auto, yes or no])])
    AS_IF([test "$with_mpi" != no], [
        PKG_CHECK_MODULES([MPI], [ompi-c], [], [
            AC_PATH_PROG([MPICC], [mpicc])
            AS_IF([test -n "$MPICC"], [
                MPI_CFLAGS=$("$MPICC" --showme:compile 2>/dev/null || "$MPICC" -compile_info 2>/dev/null | sed 's/^@<:@^ @:>@* //')
                MPI_LIBS=$("$MPICC" --showme:link 2>/dev/null || "$MPICC" -link_info 2>/dev/null | sed 's/^@<:@^ @:>@* //')])])
        AC_MSG_CHECKING([whether a program with MPI can be linked])
        sh_mpi_saved_cflags=$CFLAGS sh_mpi_saved_libs=$LIBS
        CFLAGS="$CFLAGS $MPI_CFLAGS" LIBS="$LIBS $MPI_LIBS"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]],
            [[int level; return MPI_Init_thread(0, 0, MPI_THREAD_SERIALIZED, &level);]])],
            [sh_mpi_state=yes], [sh_mpi_state=no])
        CFLAGS=$sh_mpi_saved_cflags LIBS=$sh_mpi_saved_libs
        AC_MSG_RESULT([$sh_mpi_state])
        AS_IF([test "$sh_mpi_state$with_mpi" = noyes], [AC_MSG_ERROR([--with-mpi: no MPI library was found])])])
    AM_CONDITIONAL([WITH_MPI], [test "$sh_mpi_state" = yes])
    AS_IF([test "$sh_mpi_state" = yes], [sh_mpi_state="module mpi.so"],
          [test "$with_mpi" = auto], [sh_mpi_state="no (no MPI library)"])
])
