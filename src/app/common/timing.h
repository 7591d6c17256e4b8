/* SPDX-License-Identifier: Apache-2.0 */
/* --timing: the option, and the clock of a command that has it. */
#ifndef SH_APP_COMMON_TIMING_H
#define SH_APP_COMMON_TIMING_H

#include <stdio.h>

#include "src/base/stages.h"
#include "src/base/common.h"

struct sh_timing {
    struct sh_stages stages;
    double began_s;
    int on;
};

/* Starts the clock; returns where stages add their time, or NULL if `on` is 0. Valid as long as t. */
struct sh_stages *sh_timing_begin(struct sh_timing *t, int on);

/* The list "timing"; nothing when it is off. After the devices' last sync. */
void sh_timing_put(struct sh_out *o, const struct sh_timing *t);

/* The same as a table on `to`. */
void sh_timing_tell(const struct sh_timing *t, FILE *to);

#endif
