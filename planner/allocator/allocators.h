/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocator, one line each: allocator_<name>.c exports sh_allocator_<name>. */
#ifndef SH_PLANNER_ALLOCATOR_ALLOCATORS_H
#define SH_PLANNER_ALLOCATOR_ALLOCATORS_H

#define SH_ALLOCATORS(X) \
    X(uniform)           \
    X(funnel)            \
    X(pyramid)           \
    X(persistence)       \
    X(entropy)           \
    X(adakv)             \
    X(greedy)

#endif
