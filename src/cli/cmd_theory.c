/* SPDX-License-Identifier: Apache-2.0 */
/* shears theory: what the theory of eviction promises, beside what the recorded scores do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/commands.h"
#include "src/cli/paths.h"
#include "src/cli/theory_show.h"

struct theory_args {
    const char *db, *per, *budget, *model;
    double epsilon;
    long long run, replicas;
};

#define F(name) offsetof(struct theory_args, name)
static const struct sh_opt opts[] = {
    {"db", SH_OPT_TEXT, F(db), "FILE", "the trace store; full rows, with --vectors v also for the output error", 0, 0,
     0},
    {"budget", SH_OPT_TEXT, F(budget), "R,...",
     "shares of the sequence that are kept (default: 0.05,0.1,0.2,0.3,0.5,0.8)", 0, 0, 0},
    {"epsilon", SH_OPT_REAL, F(epsilon), "E", "of Theorem 4.1, below every budget (default: 0, what serves it best)", 0,
     0.999999, 0},
    {"replicas", SH_OPT_INT, F(replicas), "N",
     "samples that the power law's p is taken of; 0: no test (default: 100)", 0, 100000, 0},
    {"per", SH_OPT_TEXT, F(per), "WHAT", "the tables' rows: layer (default) or head", 0, 0, 0},
    {"model", SH_OPT_TEXT, F(model), "DIR",
     "the traced checkpoint: checks Theorem 3.1, too; needs --vectors qkv in the\ntrace", 0, 0, 0},
    {"run", SH_OPT_INT, F(run), "N", "only this run of the store (default: all, of one model)", 1, 1e9, 0},
    {0}};
#undef F

static void preset(void *args)
{
    struct theory_args *a = args;
    a->per = "layer";
    a->budget = "0.05,0.1,0.2,0.3,0.5,0.8";
    a->replicas = 100;
}

/* Results are kept in the store where it can be written to; a read-only one is still worth reading. */
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
        return sh_misused(e, "--epsilon %g: expected less than the least budget, %g", q.epsilon, rho[0]);
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
    .summary = "what theory promises of eviction, beside what the scores do",
    .about = "A small cache does, it is said, because scores follow a power law: few tokens carry nearly all.\n"
             "For each head, the rows behind the middle of each sequence, x = score * keys of the row (1 = even):\n"
             "  power law   fitted above the xmin that suits best (Clauset, Shalizi, Newman 2009), its distance\n"
             "              KS, and p: how often a true power law would look worse. p <= 0.1 rejects it. A rival\n"
             "              whose log-likelihood difference is negative with a small p fits better.\n"
             "  Lomax k, b  the density (k-1) b^(k-1) (x+b)^-k that Theorem 4.1 of Scissorhands assumes.\n"
             "sampled is the share of the values seen that the fit is of; a law that p does not reject is plausible.\n"
             "For each budget rho, keeping the ceil(rho n) largest of a row's n scores (no policy can do better):\n"
             "  dropped     the mass of the others, as it is\n"
             "  D(rho)      what the Lomax law says of it: 1 - (k-1) rho^((k-2)/(k-1)) + (k-2) rho, for k > 2;\n"
             "              \"cut\" the same when a score is at most 1. 2 D bounds the error of the output in units\n"
             "              of the largest value\n"
             "  Thm. 4.1    the paper's bound as printed, negative (-: it says nothing) for small rho; speaks\n"
             "              for: the share of heads where it says something; may fail: with what probability it does\n"
             "              not hold (1 or more: it promises nothing)\n"
             "  error       of the attention output, |o - o'|, and its bound 2 (1 - kept) max|v| (where values are)\n"
             "With --model, Theorem 3.1 on the pairs (row t, key l) that it speaks of: does A[t,l] foretell\n"
             "q_{t+1} k_l within 3 eps, with the smallest eps that its conditions allow?\n"
             "Figures are kept in the store's table `result`.\n\n"
             "  shears theory --db traces.db --budget 0.1,0.2,0.5\n"
             "  shears theory --db traces.db --per head --json | jq '.layers[0].heads[0]'",
    .opts = opts,
    .args_bytes = sizeof(struct theory_args),
    .preset = preset,
    .run = run,
};
