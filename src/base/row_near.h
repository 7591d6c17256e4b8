/* SPDX-License-Identifier: Apache-2.0 */
/* The scores of a row between two limits. */
#ifndef SH_BASE_ROW_NEAR_H
#define SH_BASE_ROW_NEAR_H

enum { SH_ROW_NEAR = 1024 };            /* most that are kept */

struct sh_row_near {
    int above, n;                       /* scores >= high; low <= score < high, of which the first are here: */
    float score[SH_ROW_NEAR + 16];
    double sum;                         /* of the scores above, in no certain order */
};

/* Of n scores; low and high are > 0. A NaN is neither above nor between. */
void sh_row_near(const float *row, int n, float low, float high, struct sh_row_near *near);

#endif
