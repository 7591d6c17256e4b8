/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of a job held when they were noted, so that it is seen when some of it goes from a store whose mark
 * (merge.h) still says that the part is there. The table `held`, made when it is needed, has a row for each finished
 * layer of a sequence, or each set of results, that a part made: which one, as a hash, and of how many rows it was. A
 * set of results that a part shall make, but has not yet, or that the store it reads had already, is noted with no
 * rows: where nobody has it the job is not complete. Nothing of it is content (digest.h). A store without the table, as
 * they were before, says nothing of its parts. What several parts make alike belongs to none of them, or to one. */
#ifndef SH_TRACES_HELD_H
#define SH_TRACES_HELD_H

#include "traces/merge.h"

struct sh_held {
    char job[24];
    int part;
    long long item;                     /* hash of a run's key, sequence and layer, or of a command and settings  */
    int rows;                           /* blocks, or figures, when the part was noted; 0: expected, from wherever */
    int found;                          /* that there are now: sh_held_look                       */
};

/* Say which part this store is (sh_shard_mark) and what it holds, in one transaction; what was said before of that
 * part goes. settings [n]: of the results of the shard's command that belong to the part, here or in another store;
 * NULL: the finished layers of the run whose key is the job. */
int sh_held_mark(struct sh_store *s, const struct sh_shard *shard, const char *const *settings, int n,
                 struct sh_err *e);

/* The same before any work: the settings [n] are expected. What was said before of that part stays. */
int sh_held_begin(struct sh_store *s, const struct sh_shard *shard, const char *const *settings, int n,
                  struct sh_err *e);

/* Was this part begun, and never noted with what it made? 1, 0, or -1. Then sh_held_forget: mark and notes go. */
int sh_held_is_begun(struct sh_store *s, const struct sh_shard *shard, struct sh_err *e);
int sh_held_forget(struct sh_store *s, const struct sh_shard *shard, struct sh_err *e);

/* By job, part and item; *out is owned by the caller. shard [n_shard]: the parts that the store says it has, in their
 * order; what another one held has no place in it. */
int sh_held_list(struct sh_store *s, const struct sh_shard *shard, int n_shard, struct sh_held **out, int *n,
                 struct sh_err *e);

/* Fill in `found`: how many rows the store has of each. */
int sh_held_look(struct sh_store *s, struct sh_held *held, int n, struct sh_err *e);

/* Within a transaction: `held`, of another store, takes the place of what is said here of the same parts. */
int sh_held_copy(struct sh_store *to, const struct sh_held *held, int n, struct sh_err *e);

/* What the parts of several stores held, one store after another: the same of two parts of a job is an error. */
struct sh_held_seen;
struct sh_held_seen *sh_held_seen_new(void);
void sh_held_seen_free(struct sh_held_seen *seen);      /* NULL is fine */
int sh_held_seen_add(struct sh_held_seen *seen, const char *path, const struct sh_held *held, int n, struct sh_err *e);

#endif
