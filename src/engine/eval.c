/* SPDX-License-Identifier: Apache-2.0 */
#include "src/engine/eval.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/base/team.h"

enum { BLOCK_NUMBERS = 1 << 22,         /* logits of the full cache that are held, of a text, */
       MOST_NUMBERS = 1 << 26,          /* and of all texts, at most                              */
       WORTH_THREADS = 1 << 14 };       /* logits: below that, waking them takes longer           */

struct reading {                        /* texts on their way */
    const struct sh_eval *v;
    const struct sh_eval_text *text;    /* [n_text], of one length                                */
    int n_text, n_token;
    int n_vocab, n_threads;
    int block, first;                   /* tokens of a text at a time; position of the first of them */
    int32_t *tokens;                    /* [n_text, block]                                        */
    int *start;                         /* [n_text + 1]                                           */
    float *logits;                      /* [n_text, block, n_vocab]: of the full cache            */
    struct sh_eval_row *row;            /* [n_text, block]: the same rows                         */
    struct sh_eval_point *point;        /* [block]                                                */
    struct sh_policy_spec all;          /* the full cache's                                       */
    int n_run;  /* n_cell + 1: run 0 reads through the full cache, run i + 1 through that of cell i */
    struct sh_session **session;        /* [n_run]                                                */
    int *answer_at;                     /* [n_text, n_token]: the answer that a token belongs to, or -1 */
    unsigned char **missed;             /* [n_text][n_run, n_answer]: some token was not the likeliest */
    struct sh_eval_total *total;        /* [n_text, n_run]                                        */
    int run;                            /* that is reading                                        */
};

static struct sh_eval_total *total_of(const struct reading *r, int text, int run)
{
    return &r->total[(size_t)text * (size_t)r->n_run + (size_t)run];
}

/* A row counts at the position of the token that it predicts. */
static void add(struct reading *r, int text, int position, const struct sh_eval_point *p)
{
    struct sh_eval_total *t = total_of(r, text, r->run);
    int next = position + 1, answer = p->has_next ? r->answer_at[(size_t)text * (size_t)r->n_token + (size_t)next] : -1;
    sh_eval_add(&t->all, p);
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
    struct reading *r;
    int sequence, position;
    size_t first;                       /* of r->row                  */
    const float *logits;
};

static void judge(void *arg, int k)
{
    const struct judged *j = arg;
    struct reading *r = j->r;
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

/* Rows are judged side by side, and added up in their order. */
static void take(void *to, int sequence, int position, int n, const float *logits)
{
    struct reading *r = to;
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

static struct sh_session *open_cell(const struct sh_eval *v, const struct sh_eval_cell *c, int n_text, int n_token,
                                    struct sh_err *e)
{
    int *budget = budgets(v, c, n_token);
    struct sh_session_setup setup = {.spec = c->spec, .budget = budget, .n_seq = n_text, .n_token = n_token,
                                     .length = n_token, .prefill = v->prefill, .format = c->format, .seed = v->seed,
                                     .watched = v->watch && v->watched >= 0 && c == v->cell + v->watched};
    struct sh_session *s = sh_session_new(v->resident, &setup, e);
    free(budget);
    return s;
}

/* After a text: what its cache took, and where it was. */
static void weigh(const struct reading *r, int run)
{
    const struct sh_session *s = r->session[run];
    struct sh_kv_bytes bytes = sh_session_bytes(s);
    struct sh_kv_kept kept = sh_session_kept(s);
    for (int i = 0; i < r->n_text; i++) {
        struct sh_eval_total *total = total_of(r, i, run);
        struct sh_eval_sums *sums = &total->all;
        sums->peak_tokens = kept.peak;
        sums->budget_tokens = kept.budget;
        sums->texts = 1;
        sums->kv_bytes = sh_kv_bytes_sum(&bytes) / (size_t)r->n_text;
        sh_eval_place_add(&total->place, sh_session_cache(s) != NULL, sh_session_why_host(s));
    }
}

static int read_block(struct reading *r, int run, struct sh_err *e)
{
    int left = r->n_token - r->first, n = left < r->block ? left : r->block;
    double began = sh_now_s();
    for (int i = 0; i < r->n_text; i++) {
        r->start[i] = i * n;
        memcpy(r->tokens + i * n, r->text[i].tokens + r->first, (size_t)n * sizeof *r->tokens);
        total_of(r, i, run)->all.read += n;
    }
    r->start[r->n_text] = r->n_text * n;
    r->run = run;
    if (sh_session_step(r->session[run], r->tokens, r->start, take, r, e))
        return -1;
    total_of(r, 0, run)->all.seconds += sh_now_s() - began;
    if (r->v->progress)
        r->v->progress(r->v->progress_to, r->n_text * n);
    return sh_interrupted() ? sh_fail(e, "interrupted at token %d of %d", r->first, r->n_token) : 0;
}

static void count_answers(const struct reading *r, int text, int run)
{
    const struct sh_eval_text *x = &r->text[text];
    struct sh_eval_total *t = total_of(r, text, run);
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

static int read_blocks(struct reading *r, struct sh_err *e)
{
    for (r->first = 0; r->first < r->n_token; r->first += r->block)
        for (int i = 0; i < r->n_run; i++)
            if (read_block(r, i, e))
                return -1;
    for (int i = 0; i < r->n_run; i++) {
        weigh(r, i);
        for (int text = 0; text < r->n_text; text++)
            count_answers(r, text, i);
    }
    return 0;
}

static void mark_answers(struct reading *r)
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

static void make_room(struct reading *r)
{
    const struct sh_resident *on = r->v->resident;
    int n_text = r->n_text, most = MOST_NUMBERS / n_text, numbers = most < BLOCK_NUMBERS ? most : BLOCK_NUMBERS;
    int rows = on->setup.rows / n_text;
    r->block = numbers / r->n_vocab;
    r->block = r->block > rows ? rows : r->block;
    r->block = r->block < 1 ? 1 : r->block;
    size_t n = (size_t)n_text * (size_t)r->block;
    r->n_threads = on->setup.n_threads > 0 ? on->setup.n_threads : sh_team_threads();
    r->tokens = xmalloc(n * sizeof *r->tokens);
    r->start = xmalloc(((size_t)n_text + 1) * sizeof *r->start);
    r->logits = xmalloc(n * (size_t)r->n_vocab * sizeof *r->logits);
    r->row = xmalloc(n * sizeof *r->row);
    r->point = xmalloc((size_t)r->block * sizeof *r->point);
    r->total = xcalloc((size_t)n_text * (size_t)r->n_run, sizeof *r->total);
    mark_answers(r);
}

static void drop_room(struct reading *r)
{
    for (int i = 0; i < r->n_text && r->missed; i++)
        free(r->missed[i]);
    free(r->tokens);
    free(r->start);
    free(r->logits);
    free(r->row);
    free(r->point);
    free(r->total);
    free(r->answer_at);
    free(r->missed);
}

static void close_all(struct reading *r)
{
    for (int i = 0; i < r->n_run; i++)
        sh_session_free(r->session[i]);
    free(r->session);
}

/* What did not fit, by its name. */
static int no_cell(const struct sh_eval *v, int i, struct sh_err *e)
{
    char text[SH_BUDGET_TEXT];
    if (i < 0) {
        sh_err_prefix(e, "the full cache, needed for comparison");
        if (!v->resident->is_host)
            sh_hint(e, "--budget does not change its size; shorter sequences (--length) do");
        return -1;
    }
    const struct sh_eval_cell *c = &v->cell[i];
    sh_err_prefix(e, "%s, %s", c->spec->policy->name, c->tokens ? "budgets of a plan"
                                                                : sh_budget_text(&c->budget, text));
    if (v->n_cell > 1 && !v->resident->is_host)
        sh_hint(e, "%d caches are in memory together: give fewer policies and budgets at a time", v->n_cell);
    return -1;
}

/* The texts' caches; -1: one of them cannot be, and none is open. */
static int open_all(struct reading *r, struct sh_err *e)
{
    const struct sh_eval *v = r->v;
    struct sh_eval_cell whole = {.spec = &r->all, .budget = {.share = 1}, .format = {.bits = 32}};
    if (sh_policy_parse("full", &r->all, e))
        return -1;
    r->n_run = v->n_cell + 1;
    r->session = xcalloc((size_t)r->n_run, sizeof *r->session);
    for (int i = 0; i < r->n_run; i++) {
        r->session[i] = open_cell(v, i ? &v->cell[i - 1] : &whole, r->n_text, r->n_token, e);
        if (!r->session[i]) {
            close_all(r);
            return no_cell(v, i - 1, e);
        }
        if (v->watch && v->watched == i - 1)
            sh_session_set_watch(r->session[i], v->watch, v->to);
    }
    return 0;
}

int sh_eval_read(const struct sh_eval *v, const struct sh_eval_text *text, int n_text, struct sh_eval_total *total,
                 struct sh_err *e)
{
    struct reading r = {.v = v, .text = text, .n_text = n_text, .n_token = text->n_token,
                        .n_vocab = v->resident->arch->n_vocab};
    if (open_all(&r, e))
        return -1;
    make_room(&r);
    int bad = read_blocks(&r, e);
    for (int i = 0; i < n_text && !bad; i++)
        for (int k = 0; k < r.n_run; k++)
            total[i * r.n_run + (k ? k - 1 : v->n_cell)] = *total_of(&r, i, k);
    close_all(&r);
    drop_room(&r);
    return bad ? -1 : 0;
}

int sh_eval_fit(const struct sh_eval *v, int n_token, int most)
{
    struct sh_err e;
    for (int n = v->resident->is_host ? 0 : most; n > 0; n /= 2) {
        struct reading r = {.v = v, .n_text = n, .n_token = n_token};
        int travels = 0;
        if (open_all(&r, &e))
            continue;
        for (int i = 0; i < r.n_run; i++)
            travels |= sh_session_why_host(r.session[i]) != NULL;
        close_all(&r);
        return travels ? 1 : n;
    }
    return v->resident->is_host;
}

int sh_eval_check(const struct sh_eval *v, int n_token, struct sh_err *e)
{
    char text[SH_BUDGET_TEXT];
    for (int i = 0; i < v->n_cell; i++) {
        int *budget = budgets(v, &v->cell[i], n_token);
        struct sh_session_setup setup = {.arch = v->resident->arch, .spec = v->cell[i].spec, .budget = budget,
                                         .n_seq = 1, .n_token = n_token, .prefill = v->prefill,
                                         .format = v->cell[i].format};
        int bad = sh_kv_setup_check(&setup, e);
        free(budget);
        if (bad)
            return sh_err_prefix(e, "a text of %d tokens, budget %s", n_token,
                                 sh_budget_text(&v->cell[i].budget, text));
    }
    return 0;
}
