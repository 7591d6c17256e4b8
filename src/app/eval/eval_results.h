/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of one policy under one budget on some texts, new or from the store. */
#ifndef SH_APP_EVAL_RESULTS_H
#define SH_APP_EVAL_RESULTS_H

#include "src/base/out.h"
#include "src/engine/eval.h"
#include "src/engine/task_score.h"
#include "traces/store.h"

enum sh_eval_metric {
    SH_E_SEQUENCES, SH_E_TOKENS, SH_E_NLL, SH_E_NLL_STDERR, SH_E_PPL, SH_E_PPL_STDERR, SH_E_CHANGE, SH_E_CHANGE_STDERR,
    SH_E_KL, SH_E_KL_STDERR, SH_E_SAME, SH_E_BUDGET_TOKENS, SH_E_PEAK_TOKENS, SH_E_KV_BYTES, SH_E_RATE, SH_N_EVAL_METRIC
};

enum sh_bound_metric {                  /* shares; sequences: that standard errors are over, 0: they are over tokens */
    SH_B_INCREASE, SH_B_BOUND, SH_B_SEQUENCES, SH_N_BOUND_METRIC
};

enum sh_answer_metric {                 /* figures of answers in the texts                        */
    SH_A_ANSWERS, SH_A_EXACT, SH_A_EXACT_STDERR, SH_A_NLL, SH_A_NLL_STDERR, SH_A_PPL, SH_A_PPL_STDERR, SH_A_CHANGE,
    SH_A_CHANGE_STDERR, SH_N_ANSWER_METRIC
};

enum sh_part_metric {                   /* figures of a part of the texts                         */
    SH_P_TOKENS, SH_P_NLL, SH_P_NLL_STDERR, SH_P_CHANGE, SH_P_CHANGE_STDERR, SH_P_ANSWERS, SH_P_EXACT, SH_N_PART_METRIC
};

struct sh_eval_scene {                  /* the other settings that determine the figures          */
    uint64_t model;                     /* fingerprint                                            */
    struct sh_measured on;              /* the texts or the task's items                          */
    const char *dtype, *task;           /* task NULL: texts are read                              */
    long long prefill, prefill_block, weight_bits, activation_bits, shots;
    uint64_t seed, answers;             /* answers: hash of where they are; 0: none are scored    */
    int is_stream;                      /* texts are read token by token                          */
    double weight_prune;                /* 0: none                                                */
    uint64_t unpruned;                  /* fingerprint of the weights before pruning              */
};

struct sh_eval_result {
    const struct sh_eval_cell *cell;
    const char *plan;                   /* the file's name; NULL: a budget for all heads          */
    uint64_t plan_hash;
    int has_answers;
    double at[SH_N_EVAL_METRIC];        /* NaN: not defined                                       */
    double bound[SH_N_BOUND_METRIC];
    double answer[SH_N_ANSWER_METRIC];
    double part[SH_EVAL_PARTS][SH_EVAL_BUCKETS][SH_N_PART_METRIC];      /* no token there: not shown */
    struct sh_eval_place place;         /* place of this run's caches; not kept in stores         */
    struct sh_measured on;              /* the texts                                              */
    char *settings;                     /* everything needed to repeat it, as JSON; owned         */
    int is_known;                       /* it was in the store before this command                */
};

/* Everything needed to repeat a cell, as JSON, for free(). plan: hash of its budgets; NULL: one for all heads. */
char *sh_eval_settings(const struct sh_policy_spec *spec, const struct sh_budget *of, const struct sh_kv_format *f,
                       const uint64_t *plan, const struct sh_eval_scene *c);
void sh_eval_result_name(struct sh_eval_result *r, const struct sh_eval_scene *c);    /* fills settings */
/* q: the texts' sequences; standard errors are over these if there are enough of them, else over tokens. */
void sh_eval_result_fill(struct sh_eval_result *r, const struct sh_eval_total *t, const struct sh_eval_sequences *q);

/* Increase and bound that follow from figures of the whole: sh_eval_metrics, and sequences, 0: errors over tokens. */
void sh_eval_bound(const double *at, double sequences, double bound[SH_N_BOUND_METRIC]);
void sh_eval_results_free(struct sh_eval_result *r, int n);

/* Fills the results that are not known yet from the store, and marks them as known unless they are new. */
int sh_eval_results_find(struct sh_eval_result *r, int n, int are_new, struct sh_store *s, struct sh_err *e);
int sh_eval_result_keep(const struct sh_eval_result *r, const struct sh_eval_sequences *q, struct sh_store *s,
                        struct sh_err *e);

/* An item of "results". with_plan: some results are of a plan; with_device: the device has its own memory, so the item
 * says where the cache was, and if on the host, why. */
void sh_eval_result_write(const struct sh_eval_result *r, int with_plan, int with_device, struct sh_out *o);

/* Begins an item: policy, knobs, plan (NULL: none of the results has one), budget, bits of the cache. */
void sh_eval_cell_write(const struct sh_policy_spec *spec, const char *const *plan, const struct sh_budget *budget,
                        int bits, struct sh_out *o);

/* "cache_on" and "why_host" of an item. */
void sh_eval_place_write(const struct sh_eval_place *p, struct sh_out *o);

/* "position", "length", "distance" and the list of JSON that holds it: "by_position". NULL, NULL ends. */
struct sh_eval_part_name { const char *name, *list; };
extern const struct sh_eval_part_name sh_eval_part_names[SH_EVAL_PARTS + 1];

/* ---- few-shot tasks: task_results.c ---- */

enum sh_task_metric {
    SH_T_ITEMS, SH_T_ACC, SH_T_STDERR, SH_T_ACC_NORM, SH_T_ACC_NORM_STDERR, SH_T_PPL, SH_T_SAME, SH_T_CHANGE,
    SH_T_BUDGET_TOKENS, SH_T_KV_BYTES, SH_T_RATE, SH_N_TASK_METRIC
};

struct sh_task_sums {                   /* over items                                             */
    long long items, right, right_norm, same, read, choices;
    double gold;                        /* log-likelihoods of the right choices                   */
    double change;                      /* |log-likelihood - the full cache's|, over choices      */
    double budget_tokens, seconds;
    size_t kv_bytes;                    /* bytes of the largest item's choice                     */
    struct sh_eval_place place;
};

struct sh_task_row {
    struct sh_task_reader reader;
    double at[SH_N_TASK_METRIC];        /* NaN: not defined                                       */
    struct sh_eval_place place;         /* place of this run's caches; not kept in stores         */
    char *settings;                     /* everything needed to repeat it, as JSON; owned         */
    int is_known;                       /* found in the store                                     */
};

/* full: the scores of the same item with the full cache; NULL: these are the full cache's scores. */
void sh_task_sums_add(struct sh_task_sums *s, const struct sh_task *task, const struct sh_task_prompt *p,
                      const struct sh_task_score *score, const struct sh_task_score *full);

void sh_task_row_fill(struct sh_task_row *r, const struct sh_task *task, const struct sh_task_sums *s);

/* An item of "results". with_device: as sh_eval_result_write's. */
void sh_task_row_write(const struct sh_task_row *r, const struct sh_task *task, int with_device, struct sh_out *o);

#endif
