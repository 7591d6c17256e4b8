/* SPDX-License-Identifier: Apache-2.0 */
/* Do these files belong together? Model, settings and program are compared column by column, so that a refusal can
 * name the difference. */
#ifndef SH_TRACES_MERGE_MATCH_H
#define SH_TRACES_MERGE_MATCH_H

#include "traces/store.h"

struct sh_match;

/* The runs and parts in the store `out` decide what may be merged; an empty store accepts whatever comes first. */
struct sh_match *sh_match_begin(struct sh_store *out, struct sh_err *e);
void sh_match_end(struct sh_match *m);  /* NULL is fine */

/* -1: the file does not belong to the earlier ones. */
int sh_match_store(struct sh_match *m, struct sh_store *in, struct sh_err *e);

#endif
