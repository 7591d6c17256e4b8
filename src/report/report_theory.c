/* SPDX-License-Identifier: Apache-2.0 */
/* Report: the least mass that eviction can drop, compared with the law and the theorem. */

#include "src/report/figures/figure_data.h"
#include "src/report/report.h"

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
    bad = sh_report_figure(r, &sh_figure_dropped_mass, NULL, &d->out, e);
    if (!bad)
        table(r, d->out.dropped_mass);
    sh_figure_data_free(d);
    for (int i = 0; i < n && !bad; i++)
        sh_report_command(r, "theory --db %s", db[i]);
    return bad;
}

const struct sh_report_part sh_report_theory = {
    .name = "theory", .title = "Theory and measurement", .write = write};
