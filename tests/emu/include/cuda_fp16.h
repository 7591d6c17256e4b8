/* SPDX-License-Identifier: Apache-2.0 */
/* binary16 as CUDA names it; only conversions, no arithmetic: the kernels compute in f32. */
#ifndef SH_EMU_CUDA_FP16_H
#define SH_EMU_CUDA_FP16_H

#include <cuda_runtime.h>

#include "src/base/num.h"

struct __half {
    uint16_t bits;
};

static inline float __half2float(__half x) { return sh_f16_to_f32(x.bits); }
static inline __half __ushort_as_half(unsigned short bits) { return __half{bits}; }
static inline __half __float2half_rn(float x) { return __half{sh_f32_to_f16(x)}; }

#endif
