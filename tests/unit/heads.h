/* SPDX-License-Identifier: Apache-2.0 */
/* Test data of the attention statistics: packed matrices and the figures that belong to them. */
#ifndef TESTS_UNIT_HEADS_H
#define TESTS_UNIT_HEADS_H

#include <jansson.h>

#include "traces/stats.h"

/* A file of tests/golden/persistence; ends the running test when it cannot be read.
 * The caller frees it with free() or json_decref(). */
float *heads_floats(const char *name, size_t *n);
json_t *heads_json(const char *name);

/* Row q of a packed head and how many keys it has; `context` 0 is none. */
int heads_row(int q, int context, int *first_key);

/* Feed one packed head. Returns what comes after it. */
const float *heads_feed(struct sh_stats *s, const float *packed, int context);

struct sh_stats_spec heads_spec(const json_t *object);      /* the member "spec" */
int heads_int(const json_t *object, const char *key);
double heads_real(const json_t *object, const char *key);   /* null is NaN */

/* Equal to `tolerance` relative to the expected value (absolute below 1e-3), or both NaN. */
int heads_near(double found, double expected, double tolerance);

#endif
