/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of packed weights (kernels/packed.h) for products with outputs in lanes (packed_lanes.h). 16 rows are a group.
 * It has their blocks one after another, and of each the fields in the order in which they are needed: scales, then
 * codes. Numbers of 2 bytes, words of 4 bytes and scales of 1 byte are fields; each is there of the first row, then of
 * the second, and so on. Codes of 3, 5 and 6 bits are in words of another order (group_codes.h). There are as many
 * bytes as in the blocks; only the last group is filled up, with its last row. */
#ifndef SH_KERNELS_CPU_PACKED_GROUP_H
#define SH_KERNELS_CPU_PACKED_GROUP_H

#include "kernels/packed.h"

enum { GROUP_ROWS = 16 };

/* Bytes that a row's block has in a group: with MXFP4_APART its scale, too. */
static inline __attribute__((always_inline)) int group_bytes(enum sh_packing format)
{
    return sh_packing_shape(format).bytes + (format == SH_PACKED_MXFP4_APART);
}

/* Where byte `byte` of a block, at which any other field begins, is in that of a group, of one row. MXFP4_APART: the
 * scale is first. */
static inline __attribute__((always_inline)) int group_place(enum sh_packing format, int byte)
{
    switch (format) {
    case SH_PACKED_Q6_K: return byte >= 208 ? 0 : byte - 190;
    case SH_PACKED_Q3_K: return byte >= 108 ? 0 : byte - 94;
    case SH_PACKED_Q2_K: return byte >= 80 ? 0 : byte + 4;
    case SH_PACKED_TQ1_0: return byte >= 52 ? 0 : byte + 2;
    case SH_PACKED_TQ2_0: return byte >= 64 ? 0 : byte + 2;
    case SH_PACKED_MXFP4_APART: return byte + 1;
    default: return byte;
    }
}

/* Where row `row`, a multiple of GROUP_ROWS, begins. */
static inline const unsigned char *group_at(const struct sh_packed *p, const unsigned char *groups, int row)
{
    int blocks = p->cols / sh_packing_shape(p->format).elements;
    return groups + (size_t)row * (size_t)blocks * (size_t)group_bytes(p->format);
}

#endif
