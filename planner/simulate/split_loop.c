/* SPDX-License-Identifier: Apache-2.0 */
/* See split_loop.h. An event is the end of a step of prompts, of a transfer, or of decoding steps of one batch. */
#include "planner/simulate/split_loop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/simulate/loop_parts.h"
#include "src/base/mem.h"

struct request {
    double sent, ready, first;
    double sent_bytes, held;            /* of its cache: that of its prompt, and where it decodes  */
    double most, own;                   /* where its prompt is read: needed at most; held by it alone */
    uint32_t prompt, output, reader, known;     /* known: tokens of the prompt that are not read   */
    struct sh_prefix_use use;
};

struct reader {                         /* a prefill worker                                       */
    double until, link, held;           /* end of its step, INFINITY: idle; when its link is free; bytes */
    uint32_t *batch, n;                 /* places of requests                                      */
    struct sh_prefix_cache prefix;
};

struct writer {                         /* a decode worker                                        */
    double until, now, first, steps;    /* end of its steps, INFINITY: idle; their beginning, time of one, number */
    double tick, context, held;
    struct sh_loop_heap heap;           /* those that decode, by the step with their last token    */
    uint32_t *wait, head, n_wait;       /* a ring of requests whose cache has come                 */
};

struct server {
    const struct sh_split_ask *a;
    struct sh_loop_result *r;
    struct sh_workload_random random;
    struct sh_workload *requests;
    struct sh_loop_pace read, write;
    double read_pool, pool, now;        /* bytes for caches of a worker's GPU, of all ranks        */
    struct request *slot;               /* [concurrency]                                          */
    uint32_t *queue, head, n_queue;     /* a ring of prompts                                      */
    struct reader *reader;
    struct writer *writer;
    struct sh_loop_heap moving;         /* caches on links, by the time they come                  */
    int has_prefix, copies;             /* copies: what a request keeps is not what it read        */
};

/* ---- the prefix cache of a prefill worker ---- */

/* Blocks that a request holds are not its own. */
static void share(struct reader *r, struct request *q)
{
    double own = fmax(q->most - q->use.held * r->prefix.block_bytes, 0);
    r->held += own - q->own;
    q->own = own;
}

/* It needs `most` bytes from now on, and blocks no more. */
static void leave(const struct server *s, struct reader *r, struct request *q, double most)
{
    sh_prefix_release(&r->prefix, &q->use);
    q->most = most;
    share(r, q);
    if (s->has_prefix)
        sh_prefix_fit(&r->prefix, s->read_pool - r->held);
}

/* Is there room for the request, with what the cache has of it? */
static int has_place(const struct server *s, const struct reader *r, const struct request *q, struct sh_prefix_match *m)
{
    *m = (struct sh_prefix_match){0};
    if (!s->has_prefix)
        return r->held + q->most <= s->read_pool;
    *m = sh_prefix_match(&r->prefix, &q->use, q->prompt);
    double own = fmax(q->most - m->n * r->prefix.block_bytes, 0);
    return r->held + own + (r->prefix.n_held + m->fresh) * r->prefix.block_bytes <= s->read_pool;
}

/* A prompt is the worker's: the seconds for what comes from host and disk. */
static double take(struct server *s, struct reader *r, struct request *q, const struct sh_prefix_match *m)
{
    double load = 0;
    q->reader = (uint32_t)(r - s->reader);
    if (s->has_prefix) {
        load = sh_prefix_take(&r->prefix, &q->use, q->prompt, m);
        q->known = m->n * r->prefix.block;
        s->r->tokens_reused += q->known;
    }
    share(r, q);
    if (s->has_prefix)
        sh_prefix_fit(&r->prefix, s->read_pool - r->held);
    return load;
}

/* ---- the clients ---- */

static int send(struct server *s, uint32_t place, struct sh_err *e)
{
    struct sh_request q;
    const struct sh_loop_ask *a = &s->a->loop;
    const double *k = a->clock->constant;
    int got = s->r->requests < a->requests ? s->requests->next(s->requests, &q, e) : 0;
    if (got <= 0)
        return got;
    struct request *to = &s->slot[place];
    *to = (struct request){.sent = s->now, .prompt = q.prompt, .output = q.output, .use = to->use};
    to->ready = s->now + k[SH_CLOCK_request] + k[SH_CLOCK_token] * q.prompt;
    to->sent_bytes = to->most = sh_loop_at(&s->read, q.prompt).held_bytes;
    if (s->has_prefix)
        sh_prefix_name(&to->use, s->requests->key, s->requests->n_key);
    if (s->copies)
        to->most += q.prompt / s->reader->prefix.block * s->reader->prefix.block_bytes;
    to->held = sh_loop_at(&s->write, (double)q.prompt + q.output - 1).held_bytes;
    int reads = to->most > s->read_pool / s->read.clock->layout.dp;
    if (reads || to->held > s->pool / a->clock->layout.dp)
        return sh_fail(e, "%s: a request with %u + %u tokens does not fit into the cache of a GPU that %s",
                       a->clock->shape->f.name, q.prompt, q.output, reads ? "reads prompts" : "decodes");
    s->queue[(s->head + s->n_queue++) % a->concurrency] = place;
    s->r->requests++;
    s->r->tokens_in += q.prompt;
    s->r->tokens_out += q.output;
    return 0;
}

static int finish(struct server *s, uint32_t place, struct sh_err *e)
{
    const struct request *q = &s->slot[place];
    sh_loop_answered(&s->a->loop, q->first - q->sent, s->now - q->first, q->output, s->r);
    s->r->seconds = s->now;
    return send(s, place, e);
}

/* ---- prompts ---- */

/* What attention has cost up to a token of a prompt. */
static struct sh_clock_sequence so_far(struct server *s, uint32_t tokens)
{
    return tokens ? sh_loop_at(&s->read, tokens) : (struct sh_clock_sequence){0};
}

/* Bytes that are read and written for the copy of what a request keeps. */
static double copy_bytes(const struct server *s, const struct request *q)
{
    return s->copies ? 2 * q->sent_bytes : 0;
}

/* A prompt by itself, in steps of `chunk` tokens. */
static double long_prompt_s(struct server *s, const struct request *q)
{
    double sum = 0;
    uint32_t prompt = q->prompt;
    struct sh_clock_sequence from = so_far(s, q->known);
    for (uint32_t at = q->known, n; at < prompt; at += n) {
        n = prompt - at < s->a->loop.chunk ? prompt - at : s->a->loop.chunk;
        struct sh_clock_sequence to = so_far(s, at + n);
        sum += sh_clock_step(s->read.clock, &(struct sh_clock_work){
            .prompt_tokens = n, .prompts = 1, .logits = at + n == prompt, .all_tokens = n, .all_sequences = 1,
            .cache_bytes = from.cache_bytes + (at + n == prompt ? copy_bytes(s, q) : 0),
            .prompt_flops = to.prompt_flops - from.prompt_flops}, NULL);
        from = to;
    }
    return sum;
}

/* The ranks of a worker share the prompts of a step, each of which is on one. */
static double prompts_s(struct server *s, const struct reader *r, double tokens)
{
    double by = 1 / fmax(fmin(s->read.clock->layout.dp, r->n), 1);
    struct sh_clock_work w = {.prompt_tokens = tokens * by, .prompts = r->n, .logits = r->n * by, .all_tokens = tokens,
                              .all_sequences = r->n};
    for (uint32_t i = 0; i < r->n; i++) {
        const struct request *q = &s->slot[r->batch[i]];
        struct sh_clock_sequence from = so_far(s, q->known);
        w.prompt_flops += (so_far(s, q->prompt).prompt_flops - from.prompt_flops) * by;
        w.cache_bytes += (from.cache_bytes + copy_bytes(s, q)) * by;
    }
    return sh_clock_step(s->read.clock, &w, NULL);
}

static void start_reading(struct server *s, struct reader *r)
{
    double tokens = 0, load = 0, most = (double)s->a->loop.chunk * s->read.clock->layout.dp;
    while (s->n_queue) {
        uint32_t place = s->queue[s->head];
        struct request *q = &s->slot[place];
        struct sh_prefix_match m;
        if (q->ready > s->now || !has_place(s, r, q, &m))
            break;
        double left = q->prompt - m.n * r->prefix.block;
        if (r->n && tokens + left > most)
            break;
        load += take(s, r, q, &m);
        r->batch[r->n++] = place;
        tokens += left;
        s->head = (s->head + 1) % s->a->loop.concurrency;
        s->n_queue--;
    }
    if (r->n)
        r->until = s->now + load + (r->n == 1 && tokens > s->a->loop.chunk ? long_prompt_s(s, &s->slot[r->batch[0]])
                                                                           : prompts_s(s, r, tokens));
}

static int end_reading(struct server *s, struct reader *r, struct sh_err *e)
{
    int bad = 0;
    for (uint32_t i = 0; i < r->n && !bad; i++) {
        struct request *q = &s->slot[r->batch[i]];
        q->first = s->now;
        if (s->has_prefix)
            sh_prefix_reach(&r->prefix, &q->use, q->prompt);
        share(r, q);
        if (s->copies)
            leave(s, r, q, q->sent_bytes);
        if (q->output == 1) {
            leave(s, r, q, 0);
            bad = finish(s, r->batch[i], e);
            continue;
        }
        r->link = fmax(r->link, s->now) + q->sent_bytes / s->a->transfer;
        sh_loop_push(&s->moving, r->link, r->batch[i]);
    }
    r->n = 0;
    r->until = (double)INFINITY;
    return bad;
}

/* ---- answers ---- */

static int has_room(const struct server *s, const struct writer *w)
{
    return w->n_wait && w->heap.n < s->a->loop.sequences && w->held + s->slot[w->wait[w->head]].held <= s->pool;
}

/* When so many of a worker's steps are over. */
static double after(struct server *s, const struct writer *w, double steps)
{
    return w->now + sh_loop_stretch_s(&s->write, w->heap.n, w->context / w->heap.n, steps, w->first);
}

/* Admits, and plans the steps up to the first answer's end. */
static void start_writing(struct server *s, struct writer *w)
{
    while (has_room(s, w)) {
        uint32_t place = w->wait[w->head];
        const struct request *q = &s->slot[place];
        sh_loop_push(&w->heap, w->tick + sh_loop_steps(&s->write, q->output), place);
        w->context += q->prompt + 1;
        w->held += q->held;
        w->head = (w->head + 1) % s->a->loop.concurrency;
        w->n_wait--;
    }
    w->now = s->now;
    w->until = (double)INFINITY;
    if (!w->heap.n)
        return;
    s->r->most_running = w->heap.n > s->r->most_running ? w->heap.n : s->r->most_running;
    w->first = sh_loop_batch_s(&s->write, w->heap.n, w->context / w->heap.n);
    w->steps = w->heap.at[0].key - w->tick;
    w->until = after(s, w, w->steps);
}

static int end_writing(struct server *s, struct writer *w, struct sh_err *e)
{
    s->r->busy_s += (s->now - w->now) / s->a->n_decode;
    s->r->steps += (uint64_t)w->steps;
    w->tick += w->steps;
    w->context += w->steps * w->heap.n * s->write.gained;
    while (w->heap.n && w->heap.at[0].key <= w->tick) {
        uint32_t place = sh_loop_pop(&w->heap);
        const struct request *q = &s->slot[place];
        w->context -= (double)q->prompt + 1 + sh_loop_steps(&s->write, q->output) * s->write.gained;
        w->held -= q->held;
        if (finish(s, place, e))
            return -1;
    }
    start_writing(s, w);
    return 0;
}

/* Ends the steps of a worker at the first boundary from now on. Steps get longer, so the first guess is too late. */
static void cut(struct server *s, struct writer *w)
{
    double steps = fmin(fmax(ceil((s->now - w->now) / w->first), 1), w->steps);
    while (steps > 1 && after(s, w, steps - 1) >= s->now)
        steps--;
    if (steps < w->steps) {
        w->steps = steps;
        w->until = fmax(after(s, w, steps), s->now);
    }
}

/* A cache has come. A worker that has room for it ends its steps at the next boundary. */
static void arrive(struct server *s)
{
    uint32_t place = sh_loop_pop(&s->moving);
    struct writer *w = s->writer;
    leave(s, &s->reader[s->slot[place].reader], &s->slot[place], 0);
    for (uint32_t i = 1; i < s->a->n_decode; i++)
        if (s->writer[i].heap.n + s->writer[i].n_wait < w->heap.n + w->n_wait)
            w = &s->writer[i];
    w->wait[(w->head + w->n_wait++) % s->a->loop.concurrency] = place;
    if (isinf(w->until)) {
        start_writing(s, w);
        return;
    }
    if (has_room(s, w))
        cut(s, w);
}

/* ---- events ---- */

/* The earliest one happens; 0: there is none. */
static int happen(struct server *s, struct sh_err *e)
{
    struct reader *r = NULL;
    struct writer *w = NULL;
    double at = (double)INFINITY, wake = (double)INFINITY;
    for (uint32_t i = 0; i < s->a->n_prefill; i++) {
        struct reader *x = &s->reader[i];
        if (isinf(x->until) && s->n_queue && s->slot[s->queue[s->head]].ready > s->now)
            wake = s->slot[s->queue[s->head]].ready;
        if (x->until < at) {
            at = x->until;
            r = x;
        }
    }
    int is_move = s->moving.n && s->moving.at[0].key < at;
    at = is_move ? s->moving.at[0].key : at;
    for (uint32_t i = 0; i < s->a->n_decode; i++)
        if (s->writer[i].until < at) {
            at = s->writer[i].until;
            w = &s->writer[i];
        }
    if (isinf(fmin(at, wake)))
        return 0;
    s->now = fmin(at, wake);
    if (wake < at)
        return 1;
    if (w ? end_writing(s, w, e) : is_move ? (arrive(s), 0) : end_reading(s, r, e))
        return -1;
    return 1;
}

static int run(struct server *s, struct sh_err *e)
{
    const struct sh_loop_ask *a = &s->a->loop;
    uint64_t turns = 0;
    int more = 1;
    for (uint32_t i = 0; i < a->concurrency && s->r->requests < a->requests; i++)
        if (send(s, i, e))
            return -1;
    while (more > 0) {
        for (uint32_t i = 0; i < s->a->n_prefill; i++)
            if (isinf(s->reader[i].until))
                start_reading(s, &s->reader[i]);
        more = happen(s, e);
        if (a->stopped && ++turns % 65536 == 0 && a->stopped())
            return sh_fail(e, "interrupted after %llu requests", (unsigned long long)s->r->ttft.n);
    }
    if (!more && s->r->ttft.n != s->r->requests)
        return sh_fail(e, "the simulation makes no progress at %g s", s->now);
    return more ? -1 : s->r->requests ? 0 : sh_fail(e, "the workload has no requests");
}

static void open_workers(struct server *s)
{
    const struct sh_split_ask *a = s->a;
    uint32_t clients = a->loop.concurrency;
    double block_bytes = a->loop.prefix.block * (double)sh_split_cache(a->prefill_ask, 0, 1).token;
    s->slot = xcalloc(clients, sizeof *s->slot);
    s->queue = xcalloc(clients, sizeof *s->queue);
    s->reader = xcalloc(a->n_prefill, sizeof *s->reader);
    s->writer = xcalloc(a->n_decode, sizeof *s->writer);
    for (uint32_t i = 0; i < a->n_prefill; i++) {
        s->reader[i].batch = xcalloc(clients, sizeof *s->reader[i].batch);
        s->reader[i].until = (double)INFINITY;
        if (s->has_prefix)
            sh_prefix_open(&s->reader[i].prefix, &a->loop.prefix, block_bytes, s->read_pool);
    }
    for (uint32_t i = 0; i < a->n_decode; i++) {
        s->writer[i].wait = xcalloc(clients, sizeof *s->writer[i].wait);
        s->writer[i].until = (double)INFINITY;
    }
}

static void close_workers(struct server *s)
{
    for (uint32_t i = 0; i < s->a->loop.concurrency; i++)
        sh_prefix_drop(&s->slot[i].use);
    for (uint32_t i = 0; i < s->a->n_prefill; i++) {
        sh_prefix_add(&s->r->prefix, &s->reader[i].prefix.count);
        sh_prefix_clear(&s->reader[i].prefix);
        free(s->reader[i].batch);
    }
    for (uint32_t i = 0; i < s->a->n_decode; i++) {
        free(s->writer[i].wait);
        free(s->writer[i].heap.at);
    }
    free(s->random.keys.at);
    free(s->reader);
    free(s->writer);
    free(s->slot);
    free(s->queue);
    free(s->moving.at);
    free(s->read.grid);
    free(s->write.grid);
}

int sh_split_loop(const struct sh_split_ask *a, struct sh_loop_result *out, struct sh_err *e)
{
    const struct sh_loop_ask *l = &a->loop;
    struct server s = {.a = a, .r = out, .random = {.prompt = l->prompt, .output = l->output}};
    memset(out, 0, sizeof *out);
    out->pool = l->memory - l->clock->weight_bytes;
    s.pool = out->pool * l->clock->layout.dp;
    s.read_pool = (l->memory - a->prefill->weight_bytes) * a->prefill->layout.dp;
    if (!(s.pool > 0) || !(s.read_pool > 0))
        return sh_fail(e, "%s: no room for the weights on the GPUs that %s", l->clock->shape->f.name,
                       s.pool > 0 ? "read prompts" : "decode");
    s.requests = l->workload ? l->workload : &s.random.base;
    s.requests->block = l->prefix.block;
    s.has_prefix = l->prefix.block > 0;
    s.copies = s.has_prefix && a->prefill_ask->rule.budget != SH_BUDGET_NONE;
    if (!l->workload)
        sh_workload_random(&s.random, 1, l->requests, l->seed);
    s.read = sh_loop_pace(a->prefill, a->prefill_ask, 0, 0);
    s.write = sh_loop_pace(l->clock, l->ask, l->draft, l->accept);
    open_workers(&s);
    int bad = run(&s, e);
    close_workers(&s);
    return bad;
}
