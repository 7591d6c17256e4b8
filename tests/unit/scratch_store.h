/* SPDX-License-Identifier: Apache-2.0 */
/* Looking into a store without the code under test. */
#ifndef TESTS_UNIT_SCRATCH_STORE_H
#define TESTS_UNIT_SCRATCH_STORE_H

/* The number that a query gives; the store's file must not be open elsewhere for writing. */
double ask_store(const char *path, const char *sql);

#endif
