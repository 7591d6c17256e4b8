/* SPDX-License-Identifier: Apache-2.0 */
#include "src/cli/plan_show.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

static void show_layer(struct sh_out *o, const struct sh_plan *p, int layer)
{
    const int *b = p->budget + layer * p->n_kv_head;
    long long sum = 0;
    int n = p->heads[layer], least = n ? b[0] : 0, most = least;
    for (int h = 0; h < n; h++) {
        sum += b[h];
        least = b[h] < least ? b[h] : least;
        most = b[h] > most ? b[h] : most;
    }
    sh_out_item(o);
    sh_out_int(o, "layer", "layer", layer);
    sh_out_int(o, "tokens", "tokens", sum);
    sh_out_real(o, "mean_tokens", "per head", n ? (double)sum / n : (double)NAN, 1);
    sh_out_int(o, "least_tokens", "least", least);
    sh_out_int(o, "most_tokens", "most", most);
    sh_out_real(o, "share", "share", n ? (double)sum / n / p->n_token : (double)NAN, 4);
    sh_out_list(o, "heads", "heads");
    for (int h = 0; h < n; h++) {
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
        sh_out_real(o, "low", "from", v->low, 4);
        sh_out_real(o, "high", "to", v->high, 4);
        sh_out_real(o, "confidence", "confidence", v->confidence > 0 ? v->confidence : (double)NAN, 2);
        if (v->sequences)
            sh_out_int(o, "sequences", "sequences", v->sequences);
        else
            sh_out_text(o, "sequences", "sequences", NULL);
        sh_out_int(o, "tokens", "tokens", v->tokens);
        if (v->run >= 0)
            sh_out_int(o, "run", "run", v->run);
        else
            sh_out_text(o, "run", "run", NULL);
        sh_out_text(o, "text", "text", *v->text ? v->text : NULL);
        if (*v->text_hash)
            sh_out_text(o, "text_hash", "its hash", v->text_hash);
        sh_out_text(o, "store", "store", v->store);
        sh_out_text(o, "program", "program", v->program);
    }
    sh_out_end(o);
}

void sh_plan_show(struct sh_out *o, const struct sh_plan *p)
{
    char knobs[SH_POLICY_TEXT];
    double mean = sh_plan_mean(p);
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

/* ---- a plan that was judged ---- */

static void show_goal(struct sh_out *o, const struct sh_live_plan *w, const struct sh_mean_bound *b)
{
    double value = b->mean, bound = b->high;
    if (w->a->target == SH_TARGET_PPL) {
        value = expm1(value);
        bound = expm1(bound);
    } else if (w->a->target == SH_TARGET_ANSWERS) {
        value = -value;
        bound = -bound;
    }
    static const char *const label[] = {"perplexity up by", "divergence", "exact answers"};
    sh_out_real(o, "value", label[w->a->target], value, 4);
    sh_out_real(o, "bound", w->a->target == SH_TARGET_ANSWERS ? "at least" : "at most", bound, 4);
}

static void show_settings(struct sh_out *o, const struct sh_live_plan *w)
{
    char text[SH_POLICY_TEXT];
    sh_out_list(o, "searched", "what was tried on the searched texts: the fewest tokens that hold the target there,\n"
                "or the most that were tried where none do");
    for (int i = 0; i < w->n_setting; i++) {
        const struct sh_live_setting *s = &w->setting[i];
        if (!s->is_tried)
            continue;
        sh_out_item(o);
        sh_out_text(o, "policy", "policy", s->policy.policy->name);
        sh_out_text(o, "knobs", "knobs", sh_policy_knobs(&s->policy, text));
        sh_out_detail(o);
        sh_out_text(o, "allocator", "allocator", s->allocator.allocator->name);
        sh_out_real(o, "mean_tokens", "tokens per head", s->mean, 0);
        sh_out_real(o, "mean_bytes", "bytes per head", sh_live_bytes(w, s, s->mean), 0);
        sh_out_bool(o, "holds", "holds", s->meets);
        show_goal(o, w, &s->goal);
        sh_out_bool(o, "chosen", "chosen", i == w->best);
    }
    sh_out_end(o);
}

/* How many settings were left out: their allocators lacked what they need, or they had no chance. Each is named. */
static int show_left_out(struct sh_out *o, const struct sh_live_plan *w)
{
    int n = 0;
    for (int i = 0; i < w->n_setting; i++)
        n += w->setting[i].left_out != NULL;
    if (!n)
        return 0;
    sh_out_list(o, "left_out", "what was not tried");
    for (int i = 0; i < w->n_setting; i++) {
        const struct sh_live_setting *s = &w->setting[i];
        char text[SH_POLICY_TEXT];
        if (!s->left_out)
            continue;
        sh_out_item(o);
        sh_out_text(o, "policy", "policy", s->policy.policy->name);
        sh_out_text(o, "knobs", "knobs", sh_policy_knobs(&s->policy, text));
        sh_out_text(o, "allocator", "allocator", s->allocator.allocator->name);
        sh_out_text(o, "why", "why", s->left_out);
    }
    sh_out_end(o);
    return n;
}

static int larger_first(const void *a, const void *b)
{
    const struct sh_candidate *x = *(const struct sh_candidate *const *)a, *y = *(const struct sh_candidate *const *)b;
    return (x->mean < y->mean) - (x->mean > y->mean);
}

static void show_judged(struct sh_out *o, const struct sh_live_plan *w)
{
    const struct sh_candidate **c = xcalloc((size_t)w->n_judged, sizeof *c);
    for (int i = 0; i < w->n_judged; i++)
        c[i] = &w->judged[i];
    qsort(c, (size_t)w->n_judged, sizeof *c, larger_first);
    sh_out_list(o, "judged", "budgets on the judged texts");
    for (int i = 0; i < w->n_judged; i++) {
        sh_out_item(o);
        sh_out_int(o, "mean_tokens", "tokens per head", c[i]->mean);
        show_goal(o, w, &c[i]->goal);
        sh_out_real(o, "confidence", "bound's confidence", c[i]->level, 4);
        sh_out_bool(o, "chosen", "chosen", w->chosen >= 0 && c[i] == &w->judged[w->chosen]);
    }
    sh_out_end(o);
    free(c);
}

/* The command that measures the plan on the judged sequences again; options that have their default are left out. */
static void show_again(struct sh_out *o, const struct sh_live_plan *w, const char *file)
{
    const struct sh_live_options *l = &w->a->live;
    char *options;
    size_t bytes;
    FILE *to = xmemstream(&options, &bytes);
    if (strcmp(l->dtype, "f32"))
        fprintf(to, " --dtype %s", l->dtype);
    if (l->kv_bits)
        fprintf(to, " --kv-bits %lld", l->kv_bits);
    if (l->kv_bits && l->kv_bits < 16)
        fprintf(to, " --kv-group %lld", l->kv_group);
    if (l->weight_bits < 16)
        fprintf(to, " --weight-bits %lld", l->weight_bits);
    if (sh_model_has_integers(w->live.model))   /* eval's usual ones are others */
        fprintf(to, " --activation-bits %lld", l->activation_bits ? l->activation_bits : 16);
    if (l->weight_prune > 0)
        fprintf(to, " --weight-prune %g", l->weight_prune);
    xmemclose(to, &options, &bytes);
    sh_out_note(o, "To repeat the measurement: shears eval --model %s --plan %s --tokens %s --seed %lld%s", l->model,
                file ? file : "PLAN", w->a->judged ? w->a->judged : "JUDGED", w->common->seed, options);
    if (!file || !w->a->judged)
        sh_out_note(o, "-o PLAN writes the plan and --judged JUDGED the judged sequences; the rest of the command is "
                       "unchanged.");
    free(options);
}

void sh_live_plan_show(struct sh_out *o, const struct sh_live_plan *w, const char *file)
{
    sh_out_text(o, "status", "status", *w->plan.status ? w->plan.status : NULL);
    sh_out_text(o, "verdict", "verdict", w->verdict);
    sh_out_real(o, "ppl_increase", "perplexity up by", expm1(w->ppl.mean), 4);
    sh_out_real(o, "ppl_increase_bound", "at most", expm1(w->ppl.high), 4);
    sh_out_real(o, "confidence", "confidence", w->a->confidence, 4);
    sh_out_int(o, "sequences", "judged sequences", w->n_judge);
    sh_out_int(o, "sequences_searched", "searched sequences", w->n_search);
    if (!*w->plan.status || w->is_met)
        sh_out_text(o, "sequences_more", "more needed", NULL);
    else
        sh_out_int(o, "sequences_more", "more needed", w->more);
    sh_out_real(o, "ppl_full", "perplexity of the full cache", w->full_ppl, 4);
    sh_out_real(o, "kl", "divergence, nats", w->kl.mean, 4);
    sh_out_real(o, "kl_bound", "at most", w->kl.high, 4);
    if (w->answers.texts) {
        sh_out_real(o, "answer_exact", "exact answers", w->exact.mean, 4);
        sh_out_real(o, "answer_exact_bound", "at least", w->exact.low, 4);
        sh_out_real(o, "answer_exact_full", "with the full cache", w->full_exact, 4);
    }
    sh_out_text(o, "compare", "compared by", w->a->by_bytes ? "bytes" : "tokens");
    sh_out_real(o, "bytes_share", "fraction of the bytes", sh_live_bytes_share(w), 4);
    sh_measured_write(&w->on, o);
    sh_plan_show(o, &w->plan);
    show_settings(o, w);
    int left_out = show_left_out(o, w);
    show_judged(o, w);
    if (sh_live_bytes_share(w) >= 1)
        sh_out_note(o, "With what the policy stores, the plan needs as many bytes as the full cache, or more.");
    if (w->n_tried + left_out < w->n_setting)
        sh_out_note(o, "%d of %d combinations of policy and allocator were tried in %.0f s (--time).", w->n_tried,
                    w->n_setting, w->a->seconds);
    sh_out_note(o, "The bound holds for texts like those that were judged, not for other kinds or lengths.%s",
                w->n_judged ? " Bounds in the table above, and so the plan's, have a higher confidence, because "
                              "several are tried." : "");
    sh_out_note(o, "The judged sequences follow from the texts and --seed: the same command%s measures them again.%s",
                w->a->db ? ", with another --db or none," : "",
                file ? " shears eval --plan measures the plan on other texts." : "");
    if (file)
        sh_out_note(o, "The plan was written to %s.", file);
    show_again(o, w, file);
}
