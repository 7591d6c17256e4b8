/* SPDX-License-Identifier: Apache-2.0 */
/* See closed_loop.h. */
#include "planner/simulate/closed_loop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

enum { GRID = 64 };                     /* tokens between lengths at which attention is computed; linear in between */

struct request {
    double sent, ready, first;
    double held;                        /* bytes of the cache that are kept for it                 */
    uint64_t end;                       /* the decoding step with its last token                   */
    uint32_t prompt, output, read;      /* read: tokens of the prompt                             */
};

struct server {
    const struct sh_loop_ask *a;
    struct sh_loop_result *r;
    struct sh_workload_random requests;
    struct sh_clock_sequence *grid;     /* at multiples of GRID tokens; held_bytes below 0: not yet  */
    size_t n_grid;
    struct request *slot;               /* [concurrency]                                          */
    uint32_t *wait, *reading, *heap;    /* places of slot; wait: a ring; reading: oldest first; heap: decoding,
                                         * the first to end on top                                 */
    uint32_t head, n_wait, n_seen, n_reading, n_heap;   /* n_seen: of n_wait, those the scheduler knows */
    double now, held, pool, context;    /* context: tokens of all that decode                      */
    uint64_t tick, look_at;             /* decoding steps so far; when it looks for requests again  */
};

/* ---- what attention costs at a length ---- */

static const struct sh_clock_sequence *node(struct server *s, size_t i)
{
    if (i >= s->n_grid) {
        size_t n = s->n_grid ? s->n_grid : 64;
        while (n <= i)
            n *= 2;
        s->grid = xreallocarray(s->grid, n, sizeof *s->grid);
        for (size_t k = s->n_grid; k < n; k++)
            s->grid[k].held_bytes = -1;
        s->n_grid = n;
    }
    if (s->grid[i].held_bytes < 0)
        s->grid[i] = sh_clock_sequence_at(s->a->ask, i ? i * GRID : 1);
    return &s->grid[i];
}

/* A prompt's pairs grow with the square of its length, so those of one token are what is linear. */
static struct sh_clock_sequence at(struct server *s, double length)
{
    size_t i = (size_t)(length / GRID);
    struct sh_clock_sequence high = *node(s, i + 1), low = *node(s, i);
    double u = length / GRID - (double)i, v = 1 - u, pairs = v * low.prompt_flops / (double)(i ? i * GRID : 1) +
                                                             u * high.prompt_flops / (double)((i + 1) * GRID);
    return (struct sh_clock_sequence){
        v * low.cache_bytes + u * high.cache_bytes, high.state_bytes, v * low.decode_flops + u * high.decode_flops,
        length * pairs, v * low.held_bytes + u * high.held_bytes};
}

/* ---- the heap of those that decode ---- */

static uint64_t end_of(const struct server *s, uint32_t i)
{
    return s->slot[s->heap[i]].end;
}

static void swap(struct server *s, uint32_t i, uint32_t k)
{
    uint32_t x = s->heap[i];
    s->heap[i] = s->heap[k];
    s->heap[k] = x;
}

static void push(struct server *s, uint32_t slot)
{
    uint32_t i = s->n_heap++;
    s->heap[i] = slot;
    for (; i && end_of(s, i) < end_of(s, (i - 1) / 2); i = (i - 1) / 2)
        swap(s, i, (i - 1) / 2);
}

static uint32_t pop(struct server *s)
{
    uint32_t top = s->heap[0], i = 0;
    s->heap[0] = s->heap[--s->n_heap];
    for (;;) {
        uint32_t least = i;
        for (uint32_t k = 2 * i + 1; k <= 2 * i + 2 && k < s->n_heap; k++)
            least = end_of(s, k) < end_of(s, least) ? k : least;
        if (least == i)
            return top;
        swap(s, i, least);
        i = least;
    }
}

/* ---- the clients ---- */

static int send(struct server *s, uint32_t slot, struct sh_err *e)
{
    struct sh_request q;
    const double *k = s->a->clock->constant;
    int got = s->requests.base.next(&s->requests.base, &q, e);
    if (got <= 0)
        return got;
    struct request *to = &s->slot[slot];
    *to = (struct request){.sent = s->now, .prompt = q.prompt, .output = q.output};
    to->ready = s->now + k[SH_CLOCK_request] + k[SH_CLOCK_token] * q.prompt;
    to->held = at(s, (double)q.prompt + q.output - 1).held_bytes;
    if (to->held > s->pool)
        return sh_fail(e, "%s: a request of %u and %u tokens takes %.2f GiB of each GPU's cache, which has %.2f",
                       s->a->clock->shape->f.name, q.prompt, q.output, to->held / 0x1p30, s->pool / 0x1p30);
    s->wait[(s->head + s->n_wait++) % s->a->concurrency] = slot;
    s->r->requests++;
    s->r->tokens_in += q.prompt;
    s->r->tokens_out += q.output;
    return 0;
}

static int finish(struct server *s, uint32_t slot, struct sh_err *e)
{
    const struct request *q = &s->slot[slot];
    sh_quantile_add(&s->r->ttft, q->first - q->sent);
    if (q->output > 1)
        sh_quantile_add(&s->r->tpot, (s->now - q->first) / (q->output - 1));
    s->held -= q->held;
    s->r->seconds = s->now;
    return send(s, slot, e);
}

/* ---- steps ---- */

static double ranks(const struct server *s)
{
    return s->a->clock->layout.dp;
}

static uint32_t running(const struct server *s)
{
    return s->n_heap + s->n_reading;
}

/* Decoding of `batch` sequences of all ranks. */
static void decode_work(const struct sh_clock *c, const struct sh_clock_sequence *q, double batch,
                        struct sh_clock_work *w)
{
    double here = ceil(batch / c->layout.dp);
    w->decoding = here;
    w->logits += here;
    w->all_tokens += batch;
    w->all_sequences += here;
    w->cache_bytes += here * q->cache_bytes;
    w->state_bytes += here * q->state_bytes;
    w->decode_flops += here * q->decode_flops;
}

static void scale(struct sh_clock_work *w, double by)
{
    double *const part[] = {&w->decoding, &w->prompt_tokens, &w->logits, &w->all_tokens, &w->cache_bytes,
                            &w->state_bytes, &w->decode_flops, &w->prompt_flops};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        *part[i] *= by;
}

/* A pipeline passes parts of the batch, no smaller than a sequence, at once. */
static double seconds(const struct sh_clock *c, struct sh_clock_work w, double batch)
{
    if (c->layout.pp > 1 && batch > 0)
        scale(&w, fmax(1.0 / c->layout.pp, 1 / batch));
    return sh_clock_step(c, &w, NULL);
}

static double decode_s(struct server *s, double further)
{
    struct sh_clock_work w = {0};
    struct sh_clock_sequence q = at(s, s->context / s->n_heap + further);
    decode_work(s->a->clock, &q, s->n_heap, &w);
    return seconds(s->a->clock, w, s->n_heap);
}

/* All that decode have `n` more tokens; those that are done go. */
static int advance(struct server *s, uint64_t n, struct sh_err *e)
{
    s->tick += n;
    s->context += (double)n * s->n_heap;
    s->r->steps += n;
    while (s->n_heap && end_of(s, 0) <= s->tick) {
        uint32_t slot = pop(s);
        s->context -= (double)s->slot[slot].prompt + s->slot[slot].output;
        if (finish(s, slot, e))
            return -1;
    }
    return 0;
}

/* What the scheduler may take: it knows of requests that have come, if it has looked since. */
static void look(struct server *s)
{
    if (s->n_heap && s->tick < s->look_at)
        return;
    s->look_at = s->tick + s->a->poll;
    while (s->n_seen < s->n_wait && s->slot[s->wait[(s->head + s->n_seen) % s->a->concurrency]].ready <= s->now)
        s->n_seen++;
}

static int has_room(const struct server *s)
{
    return s->n_seen && running(s) < s->a->sequences &&
           s->held + s->slot[s->wait[s->head]].held <= s->pool * ranks(s);
}

/* One prompt's part of a step: tokens, and what attention costs. */
static void read_part(struct server *s, struct request *q, uint32_t n, struct sh_clock_work *w)
{
    struct sh_clock_sequence from = at(s, q->read), to = at(s, q->read + n);
    w->prompt_flops += to.prompt_flops - (q->read ? from.prompt_flops : 0);
    w->cache_bytes += q->read ? from.cache_bytes : 0;
    w->prompt_tokens += n;
    w->prompts++;
    w->all_tokens += n;
    q->read += n;
    w->logits += q->read == q->prompt;
}

/* Prompts of the next step: those that are being read, then new ones. */
static void take_prompts(struct server *s, double room, struct sh_clock_work *w)
{
    int whole = s->a->scheduler == SH_SCHED_TRTLLM;
    for (uint32_t i = 0; ; i++) {
        if (i == s->n_reading) {
            if (!has_room(s))
                return;
            uint32_t next = s->slot[s->wait[s->head]].prompt;
            if (whole && next <= s->a->chunk && next > room)
                return;
            s->reading[s->n_reading++] = s->wait[s->head];
            s->held += s->slot[s->wait[s->head]].held;
            s->head = (s->head + 1) % s->a->concurrency;
            s->n_wait--;
            s->n_seen--;
        }
        struct request *q = &s->slot[s->reading[i]];
        double n = fmin(q->prompt - q->read, room);
        if (n < 1) {
            if (!q->read) {             /* it was only just taken */
                s->head = (s->head + s->a->concurrency - 1) % s->a->concurrency;
                s->wait[s->head] = s->reading[--s->n_reading];
                s->held -= q->held;
                s->n_wait++;
                s->n_seen++;
            }
            return;
        }
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
        if (q->read < q->prompt) {
            s->reading[kept++] = slot;
            continue;
        }
        q->first = s->now;
        q->end = s->tick + q->output - 1;
        if (q->output > 1) {
            s->context += q->prompt + 1;
            push(s, slot);
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
    int decodes = s->a->scheduler != SH_SCHED_SGLANG && s->n_heap;
    take_prompts(s, s->a->chunk * ranks(s) - (decodes ? s->n_heap : 0), &w);
    *done = w.prompt_tokens > 0;
    if (!*done)
        return 0;
    share_prompts(s, &w);
    double batch = w.prompts + (decodes ? s->n_heap : 0);
    w.all_sequences = w.prompts;
    if (decodes) {
        struct sh_clock_sequence q = at(s, s->context / s->n_heap);
        decode_work(s->a->clock, &q, s->n_heap, &w);
    }
    double dt = seconds(s->a->clock, w, batch);
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
    double first = decode_s(s, 0), n = (double)(end_of(s, 0) - s->tick);
    if (s->n_wait > s->n_seen) {        /* somebody is to be looked for */
        double ready = s->slot[s->wait[(s->head + s->n_seen) % s->a->concurrency]].ready;
        double looks = (double)s->look_at - (double)s->tick;
        n = fmin(n, fmax(fmax(looks, ceil((ready - s->now) / first)), 1));
    }
    double last = n > 1 ? decode_s(s, n - 1) : first, middle = n > 2 ? decode_s(s, (n - 1) / 2) : (first + last) / 2;
    double dt = n * (first + 4 * middle + last) / 6;
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
        if (!done && !s->n_heap)
            return sh_fail(e, "the simulation makes no progress at %g s", s->now);
        if (!done && decode_steps(s, e))
            return -1;
        if (s->a->stopped && ++turns % 65536 == 0 && s->a->stopped())
            return sh_fail(e, "interrupted after %llu requests", (unsigned long long)s->r->ttft.n);
    }
    return 0;
}

int sh_closed_loop(const struct sh_loop_ask *a, struct sh_loop_result *out, struct sh_err *e)
{
    struct server s = {.a = a, .r = out, .requests = {.prompt = a->prompt, .output = a->output}};
    memset(out, 0, sizeof *out);
    s.pool = out->pool = a->memory - a->clock->weight_bytes / a->clock->layout.pp;
    if (!(s.pool > 0))
        return sh_fail(e, "%s: no room for the weights, %.0f bytes of each GPU are missing", a->clock->shape->f.name,
                       -s.pool);
    sh_workload_random(&s.requests, 1, a->requests, a->seed);
    s.pool *= a->clock->layout.pp;      /* of all stages, as the bytes of a sequence are          */
    s.slot = xcalloc(a->concurrency, sizeof *s.slot);
    s.wait = xcalloc(a->concurrency, sizeof *s.wait);
    s.reading = xcalloc(a->concurrency, sizeof *s.reading);
    s.heap = xcalloc(a->concurrency, sizeof *s.heap);
    int bad = run(&s, e);
    free(s.grid);
    free(s.slot);
    free(s.wait);
    free(s.reading);
    free(s.heap);
    return bad;
}

/* ---- without a loop ---- */

double sh_loop_decode_s(const struct sh_clock *c, const struct sh_capacity_ask *ask, double batch, uint64_t context,
                        double term[SH_N_TERM])
{
    struct sh_clock_sequence q = sh_clock_sequence_at(ask, context);
    struct sh_clock_work w = {0};
    decode_work(c, &q, batch, &w);
    if (c->layout.pp > 1)
        scale(&w, fmax(1.0 / c->layout.pp, 1 / batch));
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
