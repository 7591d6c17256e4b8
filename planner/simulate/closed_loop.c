/* SPDX-License-Identifier: Apache-2.0 */
/* See closed_loop.h. */
#include "planner/simulate/closed_loop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/simulate/loop_parts.h"
#include "src/base/mem.h"

#define NONE UINT32_MAX

struct request {
    double sent, ready, first;
    double most, held;                  /* bytes of the cache that are kept for it; of them, its own alone */
    uint32_t prompt, output, read;      /* read: tokens of the prompt                             */
    uint32_t next;                      /* that waits after it; NONE                              */
    struct sh_prefix_use use;
};

enum phase { IDLE, WAKES, READS, DECODES, ENDS };       /* ENDS: a step's end is being worked on  */

struct server {                         /* a replica                                              */
    struct clients *c;
    const struct sh_loop_ask *a;
    struct request *slot;               /* that of the clients                                    */
    struct sh_loop_pace *pace;          /* of all replicas                                        */
    enum phase phase;
    uint32_t wait, last, unseen;        /* requests that wait: first, last, first that the scheduler does not know */
    uint32_t *reading, n_reading, room_reading;         /* oldest first                           */
    struct sh_loop_heap heap;           /* those that decode, by the step with their last token    */
    uint32_t n_wait, decodes;           /* decodes: the step that reads prompts does that, too     */
    double now, until;                  /* its step began; ends, INFINITY: it has none             */
    double first, steps;                /* seconds of the first of its decoding steps; how many    */
    double held, pool, context;         /* context: tokens of all that decode                      */
    uint64_t tick, look_at;             /* decoding steps so far; when it looks for requests again  */
    int has_prefix, copies;             /* copies: what a request keeps is not what it read        */
    struct sh_prefix_cache prefix;
    double load;                        /* seconds of the next step to load blocks                 */
};

struct clients {
    const struct sh_loop_ask *a;
    struct sh_loop_result *r;
    struct sh_workload_random random;
    struct sh_workload *requests;
    struct sh_loop_pace pace;
    struct request *slot;               /* [concurrency]                                          */
    struct server *server;              /* [n]                                                    */
    uint32_t n;
    double now;
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

static uint32_t running(const struct server *s)
{
    return s->heap.n + s->n_reading;
}

static double mean_context(const struct server *s)
{
    return s->context / s->heap.n;
}

/* Decoding steps until the scheduler looks for what it does not know of and finds it. */
static double steps_to_look(const struct server *s)
{
    double ready = s->slot[s->unseen].ready - s->now, n = ceil(ready / s->first);
    double looks = fmax((double)s->look_at - (double)s->tick, 1);
    while (n > looks && sh_loop_stretch_s(s->pace, s->heap.n, mean_context(s), n - 1, s->first) >= ready)
        n--;
    return fmax(n, looks);
}

static void plan_decoding(struct server *s, double steps)
{
    s->steps = steps;
    s->until = fmax(s->now + sh_loop_stretch_s(s->pace, s->heap.n, mean_context(s), steps, s->first), s->c->now);
}

/* A replica has a request, which may end its decoding steps earlier. */
static void receive(struct server *s, uint32_t slot)
{
    int is_next = s->unseen == NONE;
    *(s->wait == NONE ? &s->wait : &s->slot[s->last].next) = slot;
    s->last = slot;
    s->unseen = is_next ? slot : s->unseen;
    s->n_wait++;
    if (s->phase == IDLE) {
        s->phase = WAKES;
        s->until = s->slot[slot].ready;
    } else if (s->phase == DECODES && is_next) {
        double steps = steps_to_look(s);
        if (steps < s->steps)
            plan_decoding(s, steps);
    }
}

/* The replica that gets the request, the `number`-th one. */
static struct server *choose(const struct clients *c, const struct request *q, uint64_t number)
{
    struct server *best = c->server;
    uint32_t most = 0;
    int by_text = c->a->router == SH_ROUTE_PREFIX && best->has_prefix;
    if (c->a->router == SH_ROUTE_IN_TURN)
        return &c->server[number % c->n];
    for (uint32_t i = 0; i < c->n; i++) {
        struct server *s = &c->server[i];
        uint32_t found = by_text ? sh_prefix_match(&s->prefix, &q->use, q->prompt).n : 0;
        if (i && (found < most || (found == most && s->n_wait + running(s) >= best->n_wait + running(best))))
            continue;
        best = s;
        most = found;
    }
    return best;
}

static int send(struct clients *c, uint32_t slot, struct sh_err *e)
{
    struct sh_request q;
    const struct server *s = c->server;
    const double *k = c->a->clock->constant;
    int got = c->r->requests < c->a->requests ? c->requests->next(c->requests, &q, e) : 0;
    if (got <= 0)
        return got;
    struct request *to = &c->slot[slot];
    *to = (struct request){.sent = c->now, .prompt = q.prompt, .output = q.output, .next = NONE, .use = to->use};
    to->ready = c->now + k[SH_CLOCK_request] + k[SH_CLOCK_token] * q.prompt;
    to->most = sh_loop_at(&c->pace, (double)q.prompt + q.output - 1).held_bytes;
    if (s->has_prefix) {
        sh_prefix_name(&to->use, c->requests->key, c->requests->n_key);
        to->most += s->copies ? q.prompt / s->prefix.block * s->prefix.block_bytes : 0;
    }
    if (to->most > s->pool)
        return sh_fail(e, "%s: a request with %u + %u tokens needs %.2f GiB of cache on each GPU, which has %.2f",
                       c->a->clock->shape->f.name, q.prompt, q.output, to->most / 0x1p30, s->pool / 0x1p30);
    receive(choose(c, to, c->r->requests++), slot);
    c->r->tokens_in += q.prompt;
    c->r->tokens_out += q.output;
    return 0;
}

static int finish(struct server *s, uint32_t slot, struct sh_err *e)
{
    struct request *q = &s->slot[slot];
    sh_loop_answered(s->a, q->first - q->sent, s->now - q->first, q->output, s->c->r);
    if (s->has_prefix && !s->copies)
        reach(s, q, q->prompt + q->output - 1);
    s->held -= q->held;
    sh_prefix_release(&s->prefix, &q->use);
    fit(s);
    s->c->r->seconds = s->now;
    return send(s->c, slot, e);
}

/* ---- steps ---- */

/* All that decode have `n` more tokens; those that are done go. */
static int advance(struct server *s, uint64_t n, struct sh_err *e)
{
    s->tick += n;
    s->context += (double)n * s->heap.n * s->pace->gained;
    s->c->r->steps += n;
    while (s->heap.n && s->heap.at[0].key <= (double)s->tick) {
        uint32_t slot = sh_loop_pop(&s->heap);
        const struct request *q = &s->slot[slot];
        s->context -= (double)q->prompt + 1 + sh_loop_steps(s->pace, q->output) * s->pace->gained;
        if (!s->heap.n)
            s->context = 0;             /* what rounding has left */
        if (finish(s, slot, e))
            return -1;
    }
    return 0;
}

/* The requests that the scheduler may take: it knows those that came before it last looked. */
static void look(struct server *s)
{
    if (s->heap.n && s->tick < s->look_at)
        return;
    s->look_at = s->tick + s->a->poll;
    while (s->unseen != NONE && s->slot[s->unseen].ready <= s->now)
        s->unseen = s->slot[s->unseen].next;
}

/* Is there room for the request that waits longest, with what the prefix cache has of it? */
static int has_room(const struct server *s, struct sh_prefix_match *m)
{
    *m = (struct sh_prefix_match){0};
    if (s->wait == s->unseen || running(s) >= s->a->sequences)
        return 0;
    const struct request *q = &s->slot[s->wait];
    if (!s->has_prefix)
        return s->held + q->most <= s->pool * ranks(s);
    *m = sh_prefix_match(&s->prefix, &q->use, q->prompt);
    double own = fmax(q->most - m->n * s->prefix.block_bytes, 0);
    return s->held + own + (s->prefix.n_held + m->fresh) * s->prefix.block_bytes <= s->pool * ranks(s);
}

static void take(struct server *s, const struct sh_prefix_match *m)
{
    struct request *q = &s->slot[s->wait];
    if (s->n_reading == s->room_reading) {
        s->room_reading = s->room_reading ? 2 * s->room_reading : 64;
        s->reading = xreallocarray(s->reading, s->room_reading, sizeof *s->reading);
    }
    s->reading[s->n_reading++] = s->wait;
    s->wait = q->next;
    s->n_wait--;
    if (s->has_prefix) {
        s->load += sh_prefix_take(&s->prefix, &q->use, q->prompt, m);
        q->read = m->n * s->prefix.block;
        s->c->r->tokens_reused += q->read;
    }
    share(s, q);
    fit(s);
}

/* One prompt's part of a step: tokens, and what attention costs. */
static void read_part(struct server *s, struct request *q, uint32_t n, struct sh_clock_work *w)
{
    struct sh_clock_sequence from = sh_loop_at(s->pace, q->read), to = sh_loop_at(s->pace, q->read + n);
    w->prompt_flops += to.prompt_flops - (q->read ? from.prompt_flops : 0);
    w->cache_bytes += q->read ? from.cache_bytes : 0;
    w->prompt_tokens += n;
    w->prompts++;
    w->all_tokens += n;
    q->read += n;
    w->logits += q->read == q->prompt;
    if (s->copies && q->read == q->prompt)
        w->cache_bytes += 2 * sh_loop_at(s->pace, q->prompt).held_bytes;
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
            uint32_t next = s->slot[s->wait].prompt - m.n * s->prefix.block;
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
    uint32_t kept = 0, n = s->n_reading;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t slot = s->reading[i];
        struct request *q = &s->slot[slot];
        if (s->has_prefix)
            reach(s, q, q->read);
        if (q->read < q->prompt) {
            s->reading[kept++] = slot;
            continue;
        }
        s->n_reading--;
        if (s->copies) {
            sh_prefix_release(&s->prefix, &q->use);
            q->most -= q->prompt / s->prefix.block * s->prefix.block_bytes;
            share(s, q);
            fit(s);
        }
        q->first = s->now;
        if (q->output > 1) {
            s->context += q->prompt + 1;
            sh_loop_push(&s->heap, (double)s->tick + sh_loop_steps(s->pace, q->output), slot);
        } else if (finish(s, slot, e)) {
            return -1;
        }
    }
    return 0;
}

/* A step that reads prompts; 0: there is none to read. */
static int start_prompts(struct server *s)
{
    struct sh_clock_work w = {0};
    s->decodes = s->a->scheduler != SH_SCHED_SGLANG && s->heap.n;
    take_prompts(s, s->a->chunk * ranks(s) - (s->decodes ? (double)s->heap.n * s->pace->checked : 0), &w);
    if (!(w.prompt_tokens > 0))
        return 0;
    share_prompts(s, &w);
    double batch = w.prompts + (s->decodes ? s->heap.n : 0), propose = 0;
    w.all_sequences = w.prompts;
    if (s->decodes) {
        struct sh_clock_sequence q = sh_loop_at(s->pace, mean_context(s));
        sh_loop_decode_work(s->a->clock, &q, s->heap.n, s->pace->checked, &w);
        propose = sh_loop_propose_s(s->pace, &q, s->heap.n);
    }
    s->until = s->now + sh_loop_step_s(s->a->clock, w, batch) + propose + s->load;
    s->load = 0;
    s->phase = READS;
    struct sh_loop_result *r = s->c->r;
    r->most_running = running(s) > r->most_running ? running(s) : r->most_running;
    return 1;
}

/* What it does from now on, up to the first step that can change something. */
static int start(struct server *s, struct sh_err *e)
{
    s->phase = IDLE;
    s->until = (double)INFINITY;
    if (!running(s) && s->wait != NONE && s->slot[s->wait].ready > s->now) {
        s->phase = WAKES;
        s->until = s->slot[s->wait].ready;
        return 0;
    }
    look(s);
    if (start_prompts(s))
        return 0;
    if (s->heap.n) {
        s->phase = DECODES;
        s->first = sh_loop_batch_s(s->pace, s->heap.n, mean_context(s));
        double steps = s->heap.at[0].key - (double)s->tick;
        plan_decoding(s, s->unseen == NONE ? steps : fmin(steps, steps_to_look(s)));
        return 0;
    }
    return running(s) || s->wait != NONE ? sh_fail(e, "the simulation makes no progress at %g s", s->now) : 0;
}

/* The end of what a replica does. */
static int end(struct server *s, struct sh_err *e)
{
    enum phase was = s->phase;
    double dt = s->until - s->now;
    s->now = s->c->now = s->until;
    s->phase = ENDS;
    if (was == WAKES)
        return 0;
    s->c->r->busy_s += dt;
    if (was == DECODES)
        return advance(s, (uint64_t)s->steps, e);
    s->c->r->steps += !s->decodes;
    if ((s->decodes && advance(s, 1, e)) || end_prompts(s, e))
        return -1;
    s->look_at = s->tick;
    return 0;
}

static int run(struct clients *c, struct sh_err *e)
{
    uint64_t turns = 0;
    for (uint32_t i = 0; i < c->a->concurrency && c->r->requests < c->a->requests; i++)
        if (send(c, i, e))
            return -1;
    for (;;) {
        struct server *s = c->server;
        for (uint32_t i = 1; i < c->n; i++)
            s = c->server[i].until < s->until ? &c->server[i] : s;
        if (isinf(s->until))
            return 0;
        if (end(s, e) || start(s, e))
            return -1;
        if (c->a->stopped && ++turns % 65536 == 0 && c->a->stopped())
            return sh_fail(e, "interrupted after %llu requests", (unsigned long long)c->r->ttft.n);
    }
}

static void open_server(struct server *s, struct clients *c, double pool)
{
    const struct sh_loop_ask *a = c->a;
    *s = (struct server){.c = c, .a = a, .slot = c->slot, .pace = &c->pace, .wait = NONE, .unseen = NONE,
                         .until = (double)INFINITY, .pool = pool, .has_prefix = a->prefix.block > 0};
    s->copies = s->has_prefix && a->ask->rule.budget != SH_BUDGET_NONE;
    if (s->has_prefix)
        sh_prefix_open(&s->prefix, &a->prefix, a->prefix.block * (double)sh_split_cache(a->ask, 0, 1).token,
                       pool * a->clock->layout.dp);
}

static void close_server(struct server *s)
{
    sh_prefix_add(&s->c->r->prefix, &s->prefix.count);
    sh_prefix_clear(&s->prefix);
    free(s->reading);
    free(s->heap.at);
}

static void close_clients(struct clients *c)
{
    for (uint32_t i = 0; i < c->a->concurrency; i++)
        sh_prefix_drop(&c->slot[i].use);
    for (uint32_t i = 0; i < c->n; i++)
        close_server(&c->server[i]);
    free(c->random.keys.at);
    free(c->pace.grid);
    free(c->slot);
    free(c->server);
}

int sh_closed_loop(const struct sh_loop_ask *a, struct sh_loop_result *out, struct sh_err *e)
{
    struct clients c = {.a = a, .r = out, .random = {.prompt = a->prompt, .output = a->output},
                        .n = a->replicas > 1 ? a->replicas : 1};
    memset(out, 0, sizeof *out);
    out->pool = a->memory - a->clock->weight_bytes / a->clock->layout.pp;
    if (!(out->pool > 0))
        return sh_fail(e, "%s: no room for the weights: each GPU lacks %.0f bytes", a->clock->shape->f.name,
                       -out->pool);
    c.pace = sh_loop_pace(a->clock, a->ask, a->draft, a->accept);
    c.requests = a->workload ? a->workload : &c.random.base;
    c.requests->block = a->prefix.block;
    if (!a->workload)
        sh_workload_random(&c.random, 1, a->requests, a->seed);
    c.slot = xcalloc(a->concurrency, sizeof *c.slot);
    c.server = xcalloc(c.n, sizeof *c.server);
    for (uint32_t i = 0; i < c.n; i++)  /* a pool of all stages, as the bytes of a sequence are    */
        open_server(&c.server[i], &c, out->pool * a->clock->layout.pp);
    int bad = run(&c, e);
    if (!bad && !out->requests)
        bad = sh_fail(e, "the workload has no requests");
    close_clients(&c);
    out->busy_s /= c.n;
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

double sh_loop_prompt_s(const struct sh_clock *c, const struct sh_capacity_ask *ask, uint64_t known, uint64_t prompt,
                        uint32_t chunk)
{
    double sum = c->constant[SH_CLOCK_request] + c->constant[SH_CLOCK_token] * (double)prompt;
    struct sh_clock_sequence from = known ? sh_clock_sequence_at(ask, known) : (struct sh_clock_sequence){0};
    for (uint64_t at = known; at < prompt; ) {
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
