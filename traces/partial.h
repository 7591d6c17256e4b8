/* SPDX-License-Identifier: Apache-2.0 */
/* What one of several processes found of a part of a job, as bytes, until one of them has all parts and adds them
 * up in order: for figures that are of all parts together. The table `partial`, made when it is needed, holds it
 * under the job's name (a hash of all that decides the whole) and the part's number, with a check sum; stores are
 * not merged with it, and nothing of it is content (digest.h). */
#ifndef SH_TRACES_PARTIAL_H
#define SH_TRACES_PARTIAL_H

#include "traces/store.h"

/* Parts between begin and end come into the file together, or not at all; one that is there is replaced.
 * After an error nothing is open. */
int sh_partial_begin(struct sh_store *s, struct sh_err *e);
int sh_partial_put(struct sh_store *s, const char *job, int part, const void *at, size_t bytes, struct sh_err *e);
int sh_partial_end(struct sh_store *s, struct sh_err *e);
void sh_partial_undo(struct sh_store *s);

/* The parts of a job that the store has, from 0 to n - 1, get has[part] = mark; gives how many, or -1. */
int sh_partial_list(struct sh_store *s, const char *job, int n, int *has, int mark, struct sh_err *e);

/* Exactly so many bytes are expected. */
int sh_partial_get(struct sh_store *s, const char *job, int part, void *at, size_t bytes, struct sh_err *e);

#endif
