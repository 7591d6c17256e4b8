/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator applied to a trace store: its evidence is measured there, and its budgets are replayed. Sequences of
 * different lengths are different problems with the same evidence.
 *
 *     sh_allot_open(&a, spec, &q, store, &e);          measures
 *     sh_allot_budgets(&a, &q, &e);                    from now on q.share_out gives the budgets
 *     sh_replay_run(&q, …);
 *     sh_allot_close(&a); */
#ifndef SH_APP_PLAN_ALLOT_H
#define SH_APP_PLAN_ALLOT_H

#include "planner/allocator/allocator.h"
#include "src/app/common/recorded.h"
#include "src/app/replay/replay_store.h"

struct sh_allot {
    struct sh_allocator_spec spec;
    int n_layer, n_head, first_layer;   /* KV heads */
    int *heads;                         /* [n_layer]: KV heads of each, at most n_head; 0: without attention, and so */
                                        /* without a cache */
    int floor;                          /* the smallest budget of the policy, on long sequences */
    int *length, n_length;              /* lengths of sequences, each once, ascending */
    double *persistence, *entropy;      /* measurements as in struct sh_allocation, NULL where not needed */
    double *curve, *curve_share;        /* at these shares of the length, but at least at the floor */
    int n_point;
    double *profile;                    /* [n_layer][n_head][n_key] */
    int n_key;
    double *loss;                       /* [n_layer][n_loss]: sh_allot_losses                     */
    int *loss_point, n_loss;
    int *table, n_budget;               /* [n_length][n_budget][n_layer][n_head] */
};

/* q has one policy, and the other settings of a replay. -1: the evidence cannot be measured in this store. */
int sh_allot_open(struct sh_allot *a, const struct sh_allocator_spec *spec, const struct sh_replay_request *q,
                  struct sh_store *s, struct sh_err *e);
void sh_allot_close(struct sh_allot *a);                /* zeroed is fine */

/* The first layer without heads, if the allocator looks at the attention of every layer; else -1. heads [n_layer]. */
int sh_allot_missing(const struct sh_allocator_spec *s, const int *heads, int n_layer);

/* The error of that layer. Returns -1. */
int sh_allot_refuse(const struct sh_allocator_spec *s, int layer, struct sh_err *e);

/* The same for allocators that also need the losses of layers, which no store has: give them before budgets are solved,
 * as loss [n_layer][n] at the ascending budgets point [n] of texts of one length, the only one to solve for. They
 * replace those that were given before. */
int sh_allot_open_live(struct sh_allot *a, const struct sh_allocator_spec *spec, const struct sh_replay_request *q,
                       struct sh_store *s, struct sh_err *e);
void sh_allot_losses(struct sh_allot *a, const int *point, const double *loss, int n);

/* Budgets of a layer's heads, with `mean` tokens on average, divided as the allocator greedy does. */
void sh_allot_layer(const struct sh_allot *a, int layer, int mean, int n_token, int *budget);

/* Budgets [n_layer][n_head] of one problem. If the mean is below the floor, all get the mean; so do heads that a layer
 * does not have, and the total is divided among the others. */
int sh_allot_solve(const struct sh_allot *a, int mean, int n_token, int *budget, struct sh_err *e);

/* Solves for every length and every mean of q->budget; q->share_out gives the budgets from then on. Valid until
 * close. */
int sh_allot_budgets(struct sh_allot *a, struct sh_replay_request *q, struct sh_err *e);

int sh_allot_longest(const struct sh_allot *a);         /* tokens of a sequence */
int *sh_allot_heads(const struct sh_allot *a);          /* a copy of heads, for free() */

/* "pyramid:beta=20", or "uniform". */
enum { SH_ALLOT_TEXT = SH_POLICY_TEXT + 64 };
const char *sh_allot_text(const struct sh_allocator_spec *s, char text[SH_ALLOT_TEXT]);

/* How the attention of each head is spread over the keys: the share of the best key, of the second best, and so on.
 * Only the last `window` queries of a sequence count (Ada-KV's observation window, at most half of the sequence). The
 * attention that they give each key before them, averaged over the queries and the query heads of a KV head, is
 * sorted, largest first; the profile is the mean over sequences, where a key that a short sequence lacks counts as 0.
 * Keys inside the window count as 0, too: else a head that attends to its neighbours would seem to need all of them,
 * although a few recent ones are enough.
 *
 * profile [n_layer of the runs][n_kv_head][n_key], zeros of heads that a layer does not have, n_key the longest
 * sequence; caller frees. The runs hold full rows of
 * the same layers. -1: rows are damaged, or no layer is finished. */
int sh_key_profile(struct sh_store *s, const struct sh_runs *runs, int window, int threads, double **profile,
                   int *n_key, struct sh_err *e);

#endif
