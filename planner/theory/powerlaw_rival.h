/* SPDX-License-Identifier: Apache-2.0 */
/* A power-law fit against other laws of the same tail, by their likelihoods (Clauset, Shalizi,
 * Newman 2009, section 5). */
#ifndef SH_PLANNER_THEORY_POWERLAW_RIVAL_H
#define SH_PLANNER_THEORY_POWERLAW_RIVAL_H

#include "planner/theory/powerlaw.h"

/* The fit's log-likelihood over its tail, less that of another law fitted to the same tail:
 * positive favours the power law. p: how likely a ratio this far from 0 would be if both were
 * equally good; a small p makes the sign mean something. NaN where nothing was fitted. */
struct sh_powerlaw_rival {
    double ratio, p;
};

/* Exponential beyond xmin; p by Vuong (1989), both sides. */
void sh_powerlaw_against_exponential(const double *x, size_t n, const struct sh_powerlaw *fit,
                                     struct sh_powerlaw_rival *out);

/* Log-normal cut at xmin. The power law is a limit of this family, so the ratio is never above
 * 0; p: half the tail of a chi-square with one degree of freedom, the law lying on the family's
 * edge. */
void sh_powerlaw_against_lognormal(const double *x, size_t n, const struct sh_powerlaw *fit,
                                   struct sh_powerlaw_rival *out);

#endif
