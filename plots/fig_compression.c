/* SPDX-License-Identifier: Apache-2.0 */
/* Quality against compression (Fig 3 of the Scissorhands paper): perplexity and accuracy, policy by policy. */
#include "plots/figure.h"

static int draw(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    return sh_measured_draw(gp, d, 0, e);
}

static void caption(FILE *to, const struct sh_fig_data *d)
{
    sh_measured_caption(to, d);
    fputs(", over how many times smaller the cache is", to);
}

const struct sh_figure sh_figure_compression = {
    "compression", "perplexity and accuracy over how many times smaller the cache is", SH_FIG_COMPRESSION, draw,
    caption};
