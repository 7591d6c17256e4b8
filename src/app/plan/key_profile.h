/* SPDX-License-Identifier: Apache-2.0 */
/* How attention is spread over the keys of each head: what the best key gets, the second best, and so on.
 * Of every sequence the last `window` queries are looked at (Ada-KV's observation window, half of the sequence at
 * most); the attention that each key before them gets, mean over the queries and the query heads of its KV head,
 * is put in order, largest first; the profile is the mean over sequences, a key that a short sequence does not
 * have getting nothing. Keys inside the window get nothing, either: else a head that looks at its neighbours
 * would seem to need all of them, when a few recent ones will do. */
#ifndef SH_APP_PLAN_KEY_PROFILE_H
#define SH_APP_PLAN_KEY_PROFILE_H

#include "src/app/common/runs.h"

/* profile [n_layer of the runs][n_kv_head][n_key], n_key the longest sequence; caller frees. Runs of full rows,
 * the same layers in each. -1: damaged rows, or no layer is finished. */
int sh_key_profile(struct sh_store *s, const struct sh_runs *runs, int window, int threads, double **profile,
                   int *n_key, struct sh_err *e);

#endif
