/* SPDX-License-Identifier: Apache-2.0 */
/* trace --pipeline: each rank holds consecutive layers of the model, in order of rank, and passes the hidden states
 * on. If a rank fails or is lost, all stop, since each link is needed. What was committed stays in the ranks' stores,
 * and the same command resumes from it. Rank 0 shows the progress of the last rank. */
#ifndef SH_JOBS_PIPELINE_H
#define SH_JOBS_PIPELINE_H

#include "src/base/progress.h"
#include "src/jobs/mpi_job.h"
#include "src/tracer/sweep.h"

struct sh_pipeline {
    const struct sh_job *c;
    struct sh_sweep_link link;
    struct sh_progress shown;           /* on rank 0                                              */
    double passed, told_s;              /* fraction completed; when the last rank reported it     */
};

/* Layers 0 to last_layer, divided evenly. */
int sh_pipeline_begin(struct sh_pipeline *p, const struct sh_job *c, int last_layer, struct sh_err *e);

/* Rank 0 has prepared the joint store; the others wait for that. Until the end, this process's progress is the
 * pipeline's. */
int sh_pipeline_start(struct sh_pipeline *p, struct sh_err *e);

/* Rank 0 returns when all ranks have finished. If `bad`, or if a rank is missing, it reports why, ends all ranks and
 * does not return. */
void sh_pipeline_finish(struct sh_pipeline *p, struct sh_job *c, int bad, struct sh_err *e);

#endif
