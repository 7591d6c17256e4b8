/* SPDX-License-Identifier: Apache-2.0 */
#include "src/engine/eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/team.h"
#include "src/engine/eval_reading.h"

enum { BLOCK_NUMBERS = 1 << 22,         /* logits of the full cache that are held, of a text, */
       MOST_NUMBERS = 1 << 26,          /* and of all texts, at most                              */
       WORTH_THREADS = 1 << 14 };       /* logits: below that, waking them takes longer           */

struct sh_eval_total *sh_reading_total(const struct sh_reading *r, int text, int run)
{
    return &r->total[(size_t)text * (size_t)r->n_run + (size_t)run];
}

/* A row counts at the position of the token that it predicts. */
static void add(struct sh_reading *r, int text, int position, const struct sh_eval_point *p)
{
    struct sh_eval_total *t = sh_reading_total(r, text, r->run);
    int next = position + 1, answer = p->has_next ? r->answer_at[(size_t)text * (size_t)r->n_token + (size_t)next] : -1;
    sh_eval_add_row(t, p);
    if (!p->has_next)
        return;
    sh_eval_add(&t->part[SH_EVAL_POSITION][sh_eval_bucket(next + 1)], p);
    sh_eval_add(&t->part[SH_EVAL_LENGTH][sh_eval_bucket(r->n_token)], p);
    if (answer < 0)
        return;
    const struct sh_eval_text *x = &r->text[text];
    const struct sh_eval_answer *a = &x->answer[answer];
    sh_eval_add(&t->answers, p);
    if (a->said >= 0)
        sh_eval_add(&t->part[SH_EVAL_DISTANCE][sh_eval_bucket(a->from - a->said)], p);
    r->missed[text][(size_t)r->run * (size_t)x->n_answer + (size_t)answer] |= !p->is_right;
}

struct judged {                         /* rows that take() was given */
    struct sh_reading *r;
    int sequence, position;
    size_t first;                       /* of r->row                  */
    const float *logits;
};

static void judge(void *arg, int k)
{
    const struct judged *j = arg;
    struct sh_reading *r = j->r;
    size_t vocab = (size_t)r->n_vocab;
    int is_full = r->run == 0, next = j->position + k + 1;
    struct sh_eval_row *full = &r->row[j->first + (size_t)k];
    const float *own = j->logits + (size_t)k * vocab;
    if (is_full) {
        float *copy = r->logits + (j->first + (size_t)k) * vocab;
        memcpy(copy, own, vocab * sizeof *copy);
        *full = sh_eval_row_of(copy, r->n_vocab);
    }
    struct sh_eval_row row = is_full ? *full : sh_eval_row_of(own, r->n_vocab);
    r->point[k] = sh_eval_point_of(&row, is_full ? NULL : full,
                                   next < r->n_token ? r->text[j->sequence].tokens[next] : -1, r->n_vocab);
}

/* Side by side, and added up in their order. */
void sh_reading_take(void *to, int sequence, int position, int n, const float *logits)
{
    struct sh_reading *r = to;
    struct sh_stages *stages = r->v->resident->setup.stages;
    unsigned long long since = sh_stage_begin(stages);
    struct judged j = {r, sequence, position,
                       (size_t)sequence * (size_t)r->block + (size_t)(position - r->first), logits};
    sh_team_each((size_t)n * (size_t)r->n_vocab > WORTH_THREADS ? r->n_threads : 1, n, judge, &j);
    for (int k = 0; k < n; k++)
        add(r, sequence, position + k, &r->point[k]);
    sh_stage_end(stages, SH_STAGE_STATISTICS, since, 1);
    if (r->v->take && r->v->watched + 1 == r->run)
        r->v->take(r->v->to, sequence, position, n, logits);
}

void sh_reading_take_same(struct sh_reading *r, int sequence, int position, int n)
{
    size_t first = (size_t)sequence * (size_t)r->block + (size_t)(position - r->first);
    for (int k = 0; k < n; k++) {
        int next = position + k + 1;
        struct sh_eval_point p = sh_eval_point_of(&r->row[first + (size_t)k], NULL,
                                                  next < r->n_token ? r->text[sequence].tokens[next] : -1, r->n_vocab);
        add(r, sequence, position + k, &p);
    }
    if (r->v->take && r->v->watched + 1 == r->run)
        r->v->take(r->v->to, sequence, position, n, r->logits + first * (size_t)r->n_vocab);
}

const struct sh_eval_cell *sh_reading_cell(const struct sh_reading *r, int run)
{
    return run ? &r->v->cell[run - 1] : &r->whole;
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

/* A policy that decides when the prompt has been read does so once. */
static int prefill_of(const struct sh_eval *v, const struct sh_policy_spec *spec)
{
    return v->block && !(spec->policy->needs & SH_NEEDS_PROMPT) ? 0 : v->prefill;
}

struct sh_session_setup sh_reading_setup(const struct sh_reading *r, int run, int n_text, int **budget)
{
    const struct sh_eval *v = r->v;
    const struct sh_eval_cell *c = sh_reading_cell(r, run);
    *budget = budgets(v, c, r->n_token);
    return (struct sh_session_setup){.spec = c->spec, .budget = *budget, .n_seq = n_text, .n_token = r->n_token,
                                     .length = r->n_token, .prefill = prefill_of(v, c->spec),
                                     .block = v->block < r->n_token ? v->block : r->n_token, .format = c->format,
                                     .seed = v->seed, .watched = v->watch && v->watched + 1 == run};
}

static void count_answers(const struct sh_reading *r, int text, int run)
{
    const struct sh_eval_text *x = &r->text[text];
    struct sh_eval_total *t = sh_reading_total(r, text, run);
    const unsigned char *missed = r->missed[text] + (size_t)run * (size_t)x->n_answer;
    for (int i = 0; i < x->n_answer; i++) {
        const struct sh_eval_answer *a = &x->answer[i];
        t->n_answer++;
        t->n_right += !missed[i];
        if (a->said < 0)
            continue;
        int bucket = sh_eval_bucket(a->from - a->said);
        t->answered[bucket]++;
        t->right[bucket] += !missed[i];
    }
}

static void mark_answers(struct sh_reading *r)
{
    size_t n = (size_t)r->n_token;
    r->answer_at = xmalloc((size_t)r->n_text * n * sizeof *r->answer_at);
    r->missed = xcalloc((size_t)r->n_text, sizeof *r->missed);
    for (size_t t = 0; t < (size_t)r->n_text * n; t++)
        r->answer_at[t] = -1;
    for (int k = 0; k < r->n_text; k++) {
        const struct sh_eval_text *x = &r->text[k];
        r->missed[k] = xcalloc((size_t)r->n_run * (size_t)(x->n_answer + 1), 1);
        for (int i = 0; i < x->n_answer; i++)
            for (int t = x->answer[i].from; t < x->answer[i].to; t++)
                r->answer_at[(size_t)k * n + (size_t)t] = i;
    }
}

static void make_room(struct sh_reading *r)
{
    const struct sh_resident *on = r->v->resident;
    int n_text = r->n_text, most = MOST_NUMBERS / n_text, numbers = most < BLOCK_NUMBERS ? most : BLOCK_NUMBERS;
    int rows = on->setup.rows / n_text;
    r->block = numbers / r->n_vocab;
    r->block = r->block > rows ? rows : r->block;
    r->block = r->block < 1 ? 1 : r->block;
    if (r->v->block)                    /* a prompt's block is judged whole                       */
        r->block = r->block > r->v->block ? r->block - r->block % r->v->block : r->v->block;
    size_t n = (size_t)n_text * (size_t)r->block;
    r->n_threads = on->setup.n_threads > 0 ? on->setup.n_threads : sh_team_threads();
    r->logits = xmalloc(n * (size_t)r->n_vocab * sizeof *r->logits);
    r->row = xmalloc(n * sizeof *r->row);
    r->point = xmalloc((size_t)r->block * sizeof *r->point);
    r->total = xcalloc((size_t)n_text * (size_t)r->n_run, sizeof *r->total);
    mark_answers(r);
}

static void drop_room(struct sh_reading *r)
{
    for (int i = 0; i < r->n_text && r->missed; i++)
        free(r->missed[i]);
    free(r->logits);
    free(r->row);
    free(r->point);
    free(r->total);
    free(r->answer_at);
    free(r->missed);
}

/* What did not fit, by its name. */
int sh_reading_no_run(const struct sh_reading *r, int run, struct sh_err *e)
{
    const struct sh_eval *v = r->v;
    char text[SH_BUDGET_TEXT];
    if (!run) {
        sh_err_prefix(e, "the full cache, needed for comparison");
        if (!v->resident->is_host)
            sh_hint(e, "--budget does not change its size; shorter sequences (--length) do");
        return -1;
    }
    const struct sh_eval_cell *c = sh_reading_cell(r, run);
    sh_err_prefix(e, "%s, %s", c->spec->policy->name, c->tokens ? "budgets of a plan"
                                                                : sh_budget_text(&c->budget, text));
    if (v->n_cell > 1 && !v->resident->is_host)
        sh_hint(e, "%d caches are in memory at once: give fewer policies or budgets at a time", v->n_cell);
    return -1;
}

static int begin(struct sh_reading *r, const struct sh_eval *v, int n_text, int n_token, struct sh_err *e)
{
    *r = (struct sh_reading){.v = v, .n_text = n_text, .n_token = n_token, .n_vocab = v->resident->arch->n_vocab,
                             .n_run = v->n_cell + 1};
    r->whole = (struct sh_eval_cell){.spec = &r->all, .budget = {.share = 1}, .format = {.bits = 32}};
    return sh_policy_parse("full", &r->all, e);
}

static int read_some(const struct sh_eval *v, const struct sh_eval_text *text, int n_text, struct sh_eval_total *total,
                     struct sh_err *e)
{
    struct sh_reading r;
    if (begin(&r, v, n_text, text->n_token, e))
        return -1;
    r.text = text;
    make_room(&r);
    int bad = (v->stream ? sh_eval_stream : sh_eval_sweep)(&r, e);
    for (int i = 0; i < n_text && !bad; i++)
        for (int k = 0; k < r.n_run; k++) {
            count_answers(&r, i, k);
            total[i * r.n_run + (k ? k - 1 : v->n_cell)] = *sh_reading_total(&r, i, k);
        }
    drop_room(&r);
    return bad ? -1 : 0;
}

/* The first half of the cells, then the others; each half reads the full cache, too. */
static int read_halves(const struct sh_eval *v, const struct sh_eval_text *text, int n_text,
                       struct sh_eval_total *total, struct sh_err *e)
{
    struct sh_eval half[2] = {*v, *v};
    int n_run = v->n_cell + 1, first[2] = {0, v->n_cell / 2}, bad = 0;
    for (int k = 0; k < 2 && !bad; k++) {
        struct sh_eval *h = &half[k];
        h->cell = v->cell + first[k];
        h->n_cell = k ? v->n_cell - first[1] : first[1];
        h->watched = v->watched < first[k] || v->watched >= first[k] + h->n_cell ? -2 : v->watched - first[k];
        h->watched = v->watched == -1 && !k ? -1 : h->watched;
        struct sh_eval_total *own = xcalloc((size_t)n_text * ((size_t)h->n_cell + 1), sizeof *own);
        bad = sh_eval_read(h, text, n_text, own, e);
        for (int i = 0; i < n_text && !bad; i++) {
            memcpy(total + i * n_run + first[k], own + i * (h->n_cell + 1), (size_t)h->n_cell * sizeof *own);
            total[i * n_run + v->n_cell] = own[i * (h->n_cell + 1) + h->n_cell];
        }
        free(own);
    }
    return bad;
}

int sh_eval_read(const struct sh_eval *v, const struct sh_eval_text *text, int n_text, struct sh_eval_total *total,
                 struct sh_err *e)
{
    int n = v->stream ? n_text : sh_eval_fit(v, text->n_token, n_text), bad = 0;
    if (n < 1 && v->n_cell > 1)
        return read_halves(v, text, n_text, total, e);
    n = n < 1 ? 1 : n;
    for (int i = 0; i < n_text && !bad; i += n)
        bad = read_some(v, text + i, n_text - i < n ? n_text - i : n, total + i * (v->n_cell + 1), e);
    return bad;
}

int sh_eval_fit(const struct sh_eval *v, int n_token, int most)
{
    struct sh_reading r;
    struct sh_err e;
    int rows = v->resident->setup.rows / n_token, n = v->stream || most < rows ? most : rows < 1 ? 1 : rows;
    for (; n > 0 && !begin(&r, v, n, n_token, &e); n /= 2)
        if (v->stream ? sh_eval_stream_fits(&r) : sh_eval_sweep_fits(&r))
            break;
    return n;
}

int sh_eval_check_finite(const struct sh_eval *v, const struct sh_eval_total *total, struct sh_err *e)
{
    char text[SH_BUDGET_TEXT];
    for (int i = v->n_cell; i >= 0; i--) {
        if (isfinite(total[i].all.nll))
            continue;
        if (i == v->n_cell)
            sh_fail(e, "found logits that are not finite (NaN or infinite) with the full cache");
        else
            sh_fail(e, "found logits that are not finite (NaN or infinite) with %s, %s", v->cell[i].spec->policy->name,
                    v->cell[i].tokens ? "budgets of a plan" : sh_budget_text(&v->cell[i].budget, text));
        return sh_hint(e, "nothing can be compared on such a text; try --dtype f32, or check the model's weights");
    }
    return 0;
}

int sh_eval_check(const struct sh_eval *v, int n_token, struct sh_err *e)
{
    char text[SH_BUDGET_TEXT];
    for (int i = 0; i < v->n_cell; i++) {
        int *budget = budgets(v, &v->cell[i], n_token);
        struct sh_session_setup setup = {.arch = v->resident->arch, .spec = v->cell[i].spec, .budget = budget,
                                         .n_seq = 1, .n_token = n_token, .prefill = prefill_of(v, v->cell[i].spec),
                                         .format = v->cell[i].format};
        int bad = sh_kv_setup_check(&setup, e);
        free(budget);
        if (bad)
            return sh_err_prefix(e, "a text of %d tokens, budget %s", n_token,
                                 sh_budget_text(&v->cell[i].budget, text));
    }
    return 0;
}
