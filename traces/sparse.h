/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse blocks, for codec.c; the format is described in codec.h. */
#ifndef SH_TRACES_SPARSE_H
#define SH_TRACES_SPARSE_H

#include "traces/codec.h"

int sh_sparse_rows(const struct sh_block *b, sh_row_fn fn, void *to, struct sh_err *e);

#endif
