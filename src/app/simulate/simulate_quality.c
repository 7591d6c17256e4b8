/* SPDX-License-Identifier: Apache-2.0 */
/* The budget that a store of measured budgets gives for --max-ppl-increase or --min-recall (simulate_run.h). */
#include <stdlib.h>

#include "src/app/simulate/simulate_run.h"

static int check(const struct sh_capacity_args *a, struct sh_err *e)
{
    int has_limit = a->max_ppl || a->min_recall;
    if (!a->db && (has_limit || a->policy || a->measured_on)) {
        sh_misused(e, "%s requires --quality-db FILE, a store with results of shears eval or replay",
                   a->max_ppl ? "--max-ppl-increase" : a->min_recall ? "--min-recall"
                   : a->policy ? "--policy" : "--measured-on");
        return sh_hint(e, "--db FILE is where simulate keeps its own results; both may be the same store");
    }
    if (a->db && !has_limit)
        return sh_misused(e, "--quality-db requires --max-ppl-increase F or --min-recall F");
    return sh_quality_one_limit(a, e);
}

/* A budget in tokens holds only up to the length of the texts that it was measured on, and a model to its context
 * length; what a policy stores may depend on it. */
int sh_sim_longest(struct sh_sim_study *s, struct sh_err *e)
{
    struct sh_workload *w = sh_sim_source_again(&s->source, e);
    struct sh_request r;
    int found = w ? 1 : -1;
    for (long long i = 0; found > 0 && (s->source.is_file || i < s->source.requests); i++) {
        found = w->next(w, &r, e);
        if (found > 0 && (uint64_t)r.prompt + r.output > s->longest)
            s->longest = (uint64_t)r.prompt + r.output;
    }
    return found >= 0 ? 0 : s->source.is_file && w ? sh_err_prefix(e, "%s", s->args->workload) : -1;
}

int sh_sim_quality(struct sh_sim_study *s, struct sh_err *e)
{
    const struct sh_capacity_args *a = &s->args->capacity;
    struct sh_quality_ask q;
    int n;
    if (check(a, e))
        return -1;
    if ((a->db || a->policy_state || s->model.f.max_pos) && sh_sim_longest(s, e))
        return -1;
    if (!a->db)
        return 0;
    if (sh_quality_read(a->db, a->model, &s->point, &n, e))
        return -1;
    for (int i = 0; i < s->settings.kv.n; i++) {
        if (sh_quality_ask(a, s->settings.kv.at[i], &s->model, s->point, n, &q, e))
            return -1;
        q.length = s->longest;
        if (!(s->least[i] = sh_quality_least(s->point, n, a->db, &q, e)))
            return -1;
    }
    return 0;
}
