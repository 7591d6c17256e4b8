/* SPDX-License-Identifier: Apache-2.0 */
/* Student's t distribution, for bounds of a mean of few numbers: mean + t * standard error. */
#ifndef SH_BASE_STUDENT_H
#define SH_BASE_STUDENT_H

/* The quantile t of the distribution with df degrees of freedom: a share p of it is below t. 1.796 for p 0.95 and df
 * 11. 0 < p < 1, df > 0; else NaN. More than 100,000 degrees count as these, where t differs from the normal quantile
 * by 1e-5. */
double sh_student_t(double p, long long df);

#endif
