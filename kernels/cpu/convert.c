/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of one type as numbers of another, any strides. */
#include "kernels/cpu/floats.h"
#include "kernels/cpu/variant.h"

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

void CPU_NAME(cpu_convert)(struct sh_mat to, struct sh_mat from, int n_threads)
{
    size_t rows = (size_t)to.rows, cols = (size_t)to.cols;
    if (is_dense(&to) && is_dense(&from)) {
        cols *= rows;
        rows = 1;
    }
    size_t pieces = (cols + PIECE - 1) / PIECE;         /* of a row */
#pragma omp parallel for num_threads(n_threads) if (rows * cols > PIECE)
    for (size_t i = 0; i < rows * pieces; i++) {
        size_t row = i / pieces, col = i % pieces * PIECE, n = cols - col < PIECE ? cols - col : PIECE;
        convert_piece(element(&to, row, col), to.type, element(&from, row, col), from.type, n);
    }
}

void CPU_NAME(cpu_snap)(float *x, enum sh_type type, size_t n, int n_threads)
{
#pragma omp parallel for num_threads(n_threads)
    for (size_t i = 0; i < n; i += CHUNK) {
        uint16_t rounded[CHUNK];
        store_floats(rounded, type, x + i, chunk_at(i, n));
        load_floats(x + i, type, rounded, chunk_at(i, n));
    }
}
