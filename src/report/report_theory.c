/* SPDX-License-Identifier: Apache-2.0 */
/* Report: the least mass that eviction can drop, compared with the law and the theorem. */

#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/report/figures/figure_data.h"
#include "src/report/report.h"

/* A fifth of the tokens is where attention is asked how concentrated it is. */
#define ASKED 0.2

/* What keeping the largest scores drops, compared with keeping any others: does it pay to choose? */
static char *say_room(const struct sh_fig_dropped *d)
{
    int at = -1;
    for (int i = 0; i < d->n; i++)
        if (isfinite(d->measured[i]) && (at < 0 || fabs(d->share[i] - ASKED) < fabs(d->share[at] - ASKED)))
            at = i;
    if (at < 0)
        return xasprintf("%s: no row was measured.", d->title);
    double even = 1 - d->share[at], part = even > 0 ? d->measured[at] / even : 1;
    return xasprintf("%s: the largest %.0f %% of a row's scores leave out %.2g %% of its attention; equal scores would "
                     "leave out %.0f %%. %s", d->title, 100 * d->share[at], 100 * d->measured[at], 100 * even,
                     part < 0.05  ? "Few tokens hold nearly all attention, so a small cache can lose little if it "
                                    "keeps the right ones."
                     : part < 0.5 ? "Attention is concentrated, but not on few tokens alone, so a small cache loses a "
                                    "part of it, whatever it keeps."
                                  : "Attention is spread over the tokens, so every small cache loses much, whatever it "
                                    "keeps.");
}

static char *say_law(const struct sh_fig_dropped *d)
{
    int below = 0, n = 0;
    double worst = 1;
    for (int i = 0; i < d->n; i++)
        if (d->measured[i] > 1e-6 && d->law_cut[i] > 0) {
            n++;
            below += d->law_cut[i] < d->measured[i];
            worst = fmax(worst, d->measured[i] / d->law_cut[i]);
        }
    if (!n)
        return xstrdup("No power law could be fitted to these scores, so law D predicts nothing.");
    if (below)
        return xasprintf("Law D, truncated, promises too much: at %d of the %d budgets that can be compared, more "
                         "attention is dropped than it predicts, up to %.3g times as much. It is not a safe guide to a "
                         "budget here.", below, n, worst);
    return xasprintf("Law D, truncated, is safe here: at all %d budgets that can be compared, no more attention is "
                     "dropped than it predicts.", n);
}

static char *say_theorem(const struct sh_fig_dropped *d)
{
    int n = 0, says = 0, tested = 0, broken = 0;
    double least = 1, loose = INFINITY;
    for (int i = 0; i < d->n; i++) {
        if (d->share[i] > 0.999)                        /* nothing is dropped */
            continue;
        n++;
        if (!isfinite(d->printed[i]))
            continue;
        says++;
        least = fmin(least, d->share[i]);
        if (isfinite(d->error[i])) {
            tested++;
            broken += d->error[i] > d->printed[i];
            loose = d->error[i] > 0 ? fmin(loose, d->printed[i] / d->error[i]) : loose;
        }
    }
    if (!says)
        return xasprintf("Theorem 4.1 says nothing at any of the %d budgets below the whole text, so it cannot guide a "
                         "choice here.", n);
    char what[160] = "; whether it holds is not known, since values were not recorded";
    if (broken)
        snprintf(what, sizeof what, "; the measured error exceeds its bound at %d of these", broken);
    else if (tested && loose > 10 && isfinite(loose))
        snprintf(what, sizeof what, ". The measured error is within its bound at all of these, but the bound is more "
                 "than %.0f times as large: too loose to choose a budget by", pow(10, floor(log10(loose))));
    else if (tested)
        snprintf(what, sizeof what, ". The measured error is within its bound at all of these");
    return xasprintf("Theorem 4.1 says something at %d of the %d budgets below the whole text, from %.0f %% of the "
                     "tokens on%s.", says, n, 100 * least, what);
}

/* What the numbers of a trace mean. */
static void say_verdict(struct sh_report *r, const struct sh_fig_dropped *d)
{
    char *room = say_room(d), *law = say_law(d), *theorem = say_theorem(d);
    sh_report_say(r, "%s %s %s", room, law, theorem);
    free(room);
    free(law);
    free(theorem);
}

static void table(struct sh_report *r, const struct sh_fig_drops *data)
{
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "dropped", "dropped mass when each row keeps its largest scores: means over heads and layers");
    for (int t = 0; t < data->n; t++) {
        const struct sh_fig_dropped *d = &data->trace[t];
        for (int i = 0; i < d->n; i++) {
            sh_out_item(o);
            sh_out_link(o, "#fig-dropped-mass");
            sh_out_text(o, "trace", "trace", d->title);
            sh_out_real(o, "kept", "share kept", d->share[i], 3);
            sh_out_real(o, "measured", "measured", d->measured[i], 5);
            sh_out_real(o, "least", "minimum over layers", d->least[i], 5);
            sh_out_real(o, "most", "maximum over layers", d->most[i], 5);
            sh_out_real(o, "law", "law D", d->law[i], 5);
            sh_out_real(o, "law_cut", "law D, truncated at the largest possible score", d->law_cut[i], 5);
            sh_out_real(o, "printed", "Theorem 4.1, in units of the longest value vector", d->printed[i], 4);
            sh_out_real(o, "error", "output error, in the same units", d->error[i], 5);
        }
    }
    sh_out_end(o);
    sh_report_table(r, "Every budget", o);
}

/* "0.05,0.1,…,1", as for --budget; for free(). */
static char *list_budgets(const struct sh_fig_dropped *d)
{
    char *list = xstrdup("");
    for (int i = 0; i < d->n; i++) {
        char *longer = xasprintf("%s%s%.6g", list, i ? "," : "", d->asked[i]);
        free(list);
        list = longer;
    }
    return list;
}

static int write(struct sh_report *r, struct sh_err *e)
{
    const char *db[SH_REPORT_STORES];
    int n = 0, bad = 0;
    for (int i = 0; i < r->n_store; i++) {
        int full = sh_report_is_causal(&r->store[i]);
        for (int k = 0; k < r->store[i].n_run; k++)
            full &= r->store[i].run[k].record == SH_RECORD_FULL && r->store[i].run[k].n_done;
        if (full)
            db[n++] = r->store[i].path;
    }
    if (!n) {
        sh_report_trace(r, 0, "full.db", " --record full --vectors v", "a comparison of the theory with "
                        "measurements. It needs a store whose runs all recorded full scores.");
        return 0;
    }
    struct sh_figure_request q = {.db = db, .n_db = n, .threads = r->threads, .quiet = r->quiet};
    struct sh_figure_data *d = sh_figure_data_new(SH_FIG_BIT(dropped_mass), &q, e);
    if (!d)
        return sh_report_lacks(r, NULL, e);
    sh_report_say(r, "No policy can do better than keeping the largest scores of each row. The figure shows the mass "
                     "that even this drops, and the prediction for scores that follow a power law (law D). Theorem 4.1 "
                     "of the Scissorhands paper, as printed, bounds the output error in units of the longest "
                     "value vector; a dash means that the theorem says nothing there, or that values were not "
                     "recorded. Measured: %s.",
                     d->out.settings);
    for (int t = 0; t < d->out.dropped_mass->n; t++)
        say_verdict(r, &d->out.dropped_mass->trace[t]);
    bad = sh_report_figure(r, &sh_figure_dropped_mass, NULL, &d->out, e);
    if (!bad)
        table(r, d->out.dropped_mass);
    char *budgets = list_budgets(&d->out.dropped_mass->trace[0]);
    sh_figure_data_free(d);
    for (int i = 0; i < n && !bad; i++)
        sh_report_command(r, "theory --db %s --budget %s", db[i], budgets);
    free(budgets);
    return bad;
}

const struct sh_report_part sh_report_theory = {
    .name = "theory", .title = "Theory and measurement", .write = write};
