/* SPDX-License-Identifier: Apache-2.0 */
/* Every known backend, and every device of those that are usable. */
#ifndef SH_CLI_BACKENDS_H
#define SH_CLI_BACKENDS_H

#include "src/base/out.h"

/* Adds the lists "backends" (usable, not built, cannot load or cannot open, and why) and "devices" (chip
 * and memory). Loads every module and opens every device once, in turn. */
void sh_describe_backends(struct sh_out *o, int n_threads);

#endif
