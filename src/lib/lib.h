/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the library share. shears.h is its interface; nothing else is visible from outside. */
#ifndef SH_LIB_LIB_H
#define SH_LIB_LIB_H

#include <sys/types.h>

#include "src/base/common.h"
#include "src/base/err.h"
#include "src/base/out.h"
#include "src/lib/shears.h"
#include "traces/store.h"

struct shears_store {
    struct sh_store *store;
    struct sh_stored_run *run;          /* [n_run], sequence [n_sequence]: as last read           */
    struct sh_stored_sequence *sequence;
    int n_run, n_sequence;
    pid_t pid;                          /* whose it is: SQLite's files do not survive a fork      */
};

/* Hands the error over, where the caller wants it. Returns -1. */
int sh_lib_fail(struct shears_error **to, const struct sh_err *e);

/* An argument that makes no sense: "FUNCTION: found ..., expected ...". Returns -1. */
int sh_lib_misused(struct shears_error **to, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* -1: the pointer, an argument of the function called `what`, is NULL. */
int sh_lib_given(struct shears_error **to, const char *function, const char *what, const void *at);

/* -1: the store is NULL, or of the process that this one was forked from. */
int sh_lib_store(struct shears_error **to, const char *function, const struct shears_store *s);

/* A result of a description, which belongs to it from now on. */
struct shears_result *sh_lib_result(struct sh_out *o);

/* Asks a command. policy NULL: none but the built-in ones. NULL and e on failure; a command without a description
 * gives an empty one. */
struct sh_out *sh_lib_run(const char *command, const struct shears_option *options, const struct shears_watch *watch,
                          const struct sh_policy *policy, struct sh_err *e);

/* The sequence of that id, and its run. NULL: there is none. */
const struct sh_stored_sequence *sh_lib_sequence(struct shears_store *s, int id, const struct sh_stored_run **run,
                                                 struct sh_err *e);

#endif
