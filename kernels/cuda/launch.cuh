/* SPDX-License-Identifier: Apache-2.0 */
/* The two things of CUDA C that no host compiler can read, as macros. tests/emu defines both itself,
 * so that the same sources are compiled and run on the host. */
#ifndef SH_KERNELS_CUDA_LAUNCH_CUH
#define SH_KERNELS_CUDA_LAUNCH_CUH

#include <cuda_runtime.h>

#ifndef SH_EMU
/* A kernel that is a template goes in parentheses: SH_LAUNCH((scale<float>), grid, block, stream, …). */
#define SH_LAUNCH(kernel, grid, block, stream, ...) (kernel)<<<(grid), (block), 0, (stream)>>>(__VA_ARGS__)
#define SH_SHARED(type, name, count) __shared__ type name[count]
#endif

#endif
