/* SPDX-License-Identifier: Apache-2.0 */
/* Kept sets of a live cache beside those of the replay, layer by layer, over the text. */
#include "plots/figure.h"

static int draw(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    return sh_measured_draw(gp, d, 0, e);
}

const struct sh_figure sh_figure_drift = {
    "drift", "how alike the kept sets of the live cache and of the replay are, over the text", SH_FIG_DRIFT, draw,
    NULL};
