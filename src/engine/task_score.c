/* SPDX-License-Identifier: Apache-2.0 */
#include "src/engine/task_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

struct listener {
    const struct sh_task_prompt *p;
    struct sh_task_score *out;
    int n_vocab;
};

static void take(void *to, int sequence, int position, int n, const float *logits)
{
    const struct listener *l = to;
    const int32_t *next = l->p->choice[sequence].ids + position + 1;
    for (int i = 0; i < n; i++, logits += l->n_vocab) {
        struct sh_eval_row row = sh_eval_row_of(logits, l->n_vocab);
        l->out->sum[sequence] += (double)logits[next[i]] - row.total;
        l->out->is_greedy[sequence] &= row.best == next[i];
    }
}

/* Tokens that all choices begin with, among those whose logits are not needed. */
static int shared_tokens(const struct sh_task_prompt *p)
{
    int n = p->choice[0].n_context - 1;
    for (int i = 1; i < p->n; i++) {
        int m = p->choice[i].n_context - 1, k = 0;
        while (k < n && k < m && p->choice[i].ids[k] == p->choice[0].ids[k])
            k++;
        n = k;
    }
    return n;
}

/* What all begin with is read once; the other choices go on from there. */
static int read_shared(struct sh_session *s, const struct sh_task_prompt *p, int n, struct sh_err *e)
{
    int start[SH_TASK_CHOICES + 1] = {0};
    for (int i = 1; i <= p->n; i++)
        start[i] = n;
    if (sh_session_step(s, p->choice[0].ids, start, NULL, NULL, e))
        return -1;
    for (int i = 1; i < p->n; i++)
        sh_session_fork(s, i, s, 0);
    return 0;
}

/* The contexts from `shared` on without their last token, whose logits are not needed; or the rest, up to the
 * choices' last token but one. */
static int read_part(struct sh_session *s, const struct sh_task_prompt *p, int shared, int is_rest,
                     struct listener *l, struct sh_err *e)
{
    int start[SH_TASK_CHOICES + 1] = {0};
    int32_t *tokens = xmalloc((size_t)p->n * (size_t)(p->longest + 1) * sizeof *tokens);
    for (int i = 0; i < p->n; i++) {
        const struct sh_task_choice *c = &p->choice[i];
        int from = is_rest ? c->n_context - 1 : shared, n = (is_rest ? c->n - 1 : c->n_context - 1) - from;
        memcpy(tokens + start[i], c->ids + from, (size_t)n * sizeof *tokens);
        start[i + 1] = start[i] + n;
    }
    int bad = sh_session_step(s, tokens, start, is_rest ? take : NULL, l, e);
    free(tokens);
    return bad;
}

static void choose(const struct sh_task_prompt *p, struct sh_task_score *s)
{
    for (int i = 1; i < p->n; i++) {
        if (s->sum[i] > s->sum[s->best])
            s->best = i;
        if (s->sum[i] / p->choice[i].characters > s->sum[s->best_norm] / p->choice[s->best_norm].characters)
            s->best_norm = i;
    }
}

/* *budget: of every head, [n_layer * n_kv_head]; the caller frees. */
static struct sh_session_setup setup_of(const struct sh_task_reader *r, const struct sh_task_prompt *p, int tokens,
                                        int **budget)
{
    const struct sh_arch *a = r->resident->arch;
    int n = a->n_layer * a->n_kv_head;
    *budget = xmalloc((size_t)n * sizeof **budget);
    for (int i = 0; i < n; i++)
        (*budget)[i] = tokens;
    return (struct sh_session_setup){.arch = a, .spec = r->spec, .budget = *budget, .n_seq = p->n,
                                     .n_token = p->longest, .prefill = r->prefill, .format = r->format,
                                     .seed = r->seed};
}

int sh_task_score_check(const struct sh_task_reader *r, const struct sh_task_prompt *p, struct sh_err *e)
{
    int *budget;
    struct sh_session_setup setup = setup_of(r, p, sh_budget_tokens(&r->budget, p->longest), &budget);
    int bad = sh_kv_setup_check(&setup, e);
    free(budget);
    return bad ? sh_err_prefix(e, "line %d", p->line) : 0;
}

int sh_task_score_item(const struct sh_task_reader *r, const struct sh_task_prompt *p, struct sh_task_score *out,
                       struct sh_err *e)
{
    int tokens = sh_budget_tokens(&r->budget, p->longest), *budget;
    struct sh_session_setup setup = setup_of(r, p, tokens, &budget);
    struct listener l = {p, out, r->resident->arch->n_vocab};
    struct sh_session *s = sh_session_new(r->resident, &setup, e);
    *out = (struct sh_task_score){.budget_tokens = tokens};
    for (int i = 0; i < p->n; i++) {
        out->is_greedy[i] = 1;
        out->read += p->choice[i].n - 1;
    }
    int shared = shared_tokens(p);
    out->read -= (long long)(p->n - 1) * shared;
    int bad = !s || (shared && read_shared(s, p, shared, e)) || read_part(s, p, shared, 0, &l, e) ||
              read_part(s, p, shared, 1, &l, e);
    for (int i = 0; i < p->n && !bad; i++)
        if (!isfinite(out->sum[i]))
            bad = sh_fail(e, "the log-likelihood of choice %d is %f", i, out->sum[i]);
    if (!bad) {
        struct sh_cache_bytes bytes = sh_session_bytes(s);
        out->kv_bytes = sh_cache_bytes_sum(&bytes) / (size_t)p->n;
        sh_eval_place_add(&out->place, sh_session_cache(s) != NULL, sh_session_why_host(s));
        choose(p, out);
    }
    sh_session_free(s);
    free(budget);
    return bad ? sh_err_prefix(e, "line %d", p->line) : 0;
}
