/* SPDX-License-Identifier: Apache-2.0 */
/* Coded matrices (coded.h) in blocks that products read (kernels/packed.h). Codes, scales and zero points, which a
 * checkpoint keeps in matrices of their own, lie together there:
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

/* Columns in the order of their groups, where these are as large as each other: a new list [cols], else NULL. */
int *sh_coded_columns(const struct sh_coded *c);

/* The format whose blocks have exactly the matrix's numbers; SH_PACKED_OTHER: none has. */
enum sh_packing sh_coded_packing(const struct sh_coded *c);

/* Whether rows [first, first + n) of a matrix that has blocks are known to be finite, from codes and scales; 0: they
 * may be, too. */
int sh_coded_is_finite(const struct sh_coded *c, size_t first, size_t n);

/* Rows [first, first + n), [n, cols / elements, bytes]. */
void sh_coded_blocks(const struct sh_coded *c, enum sh_packing format, size_t first, size_t n, unsigned char *to);

#endif
