/* SPDX-License-Identifier: Apache-2.0 */
/* Theorem 3.1 (planner/theory/theory_repeat.h) on a trace with queries, keys and values, and the checkpoint that it
 * was made with. What x_{t+1} was is not in a trace, so the theorem's premise on it is not checked: a
 * violation tells that the premise fails. Models that turn or norm queries and keys are refused: theirs are
 * not the x W of the theorem. */
#ifndef SH_APP_THEORY_REPEAT_STORE_H
#define SH_APP_THEORY_REPEAT_STORE_H

#include "planner/theory/theory_repeat.h"
#include "src/app/theory/theory_store.h"

/* layer [r->n_layer], to be freed: counts are sums over heads and sequences, `mean_eps` and `step` means over
 * their positive pairs, `least_eps` the least, `lemma` the largest. r: what sh_theory_run made of the store. */
int sh_theory_repeat_run(const struct sh_theory_request *q, const struct sh_theory_result *r, const char *model,
                         struct sh_store *s, struct sh_repeat **layer, struct sh_err *e);

#endif
