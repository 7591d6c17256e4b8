/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse trace blocks: a blob as it is (how even), or (how odd) four parts behind their lengths (uint16
 * each), packed into sound frames. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/sparse_blob.h"
#include "traces/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_block b;
    struct sparse_part part[4];
    uint16_t length[4];
    int how = fuzz_block(&data, &size, &b);
    if (how < 0 || ((how & 1) && size < sizeof length))
        return 0;
    b.codec |= SH_CODEC_SPARSE;
    if (!(how & 1)) {
        *(const void **)&b.blob = data;
        b.bytes = size;
        fuzz_rows(&b);
        return 0;
    }
    memcpy(length, data, sizeof length);
    data += sizeof length;
    size -= sizeof length;
    for (int i = 0; i < 4; i++) {
        part[i] = (struct sparse_part){data, length[i] < size ? length[i] : size};
        data += part[i].bytes;
        size -= part[i].bytes;
    }
    b.bytes = sparse_blob(part, &b.blob);
    fuzz_rows(&b);
    free(b.blob);
    return 0;
}
