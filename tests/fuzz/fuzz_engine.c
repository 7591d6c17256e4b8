/* SPDX-License-Identifier: Apache-2.0 */
/* A profile of an engine: its constants are within their limits. */
#include <stdlib.h>

#include "src/app/common/serving.h"
#include "src/base/err.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_err e;
    struct sh_engine g;
    scratch_clear();
    const char *path = scratch_write("profile", data, size);
    if (sh_engine_open(path, &g, &e)) {
        fuzz_names(&e, path);
        return 0;
    }
    for (int i = 0; i < SH_N_GEN; i++)
        for (int k = 0; k < SH_N_CLOCK_CONSTANT; k++)
            if (!(g.constant[i][k] >= sh_clock_keys[k].low && g.constant[i][k] <= sh_clock_keys[k].high))
                abort();
    if (g.n_error < 0 || g.n_error > SH_ENGINE_ERRORS)
        abort();
    fuzz_accepted++;
    return 0;
}
