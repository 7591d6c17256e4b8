/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that are recorded and run again, as CUDA graphs of what they queue on `compute`. A decoding
 * step is hundreds of short kernels, which would cost more to launch than to run. A device that cannot capture them
 * (a driver, a profiler or a checker can be in the way) says so once, and they are launched from then on. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/slots/slots.cuh"

struct sh_graph {
    cudaGraphExec_t run;
    struct cuda_spans spans;            /* within it */
    int runs;                           /* whose times have not been read */
    struct sh_graph *next;
};

/* Errors of a capture are over with it; what they said about it is kept. */
static void give_up(struct sh_dev *d, const char *what, cudaError_t status)
{
    cudaGetLastError();
    pthread_mutex_lock(&d->lock);
    if (!d->why_eager[0] && !d->failed)
        snprintf(d->why_eager, sizeof d->why_eager, "backend cuda: device %d: %s: %s (%s)", d->ordinal, what,
                 cudaGetErrorString(status), cudaGetErrorName(status));
    pthread_mutex_unlock(&d->lock);
}

static void set_recording(struct sh_dev *d, int is_recording)
{
    pthread_mutex_lock(&d->lock);
    d->is_recording = is_recording;
    d->is_spoiled = 0;
    d->recorder = pthread_self();
    pthread_mutex_unlock(&d->lock);
}

static int begin(struct sh_dev *d)
{
    if (d->why_eager[0] || cuda_begin(d, "graph"))
        return -1;
    cudaError_t status = cudaStreamBeginCapture(d->compute, cudaStreamCaptureModeThreadLocal);
    if (status != cudaSuccess) {
        give_up(d, "beginning to capture", status);
        return -1;
    }
    set_recording(d, 1);
    return 0;
}

/* NULL: there is none, and what was captured has not run. */
static cudaGraphExec_t capture_end(struct sh_dev *d)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t run = NULL;
    int is_bad = cuda_has_failed(d);
    cudaError_t status = cudaStreamEndCapture(d->compute, &graph);      /* also after a failure   */
    set_recording(d, 0);
    if (status != cudaSuccess || is_bad) {
        give_up(d, "capturing", status);
    } else if ((status = cudaGraphInstantiate(&run, graph, 0)) != cudaSuccess) {
        give_up(d, "making a graph of what was captured", status);
        run = NULL;
    }
    if (graph)
        cudaGraphDestroy(graph);
    return run;
}

static struct sh_graph *end(struct sh_dev *d)
{
    struct sh_graph *g = (struct sh_graph *)calloc(1, sizeof *g);
    cudaGraphExec_t made = capture_end(d);
    if (!g || !made) {
        if (made)
            cudaGraphExecDestroy(made);
        cuda_spans_free(&d->graph_spans);
        free(g);
        return NULL;
    }
    g->run = made;
    g->spans = d->graph_spans;
    d->graph_spans = {};
    g->next = d->graphs;
    d->graphs = g;
    d->n_graph++;
    return g;
}

static void run(struct sh_dev *d, struct sh_graph *g)
{
    if (!cuda_begin(d, "graph"))
        cuda_check(d, "graph", cudaGraphLaunch(g->run, d->compute));
    g->runs++;
}

void cuda_graphs_read(struct sh_dev *d)
{
    for (struct sh_graph *g = d->graphs; g; g = g->next) {
        cuda_spans_read_graph(d, &g->spans, g->runs);
        g->runs = 0;
    }
}

static void drop(struct sh_dev *d, struct sh_graph *g)
{
    if (!g)
        return;
    cudaSetDevice(d->ordinal);
    cuda_wait(d, "graph");
    cuda_graphs_read(d);
    cudaGraphExecDestroy(g->run);
    cuda_spans_free(&g->spans);
    for (struct sh_graph **at = &d->graphs; *at; at = &(*at)->next)
        if (*at == g) {
            *at = g->next;
            break;
        }
    free(g);
    if (--d->n_graph == 0)
        cuda_outgrown_free(d);
}

const struct sh_graph_ops cuda_graph_ops = {begin, end, run, drop};
