/* SPDX-License-Identifier: Apache-2.0 */
/* to[i] = from[at[i]]: the loads that dominate replay. Compilers do not use gather instructions for unknown processors,
 * so they are asked for by name where the machine has them. */
#ifndef SH_PLANNER_POLICY_SIMD_GATHER_H
#define SH_PLANNER_POLICY_SIMD_GATHER_H

#include <stdint.h>

#if defined __x86_64__ && defined __GNUC__ && (defined __clang__ || __GNUC__ >= 12)
#define SH_GATHER_WIDE __attribute__((target("avx512f,avx512vl,avx2")))
#endif

int sh_simd_gather_is_wide(void);            /* has this machine what SH_GATHER_WIDE asks for? */

void sh_simd_gather(float *to, const float *from, const int *at, int n);
void sh_simd_gather_pairs(int64_t *to, const int64_t *from, const int *at, int n);

#endif
