/* SPDX-License-Identifier: Apache-2.0 */
#include "src/engine/session.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/engine/host_cache.h"
#include "src/engine/sampler.h"
#include "src/engine/states.h"

struct sh_session {
    struct sh_resident *r;
    struct sh_host_cache *on_host;      /* one of the two is NULL                                 */
    struct sh_device_cache *on_device;
    struct sh_states *states;
    size_t state_bytes;                 /* of them, all sequences'                                */
    char why_host[SH_DEVICE_WHY];       /* empty: it is where it should be                        */
    int n_token, n_seq;
    int *first, *start;                 /* [n_seq]: tokens read; [n_seq + 1]: rows of the piece on its way */
    float *logits;                      /* [n_seq, n_vocab]                                       */
    struct sh_best *best;               /* [n_seq]: in place of logits; NULL: those are there     */
    sh_watch *watch;
    void *watch_to;
    int whole;                          /* tokens that must come as one block; 0: none            */
    int block;                          /* tokens of a prompt's block; 0: none                    */
    int by_block;                       /* the piece on its way is a block                        */
};

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

/* The next piece: up to the resident's rows, sequence by sequence, or one sequence's block. Its number of rows. */
static int next_piece(struct sh_session *s, struct step *p)
{
    int room = s->r->setup.rows, n = 0;
    for (int i = 0; i < s->n_seq; i++) {
        int m = p->end[i] - p->at[i];
        m = p->block && n ? 0 : p->block && m > p->block ? p->block : m;
        m = m < room - n ? m : room - n;
        if (s->on_host && m) {
            int run = sh_host_cache_find_place(s->on_host, i, s->first[i], m);
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

static int run_cache(struct sh_session *s, void *hidden, const struct sh_piece *p, struct sh_err *e)
{
    return s->on_device ? sh_device_cache_run(s->on_device, hidden, p, e)
                        : sh_host_cache_run(s->on_host, hidden, p, e);
}

static int run_layers(struct sh_session *s, const int32_t *tokens, struct sh_err *e)
{
    const int *place = s->on_host ? sh_host_cache_places(s->on_host) : NULL;
    struct sh_piece piece = {.start = s->start, .first = s->first, .by_block = s->by_block, .states = s->states,
                             .watch = s->watch, .watch_to = s->watch_to};
    if (sh_entry_run(s->r->entry, tokens, s->n_seq, s->start, place ? place : s->first, s->r->hidden, e))
        return -1;
    return run_cache(s, s->r->hidden, &piece, e);
}

/* What is wanted of n rows from `row` on, each the last one of its sequence, from `sequence` on. */
static int finish_rows(struct sh_session *s, int row, int n, int sequence, struct sh_err *e)
{
    if (s->best)
        return sh_head_choose(s->r->head, s->r->hidden, row, n, s->best + sequence, e);
    return sh_head_run(s->r->head, s->r->hidden, row, n, s->logits + (size_t)sequence * (size_t)s->r->arch->n_vocab, e);
}

/* Logits of all rows of a sequence, in blocks. */
static int take_rows(struct sh_session *s, int sequence, const struct step *p, struct sh_err *e)
{
    size_t vocab = (size_t)s->r->arch->n_vocab;
    int end = s->start[sequence + 1];
    for (int row = s->start[sequence], n; row < end; row += n) {
        n = end - row < s->r->logits_rows ? end - row : s->r->logits_rows;
        if (sh_head_run(s->r->head, s->r->hidden, row, n, s->r->logits, e))
            return -1;
        p->take(p->to, sequence, s->first[sequence] + row - s->start[sequence], n, s->r->logits);
        if (row + n == end)
            memcpy(s->logits + (size_t)sequence * vocab, s->r->logits + (size_t)(n - 1) * vocab, vocab * sizeof(float));
    }
    return s->best && end > s->start[sequence] ? finish_rows(s, end - 1, 1, sequence, e) : 0;
}

/* Sequences with one row each, which is their last, are neighbours, and so are their logits: the output matrix is read
 * once for all of them. */
static int make_logits(struct sh_session *s, const struct step *p, struct sh_err *e)
{
    for (int i = 0, some; i < s->n_seq; i += some) {
        int n = s->start[i + 1] - s->start[i], is_last = p->at[i] == p->end[i], alike = 0;
        for (int k = i; !p->take && k < s->n_seq && s->start[k + 1] - s->start[k] == 1 && p->at[k] == p->end[k]; k++)
            alike++;
        some = alike ? alike : 1;
        if (p->take ? take_rows(s, i, p, e) : n > 0 && is_last && finish_rows(s, s->start[i + 1] - 1, some, i, e))
            return -1;
    }
    return 0;
}

/* Before anything changes. */
static int check(const struct sh_session *s, const int32_t *tokens, const int *start, int block, struct sh_err *e)
{
    const struct sh_arch *a = s->r->arch;
    for (int i = 0; i < s->n_seq; i++) {
        int n = start[i + 1] - start[i], is_whole = block && !s->first[i] && n >= s->whole;
        if (n && !is_whole && s->whole && (block || s->first[i] < s->whole))
            return sh_fail(e, "sequence %d: its first %d tokens must come as one block", i, s->whole);
        if (n > s->n_token - s->first[i])
            return sh_fail(e, "sequence %d: %d more tokens after %d exceed its maximum of %d", i, n, s->first[i],
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
    if (check(s, tokens, start, block, e))
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
    return read_tokens(s, tokens, start, 0, take, to, e);
}

int sh_session_prompt(struct sh_session *s, const int32_t *tokens, const int *start, sh_session_take *take, void *to,
                      struct sh_err *e)
{
    return read_tokens(s, tokens, start, s->block, take, to, e);
}

/* Rows [at, at + n) of a sequence, or those of all sequences, which have n each. */
static int run_rows(struct sh_session *s, float *hidden, int sequence, int n, struct sh_err *e)
{
    struct sh_piece piece = {.start = s->start, .first = s->first, .by_block = s->by_block, .states = s->states,
                             .watch = s->watch, .watch_to = s->watch_to};
    for (int i = 0; i < s->n_seq; i++)
        s->start[i + 1] = s->start[i] + (sequence < 0 || i == sequence ? n : 0);
    if (run_cache(s, hidden, &piece, e))
        return -1;
    for (int i = 0; i < s->n_seq; i++)
        s->first[i] += s->start[i + 1] - s->start[i];
    return 0;
}

void sh_session_feed(struct sh_session *s, int layer, const struct sh_qkv *x, int rows, int n)
{
    int *end = xcalloc((size_t)s->n_seq, sizeof *end);
    struct sh_piece piece = {.start = s->start, .first = s->first, .end = end, .watch = s->watch,
                             .watch_to = s->watch_to};
    for (int i = 0; i < s->n_seq; i++) {
        s->start[i + 1] = s->start[i] + rows;
        end[i] = s->start[i] + n;
    }
    sh_host_cache_feed(s->on_host, layer, x, &piece);
    for (int i = 0; i < s->n_seq; i++)
        s->first[i] = n;
    free(end);
}

int sh_session_layers(struct sh_session *s, void *hidden, int n, int prompt, struct sh_err *e)
{
    int rows = s->r->setup.rows;
    size_t width = sh_arch_row(s->r->arch);
    if ((long long)n * s->n_seq <= rows && s->first[0] >= prompt) {
        s->by_block = 0;
        return run_rows(s, hidden, -1, n, e);
    }
    for (int i = 0; i < s->n_seq; i++)
        for (int t = 0, m; t < n; t += m) {
            size_t row = (size_t)i * (size_t)n + (size_t)t;
            int left = prompt - s->first[i], most = rows;
            s->by_block = left > 0;
            if (s->by_block)
                most = left < s->block ? left : s->block;
            m = n - t < most ? n - t : most;
            if (run_rows(s, (float *)hidden + row * width, i, m, e))
                return -1;
        }
    return 0;
}

/* ---- the object ---- */

static int check_rows(const struct sh_resident *r, const struct sh_session_setup *s, struct sh_err *e)
{
    if (s->positions == SH_POSITIONS_ORIGINAL && s->n_token > r->setup.positions)
        return sh_misused(e, "found sequences of %d tokens, expected at most the %d positions that the model was "
                          "opened for", s->n_token, r->setup.positions);
    if (s->block < 0 || s->block > r->setup.rows)
        return sh_misused(e, "found blocks of %d tokens, expected at most the %d that the model was opened for",
                          s->block, r->setup.rows);
    if (s->whole && s->block < s->prefill)
        return sh_misused(e, "found a prompt of %d tokens to read as one block, expected at most %d", s->prefill,
                          s->block);
    return 0;
}

/* The cache, on the device where it can be. */
static int make_cache(struct sh_session *s, const struct sh_session_setup *kv, struct sh_err *e)
{
    if (sh_kv_setup_check(kv, e))
        return -1;
    const struct sh_resident_setup *r = &s->r->setup;
    if (s->r->is_host || sh_device_cache_why_not(s->r, kv, s->why_host))
        s->on_host = sh_host_cache_new(s->r, kv, e);
    else
        s->on_device = sh_device_cache_new(s->r, kv, e);
    if (s->on_host && s->why_host[0] && r->on_host)
        r->on_host(r->to, s->why_host);
    return s->on_host || s->on_device ? 0 : -1;
}

int sh_session_check(const struct sh_arch *a, const struct sh_session_setup *setup, struct sh_err *e)
{
    struct sh_session_setup kv = *setup;
    kv.arch = a;
    return sh_kv_setup_check(&kv, e);
}

/* On the host no allocation fails before the memory is used, so half of the free memory is left to others. */
static int fit_on_host(const struct sh_resident *r, const struct sh_session_setup *kv, int most, struct sh_err *e)
{
    struct sh_kv_cache *one = sh_kv_cache_new(kv, e);
    if (!one)
        return -1;
    struct sh_cache_bytes bytes = sh_kv_cache_bytes(one);
    size_t each = sh_cache_bytes_sum(&bytes) + sh_states_bytes(kv) + (size_t)r->arch->n_vocab * sizeof(float);
    size_t fit = sh_host_memory_free() / 2 / each;
    sh_kv_cache_free(one);
    return fit < (size_t)most ? (int)fit : most;
}

int sh_session_fit(const struct sh_resident *r, const struct sh_session_setup *setup, int most, int *on_host,
                   struct sh_err *e)
{
    char why[SH_DEVICE_WHY];
    struct sh_session_setup kv = *setup;
    kv.arch = r->arch;
    kv.n_seq = 1;
    if (check_rows(r, setup, e) || sh_kv_setup_check(&kv, e))
        return -1;
    *on_host = r->is_host || sh_device_cache_why_not(r, &kv, why);
    if (*on_host)
        return fit_on_host(r, &kv, most, e);
    return sh_device_cache_fit(r, &kv, most);
}

struct sh_session *sh_session_new(struct sh_resident *r, const struct sh_session_setup *setup, struct sh_err *e)
{
    struct sh_session_setup kv = *setup;
    kv.arch = r->arch;
    if (check_rows(r, setup, e))
        return NULL;
    struct sh_session *s = xcalloc(1, sizeof *s);
    *s = (struct sh_session){.r = r, .n_seq = setup->n_seq, .n_token = setup->n_token, .block = setup->block,
                             .whole = setup->whole ? setup->prefill : 0};
    if (make_cache(s, &kv, e) || !(s->states = sh_states_new(r, &kv, e))) {
        sh_session_free(s);
        return NULL;
    }
    size_t n_seq = (size_t)setup->n_seq, vocab = (size_t)r->arch->n_vocab;
    s->first = xcalloc(n_seq, sizeof *s->first);
    s->start = xcalloc(n_seq + 1, sizeof *s->start);
    s->state_bytes = n_seq * sh_states_bytes(&kv);
    s->logits = xcalloc(n_seq * vocab, sizeof *s->logits);
    return s;
}

void sh_session_free(struct sh_session *s)
{
    if (!s)
        return;
    sh_device_cache_free(s->on_device);
    sh_host_cache_free(s->on_host);
    sh_states_free(s->states);
    free(s->first);
    free(s->start);
    free(s->logits);
    free(s->best);
    free(s);
}

const float *sh_session_logits(const struct sh_session *s, int sequence)
{
    return s->logits + (size_t)sequence * (size_t)s->r->arch->n_vocab;
}

void sh_session_only_best(struct sh_session *s)
{
    if (!s->best && sh_head_can_choose(s->r->head))
        s->best = xcalloc((size_t)s->n_seq, sizeof *s->best);
}

int32_t sh_session_best(const struct sh_session *s, int sequence, struct sh_err *e)
{
    const struct sh_best *best = s->best ? s->best + sequence : NULL;
    return best ? sh_sampler_check(best->column, best->value, e)
                : sh_sampler_best(sh_session_logits(s, sequence), s->r->arch->n_vocab, e);
}

int sh_session_length(const struct sh_session *s, int sequence)
{
    return s->first[sequence];
}

void sh_session_restart(struct sh_session *s, int sequence)
{
    s->first[sequence] = 0;
    sh_states_restart(s->states, sequence);
    if (s->on_device)
        sh_device_cache_restart(s->on_device, sequence);
    else
        sh_kv_cache_restart(sh_host_cache_kv(s->on_host), sequence);
}

void sh_session_fork(struct sh_session *to, int sequence_to, const struct sh_session *from, int sequence_from)
{
    size_t vocab = (size_t)from->r->arch->n_vocab;
    to->first[sequence_to] = from->first[sequence_from];
    memcpy(to->logits + (size_t)sequence_to * vocab, from->logits + (size_t)sequence_from * vocab,
           vocab * sizeof *to->logits);
    sh_states_copy(to->states, sequence_to, from->states, sequence_from);
    if (to->best)
        to->best[sequence_to] = from->best[sequence_from];
    if (to->on_device)
        sh_device_cache_copy(to->on_device, sequence_to, from->on_device, sequence_from);
    else
        sh_kv_cache_copy(sh_host_cache_kv(to->on_host), sequence_to, sh_host_cache_kv(from->on_host), sequence_from);
}

void sh_session_set_watch(struct sh_session *s, sh_watch *fn, void *to)
{
    s->watch = fn;
    s->watch_to = to;
    if (fn && s->on_device)
        sh_device_cache_keep_rows(s->on_device);
}

const struct sh_kv_cache *sh_session_cache(const struct sh_session *s)
{
    return s->on_host ? sh_host_cache_kv(s->on_host) : NULL;
}

struct sh_cache_bytes sh_session_bytes(const struct sh_session *s)
{
    struct sh_cache_bytes b = s->on_device ? sh_device_cache_bytes(s->on_device) : sh_host_cache_bytes(s->on_host);
    b.state = s->state_bytes;
    return b;
}

const char *sh_session_why_host(const struct sh_session *s)
{
    return s->why_host[0] ? s->why_host : NULL;
}

struct sh_kv_kept sh_session_kept(const struct sh_session *s)
{
    return s->on_device ? sh_device_cache_kept(s->on_device) : sh_kv_cache_kept(sh_host_cache_kv(s->on_host));
}
