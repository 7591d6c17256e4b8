/* SPDX-License-Identifier: Apache-2.0 */
/* shears theory: the theory of eviction compared with recorded scores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/app/store/results.h"
#include "src/app/common/recorded.h"
#include "src/app/theory/theory_store.h"
#include "src/base/mem.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"

struct theory_args {
    const char *db, *per, *budget, *model;
    double epsilon;
    long long run, replicas;
};

#define F(name) offsetof(struct theory_args, name)
static const struct sh_opt opts[] = {
    SH_TEXT("db", F(db), "FILE", "trace store with full rows; --vectors v adds the output error"),
    SH_TEXT("budget", F(budget), "R,...", "kept fractions of the sequence\n(default: 0.05,0.1,0.2,0.3,0.5,0.8)"),
    SH_REAL("epsilon", F(epsilon), "E", 0, 0.999999, "epsilon of Theorem 4.1, less than every budget (default: 0, "
        "which gives\nthe tightest bound)"),
    SH_INT("replicas", F(replicas), "N", 0, 100000, "bootstrap samples for the p-value of the power law; 0: no test\n"
        "(default: 100)"),
    SH_PER_OPT(F(per)),
    SH_TEXT("model", F(model), "DIR", "traced checkpoint: also test Theorem 3.1; requires a trace with\n--vectors qkv"),
    SH_RUN_OPT(F(run), 1),
    {0}};

static const struct theory_args defaults = {.per = "layer", .budget = "0.05,0.1,0.2,0.3,0.5,0.8", .replicas = 100};

/* ---- the tables ---- */

static int prefers(const struct sh_theory_result *r, int l, int h, enum sh_theory_figure ratio,
                   enum sh_theory_figure p)
{
    return sh_theory_figure(r, l, h, ratio) < 0 && sh_theory_figure(r, l, h, p) <= SH_POWERLAW_P;
}

static const char *head_verdict(const struct sh_theory_result *r, int l, int h, int replicas)
{
    enum sh_powerlaw_verdict v = r->verdict[l * r->n_head + h];
    int better = prefers(r, l, h, SH_T_LOGNORMAL, SH_T_LOGNORMAL_P) ||
                 prefers(r, l, h, SH_T_EXPONENTIAL, SH_T_EXPONENTIAL_P);
    if (v == SH_POWERLAW_NO_FIT)
        return !isnan(sh_theory_figure(r, l, h, SH_T_EXPONENT)) && !replicas ? "not tested" : "nothing to fit";
    if (v == SH_POWERLAW_REJECTED)
        return better ? "rejected; another law fits better" : "rejected";
    return better ? "plausible, but another law fits better" : "plausible";
}

static void write_figures(struct sh_out *o, const struct sh_theory_result *r, int l, int h)
{
    for (int i = 0; i < SH_N_THEORY_FIGURE; i++)
        sh_metric_write(&sh_theory_metrics, i, sh_theory_figure(r, l, h, (enum sh_theory_figure)i), o);
}

static void write_heads(struct sh_out *o, const struct sh_theory_request *q, const struct sh_theory_result *r, int l)
{
    sh_out_list(o, "heads", "fitted laws per head");
    for (int h = 0; h < r->n_head; h++) {
        if (!sh_theory_has(r, l, h))
            continue;
        sh_out_item(o);
        sh_out_int(o, "head", "head", h);
        write_figures(o, r, l, h);
        sh_out_text(o, "verdict", "power law", head_verdict(r, l, h, q->replicas));
    }
    sh_out_end(o);
}

static void write_layers(struct sh_out *o, const struct sh_theory_request *q, const struct sh_theory_result *r)
{
    sh_out_list(o, "layers", "fitted laws per layer: means over heads; x = score * keys of its row");
    for (int l = 0; l < r->n_layer; l++) {
        int rejected = sh_theory_verdicts(r, l, SH_POWERLAW_REJECTED),
            plausible = sh_theory_verdicts(r, l, SH_POWERLAW_PLAUSIBLE);
        char *verdict = !rejected && !plausible ? xstrdup(q->replicas ? "nothing to fit" : "not tested")
                                                : xasprintf("rejected in %d of %d heads", rejected,
                                                            sh_theory_heads(r, l));
        sh_out_item(o);
        sh_out_int(o, "layer", "layer", r->first_layer + l);
        write_figures(o, r, l, -1);
        sh_out_int(o, "heads_rejected", "rejected", rejected);
        sh_out_int(o, "heads_plausible", "plausible", plausible);
        sh_out_text(o, "verdict", "power law", verdict);
        write_heads(o, q, r, l);
        free(verdict);
    }
    sh_out_end(o);
}

static void write_columns(struct sh_out *o, const struct sh_theory_result *r, int l, int h, int i_rho)
{
    for (int i = 0; i < SH_N_THEORY_AT; i++)
        sh_metric_write(&sh_theory_at_metrics, i, sh_theory_at(r, l, h, i_rho, (enum sh_theory_at)i), o);
}

static void write_budgets(struct sh_out *o, const struct sh_theory_request *q, const struct sh_theory_result *r,
                          int per_head)
{
    sh_out_list(o, "budgets", "mass outside the ceil(rho n) largest scores: means over layers");
    for (int i = 0; i < r->n_rho; i++) {
        sh_out_item(o);
        sh_out_real(o, "budget_share", "budget", q->rho[i], 3);
        write_columns(o, r, -1, -1, i);
    }
    sh_out_end(o);
    sh_out_list(o, "layer_budgets", per_head ? "the same per head" : "the same per layer");
    for (int l = 0; l < r->n_layer; l++)
        for (int h = per_head ? 0 : -1; h < (per_head ? r->n_head : 0); h++)
            for (int i = 0; i < r->n_rho && (!per_head || sh_theory_has(r, l, h)); i++) {
                sh_out_item(o);
                sh_out_int(o, "layer", "layer", r->first_layer + l);
                if (per_head)
                    sh_out_int(o, "head", "head", h);
                sh_out_real(o, "budget_share", "budget", q->rho[i], 3);
                write_columns(o, r, l, h, i);
            }
    sh_out_end(o);
}

/* ---- notes ---- */

static void tell_power_law(struct sh_out *o, const struct sh_theory_request *q, const struct sh_theory_result *r)
{
    int rejected = sh_theory_verdicts(r, -1, SH_POWERLAW_REJECTED), n = sh_theory_heads(r, -1),
        plausible = sh_theory_verdicts(r, -1, SH_POWERLAW_PLAUSIBLE), no_mean = 0, no_fit = 0, zeros = 0;
    if (!q->replicas)
        sh_out_note(o, "Whether scores follow a power law was not tested (--replicas 0).");
    else if (rejected + plausible)
        sh_out_note(o, "A power law is %s in %d of %d heads (p <= %g with %d replicas).%s",
                    rejected ? "rejected" : "not rejected in any head; it is "
                                            "plausible", rejected ? rejected : plausible, n,
                    SH_POWERLAW_P, q->replicas,
                    2 * rejected > n ? " The assumption of Theorem 4.1 about scores does not hold here." : "");
    for (int l = 0; l < r->n_layer; l++)
        for (int h = 0; h < r->n_head; h++) {
            double k = sh_theory_figure(r, l, h, SH_T_LOMAX_K);
            no_mean += k <= 2;
            no_fit += isnan(k) && sh_theory_has(r, l, h);
            zeros += sh_theory_figure(r, l, h, SH_T_ZEROS) > 0.5;
        }
    if (zeros)
        sh_out_note(o, "In %d of %d heads most scores are recorded as 0; the laws are fitted to the other scores.",
                    zeros, n);
    if (no_fit)
        sh_out_note(o, "No Lomax density fits the scores of %d of %d heads; these heads are left out of the means.",
                    no_fit, n);
    if (no_mean)
        sh_out_note(o, "The fitted exponent k is at most 2 in %d of %d heads: there the law has no mean, so D(rho) is "
                       "undefined and only the law cut at the largest possible score applies.", no_mean, n);
}

static void tell_law(struct sh_out *o, const struct sh_theory_request *q, const struct sh_theory_result *r)
{
    int below = 0, above = 0;
    double worst = 1;
    for (int i = 0; i < r->n_rho; i++) {
        double measured = sh_theory_at(r, -1, -1, i, SH_TA_DROPPED), law = sh_theory_at(r, -1, -1, i, SH_TA_LAW_CUT);
        if (!(measured > 1e-9 && law > 0))
            continue;
        below += law < measured;
        above += law >= measured;
        worst = fmax(worst, measured / law);
    }
    if (below)
        sh_out_note(o, "The law (cut) is too optimistic at %d of %d budgets: up to %.1f times the mass it predicts is "
                       "dropped.", below, below + above, worst);
    else if (above)
        sh_out_note(o, "The law (cut) is at or above the measured dropped mass at all %d budgets: a safe bound here.",
                    above);
    int silent = 0;
    for (int i = 0; i < r->n_rho; i++)
        silent += !(sh_theory_at(r, -1, -1, i, SH_TA_INFORMATIVE) > 0);
    sh_out_note(o, "Theorem 4.1 as printed (epsilon %g) says nothing at %d of %d budgets: its right-hand side is "
                   "negative there%s; \"informative\" is the fraction of heads where it says "
                   "something.", q->epsilon, silent,
                r->n_rho, silent ? " (-)" : "");
    double failure = (double)NAN;
    for (int i = 0; i < r->n_rho; i++)
        failure = fmin(failure, sh_theory_at(r, -1, -1, i, SH_TA_FAILURE));
    if (failure >= 1)
        sh_out_note(o, "Its failure probability is at least 1 at every budget, so it guarantees nothing.");
}

static void tell_errors(struct sh_out *o, const struct sh_theory_result *r)
{
    double loosest = 0;
    int broken = 0, n = 0;
    for (int l = 0; l < r->n_layer; l++)
        for (int h = 0; h < r->n_head; h++)
            for (int i = 0; i < r->n_rho; i++) {
                double error = sh_theory_at(r, l, h, i, SH_TA_ERROR),
                       bound = sh_theory_at(r, l, h, i, SH_TA_ERROR_BOUND);
                n += !isnan(error);
                broken += error > bound * (1 + 1e-6) + 1e-9;
                loosest = error > 1e-9 ? fmax(loosest, bound / error) : loosest;
            }
    if (!r->has_values)
        sh_out_note(o, "No output error: values were not recorded (trace with --vectors v).");
    else if (n)
        sh_out_note(o, "Output error <= 2 (1 - kept) max|v| in %d of %d cases (heads and budgets); the bound is up to "
                       "%.0f times the error.", n - broken, n, loosest);
}

static void write_repeat(struct sh_out *o, const struct sh_theory_result *r, const struct sh_repeat *repeat)
{
    unsigned long long positive = 0, informative = 0, violations = 0;
    sh_out_list(o, "theorem_31", "Theorem 3.1: what a score at t implies for the next query, over pairs (t, key)");
    for (int l = 0; l < r->n_layer; l++) {
        const struct sh_repeat *t = &repeat[l];
        sh_out_item(o);
        sh_out_int(o, "layer", "layer", r->first_layer + l);
        sh_out_int(o, "pairs", "pairs", (long long)t->pairs);
        sh_out_int(o, "positive_pairs", "g > 0", (long long)t->positive);
        sh_out_int(o, "informative_pairs", "3 eps < 1", (long long)t->informative);
        sh_out_int(o, "above_zero_pairs", "A > 3 eps", (long long)t->above_zero);
        sh_out_int(o, "violations", "outside", (long long)t->violations);
        sh_out_real(o, "least_epsilon", "least eps", t->least_eps, 3);
        sh_out_real(o, "mean_epsilon", "mean eps", t->mean_eps, 1);
        sh_out_real(o, "step", "step error", t->step, 3);
        sh_out_real(o, "lemma_b2", "Lemma B.2", t->lemma, 4);
        positive += t->positive;
        informative += t->informative;
        violations += t->violations;
    }
    sh_out_end(o);
    sh_out_note(o, "Theorem 3.1 says nothing (3 eps >= 1) for %llu of the %llu pairs that it covers; for %llu the next "
                   "product is outside its bounds, so its premise (that the next input continues the attention output) "
                   "fails there.", positive - informative, positive, violations);
}

/* repeat [n_layer]: Theorem 3.1; NULL: not requested. */
static struct sh_out *describe(const struct sh_theory_request *q, const struct sh_theory_result *r,
                               const struct sh_repeat *repeat, int per_head)
{
    struct sh_out *o = sh_out_new();
    sh_out_text(o, "model", "model", r->model);
    sh_out_text(o, "weights", "weights", r->weights);
    sh_out_int(o, "sequences", "sequences", r->n_sequence);
    sh_out_int(o, "tokens", "tokens", r->n_tokens);
    sh_out_int(o, "unfinished", "layers not finished", r->n_unfinished);
    sh_out_real(o, "split_share", "rows from", 0.5, 2);
    sh_out_real(o, "epsilon", "epsilon", q->epsilon, 4);
    sh_out_int(o, "replicas", "replicas", q->replicas);
    sh_out_bool(o, "has_values", "values recorded", r->has_values);
    write_layers(o, q, r);
    write_budgets(o, q, r, per_head);
    if (per_head)
        sh_out_show(o, "heads");
    tell_power_law(o, q, r);
    tell_law(o, q, r);
    tell_errors(o, r);
    if (repeat)
        write_repeat(o, r, repeat);
    return o;
}

/* ---- the store ---- */

static int keep(const struct sh_theory_request *q, const struct sh_theory_result *r, struct sh_store *s,
                struct sh_err *e)
{
    struct sh_result_row row = {0};
    for (int l = -1; l < r->n_layer; l++) {
        int layer = l < 0 ? -1 : r->first_layer + l;
        for (int i = 0; i < SH_N_THEORY_FIGURE; i++)
            sh_result_add(&row, layer, sh_theory_figure(r, l, -1, (enum sh_theory_figure)i), "%s",
                          sh_theory_metrics.metric[i].key);
        for (int i = 0; i < r->n_rho; i++)
            for (int c = 0; c < SH_N_THEORY_AT; c++)
                sh_result_add(&row, layer, sh_theory_at(r, l, -1, i, (enum sh_theory_at)c), "%s@%.15g",
                              sh_theory_at_metrics.metric[c].key, q->rho[i]);
    }
    char *settings = sh_settings_text("theory", (const struct sh_value[]){
        {"split", .real = 0.5}, {"epsilon", .real = q->epsilon}, {"replicas", .whole = q->replicas},
        {"seed", .bits = q->seed}, {"run", .whole = q->run}, {"sequences", .whole = r->n_sequence},
        {"tokens", .whole = r->n_tokens}, {0}});
    int bad = sh_result_keep(s, "theory", settings, &row, e);
    free(settings);
    return bad;
}

/* Keeps the results in the store if it is writable; a read-only store can still be analysed. */
static void keep_results(const char *path, const struct sh_theory_request *q, const struct sh_theory_result *r,
                         const struct sh_common *common)
{
    struct sh_err e;
    struct sh_store *s = sh_store_typed(sh_store_update(path, &e), common->line);
    int bad = !s || keep(q, r, s, &e);
    sh_store_close(s);
    if (bad)
        sh_store_tell_unkept("results are", path, common->quiet, &e);
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    const struct theory_args *a = args;
    const char *path = sh_store_path_of("theory", a->db, positional, e);
    double rho[SH_THEORY_BUDGETS];
    struct sh_theory_request q = {.rho = rho, .epsilon = a->epsilon, .replicas = (int)a->replicas,
                                  .seed = (uint64_t)common->seed, .run = (int)a->run,
                                  .threads = (int)common->threads, .quiet = common->quiet};
    struct sh_theory_result r = {0};
    if (!path)
        return -1;
    if (strcmp(a->per, "layer") && strcmp(a->per, "head"))
        return sh_misused(e, "--per: \"%s\", expected layer or head", a->per);
    if (sh_theory_shares(a->budget, rho, &q.n_rho, e))
        return -1;
    if (q.epsilon >= rho[0])
        return sh_misused(e, "--epsilon: found %g, expected less than the smallest budget, %g", q.epsilon, rho[0]);
    struct sh_store *s = sh_store_open(path, e);
    struct sh_repeat *repeat = NULL;
    int bad = !s || (a->model && sh_runs_fit(s, a->model, &q.run, e)) || sh_theory_run(&q, s, &r, e) ||
              (a->model && sh_theory_repeat_run(&q, &r, a->model, s, &repeat, e));
    sh_store_close(s);
    if (!bad)
        bad = sh_common_write(common, describe(&q, &r, repeat, !strcmp(a->per, "head")), 0, e);
    if (!bad)
        keep_results(path, &q, &r, common);
    free(repeat);
    sh_theory_result_free(&r);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_theory = {
    .name = "theory",
    .usage = "--db FILE [--run N] [--per layer|head] [--budget R,...] [--epsilon E] [--replicas N] [--model DIR]",
    .summary = "compare the theory of eviction with recorded scores",
    .about = "A small cache is said to suffice because scores follow a power law: few tokens carry nearly all of the\n"
             "mass. For each head, over the rows of the second half of each sequence, with x = score * number of keys\n"
             "in the row (1 = uniform attention):\n"
             "  power law   fitted above the best xmin (Clauset, Shalizi, Newman 2009), with its KS distance\n"
             "              and p, how often data from a true power law fit worse. p <= 0.1 rejects it; otherwise it\n"
             "              is plausible. A rival law fits better if its log-likelihood ratio is negative with a\n"
             "              small p.\n"
             "  Lomax k, b  the density (k-1) b^(k-1) (x+b)^-k that Theorem 4.1 of Scissorhands assumes\n"
             "  sampled     fraction of the values used in the fit\n"
             "For each budget rho, keeping the ceil(rho n) largest of a row's n scores, which no policy can beat:\n"
             "  dropped     measured mass of the other scores\n"
             "  D(rho)      the same as predicted by the Lomax law: 1 - (k-1) rho^((k-2)/(k-1)) + (k-2) rho, for k > "
             "2;\n"
             "              cut: with scores limited to 1. 2 D(rho) bounds the output error in units of max|v|.\n"
             "  Thm. 4.1    the paper's bound as printed; - where it is negative and says nothing (small rho).\n"
             "              informative: fraction of heads where it says something; may fail: probability that it "
             "does\n"
             "              not hold (1 or more: it guarantees nothing)\n"
             "  error       of the attention output, |o - o'|, and its bound 2 (1 - kept) max|v|, if values were\n"
             "              recorded\n"
             "With --model, tests Theorem 3.1 on the pairs (row t, key l) that it covers: does A[t,l] predict q_{t+1}\n"
             "k_l within 3 eps, with the smallest eps that its conditions allow? The results are kept in the store's\n"
             "table `result`.\n"
             "\n"
             "  shears theory --db traces.db --budget 0.1,0.2,0.5\n"
             "  shears theory --db traces.db --per head --json | jq '.layers[0].heads[0]'",
    .opts = opts, .args_bytes = sizeof(struct theory_args), .defaults = &defaults, .run = run};
