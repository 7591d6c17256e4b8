/* SPDX-License-Identifier: Apache-2.0 */
/* One safetensors file (see fuzz_safetensors() for the input). */
#include <stdlib.h>
#include <string.h>

#include "src/model/weights.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_err e;
    char shape[64];
    scratch_clear();
    fuzz_safetensors("model.safetensors", data, size);
    struct sh_weights *s = sh_weights_open(scratch_path("model.safetensors"), &e);
    unsigned sum = 0;
    for (size_t i = 0; s && i < sh_weights_count(s); i++) {
        const struct sh_stored *t = sh_weights_at(s, i);
        enum sh_type type;
        sh_stored_type(t, &type, &e);
        for (size_t k = 0; k < t->bytes; k++)
            sum += t->at[k];
        if (sh_weights_find(s, t->name) != t || strlen(sh_stored_shape(t, shape, sizeof shape)) >= sizeof shape)
            abort();
    }
    fuzz_accepted += s != NULL && sum + 1 > 0;
    sh_weights_close(s);
    return 0;
}
