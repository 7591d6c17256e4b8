/* SPDX-License-Identifier: Apache-2.0 */
/* --shard I/N: part I of N of a job, from 1, written to a store of its own next to --db. */
#ifndef SH_JOBS_SHARD_OPTION_H
#define SH_JOBS_SHARD_OPTION_H

#include "src/base/err.h"
#include "traces/shard.h"

struct sh_part { int part, parts; };    /* parts 0: the whole                                     */

/* "3/8"; NULL: the whole. */
int sh_part_parse(const char *text, struct sh_part *out, struct sh_err *e);

/* "FILE.shard-03-of-16", zero-padded so that names sort in order; for the whole job FILE itself. db NULL: NULL. Caller
 * frees. */
char *sh_part_path(const char *db, const struct sh_part *p);

/* Does item i of n belong to this part? Items are dealt like cards, so that neighbours, which often cost the same, are
 * spread over the parts. */
int sh_part_has(const struct sh_part *p, int i);

/* FNV-1a over a text and its terminator, to identify the job that a shard belongs to. */
void sh_part_hash(uint64_t *h, const char *text);
#define SH_PART_HASH 0xcbf29ce484222325u

/* Before a shard of trace is written: claims it (traces/wait.c); -1 if it belongs to another trace (merge.h). */
int sh_part_check(struct sh_store *s, const struct sh_part *p, uint64_t job, struct sh_err *e);

/* Records in a shard of trace what it is: `job` is the key of its run, as a number, `model` the fingerprint of its
 * weights. is_whole: it is complete, which is recorded as well (traces/shard_inventory.c). */
int sh_part_mark(struct sh_store *s, const struct sh_part *p, uint64_t job, uint64_t model, int is_whole,
                 struct sh_err *e);

/* The same for a shard of results. Before any work, with is_whole 0: claims and checks it and records what it will
 * compute; at the end, what it has. settings [n]: of all results of the whole job, in order, which identify the job;
 * own [n]: does this part compute them, and at the end, are they stored? Of equal settings the first decides. model:
 * the hash of its shape if no weights are read (has_weights 0). */
struct sh_part_results {
    const char *command;
    const char **settings;
    unsigned char *own;
    int n, has_weights;
    uint64_t model;
};
int sh_part_mark_results(struct sh_store *s, const struct sh_part *p, const struct sh_part_results *r, int is_whole,
                         struct sh_err *e);

#endif
