/* SPDX-License-Identifier: Apache-2.0 */
/* A config.json with a quantization_config up to a NUL, then a safetensors file (see fuzz_safetensors()): its coded
 * matrices, all rows unpacked. Sound is what joins. */
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/model/coded_blocks.h"
#include "src/model/config/config.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

static unsigned read_blocks(const struct sh_coded *c)
{
    struct sh_packing_shape s = sh_packing_shape(c->packing);
    size_t bytes = c->rows * (c->cols / (size_t)s.elements) * (size_t)s.bytes;
    unsigned char *blocks = xmalloc(bytes);
    unsigned sum = (unsigned)sh_coded_is_finite(c, 0, c->rows);
    sh_coded_blocks(c, c->packing, 0, c->rows, blocks);
    for (size_t i = 0; i < bytes; i++)
        sum += blocks[i];
    free(blocks);
    return sum;
}

static unsigned read_matrix(const struct sh_stored *t)
{
    size_t rows = 1, cols = t->shape[t->rank - 1];
    unsigned sum = 0;
    for (int i = 0; i + 1 < t->rank; i++)
        rows *= t->shape[i];
    if (rows != t->coded->rows || cols != t->coded->cols)
        abort();
    float *x = xcalloc(rows * cols, sizeof *x);
    sh_stored_rows(t, 0, rows / 2, x);
    sh_stored_rows(t, rows / 2, rows - rows / 2, x + rows / 2 * cols);
    for (size_t i = 0; i < rows * cols; i++)
        sum += x[i] > 0;
    free(x);
    if (t->coded->packing)
        sum += read_blocks(t->coded);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_err e;
    struct sh_quant q;
    struct fuzz_part config = fuzz_until(0, &data, &size);
    unsigned sum = 0;
    scratch_clear();
    struct sh_config *c = sh_config_open(scratch_write("config.json", config.at, config.bytes), &e);
    fuzz_safetensors("model.safetensors", data, size);
    struct sh_weights *w = sh_weights_open(scratch_path("model.safetensors"), &e);
    int joined = c && w && !sh_config_quant(c, &q, &e) && !sh_weights_join(w, &q, &e);
    for (size_t i = 0; joined && i < sh_weights_count(w); i++) {
        const struct sh_stored *t = sh_weights_at(w, i);
        if (sh_weights_find(w, t->name) != t)
            abort();
        sum += t->coded ? read_matrix(t) : 0;
    }
    fuzz_accepted += joined && sum + 1 > 0;
    sh_weights_close(w);
    sh_config_close(c);
    return 0;
}
