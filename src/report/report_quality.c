/* SPDX-License-Identifier: Apache-2.0 */
/* Report: what budgets cost the model that runs under them, beside what the replay of its trace says. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/report/report_results.h"

/* The replay of the same policy under the same budget on a trace of the same model; NULL: there is none. */
static const struct sh_result_row *predicted(const struct sh_results *replay, const struct sh_result_row *row)
{
    static const char *const same[] = {"policy", "knobs", "model"};
    if (sh_result_int(row, "weight_bits") < 16)         /* the trace is of whole weights */
        return NULL;
    for (int i = 0; i < replay->n; i++) {
        int agree = !strcmp(sh_result_budget(&replay->row[i]), sh_result_budget(row)) &&
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

static int has_coarse_weights(const struct sh_result_row *row)
{
    return sh_result_int(row, "weight_bits") < 16 || json_object_get(row->settings, "weight_prune");
}

static void live(struct sh_report *r, const struct sh_results *eval, const struct sh_results *replay)
{
    struct sh_out *o = sh_out_new();
    int n_predicted = 0, n_coarse = 0;
    for (int i = 0; i < eval->n; i++) {
        n_predicted += predicted(replay, &eval->row[i]) != NULL;
        n_coarse += has_coarse_weights(&eval->row[i]);
    }
    sh_out_list(o, "eval", n_predicted ? "read under a budget, and what the replay said of the same policy and budget"
                                       : "read under a budget");
    for (int i = 0; i < eval->n; i++) {
        const struct sh_result_row *row = &eval->row[i], *p = predicted(replay, row);
        char *policy = sh_result_policy(row), *weights = sh_result_weights(row);
        sh_out_item(o);
        if (p)
            sh_out_link(o, "#fig-budget-curve");
        if (sh_results_mixed(eval))
            sh_out_text(o, "store", "store", r->store[row->store].path);
        sh_out_text(o, "policy", "policy", policy);
        sh_out_text(o, "budget", "budget", sh_result_budget(row));
        sh_out_int(o, "kv_bits", "KV bits", sh_result_int(row, "kv_bits"));
        if (n_coarse)
            sh_out_text(o, "weights", "weights", weights);
        sh_out_real(o, "tokens", "tokens", sh_result(row, "tokens", -1), 0);
        sh_out_real(o, "ppl", "perplexity", sh_result(row, "ppl", -1), 3);
        sh_out_real(o, "ppl_stderr", "±", sh_result(row, "ppl_stderr", -1), 3);
        sh_out_real(o, "nll_change", "nll change, nats", sh_result(row, "nll_change", -1), 4);
        sh_out_real(o, "nll_change_stderr", "±", sh_result(row, "nll_change_stderr", -1), 4);
        sh_out_real(o, "kl", "KL, nats", sh_result(row, "kl", -1), 4);
        sh_out_real(o, "top1_agreement", "same top token", sh_result(row, "top1_agreement", -1), 4);
        sh_out_real(o, "kv_bytes", "KV bytes", sh_result(row, "kv_bytes", -1), 0);
        sh_out_real(o, "kept_mass", "replay: kept mass", p ? sh_result(p, "kept_mass", -1) : (double)NAN, 4);
        sh_out_real(o, "pivotal_recall", "pivotal kept", p ? sh_result(p, "pivotal_recall", -1) : (double)NAN, 4);
        sh_out_real(o, "output_error", "output error", p ? sh_result(p, "output_error", -1) : (double)NAN, 4);
        free(policy);
        free(weights);
    }
    sh_out_end(o);
    sh_report_table(r, NULL, o);
}

static void tasks(struct sh_report *r, const struct sh_results *task)
{
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "tasks", "few-shot tasks");
    for (int i = 0; i < task->n; i++) {
        const struct sh_result_row *row = &task->row[i];
        char *policy = sh_result_policy(row);
        sh_out_item(o);
        if (sh_results_mixed(task))
            sh_out_text(o, "store", "store", r->store[row->store].path);
        sh_out_text(o, "task", "task", sh_result_text(row, "task"));
        sh_out_text(o, "policy", "policy", policy);
        sh_out_text(o, "budget", "budget", sh_result_budget(row));
        sh_out_int(o, "kv_bits", "KV bits", sh_result_int(row, "kv_bits"));
        sh_out_real(o, "items", "items", sh_result(row, "items", -1), 0);
        sh_out_real(o, "acc", "accuracy", sh_result(row, "acc", -1), 4);
        sh_out_real(o, "stderr", "±", sh_result(row, "stderr", -1), 4);
        sh_out_real(o, "acc_norm", "normalised", sh_result(row, "acc_norm", -1), 4);
        free(policy);
    }
    sh_out_end(o);
    sh_report_table(r, NULL, o);
}

static int typed(struct sh_report *r, struct sh_err *e)
{
    for (int i = 0; i < r->n_store; i++)
        if (sh_report_typed(r, i, "eval", e) || sh_report_typed(r, i, "task", e))
            return -1;
    return 0;
}

static int write(struct sh_report *r, struct sh_err *e)
{
    struct sh_results eval = {0}, task = {0}, replay = {0};
    int bad = sh_results_read(r, "eval", &eval, e) || sh_results_read(r, "task", &task, e) ||
              sh_results_read(r, "replay", &replay, e);
    if (!bad && !eval.n && !task.n) {
        char *line = xasprintf("eval --model %s --text FILE --policy h2o:recent=10 scissorhands --budget "
                               "0.1,0.2,0.5 --db %s",
                               r->model ? r->model : "DIR", r->store[0].path);
        sh_report_missing(r, line, "what budgets cost the model itself: nothing was read under one.");
        free(line);
    } else if (!bad) {
        sh_report_say(r, "The model itself reads texts with a cache of the stated size (a share of each text, or so "
                      "many tokens), and the same policies that the replay ran choose what leaves it. The change of "
                      "the mean negative log-likelihood (nll) is against the whole cache on the same tokens; KL is the "
                      "divergence of the predictions from that cache's; errors (±) are standard errors over texts.");
        if (eval.n) {
            live(r, &eval, &replay);
            bad = sh_results_figure(r, &eval, "compression", e);
        }
        if (task.n)
            tasks(r, &task);
        bad = bad || typed(r, e);
    }
    sh_results_free(&eval);
    sh_results_free(&task);
    sh_results_free(&replay);
    return bad ? -1 : 0;
}

const struct sh_report_part sh_report_quality = {"quality", "The model under a budget", write};
