/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend, inside kernels/cuda only: the device, and what its files offer each other.
 *
 * Streams: `compute` runs the operations in order; `record` brings packed rows to the host beside
 * them; `load` brings weights. Whoever passes memory from one stream to another leaves an event.
 *
 * Host threads: operations come from one thread. cuda_alloc, cuda_release, cuda_weight and cuda_drop
 * may come from another at the same time and share only what `lock` guards. The workers of drain.cu
 * touch nothing but their jobs.
 *
 * The module imports nothing from the program: it uses headers of src/base and kernels only. */
#ifndef SH_KERNELS_CUDA_CUDA_CUH
#define SH_KERNELS_CUDA_CUDA_CUH

#include <cublas_v2.h>
#include <pthread.h>

#include "kernels/backend.h"
#include "kernels/cuda/launch.cuh"

struct cuda_block {                     /* device memory that is in use or kept for reuse          */
    void *at;
    size_t bytes;
    int in_use;
    cudaEvent_t idle;                   /* on `compute`, when it was released                      */
    struct cuda_block *next;
};

struct cuda_scratch {                   /* of one operation; grows, is kept                        */
    void *at;
    size_t bytes;
    int in_graph;                       /* some graph works on it                                  */
};

struct cuda_outgrown {                  /* scratch that graphs still work on                       */
    void *at;
    struct cuda_outgrown *next;
};

struct cuda_stage {                     /* pinned memory on the way to the device                  */
    void *at;
    cudaEvent_t done;                   /* the copy out of it                                      */
    int used;
};

enum { CUDA_STAGES = 2, CUDA_STAGE_BYTES = 8 << 20 };

struct cuda_drain;

struct sh_dev {
    int ordinal, n_threads;
    char chip[128];
    cudaStream_t compute, record, load;
    cublasHandle_t blas;
    pthread_mutex_t lock;               /* guards: blocks, taken, peak, used, failed, error        */
    struct cuda_block *blocks;
    size_t taken, peak, limit;          /* bytes: in blocks, the most so far, that may be          */
    size_t free_at_first, used;         /* by the device's count: free when it was opened; the most that were   */
                                        /* missing since                                           */
    int failed;
    struct sh_err error;                /* the first failure                                       */
    char queued[160];                   /* operations since the last good sync, for errors         */
    struct cuda_scratch linear, panel, embed, out, scores, weights, rows, slopes;
    int weight_bits;                    /* of the weights that are made                            */
    int is_recording;                   /* operations go into a graph (graph.cu)                   */
    int n_graph;                        /* that are there                                          */
    struct cuda_outgrown *outgrown;     /* freed with the last of them                             */
    struct cuda_stage embed_stage[CUDA_STAGES], load_stage[CUDA_STAGES];
    void *load_raw[CUDA_STAGES];        /* device: weights before their conversion                 */
    int *fault;                         /* device: 1 + number of a sequence whose scores are no    */
                                        /* numbers, 0: none                                        */
    struct cuda_drain *drain;
};

struct sh_weight {
    void *at;                           /* [rows, cols] dense, or codes                            */
    enum sh_type type;                  /* of the operands of its products                         */
    int rows, cols;
    int bits;                           /* 16: as the type; 8, 4: codes (kernels/weight_bits.h)    */
    cudaEvent_t ready;                  /* on `load`                                               */
};

/* device.cu: the first failure is kept with the operation's name. 0 when status is good and nothing
 * has failed before. */
int cuda_check(struct sh_dev *d, const char *what, cudaError_t status);
int cuda_check_blas(struct sh_dev *d, const char *what, cublasStatus_t status);
void cuda_fail(struct sh_dev *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cuda_fail_as(struct sh_dev *d, const struct sh_err *e);
int cuda_has_failed(struct sh_dev *d);
/* At the head of every operation: -1 when nothing is to be done any more. */
int cuda_begin(struct sh_dev *d, const char *operation);
/* After the launches of an operation. */
void cuda_end(struct sh_dev *d, const char *operation);

/* memory.cu */
/* Looks how much of the device is free; the lock is held. A device that does not answer changes nothing. */
void cuda_note_used(struct sh_dev *d);
void *cuda_alloc(struct sh_dev *d, size_t bytes, struct sh_err *e);
void cuda_release(struct sh_dev *d, void *at);
/* Given back to the device at once: nobody will ask for this size again. NULL is fine. */
void cuda_discard(struct sh_dev *d, void *at);
void cuda_put(struct sh_dev *d, void *to, const void *from, size_t bytes);
void cuda_get(struct sh_dev *d, void *to, const void *from, size_t bytes);
void cuda_memory_close(struct sh_dev *d);
/* The memory at `at` is about to be written on `stream`, another than compute. */
void cuda_wait_idle(struct sh_dev *d, const void *at, cudaStream_t stream);
/* At least `bytes`, what was there before is lost; NULL when it does not fit: the device has failed. */
void *cuda_scratch_at(struct sh_dev *d, struct cuda_scratch *s, size_t bytes);
void cuda_scratch_free(struct sh_dev *d, struct cuda_scratch *s);
void cuda_outgrown_free(struct sh_dev *d);
cudaError_t cuda_stages_new(struct cuda_stage stage[CUDA_STAGES]);
void cuda_stages_free(struct cuda_stage stage[CUDA_STAGES]);
/* Waits until the stage is free to be written; NULL after a failure. */
void *cuda_stage_at(struct sh_dev *d, struct cuda_stage *s, const char *what);
void cuda_stage_sent(struct sh_dev *d, struct cuda_stage *s, cudaStream_t stream, const char *what);

/* codes.cu */
/* The part of w from row and col (a multiple of a group's length) on becomes the codes of x, dense, on
 * `load`. */
void cuda_encode(struct sh_dev *d, struct sh_weight *w, size_t row, size_t col, const struct sh_mat *x);
/* Rows [row, row + n) of w out of their codes into `to` [n, cols] of its type, on `compute`. */
void cuda_decode(struct sh_dev *d, const struct sh_weight *w, int row, int n, void *to);

/* One file each. */
struct sh_weight *cuda_weight(struct sh_dev *d, const void *at, enum sh_type from, int rows, int cols,
                              enum sh_type to, struct sh_err *e);
void cuda_weight_bits(struct sh_dev *d, int bits);
void cuda_drop(struct sh_dev *d, struct sh_weight *w);
void cuda_embed(struct sh_dev *d, const struct sh_embed *a);
void cuda_linear(struct sh_dev *d, const struct sh_linear *a);
size_t cuda_linear_bytes(const struct sh_dev *d, int rows, int in, int out, enum sh_type type, int bits);
void cuda_norm(struct sh_dev *d, const struct sh_norm *a);
void cuda_best(struct sh_dev *d, struct sh_best *out, struct sh_mat x);
void cuda_cast(struct sh_dev *d, struct sh_mat out, struct sh_mat x);
void cuda_convert(struct sh_dev *d, const struct sh_mat *to, const struct sh_mat *from, cudaStream_t stream);
void cuda_rotary(struct sh_dev *d, const struct sh_rotary *a);
void cuda_gate(struct sh_dev *d, const struct sh_gate *a);
void cuda_attend(struct sh_dev *d, const struct sh_attend *a);
size_t cuda_attend_bytes(const struct sh_dev *d, const struct sh_attend *a);

static inline cudaDataType_t cuda_type(enum sh_type type)
{
    return type == SH_F32 ? CUDA_R_32F : type == SH_F16 ? CUDA_R_16F : CUDA_R_16BF;
}

#endif
