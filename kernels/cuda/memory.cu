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

/* What has been taken out of the list goes back to the device. Freeing waits for all that is queued there, so `lock`,
 * which operations need, must not be held. */
static void give_back(struct sh_dev *d, struct cuda_block *list)
{
    while (list) {
        struct cuda_block *b = list;
        list = b->next;
        cudaEventDestroy(b->idle);
        if (b->ready)
            cudaEventDestroy(b->ready);
        cudaFree(b->at);                /* waits for what still uses it */
        pthread_mutex_lock(&d->lock);
        d->taken -= b->bytes;
        pthread_mutex_unlock(&d->lock);
        free(b);
    }
}

/* `memory` alone, or with NULL all that is not in use, goes back to the device; `room` is held. */
static void trim(struct sh_dev *d, const void *memory)
{
    struct cuda_block *list = NULL;
    pthread_mutex_lock(&d->lock);
    for (struct cuda_block **at = &d->blocks; *at;) {
        struct cuda_block *b = *at;
        if (b->in_use || (memory && b->at != memory)) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        b->next = list;
        list = b;
    }
    pthread_mutex_unlock(&d->lock);
    give_back(d, list);
}

void cuda_note_used(struct sh_dev *d)
{
    size_t left, total;
    if (cudaMemGetInfo(&left, &total) == cudaSuccess && left < d->free_at_first)
        d->used = d->free_at_first - left > d->used ? d->free_at_first - left : d->used;
}

static int is_beyond(struct sh_dev *d, size_t bytes)
{
    pthread_mutex_lock(&d->lock);
    int is = bytes > d->limit || d->taken > d->limit - bytes;
    pthread_mutex_unlock(&d->lock);
    return is;
}

/* A block of the device's, not in the list yet. NULL: it does not fit, or *why says what is wrong with the device. */
static struct cuda_block *block_new(struct sh_dev *d, size_t bytes, cudaError_t *why)
{
    struct cuda_block *b = (struct cuda_block *)calloc(1, sizeof *b);
    if (!b)
        return NULL;
    *why = cudaMalloc(&b->at, bytes);
    if (*why == cudaErrorMemoryAllocation) {
        cudaGetLastError();             /* too little memory does not stick */
        trim(d, NULL);
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
    b->in_use = 1;
    return b;
}

/* `room` is held, so no other thread takes what is freed here. */
static struct cuda_block *take(struct sh_dev *d, size_t bytes, cudaError_t *why)
{
    if (is_beyond(d, bytes))
        trim(d, NULL);
    struct cuda_block *b = is_beyond(d, bytes) ? NULL : block_new(d, bytes, why);
    if (!b)
        return NULL;
    pthread_mutex_lock(&d->lock);
    b->next = d->blocks;
    d->blocks = b;
    d->taken += bytes;
    d->peak = d->taken > d->peak ? d->taken : d->peak;
    cuda_note_used(d);
    pthread_mutex_unlock(&d->lock);
    return b;
}

/* One that was released, of this size. */
static struct cuda_block *take_again(struct sh_dev *d, size_t bytes)
{
    pthread_mutex_lock(&d->lock);
    struct cuda_block *b = d->blocks;
    while (b && (b->in_use || b->bytes != bytes))
        b = b->next;
    if (b)
        b->in_use = 1;
    pthread_mutex_unlock(&d->lock);
    return b;
}

static void say_full(struct sh_dev *d, size_t bytes, struct sh_err *e)
{
    pthread_mutex_lock(&d->lock);
    e->status = SH_FAILED;
    snprintf(e->text, sizeof e->text,
             "backend cuda: device %d: cannot allocate %zu more bytes: %zu of the %zu allowed are in use", d->ordinal,
             bytes, d->taken, d->limit);
    snprintf(e->hint, sizeof e->hint, "at least %zu bytes are needed: raise --device-memory if the device has that "
             "much, or use shorter texts or smaller caches", d->taken + rounded(bytes));
    pthread_mutex_unlock(&d->lock);
}

void *cuda_alloc(struct sh_dev *d, size_t bytes, struct sh_err *e)
{
    cudaSetDevice(d->ordinal);
    cudaError_t why = cudaSuccess;
    if (cuda_has_failed(d)) {
        *e = d->error;
        return NULL;
    }
    pthread_mutex_lock(&d->room);
    struct cuda_block *b = take_again(d, rounded(bytes));
    if (!b)
        b = take(d, rounded(bytes), &why);
    if (!b)
        say_full(d, bytes, e);
    pthread_mutex_unlock(&d->room);
    if (why != cudaSuccess && why != cudaErrorMemoryAllocation) {
        cuda_check(d, "memory", why);
        *e = d->error;
    }
    return b ? b->at : NULL;
}

/* With this address in it. */
static struct cuda_block *block_of(struct sh_dev *d, const void *at)
{
    for (struct cuda_block *b = d->blocks; b; b = b->next)
        if ((const char *)at >= (const char *)b->at && (const char *)at < (const char *)b->at + b->bytes)
            return b;
    return NULL;
}

/* `compute` waits for what `load` brings; `lock` is held. */
static cudaError_t wait_for(struct sh_dev *d, struct cuda_block *b)
{
    if (!b || !b->is_coming)
        return cudaSuccess;
    b->is_coming = 0;
    d->n_coming--;
    return b->ready ? cudaStreamWaitEvent(d->compute, b->ready, 0) : cudaSuccess;
}

void cuda_release(struct sh_dev *d, void *at)
{
    if (!at)
        return;
    cudaSetDevice(d->ordinal);
    pthread_mutex_lock(&d->lock);
    struct cuda_block *b = block_of(d, at);
    if (b && b->at == at) {
        wait_for(d, b);                 /* the block is idle when `compute` is past this */
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

void cuda_is_coming(struct sh_dev *d, const void *at)
{
    pthread_mutex_lock(&d->lock);
    struct cuda_block *b = block_of(d, at);
    cudaError_t status = b->ready ? cudaSuccess : cudaEventCreateWithFlags(&b->ready, cudaEventDisableTiming);
    if (status == cudaSuccess)
        status = cudaEventRecord(b->ready, d->load);
    d->n_coming += !b->is_coming;
    b->is_coming = 1;
    pthread_mutex_unlock(&d->lock);
    cuda_check(d, "vector", status);
}

void cuda_arrived(struct sh_dev *d, const void *at)
{
    pthread_mutex_lock(&d->lock);
    cudaError_t status = d->n_coming && at ? wait_for(d, block_of(d, at)) : cudaSuccess;
    pthread_mutex_unlock(&d->lock);
    cuda_check(d, "vector", status);
}

void cuda_memory_close(struct sh_dev *d)
{
    for (struct cuda_block *b = d->blocks; b; b = b->next)
        b->in_use = 0;
    pthread_mutex_lock(&d->room);
    trim(d, NULL);
    pthread_mutex_unlock(&d->room);
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
    pthread_mutex_lock(&d->room);
    if (memory)
        trim(d, memory);
    pthread_mutex_unlock(&d->room);
}

void cuda_scratch_free(struct sh_dev *d, struct cuda_scratch *s)
{
    cuda_discard(d, s->at);
    *s = {};
}
