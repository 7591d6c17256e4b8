/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between the host's memory and the device's go through pinned memory. CUDA may read pageable memory when the
 * stream comes to the copy, long after the call, and keeps a processor busy where it waits for one. */
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/cuda.cuh"

extern "C" {
#include "src/base/team.h"
}

enum { STEP = 256, LEAST_BYTES = 256 << 10, PART_BYTES = 512 << 10, MOST_COPIERS = 8 };

struct parts {                          /* of a copy in the host's memory                          */
    char *to;
    const char *from;
    size_t bytes;
};

static void copy_part(void *arg, int i)
{
    const struct parts *p = (const struct parts *)arg;
    size_t at = (size_t)i * PART_BYTES, most = PART_BYTES, left = p->bytes - at;
    memcpy(p->to + at, p->from + at, left < most ? left : most);
}

/* One thread copies at a third of what the bus takes, and less where pages come in from a file. */
void cuda_copy_host(struct sh_dev *d, void *to, const void *from, size_t bytes)
{
    struct parts p = {(char *)to, (const char *)from, bytes};
    sh_team_each(d->n_threads < MOST_COPIERS ? d->n_threads : MOST_COPIERS,
                 (int)((bytes + PART_BYTES - 1) / PART_BYTES), copy_part, &p);
}

static void free_pinned(void **const at[], int n)
{
    for (int i = 0; i < n; i++) {
        if (*at[i])
            cudaFreeHost(*at[i]);
        *at[i] = NULL;
    }
}

static void say_short(struct sh_dev *d, int n, size_t bytes, size_t least, cudaError_t status)
{
    struct sh_err e;
    e.status = SH_FAILED;
    snprintf(e.text, sizeof e.text,
             "backend cuda: device %d: cannot allocate pinned memory, neither %d times %zu bytes nor %d times %zu: "
             "%s (%s)", d->ordinal, n, bytes, n, least, cudaGetErrorString(status),
             cudaGetErrorName(status));
    snprintf(e.hint, sizeof e.hint, "pinned memory is locked host memory: raise the limit on it (ulimit -l), or stop "
             "other programs that lock memory");
    cuda_fail_as(d, &e);
}

size_t cuda_pinned(struct sh_dev *d, void **const at[], int n, size_t bytes, size_t least)
{
    cudaError_t status = cudaSuccess;
    for (size_t size = bytes;; size = size / 2 > least ? size / 2 : least) {
        for (int i = 0; i < n && status == cudaSuccess; i++)
            status = cudaHostAlloc(at[i], size, cudaHostAllocDefault);
        if (status == cudaSuccess)
            return size;
        cudaGetLastError();             /* too little memory does not stick */
        free_pinned(at, n);
        if (size <= least)
            break;
        status = cudaSuccess;
    }
    say_short(d, n, bytes, least, status);
    return 0;
}

int cuda_stages_new(struct sh_dev *d)
{
    enum { N = 2 * CUDA_STAGES };
    struct cuda_stages *both[] = {&d->stages_compute, &d->stages_load};
    void **at[N];
    for (int i = 0; i < N; i++)
        at[i] = &both[i / CUDA_STAGES]->at[i % CUDA_STAGES].at;
    size_t bytes = cuda_pinned(d, at, N, CUDA_STAGE_BYTES, LEAST_BYTES);
    for (int i = 0; i < N && bytes; i++)
        if (cuda_check(d, "pinned memory", cudaEventCreateWithFlags(&both[i / CUDA_STAGES]->at[i % CUDA_STAGES].done,
                                                                    CUDA_EVENT_SLEEPS)))
            return -1;
    for (int i = 0; i < 2; i++) {
        both[i]->bytes = bytes;
        both[i]->stream = i ? d->load : d->compute;
    }
    return bytes ? 0 : -1;
}

void cuda_stages_free(struct cuda_stages *s)
{
    for (int i = 0; i < CUDA_STAGES; i++) {
        if (s->at[i].done) {
            cudaEventSynchronize(s->at[i].done);
            cudaEventDestroy(s->at[i].done);
        }
        if (s->at[i].at)
            cudaFreeHost(s->at[i].at);
    }
}

void *cuda_stage_at(struct sh_dev *d, struct cuda_stages *s, size_t bytes, const char *what)
{
    if (s->filled + bytes > s->bytes) {
        s->turn = (s->turn + 1) % CUDA_STAGES;
        s->filled = 0;
        struct cuda_stage *next = &s->at[s->turn];
        if (next->used && cuda_check(d, what, cudaEventSynchronize(next->done)))
            return NULL;
    }
    void *at = (char *)s->at[s->turn].at + s->filled;
    s->filled += (bytes + STEP - 1) / STEP * STEP;
    return at;
}

int cuda_stage_sent(struct sh_dev *d, struct cuda_stages *s, const char *what)
{
    struct cuda_stage *now = &s->at[s->turn];
    now->used = 1;
    return cuda_check(d, what, cudaEventRecord(now->done, s->stream));
}

/* One piece of at most a stage, into pinned memory or out of it. */
static int copy_piece(struct sh_dev *d, struct cuda_stages *s, void *to, const void *from, size_t bytes,
                      cudaMemcpyKind kind, struct cuda_spans *spans, const char *what)
{
    cuda_span_begin(d, spans, SH_STAGE_COPY, s->stream);
    int bad = cuda_check(d, what, cudaMemcpyAsync(to, from, bytes, kind, s->stream));
    cuda_span_end(d, spans, s->stream);
    return bad || cuda_stage_sent(d, s, what);
}

static void send(struct sh_dev *d, struct cuda_stages *s, void *to, const void *from, size_t bytes,
                 struct cuda_spans *spans, const char *what)
{
    for (size_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < s->bytes ? bytes - at : s->bytes;
        void *pinned = cuda_stage_at(d, s, n, what);
        if (!pinned)
            return;
        cuda_copy_host(d, pinned, (const char *)from + at, n);
        if (copy_piece(d, s, (char *)to + at, pinned, n, cudaMemcpyHostToDevice, spans, what))
            return;
    }
}

void cuda_put(struct sh_dev *d, void *to, const void *from, size_t bytes)
{
    if (!cuda_begin(d, "put"))
        send(d, &d->stages_compute, to, from, bytes, cuda_compute_spans(d), "put");
}

struct piece {                          /* on its way to the host: it has a stage for itself, or is alone */
    const void *pinned;
    void *to;
    size_t bytes;
    cudaEvent_t done;
};

static int take(struct sh_dev *d, const struct piece *p)
{
    if (p->bytes && cuda_check(d, "get", cudaEventSynchronize(p->done)))
        return -1;
    if (p->bytes)
        cuda_copy_host(d, p->to, p->pinned, p->bytes);
    return 0;
}

/* While a piece travels the one before it is taken out of its stage. */
void cuda_get(struct sh_dev *d, void *to, const void *from, size_t bytes)
{
    struct cuda_stages *s = &d->stages_compute;
    struct piece before = {}, now;
    if (cuda_begin(d, "get"))
        return;
    cuda_arrived(d, from);
    for (size_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < s->bytes ? bytes - at : s->bytes;
        void *pinned = cuda_stage_at(d, s, n, "get");
        if (!pinned || copy_piece(d, s, pinned, (const char *)from + at, n, cudaMemcpyDeviceToHost,
                                  cuda_compute_spans(d), "get"))
            return;
        now = {pinned, (char *)to + at, n, s->at[s->turn].done};
        if (take(d, &before))
            return;
        before = now;
    }
    if (!take(d, &before))
        cuda_let_go(d);
}

float *cuda_vector(struct sh_dev *d, const float *from, size_t n, struct sh_err *e)
{
    float *at = (float *)cuda_alloc(d, n * sizeof *at, e);
    if (!at)
        return NULL;
    cuda_wait_idle(d, at, d->load);
    send(d, &d->stages_load, at, from, n * sizeof *at, &d->spans[CUDA_SPANS_LOAD], "vector");
    cuda_is_coming(d, at);
    if (!cuda_has_failed(d))
        return at;
    *e = d->error;
    cuda_release(d, at);
    return NULL;
}

void cuda_wait(struct sh_dev *d, const char *what)
{
    cudaError_t status = cudaEventRecord(d->settled, d->compute);
    cuda_check(d, what, status == cudaSuccess ? cudaEventSynchronize(d->settled) : status);
}
