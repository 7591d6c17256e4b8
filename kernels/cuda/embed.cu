/* SPDX-License-Identifier: Apache-2.0 */
/* Embedding rows: gathered on the host in the type they are stored in, so that a vocabulary of any
 * size costs no device memory; widened, scaled and added up on the device. */
#include <string.h>

#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"

enum { THREADS = 256 };

template <typename T, typename P>
__global__ void widen(float *out, size_t stride, int width, const T *row, const P *position, float scale)
{
    size_t i = blockIdx.x;
    for (int c = (int)threadIdx.x; c < width; c += THREADS) {
        size_t at = i * (size_t)width + (size_t)c;
        float x = to_float(row[at]) * scale;
        out[i * stride + (size_t)c] = position ? x + to_float(position[at]) : x;
    }
}

/* Rows [first, first + n) through one stage. */
static void piece(struct sh_dev *d, const struct sh_embed *a, char *raw, int first, int n)
{
    size_t width = (size_t)a->out.cols, row_bytes = width * sh_type_bytes(a->type);
    size_t position_bytes = a->position_table ? width * sh_type_bytes(a->position_type) : 0;
    size_t offset = ((size_t)n * row_bytes + 15) / 16 * 16, bytes = offset + (size_t)n * position_bytes;
    char *pinned = (char *)cuda_stage_at(d, &d->stages_compute, bytes, "embed");
    if (!pinned)
        return;
    for (int i = 0; i < n; i++)
        memcpy(pinned + (size_t)i * row_bytes, (const char *)a->table + (size_t)a->id[first + i] * row_bytes,
               row_bytes);
    for (int i = 0; i < n && a->position_table; i++)
        memcpy(pinned + offset + (size_t)i * position_bytes,
               (const char *)a->position_table + (size_t)a->position[first + i] * position_bytes, position_bytes);
    if (cuda_check(d, "embed", cudaMemcpyAsync(raw, pinned, bytes, cudaMemcpyHostToDevice, d->compute)))
        return;
    float *out = (float *)a->out.at + (size_t)first * a->out.stride;
    const char *position = a->position_table ? raw + offset : NULL;
    BY_TYPE(a->type, T,
            BY_TYPE(a->position_type, P,
                    SH_LAUNCH((widen<T, P>), dim3((unsigned)n), dim3(THREADS), d->compute, out, a->out.stride,
                              a->out.cols, (const T *)raw, (const P *)position, a->scale)));
    cuda_stage_sent(d, &d->stages_compute, "embed");
}

void cuda_embed(struct sh_dev *d, const struct sh_embed *a)
{
    if (cuda_begin(d, "embed"))
        return;
    size_t row = (size_t)a->out.cols * 8 + 16;          /* of both tables, at most */
    int most = (int)(d->stages_compute.bytes / row);
    cuda_stage_begin(d, SH_STAGE_TOKENS);
    char *raw = (char *)cuda_scratch_at(d, &d->embed, CUDA_STAGE_BYTES);
    if (most < 1)
        cuda_fail(d, "embed: found rows of %d numbers, expected at most the %zu bytes of one transfer", a->out.cols,
                  d->stages_compute.bytes);
    for (int at = 0; at < a->out.rows && !cuda_has_failed(d); at += most)
        piece(d, a, raw, at, a->out.rows - at < most ? a->out.rows - at : most);
    cuda_stage_end(d);
    cuda_end(d, "embed");
}
