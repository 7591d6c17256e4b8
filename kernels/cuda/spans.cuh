/* SPDX-License-Identifier: Apache-2.0 */
/* Timers of stages on the device (src/base/stages.h): pairs of events around what a stage queues, read by the host
 * when it has waited for the device anyway, so that measuring waits for nothing. Without stages nothing is queued. */
#ifndef SH_KERNELS_CUDA_SPANS_CUH
#define SH_KERNELS_CUDA_SPANS_CUH

#include "kernels/cuda/cuda.cuh"

/* On `stream`, which is compute, record, values or load; no span begins before the last one of its stream has
 * ended. What is queued on compute while a graph is captured belongs to the graph. */
void cuda_span_begin(struct sh_dev *d, struct cuda_spans *s, enum sh_stage stage, cudaStream_t stream);
void cuda_span_end(struct sh_dev *d, struct cuda_spans *s, cudaStream_t stream);

/* Takes the times of the spans that the device has passed. */
void cuda_spans_read(struct sh_dev *d);
/* The same of a graph's last run, which stands for `runs` of them. */
void cuda_spans_read_graph(struct sh_dev *d, struct cuda_spans *s, int runs);
void cuda_spans_free(struct cuda_spans *s);

/* The compute stream's. */
static inline struct cuda_spans *cuda_compute_spans(struct sh_dev *d)
{
    return d->is_recording ? &d->graph_spans : &d->spans[CUDA_SPANS_COMPUTE];
}

static inline void cuda_stage_begin(struct sh_dev *d, enum sh_stage stage)
{
    cuda_span_begin(d, cuda_compute_spans(d), stage, d->compute);
}

static inline void cuda_stage_end(struct sh_dev *d)
{
    cuda_span_end(d, cuda_compute_spans(d), d->compute);
}

#endif
