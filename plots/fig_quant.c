/* SPDX-License-Identifier: Apache-2.0 */
/* What fewer bits for keys and values cost, alone and on top of eviction. */
#include "plots/figure.h"

static int draw(struct sh_gp *gp, const struct sh_fig_data *d, struct sh_err *e)
{
    return sh_measured_draw(gp, d, 0, e);
}

static void caption(FILE *to, const struct sh_fig_data *d)
{
    sh_measured_caption(to, d);
}

const struct sh_figure sh_figure_quant = {
    "quant", "perplexity over the bits of keys and values, and over the bytes of the cache", SH_FIG_QUANT, draw,
    caption};
