# SPDX-License-Identifier: Apache-2.0
# SH_CHECK_CUDA: --with-cuda[=auto|yes|no|DIR], --with-cuda-arch=LIST. Proves compiler, headers, library
# and the match with the host compiler in one go: a two-line source that calls cuBLAS is compiled and
# linked into a shared object. No GPU and no driver is needed for that, and none is looked for.
# Sets NVCC, CUDA_GENCODE, CUDA_LDFLAGS and the conditional WITH_CUDA.
AC_DEFUN([SH_CHECK_CUDA], [
    AC_ARG_WITH([cuda],
        [AS_HELP_STRING([--with-cuda@<:@=auto|yes|no|DIR@:>@],
            [build the CUDA backend, with the toolkit in DIR (default: auto)])],
        [], [with_cuda=auto])
    AC_ARG_WITH([cuda-arch],
        [AS_HELP_STRING([--with-cuda-arch=LIST],
            [compute capabilities to build for (default: 80,90; newer chips compile the code of the last at their first start)])],
        [], [with_cuda_arch=])
    AC_ARG_VAR([NVCC], [the CUDA compiler])
    AC_ARG_VAR([NVCCFLAGS], [flags for the CUDA compiler (default: -O3)])
    : ${NVCCFLAGS="-O3"}
    CUDA_GENCODE= CUDA_LDFLAGS= sh_cuda_state=no
    AS_CASE([$with_cuda],
        [no], [],
        [auto|yes], [
            AS_IF([test -n "$NVCC"], [],
                [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH$PATH_SEPARATOR/usr/local/cuda/bin])])],
        [NVCC=$with_cuda/bin/nvcc
         CUDA_LDFLAGS="-L$with_cuda/lib64 -Xlinker -rpath,$with_cuda/lib64"])
    AS_IF([test "$with_cuda" != no], [
        sh_cuda_lib=$(dirname "$(dirname "$NVCC")")/lib64
        AS_IF([test -z "$CUDA_LDFLAGS" && test -d "$sh_cuda_lib"],
            [CUDA_LDFLAGS="-L$sh_cuda_lib -Xlinker -rpath,$sh_cuda_lib"])
        AS_IF([test -x "$NVCC"], [SH_TRY_CUDA], [sh_cuda_why="no nvcc"])
        AS_IF([test -n "$sh_cuda_why"], [
            sh_cuda_state="no ($sh_cuda_why)"
            AS_IF([test "$with_cuda" != auto], [AC_MSG_ERROR([--with-cuda=$with_cuda: $sh_cuda_why])])])])
    AC_SUBST([CUDA_GENCODE])
    AC_SUBST([CUDA_LDFLAGS])
    AM_CONDITIONAL([WITH_CUDA], [test "$sh_cuda_state" = yes])
    AS_IF([test "$sh_cuda_state" = yes],
        [sh_cuda_state="module cuda.so, toolkit $sh_cuda_version, for $sh_cuda_archs"])
])

# Real code for each architecture and PTX of the last, so that newer chips run it too.
AC_DEFUN([SH_TRY_CUDA], [
    sh_cuda_version=$("$NVCC" --version | sed -n 's/.*release \(@<:@0-9.@:>@*\).*/\1/p')
    sh_cuda_known=$("$NVCC" --list-gpu-arch 2>/dev/null | sed 's/compute_//' | tr '\n' ' ')
    sh_cuda_archs=$(echo "$with_cuda_arch" | tr ',' ' ')
    AS_IF([test -z "$sh_cuda_archs"], [
        for arch in 80 90; do
            AS_CASE([" $sh_cuda_known "], [*" $arch "*], [sh_cuda_archs="$sh_cuda_archs $arch"])
        done])
    for arch in $sh_cuda_archs; do
        CUDA_GENCODE="$CUDA_GENCODE -gencode arch=compute_$arch,code=sm_$arch"
    done
    CUDA_GENCODE="$CUDA_GENCODE -gencode arch=compute_$arch,code=compute_$arch"
    sh_cuda_archs=$(echo $sh_cuda_archs)
    AC_MSG_CHECKING([whether $NVCC can link cuBLAS into a module])
    cat > conftest.cu <<_SH_EOF
#include <cublas_v2.h>
extern "C" int sh_try(void) { cublasHandle_t h; return cublasCreate(&h); }
_SH_EOF
    AS_IF([AC_TRY_COMMAND(["$NVCC" $CUDA_GENCODE $NVCCFLAGS -Xcompiler -fPIC -shared $CUDA_LDFLAGS
            -o conftest.so conftest.cu -lcublas >&AS_MESSAGE_LOG_FD 2>&1])],
        [AC_MSG_RESULT([yes]); sh_cuda_state=yes],
        [AC_MSG_RESULT([no]); sh_cuda_why="$NVCC cannot link a module with cuBLAS, see config.log"])
    rm -f conftest.cu conftest.so
])
