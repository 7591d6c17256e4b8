/* SPDX-License-Identifier: Apache-2.0 */
/* A benchmark of a server: JSON of three programs, or a table. What is taken can be simulated. */
#include <math.h>
#include <stdlib.h>

#include "planner/simulate/workload.h"
#include "src/app/calibrate/serving_runs.h"
#include "src/base/err.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/scratch.h"

static void check(const struct sh_serving_run *r)
{
    if (r->prompt_low < 1 || r->prompt_low > r->prompt_high || r->prompt_high > SH_REQUEST_TOKENS / 2 ||
        r->output_low < 1 || r->output_low > r->output_high || r->output_high > SH_REQUEST_TOKENS / 2)
        abort();
    if (r->concurrency < 1 || r->requests < 0 || !(r->tpot_s > 0) || !(isnan(r->ttft_s) || r->ttft_s > 0))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sh_err e;
    struct sh_serving_run server = {.model = "m", .gpu = "g", .ttft_s = NAN};
    struct sh_serving_runs runs = {.n = 0};
    scratch_clear();
    const char *path = scratch_write("benchmark", data, size);
    if (sh_serving_read(path, &server, &runs, &e))
        fuzz_names(&e, path);
    else
        fuzz_accepted++;
    for (int i = 0; i < runs.n; i++)
        check(&runs.run[i]);
    sh_serving_runs_clear(&runs);
    return 0;
}
