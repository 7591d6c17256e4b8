/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: blocks that are kept when they are released and found again by size (the next layer
 * asks for the same sizes), never more than the device's limit in all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.cuh"

static size_t rounded(size_t bytes)
{
    return (bytes + 511) / 512 * 512 + (bytes ? 0 : 512);
}

static void discard(struct sh_dev *d, struct cuda_block **at)
{
    struct cuda_block *b = *at;
    *at = b->next;
    d->taken -= b->bytes;
    cudaEventDestroy(b->idle);
    cudaFree(b->at);                    /* waits for what still uses it */
    free(b);
}

/* Give what is not in use back to the device. */
static void trim(struct sh_dev *d)
{
    for (struct cuda_block **at = &d->blocks; *at;)
        if ((*at)->in_use)
            at = &(*at)->next;
        else
            discard(d, at);
}

static struct cuda_block *find(struct sh_dev *d, size_t bytes)
{
    for (struct cuda_block *b = d->blocks; b; b = b->next)
        if (!b->in_use && b->bytes == bytes)
            return b;
    return NULL;
}

void cuda_note_used(struct sh_dev *d)
{
    size_t left, total;
    if (cudaMemGetInfo(&left, &total) == cudaSuccess && left < d->free_at_first)
        d->used = d->free_at_first - left > d->used ? d->free_at_first - left : d->used;
}

/* NULL: it does not fit, or *why says what is wrong with the device. */
static struct cuda_block *take(struct sh_dev *d, size_t bytes, cudaError_t *why)
{
    if (bytes > d->limit || d->taken > d->limit - bytes)
        trim(d);
    if (bytes > d->limit || d->taken > d->limit - bytes)
        return NULL;
    struct cuda_block *b = (struct cuda_block *)calloc(1, sizeof *b);
    if (!b)
        return NULL;
    *why = cudaMalloc(&b->at, bytes);
    if (*why == cudaErrorMemoryAllocation) {
        cudaGetLastError();             /* too little memory does not stick */
        trim(d);
        *why = cudaMalloc(&b->at, bytes);
    }
    if (*why == cudaSuccess && (*why = cudaEventCreateWithFlags(&b->idle, cudaEventDisableTiming)) != cudaSuccess)
        cudaFree(b->at);
    if (*why != cudaSuccess) {
        cudaGetLastError();
        free(b);
        return NULL;
    }
    b->bytes = bytes;
    b->next = d->blocks;
    d->blocks = b;
    d->taken += bytes;
    d->peak = d->taken > d->peak ? d->taken : d->peak;
    cuda_note_used(d);
    return b;
}

void *cuda_alloc(struct sh_dev *d, size_t bytes, struct sh_err *e)
{
    cudaSetDevice(d->ordinal);
    size_t whole = rounded(bytes);
    cudaError_t why = cudaSuccess;
    pthread_mutex_lock(&d->lock);
    if (d->failed) {
        *e = d->error;
        pthread_mutex_unlock(&d->lock);
        return NULL;
    }
    struct cuda_block *b = find(d, whole);
    if (!b)
        b = take(d, whole, &why);
    if (b) {
        b->in_use = 1;
    } else {
        e->status = SH_FAILED;
        snprintf(e->text, sizeof e->text,
                 "backend cuda: device %d: %zu bytes more do not fit: %zu are taken of the %zu that may be", d->ordinal,
                 bytes, d->taken, d->limit);
        snprintf(e->hint, sizeof e->hint, "at least %zu bytes are needed: give more with --device-memory, if the "
                 "device has them; shorter texts and smaller caches need less", d->taken + whole);
    }
    pthread_mutex_unlock(&d->lock);
    if (why != cudaSuccess && why != cudaErrorMemoryAllocation) {
        cuda_check(d, "memory", why);
        *e = d->error;
    }
    return b ? b->at : NULL;
}

static struct cuda_block *block_of(struct sh_dev *d, const void *at)
{
    for (struct cuda_block *b = d->blocks; b; b = b->next)
        if (b->at == at)
            return b;
    return NULL;
}

void cuda_release(struct sh_dev *d, void *at)
{
    if (!at)
        return;
    cudaSetDevice(d->ordinal);
    pthread_mutex_lock(&d->lock);
    struct cuda_block *b = block_of(d, at);
    if (b) {
        cudaEventRecord(b->idle, d->compute);
        b->in_use = 0;
    }
    pthread_mutex_unlock(&d->lock);
}

void cuda_wait_idle(struct sh_dev *d, const void *at, cudaStream_t stream)
{
    pthread_mutex_lock(&d->lock);
    struct cuda_block *b = block_of(d, at);
    cudaError_t status = b ? cudaStreamWaitEvent(stream, b->idle, 0) : cudaSuccess;
    pthread_mutex_unlock(&d->lock);
    cuda_check(d, "memory", status);
}

void cuda_memory_close(struct sh_dev *d)
{
    for (struct cuda_block *b = d->blocks; b; b = b->next)
        b->in_use = 0;
    trim(d);
}

/* From pageable memory the runtime returns when the source has been read, into it when it is written. */
void cuda_put(struct sh_dev *d, void *to, const void *from, size_t bytes)
{
    if (!cuda_begin(d, "put"))
        cuda_check(d, "put", cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, d->compute));
}

void cuda_get(struct sh_dev *d, void *to, const void *from, size_t bytes)
{
    if (!cuda_begin(d, "get") &&
        !cuda_check(d, "get", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, d->compute)))
        cuda_check(d, "get", cudaStreamSynchronize(d->compute));
}

/* A graph has its scratch's address for good. */
static void outgrow(struct sh_dev *d, struct cuda_scratch *s)
{
    struct cuda_outgrown *o = s->in_graph && d->n_graph ? (struct cuda_outgrown *)calloc(1, sizeof *o) : NULL;
    if (s->in_graph && d->n_graph && !o)
        cuda_fail(d, "graph: out of memory");
    if (o) {
        *o = {s->at, d->outgrown};
        d->outgrown = o;
        s->at = NULL;
    }
    cuda_scratch_free(d, s);
}

void cuda_outgrown_free(struct sh_dev *d)
{
    while (d->outgrown) {
        struct cuda_outgrown *o = d->outgrown;
        d->outgrown = o->next;
        cuda_discard(d, o->at);
        free(o);
    }
}

void *cuda_scratch_at(struct sh_dev *d, struct cuda_scratch *s, size_t bytes)
{
    struct sh_err e;
    if (s->bytes < bytes || !s->at) {
        outgrow(d, s);
        s->at = cuda_alloc(d, bytes, &e);
        s->bytes = s->at ? bytes : 0;
        if (!s->at)
            cuda_fail_as(d, &e);
    }
    s->in_graph |= d->is_recording;
    return s->at;
}

void cuda_discard(struct sh_dev *d, void *memory)
{
    cuda_release(d, memory);
    pthread_mutex_lock(&d->lock);
    for (struct cuda_block **at = &d->blocks; memory && *at; at = &(*at)->next)
        if ((*at)->at == memory) {
            discard(d, at);
            break;
        }
    pthread_mutex_unlock(&d->lock);
}

void cuda_scratch_free(struct sh_dev *d, struct cuda_scratch *s)
{
    cuda_discard(d, s->at);
    *s = {};
}

cudaError_t cuda_stages_new(struct cuda_stage stage[CUDA_STAGES])
{
    for (int i = 0; i < CUDA_STAGES; i++) {
        cudaError_t status = cudaHostAlloc(&stage[i].at, CUDA_STAGE_BYTES, cudaHostAllocDefault);
        if (status == cudaSuccess)
            status = cudaEventCreateWithFlags(&stage[i].done, cudaEventDisableTiming);
        if (status != cudaSuccess)
            return status;
    }
    return cudaSuccess;
}

void cuda_stages_free(struct cuda_stage stage[CUDA_STAGES])
{
    for (int i = 0; i < CUDA_STAGES; i++) {
        if (stage[i].done) {
            cudaEventSynchronize(stage[i].done);
            cudaEventDestroy(stage[i].done);
        }
        if (stage[i].at)
            cudaFreeHost(stage[i].at);
    }
}

void *cuda_stage_at(struct sh_dev *d, struct cuda_stage *s, const char *what)
{
    if (s->used && cuda_check(d, what, cudaEventSynchronize(s->done)))
        return NULL;
    return s->at;
}

void cuda_stage_sent(struct sh_dev *d, struct cuda_stage *s, cudaStream_t stream, const char *what)
{
    s->used = 1;
    cuda_check(d, what, cudaEventRecord(s->done, stream));
}
