/* SPDX-License-Identifier: Apache-2.0 */
/* A policy as a legend shows it. */
#ifndef SH_PLANNER_POLICY_LABEL_H
#define SH_PLANNER_POLICY_LABEL_H

enum { SH_POLICY_LABEL = 320 };

/* "h2o:recent=10": the name, and those knobs that are not at their default; at most SH_POLICY_LABEL - 1 bytes, for
 * free(). A text that names no policy is given back as it is. is_bound: the policy sees the future. */
char *sh_policy_label(const char *policy, int *is_bound);

#endif
