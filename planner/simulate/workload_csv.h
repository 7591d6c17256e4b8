/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a workload file, without the file: a header that names the columns, and a row as a request.
 * Known headers:
 *
 *     arrival_s, prompt_tokens, output_tokens           ours, in any order, others beside them ignored
 *     TIMESTAMP, ContextTokens, GeneratedTokens         the public Azure LLM inference traces
 *     Timestamp, Request tokens, Response tokens        BurstGPT
 *
 * A time is seconds, or a date as Azure writes it (2023-11-16 18:17:03.9799600, 2024-05-10 00:00:00.01+00:00). */
#ifndef SH_PLANNER_SIMULATE_WORKLOAD_CSV_H
#define SH_PLANNER_SIMULATE_WORKLOAD_CSV_H

#include "planner/simulate/workload.h"

struct sh_workload_columns {
    int n;                              /* of the header                                          */
    int arrival, prompt, output;        /* which of them                                          */
};

/* A line as it was read, with or without its end. -1: no known set of columns. */
int sh_workload_header(const char *line, struct sh_workload_columns *out, struct sh_err *e);

/* 1: a request; 0: nothing to simulate (an empty line, a request without a prompt or without an answer, of
 * which BurstGPT has many); -1: not a row of this header. *out is as the file has it: dates are seconds
 * since 1970. */
int sh_workload_row(const struct sh_workload_columns *c, const char *line, struct sh_request *out,
                    struct sh_err *e);

#endif
