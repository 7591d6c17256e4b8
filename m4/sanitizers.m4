# SPDX-License-Identifier: Apache-2.0
# SH_SANITIZERS: --enable-sanitizers builds with the address and undefined-behaviour sanitizers.
AC_DEFUN([SH_SANITIZERS], [
    AC_ARG_ENABLE([sanitizers],
        [AS_HELP_STRING([--enable-sanitizers], [build with the address and undefined-behaviour sanitizers])])
    sh_sanitizers=no
    AS_IF([test "x$enable_sanitizers" = xyes], [
        sh_sanitizers="address, undefined"
        SH_SAN_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
    ])
    AC_SUBST([SH_SAN_FLAGS])
])
