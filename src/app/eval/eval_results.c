/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/eval/eval_results.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/app/store/results.h"

const struct sh_eval_part_name sh_eval_part_names[SH_EVAL_PARTS + 1] = {
    [SH_EVAL_POSITION] = {"position", "by_position"}, [SH_EVAL_LENGTH] = {"length", "by_length"},
    [SH_EVAL_DISTANCE] = {"distance", "by_distance"}, [SH_EVAL_PARTS] = {NULL, NULL}};

char *sh_eval_settings(const struct sh_policy_spec *spec, const struct sh_budget *of, const struct sh_kv_format *f,
                       const uint64_t *plan, const struct sh_eval_scene *c)
{
    char knobs[SH_POLICY_TEXT], budget[SH_BUDGET_TEXT];
    int is_pruned = c->weight_prune > 0;
    return sh_settings_text(c->task ? "task" : "eval", (const struct sh_value[]){
        {"policy", .text = spec->policy->name}, {"knobs", .text = sh_policy_knobs(spec, knobs)},
        {"budget", .text = sh_budget_text(of, budget)}, {"kv_bits", .whole = f->bits},
        {"group", .whole = f->bits < 16 ? f->group : 0}, {"keys", .text = f->by_channel ? "channel" : NULL},
        {"residual", .whole = f->residual, .is_absent = !f->by_channel}, {"prefill", .whole = c->prefill},
        {"prefill_block", .whole = c->prefill_block, .is_absent = !c->prefill_block},
        {"model", .bits = c->model}, {"task", .text = c->task}, {"shots", .whole = c->shots},
        {c->task ? "items" : "texts", .bits = c->on.hash}, {"dtype", .text = c->dtype},
        {"weight_bits", .whole = c->weight_bits}, {"seed", .bits = c->seed},
        SH_ACTIVATION_SETTING(c->activation_bits, c->is_stream || c->task ? 16 : 32),
        {"weight_prune", .real = c->weight_prune, .is_absent = !is_pruned},
        {"unpruned", .bits = c->unpruned, .is_absent = !is_pruned},
        {"answers", .bits = c->answers, .is_absent = !c->answers},
        {"plan", .bits = plan ? *plan : 0, .is_absent = !plan}, {0}});
}

void sh_eval_result_name(struct sh_eval_result *r, const struct sh_eval_scene *c)
{
    const struct sh_eval_cell *cell = r->cell;
    r->has_answers = c->answers != 0;
    r->on = c->on;
    r->settings = sh_eval_settings(cell->spec, &cell->budget, &cell->format, r->plan ? &r->plan_hash : NULL, c);
}

static void put(double *at, int value, int error, struct sh_eval_mean m)
{
    at[value] = m.value;
    at[error] = m.error;
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

void sh_eval_bound(const double *at, double sequences, double bound[SH_N_BOUND_METRIC])
{
    struct sh_eval_mean change = {at[SH_E_CHANGE], at[SH_E_CHANGE_STDERR]};
    bound[SH_B_INCREASE] = expm1(change.value);
    bound[SH_B_BOUND] = sh_eval_increase_bound(change, (long long)(sequences > 0 ? sequences : at[SH_E_TOKENS]));
    bound[SH_B_SEQUENCES] = sequences;
}

void sh_eval_result_fill(struct sh_eval_result *r, const struct sh_eval_total *t, const struct sh_eval_sequences *q)
{
    const struct sh_eval_sums *s = &t->all;
    double *m = r->at;
    int are_enough = q->n >= SH_EVAL_LEAST_SEQUENCES;
    r->place = t->place;
    m[SH_E_SEQUENCES] = s->texts;
    m[SH_E_TOKENS] = (double)s->tokens;
    put(m, SH_E_NLL, SH_E_NLL_STDERR, sh_eval_nll(s));
    put(m, SH_E_PPL, SH_E_PPL_STDERR, sh_eval_perplexity(s));
    put(m, SH_E_CHANGE, SH_E_CHANGE_STDERR, sh_eval_change(s));
    put(m, SH_E_KL, SH_E_KL_STDERR, sh_eval_kl(s));
    if (are_enough) {
        m[SH_E_NLL_STDERR] = sh_eval_sequences_nll(q).error;
        m[SH_E_PPL_STDERR] = m[SH_E_PPL] * m[SH_E_NLL_STDERR];
        m[SH_E_CHANGE_STDERR] = sh_eval_sequences_change(q).error;
        m[SH_E_KL_STDERR] = sh_eval_sequences_kl(q).error;
    }
    sh_eval_bound(m, are_enough ? q->n : 0, r->bound);
    m[SH_E_SAME] = sh_eval_agreement(s);
    m[SH_E_BUDGET_TOKENS] = s->texts > 0 ? s->budget_tokens / s->texts : (double)NAN;
    m[SH_E_PEAK_TOKENS] = s->peak_tokens;
    m[SH_E_KV_BYTES] = (double)s->kv_bytes;
    m[SH_E_RATE] = s->seconds > 0 ? (double)s->read / s->seconds : (double)NAN;
    m = r->answer;
    m[SH_A_ANSWERS] = (double)t->n_answer;
    put(m, SH_A_EXACT, SH_A_EXACT_STDERR, sh_eval_share(t->n_right, t->n_answer));
    put(m, SH_A_NLL, SH_A_NLL_STDERR, sh_eval_nll(&t->answers));
    put(m, SH_A_PPL, SH_A_PPL_STDERR, sh_eval_perplexity(&t->answers));
    put(m, SH_A_CHANGE, SH_A_CHANGE_STDERR, sh_eval_change(&t->answers));
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

/* "nll@position:33-64"; NULL: of no part. */
static double *part_of(struct sh_eval_result *r, const char *name)
{
    char key[64];
    const char *at = strchr(name, '@'), *range = at ? strchr(at, ':') : NULL;
    long long from = range ? strtoll(range + 1, NULL, 10) : 0;
    snprintf(key, sizeof key, "%.*s", at ? (int)(at - name) : 0, name);
    int m = sh_metric_index(&sh_eval_distance_metrics, key);
    for (int p = 0; m >= 0 && from > 0 && p < SH_EVAL_PARTS; p++) {
        const char *part = sh_eval_part_names[p].name;
        if (!strncmp(at + 1, part, strlen(part)) && at + 1 + strlen(part) == range)
            return &r->part[p][sh_eval_bucket(from)][m];
    }
    return NULL;
}

/* Figures that contradict each other are damaged. */
static int check_ppl(const struct sh_eval_result *r, const char *store, struct sh_err *e)
{
    const double *m = r->at;
    char expected[80];
    if (m[SH_E_TOKENS] < 1 && isnan(m[SH_E_PPL]))
        return 0;
    if (fabs(m[SH_E_PPL] / exp(m[SH_E_NLL]) - 1) < 1e-6)
        return 0;
    snprintf(expected, sizeof expected, "exp(nll) = %g", exp(m[SH_E_NLL]));
    return sh_result_damaged(store, "eval", r->settings, "ppl", m[SH_E_PPL], expected, e);
}

/* 1: found; 0; -1 */
static int find(struct sh_eval_result *r, struct sh_store *s, struct sh_err *e)
{
    struct sh_result_row row;
    int found = sh_result_find(s, "eval", r->settings, &row, e);
    if (found > 0)
        found = sh_result_get(&row, &sh_eval_metrics, r->at) &&
                (!r->has_answers || sh_result_get(&row, &sh_eval_answer_metrics, r->answer));
    if (found > 0) {                    /* none: of a version whose errors were over tokens */
        double sequences = sh_result(&row, "error_sequences", -1);
        sh_eval_bound(r->at, sequences > 0 ? sequences : 0, r->bound);
    }
    for (int i = 0; found > 0 && i < row.n; i++) {
        double *at = part_of(r, row.at[i].metric);
        if (at)
            *at = row.at[i].value;
    }
    sh_result_free(&row);
    return found > 0 && check_ppl(r, sh_store_path(s), e) ? -1 : found;
}

int sh_eval_results_find(struct sh_eval_result *r, int n, int are_new, struct sh_store *s, struct sh_err *e)
{
    for (int i = 0; i < n; i++) {
        int found = r[i].is_known ? 0 : find(&r[i], s, e);
        if (found < 0)
            return -1;
        r[i].is_known |= found && !are_new;
    }
    return 0;
}

int sh_eval_result_keep(const struct sh_eval_result *r, const struct sh_eval_sequences *q, struct sh_store *s,
                        struct sh_err *e)
{
    struct sh_result_row row = {.on = r->on, .sums = q->n ? &q->at->tokens : NULL,
                                .n_sums = (size_t)q->n * (sizeof *q->at / sizeof q->at->tokens)};
    sh_result_add_all(&row, &sh_eval_metrics, -1, r->at);
    sh_result_add(&row, -1, r->bound[SH_B_SEQUENCES], "error_sequences");
    if (r->has_answers)
        sh_result_add_all(&row, &sh_eval_answer_metrics, -1, r->answer);
    for (int p = 0; p < SH_EVAL_PARTS; p++) {
        const struct sh_metrics *of = p == SH_EVAL_DISTANCE ? &sh_eval_distance_metrics : &sh_eval_part_metrics;
        long long from = 1, to = SH_EVAL_BUCKET_FIRST;
        for (int b = 0; b < SH_EVAL_BUCKETS; b++, from = to + 1, to *= 2)
            for (int m = 0; m < of->n && r->part[p][b][SH_P_TOKENS] > 0; m++)  /* buckets without tokens are left out */
                sh_result_add(&row, -1, r->part[p][b][m], "%s@%s:%lld-%lld", of->metric[m].key,
                              sh_eval_part_names[p].name, from, to);
    }
    return sh_result_keep(s, "eval", r->settings, &row, e);
}

/* of: policy's knobs and budget; the policy, with knobs, is the table's first column. */
static void write_parts(const struct sh_eval_result *r, const char *of, const char *budget, struct sh_out *o)
{
    for (int p = 0; p < SH_EVAL_PARTS; p++) {
        long long from = 1, to = SH_EVAL_BUCKET_FIRST;
        if (p == SH_EVAL_DISTANCE && !r->has_answers)
            continue;
        sh_out_list(o, sh_eval_part_names[p].list, p == SH_EVAL_POSITION ? "by position in the text, from 1"
                    : p == SH_EVAL_LENGTH ? "by the length of the text in tokens"
                                          : "answers by the number of tokens since the answer was said");
        for (int b = 0; b < SH_EVAL_BUCKETS; b++, from = to + 1, to *= 2) {
            const double *m = r->part[p][b];
            if (!(m[SH_P_TOKENS] > 0))
                continue;
            sh_out_item(o);
            sh_out_text(o, "of", "of", of);
            sh_out_shown(o, budget);
            sh_out_int(o, "from", "from", from);
            sh_out_int(o, "to", "to", to);
            sh_metrics_write(p == SH_EVAL_DISTANCE ? &sh_eval_distance_metrics : &sh_eval_part_metrics, m, o);
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

void sh_eval_cell_write(const struct sh_policy_spec *spec, const char *const *plan, const struct sh_budget *budget,
                        int bits, struct sh_out *o)
{
    sh_out_item(o);
    sh_policy_write(spec, o);
    if (plan)
        sh_out_text(o, "plan", "plan", *plan);
    if (budget->tokens)
        sh_out_int(o, "budget", "budget", budget->tokens);
    else
        sh_out_real(o, "budget", "budget", budget->share, 3);
    sh_out_int(o, "kv_bits", "bits", bits);
    if (bits >= 16)
        sh_out_detail(o);
}

void sh_eval_result_write(const struct sh_eval_result *r, int with_plan, int with_device, struct sh_out *o)
{
    char knobs[SH_POLICY_TEXT], budget[SH_BUDGET_TEXT];
    const struct sh_eval_cell *c = r->cell;
    sh_eval_cell_write(c->spec, with_plan ? &r->plan : NULL, &c->budget, c->format.bits, o);
    sh_metrics_write(&sh_eval_bound_metrics, r->bound, o);
    sh_out_detail(o);                   /* the sequences: the same in all rows, and said above them */
    sh_metrics_write(&sh_eval_metrics, r->at, o);
    if (r->has_answers)
        sh_metrics_write(&sh_eval_answer_metrics, r->answer, o);
    if (with_device)
        sh_eval_place_write(&r->place, o);
    const char *limit = r->plan ? r->plan : sh_budget_text(&c->budget, budget);
    char *of = xasprintf("%s %s", sh_policy_knobs(c->spec, knobs), limit);
    write_parts(r, of, limit, o);
    free(of);
}
