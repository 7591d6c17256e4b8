/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend's table: opening, errors, sync. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.cuh"
#include "kernels/cuda/slots/slots.cuh"

enum { WORKSPACE_BYTES = 32 << 20, ROWS_AT_ONCE = 8192 };

/* No TF32, and partial sums in f32 also where a product comes out in 16 bits. */
static const cublasMath_t MATH =
    (cublasMath_t)(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);

__attribute__((format(printf, 3, 4)))
static int refuse(struct sh_err *e, enum sh_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    e->status = status;
    e->hint[0] = '\0';
    vsnprintf(e->text, sizeof e->text, format, args);
    va_end(args);
    return -1;
}

/* With the lock held: is this the thread whose operations are recorded? */
static int is_recorder(const struct sh_dev *d)
{
    return d->is_recording && pthread_equal(d->recorder, pthread_self());
}

void cuda_fail_as(struct sh_dev *d, const struct sh_err *e)
{
    pthread_mutex_lock(&d->lock);
    if (is_recorder(d)) {
        const char *more = strchr(e->text, ';');        /* what else ran does not matter here */
        size_t length = more ? (size_t)(more - e->text) : strlen(e->text);
        if (!d->why_eager[0])
            snprintf(d->why_eager, sizeof d->why_eager, "%.*s", (int)length, e->text);
        d->is_spoiled = 1;
    } else {
        if (!d->failed)
            d->error = *e;
        d->failed = 1;
    }
    pthread_mutex_unlock(&d->lock);
}

void cuda_fail(struct sh_dev *d, const char *format, ...)
{
    char text[600];
    struct sh_err e;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    refuse(&e, SH_FAILED, "backend cuda: device %d: %s", d->ordinal, text);
    cuda_fail_as(d, &e);
}

int cuda_has_failed(struct sh_dev *d)
{
    pthread_mutex_lock(&d->lock);
    int failed = d->failed || (d->is_spoiled && is_recorder(d));
    pthread_mutex_unlock(&d->lock);
    return failed;
}

/* The device reports errors late: the cause is among the operations since its last good sync. */
static void fail_in(struct sh_dev *d, const char *what, const char *why, const char *name)
{
    char since[sizeof d->queued];
    pthread_mutex_lock(&d->lock);
    memcpy(since, d->queued, sizeof since);
    pthread_mutex_unlock(&d->lock);
    cuda_fail(d, "%s: %s (%s); operations since the last successful wait: %s", what, why, name,
              since[0] ? since : "none");
}

int cuda_check(struct sh_dev *d, const char *what, cudaError_t status)
{
    if (status != cudaSuccess)
        fail_in(d, what, cudaGetErrorString(status), cudaGetErrorName(status));
    return status == cudaSuccess && !cuda_has_failed(d) ? 0 : -1;
}

int cuda_check_blas(struct sh_dev *d, const char *what, cublasStatus_t status)
{
    cudaError_t below = status == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaGetLastError();
    if (below != cudaSuccess)
        return cuda_check(d, what, below);              /* which says more */
    if (status != CUBLAS_STATUS_SUCCESS)
        fail_in(d, what, cublasGetStatusString(status), "cuBLAS");
    return status == CUBLAS_STATUS_SUCCESS && !cuda_has_failed(d) ? 0 : -1;
}

int cuda_begin(struct sh_dev *d, const char *operation)
{
    if (cuda_has_failed(d) || cuda_check(d, operation, cudaSetDevice(d->ordinal)))
        return -1;
    pthread_mutex_lock(&d->lock);
    int is_strange = d->has_user && !pthread_equal(d->user, pthread_self());
    d->user = pthread_self();
    d->has_user = 1;
    size_t used = strlen(d->queued), more = strlen(operation);
    if (!strstr(d->queued, operation) && used + more + 3 < sizeof d->queued)
        snprintf(d->queued + used, sizeof d->queued - used, "%s%s", used ? ", " : "", operation);
    pthread_mutex_unlock(&d->lock);
    if (is_strange)
        cuda_fail(d, "%s: called from a different thread than the operation before it, without a wait for the device "
                  "in between; only alloc, release, weight, vector and drop may overlap with operations", operation);
    return is_strange ? -1 : 0;
}

void cuda_let_go(struct sh_dev *d)
{
    pthread_mutex_lock(&d->lock);
    d->has_user = 0;
    pthread_mutex_unlock(&d->lock);
}

void cuda_end(struct sh_dev *d, const char *operation)
{
    cuda_check(d, operation, cudaGetLastError());
}

/* The driver's libraries read it when they start, and it counts for more than the math mode. */
static int refuse_tf32(struct sh_err *e)
{
    const char *found = getenv("NVIDIA_TF32_OVERRIDE");
    if (!found || !*found || !strcmp(found, "0"))
        return 0;
    refuse(e, SH_ABSENT, "backend cuda: cannot open: found NVIDIA_TF32_OVERRIDE=%.20s in the environment, expected 0 "
           "or none: it would round all f32 products to TF32, with 10 bits of mantissa", found);
    snprintf(e->hint, sizeof e->hint, "unset NVIDIA_TF32_OVERRIDE, or set it to 0");
    return -1;
}

static int count(struct sh_err *e)
{
    int n = 0;
    cudaError_t status = cudaGetDeviceCount(&n);
    if (status != cudaSuccess)
        return refuse(e, SH_ABSENT, "backend cuda: cannot open: %s%s (%s)", status == cudaErrorInsufficientDriver
                      ? "this machine has no NVIDIA driver, or one that is too old: " : "", cudaGetErrorString(status),
                      cudaGetErrorName(status));
    return refuse_tf32(e) ? -1 : n;
}

static void close_device(struct sh_dev *d)
{
    if (!d)
        return;
    cudaSetDevice(d->ordinal);
    cuda_drain_free(d->drain);
    struct cuda_scratch *scratch[] = {&d->linear, &d->rounded, &d->panel, &d->embed,  &d->out,
                                      &d->scores, &d->weights, &d->rows,  &d->slopes, &d->sinks};
    for (size_t i = 0; i < sizeof scratch / sizeof *scratch; i++)
        cuda_scratch_free(d, scratch[i]);
    cuda_stages_free(&d->stages_compute);
    cuda_stages_free(&d->stages_load);
    if (d->settled)
        cudaEventDestroy(d->settled);
    for (int i = 0; i < CUDA_SPANS; i++)
        cuda_spans_free(&d->spans[i]);
    cuda_spans_free(&d->graph_spans);
    if (d->blas)
        cublasDestroy(d->blas);
    cuda_memory_close(d);
    cudaStream_t stream[] = {d->compute, d->record, d->values, d->load};
    for (int i = 0; i < 4; i++)
        if (stream[i])
            cudaStreamDestroy(stream[i]);
    pthread_mutex_destroy(&d->room);
    pthread_mutex_destroy(&d->lock);
    pthread_mutex_destroy(&d->spans_lock);
    free(d);
}

/* The memory that may be taken: what is free now, or less. */
static int set_limit(struct sh_dev *d, size_t asked, struct sh_err *e)
{
    size_t free_bytes, total;
    if (cuda_check(d, "memory", cudaMemGetInfo(&free_bytes, &total)))
        return -1;
    size_t most = free_bytes - free_bytes / 32;         /* the driver and cuBLAS take some later */
    if (asked > most)
        return refuse(e, SH_FAILED, "backend cuda: device %d: cannot use %zu bytes: %zu of its %zu are free",
                      d->ordinal, asked, most, total);
    d->limit = asked ? asked : most;
    return 0;
}

/* Before the stages, which take all the pinned memory that they want. */
static int start_drain(struct sh_dev *d, struct sh_err *e)
{
    d->drain = cuda_drain_new(d);
    if (d->drain || cuda_has_failed(d))
        return d->drain ? 0 : -1;
    return refuse(e, SH_FAILED, "backend cuda: device %d: cannot start the recording thread", d->ordinal);
}

static int start(struct sh_dev *d)
{
    cudaStream_t *stream[] = {&d->compute, &d->record, &d->values, &d->load};
    for (int i = 0; i < 4; i++)
        if (cuda_check(d, "stream", cudaStreamCreateWithFlags(stream[i], cudaStreamNonBlocking)))
            return -1;
    if (cuda_check_blas(d, "cuBLAS", cublasCreate(&d->blas)) ||
        cuda_check_blas(d, "cuBLAS", cublasSetStream(d->blas, d->compute)) ||
        cuda_check_blas(d, "cuBLAS", cublasSetMathMode(d->blas, MATH)))
        return -1;
    return cuda_check(d, "event", cudaEventCreateWithFlags(&d->settled, CUDA_EVENT_SLEEPS)) || cuda_stages_new(d);
}

/* What every run needs of the device's memory. */
static int take_first_memory(struct sh_dev *d, struct sh_err *e)
{
    void *workspace = cuda_alloc(d, WORKSPACE_BYTES, e);
    if (!workspace || !(d->fault = (int *)cuda_alloc(d, sizeof *d->fault, e)))
        return -1;
    for (int i = 0; i < CUDA_STAGES; i++)
        if (!(d->load_raw[i] = cuda_alloc(d, CUDA_STAGE_BYTES, e)))
            return -1;
    return !cuda_scratch_at(d, &d->embed, CUDA_STAGE_BYTES) ||
           cuda_check_blas(d, "cuBLAS", cublasSetWorkspace(d->blas, workspace, WORKSPACE_BYTES)) ||
           cuda_check(d, "memory", cudaMemsetAsync(d->fault, 0, sizeof *d->fault, d->compute));
}

static __global__ void any_kernel() {}

/* Is there code for this chip among what the module was built with? Else the first launch would say so. */
static int has_code(struct sh_dev *d, const cudaDeviceProp *about, struct sh_err *e)
{
    cudaFuncAttributes code;
    cudaError_t status = cudaFuncGetAttributes(&code, (const void *)any_kernel);
    if (status == cudaSuccess)
        return 1;
    cudaGetLastError();
    refuse(e, SH_ABSENT, "backend cuda: cannot open: device %d (%.80s) has compute capability %d.%d, for which this "
           "program was not built: %s (%s)", d->ordinal, about->name, about->major, about->minor,
           cudaGetErrorString(status), cudaGetErrorName(status));
    return 0;
}

static struct sh_dev *open_device(const struct sh_open *o, struct sh_err *e)
{
    cudaDeviceProp about;
    size_t total;
    int n = count(e);
    if (n < 0)
        return NULL;
    if (o->ordinal < 0 || o->ordinal >= n) {
        refuse(e, SH_ABSENT, "backend cuda: cannot open: no device %d, found %d device%s", o->ordinal, n,
               n == 1 ? "" : "s");
        return NULL;
    }
    struct sh_dev *d = (struct sh_dev *)calloc(1, sizeof *d);
    if (!d) {
        refuse(e, SH_FAILED, "backend cuda: out of memory");
        return NULL;
    }
    pthread_mutex_init(&d->room, NULL);
    pthread_mutex_init(&d->lock, NULL);
    pthread_mutex_init(&d->spans_lock, NULL);
    d->stages = o->stages;
    d->ordinal = o->ordinal;
    d->n_threads = o->n_threads > 0 ? o->n_threads : 1;
    d->weight_bits = 16;
    d->x_bits = o->x_bits;
    e->text[0] = '\0';
    int bad = cuda_check(d, "open", cudaSetDevice(d->ordinal)) ||
              cuda_check(d, "open", cudaGetDeviceProperties(&about, d->ordinal)) || !has_code(d, &about, e) ||
              cuda_check(d, "memory", cudaMemGetInfo(&d->free_at_first, &total)) || start_drain(d, e) || start(d) ||
              set_limit(d, o->memory_bytes, e) || take_first_memory(d, e);
    if (bad) {
        if (!e->text[0])
            *e = d->error;
        close_device(d);
        return NULL;
    }
    snprintf(d->chip, sizeof d->chip, "%.80s, %d SMs, compute capability %d.%d", about.name,
             about.multiProcessorCount, about.major, about.minor);
    return d;
}

static void props(const struct sh_dev *d, struct sh_props *out)
{
    memset(out, 0, sizeof *out);
    memcpy(out->chip, d->chip, sizeof out->chip);
    out->native_bf16 = 1;
    struct sh_dev *own = (struct sh_dev *)d;            /* for the lock and the device's count */
    cudaSetDevice(d->ordinal);
    pthread_mutex_lock(&own->lock);
    cuda_note_used(own);
    size_t in_use = 0;
    for (const struct cuda_block *b = d->blocks; b; b = b->next)
        in_use += b->in_use ? b->bytes : 0;
    out->memory_bytes = d->limit > in_use ? d->limit - in_use : 0;
    out->taken_bytes = in_use;
    out->peak_bytes = d->peak;
    out->used_bytes = d->used;
    pthread_mutex_unlock(&own->lock);
    memcpy(out->why_eager, d->why_eager, sizeof out->why_eager);
    out->rows_at_once = ROWS_AT_ONCE;
}

static int sync_device(struct sh_dev *d, struct sh_err *e)
{
    int fault = 0;
    cuda_let_go(d);
    if (!cuda_has_failed(d) && !cuda_check(d, "sync", cudaSetDevice(d->ordinal)))
        cuda_get(d, &fault, d->fault, sizeof fault);
    cuda_drain_wait(d->drain);
    cuda_let_go(d);
    cuda_graphs_read(d);
    cuda_spans_read(d);
    if (fault)
        cuda_fail(d, "the attention of sequence %d of this batch is not a number: its activations overflowed",
                  fault - 1);
    if (cuda_has_failed(d)) {
        *e = d->error;
        return -1;
    }
    pthread_mutex_lock(&d->lock);
    d->queued[0] = '\0';
    pthread_mutex_unlock(&d->lock);
    return 0;
}

extern "C" __attribute__((visibility("default"))) const struct sh_backend sh_backend_module = {
    SH_BACKEND_ABI,
    "cuda",
    "cuBLAS products and our own kernels on NVIDIA GPUs",
    count,
    open_device,
    close_device,
    props,
    cuda_alloc,
    cuda_release,
    cuda_put,
    cuda_get,
    cuda_weight,
    cuda_weight_bits,
    cuda_vector,
    cuda_drop,
    cuda_attend_bytes,
    cuda_linear_bytes,
    cuda_embed,
    cuda_linear,
    cuda_norm,
    cuda_cast,
    cuda_rotary,
    cuda_gate,
    cuda_gather,
    cuda_scatter,
    cuda_attend,
    cuda_conv,
    cuda_delta,
    cuda_scan,
    cuda_lru,
    sync_device,
    &cuda_slots_ops,
    &cuda_graph_ops,
    NULL,
    cuda_best,
    cuda_packed,
    NULL,
};
