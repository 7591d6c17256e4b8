/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator at work on a trace store: what it needs is measured there, and the budgets that it gives enter
 * a replay. Sequences of different lengths are different problems with the same evidence.
 *
 *     sh_allot_open(&a, spec, &q, store, &e);          measures
 *     sh_allot_budgets(&a, &q, &e);                    from now on q.share_out gives the budgets
 *     sh_replay_run(&q, …);
 *     sh_allot_close(&a); */
#ifndef SH_APP_PLAN_ALLOT_H
#define SH_APP_PLAN_ALLOT_H

#include "planner/allocator/allocator.h"
#include "src/app/replay/replay_store.h"

struct sh_allot {
    struct sh_allocator_spec spec;
    int n_layer, n_head, first_layer;   /* KV heads */
    int floor;                          /* of the policy, on long sequences */
    int *length, n_length;              /* of sequences, each once, ascending */
    double *persistence, *entropy;      /* as struct sh_allocation has them, NULL where not needed */
    double *curve, *curve_share;        /* at these shares of the length, or at the floor where that is more */
    int n_point;
    double *profile;                    /* [n_layer][n_head][n_key] */
    int n_key;
    int *table, n_budget;               /* [n_length][n_budget][n_layer][n_head] */
};

/* q has one policy, and what else shapes a replay. -1: what is needed cannot be measured here. */
int sh_allot_open(struct sh_allot *a, const struct sh_allocator_spec *spec, const struct sh_replay_request *q,
                  struct sh_store *s, struct sh_err *e);
void sh_allot_close(struct sh_allot *a);                /* zeroed is fine */

/* Budgets [n_layer][n_head] of one problem. Where the mean is below the floor all get the mean. */
int sh_allot_solve(const struct sh_allot *a, int mean, int n_token, int *budget, struct sh_err *e);

/* Solve for every length and every mean of q->budget, and put that behind q->share_out. Valid until close. */
int sh_allot_budgets(struct sh_allot *a, struct sh_replay_request *q, struct sh_err *e);

int sh_allot_longest(const struct sh_allot *a);         /* tokens of a sequence */

/* "pyramid:beta=20", or "uniform". */
enum { SH_ALLOT_TEXT = SH_POLICY_TEXT + 64 };
const char *sh_allot_text(const struct sh_allocator_spec *s, char text[SH_ALLOT_TEXT]);

#endif
