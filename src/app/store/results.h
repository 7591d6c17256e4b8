/* SPDX-License-Identifier: Apache-2.0 */
/* Results that commands keep in a store. A result is a set of figures under one text of settings: JSON that names
 * everything that decides them, and by which they are found again. The tables of result_tables.c list the settings and
 * figures of each command. Only these functions read and write the store's table. */
#ifndef SH_APP_STORE_RESULTS_H
#define SH_APP_STORE_RESULTS_H

#include <jansson.h>
#include <stdint.h>

#include "planner/policy/policy.h"
#include "src/base/out.h"
#include "traces/store.h"

/* ---- what there is ---- */

enum sh_setting_kind {
    SH_SETTING_TEXT, SH_SETTING_WHOLE, SH_SETTING_BOOL, SH_SETTING_UNSIGNED,
    SH_SETTING_HASH,                    /* 16 hexadecimal digits, as a text                       */
    SH_SETTING_REAL,                    /* as JSON writes it: 1.0                                 */
    SH_SETTING_REAL_17, SH_SETTING_REAL_6       /* as printf's %.17g and %g do: 1                 */
};

struct sh_setting {
    const char *key;                    /* NULL ends a list                                       */
    enum sh_setting_kind kind;
};

/* A figure that a clock measures must be listed in traces/digest.c: else equal results have different hashes. */
struct sh_metric {
    const char *key, *label;            /* its name in the store and in JSON; the title of its column */
    int digits;                         /* 0: a whole number                                      */
    double least, most;                 /* what it can be, besides NaN; both 0: anything          */
};

struct sh_metrics {                     /* figures that are there together, in the order of an enum */
    const struct sh_metric *metric;     /* [n]                                                    */
    int n;
    unsigned details;                   /* bit i: text tables show metric i only if it is named   */
};

struct sh_result_kind {                 /* what a command keeps                                   */
    const char *command;
    int has_force;                      /* it finds its results again, unless --force is given    */
    const struct sh_setting *setting;   /* settings, in the order in which they are written       */
    const struct sh_metrics *metrics[4];        /* NULL ends. A key that ends in "_" continues with a number */
};

extern const struct sh_result_kind sh_result_kinds[];   /* command NULL ends */

extern const struct sh_metrics
    sh_replay_metrics,                  /* of enum sh_replay_metric; those before SH_M_LAYER_METRICS of layers, too */
    sh_eval_metrics,                    /* metrics of enum sh_eval_metric                         */
    sh_eval_bound_metrics,              /* metrics of enum sh_bound_metric                        */
    sh_eval_answer_metrics,             /* metrics of enum sh_answer_metric                       */
    sh_eval_distance_metrics,           /* metrics of enum sh_part_metric, "nll@distance:33-64"   */
    sh_eval_part_metrics,               /* metrics of enum sh_part_metric without those of answers */
    sh_task_metrics,                    /* metrics of enum sh_task_metric                         */
    sh_drift_metrics,                   /* metrics of enum sh_drift_metric, of layers             */
    sh_simulate_metrics,                /* metrics of enum sh_sim_metric                          */
    sh_simulate_prefix_metrics,         /* metrics of enum sh_sim_prefix_metric, with a prefix cache */
    sh_theory_metrics,                  /* metrics of enum sh_theory_figure                       */
    sh_theory_at_metrics,               /* metrics of enum sh_theory_at, each at a share: "kept_share@0.2" */
    sh_persistence_metrics,             /* metrics of enum sh_persistence_metric, of layers, too  */
    sh_repetition_metrics,              /* metrics of enum sh_repetition_metric, each with "_stderr", too */
    sh_judged_metrics;                  /* metrics of enum sh_judged_metric                       */

enum sh_drift_metric { SH_D_JACCARD, SH_D_LEAST, SH_D_SAME_FIRST, SH_D_FIRST_DIFFERENCE, SH_N_DRIFT_METRIC };

/* Of times there are four: the p50, the p90, the p99 and the mean. */
enum sh_sim_metric {
    SH_S_RATE, SH_S_REQUESTS, SH_S_FINISHED, SH_S_REFUSED, SH_S_SKIPPED, SH_S_THROUGHPUT, SH_S_GOODPUT, SH_S_GOOD_SHARE,
    SH_S_TTFT, SH_S_TPOT = SH_S_TTFT + 4, SH_S_LATENCY = SH_S_TPOT + 4, SH_S_QUEUE = SH_S_LATENCY + 4,
    SH_S_PREEMPTIONS = SH_S_QUEUE + 4, SH_S_OCCUPANCY, SH_S_OCCUPANCY_PEAK, SH_S_RUNNING, SH_S_LARGEST_BATCH,
    SH_S_STEPS, SH_S_SECONDS, SH_S_BUSY, SH_S_TOKENS_IN, SH_S_TOKENS_OUT, SH_S_RECOMPUTED, SH_S_MAX_RATE,
    SH_S_MAX_SPEED, SH_S_MAX_IS_OPEN, SH_N_SIM_METRIC
};

enum sh_sim_prefix_metric {             /* blocks, but for the first two                          */
    SH_SP_SHARE, SH_SP_TOKENS, SH_SP_ASKED, SH_SP_HIT, SH_SP_HIT_HOST, SH_SP_HIT_DISK, SH_SP_ROOM, SH_N_SIM_PREFIX
};

enum sh_persistence_metric {
    SH_PM_RATIO, SH_PM_DENSITY, SH_PM_LIFT, SH_PM_RELATIVE_RISK, SH_PM_PHI, SH_PM_AUC, SH_PM_ENTROPY, SH_PM_MASS_TOP,
    SH_N_PERSISTENCE_METRIC
};

enum sh_repetition_metric {
    SH_REP_4, SH_REP_DISTINCT_1, SH_REP_DISTINCT_2, SH_REP_LONGEST, SH_REP_LIKENESS, SH_REP_CHANCE,
    SH_N_REPETITION_METRIC
};

/* Figures of a plan that met its target on unseen texts: increases of the perplexity as shares, divergences in nats,
 * and their one-sided bounds with the settings' confidence. */
enum sh_judged_metric {
    SH_J_SEQUENCES, SH_J_TOKENS, SH_J_INCREASE, SH_J_BOUND, SH_J_KL, SH_J_KL_BOUND, SH_N_JUDGED_METRIC
};

/* -1: no such metric. */
int sh_metric_index(const struct sh_metrics *m, const char *key);

/* Write columns of an item: one, as a real number; all, at[m->n], whole numbers as such. */
void sh_metric_write(const struct sh_metrics *m, int i, double value, struct sh_out *o);
void sh_metrics_write(const struct sh_metrics *m, const double *at, struct sh_out *o);

/* The columns policy and knobs; text tables show both as one, without the knobs that have their default. */
void sh_policy_write(const struct sh_policy_spec *p, struct sh_out *o);

/* ---- settings ---- */

/* One setting; its kind says which field counts: text; whole (also 0 and 1 of SH_SETTING_BOOL); bits (SH_SETTING_HASH
 * and _UNSIGNED); real. NULL, reals that are not finite or below 0, and absent values are left out. */
struct sh_value {
    const char *key, *text;
    long long whole;
    uint64_t bits;
    double real;
    int is_absent;
};

/* Activations of other bits than the command's usual ones are a setting; bits 0: the usual ones. */
#define SH_ACTIVATION_SETTING(bits, usual) \
    {"activation_bits", .whole = (bits), .is_absent = !(bits) || (bits) == (usual)}

/* The text of a command's settings, whatever the order of the values, which {0} ends; for free(). NULL: a text among
 * them is not UTF-8. */
char *sh_settings_text(const char *command, const struct sh_value *value);

/* ---- reading ---- */

struct sh_result_figure {
    char metric[64];
    int layer;                          /* -1: of the whole model                                 */
    double value;                       /* NaN: not defined                                       */
};

struct sh_result_row {                  /* one result                                             */
    json_t *settings;                   /* an object; NULL from sh_result_find                    */
    char *text;                         /* the same as it is stored                               */
    struct sh_measured on;              /* sh_results_load knows as much as the settings say, at least */
    int store;                          /* which of several stores it is of, for the caller       */
    const double *sums;                 /* [n_sums]: to be kept with it, borrowed; NULL: none     */
    size_t n_sums;
    struct sh_result_figure *at;        /* [n]                                                    */
    int n;
};

struct sh_results {
    struct sh_result_row *row;          /* [n]; without those whose settings cannot be parsed     */
    int n;
};

/* Adds all results of a command, sorted by the text of their settings. -1, also for an impossible figure: what `out`
 * had before remains. */
int sh_results_load(struct sh_store *s, const char *command, struct sh_results *out, struct sh_err *e);
void sh_results_free(struct sh_results *r);

/* The result of these settings: 1; 0: none. */
int sh_result_find(struct sh_store *s, const char *command, const char *settings, struct sh_result_row *row,
                   struct sh_err *e);
void sh_result_free(struct sh_result_row *row);

/* A figure; NaN: it has none. */
double sh_result(const struct sh_result_row *r, const char *metric, int layer);

/* Figures of the whole model: at[m->n], NaN for missing ones. 1: they are all there; 0: the result is of an older
 * version, or incomplete. */
int sh_result_get(const struct sh_result_row *r, const struct sh_metrics *m, double *at);

/* The figures that the store has under these settings: 1: they are all there, as sh_result_get; 0; -1: failed. */
int sh_result_recall(struct sh_store *s, const char *command, const char *settings, const struct sh_metrics *m,
                     double *at, struct sh_err *e);

/* Of the settings; "" and 0 if there is no such setting. */
const char *sh_result_text(const struct sh_result_row *r, const char *key);
long long sh_result_int(const struct sh_result_row *r, const char *key);

/* Whether weights and activations are those of the checkpoint: neither recoded or pruned, nor of 8 bits. */
int sh_result_is_of_model(const struct sh_result_row *r);
double sh_result_real(const struct sh_result_row *r, const char *key);      /* also of whole numbers */

/* "h2o:recent=10": policy and knobs as they are kept; the same as a name, without the knobs that have their default.
 * For free(). */
char *sh_result_spec(const struct sh_result_row *r);
char *sh_result_policy(const struct sh_result_row *r);

/* The settings without `apart`, which NULL ends: equal texts for results that differ only in those. For free(). */
char *sh_result_group(const struct sh_result_row *r, const char *const *apart);

/* ---- writing ---- */

/* Adds a figure; layer -1: of the whole model. */
__attribute__((format(printf, 4, 5)))
void sh_result_add(struct sh_result_row *r, int layer, double value, const char *metric, ...);
void sh_result_add_all(struct sh_result_row *r, const struct sh_metrics *m, int layer, const double *at);

/* Keeps the figures, and what they were measured on where that is known, in place of those that the store has, all of
 * them or none, and frees them in any case. */
int sh_result_keep(struct sh_store *s, const char *command, const char *settings, struct sh_result_row *r,
                   struct sh_err *e);
/* The same with these figures of the whole model, at[m->n]; on: NULL, not known. */
int sh_result_keep_all(struct sh_store *s, const char *command, const char *settings, const struct sh_metrics *m,
                       const double *at, const struct sh_measured *on, struct sh_err *e);

/* The error for a figure that is impossible or contradicts another one: names the store, the metric, the settings, what
 * was expected and the way out. Returns -1. */
int sh_result_damaged(const char *store, const char *command, const char *settings, const char *metric, double value,
                      const char *expected, struct sh_err *e);

#endif
