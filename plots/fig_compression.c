/* SPDX-License-Identifier: Apache-2.0 */
/* Quality against compression (Fig 3 of the Scissorhands paper): perplexity and accuracy, policy by policy. */
#include "plots/measured.h"
#include "plots/figure.h"

static int draw(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    return sh_measured_draw(gp, d, d->compression, 0, e);
}

static void caption(FILE *to, const struct sh_fig_data *d)
{
    sh_measured_caption(to, d->compression);
    fputs(", over the compression of the cache", to);
}

const struct sh_figure sh_figure_compression = {
    .number = SH_FIG_compression, .name = "compression",
    .summary = "perplexity and accuracy over the compression of the cache", .most = SH_MEASURED_PANELS,
    .parts = "panels", .draw = draw, .caption = caption};
