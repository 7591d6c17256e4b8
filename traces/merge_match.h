/* SPDX-License-Identifier: Apache-2.0 */
/* Do files belong together? Of the same model, settings and program, told column by column so that the
 * refusal can name what differs. */
#ifndef SH_TRACES_MERGE_MATCH_H
#define SH_TRACES_MERGE_MATCH_H

#include "traces/store.h"

struct sh_match;

/* What a store has, runs and parts of jobs, decides what may come; one without takes what comes first. */
struct sh_match *sh_match_begin(struct sh_store *out, struct sh_err *e);
void sh_match_end(struct sh_match *m);  /* NULL is fine */

/* -1: it does not belong to those before. */
int sh_match_store(struct sh_match *m, struct sh_store *in, struct sh_err *e);

#endif
