/* SPDX-License-Identifier: Apache-2.0 */
/* See roofline.h. */
#include "planner/capacity/roofline.h"

#include <math.h>

const char *const sh_bound_names[] = {"bandwidth", "compute", "link"};

struct sh_step_time sh_roofline_step(const struct sh_roofline *r, const struct sh_step_work *w)
{
    struct sh_step_time s = {0};
    double touched = r->expert_share > 0 ? 1 - pow(1 - r->expert_share, w->tokens * r->ranks) : 0;
    s.weight_bytes = r->plain_bytes + r->expert_bytes * touched + (w->logits > 0 ? r->head_bytes : 0);
    s.bytes = s.weight_bytes + w->cache_bytes;
    s.flops = w->tokens * r->token_flops + w->logits * r->head_flops + w->attention_flops;
    s.memory_s = s.bytes / r->bandwidth;
    s.compute_s = s.flops / r->peak;
    s.link_s = r->link_bytes > 0 ? w->tokens * r->link_bytes / r->link : 0;
    s.bound = s.compute_s > s.memory_s ? SH_BOUND_COMPUTE : SH_BOUND_BANDWIDTH;
    if (s.link_s > fmax(s.compute_s, s.memory_s))
        s.bound = SH_BOUND_LINK;
    s.s = fmax(s.memory_s, s.compute_s) + s.link_s;
    return s;
}
