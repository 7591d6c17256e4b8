/* SPDX-License-Identifier: Apache-2.0 */
/* Report: what fewer bits per cached number cost, alone and together with a budget. */
#include <math.h>
#include <string.h>

#include "src/report/report_results.h"

/* What of the change the bits alone cost: less the change of the same texts, policy and budget in whole numbers. */
static double of_bits(const struct sh_report_at *at)
{
    static const char *const same[] = {"policy", "knobs", "model", "texts", "dtype"};
    const struct sh_result_row *row = at->row;
    for (int i = 0; i < at->all->n; i++) {
        const struct sh_result_row *o = &at->all->row[i];
        int agree = sh_result_int(o, "kv_bits") >= 16 && !strcmp(sh_result_budget(o), sh_result_budget(row)) &&
                    sh_result_int(o, "prefill") == sh_result_int(row, "prefill") &&
                    sh_result_int(o, "weight_bits") == sh_result_int(row, "weight_bits") &&
                    sh_result_int(o, "activation_bits") == sh_result_int(row, "activation_bits");
        for (size_t k = 0; k < sizeof same / sizeof *same && agree; k++)
            agree = !strcmp(sh_result_text(o, same[k]), sh_result_text(row, same[k]));
        if (agree)
            return sh_result(row, "nll_change", -1) - sh_result(o, "nll_change", -1);
    }
    return (double)NAN;
}

static int has_few_bits(const struct sh_report_at *at)
{
    return sh_result_int(at->row, "kv_bits") < 16;
}

static const struct sh_report_column columns[] = {
    SH_COL_POLICY, SH_COL_BUDGET, SH_COL_SETTING(INT, "kv_bits", "KV bits"),
    SH_COL_SETTING(INT, "group", "group size"), SH_COL_METRIC("ppl", "perplexity", 3),
    SH_COL_METRIC("nll_change", "nll change, nats", 5), SH_COL_METRIC("nll_change_stderr", "±", 5),
    SH_COL_VALUE("by_bits", "due to the bits", 5, of_bits), SH_COL_METRIC("kl", "KL, nats", 5),
    SH_COL_METRIC("kv_bytes", "KV bytes", 0), SH_COL_END};

static const struct sh_report_table table = {
    .key = "bits", .title = "keys and values in fewer bits; the numbers of a group share one scale", .column = columns,
    .is_shown = has_few_bits};

const struct sh_report_part sh_report_quantisation = {
    .name = "quantisation", .title = "Quantised keys and values", .command = "eval", .table = &table,
    .figure = &sh_figure_quant,
    .missing = "the cost of 8 or 4 bits per number: every evaluation so far kept keys and values in full precision.",
    .fill = "eval --model MODEL --text FILE --policy full h2o:recent=10 --budget 0.2 --kv-bits 4 --db STORE",
    .says = "Changes are relative to the full cache in f32 on the same tokens. The column “due to the bits” "
            "is the cost of quantisation alone: the change minus the change that the same policy and budget cause in "
            "f32, where that was measured."};
