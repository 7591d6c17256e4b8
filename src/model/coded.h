/* SPDX-License-Identifier: Apache-2.0 */
/* A coded matrix: codes of few bits with scales and zero points, made from one or several tensors of a checkpoint
 * (coded_join.c). It stands for exact f32 numbers
 *
 *     x[row, col] = (code[row, col] - zero[row, group]) * scale[row, group]
 *
 * and is [out, in] whatever the order of its codes; a stack of E matrices is [E, out, in], its rows counted through.
 * Rows can be unpacked on their own, so experts can be unpacked one by one; many matrices can also be read as blocks
 * (coded_blocks.h). Formulas and orders are those of the programs that write the formats; coded.c names them. */
#ifndef SH_MODEL_CODED_H
#define SH_MODEL_CODED_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "src/base/err.h"
#include "src/model/config_quant.h"
#include "src/model/weights.h"

enum sh_code_order {
    SH_CODE_FP8,                /* bytes [rows, cols]                                             */
    SH_CODE_INT8,               /* the same, signed                                               */
    SH_CODE_ROWS,               /* 32-bit words [rows, cols / per word], lowest bits first        */
    SH_CODE_COLUMNS,            /* words [cols * bits / 32, rows], lowest bits first (GPTQ); those of 3 bits may lie in
                                 * two words */
    SH_CODE_AWQ,                /* words [cols, rows / 8], the outputs of a word interleaved      */
    SH_CODE_TABLE,              /* nibbles in a row, the first in the high one; values in `table` (bitsandbytes) */
    SH_CODE_MXFP4,              /* nibbles [rows, cols], the first in the low one; values are FP4, 32 to a scale */
    SH_CODE_FP4,                /* the same with any scales (NVFP4)                               */
    SH_CODE_BITNET,             /* bytes [rows / 4, cols], the first quarter of the rows in the lowest bits */
    SH_CODE_BLOCKS              /* blocks of GGUF, which have scales of their own                 */
};

enum sh_piece {                 /* the tensors of a coded matrix                                  */
    SH_PIECE_CODES, SH_PIECE_SCALES, SH_PIECE_ZEROS,
    SH_PIECE_GROUPS,            /* I32 [cols]: the group of each column; without it they follow each other */
    SH_PIECE_TABLE,             /* F32 [16]                                                       */
    SH_PIECE_SCALE_TABLE, SH_PIECE_SCALE_SCALES,        /* of scales that are coded: F32 [256], F32 */
    SH_PIECE_FACTORS,           /* F32 [1], or one for each matrix: of the scales, or of a block's numbers */
    SH_N_PIECE
};

enum sh_scale_type { SH_SCALE_F32, SH_SCALE_F16, SH_SCALE_BF16, SH_SCALE_E8M0, SH_SCALE_E4M3, SH_SCALE_CODED };

struct sh_coded {
    enum sh_code_order order;
    const struct sh_stored *piece[SH_N_PIECE];          /* NULL: there is none                    */
    size_t rows, cols;                  /* rows: of all matrices                                  */
    size_t matrix_rows;                 /* of one                                                 */
    int bits;
    int is_e5m2;                        /* FP8: five bits of exponent                             */
    /* scale of [row, group] is number row / span_rows * row_step + group * group_step of a matrix's scales */
    enum sh_scale_type scale;
    size_t span_rows, span_cols;        /* the numbers that share a scale; TABLE: span_cols, rows running on */
    size_t groups, row_step, group_step;
    int zero, zero_more;                /* zero: without ZEROS; zero_more is added to those stored */
    size_t scale_span;                  /* coded scales: so many share a scale of theirs          */
    float scale_by;             /* scales are multiplied by it; 0: they are not                   */
    float scale_offset;                 /* … and this is added                                    */
    int divides;                /* scales are divided by FACTORS; BITNET: 1 is divided by the scale */
    enum sh_packing packing;            /* of its blocks (coded_blocks.h)                         */
    int *columns;                       /* in the order of their groups, for blocks; NULL: as they are; owned */
};

/* Rows [first, first + n) into out [n, cols]. */
void sh_coded_rows(const struct sh_coded *c, size_t first, size_t n, float *out);

/* What they are made of, but for TABLE and MXFP4: the codes of up to SH_BLOCKS_ROWS rows, [n, cols], and the zero
 * points and scales of a row, [groups]. */
void sh_coded_codes(const struct sh_coded *c, size_t first, size_t n, float *out);
void sh_coded_spans(const struct sh_coded *c, size_t row, float *zero, float *scale);

void sh_coded_free(const struct sh_coded *c);

/* Number i of the scales. */
float sh_coded_scale(const struct sh_coded *c, size_t i);

/* What FACTORS have for the row's matrix. */
float sh_coded_factor(const struct sh_coded *c, size_t row);

/* Is the tensor coded or packed (GGUF), so that sh_stored_rows unpacks it? */
int sh_stored_is_coded(const struct sh_stored *t);

/* Rows of a coded or packed tensor, all but the last dimension counted through. */
void sh_stored_rows(const struct sh_stored *t, size_t first, size_t n, float *out);

/* Replaces the pieces of every coded matrix by the matrix, under the name that it has in whole checkpoints. -1: a piece
 * is missing or does not fit the others or the config; e names it. */
int sh_weights_join(struct sh_weights *w, const struct sh_quant *q, struct sh_err *e);

/* ---- for the files that join ---- */

/* A coded matrix that is being made. */
struct sh_joining {
    const struct sh_weights *w;
    const struct sh_quant *q;
    unsigned char *is_piece;            /* of each tensor of `w`                                  */
    struct sh_coded c;
    size_t shape[SH_MAX_RANK];
    int rank;
    char name[256];                     /* as in whole checkpoints                                */
    char format[16];                    /* "GPTQ 4-bit"                                           */
};

/* Finds the tensor "<stem><suffix>", which is then part of the matrix. dtypes: the allowed ones with a blank before and
 * after each; NULL: all. *out NULL: absent, an error if it is needed. The length of stem is n. */
int sh_join_find(struct sh_joining *j, const char *stem, size_t n, const char *suffix, const char *dtypes, int needed,
                 const struct sh_stored **out, struct sh_err *e);

/* Checks the shape of a tensor; last dimensions of 1 may be missing. why: what the expected one follows from. */
int sh_join_shape(const struct sh_stored *t, const size_t *shape, int rank, const char *why, struct sh_err *e);

/* Takes the shape of codes [..., rows, cols], of least to most dimensions, for the matrix. */
int sh_join_codes(struct sh_joining *j, const struct sh_stored *t, int least, int most, struct sh_err *e);

/* The scales, with the type that their tensor has; 0. */
int sh_join_scales(struct sh_joining *j, const struct sh_stored *t);

/* A 4-bit matrix of bitsandbytes by its table "<stem>.quant_map" (coded_bnb.c). */
int sh_join_bnb(struct sh_joining *j, const struct sh_stored *table, size_t stem, struct sh_err *e);
/* One of 8 bits (LLM.int8) by its codes "<stem>weight" [rows, cols] (coded_bnb.c). */
int sh_join_int8(struct sh_joining *j, const struct sh_stored *t, size_t stem, struct sh_err *e);

#endif
