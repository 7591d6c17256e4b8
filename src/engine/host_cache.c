/* SPDX-License-Identifier: Apache-2.0 */
/* See host_cache.h. One thread for a KV head of a sequence: what is shared between them is read only. */
#include "src/engine/host_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/team.h"
#include "src/engine/rows.h"
#include "src/engine/states.h"

struct sh_host_cache {
    struct sh_resident *r;
    struct sh_kv_cache *kv;
    const struct sh_piece *piece;       /* on its way */
    int n_thread;
    float *q, *k, *v, *mixed;           /* host copies of a piece's rows; q, k, v NULL: device memory is host memory */
    uint16_t *half;                     /* host copy of mixed in the operands' type; NULL: none is needed */
    float *scratch;                     /* [n_thread][scratch_size] */
    size_t scratch_size;
    struct sh_turn turn[2];             /* of arch->rope, local_rope; n 0: layers turn, or nothing does */
    int *place;                         /* [n_seq]; NULL: not asked for                           */
    size_t block_bytes;                 /* the most that blocks took at a time                    */
    int failed;                         /* the device, inside a layer; the error is in `error`    */
    struct sh_err error;
};

/* ---- attention ---- */

struct rows {                          /* one layer's rows on the host */
    const struct sh_attend *what;
    int layer;
    const float *q, *k, *v;
    float *mixed;                       /* NULL: not wanted */
};

/* Room for token t, and its slot. dropped: scratch for two numbers a slot and one more. */
static int admit(struct sh_kv_head *h, int t, int *dropped)
{
    const struct sh_cache *c = sh_kept_cache(h->kept);
    int n = sh_kept_make_room(h->kept, t, NULL, h->place ? dropped : NULL);
    if (h->place)
        sh_positions_leave(h->place, c->n_slot, dropped, n, dropped + n);
    int slot = sh_kept_admit(h->kept, t);
    if (h->place)
        h->place[slot] = c->n - 1;
    return slot;
}

/* The group's queries as they attend: turned for their place where that is still to be done. */
static const float *turned(const struct sh_turn *turn, const float *q, int group, int d, int place, float *to)
{
    for (int g = 0; g < group && turn; g++)
        sh_turn_rows(turn, q + g * d, &place, 1, d, to + g * d);
    return turn ? to : q;
}

/* How queries and keys of a layer turn here; NULL: they come turned, or never do. */
static const struct sh_turn *turn_of(const struct sh_host_cache *own, int layer)
{
    const struct sh_turn *t = &own->turn[sh_arch_rope(own->r->arch, layer) == &own->r->arch->local_rope];
    return t->n && sh_arch_turns(own->r->arch, layer) ? t : NULL;
}

static float *scratch_of(const struct sh_host_cache *own, const struct sh_member *me)
{
    return own->scratch + (size_t)me->thread * own->scratch_size;
}

/* One token of one KV head, in the order of planner/policy/policy.h. */
static void token(struct sh_host_cache *own, const struct rows *p, struct sh_kv_head *h, int sequence, int head,
                  int row, int t, const struct sh_member *me)
{
    const struct sh_attend *w = p->what;
    const struct sh_policy *policy = own->kv->setup.spec->policy;
    int group = w->n_head / w->n_kv_head, d = w->d_head;
    size_t wide = (size_t)row * (size_t)(w->n_head * d) + (size_t)(head * group * d);
    size_t narrow = (size_t)row * (size_t)(w->n_kv_head * d) + (size_t)(head * d);
    float *chunk = scratch_of(own, me), *mean = chunk + (size_t)SH_ROWS_AT_ONCE * (size_t)d;
    float *probs = mean + own->kv->most_slots, *q = probs + (size_t)group * (size_t)own->kv->most_slots;
    int *dropped = (int *)(q + group * d), sharers = me->n_threads;
    struct sh_stages *stages = own->r->setup.stages;
    unsigned long long since = sh_stage_begin(stages);
    sh_kv_head_put(h, admit(h, t, dropped), p->k + narrow, p->v + narrow);
    sh_stage_end(stages, SH_STAGE_EVICTION, since, sharers);
    const struct sh_cache *c = sh_kept_cache(h->kept);
    const struct sh_turn *turn = turn_of(own, p->layer);
    struct sh_slots_attend a = {
        .k = &h->k, .v = sh_kv_head_values(h), .pos = h->place ? h->place : c->pos, .turn = turn, .n_slot = c->n_slot,
        .group = group,
        .q = turned(turn, p->q + wide, group, d, c->n - 1, q), .position = h->place ? c->n - 1 : t,
        .window = w->window, .scale = w->scale, .softcap = w->softcap,
        .slopes = w->slopes ? w->slopes + head * group : NULL, .rounds_slopes = w->rounds_slopes,
        .sinks = w->sinks ? w->sinks + head * group : NULL, .span = w->chunk,
        .out = p->mixed ? p->mixed + wide : NULL, .probs = probs, .chunk = chunk, .stages = stages, .sharers = sharers};
    int n_row = sh_slots_attend(&a);
    const struct sh_piece *piece = own->piece;
    if (!policy->observe && !piece->watch)
        return;
    since = sh_stage_begin(stages);
    sh_slots_mean(probs, group, c->n_slot, mean);
    struct sh_step step = {.t = t, .n_row = n_row, .row = mean, .q = p->q + wide, .n_query = group};
    if (piece->watch)
        piece->watch(piece->watch_to, sequence, p->layer, head, t, c, mean);
    sh_kept_observe(h->kept, &step);
    sh_stage_end(stages, SH_STAGE_EVICTION, since, sharers);
}

/* What threads share: KV heads of sequences. */
struct sharing {
    struct sh_host_cache *own;
    const struct rows *p;
    int attended;                       /* of blocks: somebody has filled `mixed` */
    pthread_mutex_t lock;               /* of most, failed and own->error         */
    size_t most;
    int failed;
};

static void share(struct sh_host_cache *own, sh_team_work *work, struct sharing *s, int in_threads)
{
    sh_team_run(in_threads ? own->n_thread : 1, own->kv->setup.n_seq * s->p->what->n_kv_head, work, s);
}

static void attend_tokens(void *arg, struct sh_member *me)
{
    const struct sharing *s = arg;
    const struct sh_piece *piece = s->own->piece;
    int n_head = s->p->what->n_kv_head;
    for (int i; sh_member_take(me, &i);) {
        int sequence = i / n_head, head = i % n_head, start = piece->start[sequence];
        struct sh_kv_head *h = sh_kv_cache_head(s->own->kv, sequence, s->p->layer, head);
        for (int row = start; row < sh_piece_end(piece, sequence); row++)
            token(s->own, s->p, h, sequence, head, row, piece->first[sequence] + row - start, me);
    }
}

static void attend_all(struct sh_host_cache *own, const struct rows *p)
{
    enum { WORTH_THREADS = 1 << 16 };   /* products: below that, waking them takes longer         */
    double products = 2.0 * p->what->q.rows * p->what->q.cols * own->kv->most_slots;
    share(own, attend_tokens, &(struct sharing){.own = own, .p = p}, !own->piece->watch && products > WORTH_THREADS);
}

static void run_block(struct sharing *s, int i, int sharers)
{
    struct sh_host_cache *own = s->own;
    const struct rows *p = s->p;
    const struct sh_attend *w = p->what;
    const struct sh_policy *policy = own->kv->setup.spec->policy;
    const struct sh_piece *piece = own->piece;
    int sequence = i / w->n_kv_head, head = i % w->n_kv_head;
    size_t row = (size_t)piece->start[sequence], wide = (size_t)w->q.cols, narrow = (size_t)w->k.cols, bytes = 0;
    struct sh_err e;
    struct sh_block b = {
        .what = w, .sequence = sequence, .layer = p->layer, .head = head, .turn = turn_of(own, p->layer),
        .h = sh_kv_cache_head(own->kv, sequence, p->layer, head), .first = piece->first[sequence],
        .n = piece->start[sequence + 1] - piece->start[sequence], .q = p->q + row * wide, .k = p->k + row * narrow,
        .v = p->v + row * narrow, .mixed = s->attended ? NULL : p->mixed + row * wide, .needs = policy->needs,
        .observes = policy->observe != NULL, .watch = piece->watch, .watch_to = piece->watch_to,
        .stages = own->r->setup.stages, .sharers = sharers};
    int failed = b.n && sh_block_run(&b, &bytes, &e);
    pthread_mutex_lock(&s->lock);
    s->most = bytes > s->most ? bytes : s->most;
    if (failed && !s->failed)
        own->error = e;
    s->failed |= failed;
    pthread_mutex_unlock(&s->lock);
}

static void take_blocks(void *arg, struct sh_member *me)
{
    for (int i; sh_member_take(me, &i);)
        run_block(arg, i, me->n_threads);
}

/* The pieces as blocks (block.c). attended: `mixed` has been computed. */
static int run_blocks(struct sh_host_cache *own, const struct rows *p, int attended)
{
    int n_head = p->what->n_kv_head;
    struct sharing s = {.own = own, .p = p, .attended = attended, .lock = PTHREAD_MUTEX_INITIALIZER};
    share(own, take_blocks, &s, !own->piece->watch);
    s.most *= (size_t)(own->n_thread < n_head ? own->n_thread : n_head);
    own->block_bytes = s.most > own->block_bytes ? s.most : own->block_bytes;
    return s.failed ? -1 : 0;
}

/* Do the rows begin their texts, with all that a query of theirs sees among them, and are probabilities
 * not needed? Then the backend's attention gives the same as the slots', and is faster. */
static int is_fresh(const struct sh_host_cache *own, const struct sh_attend *what, int layer)
{
    const struct sh_session_setup *setup = &own->kv->setup;
    const struct sh_piece *piece = own->piece;
    if (piece->watch || setup->spec->policy->observe || (setup->format.bits < 32 && !piece->by_block) ||
        own->turn[0].n || own->turn[1].n)
        return 0;
    for (int i = 0; i < own->kv->setup.n_seq && piece->by_block; i++)
        if (piece->start[i + 1] > piece->start[i] && piece->first[i])
            return 0;
    if (piece->by_block)
        return 1;
    for (int i = 0; i < own->kv->setup.n_seq; i++) {
        int n = piece->start[i + 1] - piece->start[i];
        for (int h = 0; h < what->n_kv_head && n; h++) {
            int budget = sh_kept_cache(sh_kv_cache_head(own->kv, i, layer, h)->kept)->head->budget;
            if (piece->first[i] || (n > budget && n > setup->prefill && budget != what->window))
                return 0;
        }
    }
    return 1;
}

/* Room is made and slots are filled, token by token. */
static void store_tokens(void *arg, struct sh_member *me)
{
    const struct sharing *s = arg;
    const struct sh_piece *piece = s->own->piece;
    int n_head = s->p->what->n_kv_head, d = s->p->what->d_head, *dropped = (int *)scratch_of(s->own, me);
    for (int i; sh_member_take(me, &i);) {
        int sequence = i / n_head, head = i % n_head, start = piece->start[sequence];
        struct sh_kv_head *h = sh_kv_cache_head(s->own->kv, sequence, s->p->layer, head);
        for (int row = start; row < sh_piece_end(piece, sequence); row++) {
            size_t at = ((size_t)row * (size_t)n_head + (size_t)head) * (size_t)d;
            int slot = admit(h, piece->first[sequence] + row - start, dropped);
            sh_kv_head_put(h, slot, s->p->k + at, s->p->v + at);
        }
    }
}

static void store_all(struct sh_host_cache *own, const struct rows *p)
{
    unsigned long long since = sh_stage_begin(own->r->setup.stages);
    share(own, store_tokens, &(struct sharing){.own = own, .p = p}, p->what->k.rows > SH_ROWS_AT_ONCE);
    sh_stage_end(own->r->setup.stages, SH_STAGE_EVICTION, since, 1);
}

static const float *fetch(struct sh_host_cache *own, float *copy, const struct sh_mat *m)
{
    const struct sh_resident_setup *r = &own->r->setup;
    if (!copy)
        return m->at;
    r->backend->get(r->device, copy, m->at, (size_t)m->rows * (size_t)m->cols * sizeof *copy);
    return copy;
}

/* sh_own_attention's. */
static void attend(void *to, int layer, const struct sh_attend *what)
{
    struct sh_host_cache *own = to;
    const struct sh_resident_setup *r = &own->r->setup;
    struct rows p = {.what = what, .layer = layer};
    if (own->failed)
        return;
    int fresh = is_fresh(own, what, layer);
    if (fresh)
        sh_resident_attend(own->r, what, own->kv->setup.n_seq, own->piece->start);
    else
        p.q = fetch(own, own->q, &what->q);
    p.k = fetch(own, own->k, &what->k);
    p.v = fetch(own, own->v, &what->v);
    if (r->backend->sync(r->device, &own->error)) {
        own->failed = 1;
        return;
    }
    p.mixed = own->mixed ? own->mixed : what->out.at;
    if (own->piece->by_block && (own->failed = run_blocks(own, &p, fresh)))
        return;
    if (!own->piece->by_block)
        (fresh ? store_all : attend_all)(own, &p);
    if (fresh)
        return;
    size_t n = (size_t)what->out.rows * (size_t)what->out.cols;
    for (size_t i = 0; own->half && i < n; i++)
        own->half[i] = what->out.type == SH_F16 ? sh_f32_to_f16(own->mixed[i]) : sh_f32_to_bf16(own->mixed[i]);
    if (own->mixed && own->r->is_host)
        r->backend->cast(r->device, what->out, (struct sh_mat){own->mixed, SH_F32, what->out.rows, what->out.cols,
                                                               (size_t)what->out.cols});
    else if (own->mixed)
        r->backend->put(r->device, what->out.at, own->half ? (void *)own->half : own->mixed,
                        n * sh_type_bytes(what->out.type));
}

void sh_host_cache_feed(struct sh_host_cache *own, int layer, const struct sh_qkv *x, const struct sh_piece *p)
{
    struct sh_attend what = sh_layer_attend(own->r->arch, layer, p->start[own->kv->setup.n_seq], own->r->setup.dtype);
    struct rows rows = {.what = &what, .layer = layer, .q = x->q, .k = x->k, .v = x->v};
    what.slopes = own->r->act.slopes;
    what.sinks = sh_layer_sinks(own->r->layer[layer]);
    own->piece = p;
    (own->kv->setup.spec->policy->observe || p->watch ? attend_all : store_all)(own, &rows);
}

int sh_host_cache_run(struct sh_host_cache *own, void *hidden, const struct sh_piece *p, struct sh_err *e)
{
    struct sh_resident *r = own->r;
    int first = own->kv->setup.first_layer, end = first + sh_kv_setup_layers(&own->kv->setup);
    struct sh_own_attention attention = {.first = p->first, .attend = attend, .to = own,
                                         .length = own->kv->setup.length,
                                         .turns = own->turn[0].n || own->turn[1].n};
    own->piece = p;
    own->failed = 0;
    for (int l = first; l < end && !own->failed; l++) {
        attention.state = sh_states_of(p->states, l);
        sh_layer_run(r->layer[l], &r->act, hidden, own->kv->setup.n_seq, p->start, NULL, 0, &attention);
        if (!own->failed && sh_layer_failed(r->layer[l], &own->error))
            own->failed = 1;
    }
    if (own->failed)
        *e = own->error;
    return own->failed ? -1 : 0;
}

/* ---- positions inside the cache ---- */

/* Positions inside the cache: angles for as many places as there can be, or where the tables are read. */
static int make_places(struct sh_host_cache *own, struct sh_err *e)
{
    const struct sh_arch *a = own->r->arch;
    const struct sh_session_setup *setup = &own->kv->setup;
    int most = sh_kv_setup_places(setup);
    if (a->pos == SH_POS_LEARNED || a->pos == SH_POS_WAVES)
        own->place = xcalloc((size_t)setup->n_seq, sizeof *own->place);
    if (a->pos != SH_POS_ROTARY)
        return 0;
    int local = a->local_n_rot ? a->local_n_rot : a->n_rot;
    return sh_turn_new(&own->turn[0], &a->rope, a->n_rot, most, e) ||
                   (a->local_rope.base > 0 && sh_turn_new(&own->turn[1], &a->local_rope, local, most, e))
               ? -1 : 0;
}

const int *sh_host_cache_places(const struct sh_host_cache *own)
{
    return own->place;
}

/* Those of the sequence's next tokens follow one another as long as no head is full. */
int sh_host_cache_find_place(struct sh_host_cache *own, int sequence, int first, int n)
{
    const struct sh_session_setup *setup = &own->kv->setup;
    int heads = sh_kv_setup_layers(setup) * own->r->arch->n_kv_head, most = 1, run = n;
    for (int i = 0; i < heads && own->place; i++) {
        const struct sh_kept *k = sh_kv_cache_head(own->kv, sequence, setup->first_layer, 0)[i].kept;
        if (!k)
            continue;
        int count = sh_kept_count_at(k, first), room = sh_kept_cache(k)->head->budget - count + 1;
        int seen = own->kv->setup.prefill - first;
        room = seen > room ? seen : room;
        most = count > most ? count : most;
        run = room < run ? room : run;
    }
    if (own->place)
        own->place[sequence] = most - 1;
    return run < 1 ? 1 : run;
}

/* ---- the object ---- */

/* Buffers for the rows of a piece where the device's are out of reach, or of another type. */
static void make_copies(struct sh_host_cache *own)
{
    const struct sh_arch *a = own->r->arch;
    size_t rows = (size_t)own->r->setup.rows, q = rows * (size_t)(a->n_head * a->d_head);
    size_t kv = rows * (size_t)(a->n_kv_head * a->d_head);
    int is_f32 = sh_layer_attend(a, 0, 1, own->r->setup.dtype).out.type == SH_F32;
    if (!own->r->is_host) {
        own->q = xaligned(q * sizeof *own->q);
        own->k = xaligned(kv * sizeof *own->k);
        own->v = xaligned(kv * sizeof *own->v);
    }
    own->mixed = own->r->is_host && is_f32 ? NULL : xaligned(q * sizeof *own->mixed);
    own->half = is_f32 || own->r->is_host ? NULL : xaligned(q * sizeof *own->half);
}

struct sh_host_cache *sh_host_cache_new(struct sh_resident *r, const struct sh_session_setup *setup, struct sh_err *e)
{
    struct sh_host_cache *own = xcalloc(1, sizeof *own);
    own->r = r;
    own->kv = sh_kv_cache_new(setup, e);
    if (!own->kv || (setup->positions == SH_POSITIONS_CACHE && make_places(own, e))) {
        sh_host_cache_free(own);
        return NULL;
    }
    make_copies(own);
    const struct sh_arch *a = r->arch;
    size_t group = (size_t)sh_arch_widest_group(a), slots = (size_t)own->kv->most_slots;
    own->scratch_size = ((SH_ROWS_AT_ONCE + group) * (size_t)a->d_head + (3 + group) * slots + 16) / 16 * 16;
    own->n_thread = r->setup.n_threads > 0 ? r->setup.n_threads : sh_team_threads();
    own->scratch = xaligned((size_t)own->n_thread * own->scratch_size * sizeof *own->scratch);
    return own;
}

void sh_host_cache_free(struct sh_host_cache *own)
{
    if (!own)
        return;
    sh_kv_cache_free(own->kv);
    free(own->q);
    free(own->k);
    free(own->v);
    free(own->mixed);
    free(own->half);
    free(own->scratch);
    free(own->place);
    sh_turn_free(&own->turn[0]);
    sh_turn_free(&own->turn[1]);
    free(own);
}

struct sh_kv_cache *sh_host_cache_kv(struct sh_host_cache *own)
{
    return own->kv;
}

struct sh_cache_bytes sh_host_cache_bytes(const struct sh_host_cache *own)
{
    struct sh_cache_bytes b = sh_kv_cache_bytes(own->kv);
    b.block = own->block_bytes;
    return b;
}
