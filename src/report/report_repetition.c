/* SPDX-License-Identifier: Apache-2.0 */
/* Report: whether repeated attention goes with repeated text: what shears repetition --db left in the stores. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/report/report_results.h"

static void table(struct sh_report *r, const struct sh_results *all)
{
    static const struct { const char *metric, *label; int digits; } column[] = {
        {"ppl", "perplexity of the texts", 3}, {"rep_4", "rep-4", 4}, {"rep_4_stderr", "±", 4},
        {"distinct_2", "distinct-2", 4}, {"longest_repeat_tokens", "longest repeat", 1},
        {"row_likeness", "rows alike", 4}, {"row_likeness_stderr", "±", 4}, {"row_likeness_chance", "by chance", 4},
        {"correlation", "correlation", 3}};
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "repetition", "text written in three caches");
    for (int i = 0; i < all->n; i++) {
        const struct sh_result_row *row = &all->row[i];
        char *policy = sh_result_policy(row);
        sh_out_item(o);
        sh_out_text(o, "model", "model", sh_result_text(row, "model"));
        sh_out_text(o, "condition", "cache", sh_result_text(row, "condition"));
        sh_out_text(o, "policy", "policy", policy);
        sh_out_text(o, "budget", "budget", sh_result_budget(row));
        sh_out_int(o, "texts", "texts", sh_result_int(row, "n_texts"));
        for (size_t k = 0; k < sizeof column / sizeof *column; k++)
            sh_out_real(o, column[k].metric, column[k].label, sh_result(row, column[k].metric, -1), column[k].digits);
        free(policy);
    }
    sh_out_end(o);
    sh_report_table(r, NULL, o);
}

static int write(struct sh_report *r, struct sh_err *e)
{
    struct sh_results all;
    int bad = 0;
    if (sh_results_read(r, "repetition", &all, e))
        return -1;
    if (!all.n) {
        char *line = xasprintf("repetition --model %s --text FILE --length 256 --policy scissorhands --budget 0.5 "
                               "--db %s", r->model ? r->model : "DIR", r->store[0].path);
        sh_report_missing(r, line, "repeated attention beside repeated text.");
        free(line);
        return 0;
    }
    sh_report_say(r, "The model goes on from each text in the full cache, under the policy, and in a cache of the same "
                  "size that keeps tokens at random (uniform). rep-4 is the share of repeated 4-grams; rows alike, how "
                  "much the pivotal tokens of neighbouring rows overlap; correlation, over the texts, that of rows "
                  "alike beyond chance with rep-4. If repeated attention made texts repeat, uniform retention would "
                  "lower rep-4.");
    table(r, &all);
    sh_results_free(&all);
    for (int i = 0; i < r->n_store && !bad; i++)
        bad = sh_report_typed(r, i, "repetition", e);
    return bad ? -1 : 0;
}

const struct sh_report_part sh_report_repetition = {"repetition", "Repeated attention and repeated text", write};
