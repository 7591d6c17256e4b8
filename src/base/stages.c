/* SPDX-License-Identifier: Apache-2.0 */
/* See stages.h. */
#include "src/base/stages.h"

#include "src/base/out.h"

static const char *const names[SH_STAGES] = {
    [SH_STAGE_PRODUCTS] = "products",       [SH_STAGE_ATTENTION] = "attention",
    [SH_STAGE_SOFTMAX] = "softmax_packing", [SH_STAGE_COPY] = "copy",
    [SH_STAGE_STATISTICS] = "statistics",   [SH_STAGE_COMPRESSION] = "compression",
    [SH_STAGE_WRITER] = "writer",           [SH_STAGE_TOKENS] = "tokens",
    [SH_STAGE_EVICTION] = "eviction"};

static void put(struct sh_out *o, const char *name, double seconds, double run_s)
{
    sh_out_item(o);
    sh_out_text(o, "stage", "stage", name);
    sh_out_real(o, "seconds", "seconds", seconds, 4);
    sh_out_real(o, "share", "share", seconds / run_s, 4);
}

void sh_stages_put(struct sh_out *o, const struct sh_stages *s, double run_s)
{
    if (!s)
        return;
    sh_out_list(o, "timing", "time by stage (stages overlap; the work of n threads counts as 1/n)");
    for (int i = 0; i < SH_STAGES; i++)
        if (s->ns[i])
            put(o, names[i], 1e-9 * (double)s->ns[i], run_s);
    put(o, "run", run_s, run_s);
    sh_out_end(o);
}
