/* SPDX-License-Identifier: Apache-2.0 */
/* Report: what fewer bits a number of the cache cost, alone and together with a budget. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/report/report_results.h"

/* Same texts, policy and budget, whole numbers: what the loss of bits alone is measured from. */
static double unquantised(const struct sh_results *all, const struct sh_result_row *row)
{
    static const char *const same[] = {"policy", "knobs", "model", "texts", "dtype"};
    for (int i = 0; i < all->n; i++) {
        const struct sh_result_row *o = &all->row[i];
        int agree = sh_result_int(o, "kv_bits") >= 16 && !strcmp(sh_result_budget(o), sh_result_budget(row)) &&
                    sh_result_int(o, "prefill") == sh_result_int(row, "prefill") &&
                    sh_result_int(o, "weight_bits") == sh_result_int(row, "weight_bits");
        for (size_t k = 0; k < sizeof same / sizeof *same && agree; k++)
            agree = !strcmp(sh_result_text(o, same[k]), sh_result_text(row, same[k]));
        if (agree)
            return sh_result(o, "nll_change", -1);
    }
    return (double)NAN;
}

static int write(struct sh_report *r, struct sh_err *e)
{
    struct sh_results eval;
    int n = 0, bad = 0;
    if (sh_results_read(r, "eval", &eval, e))
        return -1;
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "bits", "keys and values in few bits; the numbers of a group share a scale");
    for (int i = 0; i < eval.n; i++) {
        const struct sh_result_row *row = &eval.row[i];
        if (sh_result_int(row, "kv_bits") >= 16)
            continue;
        char *policy = sh_result_policy(row);
        double change = sh_result(row, "nll_change", -1), without = unquantised(&eval, row);
        n++;
        sh_out_item(o);
        if (sh_results_mixed(&eval))
            sh_out_text(o, "store", "store", r->store[row->store].path);
        sh_out_text(o, "policy", "policy", policy);
        sh_out_text(o, "budget", "budget", sh_result_budget(row));
        sh_out_int(o, "kv_bits", "KV bits", sh_result_int(row, "kv_bits"));
        sh_out_int(o, "group", "numbers in a group", sh_result_int(row, "group"));
        sh_out_real(o, "ppl", "perplexity", sh_result(row, "ppl", -1), 3);
        sh_out_real(o, "nll_change", "nll change, nats", change, 5);
        sh_out_real(o, "nll_change_stderr", "±", sh_result(row, "nll_change_stderr", -1), 5);
        sh_out_real(o, "by_bits", "of it by the bits", change - without, 5);
        sh_out_real(o, "kl", "KL, nats", sh_result(row, "kl", -1), 5);
        sh_out_real(o, "kv_bytes", "KV bytes", sh_result(row, "kv_bytes", -1), 0);
        free(policy);
    }
    sh_out_end(o);
    if (n) {
        sh_report_say(r, "Changes are against the whole cache in f32 on the same tokens. What the bits alone "
                         "cost is that "
                      "less the change of the same policy and budget in f32, where it was measured.");
        sh_report_table(r, NULL, o);
        bad = sh_results_figure(r, &eval, "quant", e);
    } else {
        char *line = xasprintf("eval --model %s --text FILE --policy full h2o:recent=10 --budget 0.2 --kv-bits "
                               "4 --db %s",
                               r->model ? r->model : "DIR", r->store[0].path);
        sh_out_free(o);
        sh_report_missing(r, line, "what 8 or 4 bits a number cost: every reading kept keys and values whole.");
        free(line);
    }
    sh_results_free(&eval);
    return bad;
}

const struct sh_report_part sh_report_quantisation = {"quantisation", "Fewer bits", write};
