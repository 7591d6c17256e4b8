/* SPDX-License-Identifier: Apache-2.0 */
/* See capacity_study.h: an answer as a row. */
#include "src/app/capacity/capacity_study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/app/capacity/capacity_quality.h"

static uint64_t batch_in(double room, const struct sh_kv_bytes *kv, int ep)
{
    double rest = room - (double)kv->prefix;
    return kv->sequence && rest >= 0 ? (uint64_t)(rest / (double)kv->sequence) * (uint64_t)ep : 0;
}

/* Room and batch in the fullest stage after what a server takes for itself, which is a range. */
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
    r->room_low = fmax(low, 0);
    r->room_high = fmax(high, 0);
    r->batch_low = batch_in(r->room_low, kv, a->ask->ep);
    r->batch_high = batch_in(r->room_high, kv, a->ask->ep);
}

/* Tokens of the shared prefix that need not be read again: those that all layers have. */
static uint64_t reused(const struct sh_capacity_ask *k)
{
    uint64_t least = k->rule.prefix;
    for (int i = 0; i < k->shape->f.layers; i++) {
        const struct sh_kv_layer *l = &k->shape->layer[i];
        uint64_t has = l->mix == SH_MIX_NONE ? least : sh_kv_shared(k->shape, &k->rule, i, k->length);
        least = has < least ? has : least;
    }
    return least;
}

/* The clock's layers are those of one stage; its cache is that of the ask. */
static void clocked(const struct sh_capacity_answer *a, struct sh_capacity_row *r)
{
    struct sh_capacity_ask k = *a->ask;
    enum sh_generation gen;
    const struct sh_engine_error *x = NULL;
    r->expected_s = r->expected_rate = r->expected_first_s = r->expected_rest_s = (double)NAN;
    r->error = r->first_error = (double)NAN;
    r->engine = a->engine ? sh_scheduler_names[a->engine->scheduler] : NULL;
    if (!a->engine || !r->fits || !r->batch)
        return;
    k.pp = k.ep = 1;
    uint64_t shared = reused(&k);
    r->expected_s = sh_loop_decode_s(&a->clock, &k, (double)r->batch, r->length, NULL);
    r->expected_rate = (double)r->batch / r->expected_s;
    r->expected_first_s = sh_loop_prompt_s(&a->clock, &k, 0, r->length, a->chunk);
    if (shared && shared < r->length)
        r->expected_rest_s = sh_loop_prompt_s(&a->clock, &k, shared, r->length, a->chunk);
    if (sh_clock_generation(a->board, &gen))
        x = sh_engine_error(a->engine, gen, sh_clock_kind(k.shape));
    r->error_runs = x ? x->runs : 0;
    r->error = x ? x->tpot : (double)NAN;
    r->first_error = x ? x->ttft : (double)NAN;
}

/* "f16, experts nvfp4"; "(mixed)": not all matrices of such a kind have the format. */
static void weights_in_words(const struct sh_weight_types *t, char *to, size_t bytes)
{
    const struct { const char *name; const struct sh_kv_type *type; } others[] = {
        {"experts", &t->experts}, {"attention", &t->attention}};
    size_t used = (size_t)snprintf(to, bytes, "%s", t->stored ? "stored" : t->matrices.name);
    for (int i = 0; i < 2; i++)
        if (others[i].type->bits && strcmp(others[i].type->name, t->matrices.name) && used < bytes)
            used += (size_t)snprintf(to + used, bytes - used, ", %s %s", others[i].name, others[i].type->name);
    if (t->n_own && used < bytes)
        snprintf(to + used, bytes - used, " (mixed)");
}

void sh_capacity_row(const struct sh_capacity_answer *a, struct sh_capacity_row *out)
{
    const struct sh_capacity_ask *k = a->ask;
    const struct sh_capacity *c = &a->c;
    const struct sh_capacity_stage *g = &c->stage[c->fullest];
    struct sh_kv_parts p = sh_kv_weights_all(k->shape, &k->weights);
    struct sh_capacity_row r = {
        .model = k->shape->f.name, .gpu = a->board->name, .budget = a->budget, .kv = a->kv, .evidence = a->evidence,
        .measured = a->measured, .tp = k->tp, .pp = k->pp, .ep = k->ep, .memory = k->memory, .overhead = k->overhead,
        .length = k->length, .util = k->util, .page = k->rule.page, .max_pos = k->shape->f.max_pos,
        .parameters = sh_kv_parts_sum(p.parameters), .limit = c->limit, .weights_bytes = g->weights, .room = c->room,
        .shortfall = c->shortfall, .unfit = c->unfit, .fits = !c->unfit, .batch = c->batch, .max_batch = c->max_batch,
        .max_length = c->max_length, .token = g->kv.token, .sequence = g->kv.sequence, .prefix = g->kv.prefix,
        .states = g->kv.states, .lora = g->lora, .fixed = c->fixed, .further = c->further, .max_budget = c->max_budget,
        .with_prompt = c->with_prompt, .uniform = a->measured && a->measured->is_plan ? 0 : c->uniform,
        .scattered = c->scattered, .decode_s = c->decode_s,
        .decode_rate = c->decode_rate, .prefill_s = c->prefill_s, .prefill_rate = c->prefill_rate,
        .cache_share = c->cache_share, .bound = c->unfit ? "memory" : sh_bound_names[c->step.bound],
        .prefill_bound = c->unfit ? "memory" : sh_bound_names[c->prompt.bound], .priced = a->price >= 0,
        .usd = a->price >= 0 ? a->price * k->tp * k->pp * k->ep / 3600 / c->decode_rate * 1e6 : (double)NAN};
    weights_in_words(&k->weights, r.weights, sizeof r.weights);
    expected(a, &r);
    clocked(a, &r);
    *out = r;
}
