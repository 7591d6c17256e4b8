/* SPDX-License-Identifier: Apache-2.0 */
/* See eval.h. */
#include "src/engine/eval.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/interrupt.h"
#include "src/base/mem.h"
#include "src/base/progress.h"

enum { BLOCK_NUMBERS = 1 << 22 };       /* logits of the full cache that are held at most         */

struct reading {                        /* one text on its way */
    const struct sh_eval *v;
    const int32_t *tokens;
    int n_token, n_vocab, block, first; /* first: position of the block                           */
    float *logits;                      /* [block, n_vocab]: of the full cache                    */
    struct sh_eval_row *row;            /* [block]: the same rows                                 */
    struct sh_session *full, **session; /* [n_cell]                                               */
    struct sh_eval_sums *sums;          /* of the session that reads                              */
    int cell;                           /* its number; -1: the full cache                         */
};

static int next_token(const struct reading *r, int position)
{
    return position + 1 < r->n_token ? r->tokens[position + 1] : -1;
}

static void take_full(void *to, int sequence, int position, const float *logits)
{
    struct reading *r = to;
    int i = position - r->first;
    float *own = r->logits + (size_t)i * (size_t)r->n_vocab;
    memcpy(own, logits, (size_t)r->n_vocab * sizeof *own);
    r->row[i] = sh_eval_row_of(own, r->n_vocab);
    sh_eval_add(r->sums, &r->row[i], NULL, next_token(r, position), r->n_vocab);
    if (r->v->take && r->v->watched < 0)
        r->v->take(r->v->to, sequence, position, logits);
}

static void take_cell(void *to, int sequence, int position, const float *logits)
{
    struct reading *r = to;
    struct sh_eval_row row = sh_eval_row_of(logits, r->n_vocab);
    sh_eval_add(r->sums, &row, &r->row[position - r->first], next_token(r, position), r->n_vocab);
    if (r->v->take && r->v->watched == r->cell)
        r->v->take(r->v->to, sequence, position, logits);
}

/* Budgets [n_layer * n_kv_head] of a cell; caller frees. */
static int *budgets(const struct sh_eval *v, const struct sh_budget *b, int n_token)
{
    const struct sh_arch *a = v->resident->arch;
    int n = a->n_layer * a->n_kv_head, *budget = xmalloc((size_t)n * sizeof *budget);
    for (int i = 0; i < n; i++)
        budget[i] = sh_budget_tokens(b, n_token);
    return budget;
}

static struct sh_session *open_cell(const struct sh_eval *v, const struct sh_eval_cell *c, int number, int n_token,
                                    struct sh_err *e)
{
    int *budget = budgets(v, &c->budget, n_token);
    struct sh_session_setup setup = {.spec = c->spec, .budget = budget, .n_seq = 1, .n_token = n_token,
                                     .prefill = v->prefill, .format = c->format, .seed = v->seed};
    struct sh_session *s = sh_session_new(v->resident, &setup, e);
    if (s && v->watch && v->watched == number)
        sh_session_set_watch(s, v->watch, v->to);
    free(budget);
    return s;
}

/* After a text: what its cache took. */
static void weigh(const struct sh_session *s, struct sh_eval_sums *sums)
{
    const struct sh_kv_cache *c = sh_session_cache(s);
    struct sh_kv_bytes bytes = sh_session_bytes(s);
    int n = c->setup.arch->n_layer * c->setup.arch->n_kv_head;
    double budget = 0;
    for (int i = 0; i < n; i++) {
        int peak = sh_kept_cache(c->head[i].kept)->n_slot;
        budget += sh_kept_budget(c->head[i].kept);
        sums->peak_tokens = peak > sums->peak_tokens ? peak : sums->peak_tokens;
    }
    sums->budget_tokens += budget / n;
    sums->texts++;
    sums->kv_bytes = sh_kv_bytes_sum(&bytes) > sums->kv_bytes ? sh_kv_bytes_sum(&bytes) : sums->kv_bytes;
}

static int read_block(struct reading *r, struct sh_session *s, int cell, struct sh_eval_sums *sums, struct sh_err *e)
{
    int n = r->n_token - r->first < r->block ? r->n_token - r->first : r->block;
    double began = sh_now_s();
    r->sums = sums;
    r->cell = cell;
    if (sh_session_step(s, r->tokens + r->first, (int[]){0, n}, cell < 0 ? take_full : take_cell, r, e))
        return -1;
    sums->seconds += sh_now_s() - began;
    sums->read += n;
    if (r->v->progress)
        r->v->progress(r->v->progress_to, n);
    return sh_interrupted() ? sh_fail(e, "interrupted at token %d of %d", r->first, r->n_token) : 0;
}

static int read_blocks(struct reading *r, struct sh_eval_sums *full, struct sh_eval_sums *sums, struct sh_err *e)
{
    for (r->first = 0; r->first < r->n_token; r->first += r->block) {
        if (read_block(r, r->full, -1, full, e))
            return -1;
        for (int i = 0; i < r->v->n_cell; i++)
            if (read_block(r, r->session[i], i, &sums[i], e))
                return -1;
    }
    weigh(r->full, full);
    for (int i = 0; i < r->v->n_cell; i++)
        weigh(r->session[i], &sums[i]);
    return 0;
}

static int open_all(struct reading *r, const struct sh_eval_cell *whole, struct sh_err *e)
{
    if (!(r->full = open_cell(r->v, whole, -1, r->n_token, e)))
        return -1;
    for (int i = 0; i < r->v->n_cell; i++)
        if (!(r->session[i] = open_cell(r->v, &r->v->cell[i], i, r->n_token, e)))
            return -1;
    return 0;
}

int sh_eval_text(const struct sh_eval *v, const int32_t *tokens, int n_token, struct sh_eval_sums *full,
                 struct sh_eval_sums *sums, struct sh_err *e)
{
    struct sh_policy_spec all;
    struct sh_eval_cell whole = {.spec = &all, .budget = {.share = 1}, .format = {.bits = 32}};
    struct reading r = {.v = v, .tokens = tokens, .n_token = n_token, .n_vocab = v->resident->arch->n_vocab};
    if (sh_policy_parse("full", &all, e))
        return -1;
    r.block = BLOCK_NUMBERS / r.n_vocab;
    r.block = r.block < 1 ? 1 : r.block > v->resident->setup.rows ? v->resident->setup.rows : r.block;
    r.logits = xmalloc((size_t)r.block * (size_t)r.n_vocab * sizeof *r.logits);
    r.row = xmalloc((size_t)r.block * sizeof *r.row);
    r.session = xcalloc((size_t)v->n_cell + 1, sizeof *r.session);
    int bad = open_all(&r, &whole, e) || read_blocks(&r, full, sums, e);
    for (int i = 0; i < v->n_cell; i++)
        sh_session_free(r.session[i]);
    sh_session_free(r.full);
    free(r.session);
    free(r.row);
    free(r.logits);
    return bad ? -1 : 0;
}

int sh_eval_check(const struct sh_eval *v, int n_token, struct sh_err *e)
{
    char text[SH_BUDGET_TEXT];
    for (int i = 0; i < v->n_cell; i++) {
        int *budget = budgets(v, &v->cell[i].budget, n_token);
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
