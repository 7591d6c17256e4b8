/* SPDX-License-Identifier: Apache-2.0 */
/* Paths on the command line. */
#ifndef SH_CLI_PATHS_H
#define SH_CLI_PATHS_H

#include "src/cli/args.h"

/* The one store that a command reads: --db FILE, or a word without an option. NULL: neither, or more. */
const char *sh_store_path_of(const char *command, const char *db, const struct sh_list *positional, struct sh_err *e);

/* The folder is there, or is made in one that is. */
int sh_folder_make(const char *path, struct sh_err *e);

/* What is written must not be what is read. NULL paths are fine. */
int sh_output_differs(const char *option, const char *out, const char *in, struct sh_err *e);

/* Files of one command; an option of NULL ends the list. None that is written may be another of them. */
struct sh_file_use {
    const char *option, *path;          /* "--log"; NULL: not given                               */
    int is_written;
};

int sh_files_apart(const struct sh_file_use *files, struct sh_err *e);

/* What a command found is not kept in the store, and why. Under --quiet only where writing failed: of a store that may
 * not be written to, nobody expects it. what: "results are". */
void sh_store_tell_unkept(const char *what, const char *path, int quiet, const struct sh_err *e);

#endif
