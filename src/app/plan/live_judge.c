/* SPDX-License-Identifier: Apache-2.0 */
/* The walk on the judged texts, with the setting that the search chose: from large budgets to small ones, as long as
 * the bound meets the target. The mean that the search found fixes the order: from one and a half times that mean down,
 * in small steps from 1.2 times on. Nothing is tried between two budgets after one of them has failed: that would be
 * another chance to be wrong. Nothing larger is tried before the first one: an increase need not fall with every token,
 * and a single text that loses much under a large budget would end the walk before it has begun.
 *
 * If the first one fails, a second walk goes from large budgets down to it. A tenth of the probability of being wrong
 * is kept for it; the first walk has the rest. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/app/plan/live_plan.h"
#include "src/app/store/results.h"
#include "src/base/file.h"
#include "src/base/mem.h"

enum { MOST = 512, BATCH = 4 };
static const double top = 1.2, far = 1.5, near = 1.2, stride = 1.08, step = 1.015, spare = 0.1;

double sh_live_level(const struct sh_live_plan *w, int is_second)
{
    return 1 - (1 - w->a->confidence) * (is_second ? spare : 1 - spare);
}

/* The mean after this one, the full cache at first; 0: it was the least. */
static int next_mean(const struct sh_live_plan *w, int last)
{
    const struct sh_live_setting *s = &w->setting[w->best];
    double found = s->meets ? s->mean : w->n_token, x = last / (last > near * found ? stride : step);
    if (last == w->n_token && found < last / top)
        x = fmin(last / top, far * found);
    int b = (int)(x + 0.5) < last ? (int)(x + 0.5) : last - 1;
    b = b < s->allot.floor ? s->allot.floor : b;
    return b < last ? b : 0;
}

/* Those of the second walk, which end before the first one of the first walk. */
static int second_means(const struct sh_live_plan *w, int *mean)
{
    const struct sh_live_setting *s = &w->setting[w->best];
    int n = 0, first = next_mean(w, w->n_token);
    for (double x = w->n_token / top; s->meets && n < MOST && (int)(x + 0.5) > first; x /= stride)
        if (!n || mean[n - 1] != (int)(x + 0.5))
            mean[n++] = (int)(x + 0.5);
    return n;
}

/* Reads these means after those that were judged. 1: all hold; 0: one does not, and those after it are left out. */
static int judge(struct sh_live_plan *w, const int *mean, int n, struct sh_err *e)
{
    const struct sh_live_setting *s = &w->setting[w->best];
    struct sh_candidate *c = sh_live_candidates(w, s, mean, n, e);
    if (!c)
        return -1;
    if (sh_live_read_candidates(w, &s->policy, c, n, w->order + w->n_search, w->n_judge, "judging", e)) {
        sh_candidates_free(c, n);
        return -1;
    }
    int held = 0;
    for (int i = 0; i < n; i++)
        c[i].level = w->level;
    while (held < n && sh_live_meets(w, &c[held].goal))
        held++;
    int kept = held < n ? held + 1 : n;                 /* the one that failed is shown, too */
    w->judged = xreallocarray(w->judged, (size_t)(w->n_judged + kept), sizeof *w->judged);
    memcpy(w->judged + w->n_judged, c, (size_t)kept * sizeof *c);
    w->n_judged += kept;
    w->chosen = held ? w->n_judged - kept + held - 1 : w->chosen;
    memset(c, 0, (size_t)kept * sizeof *c);
    sh_candidates_free(c, n);
    return held == n;
}

/* The next ones, few at a time, as what comes after the one that fails is read in vain: some large ones, which mostly
 * tell whether the plan can be shown at all, then all down to what the search found, then some more. */
static int next_means(const struct sh_live_plan *w, int last, int *mean)
{
    const struct sh_live_setting *s = &w->setting[w->best];
    int n = 0, is_near = last < w->n_token && last > s->mean && s->meets;
    while (n < MOST && (is_near ? last > s->mean : n < BATCH) && (last = next_mean(w, last)))
        mean[n++] = last;
    return n;
}

int sh_live_judge(struct sh_live_plan *w, struct sh_err *e)
{
    int mean[MOST], larger[MOST], n, holds = 1, last = w->n_token, n_larger = second_means(w, larger);
    w->chosen = -1;
    w->level = n_larger ? sh_live_level(w, 0) : w->a->confidence;
    while (holds > 0 && (n = next_means(w, last, mean))) {
        holds = judge(w, mean, n, e);
        last = mean[n - 1];
    }
    if (holds < 0 || w->chosen >= 0)
        return holds < 0 ? -1 : 0;
    w->level = sh_live_level(w, 1);
    holds = 1;
    for (int i = 0; i < n_larger && holds > 0; i += BATCH)
        holds = judge(w, larger + i, n_larger - i < BATCH ? n_larger - i : BATCH, e);
    return holds < 0 ? -1 : 0;
}

int sh_live_keep_judged(struct sh_live_plan *w, const struct sh_candidate *c, struct sh_err *e)
{
    const struct sh_live_options *o = &w->a->live;
    const struct sh_kv_format *f = &w->live.format;
    const struct sh_plan *p = &w->plan;
    char knobs[SH_POLICY_TEXT], allocator[SH_ALLOT_TEXT], budget[SH_BUDGET_TEXT];
    double tokens = 0, share = sh_plan_mean(p) / p->n_token;
    char *settings = sh_settings_text("judged", (const struct sh_value[]){
        {"policy", .text = p->policy.policy->name}, {"knobs", .text = sh_policy_knobs(&p->policy, knobs)},
        {"budget", .text = sh_budget_text(&(struct sh_budget){.share = share}, budget)},
        {"allocator", .text = sh_allot_text(&p->allocator, allocator)}, {"kv_bits", .whole = f->bits},
        {"group", .whole = f->bits < 16 ? f->group : 0}, {"prefill", .whole = o->prefill},
        {"model", .bits = sh_model_fingerprint(w->live.model)}, {"texts", .bits = w->on.hash},
        {"dtype", .text = o->dtype}, {"weight_bits", .whole = o->weight_bits}, {"seed", .bits = w->live.seed},
        SH_ACTIVATION_SETTING(o->activation_bits, 16),
        {"weight_prune", .real = o->weight_prune, .is_absent = o->weight_prune <= 0},
        {"confidence", .real = w->a->confidence}, {"plan", .bits = sh_plan_hash(p)}, {0}});
    for (int i = 0; i < w->n_judge; i++)
        tokens += c->at[i].tokens;
    const double at[SH_N_JUDGED_METRIC] = {
        [SH_J_SEQUENCES] = w->n_judge, [SH_J_TOKENS] = tokens, [SH_J_INCREASE] = expm1(w->ppl.mean),
        [SH_J_BOUND] = expm1(w->ppl.high), [SH_J_KL] = w->kl.mean, [SH_J_KL_BOUND] = w->kl.high};
    int bad = sh_result_keep_all(w->store, "judged", settings, &sh_judged_metrics, at, &w->on, e);
    free(settings);
    return bad;
}

int sh_live_write_judged(const struct sh_live_plan *w, struct sh_err *e)
{
    struct sh_file *f = sh_file_begin(w->a->judged, e);
    if (!f)
        return -1;
    FILE *to = sh_file_stream(f);
    for (int i = 0; i < w->n_judge; i++) {
        const struct sh_trace_sequence *q = &w->source.texts.sequence[w->order[w->n_search + i]];
        for (int k = 0; k < q->n_tokens; k++)
            fprintf(to, "%s%d", k ? ", " : "[", q->tokens[k]);
        fputs("]\n", to);
    }
    return sh_file_end(f, 0, e);
}
