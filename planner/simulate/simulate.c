/* SPDX-License-Identifier: Apache-2.0 */
/* See simulate.h. */
#include "planner/simulate/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

struct sequence {
    uint32_t prompt, output;
    uint32_t made, stored, now;         /* output tokens, tokens in the cache, tokens of this step */
    uint32_t preemptions;
    uint64_t held, number;              /* bytes                                                  */
    double arrival, admitted, first;
    struct sh_prefix_use use;           /* owned                                                  */
};

/* What goes on; requests that have arrived stay in the workload until their turn, so that a long queue takes no
 * memory. */
struct server {
    const struct sh_sim_ask *a;
    struct sh_sim_cost *c;
    struct sh_workload *w;
    struct sh_sim_result *r;
    struct sequence *running, *waiting; /* waiting: preempted, the next one last                  */
    size_t n_running, n_waiting, room_running, room_waiting;
    struct sequence next;               /* of the workload                                        */
    int has_next;
    uint64_t used;                      /* bytes that sequences have by themselves                 */
    double now, running_time, used_time;
    int has_prefix;
    struct sh_prefix_cache prefix;
    struct sh_prefix_use spare;         /* arrays of a sequence that is over                       */
    double load;                        /* seconds of this step to load blocks                     */
    struct lane *lane;                  /* the workload as well, of one of several replicas; else NULL */
    int is_started;
    size_t n_ended;                     /* sequences that the last step ended                     */
};

/* The requests that a router gave to a replica and that wait for their turn. */
struct lane {
    struct sh_workload base;
    struct routed { struct sh_request request; uint64_t number, *key; uint32_t n_key; } *at;     /* a ring */
    size_t first, n, room;
    uint64_t number, *key;              /* of the request that next gave                           */
};

static uint32_t count(const struct sh_sim_ask *a)
{
    return a->replicas > 1 ? a->replicas : 1;
}

static void tell(const struct server *s, const struct sequence *q, double end, int is_refused)
{
    if (!s->a->done)
        return;
    struct sh_sim_done d = {{q->arrival, q->prompt, q->output}, q->number, is_refused ? (double)NAN : q->admitted,
                            is_refused ? (double)NAN : q->first, is_refused ? (double)NAN : end, q->preemptions,
                            is_refused};
    s->a->done(s->a->to, &d);
}

/* ---- the prefix cache ---- */

static uint64_t block_bytes(const struct server *s, uint32_t blocks)
{
    return (uint64_t)((double)blocks * s->prefix.block_bytes);
}

/* Of these bytes, those that a sequence has by itself. */
static uint64_t own(const struct server *s, const struct sequence *q, uint64_t bytes)
{
    uint64_t shared = block_bytes(s, q->use.held);
    return bytes > shared ? bytes - shared : 0;
}

/* Bytes that sequences may have by themselves, with the blocks that they hold and `more`. */
static uint64_t pool(const struct server *s, uint32_t more)
{
    uint64_t shared = block_bytes(s, s->prefix.n_held + more);
    return s->c->pool > shared ? s->c->pool - shared : 0;
}

static void fit(struct server *s)
{
    if (s->has_prefix)
        sh_prefix_fit(&s->prefix, (double)(s->c->pool - s->used));
}

/* A sequence that is over: it gives back its blocks and its arrays. */
static void leave(struct server *s, struct sequence *q)
{
    if (!s->has_prefix)
        return;
    sh_prefix_release(&s->prefix, &q->use);
    sh_prefix_drop(&s->spare);
    s->spare = q->use;
    q->use = (struct sh_prefix_use){0};
}

/* Does what it keeps become a copy when its prompt is whole? */
static int compresses(const struct server *s, const struct sequence *q)
{
    return s->has_prefix && s->c->size[q->prompt].kept < s->c->size[q->prompt].whole;
}

/* The next request that can ever fit. */
static int pull(struct server *s, struct sh_err *e)
{
    struct sh_request q;
    for (;;) {
        int got = s->w->next(s->w, &q, e);
        s->has_next = got > 0;
        if (got <= 0)
            return got;
        sh_sim_cost_reach(s->c, q.prompt + q.output);
        s->next = (struct sequence){.prompt = q.prompt, .output = q.output,
                                    .number = s->lane ? s->lane->number : s->r->requests++,
                                    .arrival = q.arrival_s / s->a->speed, .first = -1, .admitted = -1};
        s->r->last_arrival_s = fmax(s->r->last_arrival_s, s->next.arrival);
        if (!s->is_started)
            s->now = s->next.arrival;
        if (!s->is_started && s->r->requests == 1)
            s->r->start_s = s->r->end_s = s->next.arrival;
        s->is_started = 1;
        if (s->has_prefix) {
            s->next.use = s->spare;
            s->spare = (struct sh_prefix_use){0};
            sh_prefix_name(&s->next.use, s->w->key, s->w->n_key);
        }
        uint32_t total = q.prompt + q.output - 1;
        if (sh_sim_peak(s->c, s->a->evict, q.prompt, total, s->a->step_tokens) <= s->c->pool)
            return 0;
        s->r->refused++;
        tell(s, &s->next, 0, 1);
        leave(s, &s->next);
    }
}

static uint32_t chunk(const struct sequence *q, uint32_t room)
{
    uint32_t n = q->prompt + q->made - q->stored;
    if (q->stored < q->prompt && n > q->prompt - q->stored)
        n = q->prompt - q->stored;
    return n < room ? n : room;
}

static uint64_t need(const struct server *s, const struct sequence *q, uint32_t n)
{
    if (s->a->memory == SH_SIM_SLOTS)
        return sh_sim_peak(s->c, s->a->evict, q->prompt, q->prompt + q->output - 1, s->a->step_tokens);
    return sh_sim_need(s->c, s->a->evict, q->stored, q->stored + n, q->prompt);
}

static void append(struct sequence **list, size_t *n, size_t *room, const struct sequence *q)
{
    if (*n == *room) {
        *room = *room ? 2 * *room : 64;
        *list = xreallocarray(*list, *room, sizeof **list);
    }
    (*list)[(*n)++] = *q;
}

static void preempt_last(struct server *s)
{
    struct sequence *q = &s->running[--s->n_running];
    sh_prefix_release(&s->prefix, &q->use);
    s->used -= q->held;
    s->r->tokens_recomputed += q->stored;
    s->r->preemptions++;
    q->preemptions++;
    q->held = 0;
    q->stored = q->now = 0;
    append(&s->waiting, &s->n_waiting, &s->room_waiting, q);
}

/* Tokens for those that run; what is left of the step. *preempted: a sequence was preempted. */
static uint32_t serve_running(struct server *s, int *preempted)
{
    uint32_t room = s->a->step_tokens;
    for (size_t i = 0; i < s->n_running; i++) {
        uint32_t n = chunk(&s->running[i], room);
        uint64_t bytes = n ? own(s, &s->running[i], need(s, &s->running[i], n)) : 0;
        s->running[i].now = n;
        if (!n)
            continue;
        while (i < s->n_running && s->used - s->running[i].held + bytes > pool(s, 0)) {
            preempt_last(s);
            *preempted = 1;
        }
        if (i >= s->n_running)
            break;                      /* it was the last itself */
        s->used += bytes - s->running[i].held;
        s->running[i].held = bytes;
        room -= n;
    }
    return room;
}

/* The tokens of a sequence's first step, and the bytes that it then has by itself: *bytes. 0: there is no room. It has
 * taken what the prefix cache has of it. */
static uint32_t begin(struct server *s, struct sequence *q, uint32_t room, uint64_t *bytes)
{
    struct sh_prefix_match m = {0};
    if (s->has_prefix)
        m = sh_prefix_match(&s->prefix, &q->use, q->prompt);
    q->stored = m.n * s->prefix.block;
    uint32_t n = chunk(q, room);
    uint64_t all = need(s, q, n), shared = block_bytes(s, m.n);
    *bytes = all > shared ? all - shared : 0;
    if (s->used + *bytes > pool(s, m.fresh)) {
        q->stored = 0;
        return 0;
    }
    if (s->has_prefix)
        s->load += sh_prefix_take(&s->prefix, &q->use, q->prompt, &m);
    s->r->tokens_reused += q->stored;
    return n;
}

static int admit(struct server *s, uint32_t room, struct sh_err *e)
{
    while (room && s->n_running < s->a->max_running) {
        int again = s->n_waiting > 0;
        struct sequence *q = again ? &s->waiting[s->n_waiting - 1] : &s->next;
        uint64_t bytes;
        if (!again && (!s->has_next || s->next.arrival > s->now))
            return 0;
        uint32_t n = begin(s, q, room, &bytes);
        if (!n)
            return 0;
        q->now = n;
        q->held = bytes;
        if (!again)
            q->admitted = s->now;
        s->used += bytes;
        room -= n;
        append(&s->running, &s->n_running, &s->room_running, q);
        q->use = (struct sh_prefix_use){0};             /* the running sequence has it */
        if (again)
            s->n_waiting--;
        else if (pull(s, e))
            return -1;
    }
    return 0;
}

static void finish(struct server *s, const struct sequence *q)
{
    struct sh_sim_result *r = s->r;
    double ttft = q->first - q->arrival;
    double tpot = q->output > 1 ? (s->now - q->first) / (q->output - 1) : 0;
    r->finished++;
    r->tokens_in += q->prompt;
    r->tokens_out += q->output;
    r->good += ttft <= s->a->slo_ttft_s && tpot <= s->a->slo_tpot_s;
    sh_quantile_add(&r->ttft, ttft);
    if (q->output > 1)
        sh_quantile_add(&r->tpot, tpot);
    sh_quantile_add(&r->latency, s->now - q->arrival);
    sh_quantile_add(&r->queue, q->admitted - q->arrival);
    r->end_s = fmax(r->end_s, s->now);
    tell(s, q, s->now, 0);
}

/* The step's end: tokens are stored, answers grow, what is done goes. */
static void settle(struct server *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n_running; i++) {
        struct sequence *q = &s->running[i];
        int spoke = q->now && q->stored + q->now == q->prompt + q->made;
        q->stored += q->now;
        s->r->tokens_fed += q->now;
        q->now = 0;
        if (spoke && !q->made++)
            q->first = s->now;
        int copies = s->has_prefix && compresses(s, q);
        if (s->has_prefix && (!copies || q->stored <= q->prompt))
            sh_prefix_reach(&s->prefix, &q->use, q->stored);
        if (q->made == q->output) {
            s->used -= q->held;
            finish(s, q);
            leave(s, q);
            continue;
        }
        if (copies && q->stored >= q->prompt)
            sh_prefix_release(&s->prefix, &q->use);
        if (s->a->memory == SH_SIM_PAGED) {
            uint64_t rest = own(s, q, sh_sim_rest(s->c, s->a->evict, q->stored, q->prompt));
            s->used = s->used - q->held + rest;
            q->held = rest;
        }
        if (kept != i)
            s->running[kept] = *q;
        kept++;
    }
    s->n_ended = s->n_running - kept;
    s->n_running = kept;
}

static void advance(struct server *s)
{
    struct sh_step_work w = {0};
    for (size_t i = 0; i < s->n_running; i++) {
        const struct sequence *q = &s->running[i];
        if (!q->now)
            continue;
        w.tokens += q->now;
        w.logits += q->stored + q->now == q->prompt + q->made;
        sh_sim_work(s->c, s->a->evict, q->stored, q->stored + q->now, q->prompt, &w);
        if (compresses(s, q) && q->stored < q->prompt && q->stored + q->now == q->prompt)
            w.cache_bytes += 2.0 * (double)s->c->size[q->prompt].kept;
    }
    uint64_t held = s->used + block_bytes(s, s->prefix.n_held);
    double dt = sh_sim_seconds(s->c, &w) + s->load, share = (double)held / (double)(s->c->pool ? s->c->pool : 1);
    s->load = 0;
    double from = s->now - s->r->start_s;
    s->r->steps++;
    s->r->busy_s += dt;
    s->running_time += dt * (double)s->n_running;
    s->used_time += dt * share;
    s->r->occupancy_peak = fmax(s->r->occupancy_peak, share);
    s->r->largest_batch = s->n_running > s->r->largest_batch ? s->n_running : s->r->largest_batch;
    s->now += dt;
    if (!s->lane)
        sh_timeline_add(&s->r->occupancy, from, s->now - s->r->start_s, share);
}

/* Steps that begin before `until`. */
static int run(struct server *s, double until, struct sh_err *e)
{
    while ((s->n_running || s->n_waiting || s->has_next) && s->now < until) {
        int preempted = 0;
        if (!s->n_running && !s->n_waiting && s->next.arrival > s->now)
            s->now = s->next.arrival;
        uint32_t room = serve_running(s, &preempted);
        if (!preempted && admit(s, room, e))
            return -1;
        if (!s->n_running)
            return sh_fail(e, "the simulation makes no progress at %g s", s->now);
        fit(s);
        advance(s);
        settle(s);
        fit(s);
        if (s->a->stopped && s->r->steps % 1024 == 0 && s->a->stopped())
            return sh_fail(e, "interrupted after %llu steps", (unsigned long long)s->r->steps);
    }
    return 0;
}

/* ---- replicas ---- */

static int next_routed(struct sh_workload *base, struct sh_request *out, struct sh_err *e)
{
    struct lane *l = (struct lane *)base;
    (void)e;
    free(l->key);
    l->key = NULL;
    if (!l->n)
        return 0;
    const struct routed *x = &l->at[l->first];
    l->first = (l->first + 1) % l->room;
    l->n--;
    *out = x->request;
    l->number = x->number;
    l->base.key = l->key = x->key;
    l->base.n_key = x->n_key;
    return 1;
}

static void enqueue(struct lane *l, const struct sh_request *q, uint64_t number, const struct sh_workload *w)
{
    if (l->n == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        struct routed *at = xcalloc(room, sizeof *at);
        for (size_t i = 0; i < l->n; i++)
            at[i] = l->at[(l->first + i) % l->room];
        free(l->at);
        l->at = at;
        l->room = room;
        l->first = 0;
    }
    struct routed *x = &l->at[(l->first + l->n++) % l->room];
    *x = (struct routed){*q, number, NULL, w->block ? w->n_key : 0};
    if (x->n_key) {
        x->key = xreallocarray(NULL, x->n_key, sizeof *x->key);
        memcpy(x->key, w->key, x->n_key * sizeof *x->key);
    }
}

/* Requests that a replica has at a time; it may be in a step that ends later. */
static size_t load_of(const struct server *s, double t)
{
    return s->n_running + s->n_waiting + (size_t)s->has_next + s->lane->n + (s->now > t ? s->n_ended : 0);
}

/* Which replica gets the request that the workload has just given. */
static uint32_t choose(const struct server *s, const struct sh_request *q, uint64_t number, struct sh_prefix_use *text,
                       const struct sh_workload *w)
{
    const struct sh_sim_ask *a = s->a;
    uint32_t best = 0, most = 0;
    double t = q->arrival_s / a->speed;
    if (a->router == SH_ROUTE_IN_TURN)
        return (uint32_t)(number % a->replicas);
    int by_text = a->router == SH_ROUTE_PREFIX && s->has_prefix;
    if (by_text)
        sh_prefix_name(text, w->key, w->n_key);
    for (uint32_t i = 0; i < a->replicas; i++) {
        uint32_t found = by_text ? sh_prefix_match(&s[i].prefix, text, q->prompt).n : 0;
        if (i && (found < most || (found == most && load_of(&s[i], t) >= load_of(&s[best], t))))
            continue;
        best = i;
        most = found;
    }
    return best;
}

static int route(struct server *s, struct sh_workload *w, struct sh_err *e)
{
    const struct sh_sim_ask *a = s->a;
    struct sh_prefix_use text = {0};
    struct sh_request q;
    int got = 0, bad = 0;
    while (!bad && (got = w->next(w, &q, e)) > 0) {
        for (uint32_t i = 0; i < a->replicas && !bad; i++)
            bad = run(&s[i], q.arrival_s / a->speed, e);
        uint64_t number = s->r->requests++;
        struct server *to = &s[choose(s, &q, number, &text, w)];
        enqueue(to->lane, &q, number, w);
        bad = bad || (!to->has_next && pull(to, e));
    }
    bad = bad || got < 0;
    for (uint32_t i = 0; i < a->replicas && !bad; i++)
        bad = run(&s[i], (double)INFINITY, e);
    sh_prefix_drop(&text);
    return bad ? -1 : 0;
}

/* ---- all of it ---- */

/* Every request has been answered, every token passed the model once except those that were recomputed, and no byte is
 * left. */
static int check(const struct server *s, struct sh_err *e)
{
    const struct sh_sim_result *r = s->r;
    uint64_t left = 0;
    for (uint32_t i = 0; i < count(s->a); i++)
        left += s[i].used + s[i].prefix.n_held;
    if (r->finished + r->refused != r->requests || left ||
        r->tokens_fed + r->tokens_reused != r->tokens_in + r->tokens_out - r->finished + r->tokens_recomputed)
        return sh_fail(e, "the simulation does not add up: %llu requests, %llu finished, %llu refused, %llu tokens "
                       "fed, %llu bytes left", (unsigned long long)r->requests, (unsigned long long)r->finished,
                       (unsigned long long)r->refused, (unsigned long long)r->tokens_fed, (unsigned long long)left);
    return r->requests ? 0 : sh_fail(e, "the workload has no requests");
}

static void open_server(struct server *s, const struct sh_sim_ask *a, struct sh_sim_cost *c, struct sh_sim_result *out)
{
    *s = (struct server){.a = a, .c = c, .r = out, .has_prefix = a->prefix.block > 0};
    if (s->has_prefix)
        sh_prefix_open(&s->prefix, &a->prefix, a->prefix.block * (double)sh_split_cache(&c->plain, 0, 1).token,
                       (double)c->pool);
}

/* Adds what it has summed up to the result. */
static void close_server(struct server *s)
{
    sh_prefix_add(&s->r->prefix, &s->prefix.count);
    s->r->running_mean += s->running_time;
    s->r->occupancy_mean += s->used_time;
    for (size_t i = 0; i < s->n_running; i++)
        sh_prefix_drop(&s->running[i].use);
    for (size_t i = 0; i < s->n_waiting; i++)
        sh_prefix_drop(&s->waiting[i].use);
    sh_prefix_drop(&s->next.use);
    sh_prefix_drop(&s->spare);
    sh_prefix_clear(&s->prefix);
    free(s->running);
    free(s->waiting);
    for (; s->lane && s->lane->n; s->lane->n--)
        free(s->lane->at[(s->lane->first + s->lane->n - 1) % s->lane->room].key);
    if (s->lane) {
        free(s->lane->key);
        free(s->lane->at);
    }
}

int sh_simulate(const struct sh_sim_ask *a, struct sh_sim_cost *c, struct sh_workload *w,
                struct sh_sim_result *out, struct sh_err *e)
{
    uint32_t n = count(a);
    struct server *s = xcalloc(n, sizeof *s);
    struct lane *lane = xcalloc(n, sizeof *lane);
    memset(out, 0, sizeof *out);
    w->block = a->prefix.block;
    for (uint32_t i = 0; i < n; i++) {
        open_server(&s[i], a, c, out);
        lane[i].base.next = next_routed;
        s[i].lane = n > 1 ? &lane[i] : NULL;
        s[i].w = n > 1 ? &lane[i].base : w;
    }
    sh_timeline_start(&out->occupancy, 0.01);
    int bad = (n > 1 ? route(s, w, e) : pull(s, e) || run(s, (double)INFINITY, e)) || check(s, e);
    for (uint32_t i = 0; i < n; i++)
        close_server(&s[i]);
    free(lane);
    free(s);
    double whole = out->end_s - out->start_s;
    out->busy_s /= n;
    out->running_mean = whole > 0 ? out->running_mean / n / whole : 0;
    out->occupancy_mean = whole > 0 ? out->occupancy_mean / n / whole : 0;
    out->throughput = whole > 0 ? (double)out->tokens_out / whole : 0;
    out->goodput = whole > 0 ? (double)out->good / whole : 0;
    return bad ? -1 : 0;
}
