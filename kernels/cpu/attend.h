/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, inside one variant: what attend.c computes and record.c hands out. Columns of scores are
 * keys, counted from the block's first_column. */
#ifndef SH_KERNELS_CPU_ATTEND_H
#define SH_KERNELS_CPU_ATTEND_H

#include "kernels/cpu/amx.h"
#include "kernels/cpu/variant.h"
#include "src/base/row_figures.h"

enum {
    BLOCK = 32,                                         /* queries                          */
    ROWS = CPU_FLOATS == 16 ? 8 : 4,                    /* of a register tile               */
    COLS = 2 * CPU_FLOATS                               /* of a register tile               */
};

struct block {                                          /* queries of one head              */
    int sequence, head;
    int q0, n_rows;
    int first_column;                                   /* a multiple of COLS               */
    int width;                                          /* columns, a multiple of COLS      */
};

struct record {                                         /* space for a block's rows         */
    void *packed;
    size_t n_packed;                                    /* scores that are there            */
    struct sh_row_figures *figures;                     /* these four: of SH_PACK_SETS      */
    uint64_t *bits;
    float *row, *value;
    float *value_end;                                   /* after the values that are there  */
    struct sh_row_guess guess;
};

struct scratch {                                        /* of one thread                    */
#ifdef CPU_HAS_AMX
    uint16_t *kt, *v, *q, *p_part;                      /* tiles, as in amx.h               */
    float *turned;                                      /* [d_head, AMX_SIDE]: some keys    */
    int pieces, d_steps;                                /* of a number; of a head, AMX_DEPTH each */
    struct amx_config before;
#else
    float *kt;                                          /* [d_head, n_pad]: K transposed    */
    float *v;                                           /* [n_pad, d_pad]                   */
    float *q;                                           /* [BLOCK, d_head], scaled          */
    size_t q_floats;
#endif
    float *s, *p;                                       /* [BLOCK, s_pad]                   */
    float *o;                                           /* [BLOCK, d_pad]                   */
    float *top, *sum;                                   /* [BLOCK]                          */
    int n_pad, d_pad, s_pad;
    int faulty;                                         /* some row's sum was no number     */
    struct sh_stages *stages;                           /* NULL: time is not measured       */
    int sharers;                                        /* of the stages' time              */
    struct record record;
};

static inline int padded(int n)
{
    return (n + COLS - 1) / COLS * COLS;
}

static inline const float *at_row(const struct sh_mat *m, int row, int col)
{
    return (const float *)m->at + (size_t)row * m->stride + col;
}

/* The first key that query t sees. */
static inline int first_key(const struct sh_attend *a, int t)
{
    return a->window && t + 1 > a->window ? t + 1 - a->window : 0;
}

/* The next `bytes` of a block of memory; with base NULL they are only counted. */
static inline void *carve(char *base, size_t *at, size_t bytes)
{
    void *here = base ? base + *at : NULL;
    *at += (bytes + 63) / 64 * 64;
    return here;
}

static inline int is_wanted(const struct sh_attend *a, int sequence)
{
    return a->tap.rows && (!a->tap.wanted || a->tap.wanted[sequence]);
}

/* attend_lanes.c or attend_amx.c: S = scale Q K^T and out = P V of a block, with their operands' places, and
 * what a thread does before its first and after its last. */
void CPU_NAME(cpu_operands_lay_out)(struct scratch *w, const struct sh_attend *a, char *base, size_t *at);
void CPU_NAME(cpu_operands_begin)(struct scratch *w);
void CPU_NAME(cpu_operands_end)(struct scratch *w);
void CPU_NAME(cpu_load_keys_values)(struct scratch *w, const struct sh_attend *a, int row0, int n, int kv_head);
void CPU_NAME(cpu_multiply_keys)(struct scratch *w, const struct sh_attend *a, const struct block *b);
void CPU_NAME(cpu_multiply_values)(struct scratch *w, const struct sh_attend *a, const struct block *b);

/* record.c. No row of a block has more than n_columns columns. */
void CPU_NAME(cpu_record_lay_out)(struct record *r, const struct sh_attend *a, int n_columns, char *base, size_t *at);
/* Takes row i of a block, rows in order; then hands the block out. */
void CPU_NAME(cpu_record_row)(struct scratch *w, const struct sh_attend *a, const struct block *b, int i);
void CPU_NAME(cpu_record_block)(const struct scratch *w, const struct sh_attend *a, const struct block *b);

#endif
