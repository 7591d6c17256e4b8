/* SPDX-License-Identifier: Apache-2.0 */
/* A weight matrix [rows, cols] in the code of its checkpoint, for products that read the numbers back piece by piece.
 * A backend keeps it as it is: nothing is copied unless it is settled (backend.h), and what the struct points at must
 * live as long as the weight. Where codes and scales of a checkpoint lie far apart, `blocks` makes blocks of them, and
 * a backend with kernels for these keeps a copy.
 *
 * Any code has `unpack`. The formats in the list below also have kernels of their own, which read blocks: `elements`
 * neighbours in a row in `bytes` bytes, x = scale * code - less; `span` numbers, 32 at most, have one scale. Layouts
 * are those of ggml (gguf_type.c and gguf_iq.c in src/model/files describe them); MXFP4_APART is that of hub folders:
 * neighbours share a byte, the first in its low half, and the scales are a matrix of their own. INT4_32, INT4_128,
 * INT8_128, FP4_128, E4M3_32, E4M3_128, E5M2_128 and NF4_64 are blocks that only `blocks` makes
 * (src/model/coded_blocks.h); the last four have floats for codes. F16 and BF16 are plain numbers, in blocks only so
 * that they fit the same loops; they lie at even addresses. */
#ifndef SH_KERNELS_PACKED_H
#define SH_KERNELS_PACKED_H

#include <stddef.h>

/* FORMAT(name, elements, bytes, span, has_less): codes with scales, as bits and as points of a lattice, numbers of 16
 * bits, and floats with scales. */
#define SH_PACKED_BITS(FORMAT) \
    FORMAT(Q8_0, 32, 34, 32, 0) FORMAT(Q4_0, 32, 18, 32, 0) FORMAT(Q4_1, 32, 20, 32, 1) \
    FORMAT(Q5_0, 32, 22, 32, 0) FORMAT(Q5_1, 32, 24, 32, 1) FORMAT(IQ4_NL, 32, 18, 32, 0) \
    FORMAT(MXFP4, 32, 17, 32, 0) FORMAT(Q4_K, 256, 144, 32, 1) FORMAT(Q5_K, 256, 176, 32, 1) \
    FORMAT(Q6_K, 256, 210, 16, 0) FORMAT(Q2_K, 256, 84, 16, 1) FORMAT(Q3_K, 256, 110, 16, 0) \
    FORMAT(IQ4_XS, 256, 136, 32, 0) FORMAT(MXFP4_APART, 32, 16, 32, 0) FORMAT(INT4_32, 32, 20, 32, 1) \
    FORMAT(INT4_128, 128, 68, 32, 1) FORMAT(INT8_128, 128, 132, 32, 0) \
    FORMAT(FP4_128, 128, 76, 16, 0) FORMAT(TQ1_0, 256, 54, 32, 0) FORMAT(TQ2_0, 256, 66, 32, 0) \
    FORMAT(Q1_0, 128, 18, 32, 0)
#define SH_PACKED_POINTS(FORMAT) \
    FORMAT(IQ1_S, 256, 50, 32, 0) FORMAT(IQ1_M, 256, 56, 16, 0) FORMAT(IQ2_XXS, 256, 66, 32, 0) \
    FORMAT(IQ2_XS, 256, 74, 16, 0) FORMAT(IQ2_S, 256, 82, 16, 0) FORMAT(IQ3_XXS, 256, 98, 32, 0) \
    FORMAT(IQ3_S, 256, 110, 32, 0)
#define SH_PACKED_CODES(FORMAT) SH_PACKED_BITS(FORMAT) SH_PACKED_POINTS(FORMAT)
#define SH_PACKED_HALVES(FORMAT) FORMAT(F16, 32, 64, 32, 0) FORMAT(BF16, 32, 64, 32, 0)
#define SH_PACKED_FLOATS(FORMAT) \
    FORMAT(E4M3_32, 32, 36, 32, 0) FORMAT(E4M3_128, 128, 132, 32, 0) FORMAT(E5M2_128, 128, 132, 32, 0) \
    FORMAT(NF4_64, 64, 36, 32, 0)
#define SH_PACKED_FORMATS(FORMAT) SH_PACKED_CODES(FORMAT) SH_PACKED_HALVES(FORMAT) SH_PACKED_FLOATS(FORMAT)

enum { SH_BLOCKS_ROWS = 16 };           /* rows that unpack and blocks best make at once */

enum sh_packing {
    SH_PACKED_OTHER,                    /* read by `unpack` alone                                 */
#define FORMAT(name, elements, bytes, span, less) SH_PACKED_##name,
    SH_PACKED_FORMATS(FORMAT)
#undef FORMAT
    SH_N_PACKING
};

/* The numbers that the codes of NF4 stand for, of deviation 1 over the largest (arXiv 2305.14314, as bitsandbytes has
 * them). */
#define SH_NF4_NUMBERS \
    -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f, \
    -0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f, \
    0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f, \
    0.7229568362236023f, 1.0f

struct sh_packing_shape {               /* of a block; zeros of SH_PACKED_OTHER                   */
    int elements, bytes, span, has_less;
};

/* Constant where the format is. */
static inline __attribute__((always_inline)) struct sh_packing_shape sh_packing_shape(enum sh_packing format)
{
    struct sh_packing_shape s = {0, 0, 0, 0};
    switch (format) {
#define FORMAT(name, n, size, run, less) \
    case SH_PACKED_##name: s.elements = n, s.bytes = size, s.span = run, s.has_less = less; break;
    SH_PACKED_FORMATS(FORMAT)
#undef FORMAT
    default: break;
    }
    return s;
}

/* Whether a format's blocks are codes, which are whole numbers, with scales. */
static inline __attribute__((always_inline)) int sh_packed_is_code(enum sh_packing format)
{
    return format != SH_PACKED_OTHER && format < SH_PACKED_F16;
}

/* Whether these codes are points of a lattice. */
static inline __attribute__((always_inline)) int sh_packed_is_points(enum sh_packing format)
{
    return format >= SH_PACKED_IQ1_S && format <= SH_PACKED_IQ3_S;
}

/* Whether a copy in another order can make products faster (sh_backend.settle). */
static inline __attribute__((always_inline)) int sh_packed_may_settle(enum sh_packing format)
{
    return sh_packed_is_code(format) && !sh_packed_is_points(format);
}

struct sh_packed {
    int rows, cols;
    enum sh_packing format;
    const unsigned char *at;            /* blocks, row after row; NULL with SH_PACKED_OTHER and with `blocks` */
    const unsigned char *apart;         /* MXFP4_APART: scales, row after row as at `at`; else NULL */
    int d_head;                         /* of the rows at `at`: 0, or row 2 i + j of each head of so many is row */
                                        /* i + j d_head / 2 of the matrix                         */
    int step;                           /* rows at `at` from one of the matrix to the next; 0: 1  */
    const int *columns;                 /* of `blocks`: number j of a row is of column columns[j]; NULL: of column j */
    /* Rows [first, first + n) of the matrix as f32 numbers, [n, cols]; from any thread. */
    void (*unpack)(const void *from, int first, int n, float *to);
    /* Rows [first, first + n) of the matrix in blocks of the format, [n, cols / elements, bytes]; from any thread.
     * NULL: they are at `at`, or the format is SH_PACKED_OTHER. */
    void (*blocks)(const void *from, int first, int n, unsigned char *to);
    /* Whether these rows are known to be finite; 0: `unpack` tells. NULL: never. */
    int (*is_finite)(const void *from, int first, int n);
    const void *from;
};

/* Where row `row` is stored if rows are paired: row i + j d_head / 2 of each head comes as its number 2 i + j. They are
 * not if d_head is 0. */
static inline int sh_paired_row(int d_head, int row)
{
    int in_head = d_head ? row % d_head : 0, half = d_head / 2;
    return d_head ? row - in_head + 2 * (in_head % half) + in_head / half : row;
}

/* Where row `row` of the matrix is at `at`. */
static inline int sh_packed_row(const struct sh_packed *p, int row)
{
    return sh_paired_row(p->d_head, row) * (p->step ? p->step : 1);
}

#endif
