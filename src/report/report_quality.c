/* SPDX-License-Identifier: Apache-2.0 */
/* Report: what budgets cost the model that runs under them, next to what the replay of its trace says. */
#include <math.h>
#include <string.h>

#include "src/app/store/measured.h"
#include "src/engine/eval_sums.h"
#include "src/report/report_results.h"

/* The replay of the same policy under the same budget on a trace of the same model and texts, or NULL. */
static const struct sh_result_row *predicted(const struct sh_results *replay, const struct sh_result_row *row)
{
    static const char *const same[] = {"policy", "knobs", "model"};
    if (!sh_result_is_of_model(row))    /* the trace is */
        return NULL;
    for (int i = 0; i < replay->n; i++) {
        int agree = sh_measured_same(&replay->row[i].on, &row->on) &&
                    !strcmp(sh_result_budget(&replay->row[i]), sh_result_budget(row)) &&
                    sh_result_int(&replay->row[i], "prefill") == sh_result_int(row, "prefill") &&
                    !strcmp(sh_result_text(&replay->row[i], "allocator"), "uniform") &&
                    !strcmp(sh_result_text(&replay->row[i], "rows"), "renormalised");
        for (size_t k = 0; k < sizeof same / sizeof *same && agree; k++)
            agree = !strcmp(sh_result_text(&replay->row[i], same[k]), sh_result_text(row, same[k]));
        if (agree)
            return &replay->row[i];
    }
    return NULL;
}

/* The cells of the replay: at->more are its results. */
static double of_replay(const struct sh_report_at *at, const char *metric)
{
    const struct sh_result_row *p = predicted(at->more, at->row);
    return p ? sh_result(p, metric, -1) : (double)NAN;
}

static double kept_mass(const struct sh_report_at *at)
{
    return of_replay(at, "kept_mass");
}

static double pivotal(const struct sh_report_at *at)
{
    return of_replay(at, "pivotal_recall");
}

static double output_error(const struct sh_report_at *at)
{
    return of_replay(at, "output_error");
}

static const char *link(const struct sh_report_at *at)
{
    return predicted(at->more, at->row) ? "#fig-budget-curve" : NULL;
}

static struct sh_eval_mean change(const struct sh_report_at *at)
{
    return (struct sh_eval_mean){sh_result(at->row, "nll_change", -1), sh_result(at->row, "nll_change_stderr", -1)};
}

static double increase(const struct sh_report_at *at)
{
    return 100 * expm1(change(at).value);
}

/* Over sequences if the errors are, else over tokens. */
static double bound(const struct sh_report_at *at)
{
    double sequences = sh_result(at->row, "error_sequences", -1), tokens = sh_result(at->row, "tokens", -1);
    return 100 * sh_eval_increase_bound(change(at), (long long)(sequences > 0 ? sequences : tokens));
}

static const struct sh_report_column eval_columns[] = {
    SH_COL_POLICY, SH_COL_BUDGET, SH_COL_VALUE("ppl_increase", "perplexity up by, %", 2, increase),
    SH_COL_VALUE("ppl_increase_bound", "95 % bound, %", 2, bound),
    SH_COL_SETTING(INT, "kv_bits", "bits of keys and values"), SH_COL_WEIGHTS, SH_COL_ON,
    SH_COL_METRIC("tokens", "predicted tokens", 0), SH_COL_METRIC("error_sequences", "sequences", 0),
    SH_COL_METRIC("ppl", "perplexity", 3),
    SH_COL_METRIC("ppl_stderr", "±", 3), SH_COL_METRIC("nll_change", "nll change, nats", 4),
    SH_COL_METRIC("nll_change_stderr", "±", 4), SH_COL_METRIC("kl", "KL, nats", 4),
    SH_COL_METRIC("top1_agreement", "same top token", 4), SH_COL_METRIC("kv_bytes", "KV bytes", 0),
    SH_COL_VALUE("kept_mass", "replay: kept mass", 4, kept_mass),
    SH_COL_VALUE("pivotal_recall", "pivotal kept", 4, pivotal),
    SH_COL_VALUE("output_error", "output error", 4, output_error), SH_COL_END};

static const struct sh_report_column task_columns[] = {
    SH_COL_SETTING(TEXT, "task", "task"), SH_COL_POLICY, SH_COL_BUDGET, SH_COL_METRIC("acc", "accuracy", 4),
    SH_COL_METRIC("stderr", "±", 4), SH_COL_SETTING(INT, "kv_bits", "bits of keys and values"), SH_COL_WEIGHTS,
    SH_COL_ON, SH_COL_METRIC("items", "items", 0), SH_COL_METRIC("acc_norm", "normalised", 4), SH_COL_END};

static const struct sh_report_table tasks = {.key = "tasks", .title = "few-shot tasks", .column = task_columns};

static int write(struct sh_report *r, struct sh_err *e)
{
    struct sh_results eval = {0}, task = {0}, replay = {0};
    int bad = sh_results_read(r, "eval", &eval, e) || sh_results_read(r, "task", &task, e) ||
              sh_results_read(r, "replay", &replay, e);
    if (!bad && !eval.n && !task.n) {
        sh_report_fill(r, "eval --model MODEL --text FILE --policy h2o:recent=10 scissorhands --budget 0.1,0.2,0.5 "
                       "--db STORE", "the cost of a budget in the model itself: no evaluation ran under a budget.");
    } else if (!bad) {
        sh_report_say(r, "The model itself reads the texts with a cache of the stated size (a share of each text, or "
                         "a number of tokens). The policies are the same as in the replay. The change of the mean "
                         "negative log-likelihood (nll) is relative to the full cache with the same weights and "
                         "tokens. KL is the divergence of the predictions from those with the full cache. Errors (±) "
                         "are standard errors over the sequences that the table counts; where it counts none, they "
                         "are over tokens as if these were independent, which makes them too small. The bound is the "
                         "increase that is not exceeded with 95 %% confidence on texts like these.");
        if (eval.n) {
            struct sh_report_table t = {.key = "eval", .title = "evaluated under a budget", .column = eval_columns,
                                        .link = link, .more = &replay};
            for (int i = 0; i < eval.n; i++)
                if (predicted(&replay, &eval.row[i]))
                    t.title = "evaluated under a budget, next to the replay of the same policy and budget";
            sh_report_rows(r, &eval, &t);
            bad = sh_results_figure(r, &eval, &sh_figure_compression, e);
        }
        if (task.n)
            sh_report_rows(r, &task, &tasks);
        bad = bad || sh_report_typed(r, "eval", e) || sh_report_typed(r, "task", e);
    }
    sh_results_free(&eval);
    sh_results_free(&task);
    sh_results_free(&replay);
    return bad ? -1 : 0;
}

const struct sh_report_part sh_report_quality = {
    .name = "quality", .title = "The model under a budget", .write = write};
