# SPDX-License-Identifier: Apache-2.0
# SH_CHECK_CUDA: --with-cuda[=auto|yes|no|DIR]. There is no CUDA backend in this release, so `auto`
# finds nothing to build and `yes` (or DIR) is refused.
AC_DEFUN([SH_CHECK_CUDA], [
    AC_ARG_WITH([cuda],
        [AS_HELP_STRING([--with-cuda@<:@=auto|yes|no|DIR@:>@], [build the CUDA backend (default: auto)])],
        [], [with_cuda=auto])
    AS_CASE([$with_cuda],
        [no], [sh_cuda_state="no"],
        [auto], [sh_cuda_state="no (this release has none)"],
        [AC_MSG_ERROR([--with-cuda=$with_cuda: this release has no CUDA backend to build])])
])
