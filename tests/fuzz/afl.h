/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_AFL_H
#define TESTS_FUZZ_AFL_H

/* Runs the target for AFL++ until that has seen enough; 0 when nobody of that kind has started this program, or
 * another compiler than AFL++'s made it: nothing was done. */
int fuzz_afl(void);

#endif
