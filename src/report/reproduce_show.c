/* SPDX-License-Identifier: Apache-2.0 */
/* See reproduce_show.h. All figures are read from the results that the steps kept in the stores. */
#include "src/report/reproduce_show.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/report/report_results.h"

/* Changes of the mean negative log-likelihood, in nats per token, against the full cache of the same weights. */
struct costs {
    double whole, half, fifth;          /* perplexity of all weights; Scissorhands at 1/2 and 1/5 */
    double most;                        /* largest compression at which perplexity is at most 1 % up */
    double pruned_nll, bits_nll, full_nll;     /* full cache: pruned, 4-bit and all weights     */
    double pruned_half, bits_half;      /* what the cache of half the size costs these            */
};

static void take_whole(struct costs *c, const struct sh_result_row *r, double budget, double change)
{
    double ppl = sh_result(r, "ppl", -1);
    int is_full = !strcmp(sh_result_text(r, "policy"), "full");
    if (is_full) {
        c->whole = ppl;
        c->full_nll = sh_result(r, "nll", -1);
    }
    if (strcmp(sh_result_text(r, "policy"), "scissorhands"))
        return;
    if (budget == 0.5)
        c->half = change;
    if (budget == 0.2)
        c->fifth = change;
    if (budget > 0 && change <= log(1.01) && !(1 / budget < c->most))
        c->most = 1 / budget;
}

static void take(struct costs *c, const struct sh_result_row *r)
{
    double budget = strtod(sh_result_text(r, "budget"), NULL), change = sh_result(r, "nll_change", -1);
    int is_full = !strcmp(sh_result_text(r, "policy"), "full"), is_half = budget == 0.5 && !is_full;
    if (sh_result_int(r, "activation_bits") == 8)
        return;
    if (json_object_get(r->settings, "weight_prune")) {
        if (is_full)
            c->pruned_nll = sh_result(r, "nll", -1);
        else if (is_half)
            c->pruned_half = change;
    } else if (sh_result_int(r, "weight_bits") < 16) {
        if (is_full)
            c->bits_nll = sh_result(r, "nll", -1);
        else if (is_half)
            c->bits_half = change;
    } else {
        take_whole(c, r, budget, change);
    }
}

static int quality(struct sh_out *o, const struct sh_report *r, struct sh_err *e)
{
    const double none = (double)NAN;
    struct costs c = {none, none, none, none, none, none, none, none, none};
    struct sh_results all;
    if (sh_results_read(r, "eval", &all, e))
        return -1;
    for (int i = 0; i < all.n; i++) {           /* of the text that the first one is of */
        const struct sh_result_row *row = &all.row[i];
        if (!strcmp(sh_result_text(all.row, "texts"), sh_result_text(row, "texts")) &&
            !json_object_get(row->settings, "answers") && !json_object_get(row->settings, "plan") &&
            sh_result_int(row, "kv_bits") >= 16)
            take(&c, row);
    }
    sh_out_real(o, "ppl", "perplexity", c.whole, 3);
    sh_out_real(o, "nll_half", "cache 2x", c.half, 4);
    sh_out_real(o, "nll_fifth", "5x", c.fifth, 4);
    sh_out_real(o, "largest_compression", "held to", c.most, 2);
    sh_out_real(o, "nll_bits", "4-bit w.", c.bits_nll - c.full_nll, 4);
    sh_out_real(o, "nll_bits_interaction", "beyond sum", c.bits_half - c.half, 4);
    sh_out_real(o, "nll_pruned", "pruned", c.pruned_nll - c.full_nll, 4);
    sh_out_real(o, "nll_pruned_interaction", "beyond sum", c.pruned_half - c.half, 4);
    sh_results_free(&all);
    return 0;
}

/* The mean over layers of a figure of `persistence`. */
static double mean(const struct sh_result_row *row, const char *metric)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < row->n; i++)
        if (row->at[i].layer >= 0 && !strcmp(row->at[i].metric, metric) && isfinite(row->at[i].value)) {
            sum += row->at[i].value;
            n++;
        }
    return n ? sum / n : (double)NAN;
}

static int persistence(struct sh_out *o, const struct sh_report *r, int is_random, struct sh_err *e)
{
    struct sh_results all;
    double ratio = (double)NAN, density = ratio, lift = ratio;
    if (sh_results_read(r, "persistence", &all, e))
        return -1;
    for (int i = 0; i < all.n; i++) {
        int recent = (int)sh_result_int(&all.row[i], "recent");
        if (!strcmp(sh_result_text(&all.row[i], "alpha"), "row") && !recent) {
            ratio = mean(&all.row[i], "ratio");
            density = mean(&all.row[i], "density");
        } else if (!strcmp(sh_result_text(&all.row[i], "alpha"), "5/t") && recent == 10) {
            lift = mean(&all.row[i], "lift");
        }
    }
    sh_out_real(o, is_random ? "random_ratio" : "ratio", is_random ? "random" : "ratio", ratio, 4);
    if (!is_random) {
        sh_out_real(o, "density", "chance", density, 4);
        sh_out_real(o, "lift_beyond", "lift beyond", lift, 3);
    }
    sh_results_free(&all);
    return 0;
}

int sh_model_figures(struct sh_out *o, const char *trained, const char *random, struct sh_err *e)
{
    struct sh_report of = {.n_store = 1, .store = {{.path = trained}}},
                     twin = {.n_store = 1, .store = {{.path = random}}};
    return persistence(o, &of, 0, e) || (random && persistence(o, &twin, 1, e)) || quality(o, &of, e) ? -1 : 0;
}

int sh_reproduce_row(struct sh_out *o, const char *name, double parameters, const char *folder, struct sh_err *e)
{
    char *trained = xasprintf("%s/trained.db", folder), *random = xasprintf("%s/random.db", folder);
    sh_out_item(o);
    sh_out_text(o, "model", "model", name);
    sh_out_real(o, "parameters", "parameters", parameters, 0);
    int bad = sh_model_figures(o, trained, random, e);
    free(trained);
    free(random);
    return bad ? -1 : 0;
}
