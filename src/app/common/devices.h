/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that --backend, --device and --threads request, all of one backend, opened and closed
 * together.
 *
 * "auto" takes the fastest backend that opens and says in one line on stderr why a faster one did not: not with
 * --quiet, and only with --verbose if it is not built or this machine has no device for it. It falls back to another
 * backend only if the request makes sense there: --device 2 asks for a machine with several devices. A backend given
 * by name is used or the command fails. */
#ifndef SH_APP_COMMON_DEVICES_H
#define SH_APP_COMMON_DEVICES_H

#include <stdio.h>

#include "kernels/backend.h"
#include "src/base/common.h"
#include "src/base/stages.h"

struct sh_devices {
    const struct sh_backend *backend;
    struct sh_dev **at;                 /* [n], in the order that --device gave                   */
    int n;
    struct sh_stages *stages;           /* set before they are opened: where they count their time; NULL */
    int n_threads;                      /* threads of the first device                            */
    int x_bits;                         /* set before they are opened, as in struct sh_open       */
};

/* d is {0}, or has its stages and x_bits set. Each device gets its share of the threads, at least one, and may take
 * `memory_bytes` of its own memory (0: what is free). */
int sh_devices_open(struct sh_devices *d, const struct sh_common *c, size_t memory_bytes, struct sh_err *e);
void sh_devices_close(struct sh_devices *d);    /* {0} is fine                                    */

/* "2 x NVIDIA H200; …": the chips, equal neighbours counted. Caller frees. */
char *sh_devices_chips(const struct sh_devices *d);

/* --timing: the option, and the clock of a command that has it. */
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
