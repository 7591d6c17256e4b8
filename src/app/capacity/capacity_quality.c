/* SPDX-License-Identifier: Apache-2.0 */
/* See capacity_quality.h. Settings are JSON of the commands' own; what does not look like it is passed over. */
#include "src/app/capacity/capacity_quality.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/policy/budget.h"
#include "planner/policy/policy.h"
#include "src/base/mem.h"
#include "src/app/capacity/capacity_plan.h"
#include "traces/store.h"

/* Figures of one setting, as they come. */
struct figures { double change, error, mass, low, high, tokens, budget_tokens, peak_tokens; };

struct reader {
    enum sh_quality kind;
    const struct sh_stored_run *run;
    int n_run;
    char *settings;                     /* of the figures                                         */
    struct figures f;
    struct sh_quality_point *at;
    int n;
};

static void copy(const json_t *o, const char *key, char *to, size_t bytes)
{
    const char *text = json_string_value(json_object_get(o, key));
    snprintf(to, bytes, "%s", text ? text : "");
}

/* The store's name of the model with that fingerprint. */
static void name_model(const struct reader *r, struct sh_quality_point *p)
{
    for (int i = 0; i < r->n_run; i++)
        if (!strcmp(r->run[i].fingerprint, p->model)) {
            snprintf(p->model, sizeof p->model, "%s", r->run[i].model);
            return;
        }
}

/* What the settings are about; 0: nothing that a budget could be taken from. */
static int describe(const struct reader *r, const json_t *o, struct sh_quality_point *p)
{
    struct sh_budget b[SH_MAX_BUDGETS];
    struct sh_policy_spec spec;
    struct sh_err ignored;
    const json_t *bits = json_object_get(o, "kv_bits");
    double tokens = json_number_value(json_object_get(o, "tokens"));
    double sequences = json_number_value(json_object_get(o, "sequences"));
    int n = 0;
    copy(o, "policy", p->policy, sizeof p->policy);
    copy(o, "knobs", p->knobs, sizeof p->knobs);
    copy(o, "allocator", p->allocator, sizeof p->allocator);
    copy(o, "budget", p->budget, sizeof p->budget);
    copy(o, "model", p->model, sizeof p->model);
    copy(o, "texts", p->texts, sizeof p->texts);
    /* What 32 bits cost 16 bits do; a cache in memory is never wider here. */
    p->bits = json_is_integer(bits) && json_integer_value(bits) < 16 ? (int)json_integer_value(bits) : 16;
    sh_quality_settings(o, p->bits, p->settings, sizeof p->settings);
    p->tokens = tokens;
    p->length = tokens > 0 && sequences > 0 ? tokens / sequences : (double)NAN;
    if (json_object_get(o, "plan") || !strcmp(p->policy, "full") || sh_policy_parse(p->policy, &spec, &ignored) ||
        (spec.policy->needs & (SH_NEEDS_FUTURE | SH_IS_BOUND)) || sh_budget_parse(p->budget, b, &n, &ignored) || n != 1)
        return 0;
    p->is_over = r->f.peak_tokens > 1.5 * r->f.budget_tokens + 8;
    if (json_object_get(o, "weight_bits") && json_integer_value(json_object_get(o, "weight_bits")) < 16)
        return 0;
    if (json_object_get(o, "weight_prune"))                     /* other weights than those that are asked for */
        return 0;
    if (!(p->length > 0) && !b[0].tokens && r->f.budget_tokens > 0)
        p->length = r->f.budget_tokens / b[0].share;
    name_model(r, p);
    return 1;
}

static void finish(struct reader *r)
{
    struct sh_quality_point p = {.kind = r->kind};
    const struct figures *f = &r->f;
    json_t *o = r->settings ? json_loads(r->settings, 0, NULL) : NULL;
    int is_ppl = r->kind == SH_QUALITY_PPL, ok = o && describe(r, o, &p) && isfinite(is_ppl ? f->change : f->mass);
    json_decref(o);
    free(r->settings);
    r->settings = NULL;
    if (!ok)
        return;
    p.value = is_ppl ? expm1(f->change) : f->mass;
    p.low = is_ppl ? expm1(f->change - 1.96 * f->error) : f->low;
    p.high = is_ppl ? expm1(f->change + 1.96 * f->error) : f->high;
    p.tokens = isfinite(f->tokens) ? f->tokens : p.tokens;
    r->at = xreallocarray(r->at, (size_t)r->n + 1, sizeof *r->at);
    r->at[r->n++] = p;
}

static int take(void *to, const struct sh_stored_result *s, struct sh_err *e)
{
    struct reader *r = to;
    struct figures *f = &r->f;
    const struct { const char *name; double *to; } known[] = {
        {"nll_change", &f->change}, {"nll_change_stderr", &f->error}, {"kept_mass", &f->mass},
        {"kept_mass_low", &f->low}, {"kept_mass_high", &f->high}, {"tokens", &f->tokens},
        {"budget_tokens", &f->budget_tokens}, {"peak_tokens", &f->peak_tokens}};
    (void)e;
    if (!r->settings || strcmp(r->settings, s->settings)) {
        finish(r);
        r->settings = xstrdup(s->settings);
        double no = (double)NAN;
        *f = (struct figures){no, no, no, no, no, no, no, no};
    }
    for (size_t i = 0; i < sizeof known / sizeof *known && s->layer < 0 && s->head < 0; i++)
        if (!strcmp(known[i].name, s->metric))
            *known[i].to = s->value;
    return 0;
}

/* Evaluations under a share tell how long the texts are, also for those of the same texts under tokens. */
static void fill_lengths(struct sh_quality_point *p, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n && !(p[i].length > 0); k++)
            if (*p[i].texts && !strcmp(p[i].texts, p[k].texts) && p[k].length > 0)
                p[i].length = p[k].length;
}

/* One that kept more than some budget is no evidence under the others, which it may only have met by chance. */
static int is_over(const struct sh_quality_point *p, int n, const struct sh_quality_point *one)
{
    int over = 0;
    for (int i = 0; i < n; i++)
        over |= p[i].is_over && !strcmp(p[i].policy, one->policy) && !strcmp(p[i].knobs, one->knobs);
    return over;
}

static int leave_out_over(struct sh_quality_point *p, int n)
{
    struct sh_quality_point *kept = xcalloc((size_t)n + 1, sizeof *kept);
    int n_kept = 0;
    for (int i = 0; i < n; i++)
        if (!is_over(p, n, &p[i]))
            kept[n_kept++] = p[i];
    memcpy(p, kept, (size_t)n_kept * sizeof *p);
    free(kept);
    return n_kept;
}

int sh_quality_read(const char *db, struct sh_quality_point **out, int *n, struct sh_err *e)
{
    struct sh_stored_run *run = NULL;
    int n_run = 0;
    struct sh_store *s = sh_store_open(db, e);
    *out = NULL;
    *n = 0;
    if (!s)
        return -1;
    struct reader r = {0};
    int bad = sh_store_runs(s, &run, &n_run, e);
    r.run = run;
    r.n_run = n_run;
    for (int k = 0; k < 2 && !bad; k++) {
        r.kind = k ? SH_QUALITY_RECALL : SH_QUALITY_PPL;
        bad = sh_store_read_results(s, k ? "replay" : "eval", take, &r, e);
        finish(&r);
    }
    sh_stored_runs_free(run, n_run);
    sh_store_close(s);
    if (bad) {
        free(r.at);
        return -1;
    }
    fill_lengths(r.at, r.n);
    *out = r.at;
    *n = r.n ? leave_out_over(r.at, r.n) : 0;
    return 0;
}

double sh_quality_kept(const struct sh_quality_point *p, uint64_t length)
{
    double b = strtod(p->budget, NULL), all = (double)length;
    return strchr(p->budget, '.') ? ceil(b * all) : fmin(b, all);
}

int sh_quality_fits(const struct sh_quality_point *p, const struct sh_quality_ask *a)
{
    return p->kind == a->kind && p->bits == a->bits && (!a->policy || !strcmp(a->policy, p->policy));
}

static int is_known_at(const struct sh_quality_point *p, uint64_t length)
{
    return strchr(p->budget, '.') || (double)length <= 1.1 * p->length;
}

int sh_quality_meets(const struct sh_quality_point *p, const struct sh_quality_ask *a)
{
    return sh_quality_fits(p, a) && is_known_at(p, a->length) &&
           (a->kind == SH_QUALITY_PPL ? p->value <= a->limit : p->value >= a->limit);
}

static int is_better(const struct sh_quality_point *p, const struct sh_quality_point *than)
{
    return p->kind == SH_QUALITY_PPL ? p->value < than->value : p->value > than->value;
}

static void none_meets(const struct sh_quality_point *best, const char *db, const struct sh_quality_ask *a,
                       struct sh_err *e)
{
    int is_ppl = a->kind == SH_QUALITY_PPL;
    char *policy = sh_quality_policy(best);
    sh_fail(e, "%s: no measured budget %s %.4g%s; the best is %s at %s with %.4g%s", db,
            is_ppl ? "raises the perplexity by at most" : "keeps a mass of at least",
            is_ppl ? 100 * a->limit : a->limit, is_ppl ? " %" : "", policy, best->budget,
            is_ppl ? 100 * best->value : best->value, is_ppl ? " %" : "");
    free(policy);
}

/* Shares of a text: they say something of any length. */
void sh_quality_more(const char *db, const struct sh_quality_ask *a, struct sh_err *e)
{
    const char *policy = a->policy ? a->policy : "h2o";
    char bits[24] = "";
    if (a->bits < 16)
        snprintf(bits, sizeof bits, " --kv-bits %d", a->bits);
    if (a->kind == SH_QUALITY_PPL)
        sh_hint(e, "more is measured by: shears eval --model DIR --text FILE --policy %s --budget 0.1,0.2,0.5%s "
                "--db %s", policy, bits, db);
    else if (a->bits < 16)
        sh_hint(e, "a replay keeps 16-bit numbers: ask with --kv f16, or for --max-ppl-increase");
    else
        sh_hint(e, "more is measured by: shears replay --policy %s --budget 0.1,0.2,0.5 --db %s", policy, db);
}

const struct sh_quality_point *sh_quality_least(const struct sh_quality_point *p, int n, const char *db,
                                                const struct sh_quality_ask *a, struct sh_err *e)
{
    const struct sh_quality_point *least = NULL, *best = NULL;
    int is_ppl = a->kind == SH_QUALITY_PPL;
    for (int i = 0; i < n; i++) {
        if (!sh_quality_fits(&p[i], a) || !is_known_at(&p[i], a->length))
            continue;
        best = !best || is_better(&p[i], best) ? &p[i] : best;
        if (!sh_quality_meets(&p[i], a))
            continue;
        double kept = sh_quality_kept(&p[i], a->length), than = least ? sh_quality_kept(least, a->length) : 0;
        if (!least || kept < than || (kept <= than && is_better(&p[i], least)))
            least = &p[i];
    }
    if (least)
        return least;
    if (!best)
        sh_fail(e, "%s: no %s of %s with %d-bit numbers is in it that says something of %llu tokens", db,
                is_ppl ? "eval" : "replay", a->policy ? a->policy : "a budget", a->bits,
                (unsigned long long)a->length);
    else
        none_meets(best, db, a, e);
    sh_quality_more(db, a, e);
    return NULL;
}

char *sh_quality_text(const struct sh_quality_point *p, const char *db, const char *model, uint64_t length)
{
    char range[80] = "", other[240] = "", beyond[120] = "", spread[80] = "";
    int is_ppl = p->kind == SH_QUALITY_PPL;
    double unit = is_ppl ? 100 : 1;
    const char *slash = strrchr(db, '/');
    if (!sh_capacity_same_model(p->model, model))
        snprintf(other, sizeof other, "measured on another model, %.150s: ", *p->model ? p->model : "unnamed");
    if (isfinite(p->low) && isfinite(p->high))
        snprintf(range, sizeof range, " (%.4g to %.4g)", unit * p->low, unit * p->high);
    if (*p->allocator && strcmp(p->allocator, "uniform"))
        snprintf(spread, sizeof spread, " spread by %.60s", p->allocator);
    if (p->length > 0 && (double)length > 1.1 * p->length)
        snprintf(beyond, sizeof beyond, ", whose texts have %.0f tokens: longer ones are not measured", p->length);
    return xasprintf("%s%s%s%s at %s%s, %s %.4g%s over %.0f tokens of %s%s", other, p->policy, *p->knobs ? ":" : "",
                     p->knobs, p->budget, spread, is_ppl ? "perplexity rises (%) by" : "kept mass", unit * p->value,
                     range, p->tokens, slash ? slash + 1 : db, beyond);
}

int sh_quality_share(const char *option, const char *text, double *out, struct sh_err *e)
{
    char *end;
    double x = strtod(text, &end);
    int is_percent = *end == '%';
    if (end == text || end[is_percent] || !(x >= 0 && x <= 1000))
        return sh_misused(e, "%s: found \"%.40s\", expected a share such as 0.01 or 1%%", option, text);
    *out = is_percent ? x / 100 : x;
    return 0;
}
