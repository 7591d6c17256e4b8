/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse blocks, for codec.c; the format is described in codec.h. */
#ifndef SH_TRACES_SPARSE_H
#define SH_TRACES_SPARSE_H

#include "traces/codec.h"

int sh_sparse_rows(const struct sh_block *b, sh_row_fn fn, void *to, struct sh_err *e);

/* What the block's frames unpack to, each behind its length (u64), however zstd packed it; *out is the caller's. */
int sh_sparse_plain(const struct sh_block *b, unsigned char **out, size_t *n, struct sh_err *e);

#endif
