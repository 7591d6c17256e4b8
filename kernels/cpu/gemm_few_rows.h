/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a few rows, which are what writing token by token consists of. Each number of the weight
 * is read once from memory, in order, and used for all rows: as fast as memory is.
 *
 * Weights have the layout of oneDNN's own products, or as codes; there is no second copy. Every sum is
 * made by one thread in a fixed order, so that results do not depend on the number of threads. */
#ifndef SH_KERNELS_CPU_GEMM_FEW_ROWS_H
#define SH_KERNELS_CPU_GEMM_FEW_ROWS_H

#include "kernels/backend.h"

enum {
    FEW_ROWS = 4, FEW_COLS = 64,        /* rows and outputs that are summed up together           */
    FEW_PLACES = 4,                     /* of a weight that a thread reads in turn                */
    CODES_MOST_ROWS = 32                /* that few_codes takes                                   */
};

/* Number (in i, output o) is at at[o / wide * panel + (i / fold * wide + o % wide) * fold + i % fold]. Panels
 * of 64 (wide = 64; padded with zeros in both directions), or plain rows (wide = out). */
struct few_layout {
    const void *at;
    enum sh_type type;                  /* with fold 2 bf16; 16 bits and fold 1: halves.c         */
    int wide, fold;                     /* fold 0: laid out in a way that is not known here       */
    size_t panel;
};

struct cpu_codes {                      /* of a matrix [rows, cols] (kernels/weight_bits.h)       */
    unsigned char *at;                  /* sh_code_bytes(rows, cols, bits), the owner's; NULL: none */
    int rows, cols, bits;
};

struct few {                            /* out (+)= act(x w^T + bias), as struct sh_linear        */
    struct sh_mat out, x;               /* x: with codes of any type, else that of w              */
    const struct few_layout *w;         /* x is bf16 with fold 2, else f32                        */
    const struct cpu_codes *codes;      /* instead of w                                           */
    const struct sh_packed *packed;     /* instead of both, with f32 x                            */
    const unsigned char *groups;        /* of packed (packed_group.h), or NULL                    */
    int x_bits;                         /* of packed, 16 or 8: of x in lanes (lane_run.h)         */
    float *room;                        /* with codes: scratch [x.rows, few_codes_room]; packed: [threads, */
                                        /* packed_room], lanes_room; of gemm_many_rows.c: below   */
    const float *bias;
    enum sh_act act;
    int add;
};

/* Weights of products of many rows (gemm_many_rows.c): number (in i, output o) is at at[o / FEW_COLS * panel +
 * i * in_step + o % FEW_COLS * out_step]; 16-bit ones with out_step 1 and zeros up to whole panels. few.room:
 * [threads, x.cols, FEW_COLS], with `packed` [threads, packed_room]; few.w and few.codes are not looked at. */
struct few_weight {
    const struct sh_packed *packed;     /* NULL, or instead of all that follows                   */
    const void *at;
    enum sh_type type;
    size_t in_step, out_step, panel;
};

#endif
