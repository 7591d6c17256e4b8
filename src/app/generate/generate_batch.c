/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/generate/generate_batch.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/progress.h"

struct run {                            /* a session and the texts that go through it             */
    struct sh_writing *w;
    struct sh_written *text;
    const int *of;                      /* [n]: indices of the texts, in order                    */
    int n, next;                        /* next: the first one that has no place yet              */
    struct sh_session *session;
    int turn;                           /* tokens at which a text stops, to be read anew; 0: none */
    int n_place;
    int *at;                            /* [n_place]: the text that is there; -1: none            */
    int *is_used;                       /* [n_place]: another text has been there                 */
    int32_t *tokens;                    /* of a step: all prompts that come, or one each          */
    int *start;                         /* [n_place + 1] */
    struct sh_row_likeness *likeness;   /* [n_place, n_layer * n_kv_head]; NULL: not wanted       */
    struct sh_choice *room;             /* [n_vocab] */
};

static int n_head(const struct run *r)
{
    const struct sh_arch *a = r->w->live->resident->arch;
    return a->n_layer * a->n_kv_head;
}

/* Passes on the positions and the row of a token's query: to the dump and to the likeness of rows. */
static void watch(void *to, int sequence, int layer, int head, int t, const struct sh_cache *c, const float *row)
{
    struct run *r = to;
    const struct sh_written *w = &r->text[r->at[sequence]];
    int text = r->at[sequence], i = layer * r->w->live->resident->arch->n_kv_head + head;
    if (t < w->n_again - 1)
        return;                                         /* it has been seen */
    if (r->w->dump && r->w->dump->kept) {
        r->w->dump->sequence = text;
        sh_eval_dump_kept(r->w->dump, sequence, layer, head, t, c, row);
    }
    if (r->likeness && t >= w->n_prompt)
        sh_row_likeness_add(&r->likeness[(size_t)sequence * (size_t)n_head(r) + (size_t)i], t, c->pos, row, c->n_slot);
}

/* ---- one slot of the session ---- */

/* The text is complete: adds up its rows and frees the place. */
static void leave(struct run *r, int place)
{
    struct sh_row_likeness *sum = &r->text[r->at[place]].likeness;
    for (int i = 0; i < n_head(r) && r->likeness; i++) {
        struct sh_row_likeness *l = &r->likeness[(size_t)place * (size_t)n_head(r) + (size_t)i];
        sum->sum += l->sum;
        sum->chance += l->chance;
        sum->pairs += l->pairs;
        sh_row_likeness_clear(l);
        *l = (struct sh_row_likeness){0};
    }
    r->at[place] = -1;
}

/* The next token of the text there. */
static int choose(struct run *r, int place, struct sh_err *e)
{
    struct sh_writing *w = r->w;
    struct sh_written *t = &r->text[r->at[place]];
    struct sh_stages *stages = w->live->devices.stages;
    unsigned long long since = sh_stage_begin(stages);
    int32_t token = w->sampler.temperature > 0
                        ? sh_sampler_pick(&w->sampler, sh_session_logits(r->session, place),
                                          w->live->resident->arch->n_vocab, (uint64_t)t->n_made, r->room, e)
                        : sh_session_best(r->session, place, e);
    sh_stage_end(stages, SH_STAGE_TOKENS, since, 1);
    if (token < 0) {
        sh_err_prefix(e, "after token %d", t->n_prompt + t->n_made - 1);
        return t->name ? sh_err_prefix(e, "%s", t->name) : -1;
    }
    t->made[t->n_made++] = token;
    t->at_end = w->is_end && w->is_end(w->is_end_to, token);
    if (w->on_token)
        w->on_token(w->to, r->at[place]);
    if (t->at_end || t->n_made == t->most || t->n_prompt + t->n_made == r->turn)
        leave(r, place);
    return 0;
}

/* A step with the prepared tokens, and the next token of each text that had some. */
static int step(struct run *r, int is_prompt, struct sh_err *e)
{
    double began = sh_now_s(), *seconds = is_prompt ? &r->w->prompt_s : &r->w->made_s;
    int bad = (is_prompt ? sh_session_prompt : sh_session_step)(r->session, r->tokens, r->start, NULL, NULL, e);
    *seconds += sh_now_s() - began;
    r->w->n_read += is_prompt ? r->start[r->n_place] : 0;
    for (int i = 0; i < r->n_place && !bad; i++)
        if (r->start[i + 1] > r->start[i])
            bad = choose(r, i, e);
    return bad;
}

/* Waiting texts take the free places, and their prompts are read. Returns how many; -1: failed. */
static int take_in(struct run *r, struct sh_err *e)
{
    int n = 0, came = 0;
    for (int i = 0; i < r->n_place; i++) {
        r->start[i] = n;
        if (r->at[i] >= 0 || r->next == r->n)
            continue;
        if (r->is_used[i])
            sh_session_restart(r->session, i);
        r->is_used[i] = 1;
        r->at[i] = r->of[r->next++];
        const struct sh_written *t = &r->text[r->at[i]];
        memcpy(r->tokens + n, t->prompt, (size_t)t->n_prompt * sizeof *r->tokens);
        for (int k = 0; k < t->n_made; k++)             /* of one that is read anew */
            r->tokens[n + t->n_prompt + k] = t->made[k];
        n += t->n_prompt + t->n_made;
        came++;
    }
    r->start[r->n_place] = n;
    return came && step(r, 1, e) ? -1 : came;
}

/* One more token for every text in a place. Returns how many these are; -1: failed. */
static int go_on(struct run *r, struct sh_err *e)
{
    int n = 0;
    for (int i = 0; i < r->n_place; i++) {
        r->start[i] = n;
        if (r->at[i] >= 0) {
            const struct sh_written *t = &r->text[r->at[i]];
            r->tokens[n++] = t->made[t->n_made - 1];
        }
    }
    r->start[r->n_place] = n;
    return n && step(r, 0, e) ? -1 : n;
}

static int write_all(struct run *r, struct sh_err *e)
{
    for (int came = 1, went = 1; came || went;) {
        if ((came = take_in(r, e)) < 0)
            return -1;
        if (sh_interrupted()) {
            int n = 0;
            for (int i = 0; i < r->n; i++)
                n += r->text[r->of[i]].n_made;
            return sh_fail(e, "interrupted after %d tokens", n);
        }
        if (r->w->stops && r->w->stops(r->w->to))
            return 0;
        if ((went = came && r->next < r->n ? 0 : go_on(r, e)) < 0)
            return -1;
    }
    return 0;
}

/* The angles of longrope change at the first token beyond the trained positions; those of positions in the cache do
 * not. */
static int turn_of(const struct sh_live *l, const struct sh_live_shape *shape)
{
    const struct sh_rope *r = &sh_model_arch(l->model)->rope;
    int turns = r->kind == SH_ROPE_LONG && l->positions == SH_POSITIONS_ORIGINAL && shape->n_prompt <= r->original;
    return turns ? r->original + 1 : 0;
}

/* As many as fit, or as many as requested if they fit; on the host, nothing else would refuse in time. */
static int places(struct run *r, const struct sh_live_shape *shape, struct sh_err *e)
{
    struct sh_writing *w = r->w;
    int most = w->batch && w->batch < r->n ? w->batch : r->n;
    int rows = w->live->resident->setup.rows;           /* more than go through a layer together gain nothing */
    rows = rows < SH_WRITING_SIDE ? rows : SH_WRITING_SIDE;
    most = !w->batch && most > rows ? rows : most;
    int on_host = 0, fit = most > 1 ? sh_live_fit(w->live, &w->cache, shape, most, &on_host, e) : most;
    if (fit < 0)
        return -1;
    if (w->batch && fit < most && on_host && fit)
        return sh_misused(e, "--batch %d: not enough free memory for the KV caches: at most %d fit", w->batch, fit);
    if (w->batch && fit < most && on_host)
        return sh_misused(e, "--batch %d: not enough free memory for the KV caches: not even one fits", w->batch);
    r->n_place = w->batch ? most : fit > 1 ? fit : 1;
    return 0;
}

static int open_run(struct run *r, const struct sh_live_shape *shape, struct sh_err *e)
{
    struct sh_writing *w = r->w;
    w->cache.watched = w->wants_likeness || (w->dump && w->dump->kept);
    if (places(r, shape, e) || !(r->session = sh_live_session(w->live, &w->cache, shape, r->n_place, e)))
        return -1;
    size_t n = (size_t)r->n_place, longest = 1;         /* of the prompts */
    for (int i = 0; i < r->n; i++) {
        size_t tokens = (size_t)r->text[r->of[i]].n_prompt + (size_t)r->text[r->of[i]].n_made;
        longest = tokens > longest ? tokens : longest;
    }
    if (w->sampler.temperature <= 0)
        sh_session_only_best(r->session);
    if (w->cache.watched)
        sh_session_set_watch(r->session, watch, r);
    r->at = xmalloc(n * sizeof *r->at);
    memset(r->at, -1, n * sizeof *r->at);
    r->is_used = xcalloc(n, sizeof *r->is_used);
    r->tokens = xcalloc(longest * n, sizeof *r->tokens);
    r->start = xcalloc(n + 1, sizeof *r->start);
    r->likeness = w->wants_likeness ? xcalloc(n * (size_t)n_head(r), sizeof *r->likeness) : NULL;
    r->room = xcalloc((size_t)w->live->resident->arch->n_vocab, sizeof *r->room);
    return 0;
}

/* Notes the memory of the session, if none before took more. */
static void weigh(const struct run *r)
{
    struct sh_writing *w = r->w;
    struct sh_cache_bytes bytes = sh_session_bytes(r->session);
    w->block_bytes = bytes.block > w->block_bytes ? bytes.block : w->block_bytes;
    w->at_once = r->n_place > w->at_once ? r->n_place : w->at_once;
    struct sh_kv_kept kept = sh_session_kept(r->session);
    w->peak = kept.peak > w->peak ? kept.peak : w->peak;
    if (sh_cache_bytes_sum(&bytes) < sh_cache_bytes_sum(&w->bytes))
        return;
    w->bytes = bytes;
    w->budget = kept.budget;
    w->kept = kept.kept;
    w->length = sh_session_length(r->session, 0);
}

static void close_run(struct run *r)
{
    for (int i = 0; i < r->n_place && r->at; i++)
        if (r->at[i] >= 0)
            leave(r, i);                                /* it failed on the way */
    sh_session_free(r->session);
    free(r->at);
    free(r->is_used);
    free(r->tokens);
    free(r->start);
    free(r->likeness);
    free(r->room);
}

static int write_some(struct sh_writing *w, struct sh_written *text, const int *of, int n,
                      const struct sh_live_shape *shape, struct sh_err *e)
{
    struct run r = {.w = w, .text = text, .of = of, .n = n, .turn = turn_of(w->live, shape)};
    int bad = open_run(&r, shape, e) || write_all(&r, e);
    if (!bad)
        weigh(&r);
    close_run(&r);
    return bad ? -1 : 0;
}

static int shape_of(const struct sh_live *l, const struct sh_live_cache *c, int n_prompt, int n_token,
                    struct sh_live_shape *out, struct sh_err *e)
{
    return sh_live_shape(l, c, n_prompt, n_token, out, e) || sh_live_check(l, c, out, e) ? -1 : 0;
}

int sh_writing_shape(const struct sh_live *l, const struct sh_live_cache *c, struct sh_written *t, struct sh_err *e)
{
    int n_token = t->n_prompt + t->most - 1;                    /* the last is not read */
    if (shape_of(l, c, t->n_prompt, n_token, &t->shape, e))
        return -1;
    int turn = turn_of(l, &t->shape);
    return turn && turn <= n_token ? shape_of(l, c, turn, n_token, &t->again, e) : 0;
}

/* Adds the text to a session of the shape if that remains possible: a block of one text and the length of another may
 * be too much together. */
static int joins(const struct sh_writing *w, struct sh_live_shape *shape, const struct sh_written *t)
{
    struct sh_live_shape both = *shape;
    struct sh_err ignored;
    if (!sh_live_shape_join(&both, t->n_again ? &t->again : &t->shape) ||
        sh_live_check(w->live, &w->cache, &both, &ignored))
        return 0;
    *shape = both;
    return 1;
}

/* Texts that have not run, one session after another. */
static int write_rest(struct sh_writing *w, struct sh_written *text, int n, unsigned char *has_run, struct sh_err *e)
{
    int *of = xcalloc((size_t)n, sizeof *of), bad = 0;
    for (int first = 0; first < n && !bad; first++) {
        struct sh_live_shape shape = text[first].n_again ? text[first].again : text[first].shape;
        int some = 0;
        if (has_run[first])
            continue;
        for (int i = first; i < n; i++)
            if (!has_run[i] && joins(w, &shape, &text[i])) {
                of[some++] = i;
                has_run[i] = 1;
            }
        bad = write_some(w, text, of, some, &shape, e);
    }
    free(of);
    return bad;
}

int sh_write(struct sh_writing *w, struct sh_written *text, int n, struct sh_err *e)
{
    unsigned char *has_run = xcalloc((size_t)n, 1);
    for (int i = 0; i < n; i++)
        text[i].made = xcalloc((size_t)text[i].most, sizeof *text[i].made);
    int bad = write_rest(w, text, n, has_run, e);
    if (!bad && !(w->stops && w->stops(w->to))) {       /* texts that stopped at the turn are read anew */
        for (int i = 0; i < n; i++) {
            has_run[i] = text[i].at_end || text[i].n_made == text[i].most;
            text[i].n_again = has_run[i] ? 0 : text[i].n_prompt + text[i].n_made;
        }
        bad = write_rest(w, text, n, has_run, e);
    }
    free(has_run);
    return bad ? -1 : 0;
}

void sh_written_free(struct sh_written *t)
{
    free(t->made);
    t->made = NULL;
}
