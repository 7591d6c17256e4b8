/* SPDX-License-Identifier: Apache-2.0 */
/* See fuzz.h: cutting inputs, without any of the program's libraries but libbase. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/mem.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

int fuzz_accepted;

struct fuzz_part fuzz_until(uint8_t end, const uint8_t **data, size_t *size)
{
    const uint8_t *found = *size ? memchr(*data, end, *size) : NULL;
    struct fuzz_part part = {*data, found ? (size_t)(found - *data) : *size};
    size_t used = part.bytes + (found != NULL);
    *data += used;
    *size -= used;
    return part;
}

void fuzz_names(const struct sh_err *e, const char *path)
{
    if (!strncmp(e->text, path, strlen(path)))
        return;
    printf("# expected %s in front of: %s\n", path, e->text);
    abort();
}

void fuzz_safetensors(const char *name, const uint8_t *data, size_t size)
{
    if (!size || data[0] != '{') {
        scratch_write(name, data, size);
        return;
    }
    struct fuzz_part header = fuzz_until(0, &data, &size);
    uint64_t length = header.bytes;
    unsigned char *file = xmalloc(8 + header.bytes + size);
    memcpy(file, &length, 8);
    memcpy(file + 8, header.at, header.bytes);
    memcpy(file + 8 + header.bytes, data, size);
    scratch_write(name, file, 8 + header.bytes + size);
    free(file);
}
