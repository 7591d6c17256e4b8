/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens kept by a live cache compared with those kept by the replay, layer by layer, over the text. */
#include "plots/measured.h"
#include "plots/figure.h"

static int draw(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    return sh_measured_draw(gp, d, d->drift, 0, e);
}

const struct sh_figure sh_figure_drift = {
    .number = SH_FIG_drift, .name = "drift",
    .summary = "agreement of the tokens kept by the live cache and by the replay, over the text",
    .most = SH_MEASURED_PANELS, .parts = "panels", .draw = draw};
