/* SPDX-License-Identifier: Apache-2.0 */
/* Report: coarser weights together with a smaller cache: whether what both cost is the sum of what each costs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/report/report_results.h"

static int is_whole(const struct sh_result_row *row)
{
    return sh_result_int(row, "weight_bits") >= 16 && !json_object_get(row->settings, "weight_prune");
}

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
                    (whole ? is_whole(o) : is_of_same_weights(o, like));
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

static int is_compared(const struct sh_result_row *row)
{
    return !is_whole(row) && strcmp(sh_result_text(row, "policy"), "full");
}

static void table(struct sh_report *r, const struct sh_results *all)
{
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "weights", "change of the mean negative log-likelihood against whole weights and cache, nats");
    for (int i = 0; i < all->n; i++) {
        const struct sh_result_row *row = &all->row[i], *full, *whole, *whole_full;
        if (!is_compared(row))
            continue;
        full = find(all, row, 0, 1);
        whole = find(all, row, 1, 0);
        whole_full = find(all, row, 1, 1);
        double weights = of(full, "nll") - of(whole_full, "nll"), cache = of(whole, "nll_change"),
               both = of(row, "nll") - of(whole_full, "nll"), a = of(row, "nll_change_stderr"),
               b = of(whole, "nll_change_stderr");
        char *name = sh_result_weights(row), *policy = sh_result_policy(row);
        sh_out_item(o);
        if (sh_results_mixed(all))
            sh_out_text(o, "store", "store", r->store[row->store].path);
        sh_out_text(o, "weights", "weights", name);
        sh_out_text(o, "policy", "policy", policy);
        sh_out_text(o, "budget", "budget", sh_result_budget(row));
        sh_out_real(o, "ppl", "perplexity", of(row, "ppl"), 3);
        sh_out_real(o, "by_weights", "weights alone", weights, 4);
        sh_out_real(o, "by_cache", "cache alone", cache, 4);
        sh_out_real(o, "together", "both", both, 4);
        sh_out_real(o, "beyond", "beyond the sum", both - weights - cache, 4);
        sh_out_real(o, "beyond_stderr", "±, at most", a + b, 4);
        free(name);
        free(policy);
    }
    sh_out_end(o);
    sh_report_table(r, NULL, o);
}

static int write(struct sh_report *r, struct sh_err *e)
{
    struct sh_results all;
    int n = 0;
    if (sh_results_read(r, "eval", &all, e))
        return -1;
    for (int i = 0; i < all.n; i++)
        n += is_compared(&all.row[i]);
    if (n) {
        sh_report_say(r, "Do losses add? What pruned or coded weights cost with the whole cache, what the smaller "
                      "cache costs the whole weights, and what both cost together. Beyond the sum is what the cache "
                      "costs these weights more than the whole ones: 0 where losses add, as far as the errors allow "
                      "to say (the two changes' added up).");
        table(r, &all);
    } else {
        char *line = xasprintf("eval --model %s --text FILE --policy full scissorhands --budget 0.5 --weight-prune 0.5 "
                               "--db %s", r->model ? r->model : "DIR", r->store[0].path);
        sh_report_missing(r, line, "compression together with pruned (--weight-prune) or coded (--weight-bits) "
                          "weights; the same reading with whole weights is what they are held against.");
        free(line);
    }
    sh_results_free(&all);
    return 0;
}

const struct sh_report_part sh_report_weights = {"weights", "Coarser weights and a smaller cache", write};
