/* SPDX-License-Identifier: Apache-2.0 */
/* Kept sets of a live cache beside those of the replay, layer by layer, over the text. */
#include "plots/measured.h"
#include "plots/figure.h"

static int draw(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    return sh_measured_draw(gp, d, d->drift, 0, e);
}

const struct sh_figure sh_figure_drift = {
    .number = SH_FIG_drift, .name = "drift",
    .summary = "how alike the kept sets of the live cache and of the replay are, over the text",
    .most = SH_MEASURED_PANELS, .parts = "panels", .draw = draw};
