/* SPDX-License-Identifier: Apache-2.0 */
/* See plan_evals.h. Settings are JSON of the eval command's own; what does not look like it is passed over. */
#include "src/app/plan/plan_evals.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/app/store/result_check.h"

struct evals {
    const char *store;
    const char *fingerprint, *policy;
    char knobs[SH_POLICY_TEXT];
    int weight_bits, prefill, n_token, n, cap;
    struct sh_plan_eval *at;
    char *settings;                     /* of the result before, and what it said                 */
    struct sh_plan_eval now;
    int is_ours, has_ppl;
};

static int says(const json_t *o, const char *key, const char *text)
{
    const char *v = json_string_value(json_object_get(o, key));
    return v && !strcmp(v, text);
}

static int counts(const json_t *o, const char *key, int n)
{
    const json_t *v = json_object_get(o, key);
    return json_is_integer(v) && json_integer_value(v) == n;
}

/* Is this an evaluation of what is asked for, and under which budget? */
static int is_ours(const struct evals *f, const char *settings, struct sh_budget *budget)
{
    json_t *o = json_loads(settings, 0, NULL);
    int full = says(o, "policy", "full"), ours, n = 0;
    struct sh_budget b[SH_MAX_BUDGETS];
    struct sh_err ignored;
    const char *text = json_string_value(json_object_get(o, "budget"));
    ours = (full || (says(o, "policy", f->policy) && says(o, "knobs", f->knobs) && counts(o, "prefill", f->prefill))) &&
           says(o, "model", f->fingerprint) && json_integer_value(json_object_get(o, "kv_bits")) >= 16 &&
           counts(o, "weight_bits", f->weight_bits) &&
           !json_object_get(o, "plan") &&
           (!json_object_get(o, "allocator") || says(o, "allocator", "uniform"));
    if (ours && full)
        b[n++] = (struct sh_budget){0, 1};
    else if (ours && (!text || sh_budget_parse(text, b, &n, &ignored)))
        ours = 0;
    json_decref(o);
    if (ours && n == 1)
        *budget = b[0];
    return ours && n == 1;
}

static void finish(struct evals *f)
{
    int k = 0;
    if (!f->is_ours || !f->has_ppl)
        return;
    for (; k < f->n; k++)
        if (sh_budget_tokens(&f->at[k].budget, f->n_token) == sh_budget_tokens(&f->now.budget, f->n_token))
            break;
    if (k < f->n) {                     /* another text, or another precision */
        if (f->now.ppl > f->at[k].ppl)
            f->at[k] = f->now;
        return;
    }
    if (f->n == f->cap)
        f->at = xreallocarray(f->at, (size_t)(f->cap = 2 * f->cap + 8), sizeof *f->at);
    f->at[f->n++] = f->now;
}

static int take(void *to, const struct sh_stored_result *r, struct sh_err *e)
{
    struct evals *f = to;
    if (sh_result_check(r, f->store, "eval", e))
        return -1;
    if (!f->settings || strcmp(f->settings, r->settings)) {
        finish(f);
        free(f->settings);
        f->settings = xstrdup(r->settings);
        f->now = (struct sh_plan_eval){.stderr_ppl = (double)NAN};
        f->has_ppl = 0;
        f->is_ours = is_ours(f, r->settings, &f->now.budget);
    }
    if (!strcmp(r->metric, "ppl") && isfinite(r->value)) {
        f->now.ppl = r->value;
        f->has_ppl = 1;
    } else if (!strcmp(r->metric, "ppl_stderr")) {
        f->now.stderr_ppl = r->value;
    } else if (!strcmp(r->metric, "tokens") && r->value >= 0 && r->value < 0x1p53) {
        f->now.tokens = (long long)r->value;
    } else if (!strcmp(r->metric, "sequences") && r->value >= 1 && r->value < 0x1p31) {
        f->now.sequences = (int)r->value;
    }
    return 0;
}

static int smallest_first(const void *a, const void *b)
{
    const struct sh_plan_eval *x = a, *y = b;
    return (x->mean_tokens > y->mean_tokens) - (x->mean_tokens < y->mean_tokens);
}

int sh_plan_evals(struct sh_store *s, const char *fingerprint, int weight_bits, const struct sh_policy_spec *policy,
                  int prefill, int n_token, struct sh_plan_eval **out, int *n, struct sh_err *e)
{
    struct evals f = {.store = sh_store_path(s), .fingerprint = fingerprint, .policy = policy->policy->name,
                      .weight_bits = weight_bits,
                      .prefill = prefill, .n_token = n_token};
    sh_policy_knobs(policy, f.knobs);
    int bad = sh_store_read_results(s, "eval", take, &f, e);
    finish(&f);
    free(f.settings);
    if (bad) {
        free(f.at);
        return -1;
    }
    for (int i = 0; i < f.n; i++) {
        int tokens = sh_budget_tokens(&f.at[i].budget, n_token);
        f.at[i].mean_tokens = tokens < n_token ? tokens : n_token;
    }
    if (f.n)
        qsort(f.at, (size_t)f.n, sizeof *f.at, smallest_first);
    *out = f.at;
    *n = f.n;
    return 0;
}
