/* SPDX-License-Identifier: Apache-2.0 */
/* See eval.h. */
#include "src/engine/eval.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/mem.h"
#include "src/base/progress.h"

enum { BLOCK_NUMBERS = 1 << 22,         /* logits of the full cache that are held at most         */
       WORTH_THREADS = 1 << 14 };       /* logits: below that, waking them takes longer           */

struct reading {                        /* one text on its way */
    const struct sh_eval *v;
    const struct sh_eval_text *text;
    int n_vocab, n_threads;
    int block, first;                   /* first: position of the block                           */
    float *logits;                      /* [block, n_vocab]: of the full cache                    */
    struct sh_eval_row *row;            /* [block]: the same rows                                 */
    struct sh_eval_point *point;        /* [block]                                                */
    struct sh_session *full, **session; /* [n_cell]                                               */
    int *answer_at;                     /* [n_token]: the answer that a token belongs to, or -1   */
    unsigned char *missed;              /* [n_cell + 1, n_answer]: some token was not the likeliest; last: full */
    struct sh_eval_total *total;        /* of the session that reads                              */
    int cell;                           /* its number; -1: the full cache                         */
};

static int next_token(const struct reading *r, int position)
{
    return position + 1 < r->text->n_token ? r->text->tokens[position + 1] : -1;
}

/* A row counts where the token that it predicts lies. */
static void add(struct reading *r, int position, const struct sh_eval_point *p)
{
    struct sh_eval_total *t = r->total;
    int next = position + 1, answer = p->has_next ? r->answer_at[next] : -1;
    sh_eval_add(&t->all, p);
    if (!p->has_next)
        return;
    sh_eval_add(&t->part[SH_EVAL_POSITION][sh_eval_bucket(next + 1)], p);
    sh_eval_add(&t->part[SH_EVAL_LENGTH][sh_eval_bucket(r->text->n_token)], p);
    if (answer < 0)
        return;
    const struct sh_eval_answer *a = &r->text->answer[answer];
    int of = r->cell < 0 ? r->v->n_cell : r->cell;
    sh_eval_add(&t->answers, p);
    if (a->said >= 0)
        sh_eval_add(&t->part[SH_EVAL_DISTANCE][sh_eval_bucket(a->from - a->said)], p);
    r->missed[(size_t)of * (size_t)r->text->n_answer + (size_t)answer] |= !p->is_right;
}

/* Rows are judged side by side, and added up in their order. */
static void take(void *to, int sequence, int position, int n, const float *logits)
{
    struct reading *r = to;
    size_t vocab = (size_t)r->n_vocab;
    int is_full = r->cell < 0, first = position - r->first;
#pragma omp parallel for num_threads(r->n_threads) if ((size_t)n * vocab > WORTH_THREADS)
    for (int k = 0; k < n; k++) {
        struct sh_eval_row *full = &r->row[first + k];
        const float *own = logits + (size_t)k * vocab;
        if (is_full) {
            float *copy = r->logits + (size_t)(first + k) * vocab;
            memcpy(copy, own, vocab * sizeof *copy);
            *full = sh_eval_row_of(copy, r->n_vocab);
        }
        struct sh_eval_row row = is_full ? *full : sh_eval_row_of(own, r->n_vocab);
        r->point[k] = sh_eval_point_of(&row, is_full ? NULL : full, next_token(r, position + k), r->n_vocab);
    }
    for (int k = 0; k < n; k++)
        add(r, position + k, &r->point[k]);
    if (r->v->take && r->v->watched == r->cell)
        r->v->take(r->v->to, sequence, position, n, logits);
}

/* Budgets [n_layer * n_kv_head] of a cell; caller frees. */
static int *budgets(const struct sh_eval *v, const struct sh_eval_cell *c, int n_token)
{
    const struct sh_arch *a = v->resident->arch;
    int n = a->n_layer * a->n_kv_head, *budget = xmalloc((size_t)n * sizeof *budget);
    for (int i = 0; i < n; i++)
        budget[i] = c->tokens ? c->tokens(c->plan, i / a->n_kv_head, i % a->n_kv_head, n_token)
                              : sh_budget_tokens(&c->budget, n_token);
    return budget;
}

static struct sh_session *open_cell(const struct sh_eval *v, const struct sh_eval_cell *c, int number, int n_token,
                                    struct sh_err *e)
{
    int *budget = budgets(v, c, n_token);
    struct sh_session_setup setup = {.spec = c->spec, .budget = budget, .n_seq = 1, .n_token = n_token,
                                     .length = n_token, .prefill = v->prefill, .format = c->format, .seed = v->seed};
    struct sh_session *s = sh_session_new(v->resident, &setup, e);
    if (s && v->watch && v->watched == number)
        sh_session_set_watch(s, v->watch, v->to);
    free(budget);
    if (s && v->say && sh_session_why_host(s))
        v->say(v->progress_to, sh_session_why_host(s));
    return s;
}

/* After a text: what its cache took. */
static void weigh(const struct sh_session *s, struct sh_eval_sums *sums)
{
    struct sh_kv_bytes bytes = sh_session_bytes(s);
    struct sh_kv_kept kept = sh_session_kept(s);
    sums->peak_tokens = kept.peak > sums->peak_tokens ? kept.peak : sums->peak_tokens;
    sums->budget_tokens += kept.budget;
    sums->texts++;
    sums->kv_bytes = sh_kv_bytes_sum(&bytes) > sums->kv_bytes ? sh_kv_bytes_sum(&bytes) : sums->kv_bytes;
}

static int read_block(struct reading *r, struct sh_session *s, int cell, struct sh_eval_total *total, struct sh_err *e)
{
    int left = r->text->n_token - r->first, n = left < r->block ? left : r->block;
    double began = sh_now_s();
    r->total = total;
    r->cell = cell;
    if (sh_session_step(s, r->text->tokens + r->first, (int[]){0, n}, take, r, e))
        return -1;
    total->all.seconds += sh_now_s() - began;
    total->all.read += n;
    if (r->v->progress)
        r->v->progress(r->v->progress_to, n);
    return sh_interrupted() ? sh_fail(e, "interrupted at token %d of %d", r->first, r->text->n_token) : 0;
}

static void count_answers(const struct reading *r, int of, struct sh_eval_total *t)
{
    const unsigned char *missed = r->missed + (size_t)of * (size_t)r->text->n_answer;
    for (int i = 0; i < r->text->n_answer; i++) {
        const struct sh_eval_answer *a = &r->text->answer[i];
        t->n_answer++;
        t->n_right += !missed[i];
        if (a->said < 0)
            continue;
        int bucket = sh_eval_bucket(a->from - a->said);
        t->answered[bucket]++;
        t->right[bucket] += !missed[i];
    }
}

static int read_blocks(struct reading *r, struct sh_eval_total *full, struct sh_eval_total *total, struct sh_err *e)
{
    int n = r->v->n_cell;
    for (r->first = 0; r->first < r->text->n_token; r->first += r->block) {
        if (read_block(r, r->full, -1, full, e))
            return -1;
        for (int i = 0; i < n; i++)
            if (read_block(r, r->session[i], i, &total[i], e))
                return -1;
    }
    weigh(r->full, &full->all);
    count_answers(r, n, full);
    for (int i = 0; i < n; i++) {
        weigh(r->session[i], &total[i].all);
        count_answers(r, i, &total[i]);
    }
    return 0;
}

static int open_all(struct reading *r, const struct sh_eval_cell *whole, struct sh_err *e)
{
    if (!(r->full = open_cell(r->v, whole, -1, r->text->n_token, e)))
        return -1;
    for (int i = 0; i < r->v->n_cell; i++)
        if (!(r->session[i] = open_cell(r->v, &r->v->cell[i], i, r->text->n_token, e)))
            return -1;
    return 0;
}

static void mark_answers(struct reading *r)
{
    const struct sh_eval_text *x = r->text;
    r->answer_at = xmalloc((size_t)x->n_token * sizeof *r->answer_at);
    r->missed = xcalloc((size_t)(r->v->n_cell + 1) * (size_t)(x->n_answer + 1), 1);
    for (int t = 0; t < x->n_token; t++)
        r->answer_at[t] = -1;
    for (int i = 0; i < x->n_answer; i++)
        for (int t = x->answer[i].from; t < x->answer[i].to; t++)
            r->answer_at[t] = i;
}

int sh_eval_read(const struct sh_eval *v, const struct sh_eval_text *text, struct sh_eval_total *full,
                 struct sh_eval_total *total, struct sh_err *e)
{
    struct sh_policy_spec all;
    struct sh_eval_cell whole = {.spec = &all, .budget = {.share = 1}, .format = {.bits = 32}};
    struct reading r = {.v = v, .text = text, .n_vocab = v->resident->arch->n_vocab};
    if (sh_policy_parse("full", &all, e))
        return -1;
    r.block = BLOCK_NUMBERS / r.n_vocab;
    r.block = r.block < 1 ? 1 : r.block > v->resident->setup.rows ? v->resident->setup.rows : r.block;
    r.logits = xmalloc((size_t)r.block * (size_t)r.n_vocab * sizeof *r.logits);
    r.row = xmalloc((size_t)r.block * sizeof *r.row);
    r.point = xmalloc((size_t)r.block * sizeof *r.point);
    r.n_threads = v->resident->setup.n_threads > 0 ? v->resident->setup.n_threads : omp_get_max_threads();
    r.session = xcalloc((size_t)v->n_cell + 1, sizeof *r.session);
    mark_answers(&r);
    int bad = open_all(&r, &whole, e) || read_blocks(&r, full, total, e);
    for (int i = 0; i < v->n_cell; i++)
        sh_session_free(r.session[i]);
    sh_session_free(r.full);
    free(r.answer_at);
    free(r.missed);
    free(r.session);
    free(r.row);
    free(r.point);
    free(r.logits);
    return bad ? -1 : 0;
}

int sh_eval_check(const struct sh_eval *v, int n_token, struct sh_err *e)
{
    char text[SH_BUDGET_TEXT];
    for (int i = 0; i < v->n_cell; i++) {
        int *budget = budgets(v, &v->cell[i], n_token);
        struct sh_kv_setup setup = {.arch = v->resident->arch, .spec = v->cell[i].spec, .budget = budget, .n_seq = 1,
                                    .n_token = n_token, .prefill = v->prefill, .format = v->cell[i].format};
        int bad = sh_kv_setup_check(&setup, e);
        free(budget);
        if (bad)
            return sh_err_prefix(e, "a text of %d tokens, budget %s", n_token,
                                 sh_budget_text(&v->cell[i].budget, text));
    }
    return 0;
}
