/* SPDX-License-Identifier: Apache-2.0 */
/* Report: coarser weights together with a smaller cache: whether their costs add up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/report/report_results.h"

static int is_of_same_weights(const struct sh_result_row *a, const struct sh_result_row *b)
{
    char *x = sh_result_weights(a), *y = sh_result_weights(b);
    int same = !strcmp(x, y);
    free(x);
    free(y);
    return same;
}

/* Same store, texts and cache format; of the same policy and budget, or of the full cache. */
static const struct sh_result_row *find(const struct sh_results *all, const struct sh_result_row *like, int whole,
                                        int full)
{
    static const char *const same[] = {"texts", "answers", "dtype", "policy", "knobs", "plan"};
    size_t n = full ? 3 : sizeof same / sizeof *same;
    for (int i = 0; i < all->n; i++) {
        const struct sh_result_row *o = &all->row[i];
        int agree = o->store == like->store && sh_result_int(o, "prefill") == sh_result_int(like, "prefill") &&
                    sh_result_int(o, "kv_bits") == sh_result_int(like, "kv_bits") &&
                    (whole ? sh_result_is_of_model(o) : is_of_same_weights(o, like));
        agree = agree && (full ? !strcmp(sh_result_text(o, "policy"), "full")
                               : !strcmp(sh_result_budget(o), sh_result_budget(like)));
        for (size_t k = 0; k < n && agree; k++)
            agree = !strcmp(sh_result_text(o, same[k]), sh_result_text(like, same[k]));
        if (agree)
            return o;
    }
    return NULL;
}

static double of(const struct sh_result_row *row, const char *metric)
{
    return row ? sh_result(row, metric, -1) : (double)NAN;
}

static int is_compared(const struct sh_report_at *at)
{
    return !sh_result_is_of_model(at->row) && strcmp(sh_result_text(at->row, "policy"), "full");
}

/* Changes of the mean negative log-likelihood against whole weights and cache, nats. */
static double by_weights(const struct sh_report_at *at)
{
    return of(find(at->all, at->row, 0, 1), "nll") - of(find(at->all, at->row, 1, 1), "nll");
}

static double by_cache(const struct sh_report_at *at)
{
    return of(find(at->all, at->row, 1, 0), "nll_change");
}

static double together(const struct sh_report_at *at)
{
    return of(at->row, "nll") - of(find(at->all, at->row, 1, 1), "nll");
}

static double beyond(const struct sh_report_at *at)
{
    return together(at) - by_weights(at) - by_cache(at);
}

static double error(const struct sh_report_at *at)
{
    return of(at->row, "nll_change_stderr") + of(find(at->all, at->row, 1, 0), "nll_change_stderr");
}

static const struct sh_report_column columns[] = {
    SH_COL_WEIGHTS, SH_COL_POLICY, SH_COL_BUDGET, SH_COL_METRIC("ppl", "perplexity", 3),
    SH_COL_VALUE("by_weights", "weights alone", 4, by_weights),
    SH_COL_VALUE("by_cache", "cache alone", 4, by_cache),
    SH_COL_VALUE("together", "both", 4, together),
    SH_COL_VALUE("beyond", "beyond the sum", 4, beyond),
    SH_COL_VALUE("beyond_stderr", "± at most", 4, error), SH_COL_END};

static const struct sh_report_table table = {
    .key = "weights", .title = "change of the mean negative log-likelihood relative to the weights as stored and the "
                               "full cache, nats",
    .column = columns, .is_shown = is_compared};

const struct sh_report_part sh_report_weights = {
    .name = "weights", .title = "Pruned or quantised weights and a smaller cache", .command = "eval", .table = &table,
    .missing = "evaluations of a smaller cache with pruned (--weight-prune) or quantised (--weight-bits) weights. They "
               "are compared with the same evaluations with the original weights.",
    .fill = "eval --model MODEL --text FILE --policy full scissorhands --budget 0.5 --weight-prune 0.5 --db STORE",
    .says = "Do the losses add up? The table shows the cost of pruned or quantised weights with the full cache, the "
            "cost of the smaller cache with the weights as stored, and the cost of both together. The column “beyond "
            "the sum” shows how much more the smaller cache costs with these weights than with the stored ones: 0, "
            "within the errors, where the losses add up. Pruning and bits apply to the weights as the checkpoint "
            "stores them; if it stores them quantised, they come on top of that. The error is at "
            "most the sum of the errors of the two changes."};
