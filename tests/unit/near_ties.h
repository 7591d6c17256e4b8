/* SPDX-License-Identifier: Apache-2.0 */
/* Who is kept, on a device and by a reference, where both compute their own rows. A device's expf and the order of its
 * sums are its own, so two tokens whose scores are all but equal may change places there. Such a flip is told from an
 * error by the reference's rows: the tokens that only one side keeps must have scores that its rounding can exchange.
 *
 * The bound. A score p = exp(x - most) / sum is computed in f32 (u = 2^-24), by two sides:
 *     x       a product of d numbers in any order, (d + 2) u |q| |k| scale at most: NEAR_LOGIT stands for the last
 *             three
 *     exp     2 units in the last place, 4 u
 *     sum     of n terms in any order, n u, each with what its own exp and x are off
 *     /       2 u, where it is a product with the inverse; the mean over g query heads (g + 1) u
 * which makes each side's score off by 2 (d + 2) NEAR_LOGIT u + (11 + n + g) u of itself, and the difference of two
 * sides twice that. In layer l the queries and keys come through l layers that are off in the same way: l + 1 times as
 * much. The score of a policy that sums is off by as much as its rows and by a rounding a row; of one that counts low
 * rows by the number of rows whose score is that close to the threshold; of a policy by position not at all.
 *
 * A text is judged up to its flips: what the flip's head keeps from then on, and what the layers above it see, has
 * another history. near_until says where logits are judged; flips are counted and printed, and none may be in the
 * emulation, which computes as the host does. */
#ifndef TESTS_UNIT_NEAR_TIES_H
#define TESTS_UNIT_NEAR_TIES_H

#include "planner/policy/policy.h"

enum { NEAR_LOGIT = 16, NEAR_MOST_FLIPS = 64 };

/* How far two sides' scores may be apart, as a share of the score. */
double near_off(int d_head, int n_key, int group, int layer);

struct near_ties {                      /* one text on the reference                              */
    struct sh_policy_spec spec;
    int n_head, n_token, d_head, group; /* n_head: KV heads of a layer                             */
    int n_layer;
    float *score;                       /* [n_layer * n_head][n_token rows][n_token]; -1: not there */
    int *n_row;                         /* [n_layer * n_head][n_token]: keys that the row's softmax ran over */
    int n_flip;
    struct near_flip { int layer, head, t; } flip[NEAR_MOST_FLIPS];
};

struct near_ties *near_new(const struct sh_policy_spec *spec, int n_layer, int n_head, int group, int d_head,
                           int n_token);
void near_free(struct near_ties *n);                    /* NULL is fine */

/* The reference's row of token t: slots, their tokens (negative: free), and how many the softmax ran over. */
void near_row(struct near_ties *n, int layer, int head, int t, const int *pos, const float *row, int n_slot, int n_row);

/* Has what this head does at t another history, that of a flip? */
int near_is_apart(const struct near_ties *n, int layer, int head, int t);
/* Texts are judged before this token; n_token: no flip. */
int near_until(const struct near_ties *n);

/* Who of tokens [0, t) is there for token t, a byte a token, by the reference and by the device: 1: alike, or apart, or
 * a flip, which is noted; 0: an error. Rows before t have been seen. */
int near_judge(struct near_ties *n, int layer, int head, int t, const unsigned char *expected,
               const unsigned char *found);

#endif
