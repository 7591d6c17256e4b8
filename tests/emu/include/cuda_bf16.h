/* SPDX-License-Identifier: Apache-2.0 */
/* bfloat16 as CUDA names it; only conversions, no arithmetic: the kernels compute in f32. */
#ifndef SH_EMU_CUDA_BF16_H
#define SH_EMU_CUDA_BF16_H

#include <cuda_runtime.h>

#include "src/base/num.h"

struct __nv_bfloat16 {
    uint16_t bits;
};

static inline float __bfloat162float(__nv_bfloat16 x) { return sh_bf16_to_f32(x.bits); }
static inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16{sh_f32_to_bf16(x)}; }

#endif
