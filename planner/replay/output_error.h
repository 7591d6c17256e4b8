/* SPDX-License-Identifier: Apache-2.0 */
/* What eviction does to a head's output: o = sum of p v over all keys against o' over the kept ones, renormalised. The
 * error is |o - o'| / |o| in the 2-norm, mean over the query heads of the group. */
#ifndef SH_PLANNER_REPLAY_OUTPUT_ERROR_H
#define SH_PLANNER_REPLAY_OUTPUT_ERROR_H

struct sh_output_error;

/* v: [n_token, d_head], not copied. */
struct sh_output_error *sh_output_error_new(int n_token, int group, int d_head, const float *v);
void sh_output_error_free(struct sh_output_error *o);   /* NULL is fine */

/* The rows of query t, scores of the keys from first_key on; copied. */
void sh_output_error_row(struct sh_output_error *o, int t, int first_key, const float *const *row);

/* For the slots pos[0..n) (-1: free). NaN when nothing kept has any weight, or o is 0. */
double sh_output_error_of(const struct sh_output_error *o, const int *pos, int n);

#endif
