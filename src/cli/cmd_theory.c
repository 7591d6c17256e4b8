/* SPDX-License-Identifier: Apache-2.0 */
/* shears theory: the theory of eviction compared with recorded scores. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/commands.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"
#include "src/cli/theory_show.h"

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

/* Keeps the results in the store if it is writable; a read-only store can still be analysed. */
static void keep_results(const char *path, const struct sh_theory_request *q, const struct sh_theory_result *r,
                         const struct sh_common *common)
{
    struct sh_err e;
    struct sh_store *s = sh_store_typed(sh_store_update(path, &e), common->line);
    int bad = !s || sh_theory_keep(q, r, s, &e);
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
    int bad = !s || sh_theory_run(&q, s, &r, e) || (a->model && sh_theory_repeat_run(&q, &r, a->model, s, &repeat, e));
    sh_store_close(s);
    if (!bad) {
        struct sh_out *o = sh_theory_show(&q, &r, repeat, !strcmp(a->per, "head"));
        bad = sh_common_write(common, o, e);
        sh_out_free(o);
    }
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
             "mass. For each head, over the rows of the second half of each sequence, with x = score * keys of the\n"
             "row (1 = uniform attention):\n"
             "  power law   fitted above the best xmin (Clauset, Shalizi, Newman 2009), with its distance KS and p:\n"
             "              how often data from a true power law fits worse. p <= 0.1 rejects it; otherwise it is\n"
             "              plausible. A rival fits better if its log-likelihood ratio is negative with a small p.\n"
             "  Lomax k, b  the density (k-1) b^(k-1) (x+b)^-k that Theorem 4.1 of Scissorhands assumes\n"
             "  sampled     fraction of the values used in the fit\n"
             "For each budget rho, keeping the ceil(rho n) largest of a row's n scores, which no policy can beat:\n"
             "  dropped     measured mass of the other scores\n"
             "  D(rho)      the same by the Lomax law: 1 - (k-1) rho^((k-2)/(k-1)) + (k-2) rho, for k > 2; cut: with\n"
             "              scores limited to 1. 2 D bounds the output error in units of the largest value.\n"
             "  Thm. 4.1    the paper's bound as printed; - where it is negative and says nothing (small rho).\n"
             "              speaks for: fraction of heads where it says something; may fail: probability that it does\n"
             "              not hold (1 or more: it guarantees nothing)\n"
             "  error       of the attention output, |o - o'|, and its bound 2 (1 - kept) max|v|, if values were\n"
             "              recorded\n"
             "With --model, tests Theorem 3.1 on the pairs (row t, key l) that it covers: does A[t,l] predict\n"
             "q_{t+1} k_l within 3 eps, with the smallest eps that its conditions allow?\n"
             "The figures are kept in the store's table `result`.\n\n"
             "  shears theory --db traces.db --budget 0.1,0.2,0.5\n"
             "  shears theory --db traces.db --per head --json | jq '.layers[0].heads[0]'",
    .opts = opts, .args_bytes = sizeof(struct theory_args), .defaults = &defaults, .run = run};
