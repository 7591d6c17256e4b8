/* SPDX-License-Identifier: Apache-2.0 */
/* What all products of a few rows have in common: how the work is shared, and what happens to sums. */
#ifndef SH_KERNELS_CPU_GEMM_FEW_ROWS_OUT_H
#define SH_KERNELS_CPU_GEMM_FEW_ROWS_OUT_H

#include "kernels/cpu/floats.h"
#include "kernels/cpu/gemm_few_rows.h"
#include "kernels/cpu/vector.h"
#include "src/base/team.h"

/* Ask for the weight's bytes that are read some loops later. A thread that reads one run of addresses gets
 * about 11 GB/s from a memory that gives it 18 when it reads four in turn and asks a little ahead (Xeon with AMX; two
 * threads 22 and 35). Memory after the weight is prefetched, too, which does no harm. */
enum { FEW_AHEAD = 2048 };              /* bytes */
enum { MANY_WIDE = 2 * CPU_FLOATS };    /* outputs of a product of many rows that lie together    */

static inline __attribute__((always_inline)) void few_ask(const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)at + i);
}

/* The same for what is read a block later: into a cache that holds more. */
static inline __attribute__((always_inline)) void few_ask_next(const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)at + i, 0, 2);
}

/* Outputs [first, first + n) of one row, n <= FEW_COLS; sum is overwritten. */
static inline void few_out(const struct few *a, int row, int first, int n, float *sum)
{
    size_t count = (size_t)n, at = (size_t)row * a->out.stride + (size_t)first;
    char *out = (char *)a->out.at + at * sh_type_bytes(a->out.type);
    const float *old = (const float *)(const void *)out;        /* with `add` it is f32 */
    if (a->bias)
        for (int i = 0; i < n; i++)
            sum[i] += a->bias[first + i];
    if (a->act != SH_ACT_NONE)
        activate(sum, sum, a->act, count);
    if (a->add)
        for (int i = 0; i < n; i++)
            sum[i] += old[i];
    store_floats(out, a->out.type, sum, count);
}

/* n outputs of packed weights are read at FEW_PLACES places in turn, few_step(n) from each. Places past the end read
 * the last output again: a loop for fewer places would be as much code once more. */
static inline int few_step(int n)
{
    return (n + FEW_PLACES - 1) / FEW_PLACES;
}

static inline int few_place(int o, int place, int n)
{
    int at = o + place * few_step(n);
    return at < n ? at : n - 1;
}

/* sum[r * FEW_COLS + c] = that of row + r and output first + c; first is a multiple of FEW_COLS, n <= FEW_COLS,
 * rows <= FEW_ROWS. */
typedef void few_sums(const struct few *a, int first, int n, int row, int rows, float *sum);

static inline int few_blocks(const struct few *a)
{
    return (a->out.cols + FEW_COLS - 1) / FEW_COLS;
}

/* Outputs of the block whose first is `first`: the rest of the last block is padding. */
static inline int few_outputs(const struct few *a, int first)
{
    return a->out.cols - first < FEW_COLS ? a->out.cols - first : FEW_COLS;
}

static inline void few_block(const struct few *a, int block, few_sums *fn)
{
    int first = block * FEW_COLS, n = few_outputs(a, first);
    for (int row = 0, rows; row < a->x.rows; row += rows) {
        float sum[FEW_ROWS * FEW_COLS] __attribute__((aligned(64)));
        rows = a->x.rows - row < FEW_ROWS ? a->x.rows - row : FEW_ROWS;
        fn(a, first, n, row, rows, sum);
        for (int r = 0; r < rows; r++)
            few_out(a, row + r, first, n, sum + r * FEW_COLS);
    }
}

/* The product that block *b of all n belongs to; *b becomes its own block. */
static inline const struct few *few_of(const struct few *a, int *b)
{
    for (; *b >= few_blocks(a); a++)
        *b -= few_blocks(a);
    return a;
}

struct few_run {                        /* n products in one go */
    const struct few *a;
    int n;
    few_sums *fn;
};

static inline int few_blocks_of_all(const struct few *a, int n)
{
    int blocks = 0;
    for (int i = 0; i < n; i++)
        blocks += few_blocks(&a[i]);
    return blocks;
}

/* Memory does not serve all threads alike: those that are done take blocks from the others' ends. */
static inline void few_work(void *arg, struct sh_member *me)
{
    const struct few_run *run = arg;
    for (int b; sh_member_take(me, &b);) {
        const struct few *of = few_of(run->a, &b);
        few_block(of, b, run->fn);
    }
}

static inline void few_run(const struct few *a, int n, int n_threads, few_sums *fn)
{
    sh_team_run(n_threads, few_blocks_of_all(a, n), few_work, &(struct few_run){a, n, fn});
}

#endif
