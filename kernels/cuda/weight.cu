/* SPDX-License-Identifier: Apache-2.0 */
/* Weights on their way from the mapped checkpoint to the device: copied piece by piece through two
 * pinned buffers on the stream `load`, converted there when the products want another type. While one
 * piece travels the next is read from the file; while all of this happens the operations of the layer
 * before may compute. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.cuh"

static void send(struct sh_dev *d, struct sh_weight *w, const char *from, enum sh_type type, size_t n)
{
    size_t width = sh_type_bytes(type), to_width = sh_type_bytes(w->type), piece = CUDA_STAGE_BYTES / width;
    for (size_t at = 0, turn = 0; at < n; at += piece, turn++) {
        size_t m = n - at < piece ? n - at : piece;
        struct cuda_stage *stage = &d->load_stage[turn % CUDA_STAGES];
        void *pinned = cuda_stage_at(d, stage, "weight");
        if (!pinned)
            return;
        memcpy(pinned, from + at * width, m * width);
        char *to = (char *)w->at + at * to_width;
        void *raw = type == w->type ? to : d->load_raw[turn % CUDA_STAGES];
        if (cuda_check(d, "weight", cudaMemcpyAsync(raw, pinned, m * width, cudaMemcpyHostToDevice, d->load)))
            return;
        struct sh_mat as_stored = {raw, type, 1, (int)m, m}, as_wanted = {to, w->type, 1, (int)m, m};
        if (raw != to)
            cuda_convert(d, &as_wanted, &as_stored, d->load);
        cuda_stage_sent(d, stage, d->load, "weight");
    }
}

struct sh_weight *cuda_weight(struct sh_dev *d, const void *at, enum sh_type from, int rows, int cols,
                              enum sh_type to, struct sh_err *e)
{
    size_t n = (size_t)rows * (size_t)cols;
    struct sh_weight *w = (struct sh_weight *)calloc(1, sizeof *w);
    if (!w) {
        e->status = SH_FAILED;
        e->hint[0] = '\0';
        snprintf(e->text, sizeof e->text, "backend cuda: out of host memory");
        return NULL;
    }
    w->type = to;
    w->rows = rows;
    w->cols = cols;
    if (!(w->at = cuda_alloc(d, n * sh_type_bytes(to), e))) {
        free(w);
        return NULL;
    }
    if (!cuda_check(d, "weight", cudaEventCreateWithFlags(&w->ready, cudaEventDisableTiming))) {
        cuda_wait_idle(d, w->at, d->load);
        send(d, w, (const char *)at, from, n);
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
