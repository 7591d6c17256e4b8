/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/common/timing.h"

#include "src/base/out.h"
#include "src/base/progress.h"

struct sh_stages *sh_timing_begin(struct sh_timing *t, int on)
{
    *t = (struct sh_timing){.began_s = sh_now_s(), .on = on};
    return on ? &t->stages : NULL;
}

void sh_timing_put(struct sh_out *o, const struct sh_timing *t)
{
    sh_stages_put(o, t->on ? &t->stages : NULL, sh_now_s() - t->began_s);
}

void sh_timing_tell(const struct sh_timing *t, FILE *to)
{
    struct sh_err ignored;
    if (!t->on)
        return;
    struct sh_out *o = sh_out_new();
    sh_timing_put(o, t);
    sh_out_write(o, SH_OUT_TEXT, to, &ignored);
    sh_out_free(o);
}
