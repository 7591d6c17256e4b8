/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary positions, one block a row; one launch a sequence, or one for all where the rows' positions are on
 * the device. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"

enum { THREADS = 256 };

/* Row i of x is at position[i], or i, of the tables. Pair j of a head turns by the angle j of the position. */
__global__ void turn(float *x, size_t stride, int n_head, int d_head, int n_rot, int neighbours, const float *cosine,
                     const float *sine, const int *positions)
{
    int half = n_rot / 2;
    size_t position = positions ? (size_t)positions[blockIdx.x] : blockIdx.x;
    float *row = x + blockIdx.x * stride;
    for (int i = (int)threadIdx.x; i < n_head * half; i += THREADS) {
        int j = i % half;
        float *head = row + (size_t)(i / half) * (size_t)d_head;
        float *first = neighbours ? head + 2 * j : head + j, *second = neighbours ? first + 1 : first + half;
        float a = *first, b = *second;
        float c = cosine[position * (size_t)half + (size_t)j], s = sine[position * (size_t)half + (size_t)j];
        *first = a * c - b * s;
        *second = b * c + a * s;
    }
}

void cuda_rotary(struct sh_dev *d, const struct sh_rotary *a)
{
    if (cuda_begin(d, "rotary"))
        return;
    int all = a->start[a->n_seq] - a->start[0];
    if (a->position && all > 0)
        SH_LAUNCH(turn, dim3((unsigned)all), dim3(THREADS), d->compute,
                  (float *)a->x.at + (size_t)a->start[0] * a->x.stride, a->x.stride, a->x.cols / a->d_head, a->d_head,
                  a->n_rot, (int)(a->pairs == SH_ROTARY_NEIGHBOURS), a->cos, a->sin, a->position + a->start[0]);
    for (int s = 0; s < a->n_seq && !a->position; s++) {
        int n = a->start[s + 1] - a->start[s];
        float *x = (float *)a->x.at + (size_t)a->start[s] * a->x.stride;
        size_t first = a->first ? (size_t)a->first[s] * (size_t)(a->n_rot / 2) : 0;
        if (n > 0)
            SH_LAUNCH(turn, dim3((unsigned)n), dim3(THREADS), d->compute, x, a->x.stride, a->x.cols / a->d_head,
                      a->d_head, a->n_rot, (int)(a->pairs == SH_ROTARY_NEIGHBOURS), a->cos + first,
                      a->sin + first, (const int *)NULL);
    }
    cuda_end(d, "rotary");
}
