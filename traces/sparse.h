/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse blocks, for codec.c; the format is described in codec.h. */
#ifndef SH_TRACES_SPARSE_H
#define SH_TRACES_SPARSE_H

#include "traces/codec.h"

int sh_sparse_rows(const struct sh_block *b, sh_row_fn fn, void *to, struct sh_err *e);

/* The unpacked frames of a block, each after its length (u64), independent of zstd's version. *out: owned by the
 * caller. */
int sh_sparse_plain(const struct sh_block *b, unsigned char **out, size_t *n, struct sh_err *e);

#endif
