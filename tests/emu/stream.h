/* SPDX-License-Identifier: Apache-2.0 */
/* Streams are queues. Work runs late, when the host waits for it, and no earlier than it must: what has
 * been ordered by nothing runs in an order that a GPU might choose and its programmer did not expect
 * (settings.h, SH_EMU_STREAMS). Everything here is called with the lock of call.h. */
#ifndef SH_EMU_STREAM_H
#define SH_EMU_STREAM_H

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <cuda_runtime.h>

namespace emu {

struct Mark {                           /* a place in a stream                                     */
    CUstream_st *stream;
    bool is_reached;
    double at_ms;                       /* when it was reached                                     */
};

typedef std::shared_ptr<Mark> MarkRef;

struct Work {                           /* one of the four                                         */
    std::function<void()> run;
    MarkRef wait, reach;
    CUevent_st *record = nullptr;       /* of a graph: the event is recorded anew by each run      */
};

/* The stream behind a handle; NULL stands for the current device's default stream, which orders itself
 * with the device's streams that are not cudaStreamNonBlocking. */
CUstream_st *stream_at(cudaStream_t handle);
void put(CUstream_st *s, Work work);
/* A new mark of the event at the stream's end. */
void record_event(CUevent_st *e, CUstream_st *s);

/* What the host does when it waits: for the mark, or for all that is queued. */
void settle(CUstream_st *s, const Mark *mark);
void settle_device(int device);
void settle_all();
/* One piece of what the mark needs, for those who ask again and again. */
void settle_a_bit(const Mark *mark);
/* After an error that lasts nothing runs any more. */
void drop_all();

/* The host waits; `sleeps`: without keeping a processor busy. */
void count_wait(bool sleeps);

int report_stream_leaks();

/* graph.cpp. Fails while a stream is captured. */
void check_no_recording(const char *what);
/* Is a kernel of this captured stream to fail (settings.h)? It spoils the capture. */
bool spoils_recording(CUstream_st *s);
int report_graph_leaks();

}

struct CUstream_st {
    int device;
    bool is_blocking;
    std::deque<emu::Work> queue;
    std::vector<emu::Work> *recording;  /* NULL: work is queued                                    */
    bool is_spoiled;                    /* the recording: its end fails                            */
};

struct CUevent_st {
    int device;
    emu::MarkRef last;                  /* NULL: never recorded                                    */
    bool has_time, sleeps;              /* sleeps: who waits for it does, cudaEventBlockingSync    */
};

#endif
