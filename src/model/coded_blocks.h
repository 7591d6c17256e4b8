/* SPDX-License-Identifier: Apache-2.0 */
/* Coded matrices (coded.h) in blocks that products read (kernels/packed.h). A block holds codes together with their
 * scale and zero point, which a checkpoint keeps in separate matrices:
 *
 *     INT4_32   a word w, 16 bytes of nibbles q: low ones first                  x = scale * (q - zero)
 *     INT4_128  a word w; for 64 numbers 32 bytes of nibbles q: low ones first   x = scale * (q - zero)
 *     INT8_128  an f32 number, 128 signed bytes q                                x = scale * q
 *     E4M3_32, E4M3_128, E5M2_128  the same of 32 and 128 floats of 8 bits
 *     NF4_64    an f32 number, 32 bytes of nibbles q: low ones first             x = scale * SH_NF4_NUMBERS[q]
 *     FP4_128   an f32 number, 8 bytes E4M3 s of 16 numbers each, nibbles as of INT4_128, floats of 4 bits
 *                                                                                x = s * number * q
 *     TQ2_0     as in GGUF files (gguf_type.c)
 *
 * The lowest byte of w is the zero point; the others are those of the scale as an f32 number, whose lowest byte is 0,
 * as that of every f16 and bf16 number is. */
#ifndef SH_MODEL_CODED_BLOCKS_H
#define SH_MODEL_CODED_BLOCKS_H

#include "kernels/backend.h"
#include "src/model/coded.h"

/* The columns sorted by group, as a new list [cols], if all groups have the same size; otherwise NULL. */
int *sh_coded_columns(const struct sh_coded *c);

/* The format whose blocks can hold exactly the matrix's numbers; SH_PACKED_OTHER: none. */
enum sh_packing sh_coded_packing(const struct sh_coded *c);

/* Whether codes and scales show that rows [first, first + n) of a matrix that has blocks are finite; 0: not shown. */
int sh_coded_is_finite(const struct sh_coded *c, size_t first, size_t n);

/* Rows [first, first + n), [n, cols / elements, bytes]. */
void sh_coded_blocks(const struct sh_coded *c, enum sh_packing format, size_t first, size_t n, unsigned char *to);

#endif
