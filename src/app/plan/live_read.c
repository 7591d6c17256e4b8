/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of candidates on texts: the live model reads the texts for all candidates together, or the sums are found in the
 * store. The sums of one call are stored in one transaction, so that after a kill the same candidates are read together
 * again and give the same bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/app/plan/live_plan.h"
#include "src/app/store/results.h"
#include "src/base/mem.h"

enum { AT_ONCE = 64,                    /* candidates that are read together, at most             */
       TEXTS = 64,
       SUMS = sizeof(struct sh_text_sums) / sizeof(double) };

static const char *const sum_keys[SUMS] = {"tokens", "rows", "nll", "change", "kl", "answers", "right", "full_right"};

/* ---- in the store ---- */

static void hash(uint64_t *h, const void *at, size_t bytes)            /* FNV-1a */
{
    for (size_t i = 0; i < bytes; i++)
        *h = (*h ^ ((const unsigned char *)at)[i]) * 0x100000001b3u;
}

static uint64_t hash_texts(const struct sh_live_plan *w, const int *text, int n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = 0; i < n; i++) {
        const struct sh_trace_sequence *q = &w->source.texts.sequence[text[i]];
        hash(&h, &q->n_tokens, sizeof q->n_tokens);
        hash(&h, q->tokens, (size_t)q->n_tokens * sizeof *q->tokens);
        for (int k = 0; w->answers.texts && k < w->answers.n[text[i]]; k++)
            hash(&h, &w->answers.of[text[i]][k].from, 2 * sizeof(int));
    }
    return h;
}

static size_t heads_of(const struct sh_live_plan *w)
{
    const struct sh_arch *a = sh_model_arch(w->live.model);
    return (size_t)a->n_layer * (size_t)a->n_kv_head;
}

static char *settings_of(const struct sh_live_plan *w, const struct sh_policy_spec *policy,
                         const struct sh_candidate *c, uint64_t texts)
{
    const struct sh_live_options *o = &w->a->live;
    const struct sh_kv_format *f = &w->live.format;
    char knobs[SH_POLICY_TEXT];
    uint64_t budgets = 0xcbf29ce484222325u;
    hash(&budgets, c->budget, heads_of(w) * sizeof *c->budget);
    return sh_settings_text("plan", (const struct sh_value[]){
        {"policy", .text = policy->policy->name}, {"knobs", .text = sh_policy_knobs(policy, knobs)},
        {"budgets", .bits = budgets}, {"n_token", .whole = w->n_token}, {"kv_bits", .whole = f->bits},
        {"group", .whole = f->bits < 16 ? f->group : 0}, {"prefill", .whole = o->prefill},
        {"model", .bits = sh_model_fingerprint(w->live.model)}, {"texts", .bits = texts}, {"dtype", .text = o->dtype},
        {"weight_bits", .whole = o->weight_bits}, {"weight_prune", .real = o->weight_prune},
        SH_ACTIVATION_SETTING(o->activation_bits, 16),
        {"seed", .bits = w->live.seed}, {0}});
}

/* 1: all sums of the candidate were there; 0; -1. */
static int recall(struct sh_live_plan *w, const char *settings, struct sh_candidate *c, int n_text, struct sh_err *e)
{
    struct sh_result_row row;
    int found = sh_result_find(w->store, "plan", settings, &row, e);
    for (int i = 0; found > 0 && i < n_text; i++)
        for (int k = 0; k < SUMS && found; k++) {
            char key[32];
            snprintf(key, sizeof key, "%s_%d", sum_keys[k], i);
            ((double *)&c->at[i])[k] = sh_result(&row, key, -1);
            found = !isnan(((double *)&c->at[i])[k]);
        }
    sh_result_free(&row);
    return found;
}

static int recall_all(struct sh_live_plan *w, char *const *settings, struct sh_candidate *c, int n, int n_text,
                      struct sh_err *e)
{
    int found = w->store != NULL;
    for (int i = 0; i < n && found > 0; i++)
        found = recall(w, settings[i], &c[i], n_text, e);
    return found;
}

static int keep_all(struct sh_live_plan *w, char *const *settings, const struct sh_candidate *c, int n, int n_text,
                    struct sh_err *e)
{
    int bad = 0;
    if (!w->store || sh_store_group_begin(w->store, e))
        return w->store ? -1 : 0;
    for (int i = 0; i < n && !bad; i++) {
        struct sh_result_row row = {0};
        sh_result_add(&row, -1, c[i].mean, "mean_tokens");
        for (int t = 0; t < n_text; t++)
            for (int k = 0; k < SUMS; k++)
                sh_result_add(&row, -1, ((const double *)&c[i].at[t])[k], "%s_%d", sum_keys[k], t);
        bad = sh_result_keep(w->store, "plan", settings[i], &row, e);
    }
    return sh_store_group_end(w->store, bad, e);
}

/* ---- in the model ---- */

struct view {                           /* of a cell */
    const int *budget;
    int n_kv_head, n_token, least;
};

static int of_view(const void *to, int layer, int head, int n_token)
{
    const struct view *v = to;
    return sh_plan_scale(v->budget[layer * v->n_kv_head + head], v->n_token, n_token, v->least);
}

static void on_tokens(void *to, int tokens)
{
    struct sh_live_plan *w = to;
    w->read += tokens;
    sh_progress_at(&w->progress, w->read, "");
}

static int take(const struct sh_eval_total *t, const struct sh_eval_total *full, struct sh_text_sums *to)
{
    *to = (struct sh_text_sums){(double)t->all.tokens, (double)t->all.rows, t->all.nll, t->all.change, t->all.kl,
                                (double)t->n_answer, (double)t->n_right, (double)full->n_right};
    return isfinite(full->all.nll) ? isfinite(t->all.nll) && isfinite(t->all.kl) ? 0 : 1 : 2;
}

static int refuse_nan(const struct sh_live_plan *w, const struct sh_policy_spec *policy,
                      const struct sh_candidate *c, int text, int is_full, struct sh_err *e)
{
    const char *name = w->source.texts.sequence[text].source;
    if (is_full)
        sh_fail(e, "%s: %s: found logits that are not finite (NaN or infinite) with the full cache", w->a->live.model,
                name);
    else
        sh_fail(e, "%s: %s: found logits that are not finite (NaN or infinite) with %s, %d tokens a head",
                w->a->live.model, name, policy->policy->name, c->mean);
    return sh_hint(e, "no loss can be measured on such a text; try --dtype f32, or check the model's weights");
}

/* Texts text[at[0 .. n)] of one length through n_cell candidates from `first` on. */
static int read_some(struct sh_live_plan *w, struct sh_eval *v, struct sh_candidate *c, const int *text, const int *at,
                     int n, struct sh_err *e)
{
    int n_run = v->n_cell + 1, bad = 0;
    struct sh_eval_text *x = xcalloc((size_t)n, sizeof *x);
    struct sh_eval_total *total = xcalloc((size_t)n * (size_t)n_run, sizeof *total);
    for (int i = 0; i < n; i++) {
        const struct sh_trace_sequence *q = &w->source.texts.sequence[text[at[i]]];
        x[i] = (struct sh_eval_text){.tokens = q->tokens, .n_token = q->n_tokens};
        if (w->answers.texts) {
            x[i].answer = w->answers.of[text[at[i]]];
            x[i].n_answer = w->answers.n[text[at[i]]];
        }
    }
    if (sh_eval_check(v, x->n_token, e) || sh_eval_read(v, x, n, total, e))
        bad = sh_err_prefix(e, "%s", w->source.texts.sequence[text[at[0]]].source);
    for (int i = 0; i < n && !bad; i++)
        for (int k = 0; k < v->n_cell && !bad; k++) {
            int odd = take(&total[i * n_run + k], &total[i * n_run + v->n_cell], &c[k].at[at[i]]);
            bad = odd && refuse_nan(w, v->cell->spec, &c[k], text[at[i]], odd == 2, e);
        }
    free(total);
    free(x);
    return bad ? -1 : 0;
}

/* All texts through some candidates, those of one length together. */
static int read_texts(struct sh_live_plan *w, struct sh_eval *v, struct sh_candidate *c, const int *text, int n_text,
                      struct sh_err *e)
{
    int *at = xcalloc((size_t)n_text, sizeof *at), bad = 0;
    char *is_read = xcalloc((size_t)n_text, 1);
    for (int first = 0; first < n_text && !bad; first++) {
        int n = 0, n_token = w->source.texts.sequence[text[first]].n_tokens;
        for (int i = first; i < n_text && n < TEXTS && !is_read[first]; i++)
            if (!is_read[i] && w->source.texts.sequence[text[i]].n_tokens == n_token)
                at[n++] = i;
        int fit = n > 1 ? sh_eval_fit(v, n_token, n) : n;
        n = fit > 0 ? fit : n > 0;
        for (int i = 0; i < n; i++)
            is_read[at[i]] = 1;
        bad = n && read_some(w, v, c, text, at, n, e);
    }
    free(is_read);
    free(at);
    return bad ? -1 : 0;
}

/* Candidates in groups that memory holds. */
static int read_cells(struct sh_live_plan *w, const struct sh_policy_spec *policy, struct sh_candidate *c, int n,
                      const int *text, int n_text, struct sh_err *e)
{
    int bad = 0, n_kv_head = sh_model_arch(w->live.model)->n_kv_head;
    struct view *view = xcalloc((size_t)n, sizeof *view);
    struct sh_eval_cell *cell = xcalloc((size_t)n, sizeof *cell);
    struct sh_eval v = {.resident = w->live.resident, .prefill = (int)w->a->live.prefill, .seed = w->live.seed,
                        .watched = -1, .progress = on_tokens, .progress_to = w};
    for (int i = 0; i < n; i++) {
        view[i] = (struct view){c[i].budget, n_kv_head, w->n_token, sh_policy_least_budget(policy)};
        cell[i] = (struct sh_eval_cell){.spec = policy, .budget = {.tokens = c[i].mean}, .tokens = of_view,
                                        .plan = &view[i], .format = w->live.format};
    }
    for (int first = 0; first < n && !bad; first += v.n_cell) {
        v.cell = cell + first;
        v.n_cell = n - first < AT_ONCE ? n - first : AT_ONCE;
        while (v.n_cell > 1 && !sh_eval_fit(&v, w->n_token, 1))
            v.n_cell = (v.n_cell + 1) / 2;
        bad = read_texts(w, &v, c + first, text, n_text, e);
    }
    free(cell);
    free(view);
    return bad;
}

static int read_all(struct sh_live_plan *w, const struct sh_policy_spec *policy, struct sh_candidate *c, int n,
                    const int *text, int n_text, const char *what, struct sh_err *e)
{
    double tokens = 0;
    char *label = xasprintf("%s %s", what, policy->policy->name);
    for (int i = 0; i < n_text; i++)
        tokens += w->source.texts.sequence[text[i]].n_tokens;
    w->read = 0;
    sh_progress_begin(&w->progress, label, "tokens", tokens * (n + (n + AT_ONCE - 1) / AT_ONCE), w->common->quiet);
    int bad = read_cells(w, policy, c, n, text, n_text, e);
    sh_progress_end(&w->progress);
    free(label);
    return bad;
}

int sh_live_read_candidates(struct sh_live_plan *w, const struct sh_policy_spec *policy, struct sh_candidate *c, int n,
                            const int *text, int n_text, const char *what, struct sh_err *e)
{
    uint64_t texts = hash_texts(w, text, n_text);
    char **settings = xcalloc((size_t)n + 1, sizeof *settings);
    for (int i = 0; i < n; i++) {
        settings[i] = settings_of(w, policy, &c[i], texts);
        c[i].at = xcalloc((size_t)n_text, sizeof *c[i].at);
    }
    int found = recall_all(w, settings, c, n, n_text, e);
    int bad = found < 0 || (!found && n && (read_all(w, policy, c, n, text, n_text, what, e) ||
                                            keep_all(w, settings, c, n, n_text, e)));
    for (int i = 0; i < n; i++) {
        if (!bad)
            c[i].goal = sh_live_bound(w, w->a->target, c[i].at, n_text);
        if (w->a->target == SH_TARGET_ANSWERS)          /* the larger the better: the other way round */
            c[i].goal = (struct sh_mean_bound){c[i].goal.n, -c[i].goal.mean, c[i].goal.error, -c[i].goal.high,
                                          -c[i].goal.low};
        free(settings[i]);
    }
    free(settings);
    return bad ? -1 : 0;
}

struct sh_mean_bound sh_live_bound(const struct sh_live_plan *w, enum sh_live_target of, const struct sh_text_sums *at,
                              int n)
{
    double *x = xcalloc(2 * (size_t)n + 1, sizeof *x), *weight = x + n;
    for (int i = 0; i < n; i++) {
        x[i] = of == SH_TARGET_PPL ? at[i].change : of == SH_TARGET_KL ? at[i].kl : at[i].right;
        weight[i] = of == SH_TARGET_PPL ? at[i].tokens : of == SH_TARGET_KL ? at[i].rows : at[i].answers;
    }
    struct sh_mean_bound b = of == SH_TARGET_ANSWERS ? sh_mean_bound_of_share(x, weight, n, w->level)
                                                : sh_mean_bound_of(x, weight, n, w->level);
    free(x);
    return b;
}
