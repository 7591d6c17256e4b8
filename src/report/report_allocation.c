/* SPDX-License-Identifier: Apache-2.0 */
/* Report: the budgets of plans, layer by head, and the quality that was measured under them. */
#include <math.h>
#include <string.h>

#include "src/report/figures/figure_data.h"
#include "src/app/plan/plan_file.h"
#include "src/report/report.h"

static void write_plan(struct sh_out *o, const char *path, const struct sh_plan *p)
{
    char knobs[SH_POLICY_TEXT];
    int least = p->n_token, most = 0;
    for (int i = 0; i < p->n_layer * p->n_kv_head; i++) {
        int is_there = i % p->n_kv_head < p->heads[i / p->n_kv_head], b = p->budget[i];
        least = is_there && b < least ? b : least;
        most = is_there && b > most ? b : most;
    }
    sh_out_item(o);
    sh_out_link(o, "#fig-allocation");
    sh_out_text(o, "policy", "policy", p->policy.policy->name);
    sh_out_real(o, "mean", "mean budget", sh_plan_mean(p), 1);
    sh_out_int(o, "least", "minimum", least);
    sh_out_int(o, "most", "maximum", most);
    sh_out_int(o, "length", "tokens per text", p->n_token);
    sh_out_text(o, "allocator", "allocator", p->allocator.allocator->name);
    sh_out_text(o, "knobs", "settings of the policy", sh_policy_knobs(&p->policy, knobs));
    sh_out_text(o, "target", "target metric", *p->target_metric ? p->target_metric : "none: a given budget");
    sh_out_real(o, "value", "target value", *p->target_metric ? p->target : (double)NAN, 4);
    sh_out_text(o, "model", "model", p->model);
    sh_out_text(o, "plan", "plan", path);
}

static void write_evidence(struct sh_out *o, const char *path, const struct sh_plan *p)
{
    for (int i = 0; i < p->n_evidence; i++) {
        const struct sh_plan_evidence *v = &p->evidence[i];
        sh_out_item(o);
        sh_out_link(o, "#fig-allocation");
        sh_out_text(o, "metric", "metric", v->metric);
        sh_out_real(o, "measured", "value", v->value, 4);
        sh_out_real(o, "low", "lower bound", v->low, 4);
        sh_out_real(o, "high", "upper bound", v->high, 4);
        sh_out_real(o, "confidence", "confidence of each", v->confidence > 0 ? v->confidence : 0.975, 3);
        sh_out_int(o, "sequences", "sequences", v->sequences);
        sh_out_int(o, "tokens", "tokens", v->tokens);
        sh_out_text(o, "text", "text", *v->text ? v->text : NULL);
        sh_out_text(o, "store", "store", v->store);
        sh_out_text(o, "plan", "plan", path);
        sh_out_text(o, "program", "shears", v->program);
    }
}

static void command(struct sh_report *r, const char *path, const struct sh_plan *p)
{
    char knobs[SH_POLICY_TEXT], target[64];
    const char *colon = *sh_policy_knobs(&p->policy, knobs) ? ":" : "";
    if (!*p->target_metric)
        snprintf(target, sizeof target, "--budget %.4f", sh_plan_mean(p) / p->n_token);
    else
        snprintf(target, sizeof target, "--target-%s %g", !strcmp(p->target_metric, "ppl") ? "ppl"
                 : !strcmp(p->target_metric, "output_error") ? "error" : "recall", p->target);
    sh_report_command(r, "plan --db %s --policy %s%s%s %s --allocator %s -o %s", r->store[0].path,
                      p->policy.policy->name, colon, knobs, target, p->allocator.allocator->name, path);
}

static int is_judged(const struct sh_plan *p)
{
    return *p->status && p->n_evidence;
}

/* How a plan was judged, in words. */
static void say_judged(struct sh_report *r, const char *path, const struct sh_plan *p)
{
    const struct sh_plan_evidence *v = p->evidence;
    if (!is_judged(p))
        return;
    sh_report_say(r, "The texts of the plan %s were divided in two. On one part, policies and allocators were compared "
                     "and budgets were searched. The other part, %d sequences of %d tokens%s%s, was read only to judge "
                     "how large the budgets must be: the model read each sequence with the full cache and with the "
                     "plan's, and the bound of the mean change is over sequences. Several sizes were tried in turn on "
                     "these sequences, in an order that was fixed before they were read. The first that failed ended "
                     "the search, so the bound holds for the size that was chosen. The second table has what was "
                     "measured there.",
                  path, v->sequences, p->n_token, *v->text ? " from " : "", v->text);
}

static int write(struct sh_report *r, struct sh_err *e)
{
    if (!r->n_plan) {
        sh_report_fill(r, "plan --db STORE --policy h2o:recent=10 --target-recall 0.95 --allocator greedy -o plan.json",
                       "budgets of layers and heads. Make a plan and name it with --plan.");
        return 0;
    }
    struct sh_out *o = sh_out_new(), *evidence = sh_out_new();
    struct sh_plan plan[SH_REPORT_STORES] = {0};
    int bad = 0, n_judged = 0;
    sh_out_list(o, "plans", "plans: tokens that each KV head keeps");
    sh_out_list(evidence, "evidence", "measured under the plans");
    for (int i = 0; i < r->n_plan && !bad; i++)
        if (!(bad = sh_plan_read(&plan[i], r->plan[i], e))) {
            write_plan(o, r->plan[i], &plan[i]);
            write_evidence(evidence, r->plan[i], &plan[i]);
        }
    sh_out_end(o);
    sh_out_end(evidence);
    for (int i = 0; i < r->n_plan && !bad; i++) {
        if (is_judged(&plan[i]) && !n_judged++)
            sh_report_place(r, "judged-texts");
        say_judged(r, r->plan[i], &plan[i]);
    }
    sh_report_table(r, NULL, o);
    if (n_judged)
        sh_report_place(r, "judged");
    sh_report_table(r, NULL, evidence);
    struct sh_figure_request q = {.plan = r->plan, .n_plan = r->n_plan};
    struct sh_figure_data *d = bad ? NULL : sh_figure_data_new(SH_FIG_BIT(allocation), &q, e);
    bad = !d || sh_report_figure(r, &sh_figure_allocation, NULL, &d->out, e);
    sh_figure_data_free(d);
    for (int i = 0; i < r->n_plan; i++) {
        if (!bad && !*plan[i].status)
            command(r, r->plan[i], &plan[i]);
        n_judged += *plan[i].status != '\0';
        sh_plan_clear(&plan[i]);
    }
    bad = bad || (n_judged && sh_report_typed(r, "plan", e));
    return bad ? -1 : 0;
}

const struct sh_report_part sh_report_allocation = {
    .name = "allocation", .title = "Budgets of layers and heads", .write = write};
