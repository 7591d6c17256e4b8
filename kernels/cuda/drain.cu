/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs are numbered; job k uses slot k % CUDA_SLOTS. Every worker takes every job, for its
 * own heads; the first one to come waits for the copy. */
#include "kernels/cuda/cuda.cuh"

#include <stdlib.h>


enum { FIRST_ROOM = 1 << 20, LEAST_ROOM = 64 << 10 };

enum slot_state { SLOT_FREE, SLOT_SENT, SLOT_FETCHING, SLOT_READY };

struct slot {
    struct cuda_job job;
    struct cuda_scratch memory;         /* on the device */
    cudaEvent_t packed, copied;
    enum slot_state state;
    int left;                           /* workers that have not been here */
    int bad;
};

struct worker {
    struct cuda_drain *drain;
    pthread_t thread;
    int number;
};

struct cuda_drain {
    struct sh_dev *d;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct slot slot[CUDA_SLOTS];
    size_t room, refused;               /* bytes: pinned memory of each slot; the least that was not to be had */
    unsigned long sent, done;           /* jobs */
    struct worker *worker;
    int n_worker, ending;
};

/* How many scores are not low is known only now: the values are a copy of their own. The host has waited for the tile,
 * so their stream need not. */
static int fetch(struct sh_dev *d, struct slot *s)
{
    const struct cuda_job *job = &s->job;
    if (cuda_check(d, "record", cudaSetDevice(d->ordinal)) || cuda_check(d, "record", cudaEventSynchronize(s->copied)))
        return -1;
    if (job->tap.pack != SH_PACK_SETS || !job->values)
        return 0;
    char *pinned = (char *)job->pinned;
    const uint32_t *count = (const uint32_t *)(pinned + job->layout.count_at);
    size_t at = job->layout.value_at, bytes = count[job->n_head * job->n_rows] * sizeof(float);
    if (!bytes)
        return 0;
    struct cuda_spans *spans = &d->spans[CUDA_SPANS_VALUES];
    cuda_span_begin(d, spans, SH_STAGE_COPY, d->values);
    int bad = cuda_check(d, "record", cudaMemcpyAsync(pinned + at, (char *)job->device + at, bytes,
                                                      cudaMemcpyDeviceToHost, d->values));
    cuda_span_end(d, spans, d->values);
    return bad || cuda_check(d, "record", cudaEventRecord(s->copied, d->values)) ||
           cuda_check(d, "record", cudaEventSynchronize(s->copied));
}

static void hand_out(const struct cuda_job *job, int head)
{
    const struct cuda_layout *l = &job->layout;
    const char *pinned = (const char *)job->pinned;
    const void *packed = pinned + (size_t)head * l->head_bytes;
    struct sh_row_sets sets;
    if (job->tap.pack == SH_PACK_SETS) {
        size_t row = (size_t)head * (size_t)job->n_rows, words = (size_t)(job->n_lane + 1) * (size_t)job->n_word;
        sets.first_word = job->first_word;
        sets.n_word = job->n_word;
        sets.bits = (const uint64_t *)(pinned + l->bits_at) + row * words;
        sets.figures = (const struct sh_row_figures *)(pinned + l->figures_at) + row;
        sets.value = job->values ? (const float *)(pinned + l->value_at) +
                                       ((const uint32_t *)(pinned + l->count_at))[row]
                                 : NULL;
        packed = &sets;
    }
    job->tap.rows(job->tap.to, job->sequence, head, job->first_row, job->n_rows, packed);
}

/* With the lock held: the slot's rows are in pinned memory when this returns. */
static void make_ready(struct cuda_drain *n, struct slot *s)
{
    if (s->state == SLOT_SENT) {
        s->state = SLOT_FETCHING;
        pthread_mutex_unlock(&n->lock);
        int bad = fetch(n->d, s);
        pthread_mutex_lock(&n->lock);
        s->bad = bad;
        s->state = SLOT_READY;
        pthread_cond_broadcast(&n->changed);
    }
    while (s->state != SLOT_READY)
        pthread_cond_wait(&n->changed, &n->lock);
}

static void *work(void *argument)
{
    struct worker *w = (struct worker *)argument;
    struct cuda_drain *n = w->drain;
    pthread_mutex_lock(&n->lock);
    for (unsigned long job = 0;; job++) {
        while (job == n->sent && !n->ending)
            pthread_cond_wait(&n->changed, &n->lock);
        if (job == n->sent)
            break;
        struct slot *s = &n->slot[job % CUDA_SLOTS];
        make_ready(n, s);
        pthread_mutex_unlock(&n->lock);
        for (int head = w->number; head < s->job.n_head && !s->bad; head += n->n_worker)
            hand_out(&s->job, head);
        pthread_mutex_lock(&n->lock);
        if (--s->left == 0) {
            s->state = SLOT_FREE;
            n->done++;
            pthread_cond_broadcast(&n->changed);
        }
    }
    pthread_mutex_unlock(&n->lock);
    return NULL;
}

/* Nothing is on its way. The room of each slot; 0: the device has failed. */
static size_t make_room(struct sh_dev *d, struct cuda_drain *n, size_t bytes, size_t least)
{
    void **at[CUDA_SLOTS];
    for (int i = 0; i < CUDA_SLOTS; i++) {
        at[i] = &n->slot[i].job.pinned;
        if (*at[i])
            cudaFreeHost(*at[i]);
        *at[i] = NULL;
    }
    n->room = cuda_pinned(d, at, CUDA_SLOTS, bytes, least);
    n->refused = n->room < bytes ? bytes : n->refused;
    return n->room;
}

struct cuda_drain *cuda_drain_new(struct sh_dev *d)
{
    struct cuda_drain *n = (struct cuda_drain *)calloc(1, sizeof *n);
    if (!n)
        return NULL;
    n->d = d;
    pthread_mutex_init(&n->lock, NULL);
    pthread_cond_init(&n->changed, NULL);
    n->worker = (struct worker *)calloc((size_t)d->n_threads, sizeof *n->worker);
    int bad = !n->worker;
    for (int i = 0; i < CUDA_SLOTS && !bad; i++)
        bad = cuda_check(d, "record", cudaEventCreateWithFlags(&n->slot[i].packed, cudaEventDisableTiming)) ||
              cuda_check(d, "record", cudaEventCreateWithFlags(&n->slot[i].copied, CUDA_EVENT_SLEEPS));
    pthread_mutex_lock(&n->lock);                       /* none runs before n_worker is known */
    for (int i = 0; i < d->n_threads && !bad; i++) {
        struct worker *w = &n->worker[i];
        w->drain = n;
        w->number = i;
        bad = pthread_create(&w->thread, NULL, work, w);
        n->n_worker += !bad;
    }
    pthread_mutex_unlock(&n->lock);
    if (!bad && make_room(d, n, FIRST_ROOM, LEAST_ROOM))
        return n;
    cuda_drain_free(n);
    return NULL;
}

void cuda_drain_free(struct cuda_drain *n)
{
    if (!n)
        return;
    pthread_mutex_lock(&n->lock);
    n->ending = 1;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
    for (int i = 0; i < n->n_worker; i++)
        pthread_join(n->worker[i].thread, NULL);
    for (int i = 0; i < CUDA_SLOTS; i++) {
        struct slot *s = &n->slot[i];
        cuda_scratch_free(n->d, &s->memory);
        if (s->job.pinned)
            cudaFreeHost(s->job.pinned);
        if (s->packed)
            cudaEventDestroy(s->packed);
        if (s->copied)
            cudaEventDestroy(s->copied);
    }
    pthread_cond_destroy(&n->changed);
    pthread_mutex_destroy(&n->lock);
    free(n->worker);
    free(n);
}

size_t cuda_drain_room(struct sh_dev *d, size_t bytes, size_t least)
{
    struct cuda_drain *n = d->drain;
    if (n->room >= bytes || (n->refused && bytes >= n->refused && n->room >= least))
        return n->room;
    cuda_drain_wait(n);
    return make_room(d, n, bytes, least);
}

struct cuda_job *cuda_drain_job(struct sh_dev *d, const struct cuda_layout *layout, size_t most_bytes)
{
    struct cuda_drain *n = d->drain;
    pthread_mutex_lock(&n->lock);
    struct slot *s = &n->slot[n->sent % CUDA_SLOTS];
    while (s->state != SLOT_FREE)
        pthread_cond_wait(&n->changed, &n->lock);
    pthread_mutex_unlock(&n->lock);
    if (!(s->job.device = cuda_scratch_at(d, &s->memory, layout->bytes > most_bytes ? layout->bytes : most_bytes)))
        return NULL;
    s->job.layout = *layout;
    return &s->job;
}

void cuda_drain_send(struct sh_dev *d, struct cuda_job *job)
{
    struct cuda_drain *n = d->drain;
    struct slot *s = &n->slot[n->sent % CUDA_SLOTS];
    struct cuda_spans *spans = &d->spans[CUDA_SPANS_RECORD];
    if (cuda_check(d, "record", cudaEventRecord(s->packed, d->compute)) ||
        cuda_check(d, "record", cudaStreamWaitEvent(d->record, s->packed, 0)))
        return;
    cuda_span_begin(d, spans, SH_STAGE_COPY, d->record);
    int bad = cuda_check(d, "record", cudaMemcpyAsync(job->pinned, job->device, job->layout.fetch_bytes,
                                                      cudaMemcpyDeviceToHost, d->record));
    cuda_span_end(d, spans, d->record);
    if (bad || cuda_check(d, "record", cudaEventRecord(s->copied, d->record)))
        return;
    pthread_mutex_lock(&n->lock);
    s->state = SLOT_SENT;
    s->left = n->n_worker;
    s->bad = 0;
    n->sent++;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
}

void cuda_drain_wait(struct cuda_drain *n)
{
    pthread_mutex_lock(&n->lock);
    while (n->done != n->sent)
        pthread_cond_wait(&n->changed, &n->lock);
    pthread_mutex_unlock(&n->lock);
}
