/* SPDX-License-Identifier: Apache-2.0 */
/* shears info gpus, shears info models: the catalogues' rows. */
#ifndef SH_CLI_INFO_CATALOG_H
#define SH_CLI_INFO_CATALOG_H

#include "src/cli/args.h"

int sh_info_gpus(const struct sh_common *common, struct sh_err *e);
int sh_info_models(const struct sh_common *common, struct sh_err *e);

#endif
