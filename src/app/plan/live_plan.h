/* SPDX-License-Identifier: Apache-2.0 */
/* A plan with a promise: the smallest budgets found that meet a target in the live model, judged on texts that the
 * search did not use.
 *
 * Texts are shuffled by the seed. On one part layers are probed, budgets divided, policies and allocators compared, and
 * the mean budget is found with which each combination would meet the target. On the other part the best combination is
 * judged, from large budgets to small ones, until the bound over the sequences exceeds the target.
 *
 * The order of the budgets is fixed before the second part is read, and the first that fails ends the walk: so the
 * probability that any budget that is too small passes is that of a single test (fixed-sequence testing, Maurer 1995),
 * however many budgets are judged, although the budget is chosen on the judged texts themselves. If the first one
 * fails, a second order is walked with a stricter bound. Both together pass a budget that is too small with a
 * probability of at most 1 - confidence. */
#ifndef SH_APP_PLAN_LIVE_H
#define SH_APP_PLAN_LIVE_H

#include "src/app/common/live_session.h"
#include "src/app/common/text_source.h"
#include "src/app/eval/eval_job.h"
#include "src/app/plan/allot.h"
#include "src/app/plan/judged_count.h"
#include "src/app/plan/plan_bound.h"
#include "src/app/plan/plan_file.h"
#include "src/base/progress.h"

enum sh_live_target { SH_TARGET_PPL, SH_TARGET_KL, SH_TARGET_ANSWERS };

enum { SH_LIVE_JUDGED = 24,             /* judged by default, or if texts are short               */
       SH_LIVE_TOKENS = 24 * 512,       /* or as many as have so many tokens; more if losses vary much */
       SH_LIVE_WIDER = 4 };             /* then at most so many times the default                 */

struct sh_live_plan_args {
    struct sh_live_options live;
    struct sh_list text, policy, allocator;
    const char *jsonl, *field, *tokens, *answers, *db;
    const char *judged;                 /* a file for the judged sequences; NULL: none             */
    long long length, least, sequences, run;            /* length 0: 512, or the model's positions */
    long long known;                    /* number of first texts that are searched and never judged */
    const struct sh_budget *budget;     /* given, instead of a target; NULL: the least that holds the target */
    enum sh_live_target target;
    double value;                       /* an increase of the perplexity, nats, or a share of answers */
    double confidence, seconds;         /* seconds 0: no limit                                    */
    int by_bytes;                       /* settings are compared by the bytes of the cache, else by its tokens */
};

/* What a text's tokens, rows (the last one of a text included) and answers add up to. */
struct sh_text_sums { double tokens, rows, nll, change, kl, answers, right, full_right; };

struct sh_candidate {                   /* budgets of one policy                                  */
    int mean;                           /* tokens a head                                          */
    int *budget;                        /* [n_layer][n_kv_head] of a text of n_token; owned       */
    struct sh_text_sums *at;            /* [texts that were read]; owned                          */
    struct sh_mean_bound goal;               /* what the target bounds, on these texts                 */
    double level;                       /* of a judged one: the confidence of that bound          */
};

struct sh_live_setting {
    struct sh_policy_spec policy;
    struct sh_allocator_spec allocator;
    struct sh_allot allot;
    struct sh_live_probe *probe;        /* the losses of layers; NULL: not needed; owned          */
    int is_tried, meets;
    int may_lack;                       /* its allocator came with "all": it is left out if its evidence is missing */
    char *left_out;                     /* why it was not tried; owned                            */
    int mean;                           /* smallest that meets the target on the searched texts, else the largest */
    struct sh_mean_bound goal;               /* at this mean, on the searched texts               */
    struct sh_seen_budget *seen;        /* [n_seen]: all that were tried; owned                   */
    int n_seen;
};

struct sh_live_plan {
    const struct sh_live_plan_args *a;
    const struct sh_common *common;
    struct sh_live live;
    struct sh_text_source source;
    struct sh_eval_answers answers;
    struct sh_store *store;             /* what was read before; NULL: not kept                   */
    struct sh_store *rows;              /* temporary, recorded rows of some searched texts; NULL: not needed */
    char *rows_path;
    int rows_lock;                      /* open file that holds the lock of `rows`; -1: none       */
    int n_token;                        /* length of the longest text                             */
    int *order, n_search, n_judge;      /* all texts: the searched ones, the judged ones, those not used */
    double goal;                        /* the target, in the unit of `goal` above                */
    double level;                       /* confidence of the bounds that are computed now         */
    double began_s, read;
    struct sh_progress progress;
    struct sh_live_setting *setting;    /* [n_setting]                                            */
    int n_setting, n_tried, best;
    struct sh_candidate *judged;        /* [n_judged]: of each walk, from large budgets to small ones */
    int n_judged, chosen;               /* -1: not even the largest holds                         */
    int is_met;
    struct sh_mean_bound ppl, kl, exact;     /* the plan on the judged texts: nats, nats, share        */
    double full_ppl, full_exact;        /* perplexity and share of exact answers of the full cache there */
    int more;                           /* judged sequences with which the plan would hold; 0: none would */
    struct sh_measured on;              /* the judged texts                                       */
    struct sh_plan plan;
    char *verdict;                      /* a sentence                                             */
};

/* Set a and common, the rest zero. -1: close is still due. */
int sh_live_plan_make(struct sh_live_plan *w, struct sh_err *e);
void sh_live_plan_close(struct sh_live_plan *w);

/* "h2o:recent=16, loss", for free(). */
char *sh_live_setting_name(const struct sh_live_setting *s);

/* ---- its parts ---- */

void sh_candidates_free(struct sh_candidate *c, int n);

/* live_read.c: fills at and goal of n candidates on n_text texts, from the store or by reading. what: "probing". */
int sh_live_read_candidates(struct sh_live_plan *w, const struct sh_policy_spec *policy, struct sh_candidate *c, int n,
                            const int *text, int n_text, const char *what, struct sh_err *e);
/* The bound of the mean, per token or per answer, of the sum that the target `of` limits, over n texts: in nats, or for
 * answers as a share. */
struct sh_mean_bound sh_live_bound(const struct sh_live_plan *w, enum sh_live_target of, const struct sh_text_sums *at,
                              int n);

/* live_evidence.c: whether the model's layers have what the allocator needs; opens s->allot with all of it. */
int sh_live_can_allot(const struct sh_live_plan *w, const struct sh_allocator_spec *s);
int sh_live_evidence(struct sh_live_plan *w, struct sh_live_setting *s, struct sh_err *e);
void sh_live_rows_drop(struct sh_live_plan *w);

/* live_probe.c: measures the losses of layers that the allocator `loss` divides by, and gives them to s->allot. Or says
 * in s->left_out why not: the policy is not expected to need less than the best setting so far. */
int sh_live_probe(struct sh_live_plan *w, struct sh_live_setting *s, struct sh_err *e);
/* Measures layers about what they get with s->mean tokens, where they were not. *changes: they get other shares now. */
int sh_live_probe_more(struct sh_live_plan *w, struct sh_live_setting *s, int *changes, struct sh_err *e);
void sh_live_probe_free(struct sh_live_probe *p);       /* NULL is fine                           */

/* live_search.c: candidates with these means; and the mean of a setting on the searched texts, below `limit` tokens. */
struct sh_candidate *sh_live_candidates(const struct sh_live_plan *w, const struct sh_live_setting *s, const int *mean,
                                        int n, struct sh_err *e);
int sh_live_search(struct sh_live_plan *w, struct sh_live_setting *s, int limit, struct sh_err *e);
/* The mean of --budget, at most the text's length. -1: the policy protects more. */
int sh_live_given_mean(const struct sh_live_plan *w, const struct sh_live_setting *s, struct sh_err *e);
int sh_live_meets(const struct sh_live_plan *w, const struct sh_mean_bound *b);

/* live_bytes.c: bytes of a KV head, on average, with `mean` tokens: keys, values and what the policy stores, as the
 * allocator divides them. */
double sh_live_bytes(const struct sh_live_plan *w, const struct sh_live_setting *s, int mean);
/* Those of the plan as a share of the full cache, which has no policy. */
double sh_live_bytes_share(const struct sh_live_plan *w);
/* The most tokens a head with which s needs no more than the best setting so far; n_token: none holds the target. */
int sh_live_limit(const struct sh_live_plan *w, const struct sh_live_setting *s);
/* Of settings that hold the target the one that needs less, else the one whose bound is nearer. */
int sh_live_is_better(const struct sh_live_plan *w, const struct sh_live_setting *a, const struct sh_live_setting *b);

/* live_judge.c: walks down with the best setting; fills judged and chosen. sh_live_level: the confidence of the
 * bounds of a walk, as the two walks share 1 - confidence. */
int sh_live_judge(struct sh_live_plan *w, struct sh_err *e);
double sh_live_level(const struct sh_live_plan *w, int is_second);
/* The judged texts as ids, a line each, to args.judged: they repeat the measurement. */
int sh_live_write_judged(const struct sh_live_plan *w, struct sh_err *e);
/* Keeps the plan's figures on the judged texts in the store, where other commands find them like an evaluation. */
int sh_live_keep_judged(struct sh_live_plan *w, const struct sh_candidate *c, struct sh_err *e);

#endif
