/* SPDX-License-Identifier: Apache-2.0 */
/* The options and the work of shears trace. cmd_trace.c reads the options and opens the model and the texts;
 * trace_job.c records: alone, as a shard, or as one of several ranks. */
#ifndef SH_APP_TRACE_JOB_H
#define SH_APP_TRACE_JOB_H

#include "src/jobs/mpi_job.h"
#include "src/app/common/devices.h"
#include "src/jobs/shard_option.h"
#include "src/tracer/sweep.h"
#include "src/tracer/texts.h"
#include "src/tracer/units.h"

struct sh_trace_args {
    const char *model, *db, *jsonl, *field, *tokens, *layers, *record, *codec, *vectors, *dtype, *recent, *split,
        *shard;
    struct sh_list text, alpha;
    long long length, count, least, window, weight_bits;
    size_t memory, device_memory;
    int random_weights, pipeline, timing;
    double rank_timeout, weight_prune;
};

struct sh_trace_job {
    const struct sh_trace_args *a;
    const struct sh_common *common;
    struct sh_devices devices;
    struct sh_timing timing;
    struct sh_model *model;
    struct sh_tokenizer *tokenizer;
    struct sh_texts texts;
    struct sh_sweep sweep;
    struct sh_sweep_needs needs;
    struct sh_trace_run run;
    char *chips, *statistics, *weights, *folder;
    unsigned char *done;                /* [n * layers]: what the store of the run has            */
    struct sh_store *store;
    char key[20];
    struct sh_part part;
    char *path;                         /* path of the store that is written: --db, or its shard  */
    struct sh_job cluster;
    struct sh_unit *unit;               /* [n_unit]                                               */
    int n_unit, own_run;                /* own_run: in this rank's store; 0: not begun            */
    /* Called on the first rank when all is recorded, with the store still open. */
    int (*report)(struct sh_trace_job *t, int run, struct sh_err *e);
};

/* Records into the store and reports its content. Set before: all up to `sweep`, chips, the part and its path, the
 * cluster, report. The caller frees what it sets and opens. */
int sh_trace_record(struct sh_trace_job *t, struct sh_err *e);

#endif
