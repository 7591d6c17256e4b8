/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of blocks of packed weights (kernels/packed.h) as constants. */
#ifndef SH_KERNELS_CUDA_PACKING_CUH
#define SH_KERNELS_CUDA_PACKING_CUH

#include "kernels/packed.h"

template <int FORMAT> struct packing;
#define FORMAT(name, n, size, run, less)                                                                             \
    template <> struct packing<SH_PACKED_##name> {                                                                   \
        enum { ELEMENTS = n, BYTES = size, SPAN = run,                                                               \
               IS_POINTS = SH_PACKED_##name >= SH_PACKED_IQ1_S && SH_PACKED_##name <= SH_PACKED_IQ3_S };             \
    };
SH_PACKED_FORMATS(FORMAT)
#undef FORMAT

#endif
