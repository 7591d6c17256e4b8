/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that are recorded and run again, as CUDA graphs of what they queue on `compute`. A decoding
 * step is hundreds of short kernels, which would cost more to launch than to run. */
#include <stdlib.h>

#include "kernels/cuda/slots.cuh"

struct sh_graph {
    cudaGraphExec_t run;
};

static int begin(struct sh_dev *d)
{
    if (cuda_begin(d, "graph") ||
        cuda_check(d, "graph", cudaStreamBeginCapture(d->compute, cudaStreamCaptureModeThreadLocal)))
        return -1;
    d->is_recording = 1;
    return 0;
}

static struct sh_graph *end(struct sh_dev *d)
{
    cudaGraph_t graph = NULL;
    struct sh_graph *g = (struct sh_graph *)calloc(1, sizeof *g);
    d->is_recording = 0;
    cudaError_t status = cudaStreamEndCapture(d->compute, &graph);      /* also after a failure   */
    if (!g)
        cuda_fail(d, "graph: out of memory");
    int bad = cuda_check(d, "graph", status) || !g || cuda_check(d, "graph", cudaGraphInstantiate(&g->run, graph, 0));
    if (graph)
        cudaGraphDestroy(graph);
    if (bad) {
        free(g);
        return NULL;
    }
    d->n_graph++;
    return g;
}

static void run(struct sh_dev *d, struct sh_graph *g)
{
    if (!cuda_begin(d, "graph"))
        cuda_check(d, "graph", cudaGraphLaunch(g->run, d->compute));
}

static void drop(struct sh_dev *d, struct sh_graph *g)
{
    if (!g)
        return;
    cudaSetDevice(d->ordinal);
    cudaStreamSynchronize(d->compute);
    cudaGraphExecDestroy(g->run);
    free(g);
    if (--d->n_graph == 0)
        cuda_outgrown_free(d);
}

const struct sh_graph_ops cuda_graph_ops = {begin, end, run, drop};
