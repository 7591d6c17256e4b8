/* SPDX-License-Identifier: Apache-2.0 */
/* A record of what each part of a job held, so that a loss is noticed while the store's mark (merge.h) still says
 * that the part is present. The table `held`, made on demand, has a row for each finished layer of a sequence, or
 * each set of results, that a part made: its hash and its number of rows. A set of results that a part still has to
 * make, or that was already in the store that it reads, is recorded with 0 rows: as long as no file has it, the job
 * is incomplete. The table is not content (digest.h). An older store, without the table, says nothing of its parts.
 * Items that several parts make alike belong to one of them or to none. */
#ifndef SH_TRACES_SHARD_INVENTORY_H
#define SH_TRACES_SHARD_INVENTORY_H

#include "traces/merge.h"

struct sh_inventory {
    char job[24];
    int part;
    long long item;                     /* hash of a run's key, sequence and layer, or of a command and settings  */
    int rows;                           /* blocks or results at the time of recording; 0: expected, from any part */
    int found;                          /* rows present now: sh_inventory_look                       */
};

/* Record which part this store is (sh_shard_mark) and what it holds, in one transaction, replacing the record of that
 * part. settings [n]: of the results of the shard's command that belong to the part, here or in another store; NULL:
 * the finished layers of the run whose key is the job. */
int sh_inventory_mark(struct sh_store *s, const struct sh_shard *shard, const char *const *settings, int n,
                 struct sh_err *e);

/* The same before any work: the settings [n] are expected. An existing record of that part stays. */
int sh_inventory_begin(struct sh_store *s, const struct sh_shard *shard, const char *const *settings, int n,
                  struct sh_err *e);

/* Was this part begun, but never recorded with what it made? 1, 0, or -1. If so, sh_inventory_forget removes mark and
 * record. */
int sh_inventory_is_begun(struct sh_store *s, const struct sh_shard *shard, struct sh_err *e);
int sh_inventory_forget(struct sh_store *s, const struct sh_shard *shard, struct sh_err *e);

/* All items, by job, part and item; *out is owned by the caller. shard [n_shard]: the parts that the store is marked
 * as, in order; an item of any other part is an error. */
int sh_inventory_list(struct sh_store *s, const struct sh_shard *shard, int n_shard, struct sh_inventory **out, int *n,
                 struct sh_err *e);

/* Set `found`: the number of rows that the store has of each item. */
int sh_inventory_look(struct sh_store *s, struct sh_inventory *held, int n, struct sh_err *e);

/* Within a transaction: `held`, read from another store, replaces the record of the same parts. */
int sh_inventory_copy(struct sh_store *to, const struct sh_inventory *held, int n, struct sh_err *e);

/* The items of several stores, added one store after another. The same item in two parts of a job is an error. */
struct sh_inventory_seen;
struct sh_inventory_seen *sh_inventory_seen_new(void);
void sh_inventory_seen_free(struct sh_inventory_seen *seen);      /* NULL is fine */
int sh_inventory_seen_add(struct sh_inventory_seen *seen, const char *path, const struct sh_inventory *held, int n,
                          struct sh_err *e);

#endif
