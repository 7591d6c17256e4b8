/* SPDX-License-Identifier: Apache-2.0 */
/* Every eviction policy, one line each: policy_<name>.c exports sh_policy_<name>. */
#ifndef SH_PLANNER_POLICY_POLICIES_H
#define SH_PLANNER_POLICY_POLICIES_H

#define SH_POLICIES(X)       \
    X(full)                  \
    X(window)                \
    X(streaming)             \
    X(random)                \
    X(knorm)                 \
    X(h2o)                   \
    X(observed)              \
    X(vatp)                  \
    X(tova)                  \
    X(roco)                  \
    X(scissorhands)          \
    X(scissorhands_released) \
    X(reservoir)             \
    X(keyformer)             \
    X(snapkv)                \
    X(expected)              \
    X(keydiff)               \
    X(lagkv)                 \
    X(caote)                 \
    X(rkv)                   \
    X(oracle)                \
    X(oracle_readmit)

#endif
