/* SPDX-License-Identifier: Apache-2.0 */
/* One error, filled where it is found; the layers above pass it on or put their own context in front. Nothing below
 * src/cli prints or exits: functions that can fail return -1 (or NULL) and have filled `e`. `e` is never NULL. On
 * failure outputs are untouched. */
#ifndef SH_BASE_ERR_H
#define SH_BASE_ERR_H

#include <stddef.h>

enum sh_status {            /* exit statuses of the program; also kept in the error             */
    SH_OK = 0,
    SH_FAILED = 1,          /* the work could not be done: bad file, full disk, …               */
    SH_MISUSED = 2,         /* the request makes no sense: unknown option, impossible value     */
    SH_ABSENT = 3,          /* something optional is not here: GPU, module, gnuplot             */
    SH_UNREAD = 141         /* whoever read standard output has enough: 128 + SIGPIPE, no message */
};

struct sh_err {
    enum sh_status status;
    char text[1024];        /* "what: where, found, expected"; no trailing newline              */
    char hint[512];         /* what to do about it; empty when there is nothing useful to say   */
    int is_io;              /* a file could not be read or written, or memory ran out: not a fault of its content */
    int is_locked;          /* another process holds a store's lock                                 */
};

/* Fill and return -1, so that a caller can `return sh_fail(e, …)`. */
int sh_err_fill(struct sh_err *e, enum sh_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define sh_fail(e, ...) sh_err_fill(e, SH_FAILED, __VA_ARGS__)
#define sh_misused(e, ...) sh_err_fill(e, SH_MISUSED, __VA_ARGS__)
#define sh_absent(e, ...) sh_err_fill(e, SH_ABSENT, __VA_ARGS__)
/* The same for functions that return a pointer. */
#define sh_fail_null(e, ...) (sh_fail(e, __VA_ARGS__), (void *)0)

/* Puts "context: " in front of the text, without repeating its first part (up to a colon) if the text begins with that,
 * such as a file's name. Returns -1. */
int sh_err_prefix(struct sh_err *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Set the hint. Returns -1. */
int sh_hint(struct sh_err *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- suggestions for a mistyped name (near.c) ---- */

/* The names in `all`, one per line, that `name` may stand for, at most three, as "h2o, tova or full", written to `out`
 * and cut to `bytes`. A name qualifies if it contains `name`, is contained in it, or differs in at most a third of
 * its letters; if none does, an abbreviation qualifies: db for database; if none does, what begins like it with one
 * letter less, more or another: H100-SXM for H1000. Case, dots, dashes and spaces are ignored.
 * Empty if none qualifies. Returns out. */
const char *sh_near(const char *name, size_t length, const char *all, char *out, size_t bytes);

/* Sets the hint "did you mean H2O or TOVA? REST", or REST alone if nothing is near. Returns -1. */
int sh_hint_near(struct sh_err *e, const char *name, size_t length, const char *all, const char *rest);

#endif
