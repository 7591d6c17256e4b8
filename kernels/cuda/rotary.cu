/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary positions, one block a row; one launch a sequence, or one for all where the rows' positions are on
 * the device. */
#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/device.cuh"

enum { THREADS = 256 };

struct rotary {                         /* without holes: every byte of an argument means something  */
    float *x;
    size_t stride;
    const float *cos, *sin;
    const int *position;                /* [rows] or NULL                                            */
    int n_head, d_head, n_rot, neighbours;
};

/* Row i of x is at position[i], or i, of the tables. Pair j of a head turns by the angle j of the position. */
__global__ void turn(struct rotary a)
{
    int half = a.n_rot / 2;
    size_t position = a.position ? (size_t)a.position[blockIdx.x] : blockIdx.x;
    float *row = a.x + blockIdx.x * a.stride;
    for (int i = (int)threadIdx.x; i < a.n_head * half; i += THREADS) {
        int j = i % half;
        float *head = row + (size_t)(i / half) * (size_t)a.d_head;
        float *first = a.neighbours ? head + 2 * j : head + j, *second = a.neighbours ? first + 1 : first + half;
        float x = *first, y = *second;
        float c = a.cos[position * (size_t)half + (size_t)j], s = a.sin[position * (size_t)half + (size_t)j];
        *first = x * c - y * s;
        *second = y * c + x * s;
    }
}

/* Rows [start, end) of x, the first of which is at position `first` of the tables if a->position does not say it. */
static void turn_rows(struct sh_dev *d, const struct sh_rotary *a, int start, int end, int first)
{
    size_t at = (size_t)first * (size_t)(a->n_rot / 2);
    struct rotary part = {(float *)a->x.at + (size_t)start * a->x.stride, a->x.stride, a->cos + at, a->sin + at,
                          a->position ? a->position + start : NULL, a->x.cols / a->d_head, a->d_head, a->n_rot,
                          a->pairs == SH_ROTARY_NEIGHBOURS};
    if (end > start)
        SH_LAUNCH(turn, dim3((unsigned)(end - start)), dim3(THREADS), d->compute, part);
}

void cuda_rotary(struct sh_dev *d, const struct sh_rotary *a)
{
    if (cuda_begin(d, "rotary"))
        return;
    if (a->position)
        turn_rows(d, a, a->start[0], a->start[a->n_seq], 0);
    for (int s = 0; s < a->n_seq && !a->position; s++)
        turn_rows(d, a, a->start[s], a->start[s + 1], a->first ? a->first[s] : 0);
    cuda_end(d, "rotary");
}
