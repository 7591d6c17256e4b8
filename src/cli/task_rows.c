/* SPDX-License-Identifier: Apache-2.0 */
/* See task_rows.h. */
#include "src/cli/task_rows.h"

#include <math.h>
#include <string.h>

static const struct { const char *key, *label; int digits; } metric[SH_N_TASK_METRIC] = {
    [SH_T_ITEMS] = {"items", "items", 0}, [SH_T_ACC] = {"acc", "acc", 4}, [SH_T_STDERR] = {"stderr", "+-", 4},
    [SH_T_ACC_NORM] = {"acc_norm", "acc_norm", 4}, [SH_T_ACC_NORM_STDERR] = {"acc_norm_stderr", "+-", 4},
    [SH_T_PPL] = {"ppl", "ppl", 4}, [SH_T_SAME] = {"same_choice", "same choice", 4},
    [SH_T_CHANGE] = {"loglikelihood_change", "change", 4}, [SH_T_BUDGET_TOKENS] = {"budget_tokens", "slots", 1},
    [SH_T_KV_BYTES] = {"kv_bytes", "bytes", 0}, [SH_T_RATE] = {"tokens_per_s", "tokens/s", 1}};

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
}

void sh_task_row_fill(struct sh_task_row *r, const struct sh_task *task, const struct sh_task_sums *s)
{
    struct sh_task_mean acc = sh_task_accuracy(s->right, s->items), norm = sh_task_accuracy(s->right_norm, s->items);
    double *m = r->at, n = (double)s->items;
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

struct found {
    struct sh_task_row *r;
    int n;
};

static int take(void *to, const struct sh_stored_result *stored, struct sh_err *e)
{
    struct found *f = to;
    (void)e;
    for (int i = 0; i < f->n; i++)
        for (int m = 0; m < SH_N_TASK_METRIC && !strcmp(f->r[i].settings, stored->settings); m++)
            if (!strcmp(metric[m].key, stored->metric)) {
                f->r[i].at[m] = stored->value;
                f->r[i].is_known = 1;
            }
    return 0;
}

int sh_task_rows_find(struct sh_task_row *r, int n, struct sh_store *s, struct sh_err *e)
{
    struct found f = {r, n};
    return sh_store_read_results(s, "task", take, &f, e);
}

int sh_task_row_keep(const struct sh_task_row *r, struct sh_store *s, struct sh_err *e)
{
    int bad = sh_store_results_begin(s, "task", r->settings, e);
    for (int m = 0; m < SH_N_TASK_METRIC && !bad; m++)
        bad = sh_store_result(s, "task", r->settings, metric[m].key, -1, -1, r->at[m], e);
    return bad ? -1 : sh_store_results_end(s, e);
}

void sh_task_row_write(const struct sh_task_row *r, const struct sh_task *task, struct sh_out *o)
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
    for (int m = 0; m < SH_N_TASK_METRIC; m++)
        if (metric[m].digits || isnan(r->at[m]))
            sh_out_real(o, metric[m].key, metric[m].label, r->at[m], metric[m].digits);
        else
            sh_out_int(o, metric[m].key, metric[m].label, llround(r->at[m]));
}
