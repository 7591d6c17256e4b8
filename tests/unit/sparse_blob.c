/* SPDX-License-Identifier: Apache-2.0 */
/* See sparse_blob.h. */
#include "tests/unit/sparse_blob.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "traces/codec.h"

size_t sparse_blob(const struct sparse_part part[4], unsigned char **out)
{
    uint32_t length[4];
    size_t bytes = sizeof length;
    *out = xmalloc(bytes);
    for (int i = 0; i < 4; i++) {
        unsigned char *frame;
        length[i] = (uint32_t)sh_codec_bytes(part[i].bytes ? part[i].at : "", part[i].bytes, SH_BYTES_GAPS, &frame);
        *out = xreallocarray(*out, bytes + length[i], 1);
        memcpy(*out + bytes, frame, length[i]);
        bytes += length[i];
        free(frame);
    }
    memcpy(*out, length, sizeof length);
    return bytes;
}
