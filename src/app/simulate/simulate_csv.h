/* SPDX-License-Identifier: Apache-2.0 */
/* The files of shears simulate: a workload, read line by line however long it is, and measured steps. Errors
 * name the file and the line. */
#ifndef SH_APP_SIMULATE_CSV_H
#define SH_APP_SIMULATE_CSV_H

#include <stdio.h>

#include "planner/simulate/simulate_cost.h"
#include "planner/simulate/workload.h"

struct sh_workload_file {
    struct sh_workload base;
    const char *path;                   /* not owned                                              */
    FILE *file;
    long long whole;                    /* bytes of the file; 0: a pipe                           */
    char *text;
    size_t bytes;
    struct sh_workload_columns columns;
    long long line, requests, skipped;  /* skipped: rows without a prompt or an answer             */
    double first, last;
};

/* A path that opens and a header that is known. Times are counted from the first request's. Close even after -1. */
int sh_workload_open(struct sh_workload_file *w, const char *path, struct sh_err *e);
int sh_workload_again(struct sh_workload_file *w, struct sh_err *e);    /* from its beginning */
void sh_workload_close(struct sh_workload_file *w);

/* FNV-1a over all its bytes: what the requests are, whatever the file's name. A pipe is refused. */
int sh_workload_hash(struct sh_workload_file *w, uint64_t *out, struct sh_err *e);

/* The columns prefill_tokens, decode_sequences, context_tokens, seconds in this order, under a header.
 * At most SH_SIM_POINTS rows. */
int sh_sim_points_read(const char *path, struct sh_sim_point *out, int *n, struct sh_err *e);

#endif
