/* SPDX-License-Identifier: Apache-2.0 */
#include "src/report/answer_plan.h"

#include <math.h>
#include <string.h>

#include "src/app/plan/live_plan.h"
#include "src/base/student.h"

/* Of a model that a store has a trace of? Where none has any, every plan is. */
static int is_traced(const struct sh_report *r, const struct sh_plan *p)
{
    int n = 0;
    for (int i = 0; i < r->n_store; i++)
        for (int k = 0; k < r->store[i].n_run; k++, n++)
            if (!strcmp(r->store[i].run[k].fingerprint, p->fingerprint))
                return 1;
    return !n;
}

static void say_lack(struct sh_answer_plan *to, double low_increase)
{
    int n = to->sequences;
    if (n < SH_JUDGED_LEAST) {
        snprintf(to->lacks, sizeof to->lacks, "; at least %d judged sequences are needed to show anything, not %d",
                 SH_JUDGED_LEAST, n);
        return;
    }
    double mean = log1p(to->value), low = log1p(low_increase), t = sh_student_t(to->confidence, n - 1);
    struct sh_mean_bound b = {n, mean, (mean - low) / t, low, log1p(to->bound)};
    int needs = sh_mean_bound_needs(&b, log1p(to->target), to->confidence);
    if (needs > n)
        snprintf(to->lacks, sizeof to->lacks, "; about %d more sequences would show it", needs - n);
}

static int take(struct sh_answer_plan *to, const struct sh_report *r, const struct sh_plan *p)
{
    const struct sh_plan_evidence *v = NULL;
    for (int i = 0; i < p->n_evidence; i++)
        v = strcmp(p->evidence[i].metric, "ppl_increase") ? v : &p->evidence[i];
    if (!v || !*p->status || strcmp(p->target_metric, "ppl_increase") || !is_traced(r, p) ||
        (r->target > 0 && fabs(r->target - p->target) > 1e-9))
        return 0;
    to->hash = sh_plan_hash(p);
    to->target = p->target;
    to->value = v->value;
    to->bound = v->high;
    to->confidence = v->confidence > 0 ? v->confidence : 0.95;
    to->share = sh_plan_mean(p) / p->n_token;
    to->sequences = v->sequences;
    to->n_token = p->n_token;
    to->prefill = p->prefill;
    to->is_met = !strcmp(p->status, "met") && v->high <= p->target * (1 + 1e-9);
    snprintf(to->policy, sizeof to->policy, "%s", p->policy.policy->name);
    sh_policy_knobs(&p->policy, to->knobs);
    snprintf(to->text, sizeof to->text, "%s", v->text);
    if (!to->is_met)
        say_lack(to, v->low);
    return 1;
}

int sh_answer_plan_find(struct sh_answer_plan *to, const struct sh_report *r, struct sh_err *e)
{
    int bad = 0;
    *to = (struct sh_answer_plan){0};
    for (int i = 0; i < r->n_plan && !to->path && !bad; i++) {
        struct sh_plan p = {0};
        bad = sh_plan_read(&p, r->plan[i], e);
        if (!bad && take(to, r, &p))
            to->path = r->plan[i];
        sh_plan_clear(&p);
    }
    return bad ? -1 : to->path != NULL;
}
