/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite connection, for this folder only: opening, refusing foreign files, errors that name the file, and
 * prepared statements. */
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
    int claim;                          /* store_lock.h: file descriptor; 0: none */
    int file;                           /* file descriptor for hints to the system; 0: none */
    int reads, patient, told;           /* wait.h: read only; waits without limit; wait was reported */
    double since, gave_up;              /* wait.h: begin of the running wait; end of the last failed one */
    void (*tell)(void *to, const char *path);
    void *tell_to;
    size_t unsent;                      /* blob bytes since the system was last asked to write them */
    sqlite3_stmt *put;                  /* inserts a result; NULL: not prepared  */
    long long steps, taken, most;       /* untrusted.h: of the running query; limit of `taken` */
    int spent;                          /* it exceeded its steps           */
};

/* Fill e with "PATH: doing what: SQLite's reason". -1. */
int sh_db_fail(struct sh_store *s, const char *doing, struct sh_err *e);

int sh_db_exec(struct sh_store *s, const char *sql, const char *doing, struct sh_err *e);

/* Prepare and bind: i int, l long long, r double, t text (NULL allowed), b blob + int size. NULL on error. */
sqlite3_stmt *sh_db_query(struct sh_store *s, struct sh_err *e, const char *sql, const char *types, ...);

/* Rebind a prepared and reset statement. */
int sh_db_bind(struct sh_store *s, sqlite3_stmt *q, struct sh_err *e, const char *types, ...);

/* One step: 1 row, 0 done, -1 error. sh_db_once also finalises and expects no row. */
int sh_db_step(struct sh_store *s, sqlite3_stmt *q, const char *doing, struct sh_err *e);
int sh_db_once(struct sh_store *s, sqlite3_stmt *q, const char *doing, struct sh_err *e);

#endif
