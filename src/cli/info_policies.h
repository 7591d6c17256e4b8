/* SPDX-License-Identifier: Apache-2.0 */
/* The eviction policies as `shears info policies` lists them: what each does, needs, and can be set. */
#ifndef SH_CLI_INFO_POLICIES_H
#define SH_CLI_INFO_POLICIES_H

#include "src/cli/args.h"

int sh_info_policies(const struct sh_common *common, struct sh_err *e);

#endif
