/* SPDX-License-Identifier: Apache-2.0 */
/* See capacity_row.h. */
#include "src/app/capacity/capacity_row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/app/capacity/capacity_quality.h"

/* Room and batch behind what a server takes for itself; the least and the most of the fullest stage. */
static void expected(const struct sh_capacity_answer *a, struct sh_capacity_row *r)
{
    struct sh_server_term t[SH_SERVER_TERMS];
    const struct sh_kv_bytes *kv = &a->c.stage[a->c.fullest].kv;
    int n = sh_server_terms(a->ask, &a->server, a->c.fullest, t);
    double low = (double)a->c.room, high = low;
    for (int i = 0; i < n; i++) {
        low -= t[i].high;
        high -= t[i].low;
    }
    double ends[2] = {fmax(low, 0), fmax(high, 0)};
    uint64_t batch[2] = {0, 0};
    for (int i = 0; i < 2; i++)
        if (kv->sequence && ends[i] >= (double)kv->prefix)
            batch[i] = (uint64_t)((ends[i] - (double)kv->prefix) / (double)kv->sequence) * (uint64_t)a->ask->ep;
    r->room_low = ends[0];
    r->room_high = ends[1];
    r->batch_low = batch[0];
    r->batch_high = batch[1];
}

static void copy_sizes(const struct sh_capacity *c, struct sh_capacity_row *r)
{
    const struct sh_capacity_stage *g = &c->stage[c->fullest];
    r->limit = c->limit;
    r->weights_bytes = g->weights;
    r->room = c->room;
    r->shortfall = c->shortfall;
    r->unfit = c->unfit;
    r->fits = !c->unfit;
    r->batch = c->batch;
    r->max_batch = c->max_batch;
    r->max_length = c->max_length;
    r->token = g->kv.token;
    r->sequence = g->kv.sequence;
    r->prefix = g->kv.prefix;
    r->states = g->kv.states;
    r->fixed = c->fixed;
    r->further = c->further;
    r->max_budget = c->max_budget;
    r->beside_prompt = c->beside_prompt;
    r->uniform = c->uniform;
    r->scattered = c->scattered;
}

void sh_capacity_row(const struct sh_capacity_answer *a, struct sh_capacity_row *out)
{
    const struct sh_capacity_ask *k = a->ask;
    const struct sh_capacity *c = &a->c;
    struct sh_capacity_row r = {.model = k->shape->f.name, .gpu = a->board->name, .budget = a->budget, .kv = a->kv,
                                .evidence = a->evidence, .measured = a->measured, .tp = k->tp, .pp = k->pp,
                                .ep = k->ep, .memory = k->memory, .overhead = k->overhead,
                                .length = k->length, .util = k->util, .page = k->rule.page};
    const char *experts = strcmp(k->weights.experts.name, k->weights.matrices.name) ? k->weights.experts.name : NULL;
    snprintf(r.weights, sizeof r.weights, "%.24s%s%.24s", k->weights.stored ? "stored" : k->weights.matrices.name,
             experts ? ", experts " : "", experts ? experts : "");
    copy_sizes(c, &r);
    struct sh_kv_parts p = sh_kv_weights_all(k->shape, &k->weights);
    r.parameters = sh_kv_parts_sum(p.parameters);
    r.max_pos = k->shape->f.max_pos;
    r.decode_s = c->decode_s;
    r.decode_rate = c->decode_rate;
    r.prefill_s = c->prefill_s;
    r.prefill_rate = c->prefill_rate;
    r.cache_share = c->cache_share;
    r.bound = r.fits ? sh_bound_names[c->step.bound] : "memory";
    r.prefill_bound = r.fits ? sh_bound_names[c->prompt.bound] : "memory";
    r.usd = a->price >= 0 ? a->price * k->tp * k->pp * k->ep / 3600 / c->decode_rate * 1e6 : NAN;
    r.priced = a->price >= 0;
    expected(a, &r);
    *out = r;
}
