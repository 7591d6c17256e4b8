/* SPDX-License-Identifier: Apache-2.0 */
/* Timers of stages (cuda.cuh). Spans of a stream end in the order in which they begin, so reading stops at the first
 * one that the device has not reached. Spans of a graph are recorded anew by each of its runs. */
#include <stdlib.h>

#include "kernels/cuda/cuda.cuh"

enum { FIRST_ROOM = 64 };

static struct cuda_span *span_at(struct cuda_spans *s, int i)
{
    return &s->at[(s->first + i) % s->room];
}

/* Room for one more, with its events. 0, or -1: the time of this span is not measured. */
static int make_room(struct cuda_spans *s)
{
    if (s->n < s->room)
        return 0;
    int room = s->room ? 2 * s->room : FIRST_ROOM;
    struct cuda_span *at = (struct cuda_span *)calloc((size_t)room, sizeof *at);
    for (int i = 0; at && i < s->n; i++)
        at[i] = *span_at(s, i);
    if (!at)
        return -1;
    free(s->at);
    s->at = at;
    s->first = 0;
    s->room = room;
    return 0;
}

static int has_events(struct cuda_span *span)
{
    if (!span->begin && cudaEventCreateWithFlags(&span->begin, cudaEventDefault) != cudaSuccess)
        return 0;
    return span->end || cudaEventCreateWithFlags(&span->end, cudaEventDefault) == cudaSuccess;
}

static void record(struct sh_dev *d, cudaEvent_t event, cudaStream_t stream)
{
    int in_graph = stream == d->compute && d->is_recording;
    cuda_check(d, "timing", in_graph ? cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal)
                                     : cudaEventRecord(event, stream));
}

void cuda_span_begin(struct sh_dev *d, struct cuda_spans *s, enum sh_stage stage, cudaStream_t stream)
{
    if (!d->stages || cuda_has_failed(d))
        return;
    pthread_mutex_lock(&d->spans_lock);
    if (!make_room(s) && has_events(span_at(s, s->n))) {
        struct cuda_span *span = span_at(s, s->n++);
        span->stage = stage;
        record(d, span->begin, stream);
        s->is_open = 1;
    }
    pthread_mutex_unlock(&d->spans_lock);
}

void cuda_span_end(struct sh_dev *d, struct cuda_spans *s, cudaStream_t stream)
{
    if (!d->stages)
        return;
    pthread_mutex_lock(&d->spans_lock);
    if (s->is_open)
        record(d, span_at(s, s->n - 1)->end, stream);
    s->is_open = 0;
    pthread_mutex_unlock(&d->spans_lock);
}

/* Has the device passed it? Its time, `times` over, goes to its stage. */
static int take(struct sh_dev *d, const struct cuda_span *span, int times)
{
    float ms = 0;
    if (cudaEventQuery(span->end) != cudaSuccess || cudaEventElapsedTime(&ms, span->begin, span->end) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    if (ms > 0)
        sh_stage_add(d->stages, span->stage, (unsigned long long)(1e6 * ms * times), sh_stage_sharers(d->stages, 1));
    return 1;
}

static void read(struct sh_dev *d, struct cuda_spans *s)
{
    while (s->n > s->is_open && take(d, span_at(s, 0), 1)) {
        s->first = (s->first + 1) % s->room;
        s->n--;
    }
}

void cuda_spans_read(struct sh_dev *d)
{
    if (!d->stages || d->is_recording || cuda_has_failed(d))
        return;
    pthread_mutex_lock(&d->spans_lock);
    for (int i = 0; i < CUDA_SPANS; i++)
        read(d, &d->spans[i]);
    pthread_mutex_unlock(&d->spans_lock);
}

void cuda_spans_read_graph(struct sh_dev *d, struct cuda_spans *s, int runs)
{
    if (!d->stages || !runs || cuda_has_failed(d))
        return;
    pthread_mutex_lock(&d->spans_lock);
    for (int i = 0; i < s->n && take(d, span_at(s, i), runs); i++)
        ;
    pthread_mutex_unlock(&d->spans_lock);
}

void cuda_spans_free(struct cuda_spans *s)
{
    for (int i = 0; i < s->room; i++) {
        if (s->at[i].begin)
            cudaEventDestroy(s->at[i].begin);
        if (s->at[i].end)
            cudaEventDestroy(s->at[i].end);
    }
    free(s->at);
    *s = {};
}
