/* SPDX-License-Identifier: Apache-2.0 */
/* Every policy, with knobs that suit a budget of some 20 tokens; the one list of all tests that try each of them. */
#ifndef TESTS_UNIT_TRIED_POLICIES_H
#define TESTS_UNIT_TRIED_POLICIES_H

/* "h2o:score=mean,recent=3"; NULL ends. test_policies fails for a policy that is not among them. */
extern const char *const tried_policies[];

#endif
