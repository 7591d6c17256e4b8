/* SPDX-License-Identifier: Apache-2.0 */
/* Texts token by token through a session for each cell, in lockstep: as a server decodes, and the independent test of
 * eval_sweep.c. */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/engine/eval_reading.h"

struct stream {
    struct sh_reading *r;
    struct sh_session **session;        /* [n_run]                                                */
    int32_t *tokens;                    /* [n_text, most of a step]                               */
    int *start;                         /* [n_text + 1]                                           */
};

static void close_all(struct stream *s)
{
    for (int i = 0; i < s->r->n_run && s->session; i++)
        sh_session_free(s->session[i]);
    free(s->session);
    free(s->tokens);
    free(s->start);
}

static struct sh_session *open_run(const struct sh_reading *r, int run, struct sh_err *e)
{
    int *budget;
    struct sh_session_setup setup = sh_reading_setup(r, run, r->n_text, &budget);
    struct sh_session *s = sh_session_new(r->v->resident, &setup, e);
    free(budget);
    return s;
}

/* The texts' caches; -1: one of them cannot be, and none is open. */
static int open_all(struct stream *s, struct sh_reading *r, struct sh_err *e)
{
    size_t n = (size_t)r->n_text, most = r->v->block ? (size_t)r->v->block : 1;
    *s = (struct stream){.r = r, .session = xcalloc((size_t)r->n_run, sizeof *s->session),
                         .tokens = xcalloc(n * most, sizeof *s->tokens), .start = xcalloc(n + 1, sizeof *s->start)};
    for (int i = 0; i < r->n_run; i++) {
        if (!(s->session[i] = open_run(r, i, e))) {
            close_all(s);
            return sh_reading_no_run(r, i, e);
        }
        if (r->v->watch && r->v->watched + 1 == i)
            sh_session_set_watch(s->session[i], r->v->watch, r->v->to);
    }
    return 0;
}

/* After the texts: what the cache took, and where it was. */
static void weigh(const struct stream *s, int run)
{
    const struct sh_session *session = s->session[run];
    struct sh_cache_bytes bytes = sh_session_bytes(session);
    struct sh_kv_kept kept = sh_session_kept(session);
    for (int i = 0; i < s->r->n_text; i++) {
        struct sh_eval_total *total = sh_reading_total(s->r, i, run);
        struct sh_eval_sums *sums = &total->all;
        sums->peak_tokens = kept.peak;
        sums->budget_tokens = kept.budget;
        sums->texts = 1;
        sums->kv_bytes = sh_cache_bytes_sum(&bytes) / (size_t)s->r->n_text;
        sums->read = s->r->n_token;
        sh_eval_place_add(&total->place, sh_session_cache(session) != NULL, sh_session_why_host(session));
    }
}

/* Tokens [t, t + n) of all texts through one cache; n > 1: a prompt's block. */
static int step(struct stream *s, int run, int t, int n, struct sh_err *e)
{
    struct sh_reading *r = s->r;
    for (int i = 0; i < r->n_text; i++) {
        memcpy(s->tokens + i * n, r->text[i].tokens + t, (size_t)n * sizeof *s->tokens);
        s->start[i + 1] = (i + 1) * n;
    }
    return (t < sh_reading_prompt(r) ? sh_session_prompt : sh_session_step)(s->session[run], s->tokens, s->start,
                                                                            sh_reading_take, r, e);
}

/* The block's tokens of all texts through one cache. */
static int read_block(struct stream *s, int run, int end, struct sh_err *e)
{
    struct sh_reading *r = s->r;
    double began = sh_now_s();
    r->run = run;
    for (int t = r->first, n; t < end; t += n) {
        int left = sh_reading_prompt(r) - t;
        n = left <= 0 ? 1 : left < r->v->block ? left : r->v->block;
        if (step(s, run, t, n, e))
            return -1;
        if (sh_interrupted())
            return sh_fail(e, "interrupted at token %d of %d", t, r->n_token);
    }
    sh_reading_total(r, 0, run)->all.seconds += sh_now_s() - began;
    if (r->v->progress)
        r->v->progress(r->v->progress_to, r->n_text * (end - r->first));
    return 0;
}

int sh_eval_stream(struct sh_reading *r, struct sh_err *e)
{
    struct stream s;
    int bad = 0;
    if (open_all(&s, r, e))
        return -1;
    for (r->first = 0; r->first < r->n_token && !bad; r->first += r->block) {
        int end = r->n_token - r->first < r->block ? r->n_token : r->first + r->block;
        for (int i = 0; i < r->n_run && !bad; i++)
            bad = read_block(&s, i, end, e);
    }
    for (int i = 0; i < r->n_run && !bad; i++)
        weigh(&s, i);
    close_all(&s);
    return bad;
}

int sh_eval_stream_fits(struct sh_reading *r)
{
    struct sh_err e;
    struct stream s;
    int travels = 0;
    if (r->v->resident->is_host)
        return r->n_text == 1;
    if (open_all(&s, r, &e))
        return 0;
    for (int i = 0; i < r->n_run; i++)
        travels |= sh_session_why_host(s.session[i]) != NULL;
    close_all(&s);
    return !travels || r->n_text == 1;
}
