/* SPDX-License-Identifier: Apache-2.0 */
/* One file of torch.save, zip or stacked, as it is. The stacked form has no lengths of its parts, so
 * mutations that make a pickle longer still reach what follows. */
#include <stdlib.h>
#include <string.h>

#include "src/model/weights.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_err e;
    char shape[200];
    scratch_clear();
    struct sh_weights *w = sh_weights_open(scratch_write("pytorch_model.bin", data, size), &e);
    unsigned sum = 0;
    size_t copied = 0;
    for (size_t i = 0; w && i < sh_weights_count(w); i++) {
        const struct sh_stored *t = sh_weights_at(w, i);
        enum sh_type type;
        sh_stored_type(t, &type, &e);
        for (size_t k = 0; k < t->bytes; k++)
            sum += t->at[k];
        copied += t->copy ? t->bytes : 0;
        if (sh_weights_find(w, t->name) != t || strlen(sh_stored_shape(t, shape, sizeof shape)) >= sizeof shape)
            abort();
    }
    if (copied > size)
        abort();
    fuzz_accepted += w != NULL && sum + 1 > 0;
    sh_weights_close(w);
    return 0;
}
