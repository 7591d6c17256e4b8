/* SPDX-License-Identifier: Apache-2.0 */
/* Weights on their way from the mapped checkpoint to the device: copied piece by piece through two pinned buffers on
 * the stream `load`, converted there when the products want another type or codes. While one piece travels the next is
 * read from the file; while all of this happens the operations of the layer before may compute. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.cuh"
#include "kernels/weight_bits.h"

/* At most a stage of bytes to `raw` on the device, or to the stage's own memory there when it is NULL. Where they
 * are; NULL after a failure. */
static void *send_piece(struct sh_dev *d, const char *from, size_t bytes, void *raw)
{
    void *pinned = cuda_stage_at(d, &d->stages_load, bytes, "weight");
    if (!pinned)
        return NULL;
    cuda_copy_host(d, pinned, from, bytes);
    raw = raw ? raw : d->load_raw[d->stages_load.turn];
    return cuda_check(d, "weight", cudaMemcpyAsync(raw, pinned, bytes, cudaMemcpyHostToDevice, d->load)) ? NULL : raw;
}

/* n numbers, which become those of the weight from `first` on. */
static void send(struct sh_dev *d, struct sh_weight *w, size_t first, const char *from, enum sh_type type, size_t n)
{
    size_t width = sh_type_bytes(type), to_width = sh_type_bytes(w->type), piece = d->stages_load.bytes / width;
    for (size_t at = 0; at < n; at += piece) {
        size_t m = n - at < piece ? n - at : piece;
        char *to = (char *)w->at + (first + at) * to_width;
        void *raw = send_piece(d, from + at * width, m * width, type == w->type ? to : NULL);
        if (!raw)
            return;
        struct sh_mat as_stored = {raw, type, 1, (int)m, m}, as_wanted = {to, w->type, 1, (int)m, m};
        if (raw != to)
            cuda_convert(d, &as_wanted, &as_stored, d->load);
        cuda_stage_sent(d, &d->stages_load, "weight");
    }
}

/* Rows [first, first + rows), in pieces of whole rows, or of whole groups of one row. */
static void send_codes(struct sh_dev *d, struct sh_weight *w, size_t first, const char *from, enum sh_type type,
                       size_t rows)
{
    size_t width = sh_type_bytes(type), most = d->stages_load.bytes / width;
    size_t cols = (size_t)w->cols, high = most / cols ? most / cols : 1;
    size_t wide = cols < most ? cols : most / SH_CODE_GROUP * SH_CODE_GROUP;
    for (size_t row = 0; row < rows; row += high)
        for (size_t col = 0; col < cols; col += wide) {
            size_t n = rows - row < high ? rows - row : high, m = cols - col < wide ? cols - col : wide;
            void *raw = send_piece(d, from + (row * cols + col) * width, n * m * width, NULL);
            if (!raw)
                return;
            struct sh_mat x = {raw, type, (int)n, (int)m, m};
            cuda_encode(d, w, first + row, col, &x);
            cuda_stage_sent(d, &d->stages_load, "weight");
        }
}

size_t cuda_weight_bytes(const struct sh_weight *w)
{
    return w->bits < 16 ? sh_code_bytes(w->rows, w->cols, w->bits)
                        : (size_t)w->rows * (size_t)w->cols * sh_type_bytes(w->type);
}

void cuda_weight_bits(struct sh_dev *d, int bits)
{
    d->weight_bits = bits;
}

void cuda_send_rows(struct sh_dev *d, struct sh_weight *w, int first, int n, const void *from, enum sh_type type)
{
    size_t row = (size_t)first, rows = (size_t)n, cols = (size_t)w->cols;
    if (w->bits < 16)
        send_codes(d, w, row, (const char *)from, type, rows);
    else
        send(d, w, row * cols, (const char *)from, type, rows * cols);
}

struct sh_weight *cuda_weight_new(struct sh_dev *d, const struct sh_weight *like, size_t bytes, struct sh_err *e)
{
    struct sh_weight *w = (struct sh_weight *)calloc(1, sizeof *w);
    if (!w) {
        e->status = SH_FAILED;
        e->hint[0] = '\0';
        snprintf(e->text, sizeof e->text, "backend cuda: out of host memory");
        return NULL;
    }
    *w = *like;
    if (!(w->at = cuda_alloc(d, bytes, e))) {
        free(w);
        return NULL;
    }
    if (!cuda_check(d, "weight", cudaEventCreateWithFlags(&w->ready, cudaEventDisableTiming))) {
        cuda_wait_idle(d, w->at, d->load);
        cuda_span_begin(d, &d->spans[CUDA_SPANS_LOAD], SH_STAGE_COPY, d->load);
    }
    return w;
}

struct sh_weight *cuda_weight_sent(struct sh_dev *d, struct sh_weight *w, struct sh_err *e)
{
    if (w->ready) {
        cuda_span_end(d, &d->spans[CUDA_SPANS_LOAD], d->load);
        cuda_check(d, "weight", cudaEventRecord(w->ready, d->load));
    }
    cuda_check(d, "weight", cudaGetLastError());
    if (cuda_has_failed(d)) {
        *e = d->error;
        cuda_drop(d, w);
        return NULL;
    }
    return w;
}

struct sh_weight *cuda_weight(struct sh_dev *d, const void *at, enum sh_type from, int rows, int cols,
                              enum sh_type to, struct sh_err *e)
{
    struct sh_weight like = {};
    like.type = to;
    like.rows = rows;
    like.cols = cols;
    like.bits = d->weight_bits;
    struct sh_weight *w = cuda_weight_new(d, &like, cuda_weight_bytes(&like), e);
    if (!w)
        return NULL;
    if (w->ready)
        cuda_send_rows(d, w, 0, rows, at, from);
    return cuda_weight_sent(d, w, e);
}

void cuda_drop(struct sh_dev *d, struct sh_weight *w)
{
    if (!w)
        return;
    cudaSetDevice(d->ordinal);
    if (w->ready) {
        cudaStreamWaitEvent(d->compute, w->ready, 0);   /* the block is idle when `compute` is past this */
        cudaEventDestroy(w->ready);
    }
    cuda_release(d, w->at);
    free(w);
}
