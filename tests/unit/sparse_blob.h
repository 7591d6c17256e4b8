/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the bytes of a sparse block from any four parts, sound or not (traces/codec.h describes
 * them), so that tests get past the checksums to what checks the contents. */
#ifndef TESTS_UNIT_SPARSE_BLOB_H
#define TESTS_UNIT_SPARSE_BLOB_H

#include <stddef.h>

struct sparse_part {
    const void *at;
    size_t bytes;
};

/* Parts: counts (u32 a row), residuals (f32 a row), gaps, values. *out is the caller's. */
size_t sparse_blob(const struct sparse_part part[4], unsigned char **out);

#endif
