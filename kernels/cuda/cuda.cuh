/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend, inside kernels/cuda only: the device, and what its files offer each other.
 *
 * Streams: `compute` runs the operations in order; at the same time `record` copies packed rows to the host, `values`
 * those values of them that need a copy of their own, and `load` copies weights to the device. Memory that passes from
 * one stream to another is guarded by an event.
 *
 * Host threads: operations come from one thread. cuda_alloc, cuda_release, cuda_weight, cuda_packed, cuda_vector and
 * cuda_drop may come from another at the same time and share only what `lock` guards. The workers of drain.cu touch
 * nothing but their jobs.
 *
 * The module imports nothing from the program: it uses headers of src/base and kernels, and is linked with a libbase of
 * its own for threads that copy and unpack (src/base/team.h). */
#ifndef SH_KERNELS_CUDA_CUDA_CUH
#define SH_KERNELS_CUDA_CUDA_CUH

#include <cublas_v2.h>
#include <pthread.h>

#include "kernels/backend.h"

struct cuda_block {                     /* device memory that is in use or kept for reuse          */
    void *at;
    size_t bytes;
    int in_use;
    int is_coming;                      /* `load` brings a vector that `compute` has not waited for */
    cudaEvent_t idle;                   /* on `compute`, when it was released                      */
    cudaEvent_t ready;                  /* on `load`, when the vector was there; NULL: never one   */
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

/* For events that the host waits for: it sleeps meanwhile, where it would otherwise ask again and again. */
#define CUDA_EVENT_SLEEPS (cudaEventBlockingSync | cudaEventDisableTiming)

enum { CUDA_STAGES = 2, CUDA_STAGE_BYTES = 8 << 20 };

struct cuda_stage {                     /* pinned memory on the way to the device, or from it      */
    void *at;
    cudaEvent_t done;                   /* the last copy that uses it                              */
    int used;
};

struct cuda_stages {                    /* of a stream: they are filled in turn                    */
    struct cuda_stage at[CUDA_STAGES];
    cudaStream_t stream;
    size_t bytes;                       /* of each: CUDA_STAGE_BYTES, or less where pinned memory is short */
    size_t filled;                      /* of the one that is being filled, ...                    */
    int turn;                           /* ... which is at[turn]                                   */
};

struct cuda_span {                      /* what a stage of the run queued on a stream              */
    cudaEvent_t begin, end;
    enum sh_stage stage;
};

struct cuda_spans {                     /* of a stream, or of a graph: a ring                      */
    struct cuda_span *at;               /* [room]                                                  */
    int room, first, n, is_open;
};

enum { CUDA_SPANS_COMPUTE, CUDA_SPANS_RECORD, CUDA_SPANS_VALUES, CUDA_SPANS_LOAD, CUDA_SPANS };

struct cuda_drain;

struct sh_dev {
    int ordinal, n_threads;
    char chip[128];
    cudaStream_t compute, record, values, load;
    cublasHandle_t blas;
    pthread_mutex_t room;               /* held by who takes memory of the device or gives it back */
    pthread_mutex_t lock;               /* guards: user, has_user, blocks, n_coming, taken, peak, used, failed, */
                                        /* error, is_recording                                            */
    pthread_t user;                     /* the thread that called operations since the last sync or get */
    int has_user;
    struct cuda_block *blocks;
    int n_coming;                       /* of them that are coming                                 */
    size_t taken, peak, limit;          /* bytes: in blocks, the most so far, that may be          */
    size_t free_at_first, used;         /* by the device's count: free when opened; the most missing since */
    int failed;
    struct sh_err error;                /* the first failure                                       */
    char queued[160];                   /* operations since the last good sync, for errors         */
    struct cuda_scratch linear, rounded, panel, embed, out, scores, weights, rows, slopes, sinks;
    int weight_bits;                    /* of the weights that are made                            */
    int x_bits;                         /* as in struct sh_open                                    */
    int is_recording;                   /* operations of the thread `recorder` go into a graph (graph.cu) */
    int is_spoiled;                     /* one of them could not: likewise its own                 */
    pthread_t recorder;
    char why_eager[160];                /* why nothing is recorded any more; empty: it is          */
    int n_graph;                        /* that are there                                          */
    struct cuda_outgrown *outgrown;     /* freed with the last of them                             */
    struct cuda_stages stages_compute, stages_load;
    cudaEvent_t settled;                /* on `compute`: cuda_wait's                               */
    void *load_raw[CUDA_STAGES];        /* device: weights before their conversion                 */
    int *fault;                         /* device: 1 + number of a sequence whose scores are no numbers, or 0 */
    struct cuda_drain *drain;
    struct sh_stages *stages;           /* NULL: time is not measured                              */
    pthread_mutex_t spans_lock;         /* guards: spans, graph_spans                              */
    struct cuda_spans spans[CUDA_SPANS], graph_spans;   /* the latter of the graph that is captured */
    struct sh_graph *graphs;            /* that are there                                          */
};

struct sh_weight {
    void *at;                           /* [rows, cols] dense, or codes, or blocks                 */
    enum sh_type type;                  /* of the operands of its products                         */
    int rows, cols;
    int bits;                           /* 16: as the type; 8, 4: codes (kernels/weight_bits.h)    */
    enum sh_packing packing;            /* or blocks of this format, row after row; SH_PACKED_OTHER: it has none */
    size_t apart_at;                    /* MXFP4_APART: where its scales begin                     */
    cudaEvent_t ready;                  /* on `load`                                               */
};

/* device.cu: the first failure is kept with the operation's name. 0 when status is good and nothing
 * has failed before. What fails while operations are recorded spoils the recording, not the device: they run once
 * more, and what is wrong in earnest fails then. */
int cuda_check(struct sh_dev *d, const char *what, cudaError_t status);
int cuda_check_blas(struct sh_dev *d, const char *what, cublasStatus_t status);
/* n_head products at once, in f32. */
struct cuda_operand {
    const float *at;
    size_t lead, stride;                /* from column to column, from head to head                */
};

struct cuda_product {                   /* c = alpha a b + beta c                                  */
    cublasOperation_t turn;             /* of a: CUBLAS_OP_T where a^T stands for a                */
    int m, n, k;                        /* c [m, n], b [k, n]                                      */
    float alpha, beta;
    struct cuda_operand a, b, c;
};
int cuda_multiply(struct sh_dev *d, const char *what, const struct cuda_product *p, int n_head);
void cuda_fail(struct sh_dev *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cuda_fail_as(struct sh_dev *d, const struct sh_err *e);
int cuda_has_failed(struct sh_dev *d);
/* At the head of every operation: -1 when nothing is to be done any more. */
int cuda_begin(struct sh_dev *d, const char *operation);
/* After the launches of an operation. */
void cuda_end(struct sh_dev *d, const char *operation);
/* The device has been waited for: the next operations may come from another thread. */
void cuda_let_go(struct sh_dev *d);

/* memory.cu */
/* Looks how much of the device is free; the lock is held. A device that does not answer changes nothing. */
void cuda_note_used(struct sh_dev *d);
void *cuda_alloc(struct sh_dev *d, size_t bytes, struct sh_err *e);
void cuda_release(struct sh_dev *d, void *at);
/* Returns the memory to the device at once: this size will not be needed again. NULL is fine. */
void cuda_discard(struct sh_dev *d, void *at);
/* The memory at `at` holds a vector when `load` has done what is queued there now. */
void cuda_is_coming(struct sh_dev *d, const void *at);
/* What is queued on `compute` from now on finds the vector at `at` (NULL is fine) there. */
void cuda_arrived(struct sh_dev *d, const void *at);
void cuda_memory_close(struct sh_dev *d);
/* The memory at `at` is about to be written on `stream`, another than compute. */
void cuda_wait_idle(struct sh_dev *d, const void *at, cudaStream_t stream);
/* At least `bytes`, what was there before is lost; NULL when it does not fit: the device has failed. */
void *cuda_scratch_at(struct sh_dev *d, struct cuda_scratch *s, size_t bytes);
void cuda_scratch_free(struct sh_dev *d, struct cuda_scratch *s);
void cuda_outgrown_free(struct sh_dev *d);

/* stage.cu */
/* Pinned memory, n pieces of one size at at[0 … n), whose size comes back: `bytes`, or where so much is not to be had
 * half of it, and so on down to `least`. 0: not even that, and the device has failed. */
size_t cuda_pinned(struct sh_dev *d, void **const at[], int n, size_t bytes, size_t least);
int cuda_stages_new(struct sh_dev *d);                          /* both; -1: the device has failed */
void cuda_stages_free(struct cuda_stages *s);
/* Pinned memory for up to s->bytes, which waits until no copy uses it; NULL after a failure. */
void *cuda_stage_at(struct sh_dev *d, struct cuda_stages *s, size_t bytes, const char *what);
/* What uses that memory is queued on the stages' stream. */
int cuda_stage_sent(struct sh_dev *d, struct cuda_stages *s, const char *what);
/* In the host's memory, by several threads. */
void cuda_copy_host(struct sh_dev *d, void *to, const void *from, size_t bytes);
void cuda_put(struct sh_dev *d, void *to, const void *from, size_t bytes);
void cuda_get(struct sh_dev *d, void *to, const void *from, size_t bytes);
float *cuda_vector(struct sh_dev *d, const float *from, size_t n, struct sh_err *e);
void cuda_wait(struct sh_dev *d, const char *what);             /* until `compute` has done what is queued */

/* graph.cu: takes the times of the graphs that have run; the device has been waited for. */
void cuda_graphs_read(struct sh_dev *d);

/* weight_codes.cu */
/* The part of w from row and col (a multiple of a group's length) on becomes the codes of x, dense, on `load`. */
void cuda_encode(struct sh_dev *d, struct sh_weight *w, size_t row, size_t col, const struct sh_mat *x);
/* Rows [row, row + n) of w out of their codes into `to` [n, cols] of its type, on `compute`. */
void cuda_decode(struct sh_dev *d, const struct sh_weight *w, int row, int n, void *to);

/* One file each. */
/* What is like `like`, in so many bytes of the device that are still to be sent on `load`; NULL: e says why. Then, when
 * that has been queued, cuda_weight_sent, which returns the weight or NULL. `ready` is 0 after a failure. */
struct sh_weight *cuda_weight_new(struct sh_dev *d, const struct sh_weight *like, size_t bytes, struct sh_err *e);
struct sh_weight *cuda_weight_sent(struct sh_dev *d, struct sh_weight *w, struct sh_err *e);
size_t cuda_weight_bytes(const struct sh_weight *w);    /* of one that is not packed */
/* n rows of the host become rows of the weight from `first` on, as its type or codes. */
void cuda_send_rows(struct sh_dev *d, struct sh_weight *w, int first, int n, const void *from, enum sh_type type);
struct sh_weight *cuda_weight(struct sh_dev *d, const void *at, enum sh_type from, int rows, int cols,
                              enum sh_type to, struct sh_err *e);
/* packed.cu */
struct sh_weight *cuda_packed(struct sh_dev *d, const struct sh_packed *p, enum sh_type to, struct sh_err *e);
/* Rows [row, row + n) of a packed weight as numbers of its type, dense. */
void cuda_unpack(struct sh_dev *d, const struct sh_weight *w, int row, int n, void *to);
void cuda_weight_bits(struct sh_dev *d, int bits);
void cuda_drop(struct sh_dev *d, struct sh_weight *w);
void cuda_embed(struct sh_dev *d, const struct sh_embed *a);
void cuda_linear(struct sh_dev *d, const struct sh_linear *a);
/* few_rows.cu: queues it if it is one of few rows, or returns 0. */
int cuda_few_rows(struct sh_dev *d, const struct sh_linear *a);
size_t cuda_linear_bytes(const struct sh_dev *d, int rows, int in, int out, enum sh_type type, int bits);
void cuda_norm(struct sh_dev *d, const struct sh_norm *a);
void cuda_best(struct sh_dev *d, struct sh_best *out, struct sh_mat x);
void cuda_cast(struct sh_dev *d, struct sh_mat out, struct sh_mat x);
void cuda_convert(struct sh_dev *d, const struct sh_mat *to, const struct sh_mat *from, cudaStream_t stream);
void cuda_rotary(struct sh_dev *d, const struct sh_rotary *a);
void cuda_gate(struct sh_dev *d, const struct sh_gate *a);
void cuda_gather(struct sh_dev *d, const struct sh_gather *a);
void cuda_scatter(struct sh_dev *d, const struct sh_scatter *a);
void cuda_attend(struct sh_dev *d, const struct sh_attend *a);
void cuda_conv(struct sh_dev *d, const struct sh_conv *a);
void cuda_delta(struct sh_dev *d, const struct sh_delta *a);
void cuda_scan(struct sh_dev *d, const struct sh_scan *a);
void cuda_lru(struct sh_dev *d, const struct sh_lru *a);
size_t cuda_attend_bytes(const struct sh_dev *d, const struct sh_attend *a);

/* spans.cu: timers of stages on the device (src/base/stages.h): pairs of events around what a stage queues, read by the
 * host when it has waited for the device anyway, so that measuring waits for nothing. Without stages nothing is queued.
 *
 * On `stream`, which is compute, record, values or load; no span begins before the last one of its stream has ended.
 * What is queued on compute while a graph is captured belongs to the graph. */
void cuda_span_begin(struct sh_dev *d, struct cuda_spans *s, enum sh_stage stage, cudaStream_t stream);
void cuda_span_end(struct sh_dev *d, struct cuda_spans *s, cudaStream_t stream);

/* Takes the times of the spans that the device has passed. */
void cuda_spans_read(struct sh_dev *d);
/* The same of a graph's last run, which stands for `runs` of them. */
void cuda_spans_read_graph(struct sh_dev *d, struct cuda_spans *s, int runs);
void cuda_spans_free(struct cuda_spans *s);

/* The compute stream's. */
static inline struct cuda_spans *cuda_compute_spans(struct sh_dev *d)
{
    return d->is_recording ? &d->graph_spans : &d->spans[CUDA_SPANS_COMPUTE];
}

static inline void cuda_stage_begin(struct sh_dev *d, enum sh_stage stage)
{
    cuda_span_begin(d, cuda_compute_spans(d), stage, d->compute);
}

static inline void cuda_stage_end(struct sh_dev *d)
{
    cuda_span_end(d, cuda_compute_spans(d), d->compute);
}

static inline cudaDataType_t cuda_type(enum sh_type type)
{
    return type == SH_F32 ? CUDA_R_32F : type == SH_F16 ? CUDA_R_16F : CUDA_R_16BF;
}

/* ---- drain.cu ----
 * What attention recorded, on its way to the tap: packed rows are copied to pinned memory on the stream
 * `record`, next to the following tile, and handed out by worker threads, each of which has its own heads, so
 * that the rows of a head arrive in order. Values of sets, whose number is known only after that copy, come on
 * `values`: on `record` they would come after the waits for later tiles. There are a few slots:
 * when all are busy the operation waits for the slowest of copy, tap and writer. */

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
