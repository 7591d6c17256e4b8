/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices in the blocks of every format of kernels/packed.h, for tests. */
#ifndef SHEARS_TESTS_BLOCKS_H
#define SHEARS_TESTS_BLOCKS_H

#include "kernels/packed.h"
#include "src/model/files/gguf_tensors.h"

/* Where scales of f16 are in a block, or of IQ1_M the upper bits of its own; -1: none. `byte`: a scale that is an
 * exponent; is_apart: the same numbers as MXFP4_APART; is_made: sh_packed.blocks gives them;
 * is_sorted: in another order of columns. */
struct block_format {
    const char *name;
    int half[2], byte, is_apart, is_made, is_sorted;
};

enum { N_BLOCK_FORMAT = 46 };
extern const struct block_format block_formats[N_BLOCK_FORMAT];

struct blocks {                         /* a matrix                                               */
    const struct sh_gguf_type *type;
    unsigned char *at, *codes, *scales; /* the last two: of MXFP4_APART                           */
    int *columns;                       /* or NULL: number j of a row of blocks is of column columns[j] */
    size_t row_bytes;
    struct sh_packed p;
};

/* NULL: none has blocks of this format, or they are plain numbers. */
const struct sh_gguf_type *blocks_type(enum sh_packing format);

/* Numbers in as many as a kernel takes at once. */
int blocks_elements(const struct block_format *f);

/* Any bits are codes; scales, and numbers of f16, are of magnitude 1/16 to 1/8, those of bf16 1/128 to 1/8. Of
 * MXFP4_APART and numbers of 16 bits every second row is the matrix's, as of gate and up in turns, at odd widths. fill:
 * of all bytes but those of scales, or -1. */
void blocks_make(struct blocks *b, const struct block_format *f, int rows, int cols, int d_head, int fill);
void blocks_free(struct blocks *b);

/* Rows [first, first + n) of blocks as f32 numbers; sh_packed.unpack. */
void blocks_unpack(const void *from, int first, int n, float *to);

/* A row of x [p.cols] as 8-bit integers with a scale for 32 neighbours in the order of the blocks' columns
 * (sh_open.x_bits). off: 0, or how far a number may be from that which lies so close to the middle of two integers that
 * either may be taken. */
void blocks_round_to_8_bits(const struct blocks *b, double *x, double *off);

#endif
