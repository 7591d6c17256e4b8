# SPDX-License-Identifier: Apache-2.0
# SH_CHECK_DNNL: oneDNN (2.x or 3.x), which the CPU backend takes its matrix products from. sh_dnnl_why: what is absent.
AC_DEFUN([SH_CHECK_DNNL], [
    sh_dnnl_why=
    AC_CHECK_HEADER([oneapi/dnnl/dnnl.h], [],
        [sh_dnnl_why="oneDNN's header oneapi/dnnl/dnnl.h was not found; on Debian: apt-get install libdnnl-dev"])
    sh_save_LIBS=$LIBS
    AS_IF([test -z "$sh_dnnl_why"], [
        AC_CHECK_LIB([dnnl], [dnnl_version], [DNNL_LIBS=-ldnnl],
            [sh_dnnl_why="oneDNN's library libdnnl was not found; on Debian: apt-get install libdnnl-dev"])])
    LIBS=$sh_save_LIBS
    AS_IF([test -z "$sh_dnnl_why"], [
        AC_COMPUTE_INT([sh_dnnl_major], [DNNL_VERSION_MAJOR], [#include <oneapi/dnnl/dnnl_version.h>])
        AC_COMPUTE_INT([sh_dnnl_minor], [DNNL_VERSION_MINOR], [#include <oneapi/dnnl/dnnl_version.h>])
        sh_dnnl_version=$sh_dnnl_major.$sh_dnnl_minor])
    AC_SUBST([DNNL_LIBS])
])
