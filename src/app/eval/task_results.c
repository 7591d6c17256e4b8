/* SPDX-License-Identifier: Apache-2.0 */
/* See task_results.h. */
#include "src/app/eval/task_results.h"

#include <math.h>

#include "src/app/eval/eval_results.h"
#include "src/app/store/results.h"

void sh_task_sums_add(struct sh_task_sums *s, const struct sh_task *task, const struct sh_task_prompt *p,
                      const struct sh_task_score *score, const struct sh_task_score *full)
{
    int is_greedy = task->flags & SH_TASK_GREEDY ? 1 : 0;
    if (!full)
        full = score;
    s->items++;
    s->right += is_greedy ? score->is_greedy[0] : score->best == p->gold;
    s->right_norm += score->best_norm == p->gold;
    s->same += is_greedy ? score->is_greedy[0] == full->is_greedy[0] : score->best == full->best;
    s->gold += score->sum[p->gold];
    for (int i = 0; i < p->n; i++)
        s->change += fabs(score->sum[i] - full->sum[i]);
    s->choices += p->n;
    s->read += score->read;
    s->budget_tokens += score->budget_tokens;
    s->kv_bytes = score->kv_bytes > s->kv_bytes ? score->kv_bytes : s->kv_bytes;
    sh_eval_place_join(&s->place, &score->place);
}

void sh_task_row_fill(struct sh_task_row *r, const struct sh_task *task, const struct sh_task_sums *s)
{
    struct sh_eval_mean acc = sh_eval_share(s->right, s->items), norm = sh_eval_share(s->right_norm, s->items);
    double *m = r->at, n = (double)s->items;
    r->place = s->place;
    m[SH_T_ITEMS] = n;
    m[SH_T_ACC] = acc.value;
    m[SH_T_STDERR] = acc.error;
    m[SH_T_ACC_NORM] = task->flags & SH_TASK_NORM ? norm.value : (double)NAN;
    m[SH_T_ACC_NORM_STDERR] = task->flags & SH_TASK_NORM ? norm.error : (double)NAN;
    m[SH_T_PPL] = task->flags & SH_TASK_GREEDY ? exp(-s->gold / n) : (double)NAN;
    m[SH_T_SAME] = (double)s->same / n;
    m[SH_T_CHANGE] = s->change / (double)s->choices;
    m[SH_T_BUDGET_TOKENS] = s->budget_tokens / n;
    m[SH_T_KV_BYTES] = (double)s->kv_bytes;
    m[SH_T_RATE] = s->seconds > 0 ? (double)s->read / s->seconds : (double)NAN;
}

int sh_task_rows_find(struct sh_task_row *r, int n, struct sh_store *s, struct sh_err *e)
{
    int found = 0;
    for (int i = 0; i < n && found >= 0; i++) {
        struct sh_result_row row;
        found = sh_result_find(s, "task", r[i].settings, &row, e);
        r[i].is_known = found > 0 && sh_result_get(&row, &sh_task_metrics, r[i].at);
        sh_result_free(&row);
    }
    return found < 0 ? -1 : 0;
}

int sh_task_row_keep(const struct sh_task_row *r, struct sh_store *s, struct sh_err *e)
{
    struct sh_result_row row = {0};
    sh_result_add_all(&row, &sh_task_metrics, -1, r->at);
    return sh_result_keep(s, "task", r->settings, &row, e);
}

void sh_task_row_write(const struct sh_task_row *r, const struct sh_task *task, int with_device, struct sh_out *o)
{
    char knobs[SH_POLICY_TEXT];
    const struct sh_task_reader *c = &r->reader;
    sh_out_item(o);
    sh_out_text(o, "policy", "policy", c->spec->policy->name);
    sh_out_text(o, "knobs", "knobs", sh_policy_knobs(c->spec, knobs));
    if (c->budget.tokens)
        sh_out_int(o, "budget", "budget", c->budget.tokens);
    else
        sh_out_real(o, "budget", "budget", c->budget.share, 3);
    sh_out_int(o, "kv_bits", "bits", c->format.bits);
    sh_out_text(o, "task", "task", task->name);
    sh_metrics_write(&sh_task_metrics, r->at, o);
    if (with_device)
        sh_eval_place_write(&r->place, o);
}
