/* SPDX-License-Identifier: Apache-2.0 */
/* shears plan: the smallest KV budget that meets a target, per layer and head, as a file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"
#include "src/app/plan/plan_measure.h"
#include "src/app/common/recorded.h"
#include "traces/store.h"

struct plan_args {
    const char *db, *policy, *budget, *allocator, *out, *rows, *plan, *measured_on;
    double recall, error, ppl;          /* NaN: not asked for */
    long long prefill, run, error_every;
};

#define F(name) offsetof(struct plan_args, name)
static const struct sh_opt opts[] = {
    SH_STORE_OPT(F(db)),
    SH_POLICY_OPT(F(policy), "policy to plan for"),
    SH_TEXT("budget", F(budget), "F", "mean over heads: tokens (17) or a fraction of the longest sequence (0.2)"),
    SH_REAL("target-recall", F(recall), "F", 0, 1, "minimum kept mass, 0 to 1"),
    SH_REAL("target-error", F(error), "F", 0, 1e6, "maximum output error; requires a trace with --vectors v"),
    SH_REAL("target-ppl", F(ppl), "F", 0, 1e9, "maximum perplexity; requires evaluations of the policy in the store"),
    SH_MEASURED_ON_OPT(F(measured_on), "--target-ppl: "),
    SH_TEXT("allocator", F(allocator), "NAME[:knob=value,...]", "how the total is split over layers and heads: uniform "
        "(default),\nfunnel (more to late layers), pyramid (more to early layers),\npersistence (more where measured "
        "persistence is low), entropy,\nadakv (within a layer), greedy (by budget curves)"),
    SH_TEXT("plan", F(plan), "FILE", "measure this existing plan on the trace instead of making one"),
    {"output", SH_OPT_TEXT, F(out), "FILE", "write the plan to FILE as JSON (default: print it only)", 0, 0, 'o'},
    SH_PREFILL_OPT(F(prefill), "0"),
    SH_ROWS_OPT(F(rows)),
    SH_INT("error-every", F(error_every), "N", 1, 1 << 22, "compute the output error for every N-th row (default: 1)"),
    SH_RUN_OPT(F(run), 0),
    {0}};

static const struct plan_args defaults = {
    .allocator = "uniform", .rows = "renormalised", .recall = (double)NAN, .error = (double)NAN, .ppl = (double)NAN,
    .error_every = 1};

struct work {
    struct sh_policy_spec policy;
    struct sh_allocator_spec allocator;
    struct sh_replay_request q;
    struct sh_allot allot;
    struct sh_stored_run *runs;
    int n_run;
    struct sh_budget budget;            /* as requested */
    int mean;                           /* tokens per head on the longest sequence */
    struct sh_plan_found found;         /* found.tokens 0: nothing was searched */
    struct sh_plan_eval eval;           /* of --target-ppl; ppl 0: not asked for */
    struct sh_plan plan;
};

/* ---- the request ---- */

static int read_policy(const struct plan_args *a, struct work *w, struct sh_err *e)
{
    if (!a->policy) {
        sh_misused(e, "plan requires --policy NAME");
        return sh_hint(e, "shears info policies lists them");
    }
    if (sh_policy_parse(a->policy, &w->policy, e))
        return sh_err_prefix(e, "--policy");
    if (w->policy.policy->needs & (SH_NEEDS_FUTURE | SH_IS_BOUND))
        return sh_misused(e, "--policy %s: uses future attention, which no live cache has", w->policy.policy->name);
    if (sh_allocator_parse(a->allocator, &w->allocator, e))
        return sh_err_prefix(e, "--allocator");
    if (!isnan(a->ppl) && strcmp(w->allocator.allocator->name, "uniform"))
        return sh_misused(e, "--target-ppl requires --allocator uniform, as evaluations use; found %s",
                          w->allocator.allocator->name);
    return 0;
}

static int read_request(const struct plan_args *a, const struct sh_common *common, struct work *w, struct sh_err *e)
{
    int asked = (a->budget != NULL) + !isnan(a->recall) + !isnan(a->error) + !isnan(a->ppl);
    if (a->measured_on && isnan(a->ppl))
        return sh_misused(e, "--measured-on requires --target-ppl, the only target that looks up evaluations");
    if (a->plan && (asked || a->policy || a->prefill))
        return sh_misused(e, "--plan FILE sets policy, prefill and budgets itself: remove those options");
    if (!a->plan && asked != 1)
        return sh_misused(e, "plan requires exactly one of --budget, --target-recall, --target-error, --target-ppl");
    w->q = (struct sh_replay_request){.spec = &w->policy, .n_spec = 1, .prefill = (int)a->prefill,
                                      .error_every = (int)a->error_every, .seed = (uint64_t)common->seed,
                                      .threads = (int)common->threads, .quiet = common->quiet, .run = (int)a->run,
                                      .leave_out_small = 1, .dump_every = 1};
    if (sh_read_rows(a->rows, &w->q.rows, e) || (!a->plan && read_policy(a, w, e)))
        return -1;
    return a->budget ? sh_read_budget(a->budget, &w->budget, e) : 0;
}

/* A plan covers all layers, and an output error needs values. */
static int check_runs(const struct plan_args *a, const struct work *w, const char *path, struct sh_err *e)
{
    for (int i = 0; i < w->n_run; i++) {
        const struct sh_stored_run *r = &w->runs[i];
        if (r->first_layer || r->last_layer != r->n_layer - 1) {
            sh_fail(e, "%s: run %d: found layers %d-%d of %d, but a plan needs all", path, r->id, r->first_layer,
                    r->last_layer, r->n_layer);
            return sh_runs_hint(e, "without --layers");
        }
        int layers = r->n_sequence * r->n_layer;
        if (r->n_done < layers) {
            sh_fail(e, "%s: run %d: found %d of %d layers of its sequences, but a plan needs all", path, r->id,
                    r->n_done, layers);
            return sh_hint(e, "run the same trace command again to finish it, or select another run with --run N");
        }
        if (!isnan(a->error) && !strchr(r->vectors, 'v')) {
            sh_fail(e, "%s: --target-error requires values, but run %d recorded none", path, r->id);
            return sh_runs_hint(e, "with --vectors v");
        }
    }
    return 0;
}

/* ---- which budget ---- */

static int budget_given(struct work *w, const char *path, struct sh_err *e)
{
    char text[SH_BUDGET_TEXT];
    int longest = sh_allot_longest(&w->allot), tokens = sh_budget_tokens(&w->budget, longest);
    w->mean = tokens < longest ? tokens : longest;
    if (tokens >= w->allot.floor || tokens >= longest)
        return 0;
    sh_misused(e, "%s: budget %s is %d tokens, but %s protects %d (sinks and recent)", path,
               sh_budget_text(&w->budget, text), tokens, w->policy.policy->name, w->allot.floor - 1);
    return sh_hint(e, "use a budget of at least %d tokens", w->allot.floor);
}

static int budget_of_ppl(const struct plan_args *a, struct work *w, struct sh_store *s, struct sh_err *e)
{
    struct sh_plan_eval *eval;
    int n, i = 0, longest = sh_allot_longest(&w->allot);
    const char *path = sh_store_path(s);
    const struct sh_plan_ask ask = {&w->runs[0], &w->policy, w->q.prefill, longest, a->measured_on};
    if (sh_plan_evals(s, &ask, &eval, &n, e))
        return -1;
    while (i < n && !(eval[i].ppl <= a->ppl && (eval[i].mean_tokens >= w->allot.floor ||
                                                eval[i].mean_tokens >= longest)))
        i++;
    int bad = 0;
    if (!n)
        bad = sh_fail(e, "%s: damaged: the evaluations of this policy have no budget", path);
    else if (i == n)
        bad = sh_fail(e, "%s: no evaluated budget reaches perplexity %g: the largest, %d tokens, has %.6g", path,
                      a->ppl, eval[n - 1].mean_tokens, eval[n - 1].ppl);
    if (!bad) {
        w->eval = eval[i];
        w->mean = eval[i].mean_tokens;
        w->found = (struct sh_plan_found){.tokens = eval[i].mean_tokens, .value = eval[i].ppl, .n_budget = n};
        if (i > 0) {
            w->found.smaller_tokens = eval[i - 1].mean_tokens;
            w->found.smaller_value = eval[i - 1].ppl;
        }
    }
    free(eval);
    return bad;
}

static int choose_budget(const struct plan_args *a, struct work *w, struct sh_store *s, struct sh_err *e)
{
    double all = 1 - 1e-6;              /* up to rounding of float sums */
    struct sh_plan_search recall = {SH_KEPT_MASS, 1, a->recall < all ? a->recall : all, "a kept mass"};
    struct sh_plan_search error = {SH_OUTPUT_ERROR, 0, a->error, "an output error"};
    if (a->budget)
        return budget_given(w, sh_store_path(s), e);
    if (!isnan(a->ppl))
        return budget_of_ppl(a, w, s, e);
    if (sh_plan_search(isnan(a->error) ? &recall : &error, &w->allot, &w->q, s, &w->found, e))
        return sh_err_prefix(e, "%s", sh_store_path(s));
    w->mean = w->found.tokens;
    return 0;
}

/* ---- the plan ---- */

static void add_ppl(struct work *w, const char *path)
{
    struct sh_plan_evidence *v = sh_plan_add_evidence(&w->plan, "ppl", w->eval.ppl, w->eval.sequences,
                                                      w->eval.tokens, -1, path);
    snprintf(v->text, sizeof v->text, "%s", w->eval.on.name);
    if (isfinite(w->eval.stderr_ppl)) {
        v->low = w->eval.ppl - 1.96 * w->eval.stderr_ppl;
        v->high = w->eval.ppl + 1.96 * w->eval.stderr_ppl;
    }
}

/* The budgets, and a replay that measures all figures as evidence. */
static int make_plan(const struct plan_args *a, struct work *w, struct sh_store *s, struct sh_err *e)
{
    struct sh_plan *p = &w->plan;
    sh_plan_name(p, &w->runs[0]);
    p->policy = w->policy;
    p->allocator = w->allocator;
    p->prefill = w->q.prefill;
    p->recorded_rows = w->q.rows == SH_ROWS_RECORDED;
    p->n_token = sh_allot_longest(&w->allot);
    snprintf(p->target_metric, sizeof p->target_metric, "%s",
             !isnan(a->recall) ? "kept_mass" : !isnan(a->error) ? "output_error" : !isnan(a->ppl) ? "ppl" : "");
    p->target = !isnan(a->recall) ? a->recall : !isnan(a->error) ? a->error : !isnan(a->ppl) ? a->ppl : 0;
    p->budget = xcalloc((size_t)p->n_layer * (size_t)p->n_kv_head, sizeof *p->budget);
    if (sh_allot_solve(&w->allot, w->mean, p->n_token, p->budget, e) || sh_plan_measure(p, &w->q, s, e))
        return -1;
    if (w->eval.ppl > 0)
        add_ppl(w, sh_store_path(s));
    return 0;
}

/* Measures an existing plan on this trace. */
static int measure_plan(const struct plan_args *a, struct work *w, struct sh_store *s, struct sh_err *e)
{
    const struct sh_stored_run *run = &w->runs[0];
    struct sh_plan *p = &w->plan;
    if (sh_plan_read(p, a->plan, e) ||
        sh_plan_check_model(p, a->plan, run->model, run->fingerprint, run->n_layer, run->n_kv_head, e))
        return -1;
    p->n_evidence = 0;
    return sh_plan_measure(p, &w->q, s, e);
}

/* Keeps the plan in the store if it is writable. */
static void keep_plan(const struct work *w, const char *path, const char *out, int quiet)
{
    struct sh_err e;
    char *text = sh_plan_text(&w->plan);
    struct sh_store *s = sh_store_update(path, &e);
    int bad = !s || sh_store_keep_plan(s, w->runs[0].id, out ? basename(out) : "plan", text, &e);
    sh_store_close(s);
    free(text);
    if (bad)
        sh_store_tell_unkept("plan is", path, quiet, &e);
}

/* ---- the answer ---- */

static void show_layer(struct sh_out *o, const struct sh_plan *p, int layer)
{
    const int *b = p->budget + layer * p->n_kv_head;
    long long sum = 0;
    int least = b[0], most = b[0];
    for (int h = 0; h < p->n_kv_head; h++) {
        sum += b[h];
        least = b[h] < least ? b[h] : least;
        most = b[h] > most ? b[h] : most;
    }
    sh_out_item(o);
    sh_out_int(o, "layer", "layer", layer);
    sh_out_int(o, "tokens", "tokens", sum);
    sh_out_real(o, "mean_tokens", "per head", (double)sum / p->n_kv_head, 1);
    sh_out_int(o, "least_tokens", "least", least);
    sh_out_int(o, "most_tokens", "most", most);
    sh_out_real(o, "share", "share", (double)sum / p->n_kv_head / p->n_token, 4);
    sh_out_list(o, "heads", "heads");
    for (int h = 0; h < p->n_kv_head; h++) {
        sh_out_item(o);
        sh_out_int(o, "head", "head", h);
        sh_out_int(o, "tokens", "tokens", b[h]);
    }
    sh_out_end(o);
}

static void show_evidence(struct sh_out *o, const struct sh_plan *p)
{
    sh_out_list(o, "evidence", "measured with these budgets");
    for (int i = 0; i < p->n_evidence; i++) {
        const struct sh_plan_evidence *v = &p->evidence[i];
        sh_out_item(o);
        sh_out_text(o, "metric", "metric", v->metric);
        sh_out_real(o, "value", "value", v->value, 4);
        sh_out_real(o, "low", "95 % from", v->low, 4);
        sh_out_real(o, "high", "to", v->high, 4);
        if (v->sequences)
            sh_out_int(o, "sequences", "sequences", v->sequences);
        else
            sh_out_text(o, "sequences", "sequences", NULL);
        sh_out_int(o, "tokens", "tokens", v->tokens);
        if (v->run >= 0)
            sh_out_int(o, "run", "run", v->run);
        else
            sh_out_text(o, "run", "run", NULL);
        sh_out_text(o, "text", "text", *v->text ? v->text : NULL);
        sh_out_text(o, "store", "store", v->store);
        sh_out_text(o, "program", "program", v->program);
    }
    sh_out_end(o);
}

static void show_plan(struct sh_out *o, const struct sh_plan *p)
{
    char knobs[SH_POLICY_TEXT];
    double mean = (double)sh_plan_total(p) / ((double)p->n_layer * p->n_kv_head);
    sh_out_text(o, "model", "model", p->model);
    sh_out_text(o, "policy", "policy", p->policy.policy->name);
    sh_out_text(o, "knobs", "knobs", sh_policy_knobs(&p->policy, knobs));
    sh_out_text(o, "allocator", "allocator", p->allocator.allocator->name);
    sh_out_text(o, "allocator_knobs", "allocator's knobs", sh_allocator_knobs(&p->allocator, knobs));
    sh_out_int(o, "prefill", "prefill", p->prefill);
    sh_out_int(o, "n_token", "tokens per text", p->n_token);
    sh_out_int(o, "total_tokens", "tokens of all heads", sh_plan_total(p));
    sh_out_real(o, "mean_tokens", "tokens per head", mean, 2);
    sh_out_real(o, "share", "fraction of the text", mean / p->n_token, 4);
    sh_out_text(o, "target_metric", "target", *p->target_metric ? p->target_metric : NULL);
    sh_out_real(o, "target", "target's value", *p->target_metric ? p->target : (double)NAN, 4);
    show_evidence(o, p);
    sh_out_list(o, "layers", "budgets per layer (over all KV heads, and per head)");
    for (int l = 0; l < p->n_layer; l++)
        show_layer(o, p, l);
    sh_out_end(o);
}

static int show(const struct work *w, const char *file, const struct sh_common *common, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    show_plan(o, &w->plan);
    if (w->found.smaller_tokens) {
        sh_out_int(o, "smaller_mean_tokens", "next smaller", w->found.smaller_tokens);
        sh_out_real(o, "smaller_value", "its value", w->found.smaller_value, 4);
    }
    if (w->found.n_pass)
        sh_out_note(o, "%d budgets were replayed in %d passes over the trace.", w->found.n_budget, w->found.n_pass);
    if (w->allocator.allocator && !strcmp(w->allocator.allocator->name, "greedy"))
        sh_out_note(o, "greedy uses the upper concave envelope of each head's curve; the split is optimal where the "
                    "curves are concave.");
    if (file)
        sh_out_note(o, "The plan was written to %s.", file);
    return sh_common_write(common, o, 0, e);
}

static int work(const struct plan_args *a, const struct sh_common *common, const char *path, struct work *w,
                struct sh_err *e)
{
    if (read_request(a, common, w, e))
        return -1;
    struct sh_store *s = sh_store_open(path, e);
    int bad = !s || sh_runs_choose(s, w->q.run, &w->runs, &w->n_run, e) || check_runs(a, w, path, e) ||
              (a->plan ? measure_plan(a, w, s, e)
                       : sh_allot_open(&w->allot, &w->allocator, &w->q, s, e) || choose_budget(a, w, s, e) ||
                             make_plan(a, w, s, e));
    sh_store_close(s);
    if (bad || (a->out && sh_plan_write(&w->plan, a->out, e)))
        return -1;
    if (!a->plan || a->out)
        keep_plan(w, path, a->out, common->quiet);
    return show(w, a->out, common, e);
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    const struct plan_args *a = args;
    const char *path = sh_store_path_of("plan", a->db, positional, e);
    if (!path || sh_output_differs("-o", a->out, path, e))
        return -1;
    struct work *w = xcalloc(1, sizeof *w);
    int bad = work(a, common, path, w, e);
    sh_allot_close(&w->allot);
    if (w->runs)
        sh_stored_runs_free(w->runs, w->n_run);
    sh_plan_clear(&w->plan);
    free(w);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_plan = {
    .name = "plan",
    .usage = "--db FILE --policy NAME (--budget F | --target-recall F | --target-error F |\n"
             "              --target-ppl F) [--allocator NAME] [-o FILE]\n"
             "       shears plan --db FILE --plan FILE",
    .summary = "find the smallest KV budget that meets a target, per layer and head",
    .about = "Searches budgets by replaying the policy over the trace: first a grid in one pass, then finer grids,\n"
             "until the mean is exact to one token. The plan holds a budget for every layer and KV head and the\n"
             "values measured with them. It is also kept in the store. For a perplexity target there is no search:\n"
             "the budget is looked up among the policy's evaluations in the store.\n"
             "\n"
             "  shears plan --db traces.db --policy h2o:recent=10 --target-recall 0.95 --allocator greedy -o plan.json",
    .opts = opts, .args_bytes = sizeof(struct plan_args), .defaults = &defaults, .run = run};
