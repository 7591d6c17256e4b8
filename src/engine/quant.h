/* SPDX-License-Identifier: Apache-2.0 */
/* Group-wise asymmetric quantisation of the KV cache. n numbers share a scale and a minimum:
 *
 *     scale = (max - min) / (2^bits - 1),  code = clamp(round((x - min) / scale), 0, 2^bits - 1),
 *     x' = code * scale + min
 *
 * rounding to nearest, ties to even; scale 0: code 0. With meta SH_F16 scale and minimum are rounded to
 * f16 (what is too large for it becomes its largest number) before they are used for the codes. Codes
 * of 4 bits are two in a byte, the first one in the low half; a group begins with a byte. */
#ifndef SH_ENGINE_QUANT_H
#define SH_ENGINE_QUANT_H

#include <stddef.h>
#include <stdint.h>

#include "src/base/num.h"

/* How keys or values are kept. */
struct sh_kv_format {
    int bits;                           /* 32: f32, 16: f16, 8 and 4: codes                       */
    int group;                          /* of codes: numbers that share a scale; a multiple of 8  */
    enum sh_type meta;                  /* of scale and minimum: SH_F16, or SH_F32                */
    int by_channel;                     /* codes of keys share them along slots, not channels     */
    int residual;                       /* with that: newest keys that are kept as f16            */
};

static inline size_t sh_quant_code_bytes(int n, int bits) { return ((size_t)n * (size_t)bits + 7) / 8; }
static inline size_t sh_quant_meta_bytes(enum sh_type meta) { return 2 * sh_type_bytes(meta); }

/* One group of n numbers x[0], x[stride], …; meta: scale, minimum. */
void sh_quant_write(const struct sh_kv_format *f, const float *x, size_t stride, int n, void *codes, void *meta);

/* The same piece by piece: scale and minimum for numbers in [low, high]; what they can tell apart; and the code of
 * number i. */
void sh_quant_set_range(const struct sh_kv_format *f, float low, float high, void *meta);
void sh_quant_range(const struct sh_kv_format *f, const void *meta, float *low, float *high);
void sh_quant_put(const struct sh_kv_format *f, float x, int i, void *codes, const void *meta);

/* Numbers [first, first + n) of a group; first is even. */
void sh_quant_read(const struct sh_kv_format *f, const void *codes, const void *meta, int first, int n, float *x,
                   size_t stride);

/* A row of `width` numbers in groups, the last one perhaps shorter: their codes and their metas one
 * after another. */
size_t sh_quant_row_code_bytes(const struct sh_kv_format *f, int width);
size_t sh_quant_row_meta_bytes(const struct sh_kv_format *f, int width);
void sh_quant_row_write(const struct sh_kv_format *f, const float *x, int width, void *codes, void *meta);
void sh_quant_row_read(const struct sh_kv_format *f, const void *codes, const void *meta, int width, float *x);

#endif
