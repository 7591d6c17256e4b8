/* SPDX-License-Identifier: Apache-2.0 */
/* Which policies a device must be tried with, so that a test names the one that it lacks. */
#ifndef TESTS_UNIT_DEVICE_POLICIES_H
#define TESTS_UNIT_DEVICE_POLICIES_H

/* Fails, and names them, for policies that have a rule for devices and are none of the n given ("h2o:recent=3"), and
 * for policies that have none without being known for it. */
void check_device_policies(const char *const *given, int n);

#endif
