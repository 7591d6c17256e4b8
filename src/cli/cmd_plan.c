/* SPDX-License-Identifier: Apache-2.0 */
/* shears plan: the smallest KV budget that meets a target, per layer and head, as a file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/read_number.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"
#include "src/cli/plan_show.h"
#include "src/app/common/quality_limit.h"
#include "src/app/plan/plan_measure.h"
#include "src/app/common/recorded.h"
#include "traces/store.h"

struct plan_args {
    struct sh_live_plan_args live;      /* also policies, allocators, store, prefill and run of the other forms */
    const char *budget, *out, *rows, *plan, *measured_on;
    const char *increase, *ppl_text;    /* NULL: not asked for */
    const char *compare;                /* NULL: tokens */
    double recall, error, ppl, kl, exact;               /* NaN: not asked for */
    long long error_every;
};

#define F(name) offsetof(struct plan_args, name)
#define L(name) F(live.live.name)
static const struct sh_opt opts[] = {
    SH_TEXT("target-ppl-increase", F(increase), "F", "largest increase of the perplexity over that of\n"
        "the full cache: 1% or 0.01; measured in the live model, judged on\ntexts that the search did not use"),
    SH_REAL("target-kl", F(kl), "F", 0, 1e6, "largest divergence of the next token's distribution, in nats"),
    SH_REAL("target-answers", F(exact), "F", 0, 1, "least share of exact answers: 80% or 0.8; requires --answers"),
    SH_MODEL_OPT(F(live.live.model)),
    SH_TEXT_OPT(F(live.text)), SH_JSONL_OPT(F(live.jsonl)), SH_FIELD_OPT(F(live.field)),
    SH_TOKENS_OPT(F(live.tokens)),
    SH_TEXT("answers", F(live.answers), "NAME", "key of the answers in each --jsonl object (see shears eval)"),
    SH_INT("length", F(live.length), "N", 2, 1 << 22, "tokens per sequence (default: 512, or the model's context "
        "length)"),
    SH_INT("min-tokens", F(live.least), "N", 2, 1 << 22, "skip texts and documents shorter than N tokens"),
    SH_INT("sequences", F(live.sequences), "N", 1, 1e6, "sequences to judge on (default: 24, more if they are short\n"
        "or their losses vary much, fewer if too few would remain for the search);\nstatus met requires 12"),
    SH_INT("search-first", F(live.known), "N", 1, 1e9, "search on the first N sequences, such as traced ones, and\n"
        "never judge on them"),
    SH_TEXT("judged", F(live.judged), "FILE", "write the judged sequences as token ids, one JSON array per line;\n"
        "with them as its --tokens, shears eval --plan repeats the measurement"),
    SH_REAL("confidence", F(live.confidence), "F", 0.5, 0.9999, "confidence of the bound that must meet the\n"
        "target (default: 0.95)"),
    SH_SECONDS("time", F(live.seconds), 0.001, 1e9, "try no further policy after S seconds (default: all of them)"),
    SH_LIST("policy", F(live.policy), "NAME[:knob=value,...]...", "policy to plan for; with --model, several or all:\n"
        "the one that needs the least is chosen (see --compare; default:\nh2o, roco, "
        "scissorhands:counts=rate,drop=1 and window, the first\nthree with recent=0.5)"),
    SH_TEXT("compare", F(compare), "tokens|bytes", "what the chosen policy and allocator need the least of: tokens\n"
        "(default), or bytes, which decide how many requests fit into memory:\nkeys and values in 16 bits, or in "
        "--kv-bits if fewer, and what the\npolicy stores for each token"),
    SH_LIST("allocator", F(live.allocator), "NAME[:knob=value,...]...", "how the total is split over layers and heads: "
        "uniform (default),\nfunnel (more to late layers), pyramid (more to early layers),\npersistence (more where "
        "measured persistence is low), entropy,\nadakv (within a layer), greedy (by budget curves); with --model\n"
        "several or all of them, and loss (by the live model's losses); its\ndefault is greedy and loss"),
    SH_STORE_OPT(F(live.db)),
    SH_TEXT("budget", F(budget), "F", "instead of a target: the mean budget of the heads, as tokens (17) or a\n"
        "fraction of the longest sequence (0.2); with --model its cost is measured\non the judged sequences"),
    SH_REAL("target-recall", F(recall), "F", 0, 1, "minimum kept mass, 0 to 1; does not predict perplexity"),
    SH_REAL("target-error", F(error), "F", 0, 1e6, "maximum output error; requires a trace with --vectors v;\n"
        "does not predict perplexity"),
    SH_TEXT("target-ppl", F(ppl_text), "F", "maximum perplexity; requires evaluations of the policy in the store"),
    SH_MEASURED_ON_OPT(F(measured_on), "--target-ppl: "),
    SH_TEXT("plan", F(plan), "FILE", "measure this existing plan on the trace instead of making one"),
    {"output", SH_OPT_TEXT, F(out), "FILE", "write the plan to FILE as JSON (default: print it only)", 0, 0, 'o'},
    SH_PREFILL_OPT(F(live.live.prefill), "0"),
    SH_KV_OPTS(L),
    SH_WEIGHT_OPTS(L),
    SH_ACTIVATION_OPT(L(activation_bits), "16"),
    SH_ROWS_OPT(F(rows)),
    SH_INT("error-every", F(error_every), "N", 1, 1 << 22, "compute the output error for every N-th row (default: 1)"),
    SH_RUN_OPT(F(live.run), 0),
    SH_DEVICE_MEMORY_OPT(F(live.live.device_memory)),
    {0}};

static const struct plan_args defaults = {
    .live = {.live = {.dtype = "f32", .weight_bits = 16, .kv_group = 64}, .field = "text", .confidence = 0.95},
    .recall = (double)NAN, .error = (double)NAN, .ppl = (double)NAN, .kl = (double)NAN,
    .exact = (double)NAN};

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

static int read_ppl(struct plan_args *a, struct sh_err *e)
{
    if (!a->ppl_text || !sh_read_real("--target-ppl", a->ppl_text, 0, 1e9, &a->ppl, e))
        return 0;
    return !strchr(a->ppl_text, '%')
               ? -1 : sh_hint(e, "a perplexity is a number, such as 12.5; --target-ppl-increase %.20s, with --model "
                              "DIR and texts, is for an increase", a->ppl_text);
}

static int read_policy(const struct plan_args *a, struct work *w, struct sh_err *e)
{
    const struct sh_list *policy = &a->live.policy, *allocator = &a->live.allocator;
    if (!policy->n) {
        sh_misused(e, "plan requires --policy NAME");
        return sh_hint(e, "shears info policies lists them");
    }
    if (policy->n > 1 || allocator->n > 1)
        return sh_misused(e, "several policies or allocators require --model and a target in the live model, such as "
                             "--target-ppl-increase 1%%");
    if (sh_policy_parse(policy->at[0], &w->policy, e))
        return sh_err_prefix(e, "--policy");
    if (w->policy.policy->needs & (SH_NEEDS_FUTURE | SH_IS_BOUND))
        return sh_misused(e, "--policy %s: uses future attention, which no live cache has", w->policy.policy->name);
    if (sh_allocator_parse(allocator->n ? allocator->at[0] : "uniform", &w->allocator, e))
        return sh_err_prefix(e, "--allocator");
    if (!isnan(a->ppl) && strcmp(w->allocator.allocator->name, "uniform"))
        return sh_misused(e, "--target-ppl requires --allocator uniform, as evaluations use; found %s",
                          w->allocator.allocator->name);
    return 0;
}

static int read_request(const struct plan_args *a, const struct sh_common *common, struct work *w, struct sh_err *e)
{
    const struct sh_live_plan_args *live = &a->live;
    int asked = (a->budget != NULL) + !isnan(a->recall) + !isnan(a->error) + !isnan(a->ppl);
    if (a->measured_on && isnan(a->ppl))
        return sh_misused(e, "--measured-on requires --target-ppl, the only target that looks up evaluations");
    if (a->plan && (asked || live->policy.n || live->live.prefill))
        return sh_misused(e, "--plan FILE sets policy, prefill and budgets itself: remove those options");
    if (!a->plan && asked != 1)
        return sh_misused(e, "plan from a store requires exactly one of --budget, --target-recall, --target-error, "
                             "--target-ppl; with --model, also --target-ppl-increase, --target-kl, --target-answers");
    w->q = (struct sh_replay_request){.spec = &w->policy, .n_spec = 1, .prefill = (int)live->live.prefill,
                                      .error_every = a->error_every ? (int)a->error_every : 1,
                                      .seed = (uint64_t)common->seed, .threads = (int)common->threads,
                                      .quiet = common->quiet, .run = (int)live->run, .leave_out_small = 1,
                                      .dump_every = 1};
    if (sh_read_rows(a->rows ? a->rows : "renormalised", &w->q.rows, e) || (!a->plan && read_policy(a, w, e)))
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
    p->heads = sh_allot_heads(&w->allot);
    p->budget = xcalloc((size_t)p->n_layer * (size_t)p->n_kv_head, sizeof *p->budget);
    if (sh_allot_solve(&w->allot, w->mean, p->n_token, p->budget, e) || sh_plan_measure(p, &w->q, s, e))
        return -1;
    if (w->eval.ppl > 0)
        add_ppl(w, sh_store_path(s));
    return 0;
}

/* Is the plan for the model of this trace? */
static int check_plan(const struct plan_args *a, const struct work *w, struct sh_store *s, struct sh_err *e)
{
    const struct sh_stored_run *run = &w->runs[0];
    struct sh_runs all;
    int *heads = xcalloc((size_t)run->n_layer, sizeof *heads);
    int bad = sh_runs_open(&all, s, w->q.run, e) || sh_runs_layer_heads(&all, s, heads, e) ||
              sh_plan_check_model(&w->plan, a->plan, run->model, run->fingerprint, run->n_layer, run->n_kv_head, heads,
                                  e);
    sh_runs_close(&all);
    free(heads);
    return bad;
}

/* Measures an existing plan on this trace. */
static int measure_plan(const struct plan_args *a, struct work *w, struct sh_store *s, struct sh_err *e)
{
    struct sh_plan *p = &w->plan;
    if (sh_plan_read(p, a->plan, e) || check_plan(a, w, s, e))
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

static int show(const struct work *w, const char *file, const struct sh_common *common, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    sh_plan_show(o, &w->plan);
    if (w->found.smaller_tokens) {
        sh_out_int(o, "smaller_mean_tokens", "next smaller", w->found.smaller_tokens);
        sh_out_real(o, "smaller_value", "its value", w->found.smaller_value, 4);
    }
    if (w->found.n_pass)
        sh_out_note(o, "%d budgets were replayed in %d passes over the trace.", w->found.n_budget, w->found.n_pass);
    if (w->allocator.allocator && !strcmp(w->allocator.allocator->name, "greedy"))
        sh_out_note(o, "greedy uses the upper concave envelope of each head's curve; the split is optimal where the "
                    "curves are concave.");
    if (!strcmp(w->plan.target_metric, "kept_mass") || !strcmp(w->plan.target_metric, "output_error"))
        sh_out_note(o, "This does not predict perplexity: the kept mass or output error at which it rises by 1 %%\n"
                       "differs between texts and policies. shears plan --model DIR --text FILE --target-ppl-increase\n"
                       "1%% measures it.");
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

/* ---- in the live model ---- */

static int read_live(const struct plan_args *a, struct sh_live_plan_args *live, struct sh_budget *budget,
                     const struct sh_list *positional, struct sh_err *e)
{
    int texts = (a->live.text.n > 0) + (a->live.jsonl != NULL) + (a->live.tokens != NULL);
    int by = sh_read_name("compare", a->compare, (const char *const[]){"tokens", "bytes", NULL}, e);
    *live = a->live;
    live->by_bytes = by > 0;
    if (by < 0 || sh_args_none("plan", positional, e))
        return -1;
    if ((a->increase != NULL) + !isnan(a->kl) + !isnan(a->exact) + (a->budget != NULL) != 1 || a->plan ||
        a->measured_on || !isnan(a->recall) || !isnan(a->error) || !isnan(a->ppl))
        return sh_misused(e, "plan --model requires exactly one target in the live model or a --budget, and no --plan");
    if (a->compare && a->budget)
        return sh_misused(e, "--compare requires a target: with --budget, what settings lose decides");
    if (a->rows || a->error_every)
        return sh_misused(e, "--rows and --error-every are for replays: a live cache has rows of its own");
    if (!live->live.model)
        return sh_misused(e, "a target in the live model requires --model DIR");
    if (texts > 1 || (!texts && !live->db))
        return sh_misused(e, "plan requires one of --text, --jsonl and --tokens, or --db FILE with a trace of texts");
    if (live->run && texts)
        return sh_misused(e, "--run selects texts of a trace, but others were given");
    if (live->answers ? !live->jsonl : !isnan(a->exact))
        return sh_misused(e, "%s", live->answers ? "--answers requires --jsonl FILE"
                                                 : "--target-answers requires --answers NAME");
    live->target = a->increase || a->budget ? SH_TARGET_PPL : !isnan(a->kl) ? SH_TARGET_KL : SH_TARGET_ANSWERS;
    live->budget = a->budget ? budget : NULL;
    if (a->budget && sh_read_budget(a->budget, budget, e))
        return -1;
    live->value = !isnan(a->kl) ? a->kl : a->exact;
    if (a->increase && sh_quality_increase("--target-ppl-increase", a->increase, &live->value, e))
        return -1;
    if (a->increase && live->value > 1)
        return sh_misused(e, "--target-ppl-increase: found %s, expected at most 100%%, such as 1%%", a->increase);
    for (int i = 0; i <= live->text.n; i++) {
        const struct sh_file_use files[] = {
            {"-o", a->out, 1}, {"--db", live->db, 1}, {"--judged", live->judged, 1}, {"--tokens", live->tokens, 0},
            {"--jsonl", live->jsonl, 0}, {"--text", i < live->text.n ? live->text.at[i] : NULL, 0}, {0}};
        if (sh_files_apart(files, e))
            return -1;
    }
    return 0;
}

static int run_live(const struct plan_args *a, const struct sh_common *common, const struct sh_list *positional,
                    struct sh_err *e)
{
    struct sh_live_plan_args live;
    struct sh_budget budget;
    struct sh_live_plan *w = xcalloc(1, sizeof *w);
    w->a = &live;
    w->common = common;
    int bad = read_live(a, &live, &budget, positional, e) || sh_live_plan_make(w, e) ||
              (a->out && sh_plan_write(&w->plan, a->out, e));
    if (!bad) {
        struct sh_out *o = sh_out_new();
        sh_live_plan_show(o, w, a->out);
        bad = sh_common_write(common, o, 0, e);
    }
    sh_live_plan_close(w);
    free(w);
    return bad ? -1 : 0;
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct plan_args *a = args;
    if (read_ppl(a, e))
        return -1;
    if (a->increase || !isnan(a->kl) || !isnan(a->exact) || (a->budget && a->live.live.model))
        return run_live(a, common, positional, e);
    const struct sh_live_plan_args *live = &a->live;
    if (live->live.model || live->text.n || live->jsonl || live->tokens || live->answers || live->length ||
        live->least || live->sequences || live->known || live->judged || live->seconds > 0 || a->compare ||
        live->live.activation_bits || live->live.weight_bits != 16 || live->live.weight_prune > 0)
        return sh_misused(e, "--model, texts and their options require --target-ppl-increase, --target-kl, "
                             "--target-answers or --budget");
    const char *path = sh_store_path_of("plan", live->db, positional, e);
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
    .usage = "--model DIR (--text FILE... | --jsonl FILE | --tokens FILE | --db FILE) --length N\n"
             "              (--target-ppl-increase F | --target-kl F | --target-answers F)\n"
             "              [--policy LIST] [--allocator LIST] [--db FILE] [-o FILE]\n"
             "       shears plan --db FILE --policy NAME (--budget F | --target-recall F | --target-error F |\n"
             "              --target-ppl F) [--allocator NAME] [-o FILE]\n"
             "       shears plan --db FILE --plan FILE",
    .summary = "find the smallest KV budget that meets a target, per layer and head",
    .about = "With --model: how small can the cache be if the perplexity may increase by 1 %?\n"
             "\n"
             "  shears plan --model DIR --text FILE --length 512 --target-ppl-increase 1% --db plan.db -o plan.json\n"
             "\n"
             "The texts are cut into sequences and divided at random (--seed). On one part, the model runs with a\n"
             "small budget in one layer at a time, which shows what evictions cost in each layer. These costs decide\n"
             "how budgets are divided; then policies and allocators are compared. On the other part, unused until\n"
             "then, the best of them is judged: budgets are tried from large to small, until the upper bound of the\n"
             "increase exceeds the target. status is met, or not_shown if it would take more sequences to show that\n"
             "the target is met, or if it cannot be met. The plan is then the best one found, and the verdict says\n"
             "how many more sequences would be enough. With --db, measurements are stored: if the command is stopped,\n"
             "run it again to resume.\n"
             "\n"
             "Without --model: searches budgets by replaying the policy over a trace: first a grid in one pass, then\n"
             "finer grids, until the mean is exact to one token. The plan holds a budget for every layer and KV head\n"
             "and the values measured with them; it is also kept in the store. Kept mass and output error do not\n"
             "predict perplexity. For --target-ppl there is no search: the budget is looked up among the policy's\n"
             "evaluations in the store.\n"
             "\n"
             "  shears plan --db traces.db --policy h2o:recent=10 --target-recall 0.95 --allocator greedy -o plan.json",
    .opts = opts, .args_bytes = sizeof(struct plan_args), .defaults = &defaults, .run = run};
