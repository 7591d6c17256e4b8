/* SPDX-License-Identifier: Apache-2.0 */
/* A coded matrix: codes of few bits with scales and zero points, made from one or several tensors of a checkpoint
 * (coded_join.c). It stands for exact f32 numbers
 *
 *     x[row, col] = (code[row, col] - zero[row, group]) * scale[row, group]
 *
 * and is [out, in] whatever the order of its codes. A stack of E matrices is [E, out, in], with rows numbered through
 * all matrices. Any rows can be unpacked alone, and so can single experts; many matrices can also be read as blocks
 * (coded_blocks.h). Formulas and orders are those of the programs that write the formats; coded.c names these
 * programs. */
#ifndef SH_MODEL_CODED_H
#define SH_MODEL_CODED_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "src/base/err.h"
#include "src/model/config/config_quant.h"
#include "src/model/weights.h"

enum sh_code_order {
    SH_CODE_FP8,                /* bytes [rows, cols]                                             */
    SH_CODE_INT8,               /* signed bytes [rows, cols]                                      */
    SH_CODE_ROWS,               /* 32-bit words [rows, cols / per word], lowest bits first        */
    SH_CODE_COLUMNS,            /* words [cols * bits / 32, rows], lowest bits first (GPTQ); a code of 3 bits may lie in
                                 * two words */
    SH_CODE_AWQ,                /* words [cols, rows / 8], the outputs of a word interleaved      */
    SH_CODE_TABLE,              /* nibbles in a row, the first in the high one; values in `table` (bitsandbytes) */
    SH_CODE_MXFP4,              /* nibbles [rows, cols], the first in the low one; values are FP4, 32 to a scale */
    SH_CODE_FP4,                /* as MXFP4, with other spans and types of scales (NVFP4)         */
    SH_CODE_BITNET,             /* bytes [rows / 4, cols], the first quarter of the rows in the lowest bits */
    SH_CODE_BLOCKS              /* blocks of GGUF, which have scales of their own                 */
};

enum sh_piece {                 /* the tensors of a coded matrix                                  */
    SH_PIECE_CODES, SH_PIECE_SCALES, SH_PIECE_ZEROS,
    SH_PIECE_GROUPS,            /* I32 [cols]: the group of each column; without it groups are consecutive */
    SH_PIECE_TABLE,             /* F32 [16]                                                       */
    SH_PIECE_SCALE_TABLE, SH_PIECE_SCALE_SCALES,        /* for coded scales: F32 [256], F32       */
    SH_PIECE_FACTORS,           /* F32 [1], or one per matrix: factors of the scales, or of a block's numbers */
    SH_N_PIECE
};

enum sh_scale_type { SH_SCALE_F32, SH_SCALE_F16, SH_SCALE_BF16, SH_SCALE_E8M0, SH_SCALE_E4M3, SH_SCALE_CODED };

struct sh_coded {
    enum sh_code_order order;
    const struct sh_stored *piece[SH_N_PIECE];          /* NULL: the matrix has no such piece     */
    size_t rows, cols;                  /* rows: of all matrices                                  */
    size_t matrix_rows;                 /* rows of one matrix                                     */
    int bits;
    int is_e5m2;                        /* FP8: five bits of exponent                             */
    /* scale of [row, group] is number row / span_rows * row_step + group * group_step of a matrix's scales */
    enum sh_scale_type scale;
    size_t span_rows, span_cols;        /* the numbers that share a scale; TABLE: span_cols, rows running on */
    size_t groups, row_step, group_step;
    int zero, zero_more;                /* zero: the zero point if there is no ZEROS; zero_more is added to stored
                                         * ones */
    size_t scale_span;                  /* coded scales: how many of them share a scale           */
    float scale_by;             /* factor of the scales; 0: none                                  */
    float scale_offset;                 /* … added to them afterwards                             */
    int divides;                /* scales are divided by FACTORS; BITNET: 1 is divided by the scale */
    enum sh_packing packing;            /* format of the matrix's blocks (coded_blocks.h)         */
    int *columns;                       /* columns sorted by group, for blocks; NULL: in order; owned */
};

/* Rows [first, first + n) into out [n, cols]. */
void sh_coded_rows(const struct sh_coded *c, size_t first, size_t n, float *out);

/* The parts of rows, for all orders except TABLE and MXFP4: the codes of up to SH_BLOCKS_ROWS rows, [n, cols]; the zero
 * points and scales of a row, [groups]. */
void sh_coded_codes(const struct sh_coded *c, size_t first, size_t n, float *out);
void sh_coded_spans(const struct sh_coded *c, size_t row, float *zero, float *scale);

void sh_coded_free(const struct sh_coded *c);

/* Scale number i. */
float sh_coded_scale(const struct sh_coded *c, size_t i);

/* The entry of FACTORS for the row's matrix. */
float sh_coded_factor(const struct sh_coded *c, size_t row);

/* Is the tensor coded or packed (GGUF), so that sh_stored_rows unpacks it? */
int sh_stored_is_coded(const struct sh_stored *t);

/* Rows of a coded or packed tensor, numbered through all dimensions but the last. */
void sh_stored_rows(const struct sh_stored *t, size_t first, size_t n, float *out);

/* Replaces the pieces of every coded matrix by the matrix, under its name in unquantised checkpoints. -1: a piece is
 * missing or does not fit the others or the config; e names it. */
int sh_weights_join(struct sh_weights *w, const struct sh_quant *q, struct sh_err *e);

/* ---- for the files that join pieces into matrices ---- */

/* A coded matrix that is being made. */
struct sh_joining {
    const struct sh_weights *w;
    const struct sh_quant *q;
    unsigned char *is_piece;            /* for each tensor of `w`: is it part of a coded matrix?  */
    struct sh_coded c;
    size_t shape[SH_MAX_RANK];
    int rank;
    char name[256];                     /* as in unquantised checkpoints                          */
    char format[16];                    /* "GPTQ 4-bit"                                           */
};

/* Finds the tensor "<stem><suffix>", which then counts as a part of the matrix. n: the length of stem. dtypes: the
 * allowed types, with a blank before and after each; NULL: all. *out NULL: the tensor is absent, which is an error if
 * it is needed. */
int sh_join_find(struct sh_joining *j, const char *stem, size_t n, const char *suffix, const char *dtypes, int needed,
                 const struct sh_stored **out, struct sh_err *e);

/* Checks the shape of a tensor; trailing dimensions of 1 may be missing. why: what the expected shape follows from. */
int sh_join_shape(const struct sh_stored *t, const size_t *shape, int rank, const char *why, struct sh_err *e);

/* Sets the matrix's shape from codes [..., rows, cols], which have `least` to `most` dimensions. */
int sh_join_codes(struct sh_joining *j, const struct sh_stored *t, int least, int most, struct sh_err *e);

/* Sets the scales and their type from the tensor. Returns 0. */
int sh_join_scales(struct sh_joining *j, const struct sh_stored *t);

/* A 4-bit matrix of bitsandbytes by its table "<stem>.quant_map" (coded_bnb.c). */
int sh_join_bnb(struct sh_joining *j, const struct sh_stored *table, size_t stem, struct sh_err *e);
/* An 8-bit matrix of bitsandbytes (LLM.int8) by its codes "<stem>weight" [rows, cols] (coded_bnb.c). */
int sh_join_int8(struct sh_joining *j, const struct sh_stored *t, size_t stem, struct sh_err *e);

#endif
