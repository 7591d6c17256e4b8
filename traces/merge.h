/* SPDX-License-Identifier: Apache-2.0 */
/* Merging the files that several processes wrote for one job.
 *
 * Each file is marked with the parts of jobs that it holds, and what they held is recorded (shard.h): a part that has
 * lost an item, or that has an item of another part, is refused.
 *
 * Merging copies layer by layer, setting by setting, each in one transaction, one block in memory at a time: killed
 * anywhere, the file opens, and merging the same files again continues. Content that exists already is compared
 * (digest.h): equal content is left alone; different content is an error, as is a damaged blob. Inputs are opened
 * read-only, one after another; a change left half-way by a killed program is undone first. */
#ifndef SH_TRACES_MERGE_H
#define SH_TRACES_MERGE_H

#include "traces/shard.h"

struct sh_merge;

struct sh_merge_counts {
    long long layers, layers_same, results, results_same, plans;        /* results: count of settings      */
    int differs;                        /* the last file was refused: its content differs from the store's */
};

/* Merge into an open store (sh_store_create). */
struct sh_merge *sh_merge_begin(struct sh_store *out, struct sh_err *e);

/* Does this file belong to the same job as the store and the files checked before? Writes nothing. */
int sh_merge_look(struct sh_merge *m, const char *path, struct sh_err *e);

/* Copy what the store does not have yet. */
int sh_merge_add(struct sh_merge *m, const char *path, struct sh_err *e);

const struct sh_merge_counts *sh_merge_counts(const struct sh_merge *m);
void sh_merge_end(struct sh_merge *m);  /* NULL is fine                                           */

/* ---- for merge.c: which files belong together ---- */

struct sh_match;

/* The runs and parts in the store `out` decide what may be merged; an empty store accepts whatever comes first. */
struct sh_match *sh_match_begin(struct sh_store *out, struct sh_err *e);
void sh_match_end(struct sh_match *m);  /* NULL is fine */

/* -1: the file does not belong to the earlier ones. */
int sh_match_store(struct sh_match *m, struct sh_store *in, struct sh_err *e);

#endif
