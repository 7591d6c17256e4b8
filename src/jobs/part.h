/* SPDX-License-Identifier: Apache-2.0 */
/* --shard I/N: the I-th of N parts of a job, from 1, written into a store of its own beside --db. */
#ifndef SH_JOBS_PART_H
#define SH_JOBS_PART_H

#include "src/base/err.h"
#include "traces/merge.h"

struct sh_part { int part, parts; };    /* parts 0: the whole                                     */

/* "3/8"; NULL: the whole. */
int sh_part_parse(const char *text, struct sh_part *out, struct sh_err *e);

/* "FILE.shard-03-of-16": sorted by name they are in order; of the whole FILE itself. db NULL: NULL. Caller frees. */
char *sh_part_path(const char *db, const struct sh_part *p);

/* Item i of n belongs to this part? They are dealt like cards, so that neighbours, which often cost alike,
 * are spread. */
int sh_part_has(const struct sh_part *p, int i);

/* FNV-1a over a text and its end, for the job that a shard belongs to. */
void sh_part_hash(uint64_t *h, const char *text);
#define SH_PART_HASH 0xcbf29ce484222325u

/* Before a shard of trace is touched: it is claimed (traces/claim.h), and must be none of another trace (merge.h). */
int sh_part_check(struct sh_store *s, const struct sh_part *p, uint64_t job, struct sh_err *e);

/* Note in a shard of trace what it is: `job` is the key of its run, as a number, `model` the fingerprint of its
 * weights. is_whole: it has all that it shall have, which is noted as well (traces/held.h). */
int sh_part_mark(struct sh_store *s, const struct sh_part *p, uint64_t job, uint64_t model, int is_whole,
                 struct sh_err *e);

/* Both of a shard of results: before any work, is_whole 0, it is claimed, checked and marked with what it shall make;
 * when it has all of that, with what it has. settings [n]: of all results of the whole, in order, which decide the
 * job; own [n]: does this part make them? In the end: does it, and are they anywhere? Of several alike the first one
 * decides. model: the hash of its shape where nothing reads weights (has_weights 0). */
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
