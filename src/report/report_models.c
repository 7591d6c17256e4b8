/* SPDX-License-Identifier: Apache-2.0 */
/* Report: several models, or one over its training, in one table. */
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/report/report_results.h"
#include "src/report/reproduce_show.h"

static int is_trained(const struct sh_report_store *s)
{
    return s->n_run > 0 && !sh_report_is_random(&s->run[0]);
}

static int write(struct sh_report *r, struct sh_err *e)
{
    int n = 0, bad = 0;
    for (int i = 0; i < r->n_store; i++)
        n += is_trained(&r->store[i]);
    if (n < 2) {
        char *line = xasprintf("report --db %s OTHER.db -o report.html", r->store[0].path);
        sh_report_say(r, "This page shows one trained model. Add others, such as larger models or earlier "
                         "checkpoints of the same model, to see a trend.");
        sh_report_example(r, line);
        free(line);
        return 0;
    }
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "models", "trained models side by side; cache and weights: change in nats per token");
    for (int i = 0; i < r->n_store && !bad; i++) {
        const struct sh_stored_run *run = r->store[i].run;
        if (!is_trained(&r->store[i]))
            continue;
        sh_out_item(o);
        sh_out_link(o, "#fig-persistence");
        sh_out_text(o, "model", "model", run->model);
        sh_out_int(o, "layers", "layers", run->n_layer);
        sh_out_int(o, "width", "heads x width", (long long)run->n_head * run->d_head);
        bad = sh_model_figures(o, r->store[i].path, NULL, e);
    }
    sh_out_end(o);
    if (bad) {
        sh_out_free(o);
        return -1;
    }
    sh_report_say(r, "Models are in the order in which their stores were named. Ratio: of the tokens that matter late "
                     "in a text, the share that already mattered early (a score above 1/t, where t is the number of "
                     "keys of a row). Chance: the ratio for tokens drawn at random. Lift beyond: ratio / chance for "
                     "scores above 5/t, with query and key at least 10 tokens apart. Cache 2x and 5x: Scissorhands "
                     "with a half and a fifth of the cache. Held to: the largest measured compression that raises "
                     "perplexity by at most 1 %%. Perplexities are comparable only over the same texts and tokens.");
    sh_report_table(r, NULL, o);
    return 0;
}

const struct sh_report_part sh_report_models = {
    .name = "models", .title = "Models side by side", .write = write};
