# SPDX-License-Identifier: Apache-2.0
# SH_CHECK_CXX: a C++17 compiler is needed by the tests alone, to compile the CUDA sources for the host.
AC_DEFUN([SH_CHECK_CXX], [
    AC_REQUIRE([AC_PROG_CXX])
    AC_LANG_PUSH([C++])
    sh_saved_flags=$CXXFLAGS
    CXXFLAGS="$CXXFLAGS -std=c++17"
    AC_MSG_CHECKING([whether $CXX compiles C++17])
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[template <auto X> int f() { return X; }
int g() { return f<3>(); }]])], [sh_have_cxx=yes], [sh_have_cxx=no])
    AC_MSG_RESULT([$sh_have_cxx])
    CXXFLAGS=$sh_saved_flags
    AC_LANG_POP([C++])
    AM_CONDITIONAL([HAVE_CXX], [test "$sh_have_cxx" = yes])
    AS_IF([test "$sh_have_cxx" = yes], [sh_emulation="tests run the CUDA sources on the host ($CXX)"],
        [sh_emulation="no (no C++17 compiler)"])
])
