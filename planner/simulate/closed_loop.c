/* SPDX-License-Identifier: Apache-2.0 */
/* See closed_loop.h. */
#include "planner/simulate/closed_loop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/simulate/loop_parts.h"
#include "src/base/mem.h"

struct request {
    double sent, ready, first;
    double most, held;                  /* bytes of the cache that are kept for it; of them, its own alone */
    uint32_t prompt, output, read;      /* read: tokens of the prompt                             */
    struct sh_prefix_use use;
};

struct server {
    const struct sh_loop_ask *a;
    struct sh_loop_result *r;
    struct sh_workload_random random;
    struct sh_workload *requests;
    struct sh_loop_pace pace;
    struct request *slot;               /* [concurrency]                                          */
    uint32_t *wait, *reading;           /* places of slot; wait: a ring; reading: oldest first     */
    struct sh_loop_heap heap;           /* those that decode, by the step with their last token    */
    uint32_t head, n_wait, n_seen, n_reading;   /* n_seen: of n_wait, those that the scheduler knows */
    double now, held, pool, context;    /* context: tokens of all that decode                      */
    uint64_t tick, look_at;             /* decoding steps so far; when it looks for requests again  */
    int has_prefix, copies;             /* copies: what a request keeps is not what it read        */
    struct sh_prefix_cache prefix;
    double load;                        /* seconds of the next step to load blocks                 */
};

/* ---- the prefix cache ---- */

static double ranks(const struct server *s)
{
    return s->a->clock->layout.dp;
}

/* Blocks that it holds are not its own. */
static void share(struct server *s, struct request *q)
{
    double held = fmax(q->most - q->use.held * s->prefix.block_bytes, 0);
    s->held += held - q->held;
    q->held = held;
}

static void fit(struct server *s)
{
    if (s->has_prefix)
        sh_prefix_fit(&s->prefix, s->pool * ranks(s) - s->held);
}

/* The first `tokens` of its text are there. */
static void reach(struct server *s, struct request *q, uint32_t tokens)
{
    sh_prefix_reach(&s->prefix, &q->use, tokens);
    share(s, q);
}

/* ---- the clients ---- */

static int send(struct server *s, uint32_t slot, struct sh_err *e)
{
    struct sh_request q;
    const double *k = s->a->clock->constant;
    int got = s->r->requests < s->a->requests ? s->requests->next(s->requests, &q, e) : 0;
    if (got <= 0)
        return got;
    struct request *to = &s->slot[slot];
    *to = (struct request){.sent = s->now, .prompt = q.prompt, .output = q.output, .use = to->use};
    to->ready = s->now + k[SH_CLOCK_request] + k[SH_CLOCK_token] * q.prompt;
    to->most = sh_loop_at(&s->pace, (double)q.prompt + q.output - 1).held_bytes;
    if (s->has_prefix) {
        sh_prefix_name(&to->use, s->requests->key, s->requests->n_key);
        to->most += s->copies ? q.prompt / s->prefix.block * s->prefix.block_bytes : 0;
    }
    if (to->most > s->pool)
        return sh_fail(e, "%s: a request with %u + %u tokens needs %.2f GiB of cache on each GPU, which has %.2f",
                       s->a->clock->shape->f.name, q.prompt, q.output, to->most / 0x1p30, s->pool / 0x1p30);
    s->wait[(s->head + s->n_wait++) % s->a->concurrency] = slot;
    s->r->requests++;
    s->r->tokens_in += q.prompt;
    s->r->tokens_out += q.output;
    return 0;
}

static int finish(struct server *s, uint32_t slot, struct sh_err *e)
{
    struct request *q = &s->slot[slot];
    sh_loop_answered(s->a, q->first - q->sent, s->now - q->first, q->output, s->r);
    if (s->has_prefix && !s->copies)
        reach(s, q, q->prompt + q->output - 1);
    s->held -= q->held;
    sh_prefix_release(&s->prefix, &q->use);
    fit(s);
    s->r->seconds = s->now;
    return send(s, slot, e);
}

/* ---- steps ---- */

static uint32_t running(const struct server *s)
{
    return s->heap.n + s->n_reading;
}

static double mean_context(const struct server *s)
{
    return s->context / s->heap.n;
}

/* All that decode have `n` more tokens; those that are done go. */
static int advance(struct server *s, uint64_t n, struct sh_err *e)
{
    s->tick += n;
    s->context += (double)n * s->heap.n * s->pace.gained;
    s->r->steps += n;
    while (s->heap.n && s->heap.at[0].key <= (double)s->tick) {
        uint32_t slot = sh_loop_pop(&s->heap);
        const struct request *q = &s->slot[slot];
        s->context -= (double)q->prompt + 1 + sh_loop_steps(&s->pace, q->output) * s->pace.gained;
        if (!s->heap.n)
            s->context = 0;             /* what rounding has left */
        if (finish(s, slot, e))
            return -1;
    }
    return 0;
}

/* What the scheduler may take: it knows of requests that have come, if it has looked since. */
static void look(struct server *s)
{
    if (s->heap.n && s->tick < s->look_at)
        return;
    s->look_at = s->tick + s->a->poll;
    while (s->n_seen < s->n_wait && s->slot[s->wait[(s->head + s->n_seen) % s->a->concurrency]].ready <= s->now)
        s->n_seen++;
}

/* Is there room for the request that waits longest, with what the prefix cache has of it? */
static int has_room(const struct server *s, struct sh_prefix_match *m)
{
    const struct request *q = &s->slot[s->wait[s->head]];
    *m = (struct sh_prefix_match){0};
    if (!s->n_seen || running(s) >= s->a->sequences)
        return 0;
    if (!s->has_prefix)
        return s->held + q->most <= s->pool * ranks(s);
    *m = sh_prefix_match(&s->prefix, &q->use, q->prompt);
    double own = fmax(q->most - m->n * s->prefix.block_bytes, 0);
    return s->held + own + (s->prefix.n_held + m->fresh) * s->prefix.block_bytes <= s->pool * ranks(s);
}

static void take(struct server *s, const struct sh_prefix_match *m)
{
    struct request *q = &s->slot[s->wait[s->head]];
    s->reading[s->n_reading++] = s->wait[s->head];
    s->head = (s->head + 1) % s->a->concurrency;
    s->n_wait--;
    s->n_seen--;
    if (s->has_prefix) {
        s->load += sh_prefix_take(&s->prefix, &q->use, q->prompt, m);
        q->read = m->n * s->prefix.block;
        s->r->tokens_reused += q->read;
    }
    share(s, q);
    fit(s);
}

/* One prompt's part of a step: tokens, and what attention costs. */
static void read_part(struct server *s, struct request *q, uint32_t n, struct sh_clock_work *w)
{
    struct sh_clock_sequence from = sh_loop_at(&s->pace, q->read), to = sh_loop_at(&s->pace, q->read + n);
    w->prompt_flops += to.prompt_flops - (q->read ? from.prompt_flops : 0);
    w->cache_bytes += q->read ? from.cache_bytes : 0;
    w->prompt_tokens += n;
    w->prompts++;
    w->all_tokens += n;
    q->read += n;
    w->logits += q->read == q->prompt;
    if (s->copies && q->read == q->prompt)
        w->cache_bytes += 2 * sh_loop_at(&s->pace, q->prompt).held_bytes;
}

/* Prompts of the next step: those that are being read, then new ones. */
static void take_prompts(struct server *s, double room, struct sh_clock_work *w)
{
    int whole = s->a->scheduler == SH_SCHED_TRTLLM;
    for (uint32_t i = 0; room >= 1; i++) {
        if (i == s->n_reading) {
            struct sh_prefix_match m;
            if (!has_room(s, &m))
                return;
            uint32_t next = s->slot[s->wait[s->head]].prompt - m.n * s->prefix.block;
            if (whole && next <= s->a->chunk && next > room)
                return;
            take(s, &m);
        }
        struct request *q = &s->slot[s->reading[i]];
        double n = fmin(q->prompt - q->read, room);
        read_part(s, q, (uint32_t)n, w);
        room -= floor(n);
    }
}

/* The ranks share the prompts of a step, each of which is on one. */
static void share_prompts(const struct server *s, struct sh_clock_work *w)
{
    double by = 1 / fmax(fmin(ranks(s), w->prompts), 1);
    w->prompt_tokens *= by;
    w->prompt_flops *= by;
    w->cache_bytes *= by;
    w->logits *= by;
}

/* The step's end: prompts that are whole have their first token. */
static int end_prompts(struct server *s, struct sh_err *e)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->n_reading; i++) {
        uint32_t slot = s->reading[i];
        struct request *q = &s->slot[slot];
        if (s->has_prefix)
            reach(s, q, q->read);
        if (q->read < q->prompt) {
            s->reading[kept++] = slot;
            continue;
        }
        if (s->copies) {
            sh_prefix_release(&s->prefix, &q->use);
            q->most -= q->prompt / s->prefix.block * s->prefix.block_bytes;
            share(s, q);
            fit(s);
        }
        q->first = s->now;
        if (q->output > 1) {
            s->context += q->prompt + 1;
            sh_loop_push(&s->heap, (double)s->tick + sh_loop_steps(&s->pace, q->output), slot);
        } else if (finish(s, slot, e)) {
            return -1;
        }
    }
    s->n_reading = kept;
    return 0;
}

/* A step that reads prompts; 0 if there is none to read. */
static int prompt_step(struct server *s, int *done, struct sh_err *e)
{
    struct sh_clock_work w = {0};
    int decodes = s->a->scheduler != SH_SCHED_SGLANG && s->heap.n;
    take_prompts(s, s->a->chunk * ranks(s) - (decodes ? (double)s->heap.n * s->pace.checked : 0), &w);
    *done = w.prompt_tokens > 0;
    if (!*done)
        return 0;
    share_prompts(s, &w);
    double batch = w.prompts + (decodes ? s->heap.n : 0), propose = 0;
    w.all_sequences = w.prompts;
    if (decodes) {
        struct sh_clock_sequence q = sh_loop_at(&s->pace, mean_context(s));
        sh_loop_decode_work(s->a->clock, &q, s->heap.n, s->pace.checked, &w);
        propose = sh_loop_propose_s(&s->pace, &q, s->heap.n);
    }
    double dt = sh_loop_step_s(s->a->clock, w, batch) + propose + s->load;
    s->load = 0;
    s->now += dt;
    s->r->busy_s += dt;
    s->r->most_running = running(s) > s->r->most_running ? running(s) : s->r->most_running;
    if (decodes ? advance(s, 1, e) : 0)
        return -1;
    s->r->steps += !decodes;
    if (end_prompts(s, e))
        return -1;
    s->look_at = s->tick;
    return 0;
}

/* Steps that decode, up to the first that can change something. */
static int decode_steps(struct server *s, struct sh_err *e)
{
    double first = sh_loop_batch_s(&s->pace, s->heap.n, mean_context(s)), n = s->heap.at[0].key - (double)s->tick;
    if (s->n_wait > s->n_seen) {        /* somebody is to be looked for */
        double ready = s->slot[s->wait[(s->head + s->n_seen) % s->a->concurrency]].ready;
        double looks = (double)s->look_at - (double)s->tick;
        n = fmin(n, fmax(fmax(looks, ceil((ready - s->now) / first)), 1));
    }
    double dt = sh_loop_stretch_s(&s->pace, s->heap.n, mean_context(s), n, first);
    s->now += dt;
    s->r->busy_s += dt;
    return advance(s, (uint64_t)n, e);
}

static int run(struct server *s, struct sh_err *e)
{
    uint64_t turns = 0;
    for (uint32_t i = 0; i < s->a->concurrency && s->r->requests < s->a->requests; i++)
        if (send(s, i, e))
            return -1;
    while (running(s) || s->n_wait) {
        int done = 0;
        if (!running(s))
            s->now = fmax(s->now, s->slot[s->wait[s->head]].ready);
        look(s);
        if (prompt_step(s, &done, e))
            return -1;
        if (!done && !s->heap.n)
            return sh_fail(e, "the simulation makes no progress at %g s", s->now);
        if (!done && decode_steps(s, e))
            return -1;
        if (s->a->stopped && ++turns % 65536 == 0 && s->a->stopped())
            return sh_fail(e, "interrupted after %llu requests", (unsigned long long)s->r->ttft.n);
    }
    return 0;
}

static void open_requests(struct server *s)
{
    const struct sh_loop_ask *a = s->a;
    s->requests = a->workload ? a->workload : &s->random.base;
    s->requests->block = a->prefix.block;
    if (!a->workload)
        sh_workload_random(&s->random, 1, a->requests, a->seed);
    s->has_prefix = a->prefix.block > 0;
    s->copies = s->has_prefix && a->ask->rule.budget != SH_BUDGET_NONE;
    if (s->has_prefix)
        sh_prefix_open(&s->prefix, &a->prefix, a->prefix.block * (double)sh_split_cache(a->ask, 0, 1).token,
                       s->pool * ranks(s));
}

static void close_server(struct server *s)
{
    for (uint32_t i = 0; i < s->a->concurrency; i++)
        sh_prefix_drop(&s->slot[i].use);
    sh_prefix_clear(&s->prefix);
    free(s->random.keys.at);
    free(s->pace.grid);
    free(s->slot);
    free(s->wait);
    free(s->reading);
    free(s->heap.at);
}

int sh_closed_loop(const struct sh_loop_ask *a, struct sh_loop_result *out, struct sh_err *e)
{
    struct server s = {.a = a, .r = out, .random = {.prompt = a->prompt, .output = a->output}};
    memset(out, 0, sizeof *out);
    s.pool = out->pool = a->memory - a->clock->weight_bytes / a->clock->layout.pp;
    if (!(s.pool > 0))
        return sh_fail(e, "%s: no room for the weights: each GPU lacks %.0f bytes", a->clock->shape->f.name,
                       -s.pool);
    s.pool *= a->clock->layout.pp;      /* of all stages, as the bytes of a sequence are          */
    s.pace = sh_loop_pace(a->clock, a->ask, a->draft, a->accept);
    open_requests(&s);
    s.slot = xcalloc(a->concurrency, sizeof *s.slot);
    s.wait = xcalloc(a->concurrency, sizeof *s.wait);
    s.reading = xcalloc(a->concurrency, sizeof *s.reading);
    int bad = run(&s, e);
    if (!bad && !out->requests)
        bad = sh_fail(e, "the workload has no requests");
    out->prefix = s.prefix.count;
    close_server(&s);
    return bad;
}

/* ---- without the loop ---- */

void sh_loop_answered(const struct sh_loop_ask *a, double ttft, double rest, uint32_t output, struct sh_loop_result *r)
{
    double tpot = output > 1 ? rest / (output - 1) : 0;
    sh_quantile_add(&r->ttft, ttft);
    if (output > 1)
        sh_quantile_add(&r->tpot, tpot);
    r->good += (!(a->slo_ttft_s > 0) || ttft <= a->slo_ttft_s) && (!(a->slo_tpot_s > 0) || tpot <= a->slo_tpot_s);
}

double sh_loop_decode_s(const struct sh_clock *c, const struct sh_capacity_ask *ask, double batch, uint64_t context,
                        double term[SH_N_TERM])
{
    struct sh_clock_sequence q = sh_clock_sequence_at(ask, context);
    struct sh_clock_work w = {0};
    sh_loop_decode_work(c, &q, batch, 1, &w);
    sh_loop_pipeline(c, batch, &w);
    return sh_clock_step(c, &w, term);
}

double sh_loop_prompt_s(const struct sh_clock *c, const struct sh_capacity_ask *ask, uint64_t prompt, uint32_t chunk)
{
    double sum = c->constant[SH_CLOCK_request] + c->constant[SH_CLOCK_token] * (double)prompt;
    struct sh_clock_sequence from = {0};
    for (uint64_t at = 0; at < prompt; ) {
        uint64_t n = prompt - at < chunk ? prompt - at : chunk;
        struct sh_clock_sequence to = sh_clock_sequence_at(ask, at + n);
        struct sh_clock_work w = {.prompt_tokens = (double)n, .prompts = 1, .logits = at + n == prompt,
                                  .all_tokens = (double)n, .all_sequences = 1, .cache_bytes = from.cache_bytes,
                                  .prompt_flops = to.prompt_flops - from.prompt_flops};
        sum += sh_clock_step(c, &w, NULL);
        from = to;
        at += n;
    }
    return sum;
}
