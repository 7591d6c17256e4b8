/* SPDX-License-Identifier: Apache-2.0 */
/* The dropped-mass figure's data: the measurement of shears theory at twenty budgets, without its test of the
 * power law. */
#include <math.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/report/figures/figure_data.h"
#include "src/app/theory/theory_store.h"

enum { SHARES = 20 };

static struct sh_fig_dropped trace(struct sh_figure_data *to, const struct sh_theory_result *r,
                                   const double rho[SHARES])
{
    double *column[9];
    for (int c = 0; c < 9; c++)
        column[c] = sh_figure_keep(to, xmalloc(SHARES * sizeof *column[c]));
    for (int i = 0; i < SHARES; i++) {
        double bound = sh_theory_at(r, -1, -1, i, SH_TA_ERROR_BOUND), error = sh_theory_at(r, -1, -1, i, SH_TA_ERROR);
        column[0][i] = sh_theory_at(r, -1, -1, i, SH_TA_BUDGET);
        column[8][i] = rho[i];
        column[1][i] = sh_theory_at(r, -1, -1, i, SH_TA_DROPPED);
        column[2][i] = column[3][i] = (double)NAN;
        for (int l = 0; l < r->n_layer; l++) {
            double d = sh_theory_at(r, l, -1, i, SH_TA_DROPPED);
            column[2][i] = fmin(column[2][i], d);
            column[3][i] = fmax(column[3][i], d);
        }
        column[4][i] = sh_theory_at(r, -1, -1, i, SH_TA_LAW);
        column[5][i] = sh_theory_at(r, -1, -1, i, SH_TA_LAW_CUT);
        column[6][i] = sh_theory_at(r, -1, -1, i, SH_TA_PRINTED);
        /* error and its bound 2 (1 - kept) max|v| are means over the same rows: their ratio is free of |v| */
        column[7][i] = bound > 0 ? error / bound * 2 * column[1][i] : (double)NAN;
    }
    return (struct sh_fig_dropped){.n = SHARES,
                                   .share = column[0], .measured = column[1], .least = column[2], .most = column[3],
                                   .law = column[4], .law_cut = column[5], .printed = column[6], .error = column[7],
                                   .asked = column[8]};
}

static int load(struct sh_figure_data *to, unsigned figures, const struct sh_figure_request *q, struct sh_err *e)
{
    struct sh_fig_dropped *d = sh_figure_keep(to, xcalloc((size_t)q->n_db, sizeof *d));
    struct sh_fig_drops *all = sh_figure_keep(to, xcalloc(1, sizeof *all));
    double rho[SHARES];
    for (int i = 0; i < SHARES; i++)
        rho[i] = (i + 1) / (double)SHARES;
    struct sh_theory_request t = {.rho = rho, .n_rho = SHARES, .run = q->run, .threads = q->threads,
                                  .quiet = q->quiet};
    for (int i = 0; i < q->n_db; i++) {
        struct sh_theory_result r;
        struct sh_store *s = sh_store_open(q->db[i], e);
        int bad = !s || sh_theory_run(&t, s, &r, e);
        sh_store_close(s);
        if (bad)
            return -1;
        d[i] = trace(to, &r, rho);
        d[i].title = sh_figure_keep(to, sh_figure_named(q, q->db[i], sh_figure_label(r.model, r.weights)));
        if (!i) {
            to->out.title = sh_figure_keep(to, xasprintf("%s: dropped mass, measured and predicted",
                                                          q->n_db > 1 ? r.model : d[0].title));
            to->out.settings = sh_figure_keep(
                to, xasprintf("rows in the second half of %d sequence%s (%lld tokens in all); means over heads and "
                              "layers; each row keeps its largest scores", r.n_sequence,
                              r.n_sequence == 1 ? "" : "s", r.n_tokens));
        }
        sh_theory_result_free(&r);
    }
    (void)figures;
    *all = (struct sh_fig_drops){q->n_db, d};
    to->out.dropped_mass = all;
    return 0;
}

const struct sh_figure_loader sh_figure_load_dropped = {.figures = SH_FIG_BIT(dropped_mass), .load = load};
