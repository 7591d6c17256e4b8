/* SPDX-License-Identifier: Apache-2.0 */
/* Makes of f32 rows what a backend hands out for SH_PACK_SETS, by its definition in kernels/backend.h:
 * comparisons with the real limits, in double. Only the figures are those of src/base/row_figures.h. */
#ifndef TESTS_UNIT_ROW_SETS_H
#define TESTS_UNIT_ROW_SETS_H

#include "kernels/backend.h"
#include "traces/stats_spec.h"

/* The lanes of a spec for a sequence. */
struct sh_lanes row_sets_lanes(const struct sh_stats_spec *spec, int length, int values);

/* The sets of rows [first_row, +n_rows), packed f32 with that window (0: none). row_sets_free() them. */
void row_sets_make(const struct sh_lanes *lanes, const float *rows, int first_row, int n_rows, int window,
                   struct sh_row_sets *out);
void row_sets_free(struct sh_row_sets *s);

#endif
