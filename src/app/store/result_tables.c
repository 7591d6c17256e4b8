/* SPDX-License-Identifier: Apache-2.0 */
/* What each command keeps (results.h). Stored results are found by the order and the form of their settings. So
 * settings that were added later are left out where they are not used, and older results are still found. */
#include <float.h>
#include <math.h>
#include <stddef.h>

#include "src/app/eval/eval_results.h"
#include "src/app/replay/replay_results.h"
#include "src/app/store/results.h"
#include "src/app/theory/theory_store.h"

/* What a figure can be. */
#define ANYTHING 0, 0
#define FINITE -DBL_MAX, DBL_MAX
#define NOT_NEGATIVE 0, DBL_MAX
#define FROM_1 1, DBL_MAX
#define COUNT 0, 0x1p53
#define COUNT_FROM_1 1, 0x1p53
#define BYTES 0, 0x1p63
#define SHARE 0, 1
#define SHARE_OF_SUMS 0, 1 + 1e-6
#define SHARE_OF_FLOATS 0, 1 + 1e-3     /* long sums in two orders */

#define METRICS_WITH(name, table, some) \
    const struct sh_metrics name = {.metric = table, .n = sizeof table / sizeof *table, .details = some}
#define METRICS(name, table) METRICS_WITH(name, table, 0)
#define BIT(i) (1u << (i))

static const struct sh_metric replay[SH_N_REPLAY_METRIC] = {
    [SH_M_KEPT_MASS] = {"kept_mass", "kept mass", 4, SHARE_OF_FLOATS},
    [SH_M_KEPT_MASS_NO_SINK] = {"kept_mass_no_sink", "no sinks", 4, ANYTHING},
    [SH_M_PIVOTAL_RECALL] = {"pivotal_recall", "pivotal", 4, SHARE_OF_SUMS},
    [SH_M_OUTPUT_ERROR] = {"output_error", "output error", 4, 0, INFINITY},
    [SH_M_STABILITY] = {"stability", "stability", 4, ANYTHING},
    [SH_M_MEAN_TOKENS] = {"mean_tokens", "mean", 1, ANYTHING},
    [SH_M_KEPT_MASS_LOW] = {"kept_mass_low", "95 % from", 4, SHARE_OF_FLOATS},
    [SH_M_KEPT_MASS_HIGH] = {"kept_mass_high", "to", 4, SHARE_OF_FLOATS},
    [SH_M_OUTPUT_ERROR_LOW] = {"output_error_low", "from", 4, ANYTHING},
    [SH_M_OUTPUT_ERROR_HIGH] = {"output_error_high", "to", 4, ANYTHING},
    [SH_M_PEAK_TOKENS] = {"peak_tokens", "peak", 0, COUNT},
    [SH_M_BUDGET_TOKENS] = {"budget_tokens", "tokens", 1, COUNT},
    [SH_M_RESIDENT_BYTES] = {"resident_bytes", "bytes", 0, ANYTHING}};
METRICS_WITH(sh_replay_metrics, replay, BIT(SH_M_BUDGET_TOKENS) | BIT(SH_M_OUTPUT_ERROR_LOW) |
             BIT(SH_M_OUTPUT_ERROR_HIGH) | BIT(SH_M_STABILITY) | BIT(SH_M_MEAN_TOKENS) | BIT(SH_M_RESIDENT_BYTES));

#define TEXT(key) {key, SH_SETTING_TEXT}
#define WHOLE(key) {key, SH_SETTING_WHOLE}
#define BOOL(key) {key, SH_SETTING_BOOL}
#define UNSIGNED(key) {key, SH_SETTING_UNSIGNED}
#define HASH(key) {key, SH_SETTING_HASH}
#define REAL(key) {key, SH_SETTING_REAL}
#define REAL_17(key) {key, SH_SETTING_REAL_17}
#define REAL_6(key) {key, SH_SETTING_REAL_6}

#define POLICY TEXT("policy"), TEXT("knobs"), TEXT("budget")
#define CACHE WHOLE("kv_bits"), WHOLE("group"), TEXT("keys"), WHOLE("residual")
#define CHANGED WHOLE("activation_bits"), REAL_6("weight_prune"), HASH("unpruned")

static const struct sh_setting replay_setting[] = {
    POLICY, TEXT("allocator"), TEXT("rows"), WHOLE("prefill"), WHOLE("error_every"), UNSIGNED("seed"), WHOLE("run"),
    TEXT("model"), WHOLE("sequences"), WHOLE("tokens"), WHOLE("layers_done"), {NULL, 0}};

static const struct sh_metric eval[SH_N_EVAL_METRIC] = {
    [SH_E_SEQUENCES] = {"sequences", "texts", 0, COUNT_FROM_1}, [SH_E_TOKENS] = {"tokens", "tokens", 0, COUNT},
    [SH_E_NLL] = {"nll", "nll", 4, NOT_NEGATIVE}, [SH_E_NLL_STDERR] = {"nll_stderr", "+-", 4, NOT_NEGATIVE},
    [SH_E_PPL] = {"ppl", "ppl", 4, FROM_1}, [SH_E_PPL_STDERR] = {"ppl_stderr", "+-", 4, NOT_NEGATIVE},
    [SH_E_CHANGE] = {"nll_change", "change", 4, FINITE},
    [SH_E_CHANGE_STDERR] = {"nll_change_stderr", "+-", 4, NOT_NEGATIVE},
    [SH_E_KL] = {"kl", "kl", 4, NOT_NEGATIVE}, [SH_E_KL_STDERR] = {"kl_stderr", "+-", 4, NOT_NEGATIVE},
    [SH_E_SAME] = {"top1_agreement", "top 1", 4, SHARE}, [SH_E_BUDGET_TOKENS] = {"budget_tokens", "slots", 1, COUNT},
    [SH_E_PEAK_TOKENS] = {"peak_tokens", "peak", 0, COUNT}, [SH_E_KV_BYTES] = {"kv_bytes", "bytes", 0, BYTES},
    [SH_E_RATE] = {"tokens_per_s", "tokens/s", 1, NOT_NEGATIVE}};
METRICS_WITH(sh_eval_metrics, eval, BIT(SH_E_SEQUENCES) | BIT(SH_E_TOKENS) | BIT(SH_E_NLL) | BIT(SH_E_NLL_STDERR) |
             BIT(SH_E_PPL_STDERR) | BIT(SH_E_KL_STDERR) | BIT(SH_E_BUDGET_TOKENS) | BIT(SH_E_PEAK_TOKENS));

/* Only the number of sequences is stored: the others follow from it. */
static const struct sh_metric bound[SH_N_BOUND_METRIC] = {
    [SH_B_INCREASE] = {"ppl_increase", "ppl up by", 4, ANYTHING},
    [SH_B_BOUND] = {"ppl_increase_bound", "95 % bound", 4, ANYTHING},
    [SH_B_SEQUENCES] = {"error_sequences", "sequences", 0, COUNT}};
METRICS(sh_eval_bound_metrics, bound);

static const struct sh_metric answer[SH_N_ANSWER_METRIC] = {
    [SH_A_ANSWERS] = {"answers", "answers", 0, COUNT}, [SH_A_EXACT] = {"answer_exact", "exact", 4, SHARE},
    [SH_A_EXACT_STDERR] = {"answer_exact_stderr", "+-", 4, SHARE},
    [SH_A_NLL] = {"answer_nll", "answers' nll", 4, NOT_NEGATIVE},
    [SH_A_NLL_STDERR] = {"answer_nll_stderr", "+-", 4, NOT_NEGATIVE},
    [SH_A_PPL] = {"answer_ppl", "their ppl", 4, FROM_1},
    [SH_A_PPL_STDERR] = {"answer_ppl_stderr", "+-", 4, NOT_NEGATIVE},
    [SH_A_CHANGE] = {"answer_nll_change", "change", 4, FINITE},
    [SH_A_CHANGE_STDERR] = {"answer_nll_change_stderr", "+-", 4, NOT_NEGATIVE}};
METRICS_WITH(sh_eval_answer_metrics, answer, BIT(SH_A_ANSWERS) | BIT(SH_A_NLL) | BIT(SH_A_NLL_STDERR) |
             BIT(SH_A_PPL_STDERR) | BIT(SH_A_CHANGE) | BIT(SH_A_CHANGE_STDERR));

static const struct sh_metric part[SH_N_PART_METRIC] = {
    [SH_P_TOKENS] = {"tokens", "tokens", 0, COUNT}, [SH_P_NLL] = {"nll", "nll", 4, NOT_NEGATIVE},
    [SH_P_NLL_STDERR] = {"nll_stderr", "+-", 4, NOT_NEGATIVE}, [SH_P_CHANGE] = {"nll_change", "change", 4, FINITE},
    [SH_P_CHANGE_STDERR] = {"nll_change_stderr", "+-", 4, NOT_NEGATIVE},
    [SH_P_ANSWERS] = {"answers", "answers", 0, COUNT}, [SH_P_EXACT] = {"answer_exact", "exact", 4, SHARE}};
METRICS(sh_eval_distance_metrics, part);
const struct sh_metrics sh_eval_part_metrics = {.metric = part, .n = SH_P_ANSWERS};

static const struct sh_setting eval_setting[] = {
    POLICY, CACHE, WHOLE("prefill"), WHOLE("prefill_block"), HASH("model"), HASH("texts"), TEXT("dtype"),
    WHOLE("weight_bits"), UNSIGNED("seed"), CHANGED, HASH("answers"), HASH("plan"), {NULL, 0}};

static const struct sh_metric task[SH_N_TASK_METRIC] = {
    [SH_T_ITEMS] = {"items", "items", 0, COUNT_FROM_1}, [SH_T_ACC] = {"acc", "acc", 4, SHARE},
    [SH_T_STDERR] = {"stderr", "+-", 4, SHARE}, [SH_T_ACC_NORM] = {"acc_norm", "acc_norm", 4, SHARE},
    [SH_T_ACC_NORM_STDERR] = {"acc_norm_stderr", "+-", 4, SHARE}, [SH_T_PPL] = {"ppl", "ppl", 4, FROM_1},
    [SH_T_SAME] = {"same_choice", "same choice", 4, SHARE},
    [SH_T_CHANGE] = {"loglikelihood_change", "change", 4, NOT_NEGATIVE},
    [SH_T_BUDGET_TOKENS] = {"budget_tokens", "slots", 1, COUNT}, [SH_T_KV_BYTES] = {"kv_bytes", "bytes", 0, BYTES},
    [SH_T_RATE] = {"tokens_per_s", "tokens/s", 1, NOT_NEGATIVE}};
METRICS_WITH(sh_task_metrics, task, BIT(SH_T_ITEMS) | BIT(SH_T_ACC_NORM_STDERR) | BIT(SH_T_BUDGET_TOKENS));

static const struct sh_setting task_setting[] = {
    TEXT("task"), WHOLE("shots"), POLICY, CACHE, WHOLE("prefill"), HASH("model"), HASH("items"), TEXT("dtype"),
    WHOLE("weight_bits"), UNSIGNED("seed"), CHANGED, {NULL, 0}};

static const struct sh_metric drift[SH_N_DRIFT_METRIC] = {
    [SH_D_JACCARD] = {"jaccard", "Jaccard", 4, SHARE}, [SH_D_LEAST] = {"least_jaccard", "least", 4, SHARE},
    [SH_D_SAME_FIRST] = {"same_first_eviction", "same first eviction", 4, SHARE},
    [SH_D_FIRST_DIFFERENCE] = {"first_difference", "first difference", 0, ANYTHING}};
METRICS(sh_drift_metrics, drift);

/* "score_change@pairs:left" is what left, "score_change@mass:0.1" the share that begins at a change of 0.1. */
static const struct sh_metric drift_part[] = {
    {"jaccard_step_", "Jaccard", 4, SHARE}, {"score_change", "score change", 4, SHARE}};
static METRICS(drift_part_metrics, drift_part);

static const struct sh_setting drift_setting[] = {
    POLICY, TEXT("rows"), WHOLE("prefill"), WHOLE("kv_bits"), WHOLE("group"), TEXT("dtype"), WHOLE("weight_bits"),
    WHOLE("run"), WHOLE("count"), WHOLE("every"), UNSIGNED("seed"), {NULL, 0}};

#define FOUR(name, what) \
    {name ".p50", what " p50", 4, ANYTHING}, {name ".p90", what " p90", 4, ANYTHING}, \
    {name ".p99", what " p99", 4, ANYTHING}, {name ".mean", what, 4, ANYTHING}

static const struct sh_metric simulate[] = {
    {"rate_requests_per_s", "requests/s", 3, ANYTHING}, {"requests", "requests", 0, COUNT_FROM_1},
    {"finished", "finished", 0, ANYTHING}, {"refused", "refused", 0, ANYTHING}, {"skipped", "left out", 0, ANYTHING},
    {"throughput_tokens_per_s", "tokens/s", 1, NOT_NEGATIVE}, {"goodput_requests_per_s", "good/s", 3, ANYTHING},
    {"good_share", "good", 4, SHARE}, FOUR("ttft_s", "TTFT"), FOUR("tpot_s", "TPOT"), FOUR("latency_s", "latency"),
    FOUR("queue_s", "queue"), {"preemptions", "preemptions", 0, ANYTHING},
    {"kv_occupancy_mean", "KV in use", 4, SHARE_OF_SUMS}, {"kv_occupancy_peak", "peak", 4, SHARE_OF_SUMS},
    {"running_mean", "running", 2, ANYTHING}, {"largest_batch", "largest batch", 0, ANYTHING},
    {"steps", "steps", 0, ANYTHING}, {"seconds", "seconds", 2, ANYTHING}, {"busy_share", "busy", 4, SHARE_OF_SUMS},
    {"tokens_in", "tokens in", 0, ANYTHING}, {"tokens_out", "tokens out", 0, ANYTHING},
    {"tokens_recomputed", "recomputed", 0, ANYTHING}, {"max_rate_requests_per_s", "max. rate", 3, ANYTHING},
    {"max_speed", "max. speed", 3, ANYTHING}, {"max_is_open", "no limit", 0, ANYTHING}};
_Static_assert(sizeof simulate / sizeof *simulate == SH_N_SIM_METRIC, "a name for each figure");
METRICS(sh_simulate_metrics, simulate);

static const struct sh_metric simulate_prefix[SH_N_SIM_PREFIX] = {
    [SH_SP_SHARE] = {"prefix_hit_share", "reused", 4, SHARE}, [SH_SP_TOKENS] = {"tokens_reused", "reused", 0, COUNT},
    [SH_SP_ASKED] = {"prefix_blocks", "blocks", 0, COUNT}, [SH_SP_HIT] = {"prefix_hit_blocks", "hits", 0, COUNT},
    [SH_SP_HIT_HOST] = {"prefix_hit_blocks_host", "of the host", 0, COUNT},
    [SH_SP_HIT_DISK] = {"prefix_hit_blocks_disk", "of the disk", 0, COUNT},
    [SH_SP_ROOM] = {"prefix_cache_blocks", "room", 0, COUNT}};
METRICS_WITH(sh_simulate_prefix_metrics, simulate_prefix, ~(1u << SH_SP_SHARE | 1u << SH_SP_HIT));

/* What a name, a file or a row of a catalogue stands for is in "costs" and "requests_hash". Sorted. */
static const struct sh_setting simulate_setting[] = {
    TEXT("allocator"), REAL("bandwidth"), WHOLE("block"), TEXT("calibrate"), HASH("costs"), REAL("disk_bandwidth"),
    REAL("disk_cache_bytes"), TEXT("efficiency"), TEXT("engine"), WHOLE("ep"), TEXT("evict"), TEXT("evidence"),
    REAL("flops"), REAL("goal"), TEXT("gpu"), TEXT("gpus"), WHOLE("headroom"), REAL("host_bandwidth"),
    REAL("host_cache_bytes"), TEXT("kv"),
    BOOL("link"), BOOL("max_rate"), WHOLE("max_seqs"), REAL("memory_bytes"), TEXT("model"), TEXT("models"),
    TEXT("output"), REAL("overhead_bytes"), WHOLE("page"), TEXT("plan"), TEXT("prefix_cache"), WHOLE("prefix_tokens"),
    WHOLE("prefixes"), TEXT("prompt"), WHOLE("replicas"), WHOLE("requests"), HASH("requests_hash"), REAL("reserve"),
    TEXT("router"), WHOLE("seed"), REAL("slo_tpot_s"), REAL("slo_ttft_s"), REAL("speed"),
    WHOLE("state"), REAL("step_overhead_s"), WHOLE("step_tokens"), WHOLE("tp"), REAL("util"), TEXT("weights"),
    TEXT("weights_attention"), TEXT("windows"), TEXT("workload"), {NULL, 0}};

/* Keys name units: scores as x = score * number of keys the row sees ("rows"), natural logarithms ("nats"). */
static const struct sh_metric theory[SH_N_THEORY_FIGURE] = {
    [SH_T_VALUES] = {"values", "scores", 0, ANYTHING}, [SH_T_ZEROS] = {"zero_share", "zeros", 3, ANYTHING},
    [SH_T_SHARE] = {"sample_share", "sampled", 3, ANYTHING}, [SH_T_LARGEST] = {"largest_x", "largest x", 1, ANYTHING},
    [SH_T_XMIN] = {"xmin_x", "xmin", 3, ANYTHING}, [SH_T_EXPONENT] = {"exponent", "exponent", 3, ANYTHING},
    [SH_T_SIGMA] = {"exponent_sigma", "+-", 3, ANYTHING}, [SH_T_TAIL] = {"tail_values", "in tail", 0, ANYTHING},
    [SH_T_KS] = {"ks_distance", "KS", 4, ANYTHING}, [SH_T_P] = {"p_value", "p", 2, ANYTHING},
    [SH_T_EXPONENTIAL] = {"exponential_log_ratio_nats", "- expon.", 1, ANYTHING},
    [SH_T_EXPONENTIAL_P] = {"exponential_p", "p", 3, ANYTHING},
    [SH_T_LOGNORMAL] = {"lognormal_log_ratio_nats", "- lognorm.", 1, ANYTHING},
    [SH_T_LOGNORMAL_P] = {"lognormal_p", "p", 3, ANYTHING}, [SH_T_LOMAX_K] = {"lomax_k", "Lomax k", 3, ANYTHING},
    [SH_T_LOMAX_B] = {"lomax_b_x", "b", 3, ANYTHING}};
METRICS(sh_theory_metrics, theory);

static const struct sh_metric theory_at[SH_N_THEORY_AT] = {
    [SH_TA_BUDGET] = {"kept_share", "B / n", 4, ANYTHING}, [SH_TA_DROPPED] = {"dropped_mass", "dropped", 4, ANYTHING},
    [SH_TA_LAW] = {"law_dropped_mass", "D(rho)", 4, ANYTHING},
    [SH_TA_LAW_CUT] = {"law_cut_dropped_mass", "D, cut", 4, ANYTHING},
    [SH_TA_TWICE] = {"twice_law_cut", "2 D, cut", 4, ANYTHING},
    [SH_TA_PRINTED] = {"theorem_41_bound", "Thm. 4.1", 4, ANYTHING},
    [SH_TA_INFORMATIVE] = {"theorem_41_informative_share", "informative", 3, ANYTHING},
    [SH_TA_FAILURE] = {"theorem_41_failure_probability", "may fail", 3, ANYTHING},
    [SH_TA_ERROR] = {"output_error", "error", 4, ANYTHING},
    [SH_TA_ERROR_BOUND] = {"output_error_bound", "its bound", 4, ANYTHING}};
METRICS(sh_theory_at_metrics, theory_at);

static const struct sh_setting theory_setting[] = {
    REAL_17("split"), REAL_17("epsilon"), WHOLE("replicas"), UNSIGNED("seed"), WHOLE("run"), WHOLE("sequences"),
    WHOLE("tokens"), {NULL, 0}};

static const struct sh_metric persistence[SH_N_PERSISTENCE_METRIC] = {
    [SH_PM_RATIO] = {"ratio", "ratio", 4, ANYTHING}, [SH_PM_DENSITY] = {"density", "density", 4, ANYTHING},
    [SH_PM_LIFT] = {"lift", "lift", 3, ANYTHING}, [SH_PM_RELATIVE_RISK] = {"relative_risk", "rel. risk", 3, ANYTHING},
    [SH_PM_PHI] = {"phi", "phi", 3, ANYTHING}, [SH_PM_AUC] = {"auc", "AUC", 3, ANYTHING},
    [SH_PM_ENTROPY] = {"entropy_nats", "entropy", 3, ANYTHING},
    [SH_PM_MASS_TOP] = {"mass_top20pct", "mass of 20 %", 4, ANYTHING}};
METRICS(sh_persistence_metrics, persistence);

static const struct sh_setting persistence_setting[] = {
    TEXT("alpha"), WHOLE("recent"), REAL_17("split"), WHOLE("window"), WHOLE("run"), {NULL, 0}};

static const struct sh_metric repetition[SH_N_REPETITION_METRIC] = {
    [SH_REP_4] = {"rep_4", "rep-4", 4, ANYTHING}, [SH_REP_DISTINCT_1] = {"distinct_1", "distinct-1", 4, ANYTHING},
    [SH_REP_DISTINCT_2] = {"distinct_2", "distinct-2", 4, ANYTHING},
    [SH_REP_LONGEST] = {"longest_repeat_tokens", "longest repeat", 1, ANYTHING},
    [SH_REP_LIKENESS] = {"row_likeness", "rows alike", 4, ANYTHING},
    [SH_REP_CHANCE] = {"row_likeness_chance", "by chance", 4, ANYTHING}};
METRICS(sh_repetition_metrics, repetition);

static const struct sh_metric repetition_all[] = {
    {"ppl", "ppl of the texts", 4, FROM_1}, {"correlation", "correlation", 3, ANYTHING}};
static METRICS(repetition_all_metrics, repetition_all);

/* Sorted. */
static const struct sh_setting repetition_setting[] = {
    WHOLE("activation_bits"), TEXT("budget"), TEXT("condition"), TEXT("knobs"), WHOLE("kv_bits"), WHOLE("length"),
    TEXT("model"), WHOLE("n_texts"), TEXT("policy"), WHOLE("prefill"), WHOLE("prompt_tokens"), WHOLE("seed"),
    REAL("temperature"), TEXT("texts"), WHOLE("tokens_written"), WHOLE("top_k"), REAL("top_p"),
    WHOLE("weight_bits"), REAL("weight_prune"), {NULL, 0}};

/* Sums over each text, which follows as its number. */
static const struct sh_metric plan[] = {
    {"tokens_", "tokens", 0, COUNT}, {"rows_", "rows", 0, COUNT}, {"nll_", "nll", 4, NOT_NEGATIVE},
    {"change_", "change", 4, FINITE}, {"kl_", "kl", 4, FINITE}, {"answers_", "answers", 0, COUNT},
    {"right_", "exact", 0, COUNT}, {"full_right_", "full cache's", 0, COUNT}};
static METRICS(plan_metrics, plan);

static const struct sh_setting plan_setting[] = {
    TEXT("policy"), TEXT("knobs"), HASH("budgets"), WHOLE("n_token"), WHOLE("kv_bits"), WHOLE("group"),
    WHOLE("prefill"), HASH("model"), HASH("texts"), TEXT("dtype"), WHOLE("weight_bits"), UNSIGNED("seed"),
    WHOLE("activation_bits"), REAL_6("weight_prune"), {NULL, 0}};

static const struct sh_metric judged[SH_N_JUDGED_METRIC] = {
    [SH_J_SEQUENCES] = {"sequences", "sequences", 0, COUNT_FROM_1}, [SH_J_TOKENS] = {"tokens", "tokens", 0, COUNT},
    [SH_J_INCREASE] = {"ppl_increase", "ppl up by", 4, -1, DBL_MAX},
    [SH_J_BOUND] = {"ppl_increase_bound", "at most", 4, -1, DBL_MAX},
    [SH_J_KL] = {"kl", "kl", 4, FINITE}, [SH_J_KL_BOUND] = {"kl_bound", "at most", 4, FINITE}};
METRICS(sh_judged_metrics, judged);

static const struct sh_setting judged_setting[] = {
    POLICY, TEXT("allocator"), WHOLE("kv_bits"), WHOLE("group"), WHOLE("prefill"), HASH("model"), HASH("texts"),
    TEXT("dtype"), WHOLE("weight_bits"), WHOLE("activation_bits"), UNSIGNED("seed"), REAL_6("weight_prune"),
    REAL_6("confidence"), HASH("plan"),
    {NULL, 0}};

const struct sh_result_kind sh_result_kinds[] = {
    {"replay", 1, replay_setting, {&sh_replay_metrics}},
    {"eval", 1, eval_setting, {&sh_eval_metrics, &sh_eval_answer_metrics,      /* parts have figures of both */
                               &sh_eval_bound_metrics}},
    {"task", 0, task_setting, {&sh_task_metrics}},
    {"drift", 0, drift_setting, {&sh_drift_metrics, &drift_part_metrics}},
    {"simulate", 1, simulate_setting, {&sh_simulate_metrics, &sh_simulate_prefix_metrics}},
    {"theory", 0, theory_setting, {&sh_theory_metrics, &sh_theory_at_metrics}},
    {"persistence", 0, persistence_setting, {&sh_persistence_metrics}},
    {"repetition", 0, repetition_setting, {&sh_repetition_metrics, &repetition_all_metrics}},
    {"plan", 0, plan_setting, {&plan_metrics}},
    {"judged", 0, judged_setting, {&sh_judged_metrics}},
    {NULL, 0, NULL, {NULL}}};
