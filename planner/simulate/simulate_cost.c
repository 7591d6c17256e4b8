/* SPDX-License-Identifier: Apache-2.0 */
/* See simulate_cost.h. */
#include "planner/simulate/simulate_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/capacity/capacity.h"
#include "planner/simulate/workload.h"
#include "src/base/mem.h"

void sh_sim_cost_slow(struct sh_sim_cost *c, const struct sh_sim_efficiency *f)
{
    struct sh_roofline *r = &c->line;
    *r = sh_capacity_roofline(&c->ask, 0);
    c->efficiency = *f;
    r->plain_bytes /= f->weights;
    r->head_bytes /= f->weights;
    r->expert_bytes /= f->weights;
    r->adapter_bytes /= f->weights;
    r->token_flops /= f->products;
    r->head_flops /= f->products;
    r->link_bytes /= f->link;
}

int sh_sim_cost(const struct sh_capacity_ask *ask, const struct sh_sim_efficiency *f, struct sh_sim_cost *out,
                struct sh_err *e)
{
    struct sh_capacity whole;
    struct sh_sim_cost c = {.ask = *ask};
    if (ask->pp != 1 || ask->ep != 1 || ask->draft || ask->rule.prefix)
        return sh_misused(e, "a simulation covers one GPU or a tensor-parallel group, without a draft model or shared "
                             "prefix");
    c.ask.length = 1;
    c.ask.batch = 0;
    if (sh_capacity(&c.ask, &whole, e))
        return -1;
    if (whole.unfit)
        return sh_fail(e, "%s: no room for %s: each GPU lacks %llu bytes", ask->shape->f.name, whole.unfit,
                       (unsigned long long)whole.shortfall);
    c.pool = whole.room;
    c.prompt_tp = c.ask.tp;
    c.plain = c.ask;
    c.plain.rule.budget = SH_BUDGET_NONE;
    sh_sim_cost_slow(&c, f);
    *out = c;
    sh_sim_cost_reach(out, 1);
    return 0;
}

int sh_sim_cost_clock(struct sh_sim_cost *c, const struct sh_clock *clock, double memory, struct sh_err *e)
{
    const struct sh_clock_layout *l = &clock->layout;
    double pool = memory - clock->weight_bytes / l->pp;
    if (!(pool > 0))
        return sh_fail(e, "%s: no room for the weights: each GPU lacks %.0f bytes", clock->shape->f.name,
                       -pool);
    c->clock = clock;
    c->plain_states = sh_split_cache(&c->plain, 0, 1).states;
    int tp = sh_clock_prompt_tp(c->ask.shape, c->ask.tp);
    if (tp != c->prompt_tp) {
        size_t n = c->n;
        c->prompt_tp = tp;
        c->n = 0;
        sh_sim_cost_reach(c, n - 1);
    }
    c->pool = (uint64_t)(pool * l->pp * l->dp);
    return 0;
}

void sh_sim_cost_clear(struct sh_sim_cost *c)
{
    free(c->size);
    c->size = NULL;
    c->n = 0;
}

struct sh_sim_size sh_sim_size_at(const struct sh_sim_cost *c, uint64_t n)
{
    struct sh_step_work kept = sh_capacity_decode_work(&c->ask, 0, n);
    struct sh_step_work whole = sh_capacity_decode_work(&c->plain, 0, n);
    struct sh_capacity_ask wide = c->plain;
    wide.tp = c->prompt_tp;
    struct sh_step_work prompt = sh_capacity_prompt_work(&wide, 0, n);
    return (struct sh_sim_size){sh_split_cache(&c->ask, 0, n).sequence, sh_split_cache(&c->plain, 0, n).sequence,
                                kept.cache_bytes, whole.cache_bytes, kept.attention_flops, whole.attention_flops,
                                prompt.attention_flops};
}

void sh_sim_cost_reach(struct sh_sim_cost *c, size_t tokens)
{
    size_t n = c->n ? c->n : 1024;
    if (tokens < c->n)
        return;
    while (n <= tokens)
        n *= 2;
    if (n > SH_REQUEST_TOKENS)
        n = SH_REQUEST_TOKENS + 1;
    c->size = xreallocarray(c->size, n, sizeof *c->size);
    for (size_t i = c->n; i < n; i++)
        c->size[i] = i ? sh_sim_size_at(c, i) : (struct sh_sim_size){0};
    c->n = n;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t sh_sim_need(const struct sh_sim_cost *c, enum sh_sim_evict evict, uint32_t from, uint32_t to, uint32_t prompt)
{
    const struct sh_sim_size *s = c->size;
    if (from >= prompt)
        return s[to].kept;
    if (evict == SH_EVICT_PROMPT)
        return s[to].whole;
    return less(s[to].whole, s[from].kept + s[to - from].whole);
}

uint64_t sh_sim_rest(const struct sh_sim_cost *c, enum sh_sim_evict evict, uint32_t at, uint32_t prompt)
{
    return at < prompt && evict == SH_EVICT_PROMPT ? c->size[at].whole : c->size[at].kept;
}

uint64_t sh_sim_peak(const struct sh_sim_cost *c, enum sh_sim_evict evict, uint32_t prompt, uint32_t total,
                     uint32_t step)
{
    const struct sh_sim_size *s = c->size;
    uint64_t first = s[prompt].whole;
    if (evict == SH_EVICT_CHUNK && step < prompt)
        first = less(first, s[prompt].kept + s[step].whole);
    return first > s[total].kept ? first : s[total].kept;
}

void sh_sim_work(const struct sh_sim_cost *c, enum sh_sim_evict evict, uint32_t from, uint32_t to, uint32_t prompt,
                 struct sh_step_work *w)
{
    const struct sh_sim_size *s = c->size;
    double n = to - from;
    if (from >= prompt) {
        w->cache_bytes += s[to].kept_read;
        w->attention_flops += n * s[to].kept_flops;
        return;
    }
    double flops = s[to].prompt_flops - s[from].prompt_flops, read = s[from].whole_read;
    if (evict == SH_EVICT_CHUNK && from) {
        flops = fmin(flops, n * s[from].kept_flops + s[to - from].prompt_flops);
        read = s[from].kept_read;
    }
    w->cache_bytes += read;
    w->attention_flops += flops;
    w->prompt_tokens += n;
    w->prompt_flops += flops;
    w->prompts++;
}

/* The ranks of attention share the step's sequences and prompts evenly, each of which is on one. A pipeline passes
 * parts of the batch, no smaller than a sequence, at once. */
static double clock_seconds(const struct sh_sim_cost *c, const struct sh_step_work *w)
{
    const struct sh_clock_layout *l = &c->clock->layout;
    double decoding = w->tokens - w->prompt_tokens, here = ceil(decoding / l->dp), logits = ceil(w->logits / l->dp);
    double ranks = fmax(fmin(l->dp, w->prompts), 1), part = decoding > 0 ? here / decoding : 1 / ranks;
    double states = decoding * (double)c->plain_states, by = 1 / fmax(fmin(l->pp, decoding + w->prompts), 1);
    struct sh_clock_work k = {.decoding = by * here, .prompt_tokens = by * w->prompt_tokens / ranks,
                              .logits = by * logits, .all_tokens = by * w->tokens, .all_sequences = fmax(here, logits),
                              .cache_bytes = by * part * fmax(w->cache_bytes - states, 0),
                              .state_bytes = by * part * states,
                              .decode_flops = by * part * (w->attention_flops - w->prompt_flops),
                              .prompt_flops = by * w->prompt_flops / ranks * sh_clock_prompt_share(c->ask.shape)};
    return sh_clock_step(c->clock, &k, NULL);
}

double sh_sim_seconds(const struct sh_sim_cost *c, const struct sh_step_work *w)
{
    if (c->clock)
        return clock_seconds(c, w);
    struct sh_step_work slow = *w;
    slow.cache_bytes /= c->efficiency.cache;
    slow.attention_flops /= c->efficiency.attention;
    return sh_roofline_step(&c->line, &slow).s + c->efficiency.overhead_s;
}
