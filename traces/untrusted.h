/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on what a file can make its connection do. A store may come from anywhere, and a SQLite file has its own
 * schema: views, triggers, virtual tables, computed columns, cycles of pages, overlapping values. A store needs none
 * of these, so none is allowed: nothing in the file is executed, nothing that it says of itself is trusted
 * (sqlite.org/security.html), and reading takes time and memory in proportion to the file's size. */
#ifndef SH_TRACES_UNTRUSTED_H
#define SH_TRACES_UNTRUSTED_H

#include "traces/db.h"

/* Call before anything of the file is read; it cannot fail. */
void sh_untrusted_set(struct sh_store *s);

/* Refuse tables that are not plain ones and text that is not UTF-8. Call once the file is known to be a store. */
int sh_untrusted_check(struct sh_store *s, struct sh_err *e);

/* Begin a query: reset the counts of steps and bytes. */
void sh_untrusted_begin(struct sh_store *s);

/* Count bytes that the query returned. -1: more than one value, and more than the file can hold. */
int sh_untrusted_take(struct sh_store *s, size_t bytes, struct sh_err *e);

#endif
