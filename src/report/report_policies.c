/* SPDX-License-Identifier: Apache-2.0 */
/* Report: what eviction policies keep of the recorded attention. */
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/report/figures/figure_data.h"
#include "src/report/report_results.h"

static void begin_row(struct sh_out *o, const struct sh_fig_curve *c)
{
    sh_out_item(o);
    sh_out_link(o, "#fig-budget-curve");
    sh_out_text(o, "policy", "policy", c->label);
}

/* What rows often have in common, after the results. */
static void end_row(struct sh_out *o, const struct sh_fig_curves *set)
{
    sh_out_text(o, "trace", "trace", set->title);
    sh_out_text(o, "text", "text", set->text);
}

static void rank(struct sh_out *o, const struct sh_fig_curves *set, const struct sh_fig_curve *c)
{
    begin_row(o, c);
    sh_out_real(o, "height", "mean kept mass", c->height, 4);
    sh_out_text(o, "over", "budgets averaged", set->note);
    sh_out_bool(o, "bound", "sees the future", c->is_bound);
    sh_out_bool(o, "more", "keeps more than its budget", c->is_over);
    end_row(o, set);
}

static void points(struct sh_out *o, const struct sh_fig_curves *set, const struct sh_fig_curve *c)
{
    for (int k = 0; k < c->n; k++) {
        begin_row(o, c);
        sh_out_real(o, "share", "budget, share of the text", c->share[k], 3);
        sh_out_real(o, "kept_mass", "kept mass", c->mass[k], 4);
        sh_out_real(o, "output_error", "output error", c->error[k], 4);
        sh_out_real(o, "kept_mass_low", "95 % interval, from", c->low[k], 4);
        sh_out_real(o, "kept_mass_high", "to", c->high[k], 4);
        sh_out_real(o, "kept_mass_no_sink", "without sinks", c->no_sink[k], 4);
        sh_out_real(o, "pivotal_recall", "pivotal tokens kept", c->pivotal[k], 4);
        end_row(o, set);
    }
}

/* The tables and the figures of what was measured on one text; text NULL: the only one. */
static int write_text(struct sh_report *r, const struct sh_results *all, const char *text, int number, struct sh_err *e)
{
    const char *db[SH_REPORT_STORES];
    struct sh_figure_request q = {.db = db, .n_db = sh_report_stores_of(r, all, text, db), .measured_on = text,
                                  .threads = r->threads, .quiet = r->quiet};
    struct sh_figure_data *d = sh_figure_data_new(SH_FIG_BIT(budget_curve), &q, e);
    if (!d)
        return sh_report_lacks(r, NULL, e);
    sh_report_say(r, "Measured: %s.", d->out.settings);
    struct sh_out *ranking = sh_out_new(), *all_points = sh_out_new();
    const struct sh_fig_curve_sets *sets = d->out.budget_curve;
    sh_out_list(ranking, "policies", "policies by mean kept mass over the budgets at which all of them were "
                "measured");
    sh_out_list(all_points, "points", NULL);
    for (int s = 0; s < sets->n; s++)
        for (int i = 0; i < sets->set[s].n_curves; i++) {
            rank(ranking, &sets->set[s], &sets->set[s].curve[i]);
            points(all_points, &sets->set[s], &sets->set[s].curve[i]);
        }
    sh_out_end(ranking);
    sh_out_end(all_points);
    sh_report_table(r, NULL, ranking);
    char *curve = number ? xasprintf("budget-curve-%d", number + 1) : NULL,
         *board = number ? xasprintf("leaderboard-%d", number + 1) : NULL;
    int bad = sh_report_figure(r, &sh_figure_budget_curve, curve, &d->out, e) ||
              sh_report_figure(r, &sh_figure_leaderboard, board, &d->out, e);
    sh_report_table(r, "Every policy under every budget", all_points);
    sh_figure_data_free(d);
    free(curve);
    free(board);
    return bad;
}

static int write(struct sh_report *r, struct sh_err *e)
{
    struct sh_results all;
    char **text;
    int bad = 0;
    if (sh_results_read(r, "replay", &all, e))
        return -1;
    if (!all.n) {
        sh_report_fill(r, "replay --db STORE --policy all --budget 0.05..1.0/20",
                       "a comparison of eviction policies: the stores have no results of a replay.");
        return 0;
    }
    sh_report_say(r, "Each policy sees the recorded rows one by one and keeps at most its budget of tokens per "
                     "head. Output error is the relative error of a head's output; it is known only where values "
                     "were recorded, and is the best measure for comparing policies on one trace. Kept mass, the "
                     "share of a row's attention on the kept tokens, describes what they keep. The column “without "
                     "sinks” leaves out the first four tokens, which attract attention in any text, and the "
                     "query's own token. Pivotal tokens here are those with a score above the average of the row. "
                     "None of these numbers predicts perplexity; evaluations measure it.");
    int n = sh_report_texts(r, &all, &text);
    for (int i = 0; i < n && !bad; i++)
        bad = write_text(r, &all, text[i], i, e);
    sh_report_texts_free(text, n);
    sh_results_free(&all);
    return bad || sh_report_typed(r, "replay", e) ? -1 : 0;
}

const struct sh_report_part sh_report_policies = {
    .name = "policies", .title = "Eviction policies, replayed", .write = write};
