/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a job.
 *
 * A shard is a store. A shard of trace has the whole run, all sequences, and its own layers; one of replay, eval or
 * simulate has some of the results. The table `shard`, made on demand, records which part of which job the store is,
 * and in a merged file which parts have come; verify reports the missing ones. */
#ifndef SH_TRACES_SHARD_H
#define SH_TRACES_SHARD_H

#include "traces/store.h"

/* FNV-1a, continued from h. */
#define SH_FNV_BASIS 0xcbf29ce484222325u
uint64_t sh_fnv(uint64_t h, const void *at, size_t bytes);

struct sh_shard {                       /* a part of a job                                        */
    char job[24];                       /* hash of all that decides the whole                     */
    int part, parts;                    /* part: from 1                                           */
    char command[16], program[32], model[24];   /* model: fingerprint of its weights, equal to that of the runs in the
                                         * same store; or of a shape alone, with this prefix */
};
#define SH_SHARD_SHAPE "shape:"

/* Mark the store as this part; repeating it is not an error. */
int sh_shard_mark(struct sh_store *s, const struct sh_shard *shard, struct sh_err *e);

/* Call before any work on a part. -1: the store has a part of another job of the same command, or of another version
 * of the program; parts of other commands are allowed. settings [n]: of all results of the whole job; NULL: a trace. */
int sh_shard_check(struct sh_store *s, const struct sh_shard *shard, const char *const *settings, int n,
                   struct sh_err *e);

/* All parts that a store is marked as, by job and number; *out is owned by the caller. */
int sh_shard_list(struct sh_store *s, struct sh_shard **out, int *n, struct sh_err *e);

/* ---- shard_inventory.c: what each part holds ---- */

/* A record of what each part of a job held, so that a loss is noticed while the store's mark still says that the part
 * is present. The table `held`, made on demand, has a row for each finished layer of a sequence, or
 * each set of results, that a part made: its hash and its number of rows. A set of results that a part still has to
 * make, or that was already in the store that it reads, is recorded with 0 rows: as long as no file has it, the job
 * is incomplete. The table is not content (digest.h). An older store, without the table, says nothing of its parts.
 * Items that several parts make alike belong to one of them or to none. */
struct sh_inventory {
    char job[24];
    int part;
    long long item;                     /* hash of a run's key, sequence and layer, or of a command and settings  */
    int rows;                           /* blocks or results at the time of recording; 0: expected, from any part */
    int found;                          /* rows present now: sh_inventory_look                       */
};

/* Record which part this store is (sh_shard_mark) and what it holds, in one transaction, replacing the record of that
 * part. settings [n]: of the results of the shard's command that belong to the part, here or in another store; NULL:
 * the finished layers of the run whose key is the job. is_made 0: before any work; the settings are expected, and an
 * existing record of that part stays. */
int sh_inventory_mark(struct sh_store *s, const struct sh_shard *shard, const char *const *settings, int n, int is_made,
                      struct sh_err *e);

/* If this part was begun, but never recorded with what it made, remove its mark and record: 1 then, else 0, or -1. */
int sh_inventory_drop_begun(struct sh_store *s, const struct sh_shard *shard, struct sh_err *e);

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

/* ---- shard_partial.c: intermediate results ---- */

/* Intermediate results of the parts of a job, as bytes, until one process has all parts and adds them up in order:
 * for results that need all parts together. The table `partial`, made on demand, holds them under the job's name (a
 * hash of everything that determines the whole) and the part's number, with a checksum. They are not merged with the
 * store and are not content (digest.h). Parts put between begin and end enter the file together, or, if bad or on
 * an error, not at all; an existing part is replaced. Call end in any case, unless begin failed. */
int sh_partial_begin(struct sh_store *s, struct sh_err *e);
int sh_partial_put(struct sh_store *s, const char *job, int part, const void *at, size_t bytes, struct sh_err *e);
int sh_partial_end(struct sh_store *s, int bad, struct sh_err *e);

/* Sets has[part] = mark for the job's parts in the store, from 0 to n - 1; returns their number, or -1. */
int sh_partial_list(struct sh_store *s, const char *job, int n, int *has, int mark, struct sh_err *e);

/* The part must have exactly that many bytes. */
int sh_partial_get(struct sh_store *s, const char *job, int part, void *at, size_t bytes, struct sh_err *e);

#endif
