/* SPDX-License-Identifier: Apache-2.0 */
/* What `shears info` lists besides stores and checkpoints, each in a file of its own. */
#ifndef SH_CLI_INFO_H
#define SH_CLI_INFO_H

#include "src/cli/args.h"

/* info_backends.c: every known backend (usable, not built, cannot load or cannot open, and why), and every device of
 * those that are usable. Loads every module and opens every device once, in turn. */
int sh_info_backends(const struct sh_common *common, struct sh_err *e);

/* info_catalog.c: the rows of the catalogues. */
int sh_info_gpus(const struct sh_common *common, struct sh_err *e);
int sh_info_models(const struct sh_common *common, struct sh_err *e);

/* info_policies.c: what each eviction policy does, needs, and can be set. */
int sh_info_families(const struct sh_common *common, struct sh_err *e);
int sh_info_policies(const struct sh_common *common, struct sh_err *e);

#endif
