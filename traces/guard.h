/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection lets a file do. A store may come from anywhere, and a SQLite file brings a schema of its own:
 * views, triggers, virtual tables, computed columns, pages that lead in circles, values that lie on one another. None
 * of that is ever in a store, so none of it runs: nothing of the file is executed, what it says of itself is not
 * trusted (sqlite.org/security.html), and reading takes time and memory in proportion to the file's size. */
#ifndef SH_TRACES_GUARD_H
#define SH_TRACES_GUARD_H

#include "traces/db.h"

/* Before anything of the file is read; it cannot fail. */
void sh_guard_set(struct sh_store *s);

/* Refuse a store's tables that are not plain ones, and texts that are not UTF-8; after it is known to be a store. */
int sh_guard_check(struct sh_store *s, struct sh_err *e);

/* A query begins: steps and bytes count from here. */
void sh_guard_begin(struct sh_store *s);

/* It gave so many bytes. -1: of more than one value, the file cannot hold as many. */
int sh_guard_take(struct sh_store *s, size_t bytes, struct sh_err *e);

#endif
