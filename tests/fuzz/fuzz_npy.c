/* SPDX-License-Identifier: Apache-2.0 */
/* .npy files as `import` takes them: the header up to a NUL (which then gets a length that fits) and the data,
 * or the file as it is. */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/tracer/dump.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

static void write_file(const uint8_t *data, size_t size)
{
    static const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    if (!size || data[0] != '{') {
        scratch_write("fuzz.npy", data, size);
        return;
    }
    struct fuzz_part header = fuzz_until(0, &data, &size);
    size_t n = header.bytes & 0xffff;
    unsigned char *file = xmalloc(sizeof magic + 2 + n + size);
    memcpy(file, magic, sizeof magic);
    file[8] = (unsigned char)n;
    file[9] = (unsigned char)(n >> 8);
    memcpy(file + 10, header.at, n);
    if (size)
        memcpy(file + 10 + n, data, size);
    scratch_write("fuzz.npy", file, 10 + n + size);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_dump d;
    struct sh_err e;
    write_file(data, size);
    const char *path = scratch_path("fuzz.npy");
    int good = !sh_dump_open(&d, &path, 1, NULL, &e);
    fuzz_accepted += good;
    for (int i = 0; good && i < d.n_part; i++) {
        size_t n = (size_t)d.part[i].n_row * (size_t)d.part[i].n_col;
        float *row = xmalloc(n * sizeof *row);
        for (int h = 0; h < d.part[i].n_head; h++)
            sh_dump_read(&d.part[i], (size_t)h * n, n, row);
        free(row);
    }
    sh_dump_close(&d);
    return 0;
}
