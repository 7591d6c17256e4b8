/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluations in a store (plan_measure.h). Results whose settings are not those of shears eval are skipped. */
#include "src/app/plan/plan_measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/app/store/results.h"

struct asked {
    const char *fingerprint, *policy;
    char knobs[SH_POLICY_TEXT];
    int weight_bits, prefill;
};

static int says(const struct sh_result_row *r, const char *key, const char *text)
{
    return !strcmp(sh_result_text(r, key), text);
}

/* Is this an evaluation of what is asked for, and under which budget? */
static int is_asked(const struct asked *a, const struct sh_result_row *r, struct sh_budget *budget)
{
    struct sh_budget b[SH_MAX_BUDGETS];
    struct sh_err ignored;
    int n = 0, is_full = says(r, "policy", "full");
    if (!is_full && (!says(r, "policy", a->policy) || !says(r, "knobs", a->knobs) ||
                     sh_result_int(r, "prefill") != a->prefill))
        return 0;
    if (!says(r, "model", a->fingerprint) || sh_result_int(r, "kv_bits") < 16 ||
        sh_result_int(r, "weight_bits") != a->weight_bits || json_object_get(r->settings, "plan") ||
        (json_object_get(r->settings, "allocator") && !says(r, "allocator", "uniform")))
        return 0;
    if (is_full)
        b[n++] = (struct sh_budget){0, 1};
    else if (sh_budget_parse(sh_result_text(r, "budget"), b, &n, &ignored))
        return 0;
    *budget = b[0];
    return n == 1;
}

/* 0: the result is of no use. */
static int read_eval(const struct asked *a, const struct sh_result_row *r, struct sh_plan_eval *out)
{
    double tokens = sh_result(r, "tokens", -1), sequences = sh_result(r, "sequences", -1);
    *out = (struct sh_plan_eval){.ppl = sh_result(r, "ppl", -1), .stderr_ppl = sh_result(r, "ppl_stderr", -1)};
    out->tokens = tokens < 0x1p53 ? (long long)tokens : 0;
    out->sequences = sequences < 0x1p31 ? (int)sequences : 0;
    return isfinite(out->ppl) && is_asked(a, r, &out->budget);
}

/* Keeps the worst evaluation of each budget. */
static void add(struct sh_plan_eval *at, int *n, const struct sh_plan_eval *new, int n_token)
{
    int k = 0;
    while (k < *n && sh_budget_tokens(&at[k].budget, n_token) != sh_budget_tokens(&new->budget, n_token))
        k++;
    if (k == *n)
        at[(*n)++] = *new;
    else if (new->ppl > at[k].ppl)      /* another text, or another precision */
        at[k] = *new;
}

static int smallest_first(const void *a, const void *b)
{
    const struct sh_plan_eval *x = a, *y = b;
    return (x->mean_tokens > y->mean_tokens) - (x->mean_tokens < y->mean_tokens);
}

int sh_plan_evals(struct sh_store *s, const struct sh_stored_run *run, const struct sh_policy_spec *policy, int prefill,
                  int n_token, struct sh_plan_eval **out, int *n, struct sh_err *e)
{
    struct asked a = {run->fingerprint, policy->policy->name, .weight_bits = run->weight_bits, .prefill = prefill};
    struct sh_results all = {0};
    struct sh_plan_eval one;
    sh_policy_knobs(policy, a.knobs);
    *out = NULL;
    *n = 0;
    if (sh_results_load(s, "eval", &all, e))
        return -1;
    struct sh_plan_eval *at = xcalloc((size_t)all.n + 1, sizeof *at);
    for (int i = 0; i < all.n; i++)
        if (read_eval(&a, &all.row[i], &one))
            add(at, n, &one, n_token);
    sh_results_free(&all);
    for (int i = 0; i < *n; i++) {
        int tokens = sh_budget_tokens(&at[i].budget, n_token);
        at[i].mean_tokens = tokens < n_token ? tokens : n_token;
    }
    qsort(at, (size_t)*n, sizeof *at, smallest_first);
    *out = at;
    return 0;
}
