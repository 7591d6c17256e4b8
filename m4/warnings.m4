# SPDX-License-Identifier: Apache-2.0
# SH_WARNINGS: our warning flags, kept apart from the user's CFLAGS. --enable-werror makes them fatal.
AC_DEFUN([SH_WARNINGS], [
    SH_WARN_CFLAGS="-std=c11 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes"
    AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [treat warnings as errors])])
    AS_IF([test "x$enable_werror" = xyes], [SH_WARN_CFLAGS="$SH_WARN_CFLAGS -Werror"])
    AC_SUBST([SH_WARN_CFLAGS])
])
