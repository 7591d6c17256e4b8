# SPDX-License-Identifier: Apache-2.0
# SH_SANITIZERS: --enable-sanitizers builds with the address and undefined-behaviour sanitizers,
# --enable-sanitizers=thread with the thread sanitizer (tests/cli/thread.sh says how that is run). SH_EMU_SAN_FLAGS is
# for the emulation of CUDA, whose own accesses are not looked at: those of the kernels that it runs are, and it would
# take half of their time. SH_SAN_LDFLAGS is for programs: what the sanitizers note of each check are megabytes of
# addresses, and to move them takes half of the time of a short run.
AC_DEFUN([SH_SANITIZERS], [
    AC_ARG_ENABLE([sanitizers],
        [AS_HELP_STRING([--enable-sanitizers@<:@=thread@:>@], [build with the address and undefined-behaviour
            sanitizers, or with the thread sanitizer])])
    sh_sanitizers=no
    AS_CASE([$enable_sanitizers],
        [yes], [sh_sanitizers="address, undefined"
            SH_SAN_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
            SH_EMU_SAN_FLAGS="-fsanitize=address -fno-omit-frame-pointer --param asan-instrument-reads=0 dnl
--param asan-instrument-writes=0 --param asan-globals=0 --param asan-stack=0"
            SH_SAN_LDFLAGS=-no-pie],
        [thread], [sh_sanitizers="thread"
            SH_SAN_FLAGS="-fsanitize=thread -fno-omit-frame-pointer"
            SH_EMU_SAN_FLAGS=$SH_SAN_FLAGS],
        [no|""], [],
        [AC_MSG_ERROR([--enable-sanitizers=$enable_sanitizers: expected yes, no or thread])])
    AC_SUBST([SH_SAN_FLAGS])
    AC_SUBST([SH_EMU_SAN_FLAGS])
    AC_SUBST([SH_SAN_LDFLAGS])
    AM_CONDITIONAL([SANITIZED], [test -n "$SH_SAN_FLAGS"])
])
