/* SPDX-License-Identifier: Apache-2.0 */
/* See eval_rows.h. */
#include "src/cli/eval_rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/cli/metrics.h"

static const struct sh_metric metric[SH_N_EVAL_METRIC] = {
    [SH_E_TOKENS] = {"tokens", "tokens", 0}, [SH_E_NLL] = {"nll", "nll", 4},
    [SH_E_NLL_STDERR] = {"nll_stderr", "+-", 4}, [SH_E_PPL] = {"ppl", "ppl", 4},
    [SH_E_PPL_STDERR] = {"ppl_stderr", "+-", 4}, [SH_E_CHANGE] = {"nll_change", "change", 4},
    [SH_E_CHANGE_STDERR] = {"nll_change_stderr", "+-", 4}, [SH_E_KL] = {"kl", "kl", 4},
    [SH_E_KL_STDERR] = {"kl_stderr", "+-", 4}, [SH_E_SAME] = {"top1_agreement", "top 1", 4},
    [SH_E_BUDGET_TOKENS] = {"budget_tokens", "slots", 1}, [SH_E_PEAK_TOKENS] = {"peak_tokens", "peak", 0},
    [SH_E_KV_BYTES] = {"kv_bytes", "bytes", 0}, [SH_E_RATE] = {"tokens_per_s", "tokens/s", 1}};

void sh_eval_result_name(struct sh_eval_result *r, const struct sh_eval_scene *c)
{
    char knobs[SH_POLICY_TEXT], budget[SH_BUDGET_TEXT];
    const struct sh_eval_cell *cell = r->cell;
    r->settings = xasprintf(
        "{\"policy\": \"%s\", \"knobs\": \"%s\", \"budget\": \"%s\", \"kv_bits\": %d, \"group\": %d, \"prefill\": %d, "
        "\"model\": \"%016" PRIx64 "\", \"texts\": \"%016" PRIx64 "\", \"dtype\": \"%s\", \"weight_bits\": %d, "
        "\"seed\": %" PRIu64 "}",
        cell->spec->policy->name, sh_policy_knobs(cell->spec, knobs), sh_budget_text(&cell->budget, budget),
        cell->format.bits, cell->format.bits < 16 ? cell->format.group : 0, c->prefill, c->model, c->texts, c->dtype,
        c->weight_bits, c->seed);
}

void sh_eval_result_fill(struct sh_eval_result *r, const struct sh_eval_sums *s)
{
    struct sh_eval_mean nll = sh_eval_nll(s), ppl = sh_eval_perplexity(s), change = sh_eval_change(s),
                        kl = sh_eval_kl(s);
    double *m = r->at;
    m[SH_E_TOKENS] = (double)s->tokens;
    m[SH_E_NLL] = nll.value;
    m[SH_E_NLL_STDERR] = nll.error;
    m[SH_E_PPL] = ppl.value;
    m[SH_E_PPL_STDERR] = ppl.error;
    m[SH_E_CHANGE] = change.value;
    m[SH_E_CHANGE_STDERR] = change.error;
    m[SH_E_KL] = kl.value;
    m[SH_E_KL_STDERR] = kl.error;
    m[SH_E_SAME] = sh_eval_agreement(s);
    m[SH_E_BUDGET_TOKENS] = s->texts > 0 ? s->budget_tokens / s->texts : (double)NAN;
    m[SH_E_PEAK_TOKENS] = s->peak_tokens;
    m[SH_E_KV_BYTES] = (double)s->kv_bytes;
    m[SH_E_RATE] = s->seconds > 0 ? (double)s->read / s->seconds : (double)NAN;
}

void sh_eval_results_free(struct sh_eval_result *r, int n)
{
    for (int i = 0; i < n; i++)
        free(r[i].settings);
    free(r);
}

static const struct sh_metrics metrics = {"eval", metric, SH_N_EVAL_METRIC};

int sh_eval_results_find(struct sh_eval_result *r, int n, struct sh_store *s, struct sh_err *e)
{
    struct sh_metric_row *row = xcalloc((size_t)n, sizeof *row);
    for (int i = 0; i < n; i++)
        row[i] = (struct sh_metric_row){r[i].settings, r[i].at, &r[i].is_known};
    int bad = sh_metrics_find(&metrics, row, n, s, e);
    free(row);
    return bad;
}

int sh_eval_result_keep(const struct sh_eval_result *r, struct sh_store *s, struct sh_err *e)
{
    return sh_metrics_keep(&metrics, r->settings, r->at, s, e);
}

void sh_eval_result_write(const struct sh_eval_result *r, struct sh_out *o)
{
    char knobs[SH_POLICY_TEXT];
    const struct sh_eval_cell *c = r->cell;
    sh_out_item(o);
    sh_out_text(o, "policy", "policy", c->spec->policy->name);
    sh_out_text(o, "knobs", "knobs", sh_policy_knobs(c->spec, knobs));
    if (c->budget.tokens)
        sh_out_int(o, "budget", "budget", c->budget.tokens);
    else
        sh_out_real(o, "budget", "budget", c->budget.share, 3);
    sh_out_int(o, "kv_bits", "bits", c->format.bits);
    sh_metrics_write(&metrics, r->at, o);
}
