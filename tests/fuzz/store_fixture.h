/* SPDX-License-Identifier: Apache-2.0 */
/* A small sound trace store, with everything that a store can hold: full, sparse and summary runs, one that is not
 * causal, vectors, statistics, results of several commands, a plan, a shard's note, what it held, and a part. */
#ifndef TESTS_FUZZ_STORE_FIXTURE_H
#define TESTS_FUZZ_STORE_FIXTURE_H

#include <stddef.h>

#define FIXTURE_JOB "0123456789abcdef"
#define FIXTURE_PART 1
#define FIXTURE_PART_BYTES 24

/* Made by the library in the scratch folder, in pages of 1 KiB. */
void fixture_make(const char *path);

/* The same rows in tables without types, keys or any other rule. */
void fixture_loosen(const char *path);

/* A store without rows. */
void fixture_empty(const char *path);

/* Write to a store as the commands do that keep results and go on with runs; errors are fine. */
void fixture_write_to(const char *path);

#endif
