/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of one type as numbers of another, any strides. */
#include "kernels/cpu/floats.h"
#include "kernels/cpu/variant.h"
#include "src/base/team.h"

enum { PIECE = 1 << 16 };                               /* elements that one thread converts at a time */

static void convert_piece(void *to, enum sh_type to_type, const void *from, enum sh_type from_type, size_t n)
{
    float x[CHUNK];
    if (to_type == SH_F32)
        load_floats(to, from_type, from, n);
    else if (from_type == SH_F32)
        store_floats(to, to_type, from, n);
    else
        for (size_t i = 0; i < n; i += CHUNK) {
            load_floats(x, from_type, (const uint16_t *)from + i, chunk_at(i, n));
            store_floats((uint16_t *)to + i, to_type, x, chunk_at(i, n));
        }
}

static char *element(const struct sh_mat *m, size_t row, size_t col)
{
    return (char *)m->at + (row * m->stride + col) * sh_type_bytes(m->type);
}

static int is_dense(const struct sh_mat *m)
{
    return m->stride == (size_t)m->cols;
}

struct work {
    struct sh_mat to, from;
    size_t cols, pieces;                                /* of a row                                       */
};

static void convert_part(void *arg, int i)
{
    const struct work *w = arg;
    size_t row = (size_t)i / w->pieces, col = (size_t)i % w->pieces * PIECE;
    size_t n = w->cols - col < PIECE ? w->cols - col : PIECE;
    convert_piece(element(&w->to, row, col), w->to.type, element(&w->from, row, col), w->from.type, n);
}

void CPU_NAME(cpu_convert)(struct sh_mat to, struct sh_mat from, int n_threads)
{
    size_t rows = (size_t)to.rows, cols = (size_t)to.cols;
    if (is_dense(&to) && is_dense(&from)) {
        cols *= rows;
        rows = 1;
    }
    struct work w = {to, from, cols, (cols + PIECE - 1) / PIECE};
    sh_team_each(rows * cols > PIECE ? n_threads : 1, (int)(rows * w.pieces), convert_part, &w);
}

struct numbers {
    float *x;
    enum sh_type type;
    size_t n;
};

static void snap_part(void *arg, int i)
{
    const struct numbers *a = arg;
    size_t from = (size_t)i * PIECE, end = a->n - from < PIECE ? a->n : from + PIECE;
    for (size_t at = from; at < end; at += CHUNK) {
        uint16_t rounded[CHUNK];
        store_floats(rounded, a->type, a->x + at, chunk_at(at, end));
        load_floats(a->x + at, a->type, rounded, chunk_at(at, end));
    }
}

void CPU_NAME(cpu_snap)(float *x, enum sh_type type, size_t n, int n_threads)
{
    sh_team_each(n_threads, (int)((n + PIECE - 1) / PIECE), snap_part, &(struct numbers){x, type, n});
}
