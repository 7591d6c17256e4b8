/* SPDX-License-Identifier: Apache-2.0 */
/* Divides a total of cached tokens among the layers and heads of a model.
 *
 * Heads are KV heads; arrays over them are in order of layer and head: [n_layer][n_head], or fewer where layers have
 * fewer. The rule: budgets sum to the number of heads times the mean exactly, none is below `floor` or above `n_token`,
 * and the same problem gives the same budgets. Where an allocator is `monotone`, no head's budget falls when the mean
 * rises; where it is not, none falls by more than the one token that rounding moves.
 *
 * Evidence is what was measured beforehand; NULL where it was not. An allocator never measures: it says what it
 * `needs`, and the caller provides it (src/app/plan/allot.h takes it from a trace). */
#ifndef SH_PLANNER_ALLOCATOR_H
#define SH_PLANNER_ALLOCATOR_H

#include "planner/policy/policy.h"

struct sh_allocation {
    int n_layer, n_head;
    const int *heads;                   /* [n_layer]: heads of each, 1 to n_head; NULL: n_head    */
    const int *number;                  /* [n_layer]: layers as errors name them; NULL: from 0 on */
    int mean;                           /* tokens a head, in [floor, n_token]                     */
    int floor;                          /* tokens that the policy protects, and one more          */
    int n_token;                        /* tokens of the sequence                                 */
    const double *persistence;          /* [n_layer]: ratios in [0, 1], planner/theory/persistence.h     */
    const double *entropy;              /* [head]: mean entropy of a head's rows, nats, >= 0      */
    const double *curve;                /* [head][n_point]: kept mass at each point               */
    const int *point;                   /* [n_point]: budgets, ascending, from floor to n_token   */
    int n_point;
    const double *score;                /* [head][n_token]: attention that a head's               */
                                        /* keys get, protected ones left out, largest first */
    const double *loss;                 /* [n_layer][n_loss]: loss of the model's output if the heads of this layer */
                                        /* have loss_point tokens on average and all others keep all; nats, >= 0 */
    const int *loss_point;              /* [n_loss]: ascending, from floor to below n_token, where nothing is lost */
    int n_loss;
};

enum sh_evidence {
    SH_EVIDENCE_PERSISTENCE = 1,
    SH_EVIDENCE_ENTROPY = 2,
    SH_EVIDENCE_CURVE = 4,
    SH_EVIDENCE_SCORE = 8,
    SH_EVIDENCE_LOSS = 16
};

struct sh_allocator {
    const char *name, *summary;
    const struct sh_knob *knobs;        /* NULL: none                                             */
    unsigned needs;                     /* enum sh_evidence                                       */
    int monotone;
    void (*share)(const struct sh_allocation *a, const double *knob, int *budget);
};

/* The list in allocator.c. */
extern const struct sh_allocator *const sh_allocators[];        /* NULL ends */

/* An allocator with its knobs set: what "pyramid:beta=20" means. */
struct sh_allocator_spec {
    const struct sh_allocator *allocator;
    double knob[SH_MAX_KNOBS];
};

/* Unknown names are errors that name the nearest ones. */
int sh_allocator_parse(const char *text, struct sh_allocator_spec *out, struct sh_err *e);

/* "beta=20", every knob; empty when there are none. */
const char *sh_allocator_knobs(const struct sh_allocator_spec *s, char text[SH_POLICY_TEXT]);

/* The knob of that name, which must be there. */
double sh_allocator_knob(const struct sh_allocator_spec *s, const char *name);

/* budget [head]. -1: evidence is missing or no number, or the mean is out of its range. */
int sh_allocate(const struct sh_allocator_spec *s, const struct sh_allocation *a, int *budget, struct sh_err *e);

/* Divides `total` tokens among the heads of one layer, as greedy does: budget [n_head]. Needs the curves. */
void sh_greedy_layer(const struct sh_allocation *a, int layer, long long total, int *budget);

/* The loss of one layer at a budget from point[0] to n_token, as the allocator loss reads it: loss [n] at the budgets
 * point [n], straight in the logarithm of the budget between them and to no loss at n_token. */
double sh_loss_at(const double *loss, const int *point, int n, int n_token, double budget);

/* The number of heads of a layer; the index of its first head in arrays over heads (layer n_layer: the number of all
 * heads). */
int sh_allocation_heads(const struct sh_allocation *a, int layer);
int sh_allocation_first(const struct sh_allocation *a, int layer);

/* ---- for allocators: pieces.c ---- */

/* A part of a concave curve in which every token gains the same. */
struct sh_slope {
    double slope;
    int of, from;                       /* of: the head or the layer                              */
    long long tokens;
};

/* The least concave curve above the points x [n] ascending, y [n], as at most n - 1 pieces. Returns their number. */
int sh_concave_pieces(const int *x, const double *y, int n, int of, struct sh_slope *to);

/* Gives out `left` tokens, the steepest pieces first, of equally steep ones that with the smallest `of`: taken[of] +=
 * up to piece.tokens. Sorts the pieces. */
void sh_fill_steepest(struct sh_slope *piece, int n, long long left, long long *taken);

/* ---- for allocators: apportion.c ---- */

/* Real shares as whole tokens that sum to a total. Head i should get base + lambda * weight[i], not below `floor`, not
 * above `most`; lambda is chosen so that the sum is right: tokens that the limits take from one head go to the others
 * by their weights. Then each share is rounded down, and the tokens that are left go to the largest remainders, of
 * equal remainders to the first. */

/* weight [n] >= 0 (a zero is a billionth of the largest; all 0: equal shares); n * floor <= total <= n * most. */
void sh_apportion(const double *weight, int n, double base, int floor, int most, long long total, int *out);

/* Every head of a layer by the layer's weight. */
void sh_layer_weights(const struct sh_allocation *a, const double *weight, double base, int *budget);

#endif
