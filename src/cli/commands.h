/* SPDX-License-Identifier: Apache-2.0 */
/* The list of commands, one line each; cmd_<name>.c exports sh_cmd_<name>. */
#ifndef SH_CLI_COMMANDS_H
#define SH_CLI_COMMANDS_H

#include "src/cli/args.h"

#define SH_COMMANDS(X) \
    X(demo) \
    X(study) \
    X(trace) \
    X(info) \
    X(import) \
    X(export) \
    X(merge) \
    X(verify) \
    X(persistence) \
    X(replay) \
    X(plan) \
    X(theory) \
    X(eval) \
    X(generate) \
    X(repetition) \
    X(drift) \
    X(capacity) \
    X(simulate) \
    X(recommend) \
    X(calibrate) \
    X(plot) \
    X(report) \
    X(reproduce) \
    X(help)

#define X(name) extern const struct sh_cmd sh_cmd_##name;
SH_COMMANDS(X)
#undef X

/* Ends with NULL. */
extern const struct sh_cmd *const sh_commands[];

/* The command of that name, or NULL. */
const struct sh_cmd *sh_command_find(const char *name);

/* The commands with their summaries, a line each. */
void sh_commands_list(FILE *to);

/* The error for an unknown command, with similar names as a hint; returns -1. */
int sh_command_unknown(const char *name, struct sh_err *e);

/* man.c: the manual pages shears-COMMAND(1) and shears(1), in man(7) macros, from the tables that --help prints. */
void sh_man_page(const struct sh_cmd *c, FILE *to);
void sh_man_overview(FILE *to);

/* completion.c: prints completion for bash, fish or zsh; -1 with SH_MISUSED for any other shell. */
int sh_completion(const char *shell, FILE *to, struct sh_err *e);

/* Runs a command with its arguments and reports its error on stderr; returns the exit status. */
int sh_command_run(const struct sh_cmd *c, int argc, char **argv);

#endif
