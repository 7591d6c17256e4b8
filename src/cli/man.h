/* SPDX-License-Identifier: Apache-2.0 */
/* Manual pages (man(7) macros) and shell completion, generated from the tables behind --help. */
#ifndef SH_CLI_MAN_H
#define SH_CLI_MAN_H

#include "src/cli/args.h"

void sh_man_page(const struct sh_cmd *c, FILE *to);     /* shears-COMMAND(1) */
void sh_man_overview(FILE *to);                         /* shears(1) */

/* Prints completion for bash or fish; -1 with SH_MISUSED for any other shell. */
int sh_completion(const char *shell, FILE *to, struct sh_err *e);

#endif
