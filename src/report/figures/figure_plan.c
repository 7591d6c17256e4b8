/* SPDX-License-Identifier: Apache-2.0 */
/* Plan files as maps of budgets. */
#include <string.h>

#include "src/base/mem.h"
#include "src/report/figures/figure_data.h"
#include "src/app/plan/plan_file.h"

typedef void *own_fn(void *keeper, void *at);

static char *title_of(const struct sh_plan *p)
{
    double mean = (double)sh_plan_total(p) / (p->n_layer * p->n_kv_head);
    return xasprintf("%s, %s: %.1f of %d tokens a head", p->policy.policy->name, p->allocator.allocator->name, mean,
                     p->n_token);
}

int sh_figure_plans(const struct sh_figure_request *q, struct sh_fig_data *out, own_fn *own, void *keeper,
                    struct sh_err *e)
{
    if (!q->n_plan) {
        sh_misused(e, "allocation needs --plan FILE...");
        return sh_hint(e, "make one: shears plan --db FILE --policy h2o --target-recall 0.95 -o plan.json");
    }
    struct sh_fig_plan *all = own(keeper, xcalloc((size_t)q->n_plan, sizeof *all));
    for (int i = 0; i < q->n_plan; i++) {
        struct sh_plan p = {0};
        if (sh_plan_read(&p, q->plan[i], e))
            return -1;
        size_t n = (size_t)p.n_layer * (size_t)p.n_kv_head;
        double *tokens = own(keeper, xmalloc(n * sizeof *tokens));
        for (size_t k = 0; k < n; k++)
            tokens[k] = p.budget[k];
        all[i] = (struct sh_fig_plan){.title = own(keeper, title_of(&p)), .n_layers = p.n_layer,
                                      .n_heads = p.n_kv_head, .tokens = tokens};
        if (!i) {
            out->title = own(keeper, xasprintf("%s: budgets of the KV heads", p.model));
            out->settings = own(keeper, *p.target_metric ? xasprintf("planned for %s %g", p.target_metric, p.target)
                                                         : xstrdup("planned for a given budget"));
        }
        sh_plan_clear(&p);
    }
    out->plans = all;
    out->n_plans = q->n_plan;
    return 0;
}
