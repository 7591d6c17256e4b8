/* SPDX-License-Identifier: Apache-2.0 */
/* When work runs: not before it must, in the order that streams and events give, and in another one
 * where they give none. */
#include <cuda_runtime.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <thread>

#include "tests/emu/emu.h"
#include "tests/emu/test_emu.h"

static __global__ void set(int *at, int x)
{
    *at = x;
}

static __global__ void copy_one(int *to, const int *from)
{
    *to = *from;
}

struct Two {
    cudaStream_t a, b;
    cudaEvent_t event;
    int *at;                            /* device: two numbers, 0                                  */
    int *seen;                          /* pinned: two numbers, 0                                  */
};

static Two two()
{
    Two t;
    const int zero[2] = {};
    EXPECT(cudaStreamCreateWithFlags(&t.a, cudaStreamNonBlocking) == cudaSuccess);
    EXPECT(cudaStreamCreateWithFlags(&t.b, cudaStreamNonBlocking) == cudaSuccess);
    EXPECT(cudaEventCreateWithFlags(&t.event, cudaEventDisableTiming) == cudaSuccess);
    EXPECT(cudaHostAlloc(&t.seen, sizeof zero, cudaHostAllocDefault) == cudaSuccess);
    t.at = (int *)device_copy(zero, sizeof zero);
    memset(t.seen, 0, sizeof zero);
    return t;
}

static void in_order()
{
    Two t = two();
    SH_LAUNCH(set, dim3(1), dim3(1), t.a, t.at, 5);
    SH_LAUNCH(copy_one, dim3(1), dim3(1), t.a, t.at + 1, t.at);
    SH_LAUNCH(set, dim3(1), dim3(1), t.a, t.at, 6);
    EXPECT(cudaMemcpyAsync(t.seen, t.at, 8, cudaMemcpyDeviceToHost, t.a) == cudaSuccess);
    EXPECT(t.seen[0] == 0);             /* nobody has waited */
    EXPECT(cudaStreamSynchronize(t.a) == cudaSuccess && t.seen[0] == 6 && t.seen[1] == 5);
}

/* One stream makes a number, the other reads it. */
static int passed_on(bool with_event)
{
    Two t = two();
    SH_LAUNCH(set, dim3(1), dim3(1), t.a, t.at, 5);
    EXPECT(cudaEventRecord(t.event, t.a) == cudaSuccess);
    if (with_event)
        EXPECT(cudaStreamWaitEvent(t.b, t.event) == cudaSuccess);
    EXPECT(cudaMemcpyAsync(t.seen, t.at, 4, cudaMemcpyDeviceToHost, t.b) == cudaSuccess);
    EXPECT(cudaStreamSynchronize(t.b) == cudaSuccess);
    return t.seen[0];
}

static void events()
{
    EXPECT(passed_on(true) == 5);
    EXPECT(passed_on(false) == 0);
    setenv("SH_EMU_STREAMS", "eager", 1);
    EXPECT(passed_on(false) == 5);
}

/* A stream overwrites what another has still to read; the host waits for the reader. */
static int kept(bool with_event)
{
    Two t = two();
    SH_LAUNCH(set, dim3(1), dim3(1), t.a, t.at, 5);
    EXPECT(cudaMemcpyAsync(t.seen, t.at, 4, cudaMemcpyDeviceToHost, t.a) == cudaSuccess);
    EXPECT(cudaEventRecord(t.event, t.a) == cudaSuccess);
    if (with_event)
        EXPECT(cudaStreamWaitEvent(t.b, t.event) == cudaSuccess);
    SH_LAUNCH(copy_one, dim3(1), dim3(1), t.b, t.seen, t.at + 1);
    EXPECT(cudaStreamSynchronize(t.a) == cudaSuccess);
    return t.seen[0];
}

static void other_order()
{
    EXPECT(kept(false) == 5);           /* the other stream came later */
    setenv("SH_EMU_STREAMS", "others", 1);
    EXPECT(kept(false) == 5);           /* it came first, and so did not overwrite */
    EXPECT(passed_on(false) == 5 && passed_on(true) == 5);
    Two t = two();
    SH_LAUNCH(copy_one, dim3(1), dim3(1), t.a, t.at + 1, t.at);         /* should read 0, and reads 9 */
    SH_LAUNCH(set, dim3(1), dim3(1), t.b, t.at, 9);
    EXPECT(cudaStreamSynchronize(t.a) == cudaSuccess);
    int seen[2];
    host_copy(seen, t.at, sizeof seen);
    EXPECT(seen[1] == 9);
}

static void event_places()
{
    Two t = two();
    EXPECT(cudaEventQuery(t.event) == cudaSuccess && cudaEventSynchronize(t.event) == cudaSuccess);
    SH_LAUNCH(set, dim3(1), dim3(1), t.a, t.at, 5);
    EXPECT(cudaMemcpyAsync(t.seen, t.at, 4, cudaMemcpyDeviceToHost, t.a) == cudaSuccess);
    EXPECT(cudaEventRecord(t.event, t.a) == cudaSuccess);
    EXPECT(cudaMemcpyAsync(t.seen + 1, t.at, 4, cudaMemcpyDeviceToHost, t.a) == cudaSuccess);
    EXPECT(cudaEventSynchronize(t.event) == cudaSuccess && t.seen[0] == 5 && t.seen[1] == 0);
    EXPECT(cudaEventRecord(t.event, t.a) == cudaSuccess && cudaEventQuery(t.event) == cudaErrorNotReady);
    int asked = 0;
    while (cudaEventQuery(t.event) == cudaErrorNotReady)
        asked++;
    EXPECT(asked < 10 && t.seen[1] == 5 && cudaGetLastError() == cudaSuccess);
}

/* Later records move an event; who waited already waits for the place it had. */
static void event_moves()
{
    Two t = two();
    SH_LAUNCH(set, dim3(1), dim3(1), t.a, t.at, 5);
    EXPECT(cudaEventRecord(t.event, t.a) == cudaSuccess && cudaStreamWaitEvent(t.b, t.event) == cudaSuccess);
    SH_LAUNCH(set, dim3(1), dim3(1), t.a, t.at, 6);
    EXPECT(cudaEventRecord(t.event, t.a) == cudaSuccess);
    EXPECT(cudaMemcpyAsync(t.seen, t.at, 4, cudaMemcpyDeviceToHost, t.b) == cudaSuccess);
    EXPECT(cudaEventDestroy(t.event) == cudaSuccess);
    EXPECT(cudaStreamSynchronize(t.b) == cudaSuccess && t.seen[0] == 5);
}

static void host_memory()
{
    Two t = two();
    int pageable = 1;
    t.seen[0] = 1;
    setenv("SH_EMU_PAGEABLE", "early", 1);
    EXPECT(cudaMemcpyAsync(t.at, &pageable, 4, cudaMemcpyHostToDevice, t.a) == cudaSuccess);
    EXPECT(cudaMemcpyAsync(t.at + 1, t.seen, 4, cudaMemcpyHostToDevice, t.a) == cudaSuccess);
    pageable = t.seen[0] = 2;           /* too early for the pinned one */
    int back[2] = {};
    EXPECT(cudaMemcpyAsync(back, t.at, 8, cudaMemcpyDeviceToHost, t.a) == cudaSuccess);
    EXPECT(back[0] == 1 && back[1] == 2);               /* pageable: it is there when the call returns */
    EXPECT(cudaMemcpyAsync(t.at, &pageable, 4, cudaMemcpyDeviceToHost, t.a) == cudaErrorInvalidValue);
    EXPECT(cudaMemcpyAsync(&pageable, t.at, 4, cudaMemcpyHostToDevice, t.a) == cudaErrorInvalidValue);
}

/* CUDA may read pageable memory when the stream comes to the copy. */
static void changed_source()
{
    Two t = two();
    int pageable = 1, back = 0;
    EXPECT(cudaMemcpyAsync(t.at, &pageable, 4, cudaMemcpyHostToDevice, t.a) == cudaSuccess);
    EXPECT(cudaStreamSynchronize(t.a) == cudaSuccess);
    pageable = 2;                       /* it has been read */
    host_copy(&back, t.at, 4);
    EXPECT(back == 1);
    EXPECT(cudaMemcpyAsync(t.at, &pageable, 4, cudaMemcpyHostToDevice, t.a) == cudaSuccess);
    pageable = 3;
    cudaStreamSynchronize(t.a);
}

static void freed_source()
{
    size_t bytes = 1 << 20;
    void *at, *pageable = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(pageable != MAP_FAILED && cudaMalloc(&at, bytes) == cudaSuccess);
    EXPECT(cudaMemcpyAsync(at, pageable, bytes, cudaMemcpyHostToDevice) == cudaSuccess);
    EXPECT(munmap(pageable, bytes) == 0);
    cudaDeviceSynchronize();
}

/* What makes the host wait, and what of it sleeps. */
static void waiting()
{
    Two t = two();
    cudaEvent_t sleepy;
    int here = 0;
    EXPECT(cudaEventCreateWithFlags(&sleepy, cudaEventBlockingSync | cudaEventDisableTiming) == cudaSuccess);
    unsigned long waits = emu_waits(), spins = emu_spins();
    EXPECT(cudaEventSynchronize(sleepy) == cudaSuccess && emu_waits() == waits);        /* never recorded */
    EXPECT(cudaMemcpyAsync(t.at, &here, 4, cudaMemcpyHostToDevice, t.a) == cudaSuccess);
    EXPECT(cudaMemcpyAsync(t.seen, t.at, 4, cudaMemcpyDeviceToHost, t.a) == cudaSuccess);
    EXPECT(cudaEventRecord(sleepy, t.a) == cudaSuccess && cudaEventRecord(t.event, t.a) == cudaSuccess);
    EXPECT(emu_waits() == waits);
    EXPECT(cudaEventSynchronize(sleepy) == cudaSuccess && emu_waits() == waits + 1 && emu_spins() == spins);
    EXPECT(cudaEventSynchronize(t.event) == cudaSuccess && emu_waits() == waits + 2 && emu_spins() == spins + 1);
    EXPECT(cudaMemcpyAsync(&here, t.at, 4, cudaMemcpyDeviceToHost, t.a) == cudaSuccess);
    EXPECT(cudaMemcpy(t.at, &here, 4, cudaMemcpyHostToDevice) == cudaSuccess);
    EXPECT(cudaStreamSynchronize(t.a) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess);
    EXPECT(emu_waits() == waits + 6 && emu_spins() == spins + 5);
}

static void pitched_copies()
{
    char from[3 * 7], to[3 * 5];
    for (int i = 0; i < 21; i++)
        from[i] = (char)i;
    memset(to, -1, sizeof to);
    void *at;
    EXPECT(cudaMalloc(&at, 2 * 8 + 4) == cudaSuccess);
    EXPECT(cudaMemcpy2DAsync(at, 8, from, 7, 4, 3, cudaMemcpyHostToDevice) == cudaSuccess);
    EXPECT(cudaMemcpy2DAsync(to, 5, at, 8, 4, 3, cudaMemcpyDeviceToHost) == cudaSuccess);
    for (int i = 0; i < 15; i++)
        EXPECT(to[i] == (i % 5 < 4 ? i / 5 * 7 + i % 5 : -1));
    EXPECT(cudaMemcpy2DAsync(at, 3, from, 7, 4, 3, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
}

/* The default stream orders itself with streams that are not cudaStreamNonBlocking, in both directions. */
static void default_stream()
{
    Two t = two();
    cudaStream_t blocking;
    int seen = -1;
    EXPECT(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault) == cudaSuccess);
    SH_LAUNCH(set, dim3(1), dim3(1), blocking, t.at, 5);
    SH_LAUNCH(set, dim3(1), dim3(1), t.a, t.at + 1, 5);
    host_copy(&seen, t.at, 4);
    EXPECT(seen == 5);
    host_copy(&seen, t.at + 1, 4);
    EXPECT(seen == 0);                  /* t.a is cudaStreamNonBlocking */
    SH_LAUNCH(set, dim3(1), dim3(1), 0, t.at, 6);
    SH_LAUNCH(copy_one, dim3(1), dim3(1), blocking, t.seen, t.at);
    EXPECT(cudaStreamSynchronize(blocking) == cudaSuccess && t.seen[0] == 6);
}

static void whole_device()
{
    Two t = two();
    SH_LAUNCH(set, dim3(1), dim3(1), t.a, t.seen, 5);
    SH_LAUNCH(set, dim3(1), dim3(1), t.b, t.seen + 1, 6);
    EXPECT(cudaDeviceSynchronize() == cudaSuccess && t.seen[0] == 5 && t.seen[1] == 6);
    SH_LAUNCH(set, dim3(1), dim3(1), t.b, t.seen + 1, 7);
    EXPECT(cudaFree(t.at) == cudaSuccess && t.seen[1] == 7);
}

static void other_devices()
{
    cudaStream_t stream;
    cudaEvent_t event;
    float *at;
    setenv("SH_EMU_DEVICES", "2", 1);
    EXPECT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    EXPECT(cudaSetDevice(1) == cudaSuccess && cudaMalloc(&at, 4) == cudaSuccess);
    EXPECT(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
    EXPECT(cudaEventRecord(event, stream) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaGetLastError() == cudaErrorInvalidResourceHandle);
    SH_LAUNCH(set, dim3(1), dim3(1), stream, (int *)(void *)at, 1);
    EXPECT(cudaGetLastError() == cudaErrorInvalidResourceHandle);
}

static void work_on(int device, int *sum)
{
    EXPECT(cudaSetDevice(device) == cudaSuccess);
    Two t = two();
    for (int i = 1; i <= 100; i++) {
        SH_LAUNCH(set, dim3(1), dim3(1), t.a, t.at, i);
        EXPECT(cudaEventRecord(t.event, t.a) == cudaSuccess && cudaStreamWaitEvent(t.b, t.event) == cudaSuccess);
        EXPECT(cudaMemcpyAsync(t.seen, t.at, 4, cudaMemcpyDeviceToHost, t.b) == cudaSuccess);
        EXPECT(cudaStreamSynchronize(t.b) == cudaSuccess);
        *sum += t.seen[0];
    }
    EXPECT(cudaFree(t.at) == cudaSuccess);
}

/* The current device is a host thread's own. */
static void host_threads()
{
    int sum[3] = {};
    setenv("SH_EMU_DEVICES", "2", 1);
    std::thread a(work_on, 0, &sum[0]), b(work_on, 1, &sum[1]), c(work_on, 1, &sum[2]);
    a.join();
    b.join();
    c.join();
    EXPECT(sum[0] == 5050 && sum[1] == 5050 && sum[2] == 5050);
}

static __global__ void add(int *at, int x)
{
    *at += x;
}

/* What is captured runs when the graph does, as often, and in the stream's order. */
static void graphs()
{
    Two t = two();
    cudaGraph_t graph;
    cudaGraphExec_t run;
    EXPECT(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    SH_LAUNCH(add, dim3(1), dim3(1), t.a, t.at, 3);
    SH_LAUNCH(copy_one, dim3(1), dim3(1), t.a, t.at + 1, t.at);
    EXPECT(cudaMemcpyAsync(t.seen, t.at, 8, cudaMemcpyDeviceToHost, t.a) == cudaSuccess);
    EXPECT(cudaStreamEndCapture(t.a, &graph) == cudaSuccess);
    EXPECT(cudaGraphInstantiate(&run, graph, 0) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
    EXPECT(cudaStreamSynchronize(t.a) == cudaSuccess && t.seen[0] == 0);
    SH_LAUNCH(set, dim3(1), dim3(1), t.a, t.at, 5);
    EXPECT(cudaGraphLaunch(run, t.a) == cudaSuccess && cudaGraphLaunch(run, t.a) == cudaSuccess);
    EXPECT(cudaStreamSynchronize(t.a) == cudaSuccess && t.seen[0] == 11 && t.seen[1] == 11);
    EXPECT(cudaGraphExecDestroy(run) == cudaSuccess && cudaGraphExecDestroy(run) == cudaErrorInvalidValue);
}

/* Events that keep time are read when they are reached; one that a graph records is recorded by each of its runs. */
static void times()
{
    Two t = two();
    cudaEvent_t begin, end;
    cudaGraph_t graph;
    cudaGraphExec_t run;
    float ms = -1;
    EXPECT(cudaEventCreateWithFlags(&begin, cudaEventDefault) == cudaSuccess);
    EXPECT(cudaEventCreateWithFlags(&end, cudaEventDefault) == cudaSuccess);
    EXPECT(cudaEventElapsedTime(&ms, begin, end) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaEventRecord(begin, t.a) == cudaSuccess && cudaEventRecord(t.event, t.a) == cudaSuccess);
    SH_LAUNCH(set, dim3(1), dim3(1), t.a, t.at, 5);
    EXPECT(cudaEventRecord(end, t.a) == cudaSuccess);
    EXPECT(cudaEventElapsedTime(&ms, begin, end) == cudaErrorNotReady && ms == -1);
    EXPECT(cudaStreamSynchronize(t.a) == cudaSuccess && cudaEventElapsedTime(&ms, begin, end) == cudaSuccess && ms > 0);
    EXPECT(cudaEventElapsedTime(&ms, begin, t.event) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaEventRecordWithFlags(end, t.a, cudaEventRecordExternal) == cudaErrorInvalidValue);
    EXPECT(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    EXPECT(cudaEventRecordWithFlags(end, t.a, cudaEventRecordExternal) == cudaSuccess);
    EXPECT(cudaStreamEndCapture(t.a, &graph) == cudaSuccess);
    EXPECT(cudaGraphInstantiate(&run, graph, 0) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
    for (int i = 0; i < 2; i++) {
        float before = ms;
        EXPECT(cudaGraphLaunch(run, t.a) == cudaSuccess);
        EXPECT(cudaEventElapsedTime(&ms, begin, end) == cudaErrorNotReady);
        EXPECT(cudaStreamSynchronize(t.a) == cudaSuccess && cudaEventElapsedTime(&ms, begin, end) == cudaSuccess);
        EXPECT(ms > before);
    }
    EXPECT(cudaGraphExecDestroy(run) == cudaSuccess);
}

/* Each part of a capture can fail, and what was captured has not run then. */
static void graphs_fail()
{
    static const char *const how[] = {"begin", "kernel:2", "end:3", "make:4"};
    for (const char *part : how) {
        Two t = two();
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t run;
        setenv("SH_EMU_GRAPH", part, 1);
        cudaGetLastError();
        bool begins = cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
        EXPECT(begins == (*part != 'b'));
        if (!begins)
            continue;
        SH_LAUNCH(add, dim3(1), dim3(1), t.a, t.at, 3);
        EXPECT(cudaGetLastError() == (*part == 'k' ? cudaErrorStreamCaptureUnsupported : cudaSuccess));
        bool ends = cudaStreamEndCapture(t.a, &graph) == cudaSuccess;
        EXPECT(ends == (*part == 'm') && !graph == !ends);
        if (ends)
            EXPECT(cudaGraphInstantiate(&run, graph, 0) == cudaErrorMemoryAllocation && !cudaGraphDestroy(graph));
        SH_LAUNCH(add, dim3(1), dim3(1), t.a, t.at, 4);
        EXPECT(cudaMemcpyAsync(t.seen, t.at, 4, cudaMemcpyDeviceToHost, t.a) == cudaSuccess);
        EXPECT(cudaStreamSynchronize(t.a) == cudaSuccess && t.seen[0] == 4);
    }
}

static void captured(void (*wrong)(Two *))
{
    Two t = two();
    EXPECT(cudaStreamBeginCapture(t.a, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    wrong(&t);
}

static void capture_waits() { captured([](Two *t) { cudaStreamSynchronize(t->a); }); }
static void capture_allocates() { captured([](Two *t) { cudaMalloc(&t->at, 8); }); }
static void capture_events() { captured([](Two *t) { cudaEventRecord(t->event, t->a); }); }

static void capture_copies()
{
    captured([](Two *t) {
        int here = 0;
        cudaMemcpyAsync(t->at, &here, sizeof here, cudaMemcpyHostToDevice, t->a);
    });
}

const Case stream_cases[] = {
    {"a stream keeps its order and runs late", in_order, NULL},
    {"events order streams, and nothing else does", events, NULL},
    {"the other streams first", other_order, NULL},
    {"an event is a place in a stream", event_places, NULL},
    {"an event moves, those who wait do not", event_moves, NULL},
    {"pageable memory may be read at the call, pinned memory is read later", host_memory, NULL},
    {"pageable memory may be read later", changed_source, "cudaMemcpyAsync|pageable memory|has changed"},
    {"pageable memory may be read when it is freed", freed_source, "cudaMemcpyAsync|pageable memory|is gone"},
    {"waits are counted, with those that sleep apart", waiting, NULL},
    {"copies with pitches", pitched_copies, NULL},
    {"the default stream", default_stream, NULL},
    {"waiting for a device, freeing memory", whole_device, NULL},
    {"several host threads and devices at once", host_threads, NULL},
    {"streams and events belong to a device", other_devices, NULL},
    {"a graph is work that runs again", graphs, NULL},
    {"events keep time, also in a graph", times, NULL},
    {"a capture that fails leaves nothing that ran", graphs_fail, NULL},
    {"a captured stream is not waited for", capture_waits, "waits for a stream|captured"},
    {"nothing is allocated while a stream is captured", capture_allocates, "cudaMalloc|captured"},
    {"events stay out of a captured stream", capture_events, "event|captured"},
    {"pageable memory stays out of a captured stream", capture_copies, "pageable|captured"},
    {NULL, NULL, NULL},
};
