/* SPDX-License-Identifier: Apache-2.0 */
/* The theory of eviction on a trace store. For every query head, over the rows after the middle of each sequence: the
 * laws fitted to its scores and, for each budget, the dropped mass, measured and as the laws predict it. One layer's
 * heads are in memory at a time. */
#ifndef SH_APP_THEORY_STORE_H
#define SH_APP_THEORY_STORE_H

#include "planner/theory/powerlaw.h"
#include "planner/theory/theory_repeat.h"
#include "traces/store.h"

enum sh_theory_figure {                 /* figures of one head; x = score * number of keys        */
    SH_T_VALUES,                        /* scores above 0 that were seen                          */
    SH_T_ZEROS,                         /* share of all scores that are recorded as 0: no law has them */
    SH_T_SHARE,                         /* share of the seen ones in the sample that was fitted   */
    SH_T_LARGEST,                       /* x                                                      */
    SH_T_XMIN, SH_T_EXPONENT, SH_T_SIGMA, SH_T_TAIL,    /* the power law; tail: values it is of   */
    SH_T_KS, SH_T_P,
    SH_T_EXPONENTIAL, SH_T_EXPONENTIAL_P,   /* log-likelihood less that of a rival, and its p     */
    SH_T_LOGNORMAL, SH_T_LOGNORMAL_P,
    SH_T_LOMAX_K, SH_T_LOMAX_B,
    SH_N_THEORY_FIGURE
};

enum sh_theory_at {                     /* figures of one head at one share of the cache          */
    SH_TA_BUDGET,                       /* mean of B / n, B = ceil(rho n)                         */
    SH_TA_DROPPED,                      /* measured mass                                          */
    SH_TA_LAW, SH_TA_LAW_CUT,           /* D(rho); D cut at the largest score possible            */
    SH_TA_TWICE,                        /* 2 D                                                    */
    SH_TA_PRINTED, SH_TA_INFORMATIVE,   /* Theorem 4.1 as printed; 1 where it says something      */
    SH_TA_FAILURE,                      /* the probability with which it may fail; above 1: always */
    SH_TA_ERROR, SH_TA_ERROR_BOUND,     /* output error, 2 (1 - kept) max|v|; NaN without values  */
    SH_N_THEORY_AT
};

enum { SH_THEORY_BUDGETS = 64 };

struct sh_theory_request {
    const double *rho;                  /* [n_rho] ascending, in (0, 1]                           */
    int n_rho;
    double epsilon;                     /* the epsilon of Theorem 4.1; it needs epsilon < rho     */
    int replicas;                       /* replicas of the bootstrap; 0: no p                     */
    uint64_t seed;
    int run, threads, quiet;            /* run 0: all                                             */
};

/* Figures are NaN where they are not defined; of a layer or the whole: the mean over the heads, or over
 * the layers, that have the figure. */
struct sh_theory_result {
    char *model, *weights;
    int first_layer, n_layer, n_head, n_rho;
    int n_sequence, n_unfinished, has_values;
    int least_tokens, most_tokens;      /* the fewest and the most tokens of a sequence           */
    long long n_tokens;
    double *head;                       /* [n_layer, n_head, SH_N_THEORY_FIGURE]                  */
    double *at;                         /* [n_layer, n_head, n_rho, SH_N_THEORY_AT]               */
    enum sh_powerlaw_verdict *verdict;  /* [n_layer, n_head]                                      */
};

int sh_theory_run(const struct sh_theory_request *q, struct sh_store *s, struct sh_theory_result *out,
                  struct sh_err *e);
void sh_theory_result_free(struct sh_theory_result *r);         /* zeroed memory is fine */

/* i_layer counts from first_layer; -1: the whole. head -1: the whole layer. */
double sh_theory_figure(const struct sh_theory_result *r, int i_layer, int head, enum sh_theory_figure f);
double sh_theory_at(const struct sh_theory_result *r, int i_layer, int head, int i_rho, enum sh_theory_at f);

/* Does the head have rows? The layer may have fewer heads than others, or none. */
int sh_theory_has(const struct sh_theory_result *r, int i_layer, int head);

/* Heads of the layer (-1: of all) that have rows; those with this verdict. */
int sh_theory_heads(const struct sh_theory_result *r, int i_layer);
int sh_theory_verdicts(const struct sh_theory_result *r, int i_layer, enum sh_powerlaw_verdict v);

/* "0.1,0.2,0.5": at most SH_THEORY_BUDGETS shares, sorted; -1 with what is wrong. */
int sh_theory_shares(const char *text, double *rho, int *n, struct sh_err *e);

/* Theorem 3.1 (planner/theory/theory_repeat.h) on a trace with queries, keys and values and the checkpoint that it was
 * made with. A trace does not contain x_{t+1}, so the theorem's premise on it is not checked: a violation shows that
 * the premise fails. Models that rotate or normalise queries and keys are refused, because these are then not the x W
 * of the theorem.
 *
 * layer [r->n_layer], to be freed: counts are sums over heads and sequences, `mean_eps` and `step` means over their
 * positive pairs, `least_eps` the least, `lemma` the largest. r: the result of sh_theory_run. */
int sh_theory_repeat_run(const struct sh_theory_request *q, const struct sh_theory_result *r, const char *model,
                         struct sh_store *s, struct sh_repeat **layer, struct sh_err *e);

#endif
