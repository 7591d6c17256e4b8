/* SPDX-License-Identifier: Apache-2.0 */
/* The devices that --backend, --device and --threads ask for, all of one backend, opened and closed
 * together.
 *
 * "auto" takes the fastest backend that opens and says in one line on stderr why a faster one did not: not with
 * --quiet, and only with --verbose if it is not built or this machine has no device for it. It falls back to another
 * backend only if the request makes sense there: --device 2 asks for a machine with several devices. A backend given
 * by name is used or the command fails. */
#ifndef SH_APP_COMMON_DEVICES_H
#define SH_APP_COMMON_DEVICES_H

#include "kernels/backend.h"
#include "src/base/common.h"

struct sh_devices {
    const struct sh_backend *backend;
    struct sh_dev **at;                 /* [n], in the order that --device gave                   */
    int n;
    struct sh_stages *stages;           /* set before they are opened: where they count their time; NULL */
    int n_threads;                      /* of the first device                                    */
};

/* d is {0}, or has its stages set. Each device gets its share of the threads, at least one, and may take
 * `memory_bytes` of its own memory (0: what is free). */
int sh_devices_open(struct sh_devices *d, const struct sh_common *c, size_t memory_bytes, struct sh_err *e);
void sh_devices_close(struct sh_devices *d);    /* {0} is fine                                    */

/* "2 x NVIDIA H200; …": the chips, equal neighbours counted. Caller frees. */
char *sh_devices_chips(const struct sh_devices *d);

#endif
