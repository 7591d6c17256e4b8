/* SPDX-License-Identifier: Apache-2.0 */
/* Report: how far the sets that a live cache keeps drift from those of the replay. */
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/report/report_results.h"

static int most_layer(const struct sh_result_row *row)
{
    int most = -1;
    for (int i = 0; i < row->n; i++)
        most = row->at[i].layer > most ? row->at[i].layer : most;
    return most;
}

static int write(struct sh_report *r, struct sh_err *e)
{
    struct sh_results all;
    int bad = 0;
    if (sh_results_read(r, "drift", &all, e))
        return -1;
    if (!all.n) {
        char *line = xasprintf("drift --model %s --db %s --policy h2o:recent=10 --budget 0.2",
                               r->model ? r->model : "DIR",
                               r->store[0].path);
        sh_report_missing(r, line, "the live cache beside the replay, step by step.");
        free(line);
        return 0;
    }
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "drift", "kept sets of live cache and replay, each layer: means over heads and steps, and the "
                "least");
    for (int i = 0; i < all.n; i++) {
        const struct sh_result_row *row = &all.row[i];
        char *policy = sh_result_policy(row);
        for (int l = 0, end = most_layer(row); l <= end; l++) {
            sh_out_item(o);
            if (sh_results_mixed(&all))
                sh_out_text(o, "store", "store", r->store[row->store].path);
            sh_out_text(o, "policy", "policy", policy);
            sh_out_text(o, "budget", "budget", sh_result_text(row, "budget"));
            sh_out_text(o, "rows", "replayed rows", sh_result_text(row, "rows"));
            sh_out_int(o, "layer", "layer", l);
            sh_out_real(o, "jaccard", "Jaccard", sh_result(row, "jaccard", l), 4);
            sh_out_real(o, "least_jaccard", "least", sh_result(row, "least_jaccard", l), 4);
            sh_out_real(o, "same_first_eviction", "same first eviction", sh_result(row, "same_first_eviction", l), 4);
            sh_out_real(o, "first_difference", "first difference at token", sh_result(row, "first_difference", l), 0);
        }
        free(policy);
    }
    sh_out_end(o);
    sh_report_say(r, "Does a replay keep what a live cache would? The Jaccard index is the share of the tokens kept in "
                  "either that is kept in both: 1 where both keep the same. The first layer sees the same rows in "
                  "both, so a difference there is rounding (of the codec, or of nearly equal sums); behind it, the "
                  "live model's own rows change with what was dropped below.");
    sh_report_table(r, NULL, o);
    bad = sh_results_figure(r, &all, "drift", e);
    sh_results_free(&all);
    for (int i = 0; i < r->n_store && !bad; i++)
        bad = sh_report_typed(r, i, "drift", e);
    return bad ? -1 : 0;
}

const struct sh_report_part sh_report_drift = {"drift", "Replay beside the live cache", write};
