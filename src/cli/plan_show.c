/* SPDX-License-Identifier: Apache-2.0 */
/* See plan_show.h. */
#include "src/cli/plan_show.h"

#include <math.h>

static void show_layer(struct sh_out *o, const struct sh_plan *p, int layer)
{
    const int *b = p->budget + layer * p->n_kv_head;
    long long sum = 0;
    int least = b[0], most = b[0];
    for (int h = 0; h < p->n_kv_head; h++) {
        sum += b[h];
        least = b[h] < least ? b[h] : least;
        most = b[h] > most ? b[h] : most;
    }
    sh_out_item(o);
    sh_out_int(o, "layer", "layer", layer);
    sh_out_int(o, "tokens", "tokens", sum);
    sh_out_real(o, "mean_tokens", "per head", (double)sum / p->n_kv_head, 1);
    sh_out_int(o, "least_tokens", "least", least);
    sh_out_int(o, "most_tokens", "most", most);
    sh_out_real(o, "share", "share", (double)sum / p->n_kv_head / p->n_token, 4);
    sh_out_list(o, "heads", "heads");
    for (int h = 0; h < p->n_kv_head; h++) {
        sh_out_item(o);
        sh_out_int(o, "head", "head", h);
        sh_out_int(o, "tokens", "tokens", b[h]);
    }
    sh_out_end(o);
}

static void show_evidence(struct sh_out *o, const struct sh_plan *p)
{
    sh_out_list(o, "evidence", "measured with these budgets");
    for (int i = 0; i < p->n_evidence; i++) {
        const struct sh_plan_evidence *v = &p->evidence[i];
        sh_out_item(o);
        sh_out_text(o, "metric", "metric", v->metric);
        sh_out_real(o, "value", "value", v->value, 4);
        sh_out_real(o, "low", "95 % from", v->low, 4);
        sh_out_real(o, "high", "to", v->high, 4);
        if (v->sequences)
            sh_out_int(o, "sequences", "sequences", v->sequences);
        else
            sh_out_text(o, "sequences", "sequences", NULL);
        sh_out_int(o, "tokens", "tokens", v->tokens);
        if (v->run >= 0)
            sh_out_int(o, "run", "run", v->run);
        else
            sh_out_text(o, "run", "run", NULL);
        sh_out_text(o, "store", "store", v->store);
        sh_out_text(o, "program", "program", v->program);
    }
    sh_out_end(o);
}

void sh_plan_show(struct sh_out *o, const struct sh_plan *p)
{
    char knobs[SH_POLICY_TEXT];
    double mean = (double)sh_plan_total(p) / ((double)p->n_layer * p->n_kv_head);
    sh_out_text(o, "model", "model", p->model);
    sh_out_text(o, "policy", "policy", p->policy.policy->name);
    sh_out_text(o, "knobs", "knobs", sh_policy_knobs(&p->policy, knobs));
    sh_out_text(o, "allocator", "allocator", p->allocator.allocator->name);
    sh_out_text(o, "allocator_knobs", "allocator's knobs", sh_allocator_knobs(&p->allocator, knobs));
    sh_out_int(o, "prefill", "prefill", p->prefill);
    sh_out_int(o, "n_token", "tokens per text", p->n_token);
    sh_out_int(o, "total_tokens", "tokens of all heads", sh_plan_total(p));
    sh_out_real(o, "mean_tokens", "tokens per head", mean, 2);
    sh_out_real(o, "share", "fraction of the text", mean / p->n_token, 4);
    sh_out_text(o, "target_metric", "target", *p->target_metric ? p->target_metric : NULL);
    sh_out_real(o, "target", "target's value", *p->target_metric ? p->target : (double)NAN, 4);
    show_evidence(o, p);
    sh_out_list(o, "layers", "budgets per layer (over all KV heads, and per head)");
    for (int l = 0; l < p->n_layer; l++)
        show_layer(o, p, l);
    sh_out_end(o);
}
