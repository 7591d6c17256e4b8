/* SPDX-License-Identifier: Apache-2.0 */
/* The hidden states of all sequences between two layers, [n_rows, d_model] f32. When they are larger
 * than the memory they may take, they live in an unlinked temporary file that is mapped: rows that
 * were not used lately are then in the page cache or on disk and no longer in the program. */
#ifndef SH_TRACER_HIDDEN_H
#define SH_TRACER_HIDDEN_H

#include <stddef.h>

#include "src/base/err.h"

struct sh_hidden {
    float *at;
    size_t bytes, row_bytes;
    int spilled;
};

/* limit_bytes: above it the states go to a file in `folder`. */
int sh_hidden_new(struct sh_hidden *h, size_t n_rows, size_t d_model, size_t limit_bytes, const char *folder,
                  struct sh_err *e);
void sh_hidden_free(struct sh_hidden *h);

float *sh_hidden_row(const struct sh_hidden *h, size_t row);

/* These rows are not needed for a while: a spilled part leaves the program's memory. */
void sh_hidden_rest(const struct sh_hidden *h, size_t row, size_t n_rows);

#endif
