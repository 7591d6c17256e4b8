/* SPDX-License-Identifier: Apache-2.0 */
/* Every eviction policy, one line each: policy_<name>.c exports sh_policy_<name>. */
#ifndef SH_PLANNER_POLICIES_H
#define SH_PLANNER_POLICIES_H

#define SH_POLICIES(X) \
    X(full)            \
    X(window)          \
    X(streaming)       \
    X(random)          \
    X(h2o)             \
    X(tova)            \
    X(scissorhands)

#endif
