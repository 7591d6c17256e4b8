/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluations in a store (plan_measure.h). Results whose settings are not those of shears eval are skipped. */
#include "src/app/plan/plan_measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/app/store/measured.h"
#include "src/app/store/results.h"

struct asked {
    const struct sh_plan_ask *by;
    char knobs[SH_POLICY_TEXT];
};

static int says(const struct sh_result_row *r, const char *key, const char *text)
{
    return !strcmp(sh_result_text(r, key), text);
}

static int is_full(const struct sh_result_row *r)
{
    return says(r, "policy", "full");
}

/* Does the result speak of this model, with a cache that a plan can ask for? */
static int is_fit(const struct asked *a, const struct sh_result_row *r)
{
    return says(r, "model", a->by->run->fingerprint) && sh_result_int(r, "kv_bits") >= 16 &&
           sh_result_int(r, "weight_bits") == a->by->run->weight_bits && !json_object_get(r->settings, "plan") &&
           sh_result_int(r, "activation_bits") != 8 &&
           (!json_object_get(r->settings, "allocator") || says(r, "allocator", "uniform")) &&
           isfinite(sh_result(r, "ppl", -1));
}

static int is_own(const struct asked *a, const struct sh_result_row *r)
{
    return is_fit(a, r) && says(r, "policy", a->by->policy->policy->name) &&
           (is_full(r) || (says(r, "knobs", a->knobs) && sh_result_int(r, "prefill") == a->by->prefill));
}

/* 0: the result is of no use. */
static int read_eval(const struct asked *a, const struct sh_result_row *r, const struct sh_measured *on,
                     struct sh_plan_eval *out)
{
    struct sh_budget b[SH_MAX_BUDGETS] = {{0, 1}};
    struct sh_err ignored;
    int n = is_full(r);
    double tokens = sh_result(r, "tokens", -1), sequences = sh_result(r, "sequences", -1);
    if (!sh_measured_same(&r->on, on) || !(is_own(a, r) || (is_full(r) && is_fit(a, r))) ||
        (!n && sh_budget_parse(sh_result_text(r, "budget"), b, &n, &ignored)))
        return 0;
    *out = (struct sh_plan_eval){.budget = b[0], .ppl = sh_result(r, "ppl", -1),
                                 .stderr_ppl = sh_result(r, "ppl_stderr", -1), .on = *on,
                                 .tokens = tokens < 0x1p53 ? (long long)tokens : 0,
                                 .sequences = sequences < 0x1p31 ? (int)sequences : 0};
    return n == 1;
}

/* Keeps the worst evaluation of each budget. */
static void add(struct sh_plan_eval *at, int *n, const struct sh_plan_eval *new, int n_token)
{
    int k = 0;
    while (k < *n && sh_budget_tokens(&at[k].budget, n_token) != sh_budget_tokens(&new->budget, n_token))
        k++;
    if (k == *n)
        at[(*n)++] = *new;
    else if (new->ppl > at[k].ppl)      /* another precision */
        at[k] = *new;
}

static int smallest_first(const void *a, const void *b)
{
    const struct sh_plan_eval *x = a, *y = b;
    return (x->mean_tokens > y->mean_tokens) - (x->mean_tokens < y->mean_tokens);
}

/* The policies that were evaluated: "h2o:recent=25, window (prefill 64)"; *near: one of them has the name that is asked
 * for and this prefill. For free(). */
static char *evaluated(const struct asked *a, const struct sh_results *all, char **near)
{
    char *text;
    size_t bytes;
    const char *met[64];
    int n = 0;
    FILE *to = xmemstream(&text, &bytes);
    for (int i = 0; i < all->n && n < 64; i++) {
        const struct sh_result_row *r = &all->row[i];
        char *name = sh_result_policy(r), *prefill = xasprintf(" (prefill %lld)", sh_result_int(r, "prefill"));
        int is_other = sh_result_int(r, "prefill") != a->by->prefill, known = !is_fit(a, r) || is_full(r);
        char *whole = xasprintf("%s%s", name, is_other ? prefill : "");
        for (int k = 0; k < n && !known; k++)
            known = !strcmp(met[k], whole);
        if (!known) {
            if (!*near && !is_other && says(r, "policy", a->by->policy->policy->name))
                *near = xstrdup(name);
            fprintf(to, "%s%s", n ? ", " : "", whole);
            met[n++] = whole;
        } else {
            free(whole);
        }
        free(name);
        free(prefill);
    }
    xmemclose(to, &text, &bytes);
    while (n)
        free((void *)met[--n]);
    return text;
}

static int never_evaluated(const struct asked *a, const struct sh_results *all, const char *path, struct sh_err *e)
{
    int is_bound;
    char *near = NULL, *known = evaluated(a, all, &near),
         *spec = xasprintf("%s%s%s", a->by->policy->policy->name, *a->knobs ? ":" : "", a->knobs),
         *name = sh_policy_label(spec, &is_bound);
    sh_fail(e, "%s: %s was never evaluated with prefill %d; %s%.500s", path, name, a->by->prefill,
            *known ? "evaluated: " : "no policy of this model was", known);
    sh_hint(e, "%s%s%srun shears eval --model DIR --text FILE --policy %s --budget 0.1,0.2,0.5 --prefill %d --db %s",
            near ? "--policy " : "", near ? near : "", near ? " names what was evaluated; otherwise " : "", name,
            a->by->prefill, path);
    free(near);
    free(known);
    free(spec);
    free(name);
    return -1;
}

/* The text of the policy's evaluations; NULL: there are none, or on several texts. */
static const struct sh_measured *choose_text(const struct asked *a, const struct sh_results *all, const char *path,
                                             struct sh_err *e)
{
    struct sh_texts_met met = {0};
    for (int i = 0; i < all->n; i++)
        if (is_own(a, &all->row[i]))
            sh_texts_meet(&met, &all->row[i].on);
    const struct sh_measured *on = NULL;
    if (met.n)
        on = sh_text_choose(&met, a->by->measured_on, path, e);
    else
        never_evaluated(a, all, path, e);
    free(met.at);
    return on;
}

int sh_plan_evals(struct sh_store *s, const struct sh_plan_ask *by, struct sh_plan_eval **out, int *n, struct sh_err *e)
{
    struct asked a = {.by = by};
    struct sh_results all = {0};
    struct sh_plan_eval one;
    sh_policy_knobs(by->policy, a.knobs);
    *n = 0;
    if (sh_results_load(s, "eval", &all, e))
        return -1;
    const struct sh_measured *on = choose_text(&a, &all, sh_store_path(s), e);
    struct sh_plan_eval *at = xcalloc((size_t)all.n + 1, sizeof *at);
    for (int i = 0; i < all.n && on; i++)
        if (read_eval(&a, &all.row[i], on, &one))
            add(at, n, &one, by->n_token);
    int bad = !on;
    sh_results_free(&all);
    for (int i = 0; i < *n; i++) {
        int tokens = sh_budget_tokens(&at[i].budget, by->n_token);
        at[i].mean_tokens = tokens < by->n_token ? tokens : by->n_token;
    }
    qsort(at, (size_t)*n, sizeof *at, smallest_first);
    *out = bad ? NULL : at;
    if (bad)
        free(at);
    return bad ? -1 : 0;
}
