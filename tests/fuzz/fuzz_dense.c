/* SPDX-License-Identifier: Apache-2.0 */
/* Dense trace blocks: a blob as it is (how even), or the contents of a sound frame (how odd). */
#include <stdlib.h>

#include "tests/fuzz/fuzz.h"
#include "traces/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_block b;
    struct sh_err e;
    uint64_t histogram[256] = {0};
    unsigned char *frame = NULL;
    int how = fuzz_block(&data, &size, &b);
    if (how < 0)
        return 0;
    if (how & 1)
        b.bytes = sh_codec_bytes(data, size, SH_BYTES_NOISE, &frame);
    else
        *(const void **)&b.blob = data, b.bytes = size;
    if (frame)
        b.blob = frame;
    fuzz_rows(&b);
    sh_codec_histogram(&b, histogram, &e);
    free(frame);
    return 0;
}
