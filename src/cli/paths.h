/* SPDX-License-Identifier: Apache-2.0 */
/* Paths on the command line. */
#ifndef SH_CLI_PATHS_H
#define SH_CLI_PATHS_H

#include "src/cli/args.h"

/* The one store that a command reads: --db FILE, or the only argument. NULL: neither, or several. */
const char *sh_store_path_of(const char *command, const char *db, const struct sh_list *positional, struct sh_err *e);

/* Creates the folder, not its parents; an existing one is fine. */
int sh_folder_make(const char *path, struct sh_err *e);

/* Creates the folder as well, and keeps others that call this out of it until the program ends. File systems that have
 * no locks keep nobody out. */
int sh_folder_hold(const char *path, struct sh_err *e);

/* -1 if the output is the input. NULL paths are fine. */
int sh_output_differs(const char *option, const char *out, const char *in, struct sh_err *e);

/* Files of one command; an option of NULL ends the list. -1 if one that is written is also another of them. */
struct sh_file_use {
    const char *option, *path;          /* "--log"; NULL: not given                               */
    int is_written;
};

int sh_files_apart(const struct sh_file_use *files, struct sh_err *e);

/* Says on stderr that results were not stored, and why. With --quiet only if the store is writable: a read-only store
 * is expected to stay as it is. what: "results are". */
void sh_store_tell_unkept(const char *what, const char *path, int quiet, const struct sh_err *e);

#endif
