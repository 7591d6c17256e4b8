/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA graphs: what goes into a stream that is captured is put aside, and put into a stream again each time
 * the graph is run, where it counts as work of that moment (settings.h). Kernels, products and fills can be
 * captured, and copies that touch no pageable memory; waiting, allocating and freeing cannot, which CUDA
 * says with an error that spoils the capture and the emulation by ending the process. */
#include <stdio.h>

#include <set>

#include "tests/emu/call.h"
#include "tests/emu/running.h"
#include "tests/emu/settings.h"
#include "tests/emu/stream.h"

struct CUgraph_st {
    std::vector<emu::Work> work;
};

struct CUgraphExec_st {
    std::vector<emu::Work> work;
};

namespace emu {

static std::set<void *> &graphs = *new std::set<void *>;
static int n_recording;
static unsigned long captures;         /* that were begun, or were to be */

void check_no_recording(const char *what)
{
    if (n_recording)
        fail("%s while a stream is captured", what);
}

bool spoils_recording(CUstream_st *s)
{
    s->is_spoiled |= s->recording && graph_fails("kernel", captures);
    return s->recording && s->is_spoiled;
}

int report_graph_leaks()
{
    if (!graphs.empty())
        fprintf(stderr, "emu: %zu graphs are not destroyed\n", graphs.size());
    return (int)graphs.size();
}

static bool forget(void *graph)
{
    return graph && graphs.erase(graph);
}

}

using namespace emu;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode)
{
    Call call;
    if (call.failed())
        return call.status();
    if (!stream || mode != cudaStreamCaptureModeThreadLocal)
        return call.end(cudaErrorInvalidValue);
    CUstream_st *s = stream_at(stream);
    if (s->recording)
        return call.end(cudaErrorIllegalState);
    if (graph_fails("begin", ++captures))
        return call.end(cudaErrorStreamCaptureUnsupported);
    s->recording = new std::vector<Work>;
    s->is_spoiled = false;
    n_recording++;
    return call.end(cudaSuccess);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    Call call;
    CUstream_st *s = stream_at(stream);
    if (!graph || !s->recording)
        return call.end(graph ? cudaErrorIllegalState : cudaErrorInvalidValue);
    n_recording--;
    std::vector<Work> *work = s->recording;
    s->recording = nullptr;
    *graph = nullptr;
    bool is_bad = s->is_spoiled || graph_fails("end", captures);
    if (!call.failed() && !is_bad)
        graphs.insert(*graph = new CUgraph_st{*work});
    delete work;
    return call.end(is_bad ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *run, cudaGraph_t graph, unsigned long long flags)
{
    Call call;
    if (call.failed())
        return call.status();
    if (!run || !graph || !graphs.count(graph) || flags)
        return call.end(cudaErrorInvalidValue);
    if (graph_fails("make", captures))
        return call.end(cudaErrorMemoryAllocation);
    graphs.insert(*run = new CUgraphExec_st{graph->work});
    return call.end(cudaSuccess);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t run, cudaStream_t stream)
{
    Call call;
    if (call.failed())
        return call.status();
    if (!run || !graphs.count(run))
        return call.end(cudaErrorInvalidValue);
    CUstream_st *s = stream_at(stream);
    for (const Work &work : run->work)
        if (work.record)
            record_event(work.record, s);
        else if (count_launch())
            put(s, work);
        else {
            drop_all();
            break;
        }
    return call.end(cudaSuccess);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    Call call;
    if (!forget(graph))
        return call.end(cudaErrorInvalidValue);
    delete graph;
    return call.end(cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t run)
{
    Call call;
    if (!forget(run))
        return call.end(cudaErrorInvalidValue);
    delete run;                         /* what was put into streams holds itself */
    return call.end(cudaSuccess);
}
