/* SPDX-License-Identifier: Apache-2.0 */
/* Requests in the order of their arrival, one at a time: a simulator never holds more of them than it
 * works on. A source is a struct whose first member is this one; who made it releases it. */
#ifndef SH_PLANNER_SIMULATE_WORKLOAD_H
#define SH_PLANNER_SIMULATE_WORKLOAD_H

#include <stdint.h>

#include "src/base/err.h"

enum { SH_REQUEST_TOKENS = 1 << 20 };   /* most tokens of a request, prompt and answer together   */

struct sh_request {
    double arrival_s;
    uint32_t prompt, output;            /* tokens, each at least 1; together at most SH_REQUEST_TOKENS */
};

struct sh_workload {
    /* 1: *out is the next request, which does not arrive before the last one; 0: there is none; -1. */
    int (*next)(struct sh_workload *w, struct sh_request *out, struct sh_err *e);
};

#endif
