/* SPDX-License-Identifier: Apache-2.0 */
/* Weights in the blocks of their checkpoint (kernels/packed.h), which lie on the device as they are stored, in the
 * order of the matrix. Products of few rows read blocks (few_rows.cu); for larger ones blocks become numbers a panel at
 * a time (linear.cu). What only the processor can unpack becomes numbers on the way, some rows at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/packed.cuh"

extern "C" {
#include "src/base/team.h"
}

enum { THREADS = 256, ROWS_AT_ONCE = 64 };

/* ---- to the device ---- */

/* Rows of `bytes` each at `from`, where row r is number sh_packed_row(p, r), to `to` on the device. */
static void send_rows(struct sh_dev *d, const struct sh_packed *p, const unsigned char *from, size_t bytes, char *to)
{
    struct cuda_stages *s = &d->stages_load;
    size_t most = s->bytes < bytes ? s->bytes : s->bytes / bytes * bytes;
    int in_order = !p->d_head && p->step <= 1;
    size_t all = (size_t)p->rows * bytes;
    for (size_t at = 0, n; at < all && !cuda_has_failed(d); at += n) {
        n = all - at < most ? all - at : most;
        if (!in_order && most < bytes)                          /* a row in pieces */
            n = bytes - at % bytes < n ? bytes - at % bytes : n;
        char *pinned = (char *)cuda_stage_at(d, s, n, "weight");
        if (!pinned)
            return;
        if (in_order)
            cuda_copy_host(d, pinned, from + at, n);
        for (size_t done = 0, part; done < n && !in_order; done += part) {
            size_t row = (at + done) / bytes, first = (at + done) % bytes;
            part = bytes - first < n - done ? bytes - first : n - done;
            memcpy(pinned + done, from + (size_t)sh_packed_row(p, (int)row) * bytes + first, part);
        }
        if (cuda_check(d, "weight", cudaMemcpyAsync(to + at, pinned, n, cudaMemcpyHostToDevice, d->load)) ||
            cuda_stage_sent(d, s, "weight"))
            return;
    }
}

struct unpacking {
    const struct sh_packed *p;
    int first;
    float *to;
};

static void unpack_row(void *arg, int i)
{
    const struct unpacking *u = (const struct unpacking *)arg;
    u->p->unpack(u->p->from, u->first + i, 1, u->to + (size_t)i * (size_t)u->p->cols);
}

/* As numbers, or as codes of `weight_bits`. */
static void send_numbers(struct sh_dev *d, const struct sh_packed *p, struct sh_weight *w)
{
    float *rows = (float *)malloc((size_t)ROWS_AT_ONCE * (size_t)p->cols * sizeof *rows);
    if (!rows)
        cuda_fail(d, "weight: out of host memory");
    for (int first = 0; first < p->rows && rows && !cuda_has_failed(d); first += ROWS_AT_ONCE) {
        int n = p->rows - first < ROWS_AT_ONCE ? p->rows - first : ROWS_AT_ONCE;
        struct unpacking u = {p, first, rows};
        sh_team_each(d->n_threads, n, unpack_row, &u);
        cuda_send_rows(d, w, first, n, rows, SH_F32);
    }
    free(rows);
}

struct making {
    const struct sh_packed *p;
    int first, n;
    size_t bytes;                       /* of a row */
    unsigned char *to;
};

static void make_rows(void *arg, int i)
{
    const struct making *m = (const struct making *)arg;
    int row = i * SH_BLOCKS_ROWS, n = m->n - row < SH_BLOCKS_ROWS ? m->n - row : SH_BLOCKS_ROWS;
    m->p->blocks(m->p->from, m->first + row, n, m->to + (size_t)row * m->bytes);
}

/* Blocks that the checkpoint does not have. */
static void send_made(struct sh_dev *d, const struct sh_packed *p, size_t bytes, char *to)
{
    unsigned char *rows = (unsigned char *)malloc(ROWS_AT_ONCE * bytes);
    if (!rows)
        cuda_fail(d, "weight: out of host memory");
    for (int first = 0; first < p->rows && rows && !cuda_has_failed(d); first += ROWS_AT_ONCE) {
        int n = p->rows - first < ROWS_AT_ONCE ? p->rows - first : ROWS_AT_ONCE;
        struct making m = {p, first, n, bytes, rows};
        struct sh_packed some = {};
        some.rows = n;
        sh_team_each(d->n_threads, (n + SH_BLOCKS_ROWS - 1) / SH_BLOCKS_ROWS, make_rows, &m);
        send_rows(d, &some, rows, bytes, to + (size_t)first * bytes);
    }
    free(rows);
}

struct sh_weight *cuda_packed(struct sh_dev *d, const struct sh_packed *p, enum sh_type to, struct sh_err *e)
{
    struct sh_packing_shape shape = sh_packing_shape(p->format);
    struct sh_weight like = {};
    if (d->x_bits == 8 && p->columns && sh_packed_is_code(p->format)) {
        e->status = SH_FAILED;
        e->hint[0] = '\0';
        snprintf(e->text, sizeof e->text, "backend cuda: 8-bit activations: a matrix whose columns are in another "
                 "order (GPTQ, desc_act) is kept as numbers here; expected --backend cpu or other bits");
        return NULL;
    }
    like.type = to;
    like.rows = p->rows;
    like.cols = p->cols;
    like.bits = d->weight_bits;
    like.packing = like.bits == 16 && !p->columns ? p->format : SH_PACKED_OTHER;
    int keeps = like.packing != SH_PACKED_OTHER;
    size_t blocks = keeps ? (size_t)p->cols / (size_t)shape.elements : 0, row = blocks * (size_t)shape.bytes;
    size_t bytes = keeps ? (size_t)p->rows * row : cuda_weight_bytes(&like);
    if (keeps && p->apart) {
        like.apart_at = bytes;
        bytes += (size_t)p->rows * blocks;
    }
    struct sh_weight *w = cuda_weight_new(d, &like, bytes, e);
    if (!w)
        return NULL;
    if (w->ready && !keeps)
        send_numbers(d, p, w);
    if (w->ready && keeps && p->blocks)
        send_made(d, p, row, (char *)w->at);
    else if (w->ready && keeps)
        send_rows(d, p, p->at, row, (char *)w->at);
    if (w->ready && keeps && p->apart)
        send_rows(d, p, p->apart, blocks, (char *)w->at + w->apart_at);
    return cuda_weight_sent(d, w, e);
}

/* ---- to numbers ---- */

/* Block i: row i of `to` [rows, cols], dense; blocks and scales begin with those of row 0. */
template <int FORMAT, typename T>
__global__ void __launch_bounds__(THREADS) unpack(T *to, const unsigned char *blocks, const unsigned char *apart,
                                                  int cols)
{
    enum { ELEMENTS = packing<FORMAT>::ELEMENTS };
    size_t row = blockIdx.x, n = (size_t)(cols / ELEMENTS);
    const unsigned char *from = blocks + row * n * packing<FORMAT>::BYTES;
    T *out = to + row * (size_t)cols;
    apart = FORMAT == SH_PACKED_MXFP4_APART ? apart + row * n : NULL;
    for (int unit = (int)threadIdx.x; unit < cols / PACKED_EIGHT; unit += THREADS) {
        float x[PACKED_EIGHT];
        eight_numbers<FORMAT>(from, apart, unit, x);
#pragma unroll
        for (int i = 0; i < PACKED_EIGHT; i++)
            out[unit * PACKED_EIGHT + i] = from_float<T>(x[i]);
    }
}

template <int FORMAT>
static void unpack_format(struct sh_dev *d, const struct sh_weight *w, size_t row, int n, void *to)
{
    size_t blocks = (size_t)(w->cols / packing<FORMAT>::ELEMENTS);
    const unsigned char *at = (const unsigned char *)w->at;
    BY_TYPE(w->type, T,
            SH_LAUNCH((unpack<FORMAT, T>), dim3((unsigned)n), dim3(THREADS), d->compute, (T *)to,
                      at + row * blocks * packing<FORMAT>::BYTES, at + w->apart_at + row * blocks, w->cols));
}

void cuda_unpack(struct sh_dev *d, const struct sh_weight *w, int row, int n, void *to)
{
    if (cuda_has_failed(d) || !n)
        return;
    switch (w->packing) {
#define FORMAT(name, elements, bytes, span, less) \
    case SH_PACKED_##name: unpack_format<SH_PACKED_##name>(d, w, (size_t)row, n, to); break;
    SH_PACKED_FORMATS(FORMAT)
#undef FORMAT
    default: break;
    }
}
