/* SPDX-License-Identifier: Apache-2.0 */
/* trace --pipeline: the ranks hold neighbouring layers of the model, in order of rank, and pass the hidden
 * states on. A rank that fails or is lost ends the work of all: each link is needed. What was committed stays
 * in the ranks' stores, and the same command goes on from there. The progress that rank 0 shows is what has come
 * through the last rank. */
#ifndef SH_JOBS_PIPELINE_H
#define SH_JOBS_PIPELINE_H

#include "src/base/progress.h"
#include "src/jobs/cluster.h"
#include "src/tracer/sweep.h"

struct sh_pipeline {
    const struct sh_cluster *c;
    struct sh_sweep_link link;
    struct sh_progress shown;           /* on rank 0                                              */
    double passed, told_s;              /* share that is through; when the last rank told of it   */
};

/* Layers 0 to last_layer, shared out evenly. */
int sh_pipeline_begin(struct sh_pipeline *p, const struct sh_cluster *c, int last_layer, struct sh_err *e);

/* Rank 0 has made the joint store ready; the others wait for that. From here on to the end this process's progress is
 * the pipeline's. */
int sh_pipeline_start(struct sh_pipeline *p, struct sh_err *e);

/* Rank 0 returns when all have done their part. Where `bad`, or somebody is missing, it says why and ends all
 * ranks: it does not return then. */
void sh_pipeline_finish(struct sh_pipeline *p, struct sh_cluster *c, int bad, struct sh_err *e);

#endif
