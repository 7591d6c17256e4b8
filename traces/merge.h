/* SPDX-License-Identifier: Apache-2.0 */
/* Joining what several processes wrote of one job, each into a file of its own.
 *
 * A shard is a store. One of trace has the whole run, all sequences, and those layers that are its own;
 * one of replay, eval or simulate has some of the results. The table `shard`, made when it is needed, says
 * which part of which job it is, and in a merged file which parts have come: verify tells what is missing. What a
 * part held is noted beside (held.h): one of which something is gone, or that holds what another one does, is refused.
 *
 * Merging copies layer by layer, setting by setting, each in one transaction, one block in memory at a time:
 * killed anywhere, the file opens, and merging the same files again goes on. What is there already is
 * compared (digest.h): the same content is left alone, other content is an error, and so is a blob that is not what
 * was written. Inputs are opened for reading only, one after another; what a killed program left of a change in one of
 * them is undone first. */
#ifndef SH_TRACES_MERGE_H
#define SH_TRACES_MERGE_H

#include "traces/store.h"

struct sh_shard {                       /* a part of a job                                        */
    char job[24];                       /* hash of all that decides the whole                     */
    int part, parts;                    /* part: from 1                                           */
    char command[16], program[32], model[24];   /* model: fingerprint of its weights, which those of runs in the
                                         * same store must be; or of a shape alone, with this in front */
};
#define SH_SHARD_SHAPE "shape:"

/* Say which part this store is; the same again is no error. */
int sh_shard_mark(struct sh_store *s, const struct sh_shard *shard, struct sh_err *e);

/* Before any work on a part: -1 where the store has one of another job of the same command, or of another version of
 * the program; parts of other commands may be in it. settings [n]: of all results of the whole; NULL: of a trace. */
int sh_shard_check(struct sh_store *s, const struct sh_shard *shard, const char *const *settings, int n,
                   struct sh_err *e);

/* All parts that a store has, by job and number: *out is owned by the caller. */
int sh_shard_list(struct sh_store *s, struct sh_shard **out, int *n, struct sh_err *e);

struct sh_merge;

struct sh_merge_counts {
    long long layers, layers_same, results, results_same, plans;        /* results: sets of settings      */
    int differs;                        /* the last file was refused since the store has other content in its place */
};

/* Into an open store (sh_store_create). */
struct sh_merge *sh_merge_begin(struct sh_store *out, struct sh_err *e);

/* Does this file belong to the same job as the store and the files looked at before? Writes nothing. */
int sh_merge_look(struct sh_merge *m, const char *path, struct sh_err *e);

/* Copy what is new in it. */
int sh_merge_add(struct sh_merge *m, const char *path, struct sh_err *e);

const struct sh_merge_counts *sh_merge_counts(const struct sh_merge *m);
void sh_merge_end(struct sh_merge *m);  /* NULL is fine                                           */

#endif
