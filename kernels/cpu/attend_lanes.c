/* SPDX-License-Identifier: Apache-2.0 */
/* The products of attention (attend.h) by the lanes that every processor has, a register tile at a time: keys
 * are transposed and values copied into dense scratch. */
#include <string.h>

#include "kernels/cpu/attend.h"
#include "kernels/cpu/vector.h"

/* c[ROWS, COLS] = a[ROWS, depth] b[depth, COLS]; rows lie lda, ldb, ldc floats apart. */
static inline void tile(float *c, int ldc, const float *a, int lda, const float *b, int ldb, int depth)
{
    vec acc[ROWS][2] = {0};
    for (int k = 0; k < depth; k++) {
        const vec b0 = *(const vec *)(b + (size_t)k * (size_t)ldb);
        const vec b1 = *(const vec *)(b + (size_t)k * (size_t)ldb + CPU_FLOATS);
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++) {
            float x = a[(size_t)i * (size_t)lda + (size_t)k];
            acc[i][0] += x * b0;
            acc[i][1] += x * b1;
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++) {
        *(vec *)(c + (size_t)i * (size_t)ldc) = acc[i][0];
        *(vec *)(c + (size_t)i * (size_t)ldc + CPU_FLOATS) = acc[i][1];
    }
}

/* CPU_FLOATS keys at a time, so that writes are contiguous. */
static void transpose_keys(struct scratch *w, const struct sh_attend *a, int row0, int n, int col)
{
    for (int j0 = 0; j0 < n; j0 += CPU_FLOATS) {
        int m = n - j0 < CPU_FLOATS ? n - j0 : CPU_FLOATS;
        const float *k = at_row(&a->k, row0 + j0, col);
        for (int c = 0; c < a->d_head; c++) {
            float *to = w->kt + (size_t)c * (size_t)w->n_pad + (size_t)j0;
            for (int j = 0; j < m; j++)
                to[j] = k[(size_t)j * a->k.stride + (size_t)c];
        }
    }
}

void CPU_NAME(cpu_load_keys_values)(struct scratch *w, const struct sh_attend *a, int row0, int n, int kv_head)
{
    int d = a->d_head, col = kv_head * d;
    transpose_keys(w, a, row0, n, col);
    for (int j = 0; j < n; j++) {
        const float *v = at_row(&a->v, row0 + j, col);
        memcpy(w->v + (size_t)j * (size_t)w->d_pad, v, (size_t)d * sizeof *v);
        memset(w->v + (size_t)j * (size_t)w->d_pad + d, 0, (size_t)(w->d_pad - d) * sizeof *v);
    }
    for (int c = 0; c < d; c++)
        memset(w->kt + (size_t)c * (size_t)w->n_pad + n, 0, (size_t)(w->n_pad - n) * sizeof(float));
    memset(w->v + (size_t)n * (size_t)w->d_pad, 0, (size_t)(w->n_pad - n) * (size_t)w->d_pad * sizeof(float));
}

void CPU_NAME(cpu_multiply_keys)(struct scratch *w, const struct sh_attend *a, const struct block *b)
{
    int row0 = a->start[b->sequence] + b->q0, d = a->d_head;
    for (int i = 0; i < b->n_rows; i++) {
        const float *q = at_row(&a->q, row0 + i, b->head * d);
        for (int c = 0; c < d; c++)
            w->q[i * d + c] = q[c] * a->scale;
    }
    for (int i = 0; i < b->n_rows; i += ROWS)
        for (int j = 0; j < b->width; j += COLS)
            tile(w->s + (size_t)i * (size_t)w->s_pad + j, w->s_pad, w->q + i * d, d, w->kt + b->first_column + j,
                 w->n_pad, d);
}

void CPU_NAME(cpu_multiply_values)(struct scratch *w, const struct sh_attend *a, const struct block *b)
{
    (void)a;
    const float *v = w->v + (size_t)b->first_column * (size_t)w->d_pad;
    int depth = b->q0 + b->n_rows - b->first_column;
    for (int i = 0; i < b->n_rows; i += ROWS)
        for (int c = 0; c < w->d_pad; c += COLS)
            tile(w->o + (size_t)i * (size_t)w->d_pad + c, w->d_pad, w->p + (size_t)i * (size_t)w->s_pad, w->s_pad,
                 v + c, w->d_pad, depth);
}

void CPU_NAME(cpu_operands_lay_out)(struct scratch *w, const struct sh_attend *a, char *base, size_t *at)
{
    size_t d = (size_t)a->d_head, n = (size_t)w->n_pad;
    w->q_floats = BLOCK * d;
    w->kt = carve(base, at, d * n * sizeof(float));
    w->v = carve(base, at, n * (size_t)w->d_pad * sizeof(float));
    w->q = carve(base, at, w->q_floats * sizeof(float));
}

void CPU_NAME(cpu_operands_begin)(struct scratch *w)
{
    memset(w->q, 0, w->q_floats * sizeof(float));       /* tiles read whole ROWS */
}

void CPU_NAME(cpu_operands_end)(struct scratch *w)
{
    (void)w;
}
