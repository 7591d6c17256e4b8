/* SPDX-License-Identifier: Apache-2.0 */
/* --shard I/N: the I-th of N parts of a job, from 1, written into a store of its own beside --db. */
#ifndef SH_CLI_PART_H
#define SH_CLI_PART_H

#include "src/base/err.h"
#include "traces/merge.h"

struct sh_part { int part, parts; };    /* parts 0: the whole                                     */

#define SH_PART_OPT(field) {"shard", SH_OPT_TEXT, field, "I/N", "do only the I-th of N parts, into FILE.shard-I-of-N " \
    "beside --db\n(I with as many digits as N); shears merge joins them", 0, 0, 0}

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

/* Note in the shard what it is: `job` is the hash of all that decides the whole, `model` the fingerprint of its
 * weights, or the hash of its shape where nothing reads weights (has_weights 0). */
int sh_part_mark(struct sh_store *s, const struct sh_part *p, const char *command, uint64_t job, uint64_t model,
                 int has_weights, struct sh_err *e);

#endif
