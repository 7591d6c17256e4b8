/* SPDX-License-Identifier: Apache-2.0 */
/* See stream.h; with the functions of CUDA about streams and events. */
#include "tests/emu/stream.h"

#include <stdio.h>
#include <time.h>

#include <set>

#include "tests/emu/call.h"
#include "tests/emu/emu.h"
#include "tests/emu/memory.h"
#include "tests/emu/running.h"
#include "tests/emu/settings.h"

namespace emu {

/* Never destroyed: the last look is taken when the process ends. */
static std::set<CUstream_st *> &streams = *new std::set<CUstream_st *>;
static std::set<CUevent_st *> &events = *new std::set<CUevent_st *>;
static CUstream_st *default_stream[MOST_DEVICES];
static unsigned long done, waits, spins;

CUstream_st *stream_at(cudaStream_t handle)
{
    if (!handle) {
        CUstream_st *&s = default_stream[current_device];
        s = s ? s : new CUstream_st{current_device, true, {}, nullptr, false};
        return s;
    }
    if (!streams.count(handle))
        fail("stream %p does not exist", (void *)handle);
    return handle;
}

static CUevent_st *event_at(cudaEvent_t handle)
{
    if (handle && !events.count(handle))
        fail("event %p does not exist", (void *)handle);
    return handle;
}

static void run_next(CUstream_st *s);

static double now_ms()
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

/* To the mark, or to the end. */
static void run(CUstream_st *s, const Mark *mark)
{
    while (!s->queue.empty() && !(mark && mark->is_reached))
        run_next(s);
}

static void run_next(CUstream_st *s)
{
    Work work = s->queue.front();
    s->queue.pop_front();
    if (work.wait)
        run(work.wait->stream, work.wait.get());
    if (work.run) {
        memory_open(s->device);
        work.run();
        done++;
    }
    if (work.reach) {
        work.reach->at_ms = now_ms();
        work.reach->is_reached = true;
    }
}

static MarkRef mark_end(CUstream_st *s)
{
    MarkRef mark = std::make_shared<Mark>(Mark{s, s->queue.empty(), 0});
    if (!mark->is_reached)
        s->queue.push_back({nullptr, nullptr, mark});
    return mark;
}

static void wait_for_end(CUstream_st *s, CUstream_st *other)
{
    if (other && other != s && !other->queue.empty())
        s->queue.push_back({nullptr, mark_end(other), nullptr});
}

void put(CUstream_st *s, Work work)
{
    if (s->recording) {
        if (!work.run && !work.record)
            fail("an event is recorded or waited for in a stream that is captured");
        s->recording->push_back(std::move(work));
        return;
    }
    CUstream_st *common = default_stream[s->device];
    if (s != common && s->is_blocking)
        wait_for_end(s, common);
    for (CUstream_st *other : streams)
        if (s == common && other->device == s->device && other->is_blocking)
            wait_for_end(s, other);
    s->queue.push_back(std::move(work));
    if (stream_order() == EAGER) {
        run(s, nullptr);
        memory_close();
    }
}

void record_event(CUevent_st *e, CUstream_st *s)
{
    e->last = std::make_shared<Mark>(Mark{s, false, 0});
    put(s, {nullptr, nullptr, e->last});
}

void settle(CUstream_st *s, const Mark *mark)
{
    check_no_recording("the host waits for a stream");
    if (stream_order() == OTHERS)
        for (CUstream_st *other : streams)
            if (other != s)
                run(other, nullptr);
    run(s, mark);
    memory_close();
}

void settle_device(int device)
{
    check_no_recording("the host waits for a device");
    for (CUstream_st *s : streams)
        if (s->device == device)
            run(s, nullptr);
    if (default_stream[device])
        run(default_stream[device], nullptr);
    memory_close();
}

void settle_all()
{
    for (int i = 0; i < MOST_DEVICES; i++)
        settle_device(i);
}

void settle_a_bit(const Mark *mark)
{
    if (!mark->is_reached)
        run_next(mark->stream);
    memory_close();
}

static void drop(CUstream_st *s)
{
    for (Work &work : s->queue)
        if (work.reach)
            work.reach->is_reached = true;
    s->queue.clear();
}

void drop_all()
{
    for (CUstream_st *s : streams)
        drop(s);
    for (CUstream_st *s : default_stream)
        if (s)
            drop(s);
}

void count_wait(bool sleeps)
{
    waits++;
    spins += !sleeps;
}

int report_stream_leaks()
{
    if (!streams.empty() || !events.empty())
        fprintf(stderr, "emu: %zu streams and %zu events are not destroyed\n", streams.size(), events.size());
    return (int)(streams.size() + events.size());
}

}

using namespace emu;

unsigned long emu_done(void)
{
    Call call;
    return done;
}

unsigned long emu_waits(void)
{
    Call call;
    return waits;
}

unsigned long emu_spins(void)
{
    Call call;
    return spins;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    Call call;
    if (call.failed())
        return call.status();
    if (!stream || flags & ~cudaStreamNonBlocking)
        return call.end(cudaErrorInvalidValue);
    *stream = new CUstream_st{current_device, !(flags & cudaStreamNonBlocking), {}, nullptr, false};
    streams.insert(*stream);
    return call.end(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    Call call;
    if (!stream)
        return call.end(cudaErrorInvalidResourceHandle);
    CUstream_st *s = stream_at(stream);
    settle(s, nullptr);
    streams.erase(s);
    delete s;
    return call.end(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    Call call;
    if (call.failed())
        return call.status();
    count_wait(false);
    settle(stream_at(stream), nullptr);
    return call.end(cudaSuccess);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    Call call;
    CUevent_st *e = event_at(event);
    if (call.failed())
        return call.status();
    if (!e || flags)
        return call.end(e ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    if (e->last && !e->last->is_reached)
        put(stream_at(stream), {nullptr, e->last, nullptr});
    return call.end(cudaSuccess);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    Call call;
    if (call.failed())
        return call.status();
    if (!event || flags & ~(cudaEventBlockingSync | cudaEventDisableTiming))
        return call.end(cudaErrorInvalidValue);
    *event = new CUevent_st{current_device, nullptr, !(flags & cudaEventDisableTiming),
                            (flags & cudaEventBlockingSync) != 0};
    events.insert(*event);
    return call.end(cudaSuccess);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    Call call;
    CUevent_st *e = event_at(event);
    if (!e)
        return call.end(cudaErrorInvalidResourceHandle);
    events.erase(e);
    delete e;                           /* who waits for its mark holds it */
    return call.end(cudaSuccess);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    Call call;
    CUevent_st *e = event_at(event);
    if (call.failed())
        return call.status();
    CUstream_st *s = stream_at(stream);
    if (!e || e->device != s->device)
        return call.end(cudaErrorInvalidResourceHandle);
    if (flags == cudaEventRecordDefault)
        record_event(e, s);
    else if (flags == cudaEventRecordExternal && s->recording)
        put(s, {nullptr, nullptr, nullptr, e});
    else
        return call.end(cudaErrorInvalidValue);
    return call.end(cudaSuccess);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    Call call;
    CUevent_st *from = event_at(begin), *to = event_at(end);
    if (call.failed())
        return call.status();
    if (!ms || !from || !to || !from->has_time || !to->has_time || !from->last || !to->last)
        return call.end(ms ? cudaErrorInvalidResourceHandle : cudaErrorInvalidValue);
    if (!from->last->is_reached || !to->last->is_reached)
        return call.end(cudaErrorNotReady);
    *ms = (float)(to->last->at_ms - from->last->at_ms);
    return call.end(cudaSuccess);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    Call call;
    CUevent_st *e = event_at(event);
    if (call.failed())
        return call.status();
    if (!e)
        return call.end(cudaErrorInvalidResourceHandle);
    MarkRef mark = e->last;
    if (mark)
        count_wait(e->sleeps);
    if (mark && !mark->is_reached)
        settle(mark->stream, mark.get());
    return call.end(cudaSuccess);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    Call call;
    CUevent_st *e = event_at(event);
    if (call.failed())
        return call.status();
    if (!e)
        return call.end(cudaErrorInvalidResourceHandle);
    MarkRef mark = e->last;
    if (!mark || mark->is_reached)
        return call.end(cudaSuccess);
    settle_a_bit(mark.get());
    return cudaErrorNotReady;           /* no error: nothing to remember */
}
