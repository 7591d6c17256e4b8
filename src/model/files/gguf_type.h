/* SPDX-License-Identifier: Apache-2.0 */
/* The number formats of GGUF tensors. The quantised ones keep rows in blocks: a block is `elements`
 * neighbours in a row in `bytes` bytes, and represents exact f32 numbers. Layouts and formulas are
 * those of ggml (ggml-common.h, ggml-quants.c); f16 scales d, m come first unless said otherwise:
 *
 *     Q4_0   d, 16 bytes q                        x = d (q - 8)         low nibbles are the first 16
 *     Q4_1   d, m, 16 bytes q                     x = d q + m
 *     Q5_0   d, 4 bytes of fifth bits, 16 of q    x = d (q - 16)
 *     Q5_1   d, m, 4 bytes of fifth bits, 16 of q x = d q + m
 *     Q8_0   d, 32 signed bytes q                 x = d q
 *     Q4_K   d, m, 12 bytes of eight 6-bit pairs (s, t), 128 bytes q    x = d s q - m t, each 32 with its pair
 *     Q5_K   the same with 32 bytes of fifth bits before q
 *     Q6_K   128 bytes of low nibbles, 64 of upper pairs of bits, 16 signed s, d at the end
 *                                                 x = d s (q - 32), each 16 with its s */
#ifndef SH_MODEL_FILES_GGUF_TYPE_H
#define SH_MODEL_FILES_GGUF_TYPE_H

#include <stddef.h>
#include <stdint.h>

/* One block to `elements` floats. */
typedef void sh_gguf_unpack(const unsigned char *block, float *out);

struct sh_gguf_type {
    uint32_t number;                        /* in the file                                        */
    const char *name;                       /* "Q4_K"; of plain numbers as in safetensors         */
    unsigned elements, bytes;               /* of a block                                         */
    sh_gguf_unpack *unpack;                 /* NULL: plain numbers, or a format that is not read  */
};

/* NULL: unknown. */
const struct sh_gguf_type *sh_gguf_type(uint32_t number);

/* n elements, a multiple of a block's, of a type that has `unpack`. */
void sh_gguf_unpack_row(const struct sh_gguf_type *t, const unsigned char *row, size_t n, float *out);

#endif
