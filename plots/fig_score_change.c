/* SPDX-License-Identifier: Apache-2.0 */
/* Attention scores compared with those of the full cache (Fig 4 of the Scissorhands paper), as histograms. */
#include "plots/measured.h"
#include "plots/figure.h"

static int draw(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    return sh_measured_draw(gp, d, d->score_change, 0.1, e);
}

const struct sh_figure sh_figure_score_change = {
    .number = SH_FIG_score_change, .name = "score-change",
    .summary = "change of the attention scores when the cache is compressed", .most = SH_MEASURED_PANELS,
    .parts = "panels", .draw = draw};
