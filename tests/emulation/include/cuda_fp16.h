/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EMU_CUDA_FP16_H
#define EMU_CUDA_FP16_H

#include "src/base/num.h"

struct __half { uint16_t bits; };

static inline float __half2float(__half x) { return sh_f16_to_f32(x.bits); }
static inline __half __float2half_rn(float x) { return __half{sh_f32_to_f16(x)}; }

#endif
