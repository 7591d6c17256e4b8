/* SPDX-License-Identifier: Apache-2.0 */
/* See eval_results.h: the results of few-shot tasks. */
#include "src/app/eval/eval_results.h"

#include <math.h>
#include <string.h>

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
    struct sh_eval_mean acc = sh_eval_share(s->right, s->items), norm = {(double)NAN, (double)NAN};
    double n = (double)s->items;
    if (task->flags & SH_TASK_NORM)
        norm = sh_eval_share(s->right_norm, s->items);
    double at[SH_N_TASK_METRIC] = {
        [SH_T_ITEMS] = n, [SH_T_ACC] = acc.value, [SH_T_STDERR] = acc.error, [SH_T_ACC_NORM] = norm.value,
        [SH_T_ACC_NORM_STDERR] = norm.error,
        [SH_T_PPL] = task->flags & SH_TASK_GREEDY ? exp(-s->gold / n) : (double)NAN,
        [SH_T_SAME] = (double)s->same / n, [SH_T_CHANGE] = s->change / (double)s->choices,
        [SH_T_BUDGET_TOKENS] = s->budget_tokens / n, [SH_T_KV_BYTES] = (double)s->kv_bytes,
        [SH_T_RATE] = s->seconds > 0 ? (double)s->read / s->seconds : (double)NAN};
    memcpy(r->at, at, sizeof at);
    r->place = s->place;
}

void sh_task_row_write(const struct sh_task_row *r, const struct sh_task *task, int with_device, struct sh_out *o)
{
    const struct sh_task_reader *c = &r->reader;
    sh_eval_cell_write(c->spec, NULL, &c->budget, c->format.bits, o);
    sh_out_text(o, "task", "task", task->name);
    sh_metrics_write(&sh_task_metrics, r->at, o);
    if (with_device)
        sh_eval_place_write(&r->place, o);
}
