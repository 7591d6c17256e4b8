/* SPDX-License-Identifier: Apache-2.0 */
/* What fewer bits for keys and values cost, alone and on top of eviction. */
#include "plots/measured.h"
#include "plots/figure.h"

static int draw(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    return sh_measured_draw(gp, d, d->quant, 0, e);
}

static void caption(FILE *to, const struct sh_fig_data *d)
{
    sh_measured_caption(to, d->quant);
}

const struct sh_figure sh_figure_quant = {
    .number = SH_FIG_quant, .name = "quant",
    .summary = "perplexity over the bits of keys and values, and over the bytes of the cache",
    .most = SH_MEASURED_PANELS, .parts = "panels", .draw = draw, .caption = caption};
