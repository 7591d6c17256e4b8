/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite connection, for this folder only: opening, refusing foreign files, errors that name the file, prepared
 * statements, waiting for other programs, and limits on what a file can do. */
#ifndef SH_TRACES_DB_H
#define SH_TRACES_DB_H

#include <sqlite3.h>

#include "traces/store.h"

struct sh_store {
    sqlite3 *db;
    char *path;
    int writes;
    int made;                           /* the file was made by this connection */
    const char *line;                   /* the command that stores results, as typed; NULL: not said */
    int in_group;                       /* the transaction covers a group of results */
    int claim;                          /* wait.c: file descriptor; 0: none */
    int file;                           /* file descriptor for hints to the system; 0: none */
    int reads, patient, told;           /* wait.c: read only; waits without limit; wait was reported */
    double since, gave_up;              /* wait.c: begin of the running wait; end of the last failed one */
    void (*tell)(void *to, const char *path);
    void *tell_to;
    size_t unsent;                      /* blob bytes since the system was last asked to write them */
    sqlite3_stmt *put;                  /* inserts a result; NULL: not prepared  */
    long long steps, taken, most;       /* untrusted.c: of the running query; limit of `taken` */
    int spent;                          /* it exceeded its steps           */
};

/* Fill e with "PATH: doing what: SQLite's reason". -1. */
int sh_db_fail(struct sh_store *s, const char *doing, struct sh_err *e);

int sh_db_exec(struct sh_store *s, const char *sql, const char *doing, struct sh_err *e);

/* Prepare and bind: i int, l long long, r double, t text (NULL allowed), b blob + int size. NULL on error. */
sqlite3_stmt *sh_db_query(struct sh_store *s, struct sh_err *e, const char *sql, const char *types, ...);

/* Rebind a prepared and reset statement. */
int sh_db_bind(struct sh_store *s, sqlite3_stmt *q, struct sh_err *e, const char *types, ...);

/* One step: 1 row, 0 done, -1 error. Rows are best read with sh_columns_next (column.h). */
int sh_db_step(struct sh_store *s, sqlite3_stmt *q, const char *doing, struct sh_err *e);

/* Prepare, bind and run a statement that returns no rows. */
int sh_db_do(struct sh_store *s, struct sh_err *e, const char *doing, const char *sql, const char *types, ...);

/* A transaction that writes: it commits, or is undone if something in it (bad) or the commit fails: -1 then. */
int sh_db_begin(struct sh_store *s, const char *doing, struct sh_err *e);
int sh_db_end(struct sh_store *s, int bad, const char *doing, struct sh_err *e);

/* ---- store.c ---- */

/* Programs that support only earlier versions must refuse this file from now on. */
int sh_store_raise_version(struct sh_store *s, int version, struct sh_err *e);

/* The id of the run just inserted, or -1; *first: the id for the first of its sequences. */
int sh_store_new_run(struct sh_store *s, int *first, struct sh_err *e);

/* Within a transaction. */
int sh_store_put_block(struct sh_store *s, int sequence, int layer, const struct sh_block *b, struct sh_err *e);

/* The tables of sh_store_measured and sh_store_sums, where they are missing. */
int sh_store_make_measured(struct sh_store *s, struct sh_err *e);
int sh_store_make_sums(struct sh_store *s, struct sh_err *e);

/* ---- wait.c ---- */

/* This connection waits for other programs from now on; cannot fail. */
void sh_wait_set(struct sh_store *s);

/* The time until which the file stays free after a transaction with this begin and end; sleep until then. Seconds,
 * sh_now_s. */
double sh_wait_turn(double began, double ended);
void sh_wait_until(double then);

/* ---- untrusted.c ---- */

/* Call before anything of the file is read; it cannot fail. */
void sh_untrusted_set(struct sh_store *s);

/* Refuse tables that are not plain ones and text that is not UTF-8. Call once the file is known to be a store. */
int sh_untrusted_check(struct sh_store *s, struct sh_err *e);

/* Begin a query: reset the counts of steps and bytes. */
void sh_untrusted_begin(struct sh_store *s);

/* Count bytes that the query returned. -1: more than one value, and more than the file can hold. */
int sh_untrusted_take(struct sh_store *s, size_t bytes, struct sh_err *e);

#endif
