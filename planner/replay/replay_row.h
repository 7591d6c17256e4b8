/* SPDX-License-Identifier: Apache-2.0 */
/* The loops over slots that replay spends its time in. */
#ifndef SH_PLANNER_REPLAY_ROW_H
#define SH_PLANNER_REPLAY_ROW_H

struct sh_kept_row {
    double mass;                        /* of all kept tokens                                     */
    double sink_mass;                   /* of the kept ones at positions < sinks                  */
    int above;                          /* kept scores > limit                                    */
};

/* out[i] = score[pos[i]], for i < n; score[-1] must be 0 (free slots). */
void sh_row_gather(const float *score, const int *pos, int n, float limit, int sinks, float *out,
                   struct sh_kept_row *kept);

void sh_row_scale(float *x, float factor, int n);

/* The sum of n scores, and how many are > limit. */
double sh_row_sum(const float *score, int n, float limit, int *above);

/* to[i] += factor * x[i]. */
void sh_row_add(float *to, const float *x, float factor, int n);

#endif
