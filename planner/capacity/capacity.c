/* SPDX-License-Identifier: Apache-2.0 */
/* See capacity.h. */
#include "planner/capacity/capacity.h"

#include <math.h>
#include <string.h>

static int check(const struct sh_capacity_ask *a, struct sh_err *e)
{
    int layers = a->shape->f.layers;
    if (a->tp < 1 || a->ep < 1 || a->pp < 1)
        return sh_misused(e, "found tp %d, pp %d and ep %d, expected at least 1", a->tp, a->pp, a->ep);
    if (a->pp > layers || a->pp > SH_CAPACITY_STAGES)
        return sh_misused(e, "%s: found %d pipeline stages, expected at most %d", a->shape->f.name, a->pp,
                          layers < SH_CAPACITY_STAGES ? layers : SH_CAPACITY_STAGES);
    if (a->ep > 1 && !a->shape->f.experts)
        return sh_misused(e, "%s: --ep %d: the model has no experts", a->shape->f.name, a->ep);
    if (a->ep > 1 && a->ep > a->shape->f.experts)
        return sh_misused(e, "%s: --ep %d, expected at most %d, the number of experts", a->shape->f.name, a->ep,
                          a->shape->f.experts);
    if (!a->length || a->length > SH_KV_MOST_TOKENS)
        return sh_misused(e, "found a length of %llu tokens, expected 1 to %d", (unsigned long long)a->length,
                          SH_KV_MOST_TOKENS);
    return 0;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Sequences of one rank that fit into `room`. */
static uint64_t fit(uint64_t room, const struct sh_kv_bytes *kv)
{
    if (room < kv->prefix)
        return 0;
    return kv->sequence ? (room - kv->prefix) / kv->sequence : UINT32_MAX;
}

/* Sequences of the whole group; `room` of each stage. */
static uint64_t fit_all(const struct sh_capacity_ask *a, const uint64_t *room, int *fullest)
{
    uint64_t most = UINT32_MAX;
    *fullest = 0;
    for (int i = 0; i < a->pp; i++) {
        struct sh_kv_bytes kv = sh_split_cache(a, i, a->length);
        uint64_t n = fit(room[i], &kv);
        if (n < most) {
            most = n;
            *fullest = i;
        }
    }
    return most * (uint64_t)a->ep;
}

/* The largest length, or budget that is the same for all layers, with which the batch fits. */
static uint64_t largest(const struct sh_capacity_ask *a, const uint64_t *room, uint64_t batch, int is_budget)
{
    struct sh_capacity_ask k = *a;
    uint64_t low = 0, high = is_budget ? a->length : SH_KV_MOST_TOKENS;         /* what is above high does not fit */
    int stage;
    k.rule.budget = is_budget ? SH_BUDGET_TOKENS : a->rule.budget;
    while (low < high) {
        uint64_t middle = low + (high - low + 1) / 2;
        *(is_budget ? &k.rule.tokens : &k.length) = middle;
        if (fit_all(&k, room, &stage) >= batch)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The first term that goes over the limit, in the order in which a server takes them, and by how much. */
static void name_shortfall(const struct sh_capacity_ask *a, struct sh_capacity *c)
{
    const struct sh_capacity_stage *g = &c->stage[c->fullest];
    uint64_t ranks = (uint64_t)a->ep, each = a->batch ? (a->batch + ranks - 1) / ranks : 1;
    uint64_t need = g->weights - g->draft_weights - g->lora;
    static const char *const names[] = {"weights", "draft model", "adapters", "overhead", "shared prefix",
                                        "cache of the sequences"};
    uint64_t terms[] = {need, g->draft_weights, g->lora, a->overhead, g->kv.prefix, sh_kv_mul(each, g->kv.sequence)};
    need = 0;
    for (int i = 0; i < 6 && !c->unfit; i++) {
        need = sh_kv_add(need, terms[i]);
        if (need > c->limit) {
            c->unfit = names[i];
            c->shortfall = need - c->limit;
        }
    }
}

/* Numbers of a budget that its bytes do not show: the memory while a prompt is still whole, the memory of a runtime
 * with one size for all layers, and the memory left in pages that hold evicted tokens. All of one stage. */
static void budget_peaks(const struct sh_capacity_ask *a, struct sh_capacity *c)
{
    struct sh_capacity_ask whole = *a;
    const struct sh_capacity_stage *g = &c->stage[c->fullest];
    double scattered = 0;
    uint64_t widest = 0;
    whole.rule.budget = SH_BUDGET_NONE;
    for (int i = g->first; i < g->last; i++) {
        uint64_t all = sh_kv_held(a->shape, &whole.rule, i, a->length), page = a->rule.page;
        uint64_t kept = sh_kv_kept(a->shape, &a->rule, i, a->length), cell = sh_kv_cell(a->shape, &a->rule, i, a->tp);
        double full = (double)sh_kv_kept(a->shape, &whole.rule, i, a->length);
        double hit = full > 0 && (double)kept < full ? 1 - pow(1 - (double)kept / full, (double)page) : 1;
        scattered += (double)all * hit * (double)cell + (double)sh_kv_window(a->shape, &a->rule, i, a->length);
        widest = kept > widest ? kept : widest;
    }
    for (int i = g->first; i < g->last; i++) {
        uint64_t all = sh_kv_kept(a->shape, &whole.rule, i, a->length), page = a->rule.page;
        uint64_t given = ((all < widest ? all : widest) + page - 1) / page * page;
        c->uniform = sh_kv_add(c->uniform, sh_kv_mul(given, sh_kv_cell(a->shape, &a->rule, i, a->tp)));
        c->uniform = sh_kv_add(c->uniform, sh_kv_window(a->shape, &a->rule, i, a->length));
    }
    c->uniform = sh_kv_add(c->uniform, g->kv.states + g->draft_kv.sequence);
    c->scattered = (uint64_t)ceil(scattered) + g->kv.states + g->draft_kv.sequence;
}

static uint64_t with_prompt(const struct sh_capacity_ask *a, const uint64_t *room)
{
    struct sh_capacity_ask whole = *a;
    uint64_t most = UINT32_MAX;
    whole.rule.budget = SH_BUDGET_NONE;
    for (int i = 0; i < a->pp; i++) {
        uint64_t prompt = sh_split_cache(&whole, i, a->length).sequence;
        struct sh_kv_bytes kv = sh_split_cache(a, i, a->length);
        uint64_t n = room[i] < prompt ? 0 : fit(room[i] - prompt, &kv);
        most = n < most ? n : most;
    }
    return most * (uint64_t)a->ep;
}

/* What a sequence takes however long it is, and what one more token adds to it. */
static void split_growth(const struct sh_capacity_ask *a, struct sh_capacity *c)
{
    const struct sh_capacity_stage *g = &c->stage[c->fullest];
    /* A share of a page's tokens is less than a page: over many pages it evens out. */
    int by_share = a->rule.budget == SH_BUDGET_SHARE || a->rule.budget == SH_BUDGET_PLAN;
    uint64_t step = a->rule.page * (by_share ? 1000 : 1);
    uint64_t more = sh_split_cache(a, c->fullest, a->length + step).sequence;
    c->further = (more - g->kv.sequence) / step;
    c->fixed = less(g->kv.sequence, sh_kv_mul(c->further, a->length));
}

static void times(const struct sh_capacity_ask *a, struct sh_capacity *c)
{
    uint64_t ranks = (uint64_t)a->ep, each = (c->batch + ranks - 1) / ranks;
    double micro = (double)(each < (uint64_t)a->pp ? each : (uint64_t)a->pp);
    double size = ceil((double)each / fmax(micro, 1));
    double slowest = 0, slowest_prompt = 0;
    c->decode_s = c->prefill_s = c->decode_rate = c->prefill_rate = c->cache_share = NAN;
    if (!each)
        return;
    c->decode_s = c->prefill_s = 0;
    for (int i = 0; i < a->pp; i++) {
        struct sh_roofline r = sh_capacity_roofline(a, i);
        struct sh_step_work w = sh_capacity_decode_work(a, i, a->length);
        struct sh_step_work p = sh_capacity_prompt_work(a, i, a->length);
        w = (struct sh_step_work){.tokens = size, .logits = w.logits * size, .cache_bytes = w.cache_bytes * size,
                                  .attention_flops = w.attention_flops * size};
        struct sh_step_time s = sh_roofline_step(&r, &w), t = sh_roofline_step(&r, &p);
        double chunks = a->chunk && a->chunk < a->length ? ceil((double)a->length / (double)a->chunk) : 1;
        t.memory_s = (t.bytes + (chunks - 1) * t.weight_bytes) / r.bandwidth;      /* weights once a chunk */
        t.bound = t.link_s > fmax(t.compute_s, t.memory_s) ? SH_BOUND_LINK
                  : t.compute_s > t.memory_s ? SH_BOUND_COMPUTE : SH_BOUND_BANDWIDTH;
        t.s = fmax(t.memory_s, t.compute_s) + t.link_s;
        c->decode_s += s.s;
        c->prefill_s += t.s;
        if (s.s > slowest) {
            slowest = s.s;
            c->step = s;
            c->cache_share = w.cache_bytes / s.bytes;
        }
        if (t.s > slowest_prompt) {
            slowest_prompt = t.s;
            c->prompt = t;
        }
    }
    c->decode_s = fmax(c->decode_s, micro * slowest);   /* a full pipeline turns as fast as its slowest stage */
    c->decode_rate = (double)(each * ranks) / c->decode_s;
    c->prefill_rate = (double)(a->length * ranks) / slowest_prompt;
}

int sh_capacity(const struct sh_capacity_ask *a, struct sh_capacity *out, struct sh_err *e)
{
    uint64_t room[SH_CAPACITY_STAGES];
    if (check(a, e))
        return -1;
    memset(out, 0, sizeof *out);
    out->n_stage = a->pp;
    out->limit = (uint64_t)floor((double)a->memory * a->util);
    for (int i = 0; i < a->pp; i++) {
        sh_split_stage(a, i, a->length, &out->stage[i]);
        room[i] = less(less(out->limit, out->stage[i].weights), a->overhead);
    }
    out->max_batch = fit_all(a, room, &out->fullest);
    out->room = room[out->fullest];
    out->max_length = largest(a, room, a->batch ? a->batch : 1, 0);
    out->max_budget = a->batch ? largest(a, room, a->batch, 1) : 0;
    if (out->max_batch < (a->batch ? a->batch : 1))
        name_shortfall(a, out);
    else
        out->batch = a->batch ? a->batch : out->max_batch;
    out->with_prompt = a->rule.budget == SH_BUDGET_NONE ? out->max_batch : with_prompt(a, room);
    budget_peaks(a, out);
    split_growth(a, out);
    times(a, out);
    return 0;
}
