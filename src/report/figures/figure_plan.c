/* SPDX-License-Identifier: Apache-2.0 */
/* Plan files as maps of budgets. */
#include <math.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/report/figures/figure_data.h"
#include "src/app/plan/plan_file.h"

/* What the budgets are for, in words. */
static char *target_of(const struct sh_plan *p)
{
    static const struct { const char *metric, *before, *after; double unit; } targets[] = {
        {"ppl_increase", "an increase of the perplexity of at most", " %", 100},
        {"kl", "a divergence of at most", " nats a token", 1}, {"answer_exact", "at least", " % of exact answers", 100},
        {"kept_mass", "a kept mass of at least", " %", 100}, {"output_error", "an output error of at most", "", 1},
        {"ppl", "a perplexity of at most", "", 1}};
    if (!*p->target_metric)
        return xstrdup("planned for a given budget");
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(p->target_metric, targets[i].metric))
            return xasprintf("planned for %s %g%s", targets[i].before, p->target * targets[i].unit, targets[i].after);
    return xasprintf("planned for %s %g", p->target_metric, p->target);
}

static int load(struct sh_figure_data *d, unsigned figures, const struct sh_figure_request *q, struct sh_err *e)
{
    (void)figures;
    if (!q->n_plan) {
        sh_misused(e, "figure allocation requires --plan FILE...");
        return sh_hint(e, "make one: shears plan --db FILE --policy h2o --target-recall 0.95 -o plan.json");
    }
    struct sh_fig_plan *all = sh_figure_keep(d, xcalloc((size_t)q->n_plan, sizeof *all));
    struct sh_fig_plans *out = sh_figure_keep(d, xcalloc(1, sizeof *out));
    for (int i = 0; i < q->n_plan; i++) {
        struct sh_plan p = {0};
        if (sh_plan_read(&p, q->plan[i], e))
            return -1;
        size_t n = (size_t)p.n_layer * (size_t)p.n_kv_head;
        double *tokens = sh_figure_keep(d, xmalloc(n * sizeof *tokens));
        for (size_t k = 0, each = (size_t)p.n_kv_head; k < n; k++)
            tokens[k] = (int)(k % each) < p.heads[k / each] ? p.budget[k] : (double)NAN;
        char *title = xasprintf("%s, %s: %.1f of %d tokens a head", p.policy.policy->name, p.allocator.allocator->name,
                                sh_plan_mean(&p), p.n_token);
        title = sh_figure_named(q, q->plan[i], title);
        all[i] = (struct sh_fig_plan){sh_figure_keep(d, title), p.n_layer, p.n_kv_head, tokens};
        if (!i) {
            d->out.title = sh_figure_keep(d, xasprintf("%s: budgets of the KV heads", p.model));
            d->out.settings = sh_figure_keep(d, target_of(&p));
        }
        sh_plan_clear(&p);
    }
    *out = (struct sh_fig_plans){q->n_plan, all};
    d->out.allocation = out;
    return 0;
}

const struct sh_figure_loader sh_figure_load_plan = {.figures = SH_FIG_BIT(allocation), .takes_plans = 1, .load = load};
