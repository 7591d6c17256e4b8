/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/capacity/capacity_quality.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/policy/budget.h"
#include "planner/policy/policy.h"
#include "src/app/common/quality_limit.h"
#include "src/app/plan/judged_count.h"
#include "src/base/mem.h"
#include "src/app/store/measured.h"
#include "src/app/store/results.h"
#include "src/engine/eval_sums.h"
#include "src/model/model.h"

static void copy(const struct sh_result_row *r, const char *key, char *to, size_t bytes)
{
    snprintf(to, bytes, "%s", sh_result_text(r, key));
}

/* Replaces the fingerprint of a model with the store's name of it. */
static void name_model(const struct sh_stored_run *run, int n_run, struct sh_quality_point *p)
{
    int i = 0;
    while (i < n_run && strcmp(run[i].fingerprint, p->model))
        i++;
    if (i < n_run)
        snprintf(p->model, sizeof p->model, "%s", run[i].model);
}

/* A fingerprint, which a store without a trace has instead of a name. */
static int is_unnamed(const struct sh_quality_point *p)
{
    return strlen(p->model) == 16 && strspn(p->model, "0123456789abcdef") == 16;
}

/* Results with the fingerprint of one of these models, "folder,file.gguf", get its name. */
static void name_own(struct sh_quality_point *p, int n, const char *models)
{
    int n_unnamed = 0;
    for (int i = 0; i < n; i++)
        n_unnamed += is_unnamed(&p[i]);
    for (const char *at = models; n_unnamed && at && *at; at += strcspn(at, ",") + (strchr(at, ',') != NULL)) {
        char *path = xasprintf("%.*s", (int)strcspn(at, ","), at), print[24];
        struct sh_err ignored;
        struct sh_model *m = access(path, F_OK) ? NULL : sh_model_open(path, &ignored);
        if (m)
            snprintf(print, sizeof print, "%016" PRIx64, sh_model_fingerprint(m));
        for (int i = 0; i < n && m; i++)
            if (!strcmp(p[i].model, print))
                snprintf(p[i].model, sizeof p[i].model, "%s", path);
        sh_model_close(m);
        free(path);
    }
}

/* More than rounding and a step's new token explain. */
static int keeps_more(double tokens, double budget)
{
    return tokens > 1.5 * budget + 8;
}

/* Fills the point from the settings; 0: no budget can be taken from this result. */
static int describe(const struct sh_result_row *r, struct sh_quality_point *p)
{
    struct sh_budget b[SH_MAX_BUDGETS];
    struct sh_policy_spec spec;
    struct sh_err ignored;
    const json_t *o = r->settings, *bits = json_object_get(o, "kv_bits");
    double budget_tokens = sh_result(r, "budget_tokens", -1);
    int n = 0;
    copy(r, "policy", p->policy, sizeof p->policy);
    copy(r, "knobs", p->knobs, sizeof p->knobs);
    copy(r, "allocator", p->allocator, sizeof p->allocator);
    copy(r, "budget", p->budget, sizeof p->budget);
    copy(r, "model", p->model, sizeof p->model);
    p->on = r->on;
    /* 32 bits cost as much quality as 16; a cache is never wider than 16 bits here. */
    p->bits = json_is_integer(bits) && json_integer_value(bits) < 16 ? (int)json_integer_value(bits) : 16;
    sh_quality_settings(o, p->bits, p->settings, sizeof p->settings);
    p->tokens = sh_result_real(r, "tokens");
    p->length = r->on.texts && r->on.tokens ? (double)r->on.tokens / r->on.texts : (double)NAN;
    p->is_plan = json_object_get(o, "plan") != NULL;
    if (!strcmp(p->policy, "full") || sh_policy_parse(p->policy, &spec, &ignored) ||
        (spec.policy->needs & (SH_NEEDS_FUTURE | SH_IS_BOUND)) || sh_budget_parse(p->budget, b, &n, &ignored) || n != 1)
        return 0;
    if (!sh_result_is_of_model(r))      /* not what is asked about */
        return 0;
    p->prefill = sh_result_int(r, "prefill");
    /* Heads of a plan may keep more than its mean, but a prompt is in all of them. */
    double mean = b->tokens ? b->tokens : b->share * p->length;
    p->is_over = (!p->is_plan && keeps_more(sh_result(r, "peak_tokens", -1), budget_tokens)) ||
                 keeps_more((double)p->prefill, mean);
    return 1;
}

static int measure(const struct sh_result_row *r, struct sh_quality_point *p)
{
    struct sh_eval_mean change = {sh_result(r, "nll_change", -1), sh_result(r, "nll_change_stderr", -1)};
    double tokens = sh_result(r, "tokens", -1), sequences = sh_result(r, "error_sequences", -1);
    p->low = p->high = p->bound = (double)NAN;
    if (p->kind == SH_QUALITY_RECALL) {
        p->value = sh_result(r, "kept_mass", -1);
        p->low = sh_result(r, "kept_mass_low", -1);
        p->high = sh_result(r, "kept_mass_high", -1);
        return isfinite(p->value);
    }
    p->sequences = sequences > 0 && sequences < 0x1p31 ? (int)sequences : 0;
    p->tokens = isfinite(tokens) ? tokens : p->tokens;
    p->value = expm1(change.value);
    p->bound = sh_eval_increase_bound(change, p->sequences ? p->sequences : (long long)p->tokens);
    return isfinite(change.value);
}

/* A plan's own bound, if it is at least as sure as the others. */
static int measure_judged(const struct sh_result_row *r, struct sh_quality_point *p)
{
    double at[SH_N_JUDGED_METRIC];
    if (!sh_result_get(r, &sh_judged_metrics, at) || !(sh_result_real(r, "confidence") >= SH_EVAL_CONFIDENCE - 1e-9))
        return 0;
    p->is_plan = p->is_judged = 1;
    p->low = p->high = (double)NAN;
    p->value = at[SH_J_INCREASE];
    p->bound = at[SH_J_BOUND];
    p->sequences = at[SH_J_SEQUENCES] < 0x1p31 ? (int)at[SH_J_SEQUENCES] : 0;
    p->tokens = at[SH_J_TOKENS];
    return isfinite(p->value);
}

/* Leaves out the policies that exceeded some budget: they may have met the others only by chance. Returns how many
 * points remain. */
static int leave_out_over(struct sh_quality_point *p, int n)
{
    int n_kept = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n && p[i].is_over; k++)
            p[k].is_over |= p[i].prefill == p[k].prefill && !strcmp(p[i].policy, p[k].policy) &&
                            !strcmp(p[i].knobs, p[k].knobs);
    for (int i = 0; i < n; i++)
        if (!p[i].is_over)
            p[n_kept++] = p[i];
    return n_kept;
}

int sh_quality_read(const char *db, const char *models, struct sh_quality_point **out, int *n, struct sh_err *e)
{
    struct sh_stored_run *run = NULL;
    int n_run = 0;
    struct sh_results all = {0};
    struct sh_store *s = sh_store_open(db, e);
    int bad = !s || sh_store_runs(s, &run, &n_run, e) || sh_results_load(s, "eval", &all, e), n_eval = all.n;
    bad = bad || sh_results_load(s, "judged", &all, e);
    int n_judged = all.n;
    bad = bad || sh_results_load(s, "replay", &all, e);
    struct sh_quality_point *at = xcalloc((size_t)all.n + 1, sizeof *at);
    *n = 0;
    for (int i = 0; i < all.n && !bad; i++) {
        struct sh_quality_point p = {.kind = i < n_judged ? SH_QUALITY_PPL : SH_QUALITY_RECALL};
        int is_judged = i >= n_eval && i < n_judged;
        if (!describe(&all.row[i], &p) || !(is_judged ? measure_judged : measure)(&all.row[i], &p))
            continue;
        name_model(run, n_run, &p);
        at[(*n)++] = p;
    }
    sh_results_free(&all);
    sh_stored_runs_free(run, n_run);
    sh_store_close(s);
    if (bad) {
        free(at);
        return -1;
    }
    *n = leave_out_over(at, *n);
    name_own(at, *n, models);
    *out = at;
    return 0;
}

int sh_quality_one_limit(const struct sh_capacity_args *a, struct sh_err *e)
{
    if (a->max_ppl && a->min_recall)
        return sh_misused(e, "--max-ppl-increase and --min-recall cannot be combined: expected one of them");
    return 0;
}

int sh_quality_ask(const struct sh_capacity_args *a, const char *kv, const struct sh_kv_shape *shape,
                   const struct sh_quality_point *p, int n, struct sh_quality_ask *out, struct sh_err *e)
{
    *out = (struct sh_quality_ask){.kind = a->min_recall ? SH_QUALITY_RECALL : SH_QUALITY_PPL, .policy = a->policy,
                                   .model = shape->f.name, .measured_on = a->measured_on,
                                   .length = (uint64_t)a->length, .shape = a->policy_state ? shape : NULL,
                                   .rule = {.page = 1, .budget = SH_BUDGET_TOKENS}};
    if (sh_capacity_kv(kv, &out->rule, e))
        return -1;
    out->bits = out->rule.k.bits < out->rule.v.bits ? out->rule.k.bits : out->rule.v.bits;
    out->bits = out->bits > 16 ? 16 : out->bits;
    sh_quality_narrow(p, n, out);
    if (a->max_ppl)
        return sh_quality_increase("--max-ppl-increase", a->max_ppl, &out->limit, e);
    return a->min_recall ? sh_quality_share("--min-recall", a->min_recall, &out->limit, e) : 0;
}

double sh_quality_kept(const struct sh_quality_point *p, uint64_t length)
{
    double b = strtod(p->budget, NULL), all = (double)length;
    return strchr(p->budget, '.') ? ceil(b * all) : fmin(b, all);
}

int sh_quality_fits(const struct sh_quality_point *p, const struct sh_quality_ask *a)
{
    return p->kind == a->kind && p->bits == a->bits && (!a->policy || !strcmp(a->policy, p->policy)) &&
           (!a->own_model || sh_capacity_same_model(p->model, a->model)) &&
           (!a->measured_on || sh_text_answers(&p->on, a->measured_on));
}

void sh_quality_narrow(const struct sh_quality_point *p, int n, struct sh_quality_ask *a)
{
    a->own_model = 0;
    for (int i = 0; i < n && a->model; i++)
        a->own_model |= sh_capacity_same_model(p[i].model, a->model);
}

int sh_quality_has_enough(const struct sh_quality_point *p)
{
    return p->kind != SH_QUALITY_PPL || p->sequences >= SH_JUDGED_LEAST;
}

int sh_quality_reaches(const struct sh_quality_point *p, uint64_t length)
{
    return strchr(p->budget, '.') || (double)length <= 1.1 * p->length;
}

static int applies(const struct sh_quality_point *p, const struct sh_quality_ask *a)
{
    return sh_quality_fits(p, a) && sh_quality_reaches(p, a->length);
}

/* -1: the points that apply are of several texts. */
static int check_texts(const struct sh_quality_point *p, int n, const char *db, const struct sh_quality_ask *a,
                       struct sh_err *e)
{
    struct sh_texts_met met = {0};
    for (int i = 0; i < n; i++)
        if (applies(&p[i], a))
            sh_texts_meet(&met, &p[i].on);
    int bad = met.n > 1 && !sh_text_choose(&met, a->measured_on, db, e);
    free(met.at);
    return bad ? -1 : 0;
}

double sh_quality_judged(const struct sh_quality_point *p)
{
    return p->kind == SH_QUALITY_PPL ? p->bound : p->value;
}

/* A bound that is not known is the worst. */
static int is_better(const struct sh_quality_point *p, const struct sh_quality_point *than)
{
    double own = sh_quality_judged(p), other = sh_quality_judged(than);
    return isnan(other) ? !isnan(own) : p->kind == SH_QUALITY_PPL ? own < other : own > other;
}

static int meets(const struct sh_quality_point *p, double limit)
{
    double judged = sh_quality_judged(p);
    return p->kind == SH_QUALITY_PPL ? judged <= limit : judged >= limit;
}

static void none_meets(const struct sh_quality_point *best, const char *db, const struct sh_quality_ask *a,
                       struct sh_err *e)
{
    int is_ppl = a->kind == SH_QUALITY_PPL;
    char *policy = sh_quality_policy(best), *cost = sh_quality_cost(best);
    sh_fail(e, "%s: no measured budget %s %.4g%s; the best is %s%s at %s with %s%s", db,
            is_ppl ? "is shown to raise the perplexity by at most" : "keeps a mass of at least",
            is_ppl ? 100 * a->limit : a->limit, is_ppl ? " %" : "", policy, best->is_plan ? " (a plan)" : "",
            best->budget, cost, is_ppl && best->value <= a->limit ? ": more texts may show it" : "");
    free(policy);
    free(cost);
}

/* Suggests shares of a text: they apply to any length. */
void sh_quality_more(const char *db, const struct sh_quality_ask *a, struct sh_err *e)
{
    const char *policy = a->policy ? a->policy : "h2o";
    char bits[24] = "";
    if (a->bits < 16)
        snprintf(bits, sizeof bits, " --kv-bits %d", a->bits);
    if (a->kind == SH_QUALITY_PPL)
        sh_hint(e, "to measure more, run: shears eval --model DIR --text FILE --policy %s --budget 0.1,0.2,0.5%s "
                "--db %s", policy, bits, db);
    else if (a->bits < 16)
        sh_hint(e, "replay measures a 16-bit cache only: use --kv f16, or --max-ppl-increase");
    else
        sh_hint(e, "to measure more, run: shears replay --policy %s --budget 0.1,0.2,0.5 --db %s", policy, db);
}

double sh_quality_size(const struct sh_quality_point *p, const struct sh_quality_ask *a)
{
    const struct sh_capacity_args counts = {.policy_state = 1};
    struct sh_kv_rule rule = a->rule;
    if (!a->shape)
        return sh_quality_kept(p, a->length);
    rule.tokens = (uint64_t)sh_quality_kept(p, a->length);
    sh_capacity_add_state(&counts, NULL, p, a->shape, a->length, &rule);
    return (double)sh_kv_bytes(a->shape, &rule, 0, a->shape->f.layers, 1, a->length).sequence;
}

const struct sh_quality_point *sh_quality_least(const struct sh_quality_point *p, int n, const char *db,
                                                const struct sh_quality_ask *a, struct sh_err *e)
{
    const struct sh_quality_point *least = NULL, *best = NULL;
    int is_ppl = a->kind == SH_QUALITY_PPL;
    if (check_texts(p, n, db, a, e))
        return NULL;
    for (int i = 0; i < n; i++) {
        if (!applies(&p[i], a))
            continue;
        best = !best || is_better(&p[i], best) ? &p[i] : best;
        if (!meets(&p[i], a->limit))
            continue;
        double size = sh_quality_size(&p[i], a), than = least ? sh_quality_size(least, a) : 0;
        if (!least || size < than || (size <= than && is_better(&p[i], least)))
            least = &p[i];
    }
    if (least)
        return least;
    if (!best)
        sh_fail(e, "%s: contains no %s of %s with %d-bit keys and values that applies to %llu tokens%s%.80s "
                "(what kept more than its budget, as a long --prefill does, is left out)", db,
                is_ppl ? "eval" : "replay", a->policy ? a->policy : "a budget", a->bits,
                (unsigned long long)a->length, a->measured_on ? ", on " : "", a->measured_on ? a->measured_on : "");
    else
        none_meets(best, db, a, e);
    sh_quality_more(db, a, e);
    return NULL;
}

/* " (rises by at most 0.72 % with 95 % confidence, …)" or, of an interval, " (95 % interval …)"; or nothing. */
static void range_text(const struct sh_quality_point *p, char *to, size_t bytes)
{
    char sure[64] = "if tokens were independent, which they are not";
    *to = '\0';
    if (p->sequences)
        snprintf(sure, sizeof sure, "over %d sequences of %d text%s", p->sequences, p->on.texts,
                 p->on.texts == 1 ? "" : "s");
    if (isfinite(p->low) && isfinite(p->high))
        snprintf(to, bytes, " (95 %% interval %.4g to %.4g)", p->low, p->high);
    else if (isfinite(p->bound))
        snprintf(to, bytes, " (%s %.2f %% with 95 %% confidence%s %s)",
                 p->bound < 0 ? "falls by at least" : "rises by at most", 100 * fabs(p->bound),
                 p->sequences ? "," : "", sure);
}

char *sh_quality_text(const struct sh_quality_point *p, const char *db, const char *model, uint64_t length)
{
    char range[160], other[240] = "", beyond[120] = "", spread[96] = "", value[60], text[SH_MEASURED_NAME + 2] = "";
    const char *slash = strrchr(db, '/');
    if (!sh_capacity_same_model(p->model, model))
        snprintf(other, sizeof other, "measured on another model, %.150s: ", *p->model ? p->model : "unnamed");
    range_text(p, range, sizeof range);
    if (p->kind == SH_QUALITY_PPL)
        snprintf(value, sizeof value, "perplexity %s by %.2f %%", p->value < 0 ? "falls" : "rises",
                 100 * fabs(p->value));
    else
        snprintf(value, sizeof value, "kept mass %.4g", p->value);
    if (p->is_plan)
        snprintf(spread, sizeof spread, " on average, divided by a plan%s",
                 p->is_judged ? " and judged on texts that its search did not use" : "");
    else if (*p->allocator && strcmp(p->allocator, "uniform"))
        snprintf(spread, sizeof spread, " divided by %.60s", p->allocator);
    if (p->length > 0 && (double)length > 1.1 * p->length)
        snprintf(beyond, sizeof beyond, "; these texts have %.0f tokens on average, and longer ones were not measured",
                 p->length);
    if (*p->on.name)
        snprintf(text, sizeof text, "%s, ", p->on.name);
    return xasprintf("%s%s%s%s at %s%s, %s%s over %.0f %stokens of %s%s%s", other, p->policy, *p->knobs ? ":" : "",
                     p->knobs, p->budget, spread, value, range, p->tokens,
                     p->kind == SH_QUALITY_PPL ? "predicted " : "", text, slash ? slash + 1 : db, beyond);
}

char *sh_quality_cost(const struct sh_quality_point *p)
{
    char over[48] = "";
    if (p->kind == SH_QUALITY_RECALL)
        return xasprintf("kept mass %.4f", p->value);
    if (isnan(p->bound))
        return xasprintf("perplexity %+.2f %%, no bound", 100 * p->value);
    if (p->sequences)
        snprintf(over, sizeof over, "%d sequences", p->sequences);
    char most[40] = "no increase";
    if (p->bound >= 0)
        snprintf(most, sizeof most, "at most %+.2f %%", 100 * p->bound);
    return xasprintf("perplexity %+.2f %% (%s, over %s)", 100 * p->value, most, p->sequences ? over : "tokens");
}

/* ---- names ---- */

/* Settings that the name says anyway, that only count the texts, and the bits, which are chosen before. */
static int is_known(const char *key, int bits)
{
    static const char *const known[] = {"policy", "knobs", "budget", "model", "kv_bits", "tokens", "sequences", "texts",
                                        "layers_done", "run"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(key, known[i]))
            return 1;
    return bits >= 16 && !strcmp(key, "group");
}

void sh_quality_settings(const json_t *settings, int bits, char *to, size_t bytes)
{
    const char *key;
    json_t *value;
    size_t used = 0;
    *to = '\0';
    json_object_foreach((json_t *)settings, key, value) {
        char *text = json_is_string(value) ? xstrdup(json_string_value(value)) : json_dumps(value, JSON_ENCODE_ANY);
        size_t n = strlen(key) + (text ? strlen(text) : 0) + 2;
        if (text && !is_known(key, bits) && used + n < bytes)
            used += (size_t)snprintf(to + used, bytes - used, "%s=%s\n", key, text);
        free(text);
    }
}

/* Is the line, which ends with a newline, one of the settings? */
static int has_line(const char *settings, const char *line)
{
    const char *at = strstr(settings, line);
    while (at && at != settings && at[-1] != '\n')
        at = strstr(at + 1, line);
    return at != NULL;
}

static int is_common(const struct sh_quality_point *const *all, int n, const char *line)
{
    for (int i = 0; i < n; i++)
        if (!has_line(all[i]->settings, line))
            return 0;
    return 1;
}

/* "prefill=64\n" as ", prefill 64" */
static void say(FILE *to, const char *line)
{
    size_t key = strcspn(line, "="), value = strcspn(line + key + 1, "\n");
    fputs(", ", to);
    for (size_t i = 0; i < key; i++)
        putc(line[i] == '_' ? ' ' : line[i], to);
    fprintf(to, " %.*s", (int)value, line + key + 1);
}

char *sh_quality_policy(const struct sh_quality_point *p)
{
    int is_bound;
    char *whole = xasprintf("%s%s%s", p->policy, *p->knobs ? ":" : "", p->knobs),
         *label = sh_policy_label(whole, &is_bound);
    free(whole);
    return label;
}

/* Points with the same name are on one line of a figure, so a name contains all settings that differ among them. */
char *sh_quality_name(const struct sh_quality_point *const *all, int n, const struct sh_quality_point *p)
{
    char *name, *policy = sh_quality_policy(p), line[SH_QUALITY_SETTINGS];
    size_t bytes;
    FILE *to = xmemstream(&name, &bytes);
    fputs(policy, to);
    free(policy);
    for (const char *at = p->settings; *at; at += strlen(line)) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n") + 1, at);
        if (!is_common(all, n, line))
            say(to, line);
    }
    struct sh_texts_met met = {0};
    for (int i = 0; i < n; i++)
        sh_texts_meet(&met, &all[i]->on);
    if (met.n > 1) {
        char *label = sh_text_label(&met, &p->on);
        fprintf(to, ", on %s", label);
        free(label);
    }
    free(met.at);
    xmemclose(to, &name, &bytes);
    return name;
}
