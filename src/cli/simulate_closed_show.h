/* SPDX-License-Identifier: Apache-2.0 */
/* simulate --concurrency: runs and prints. */
#ifndef SH_CLI_SIMULATE_CLOSED_SHOW_H
#define SH_CLI_SIMULATE_CLOSED_SHOW_H

#include "src/app/simulate/simulate_args.h"

int sh_simulate_closed(const struct sh_simulate_args *a, const struct sh_common *common, struct sh_err *e);

#endif
