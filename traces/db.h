/* SPDX-License-Identifier: Apache-2.0 */
/* The connection, for store.c and store_*.c only: opening, refusing foreign files, errors that
 * name the file, and prepared statements. */
#ifndef SH_TRACES_DB_H
#define SH_TRACES_DB_H

#include <sqlite3.h>

#include "traces/store.h"

struct sh_store {
    sqlite3 *db;
    char *path;
    int writes;
    int made;                           /* the file was made by this connection */
    const char *line;                   /* how the command was typed that stores results; NULL: nobody said */
    int in_group;                       /* the transaction of results is that of a group of them */
    int claim;                          /* claim.h: a descriptor of the file; 0: none */
    int file;                           /* another, for hints to the system; 0: none */
    int reads, patient, told;           /* wait.h: for readers' time; without end; it was said */
    double since, gave_up;              /* wait.h: when the running wait began, and the last one ended in vain */
    void (*tell)(void *to, const char *path);
    void *tell_to;
    size_t unsent;                      /* bytes of blobs since the system was last asked to write */
    sqlite3_stmt *put;                  /* of a figure; NULL: not prepared yet  */
    long long steps, taken, most;       /* guard.h: of the running query; bytes that one may give */
    int spent;                          /* it was ended for its steps           */
};

/* Fill e with "PATH: doing what: SQLite's reason". -1. */
int sh_db_fail(struct sh_store *s, const char *doing, struct sh_err *e);

int sh_db_exec(struct sh_store *s, const char *sql, const char *doing, struct sh_err *e);

/* Prepare and bind: i int, l long long, r double, t text (NULL allowed), b blob + int size. NULL on error. */
sqlite3_stmt *sh_db_query(struct sh_store *s, struct sh_err *e, const char *sql, const char *types, ...);

/* Bind again, to one that is prepared and reset. */
int sh_db_bind(struct sh_store *s, sqlite3_stmt *q, struct sh_err *e, const char *types, ...);

/* One step: 1 row, 0 done, -1 error. sh_db_once also finalises and expects no row. */
int sh_db_step(struct sh_store *s, sqlite3_stmt *q, const char *doing, struct sh_err *e);
int sh_db_once(struct sh_store *s, sqlite3_stmt *q, const char *doing, struct sh_err *e);

#endif
