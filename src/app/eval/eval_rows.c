/* SPDX-License-Identifier: Apache-2.0 */
/* See eval_rows.h. */
#include "src/app/eval/eval_rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/app/store/metrics.h"
#include "src/app/store/result_check.h"

static const struct sh_metric metric[SH_N_EVAL_METRIC] = {
    [SH_E_SEQUENCES] = {"sequences", "texts", 0}, [SH_E_TOKENS] = {"tokens", "tokens", 0},
    [SH_E_NLL] = {"nll", "nll", 4},
    [SH_E_NLL_STDERR] = {"nll_stderr", "+-", 4}, [SH_E_PPL] = {"ppl", "ppl", 4},
    [SH_E_PPL_STDERR] = {"ppl_stderr", "+-", 4}, [SH_E_CHANGE] = {"nll_change", "change", 4},
    [SH_E_CHANGE_STDERR] = {"nll_change_stderr", "+-", 4}, [SH_E_KL] = {"kl", "kl", 4},
    [SH_E_KL_STDERR] = {"kl_stderr", "+-", 4}, [SH_E_SAME] = {"top1_agreement", "top 1", 4},
    [SH_E_BUDGET_TOKENS] = {"budget_tokens", "slots", 1}, [SH_E_PEAK_TOKENS] = {"peak_tokens", "peak", 0},
    [SH_E_KV_BYTES] = {"kv_bytes", "bytes", 0}, [SH_E_RATE] = {"tokens_per_s", "tokens/s", 1}};

static const struct sh_metric answer_metric[SH_N_ANSWER_METRIC] = {
    [SH_A_ANSWERS] = {"answers", "answers", 0}, [SH_A_EXACT] = {"answer_exact", "exact", 4},
    [SH_A_EXACT_STDERR] = {"answer_exact_stderr", "+-", 4}, [SH_A_NLL] = {"answer_nll", "answers' nll", 4},
    [SH_A_NLL_STDERR] = {"answer_nll_stderr", "+-", 4}, [SH_A_PPL] = {"answer_ppl", "their ppl", 4},
    [SH_A_PPL_STDERR] = {"answer_ppl_stderr", "+-", 4}, [SH_A_CHANGE] = {"answer_nll_change", "change", 4},
    [SH_A_CHANGE_STDERR] = {"answer_nll_change_stderr", "+-", 4}};

static const struct sh_metric part_metric[SH_N_PART_METRIC] = {
    [SH_P_TOKENS] = {"tokens", "tokens", 0}, [SH_P_NLL] = {"nll", "nll", 4},
    [SH_P_NLL_STDERR] = {"nll_stderr", "+-", 4},
    [SH_P_CHANGE] = {"nll_change", "change", 4}, [SH_P_CHANGE_STDERR] = {"nll_change_stderr", "+-", 4},
    [SH_P_ANSWERS] = {"answers", "answers", 0}, [SH_P_EXACT] = {"answer_exact", "exact", 4}};

const struct sh_eval_part_name sh_eval_part_names[SH_EVAL_PARTS + 1] = {
    [SH_EVAL_POSITION] = {"position", "by_position"}, [SH_EVAL_LENGTH] = {"length", "by_length"},
    [SH_EVAL_DISTANCE] = {"distance", "by_distance"}, [SH_EVAL_PARTS] = {NULL, NULL}};

/* ---- identity ---- */

/* Whether answers are scored and what a plan holds are said only where there are such: results of before
 * these could be asked for keep their names. */
static char *more_settings(const struct sh_eval_result *r, const struct sh_eval_scene *c)
{
    char *answers = c->answers ? xasprintf(", \"answers\": \"%016" PRIx64 "\"", c->answers) : xstrdup("");
    char *all = r->plan ? xasprintf("%s, \"plan\": \"%016" PRIx64 "\"", answers, r->plan_hash) : xstrdup(answers);
    free(answers);
    return all;
}

char *sh_eval_pruned(double weight_prune, uint64_t unpruned)
{
    return weight_prune > 0 ? xasprintf(", \"weight_prune\": %g, \"unpruned\": \"%016" PRIx64 "\"", weight_prune,
                                        unpruned)
                            : xstrdup("");
}

void sh_eval_result_name(struct sh_eval_result *r, const struct sh_eval_scene *c)
{
    char knobs[SH_POLICY_TEXT], budget[SH_BUDGET_TEXT];
    char keys[64] = "";
    const struct sh_eval_cell *cell = r->cell;
    char *more = more_settings(r, c), *pruned = sh_eval_pruned(c->weight_prune, c->unpruned);
    r->has_answers = c->answers != 0;
    if (cell->format.by_channel)
        snprintf(keys, sizeof keys, ", \"keys\": \"channel\", \"residual\": %d", cell->format.residual);
    r->settings = xasprintf(
        "{\"policy\": \"%s\", \"knobs\": \"%s\", \"budget\": \"%s\", \"kv_bits\": %d, \"group\": %d%s, "
        "\"prefill\": %d, \"model\": \"%016" PRIx64 "\", \"texts\": \"%016" PRIx64 "\", \"dtype\": \"%s\", "
        "\"weight_bits\": %d, \"seed\": %" PRIu64 "%s%s}",
        cell->spec->policy->name, sh_policy_knobs(cell->spec, knobs), sh_budget_text(&cell->budget, budget),
        cell->format.bits, cell->format.bits < 16 ? cell->format.group : 0, keys, c->prefill, c->model, c->texts,
        c->dtype, c->weight_bits, c->seed, pruned, more);
    free(pruned);
    free(more);
}

/* ---- figures ---- */

static void put(double *at, int value, int error, struct sh_eval_mean m)
{
    at[value] = m.value;
    at[error] = m.error;
}

static void fill_answers(double *m, const struct sh_eval_total *t)
{
    m[SH_A_ANSWERS] = (double)t->n_answer;
    put(m, SH_A_EXACT, SH_A_EXACT_STDERR, sh_eval_share(t->n_right, t->n_answer));
    put(m, SH_A_NLL, SH_A_NLL_STDERR, sh_eval_nll(&t->answers));
    put(m, SH_A_PPL, SH_A_PPL_STDERR, sh_eval_perplexity(&t->answers));
    put(m, SH_A_CHANGE, SH_A_CHANGE_STDERR, sh_eval_change(&t->answers));
}

static void fill_part(double *m, const struct sh_eval_total *t, int part, int bucket)
{
    const struct sh_eval_sums *s = &t->part[part][bucket];
    int is_distance = part == SH_EVAL_DISTANCE;
    m[SH_P_TOKENS] = (double)s->tokens;
    put(m, SH_P_NLL, SH_P_NLL_STDERR, sh_eval_nll(s));
    put(m, SH_P_CHANGE, SH_P_CHANGE_STDERR, sh_eval_change(s));
    m[SH_P_ANSWERS] = is_distance ? (double)t->answered[bucket] : (double)NAN;
    m[SH_P_EXACT] = is_distance ? sh_eval_share(t->right[bucket], t->answered[bucket]).value : (double)NAN;
}

void sh_eval_result_fill(struct sh_eval_result *r, const struct sh_eval_total *t)
{
    const struct sh_eval_sums *s = &t->all;
    struct sh_eval_mean nll = sh_eval_nll(s), ppl = sh_eval_perplexity(s), change = sh_eval_change(s),
                        kl = sh_eval_kl(s);
    double *m = r->at;
    r->place = t->place;
    m[SH_E_SEQUENCES] = s->texts;
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
    fill_answers(r->answer, t);
    for (int p = 0; p < SH_EVAL_PARTS; p++)
        for (int b = 0; b < SH_EVAL_BUCKETS; b++)
            fill_part(r->part[p][b], t, p, b);
}

void sh_eval_results_free(struct sh_eval_result *r, int n)
{
    for (int i = 0; i < n; i++)
        free(r[i].settings);
    free(r);
}

/* ---- the store ---- */

static const struct sh_metrics metrics = {"eval", metric, SH_N_EVAL_METRIC},
                               answer_metrics = {"eval", answer_metric, SH_N_ANSWER_METRIC},
                               part_metrics = {"eval", part_metric, SH_P_ANSWERS},
                               distance_metrics = {"eval", part_metric, SH_N_PART_METRIC};

struct parts { struct sh_eval_result *r; int n; const char *store; };

/* "nll@position:33-64"; NULL: of no part. */
static double *part_of(struct sh_eval_result *r, const char *name)
{
    const char *at = strchr(name, '@'), *range = at ? strchr(at, ':') : NULL;
    size_t bare = (size_t)(at - name);
    for (int p = 0; range && p < SH_EVAL_PARTS; p++) {
        const char *part = sh_eval_part_names[p].name;
        if (strncmp(at + 1, part, strlen(part)) || at + 1 + strlen(part) != range)
            continue;
        long long from = strtoll(range + 1, NULL, 10);
        for (int m = 0; m < SH_N_PART_METRIC && from > 0; m++)
            if (strlen(part_metric[m].key) == bare && !strncmp(part_metric[m].key, name, bare))
                return &r->part[p][sh_eval_bucket(from)][m];
    }
    return NULL;
}

static int take_part(void *to, const struct sh_stored_result *stored, struct sh_err *e)
{
    const struct parts *f = to;
    for (int i = 0; i < f->n && strchr(stored->metric, '@'); i++)
        if (f->r[i].is_known && !strcmp(f->r[i].settings, stored->settings)) {
            double *at = part_of(&f->r[i], stored->metric);
            if (sh_result_check(stored, f->store, "eval", e))
                return -1;
            if (at)
                *at = stored->value;
        }
    return 0;
}

/* Figures that contradict each other are as bad as impossible ones. */
static int check_known(const struct sh_eval_result *r, const char *store, struct sh_err *e)
{
    const double *m = r->at;
    char expected[80];
    if (!r->is_known || (m[SH_E_TOKENS] < 1 && isnan(m[SH_E_PPL])))
        return 0;
    if (fabs(m[SH_E_PPL] / exp(m[SH_E_NLL]) - 1) < 1e-6)
        return 0;
    snprintf(expected, sizeof expected, "exp(nll) = %g", exp(m[SH_E_NLL]));
    return sh_result_damaged(store, "eval", r->settings, "ppl", m[SH_E_PPL], expected, e);
}

static int find_figures(struct sh_eval_result *r, int n, const struct sh_metrics *of, struct sh_store *s,
                        struct sh_err *e)
{
    struct sh_metric_row *row = xcalloc((size_t)n, sizeof *row);
    int *is_known = xcalloc((size_t)n, sizeof *is_known), is_answer = of == &answer_metrics;
    for (int i = 0; i < n; i++)
        row[i] = (struct sh_metric_row){r[i].settings, is_answer ? r[i].answer : r[i].at, &is_known[i]};
    int bad = sh_metrics_find(of, row, n, s, e);
    for (int i = 0; i < n && !bad; i++)
        r[i].is_known = is_answer ? r[i].is_known && (is_known[i] || !r[i].has_answers) : is_known[i];
    free(is_known);
    free(row);
    return bad;
}

int sh_eval_results_find(struct sh_eval_result *r, int n, struct sh_store *s, struct sh_err *e)
{
    struct parts f = {r, n, sh_store_path(s)};
    if (find_figures(r, n, &metrics, s, e) || find_figures(r, n, &answer_metrics, s, e))
        return -1;
    for (int i = 0; i < n; i++)
        if (check_known(&r[i], sh_store_path(s), e))
            return -1;
    return sh_store_read_results(s, "eval", take_part, &f, e);
}

/* Parts are small: those without a token are left out. */
static int put_parts(const struct sh_eval_result *r, struct sh_store *s, struct sh_err *e)
{
    char name[96];
    int bad = 0;
    for (int p = 0; p < SH_EVAL_PARTS; p++) {
        long long from = 1, to = SH_EVAL_BUCKET_FIRST;
        for (int b = 0; b < SH_EVAL_BUCKETS; b++, from = to + 1, to *= 2)
            for (int m = 0; m < SH_N_PART_METRIC && r->part[p][b][SH_P_TOKENS] > 0 && !bad; m++) {
                snprintf(name, sizeof name, "%s@%s:%lld-%lld", part_metric[m].key, sh_eval_part_names[p].name, from,
                         to);
                if (m < SH_P_ANSWERS || p == SH_EVAL_DISTANCE)
                    bad = sh_store_result(s, "eval", r->settings, name, -1, -1, r->part[p][b][m], e);
            }
    }
    return bad;
}

int sh_eval_result_keep(const struct sh_eval_result *r, struct sh_store *s, struct sh_err *e)
{
    return sh_store_results_begin(s, "eval", r->settings, e) || sh_metrics_put(&metrics, r->settings, r->at, s, e) ||
                   (r->has_answers && sh_metrics_put(&answer_metrics, r->settings, r->answer, s, e)) ||
                   put_parts(r, s, e) || sh_store_results_end(s, e)
               ? -1 : 0;
}

/* ---- the answer ---- */

static void write_parts(const struct sh_eval_result *r, const char *of, struct sh_out *o)
{
    for (int p = 0; p < SH_EVAL_PARTS; p++) {
        long long from = 1, to = SH_EVAL_BUCKET_FIRST;
        if (p == SH_EVAL_DISTANCE && !r->has_answers)
            continue;
        sh_out_list(o, sh_eval_part_names[p].list, p == SH_EVAL_POSITION ? "by position in the text, from 1"
                    : p == SH_EVAL_LENGTH ? "by the tokens of the text"
                                          : "answers by the tokens since the same was said");
        for (int b = 0; b < SH_EVAL_BUCKETS; b++, from = to + 1, to *= 2) {
            const double *m = r->part[p][b];
            if (!(m[SH_P_TOKENS] > 0))
                continue;
            sh_out_item(o);
            sh_out_text(o, "of", "of", of);
            sh_out_int(o, "from", "from", from);
            sh_out_int(o, "to", "to", to);
            sh_metrics_write(p == SH_EVAL_DISTANCE ? &distance_metrics : &part_metrics, m, o);
            sh_out_real(o, "ppl", "ppl", exp(m[SH_P_NLL]), 4);
            sh_out_real(o, "ppl_stderr", "+-", exp(m[SH_P_NLL]) * m[SH_P_NLL_STDERR], 4);
        }
        sh_out_end(o);
    }
}

void sh_eval_place_write(const struct sh_eval_place *p, struct sh_out *o)
{
    sh_out_text(o, "cache_on", "cache", sh_eval_place_name(p));
    sh_out_text(o, "why_host", "on the host because", p->why_host[0] ? p->why_host : NULL);
}

void sh_eval_result_write(const struct sh_eval_result *r, int with_plan, int with_device, struct sh_out *o)
{
    char knobs[SH_POLICY_TEXT];
    const struct sh_eval_cell *c = r->cell;
    sh_out_item(o);
    sh_out_text(o, "policy", "policy", c->spec->policy->name);
    sh_out_text(o, "knobs", "knobs", sh_policy_knobs(c->spec, knobs));
    if (with_plan)
        sh_out_text(o, "plan", "plan", r->plan);
    if (c->budget.tokens)
        sh_out_int(o, "budget", "budget", c->budget.tokens);
    else
        sh_out_real(o, "budget", "budget", c->budget.share, 3);
    sh_out_int(o, "kv_bits", "bits", c->format.bits);
    sh_metrics_write(&metrics, r->at, o);
    if (r->has_answers)
        sh_metrics_write(&answer_metrics, r->answer, o);
    if (with_device)
        sh_eval_place_write(&r->place, o);
    char budget[SH_BUDGET_TEXT],
        *of = xasprintf("%s %s", knobs, r->plan ? r->plan : sh_budget_text(&c->budget, budget));
    write_parts(r, of, o);
    free(of);
}
