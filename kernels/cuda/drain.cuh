/* SPDX-License-Identifier: Apache-2.0 */
/* What attention recorded, on its way to the tap: packed rows are copied to pinned memory on the stream
 * `record`, next to the following tile, and handed out by worker threads, each of which has its own heads, so
 * that the rows of a head arrive in order. Values of sets, whose number is known only after that copy, come on
 * `values`: on `record` they would come after the waits for later tiles. There are a few slots:
 * when all are busy the operation waits for the slowest of copy, tap and writer. */
#ifndef SH_KERNELS_CUDA_DRAIN_CUH
#define SH_KERNELS_CUDA_DRAIN_CUH

#include "kernels/cuda/cuda.cuh"

enum { CUDA_SLOTS = 3 };

/* Sizes and places in a slot's memory, which has the same layout on the device and on the host. */
struct cuda_layout {
    size_t bytes;                       /* in all                                                  */
    size_t fetch_bytes;                 /* from the start, that are always copied                  */
    size_t head_bytes;                  /* packed rows of a head (not of sets)                     */
    size_t figures_at, count_at, bits_at, value_at;     /* of sets; values are after fetch_bytes  */
};

struct cuda_job {                       /* the rows of a tile                                      */
    void *device, *pinned;
    struct sh_tap tap;
    struct cuda_layout layout;
    int sequence, n_head, first_row, n_rows;
    int n_lane, first_word, n_word, values;     /* of sets                                         */
};

struct cuda_drain *cuda_drain_new(struct sh_dev *d);            /* NULL: no threads                */
void cuda_drain_free(struct cuda_drain *n);                     /* NULL is fine                    */

/* Pinned memory that a job can have: `bytes`, or less where it is short, but `least`. May wait for all that was sent.
 * 0: not even that, and the device has failed. */
size_t cuda_drain_room(struct sh_dev *d, size_t bytes, size_t least);
/* A free job with memory for `layout`, and for as much as `most_bytes` of a later one, so that slots do not
 * grow tile by tile, both within their room; waits for one. NULL after a failure. */
struct cuda_job *cuda_drain_job(struct sh_dev *d, const struct cuda_layout *layout, size_t most_bytes);
/* The job's device memory is filled by what is queued on `compute`. */
void cuda_drain_send(struct sh_dev *d, struct cuda_job *job);
void cuda_drain_wait(struct cuda_drain *n);                     /* until all that was sent is out  */

#endif
