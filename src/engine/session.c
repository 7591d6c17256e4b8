/* SPDX-License-Identifier: Apache-2.0 */
/* See session.h. Layers run on the device; attention over the slots runs on the host, one thread for a
 * KV head of a sequence: what is shared between them is read only. */
#include "src/engine/session.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/engine/block.h"
#include "src/engine/device_cache.h"
#include "src/engine/slots_attend.h"

struct sh_session {
    struct sh_resident *r;
    struct sh_kv_cache *cache;          /* one of the two is NULL                                 */
    struct sh_device_cache *on_device;
    char why_host[SH_DEVICE_WHY];       /* empty: it is where it should be                        */
    int n_token, n_seq;
    int *first, *start;                 /* [n_seq]: tokens read; [n_seq + 1]: rows of the piece on its way */
    float *logits;                      /* [n_seq, n_vocab] */
    float *rows;                        /* [rows_at_once, n_vocab]: of a `take` */
    int rows_at_once, n_thread;
    float *q, *k, *v, *mixed;           /* host copies of a piece's rows; q, k, v NULL: device memory is host memory */
    uint16_t *half;                     /* host copy of mixed in the operands' type; NULL: none is needed */
    float *scratch;                     /* [n_thread][scratch_size] */
    size_t scratch_size;
    sh_session_watch *watch;
    void *watch_to;
    struct sh_turn turn[2];             /* of arch->rope, local_rope; n 0: layers turn, or nothing does */
    int *place;                         /* [n_seq]: where the tables are read; NULL: at `first`   */
    int whole;                          /* tokens that must come as one block; 0: none            */
    int block;                          /* tokens of a prompt's block; 0: none                    */
    int by_block;                       /* the piece on its way is a block                        */
    size_t block_bytes;                 /* the most that blocks took at a time                    */
    int failed;                         /* the device, inside a layer; the error is in `error` */
    struct sh_err error;
};

/* ---- attention ---- */

struct piece {                          /* one layer's rows on the host */
    const struct sh_attend *what;
    int layer;
    const float *q, *k, *v;
    float *mixed;
};

/* Room for token t, and its slot. dropped: scratch for two numbers a slot and one more. */
static int admit(struct sh_kv_head *h, int t, int *dropped)
{
    const struct sh_cache *c = sh_kept_cache(h->kept);
    int n = sh_kept_make_room(h->kept, t, NULL, h->place ? dropped : NULL);
    if (h->place)
        sh_places_leave(h->place, c->n_slot, dropped, n, dropped + n);
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
static const struct sh_turn *turn_of(const struct sh_session *s, int layer)
{
    const struct sh_turn *t = &s->turn[sh_arch_rope(s->r->arch, layer) == &s->r->arch->local_rope];
    return t->n ? t : NULL;
}

/* One token of one KV head, in the order of planner/policy.h. */
static void token(struct sh_session *s, const struct piece *p, struct sh_kv_head *h, int sequence, int head, int row,
                  int t, float *scratch)
{
    const struct sh_attend *w = p->what;
    const struct sh_policy *policy = s->cache->setup.spec->policy;
    int group = w->n_head / w->n_kv_head, d = w->d_head;
    size_t wide = (size_t)row * (size_t)(w->n_head * d) + (size_t)(head * group * d);
    size_t narrow = (size_t)row * (size_t)(w->n_kv_head * d) + (size_t)(head * d);
    float *chunk = scratch, *mean = chunk + (size_t)SH_ROWS_AT_ONCE * (size_t)d;
    float *probs = mean + s->cache->most_slots, *q = probs + (size_t)group * (size_t)s->cache->most_slots;
    int *dropped = (int *)(q + group * d);
    sh_kv_head_put(h, admit(h, t, dropped), p->k + narrow, p->v + narrow);
    const struct sh_cache *c = sh_kept_cache(h->kept);
    const struct sh_turn *turn = turn_of(s, p->layer);
    struct sh_slots_attend a = {
        .k = &h->k, .v = &h->v, .pos = h->place ? h->place : c->pos, .turn = turn, .n_slot = c->n_slot, .group = group,
        .q = turned(turn, p->q + wide, group, d, c->n - 1, q), .position = h->place ? c->n - 1 : t,
        .window = w->window, .scale = w->scale, .softcap = w->softcap,
        .slopes = w->slopes ? w->slopes + head * group : NULL, .out = p->mixed + wide, .probs = probs, .chunk = chunk};
    int n_row = sh_slots_attend(&a);
    if (!policy->observe && !s->watch)
        return;
    sh_slots_mean(probs, group, c->n_slot, mean);
    struct sh_step step = {.t = t, .n_row = n_row, .row = mean, .q = p->q + wide, .n_query = group};
    if (s->watch)
        s->watch(s->watch_to, sequence, p->layer, head, t, c, mean);
    sh_kept_observe(h->kept, &step);
}

static void attend_all(struct sh_session *s, const struct piece *p)
{
    enum { WORTH_THREADS = 1 << 16 };   /* products: below that, waking them takes longer         */
    int n_head = p->what->n_kv_head, jobs = s->n_seq * n_head;
    double products = 2.0 * p->what->q.rows * p->what->q.cols * s->cache->most_slots;
#pragma omp parallel for schedule(dynamic) num_threads(s->n_thread) if (!s->watch && products > WORTH_THREADS)
    for (int i = 0; i < jobs; i++) {
        int sequence = i / n_head, head = i % n_head;
        struct sh_kv_head *h = sh_kv_cache_head(s->cache, sequence, p->layer, head);
        float *scratch = s->scratch + (size_t)omp_get_thread_num() * s->scratch_size;
        for (int row = s->start[sequence]; row < s->start[sequence + 1]; row++)
            token(s, p, h, sequence, head, row, s->first[sequence] + row - s->start[sequence], scratch);
    }
}

/* The pieces as blocks (block.h). attended: somebody has filled `mixed`. */
static int run_blocks(struct sh_session *s, const struct piece *p, int attended)
{
    const struct sh_attend *w = p->what;
    const struct sh_policy *policy = s->cache->setup.spec->policy;
    int n_head = w->n_kv_head, bad = 0;
    size_t most = 0, wide = (size_t)w->q.cols, narrow = (size_t)w->k.cols;
#pragma omp parallel for schedule(dynamic) num_threads(s->n_thread) if (!s->watch)
    for (int i = 0; i < s->n_seq * n_head; i++) {
        int sequence = i / n_head, head = i % n_head;
        size_t row = (size_t)s->start[sequence], bytes = 0;
        struct sh_err e;
        struct sh_block b = {
            .what = w, .sequence = sequence, .layer = p->layer, .head = head, .turn = turn_of(s, p->layer),
            .h = sh_kv_cache_head(s->cache, sequence, p->layer, head), .first = s->first[sequence],
            .n = s->start[sequence + 1] - s->start[sequence], .q = p->q + row * wide, .k = p->k + row * narrow,
            .v = p->v + row * narrow, .mixed = attended ? NULL : p->mixed + row * wide, .needs = policy->needs,
            .observes = policy->observe != NULL, .watch = s->watch, .watch_to = s->watch_to};
        int failed = b.n && sh_block_run(&b, &bytes, &e);
#pragma omp critical(sh_session_blocks)
        {
            most = bytes > most ? bytes : most;
            if (failed && !bad)
                s->error = e;
            bad |= failed;
        }
    }
    most *= (size_t)(s->n_thread < n_head ? s->n_thread : n_head);
    s->block_bytes = most > s->block_bytes ? most : s->block_bytes;
    return bad ? -1 : 0;
}

/* Do the rows begin their texts, with all that a query of theirs sees among them, and does nobody ask for
 * probabilities? Then the backend's attention is what the slots' would be, and faster. */
static int is_fresh(const struct sh_session *s, const struct sh_attend *what, int layer)
{
    const struct sh_kv_setup *setup = &s->cache->setup;
    if (s->watch || setup->spec->policy->observe || (setup->format.bits < 32 && !s->by_block) || s->turn[0].n ||
        s->turn[1].n)
        return 0;
    for (int i = 0; i < s->n_seq && s->by_block; i++)
        if (s->start[i + 1] > s->start[i] && s->first[i])
            return 0;
    if (s->by_block)
        return 1;
    for (int i = 0; i < s->n_seq; i++) {
        int n = s->start[i + 1] - s->start[i];
        for (int h = 0; h < what->n_kv_head && n; h++) {
            int budget = sh_kept_budget(sh_kv_cache_head(s->cache, i, layer, h)->kept);
            if (s->first[i] || (n > budget && n > setup->prefill && budget != what->window))
                return 0;
        }
    }
    return 1;
}

/* Room is made and slots are filled, token by token. */
static void store_all(struct sh_session *s, const struct piece *p)
{
    int n_head = p->what->n_kv_head, d = p->what->d_head;
#pragma omp parallel for schedule(dynamic) num_threads(s->n_thread) if (p->what->k.rows > SH_ROWS_AT_ONCE)
    for (int i = 0; i < s->n_seq * n_head; i++) {
        int sequence = i / n_head, head = i % n_head;
        struct sh_kv_head *h = sh_kv_cache_head(s->cache, sequence, p->layer, head);
        for (int row = s->start[sequence]; row < s->start[sequence + 1]; row++) {
            int t = s->first[sequence] + row - s->start[sequence];
            size_t at = ((size_t)row * (size_t)n_head + (size_t)head) * (size_t)d;
            int *dropped = (int *)(s->scratch + (size_t)omp_get_thread_num() * s->scratch_size);
            sh_kv_head_put(h, admit(h, t, dropped), p->k + at, p->v + at);
        }
    }
}

static const float *fetch(struct sh_session *s, float *copy, const struct sh_mat *m)
{
    const struct sh_resident_setup *r = &s->r->setup;
    if (!copy)
        return m->at;
    r->backend->get(r->device, copy, m->at, (size_t)m->rows * (size_t)m->cols * sizeof *copy);
    return copy;
}

/* sh_own_attention's. */
static void attend(void *to, int layer, const struct sh_attend *what)
{
    struct sh_session *s = to;
    const struct sh_resident_setup *r = &s->r->setup;
    struct piece p = {.what = what, .layer = layer};
    if (s->failed)
        return;
    int fresh = is_fresh(s, what, layer);
    if (fresh)
        sh_resident_attend(s->r, what, s->n_seq, s->start);
    else
        p.q = fetch(s, s->q, &what->q);
    p.k = fetch(s, s->k, &what->k);
    p.v = fetch(s, s->v, &what->v);
    if (r->backend->sync(r->device, &s->error)) {
        s->failed = 1;
        return;
    }
    p.mixed = s->mixed ? s->mixed : what->out.at;
    if (s->by_block && (s->failed = run_blocks(s, &p, fresh)))
        return;
    if (!s->by_block)
        (fresh ? store_all : attend_all)(s, &p);
    if (fresh)
        return;
    size_t n = (size_t)what->out.rows * (size_t)what->out.cols;
    for (size_t i = 0; s->half && i < n; i++)
        s->half[i] = what->out.type == SH_F16 ? sh_f32_to_f16(s->mixed[i]) : sh_f32_to_bf16(s->mixed[i]);
    if (s->mixed && s->r->is_host)
        r->backend->cast(r->device, what->out, (struct sh_mat){s->mixed, SH_F32, what->out.rows, what->out.cols,
                                                               (size_t)what->out.cols});
    else if (s->mixed)
        r->backend->put(r->device, what->out.at, s->half ? (void *)s->half : s->mixed,
                        n * sh_type_bytes(what->out.type));
}

/* ---- steps ---- */

struct step {                           /* what a step still has to do */
    const int32_t *tokens;
    const int *end;                     /* [n_seq]: in tokens */
    int *at;                            /* [n_seq]: read so far, in tokens */
    int32_t *piece;                     /* [rows] */
    int block;                          /* tokens of a block; 0: token after token */
    sh_session_take *take;
    void *to;
};

/* Learned positions inside the cache: those of the sequence's next tokens follow one another as long as no
 * head is full. How many that are, 1 at least, and where they begin: behind the fullest head's tokens. */
static int run_of_places(const struct sh_session *s, int sequence, int n, int *place)
{
    int heads = s->r->arch->n_layer * s->r->arch->n_kv_head, most = 1, run = n;
    for (int i = 0; i < heads; i++) {
        const struct sh_kept *k = sh_kv_cache_head(s->cache, sequence, 0, 0)[i].kept;
        int count = sh_kept_count_at(k, s->first[sequence]), room = sh_kept_budget(k) - count + 1;
        int seen = s->cache->setup.prefill - s->first[sequence];
        room = seen > room ? seen : room;
        most = count > most ? count : most;
        run = room < run ? room : run;
    }
    *place = most - 1;
    return run < 1 ? 1 : run;
}

/* The next piece: up to the resident's rows, sequence by sequence, or one sequence's block. Its number of rows. */
static int next_piece(struct sh_session *s, struct step *p)
{
    int room = s->r->setup.rows, n = 0;
    for (int i = 0; i < s->n_seq; i++) {
        int m = p->end[i] - p->at[i];
        m = p->block && n ? 0 : p->block && m > p->block ? p->block : m;
        m = m < room - n ? m : room - n;
        if (s->place && m) {
            int run = run_of_places(s, i, m, &s->place[i]);
            m = p->block ? m : run;
        }
        s->start[i] = n;
        memcpy(p->piece + n, p->tokens + p->at[i], (size_t)m * sizeof *p->piece);
        n += m;
        p->at[i] += m;
    }
    s->start[s->n_seq] = n;
    return n;
}

static int run_layers(struct sh_session *s, const int32_t *tokens, struct sh_err *e)
{
    struct sh_resident *r = s->r;
    if (sh_entry_run(r->entry, tokens, s->n_seq, s->start, s->place ? s->place : s->first, r->hidden, e))
        return -1;
    s->failed = 0;
    if (s->on_device)
        return sh_device_cache_run(s->on_device, &(struct sh_device_piece){.start = s->start, .first = s->first,
                                                                           .by_block = s->by_block,
                                                                           .watch = s->watch, .to = s->watch_to}, e);
    struct sh_own_attention own = {.first = s->first, .attend = attend, .to = s, .length = s->cache->setup.length,
                                   .turns = s->turn[0].n || s->turn[1].n};
    for (int l = 0; l < r->arch->n_layer && !s->failed; l++)
        sh_layer_step(r->layer[l], &r->act, r->hidden, s->n_seq, s->start, &own);
    if (s->failed)
        *e = s->error;
    return s->failed ? -1 : 0;
}

/* Logits of all rows of a sequence, in blocks. */
static int take_rows(struct sh_session *s, int sequence, const struct step *p, struct sh_err *e)
{
    size_t vocab = (size_t)s->r->arch->n_vocab;
    int end = s->start[sequence + 1];
    for (int row = s->start[sequence], n; row < end; row += n) {
        n = end - row < s->rows_at_once ? end - row : s->rows_at_once;
        if (sh_head_run(s->r->head, s->r->hidden, row, n, s->rows, e))
            return -1;
        for (int i = 0; i < n; i++)
            p->take(p->to, sequence, s->first[sequence] + row + i - s->start[sequence], s->rows + (size_t)i * vocab);
        if (row + n == end)
            memcpy(s->logits + (size_t)sequence * vocab, s->rows + (size_t)(n - 1) * vocab, vocab * sizeof(float));
    }
    return 0;
}

static int has_one_each(const struct sh_session *s)
{
    for (int i = 0; i < s->n_seq; i++)
        if (s->start[i + 1] - s->start[i] != 1)
            return 0;
    return 1;
}

static int make_logits(struct sh_session *s, const struct step *p, struct sh_err *e)
{
    size_t vocab = (size_t)s->r->arch->n_vocab;
    if (!p->take && has_one_each(s))
        return sh_head_run(s->r->head, s->r->hidden, 0, s->n_seq, s->logits, e);
    for (int i = 0; i < s->n_seq; i++) {
        int n = s->start[i + 1] - s->start[i], is_last = p->at[i] == p->end[i];
        if (p->take ? take_rows(s, i, p, e)
                    : n > 0 && is_last && sh_head_run(s->r->head, s->r->hidden, s->start[i + 1] - 1, 1,
                                                      s->logits + (size_t)i * vocab, e))
            return -1;
    }
    return 0;
}

/* Before anything changes. */
static int check(const struct sh_session *s, const int32_t *tokens, const int *start, struct sh_err *e)
{
    const struct sh_arch *a = s->r->arch;
    for (int i = 0; i < s->n_seq; i++) {
        int n = start[i + 1] - start[i];
        if (n > s->n_token - s->first[i])
            return sh_fail(e, "sequence %d: %d tokens after %d, room for %d in all", i, n, s->first[i],
                           s->n_token);
        for (int t = start[i]; t < start[i + 1]; t++)
            if (tokens[t] < 0 || tokens[t] >= a->n_vocab)
                return sh_fail(e, "token %d at position %d is outside the vocabulary of %d", tokens[t],
                               s->first[i] + t - start[i], a->n_vocab);
    }
    return 0;
}

static int read_tokens(struct sh_session *s, const int32_t *tokens, const int *start, int block,
                       sh_session_take *take, void *to, struct sh_err *e)
{
    if (check(s, tokens, start, e))
        return -1;
    size_t n_seq = (size_t)s->n_seq, rows = (size_t)s->r->setup.rows;
    struct step p = {.tokens = tokens, .end = start + 1, .at = xmalloc(n_seq * sizeof *p.at),
                     .piece = xmalloc(rows * sizeof *p.piece), .block = block, .take = take, .to = to};
    s->by_block = block > 0;
    memcpy(p.at, start, n_seq * sizeof *p.at);
    int bad = 0;
    while (!bad && next_piece(s, &p)) {
        bad = run_layers(s, p.piece, e) || make_logits(s, &p, e);
        for (int i = 0; i < s->n_seq && !bad; i++)
            s->first[i] += s->start[i + 1] - s->start[i];
    }
    free(p.at);
    free(p.piece);
    return bad ? -1 : 0;
}

int sh_session_step(struct sh_session *s, const int32_t *tokens, const int *start, sh_session_take *take, void *to,
                    struct sh_err *e)
{
    for (int i = 0; i < s->n_seq; i++)
        if (start[i + 1] > start[i] && s->first[i] < s->whole)
            return sh_fail(e, "sequence %d: its first %d tokens must come as one block", i, s->whole);
    return read_tokens(s, tokens, start, 0, take, to, e);
}

int sh_session_prompt(struct sh_session *s, const int32_t *tokens, const int *start, sh_session_take *take, void *to,
                      struct sh_err *e)
{
    for (int i = 0; i < s->n_seq; i++)
        if (start[i + 1] > start[i] && s->whole && (s->first[i] || start[i + 1] - start[i] < s->whole))
            return sh_fail(e, "sequence %d: its first %d tokens must come as one block", i, s->whole);
    return read_tokens(s, tokens, start, s->block, take, to, e);
}

/* ---- the object ---- */

/* Buffers for the rows of a piece where the device's are out of reach, or of another type. */
static void make_copies(struct sh_session *s)
{
    const struct sh_arch *a = s->r->arch;
    size_t rows = (size_t)s->r->setup.rows, q = rows * (size_t)(a->n_head * a->d_head);
    size_t kv = rows * (size_t)(a->n_kv_head * a->d_head);
    int is_f32 = s->r->setup.dtype == SH_F32;
    if (!s->r->is_host) {
        s->q = xaligned(q * sizeof *s->q);
        s->k = xaligned(kv * sizeof *s->k);
        s->v = xaligned(kv * sizeof *s->v);
    }
    s->mixed = s->r->is_host && is_f32 ? NULL : xaligned(q * sizeof *s->mixed);
    s->half = is_f32 || s->r->is_host ? NULL : xaligned(q * sizeof *s->half);
}

static void make_scratch(struct sh_session *s)
{
    const struct sh_arch *a = s->r->arch;
    size_t group = (size_t)(a->n_head / a->n_kv_head), slots = (size_t)s->cache->most_slots;
    s->scratch_size = ((SH_ROWS_AT_ONCE + group) * (size_t)a->d_head + (3 + group) * slots + 16) / 16 * 16;
    s->n_thread = s->r->setup.n_threads > 0 ? s->r->setup.n_threads : omp_get_max_threads();
    s->scratch = xaligned((size_t)s->n_thread * s->scratch_size * sizeof *s->scratch);
}

static int check_rows(const struct sh_resident *r, const struct sh_session_setup *s, struct sh_err *e)
{
    if (s->positions == SH_POSITIONS_ORIGINAL && s->n_token > r->setup.positions)
        return sh_misused(e, "%d tokens of a sequence: the model was opened for %d positions", s->n_token,
                          r->setup.positions);
    if (s->block < 0 || s->block > r->setup.rows)
        return sh_misused(e, "blocks of %d tokens: the model was opened for %d together", s->block, r->setup.rows);
    if (s->whole && s->block < s->prefill)
        return sh_misused(e, "%d tokens in one block: it is to have %d", s->prefill, s->block);
    return 0;
}

/* Positions inside the cache: angles for as many places as there can be, or where the tables are read. */
static int make_places(struct sh_session *s, struct sh_err *e)
{
    const struct sh_arch *a = s->r->arch;
    const struct sh_kv_setup *setup = &s->cache->setup;
    int most = s->cache->most_slots + s->block;
    most = most > setup->n_token ? setup->n_token : most;
    if ((a->pos == SH_POS_LEARNED || a->pos == SH_POS_ROTARY) && most > a->max_pos)
        return sh_misused(e, "positions inside the cache go up to %d (%d slots, blocks of %d tokens): "
                          "the model knows %d", most, s->cache->most_slots, s->block, a->max_pos);
    if (a->pos == SH_POS_LEARNED)
        s->place = xcalloc((size_t)s->n_seq, sizeof *s->place);
    if (a->pos != SH_POS_ROTARY)
        return 0;
    return sh_turn_new(&s->turn[0], &a->rope, a->n_rot, most, e) ||
                   (a->local_rope.base > 0 && sh_turn_new(&s->turn[1], &a->local_rope, a->n_rot, most, e))
               ? -1 : 0;
}

/* The cache, on the device where it can be. */
static int make_cache(struct sh_session *s, const struct sh_kv_setup *kv, struct sh_err *e)
{
    if (sh_kv_setup_check(kv, e))
        return -1;
    if (s->r->is_host || sh_device_cache_why_not(s->r, kv, s->why_host))
        s->cache = sh_kv_cache_new(kv, e);
    else
        s->on_device = sh_device_cache_new(s->r, kv, e);
    return s->cache || s->on_device ? 0 : -1;
}

struct sh_session *sh_session_new(struct sh_resident *r, const struct sh_session_setup *setup, struct sh_err *e)
{
    enum { MOST_NUMBERS = 1 << 20, MOST_ROWS = 256 };
    struct sh_kv_setup kv = {.arch = r->arch, .spec = setup->spec, .budget = setup->budget, .n_seq = setup->n_seq,
                             .n_token = setup->n_token, .length = setup->length, .prefill = setup->prefill,
                             .whole = setup->whole, .block = setup->block, .positions = setup->positions,
                             .format = setup->format, .seed = setup->seed};
    if (check_rows(r, setup, e))
        return NULL;
    struct sh_session *s = xcalloc(1, sizeof *s);
    *s = (struct sh_session){.r = r, .n_seq = setup->n_seq, .n_token = setup->n_token, .block = setup->block,
                             .whole = setup->whole ? setup->prefill : 0};
    if (make_cache(s, &kv, e)) {
        free(s);
        return NULL;
    }
    size_t n_seq = (size_t)setup->n_seq, vocab = (size_t)r->arch->n_vocab;
    int rows = MOST_NUMBERS / r->arch->n_vocab;
    s->first = xcalloc(n_seq, sizeof *s->first);
    s->start = xcalloc(n_seq + 1, sizeof *s->start);
    s->logits = xcalloc(n_seq * vocab, sizeof *s->logits);
    s->rows_at_once = rows < 1 ? 1 : rows > MOST_ROWS ? MOST_ROWS : rows;
    s->rows = xmalloc((size_t)s->rows_at_once * vocab * sizeof *s->rows);
    if (s->on_device)
        return s;
    make_copies(s);
    make_scratch(s);
    if (setup->positions == SH_POSITIONS_CACHE && make_places(s, e)) {
        sh_session_free(s);
        return NULL;
    }
    return s;
}

void sh_session_free(struct sh_session *s)
{
    if (!s)
        return;
    sh_device_cache_free(s->on_device);
    sh_kv_cache_free(s->cache);
    free(s->first);
    free(s->start);
    free(s->logits);
    free(s->rows);
    free(s->q);
    free(s->k);
    free(s->v);
    free(s->mixed);
    free(s->half);
    free(s->scratch);
    free(s->place);
    sh_turn_free(&s->turn[0]);
    sh_turn_free(&s->turn[1]);
    free(s);
}

const float *sh_session_logits(const struct sh_session *s, int sequence)
{
    return s->logits + (size_t)sequence * (size_t)s->r->arch->n_vocab;
}

int sh_session_length(const struct sh_session *s, int sequence)
{
    return s->first[sequence];
}

void sh_session_restart(struct sh_session *s, int sequence)
{
    s->first[sequence] = 0;
    if (s->on_device)
        sh_device_cache_restart(s->on_device, sequence);
    else
        sh_kv_cache_restart(s->cache, sequence);
}

void sh_session_fork(struct sh_session *to, int sequence_to, const struct sh_session *from, int sequence_from)
{
    size_t vocab = (size_t)from->r->arch->n_vocab;
    to->first[sequence_to] = from->first[sequence_from];
    memcpy(to->logits + (size_t)sequence_to * vocab, from->logits + (size_t)sequence_from * vocab,
           vocab * sizeof *to->logits);
    if (to->on_device)
        sh_device_cache_copy(to->on_device, sequence_to, from->on_device, sequence_from);
    else
        sh_kv_cache_copy(to->cache, sequence_to, from->cache, sequence_from);
}

size_t sh_session_prompt_bytes(const struct sh_session *s)
{
    return s->on_device ? sh_device_cache_block_bytes(s->on_device) : s->block_bytes;
}

void sh_session_set_watch(struct sh_session *s, sh_session_watch *fn, void *to)
{
    s->watch = fn;
    s->watch_to = to;
    if (fn && s->on_device)
        sh_device_cache_keep_rows(s->on_device);
}

const struct sh_kv_cache *sh_session_cache(const struct sh_session *s)
{
    return s->cache;
}

struct sh_kv_bytes sh_session_bytes(const struct sh_session *s)
{
    return s->on_device ? sh_device_cache_bytes(s->on_device) : sh_kv_cache_bytes(s->cache);
}

size_t sh_session_scratch(const struct sh_session *s)
{
    return s->on_device ? sh_device_cache_scratch(s->on_device) : 0;
}

const char *sh_session_why_host(const struct sh_session *s)
{
    return s->why_host[0] ? s->why_host : NULL;
}

struct sh_kv_kept sh_session_kept(const struct sh_session *s)
{
    return s->on_device ? sh_device_cache_kept(s->on_device) : sh_kv_cache_kept(s->cache);
}
