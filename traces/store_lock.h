/* SPDX-License-Identifier: Apache-2.0 */
/* Exclusive use of a store by one job: the stores of a job by ranks, those of its ranks, and shards. The claim is a
 * lock (of an open file, not of a process) on a byte of the file past everything that SQLite locks. It ends with its
 * holder, however that ends, and leaves nothing in the folder. Programs that do not ask for a claim do not notice it:
 * they share the store as SQLite allows. */
#ifndef SH_TRACES_STORE_LOCK_H
#define SH_TRACES_STORE_LOCK_H

#include "traces/store.h"

/* Held until the store is closed. Waits some seconds for a holder that is about to end. -1: another process holds
 * it. */
int sh_store_lock(struct sh_store *s, struct sh_err *e);

/* Is the store of that name claimed? Waits likewise for the holder to end. This process must not have the store
 * open. */
int sh_store_is_locked(const char *path);

#endif
