/* SPDX-License-Identifier: Apache-2.0 */
/* Stores that one job at a time may work on: that of a job by ranks, those of its ranks, and shards. The claim is a
 * lock on a byte of the file that lies behind all that SQLite locks (one of an open file, not of a process), so it goes
 * with whoever has it, however that ends, and nothing of it lies in the folder. It says nothing to programs that do not
 * ask: they share the store as SQLite lets them. */
#ifndef SH_TRACES_CLAIM_H
#define SH_TRACES_CLAIM_H

#include "traces/store.h"

/* Until the store is closed. Waits some seconds for one that is about to end. -1: somebody else has it. */
int sh_store_claim(struct sh_store *s, struct sh_err *e);

/* Has somebody claimed the store of that name? Waits likewise for him to end. This process must not have it open. */
int sh_store_is_claimed(const char *path);

#endif
