/* SPDX-License-Identifier: Apache-2.0 */
/* What goes into a store, and looking into one without the code under test. */
#ifndef TESTS_UNIT_SCRATCH_STORE_H
#define TESTS_UNIT_SCRATCH_STORE_H

#include "traces/trace.h"

/* Layers 1 to 3 of a small model, and sequences of 5 and 2 tokens. */
extern const struct sh_trace_run small_run;
extern const struct sh_trace_sequence small_sequences[2];

/* The number that a query gives; the store's file must not be open elsewhere for writing. */
double ask_store(const char *path, const char *sql);

#endif
