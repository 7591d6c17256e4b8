/* SPDX-License-Identifier: Apache-2.0 */
/* Intermediate results of the parts of a job, as bytes, until one process has all parts and adds them up in order:
 * for results that need all parts together. The table `partial`, made on demand, holds them under the job's name (a
 * hash of everything that determines the whole) and the part's number, with a checksum. They are not merged with the
 * store and are not content (digest.h). */
#ifndef SH_TRACES_PARTIAL_H
#define SH_TRACES_PARTIAL_H

#include "traces/store.h"

/* Parts put between begin and end enter the file together or not at all; an existing part is replaced. After an error
 * no transaction is open. */
int sh_partial_begin(struct sh_store *s, struct sh_err *e);
int sh_partial_put(struct sh_store *s, const char *job, int part, const void *at, size_t bytes, struct sh_err *e);
int sh_partial_end(struct sh_store *s, struct sh_err *e);
void sh_partial_undo(struct sh_store *s);

/* Sets has[part] = mark for the job's parts in the store, from 0 to n - 1; returns their number, or -1. */
int sh_partial_list(struct sh_store *s, const char *job, int n, int *has, int mark, struct sh_err *e);

/* The part must have exactly that many bytes. */
int sh_partial_get(struct sh_store *s, const char *job, int part, void *at, size_t bytes, struct sh_err *e);

#endif
