/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/theory/theory_store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/theory/bound.h"
#include "planner/theory/powerlaw.h"
#include "planner/theory/theory_dropped.h"
#include "planner/theory/theory_sample.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/base/team.h"
#include "src/base/read_number.h"
#include "src/app/common/recorded.h"

/* Candidates of a scan for xmin in the test that gives p, which scans the sample and every replica (powerlaw.h): all
 * 65536 values would take ten times as long. The law that is shown is the best of all candidates. */
enum { MOST_CANDIDATES = 1000 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int sh_theory_shares(const char *text, double *rho, int *n, struct sh_err *e)
{
    if (sh_read_reals("--budget", text, 1, rho, SH_THEORY_BUDGETS, n, e))
        return -1;
    for (int i = 0; i < *n; i++)
        if (!(rho[i] > 0 && rho[i] <= 1))
            return sh_misused(e, "--budget: found %g, expected fractions of the sequence above 0, at most 1", rho[i]);
    qsort(rho, (size_t)*n, sizeof *rho, by_value);
    return 0;
}

/* ---- one layer: rows of all its sequences, then the fits ---- */

struct layer {
    const struct sh_theory_request *q;
    struct sh_theory_result *out;
    int index;                          /* from first_layer */
    struct sh_theory_sample **sample;   /* [n_head] */
    struct sh_theory_dropped **dropped;
    long long n_score;                  /* read so far */
};

struct piece {                          /* of one sequence */
    struct layer *l;
    struct sh_recorded r;
};

static int feed_head(void *to, int head, struct sh_err *e)
{
    const struct piece *p = to;
    const struct layer *l = p->l;
    struct sh_head_rows rows;
    int bad = 0, n = p->r.sequence->n_tokens, d = p->r.run->d_head, group = sh_recorded_group(&p->r);
    const float *v = sh_recorded_vectors(&p->r, 'v', head / group);
    if (sh_interrupted())
        return 0;
    sh_head_rows_begin(&rows, &p->r.scores, head);
    for (int t = 0; t < n && !bad; t++) {
        const float *score;
        int first;
        bad = sh_head_rows_next(&rows, t, &score, &first, e);
        if (bad || t < n / 2)
            continue;
        sh_theory_sample_row(l->sample[head], n / 2, t, t + 1 - first, score);
        sh_theory_dropped_row(l->dropped[head], n / 2, t, t + 1 - first, score,
                              v ? v + (size_t)first * (size_t)d : NULL, d);
    }
    sh_head_rows_end(&rows);
    return bad ? sh_err_prefix(e, "head %d", head) : 0;
}

/* The measurement at one share, the law's prediction and the printed theorem's. */
static void compare(const struct layer *l, int head, int i_rho, const double *f, double *at)
{
    const struct sh_theory_request *q = l->q;
    const struct sh_theory_result *r = l->out;
    struct sh_dropped d;
    struct sh_bound printed;
    double k = f[SH_T_LOMAX_K], b = f[SH_T_LOMAX_B];
    sh_theory_dropped_get(l->dropped[head], i_rho, k, b, &d);
    sh_bound_at(q->rho[i_rho], k, q->epsilon, &printed);
    double figure[SH_N_THEORY_AT] = {
        [SH_TA_BUDGET] = d.budget, [SH_TA_DROPPED] = d.dropped, [SH_TA_LAW] = d.law, [SH_TA_LAW_CUT] = d.law_cut,
        [SH_TA_TWICE] = 2 * d.law_cut, [SH_TA_PRINTED] = printed.informative ? printed.bound : (double)NAN,
        [SH_TA_INFORMATIVE] = d.rows ? printed.informative : (double)NAN,
        [SH_TA_FAILURE] = sh_bound_failure(q->rho[i_rho], k, q->epsilon, b, f[SH_T_LARGEST] + b,
                                           fmax(r->least_tokens, 1), fmax(r->most_tokens, 1)),
        [SH_TA_ERROR] = d.error, [SH_TA_ERROR_BOUND] = d.bound};
    memcpy(at, figure, sizeof figure);
}

static void fit_head(const struct layer *l, int head)
{
    struct sh_theory_result *r = l->out;
    size_t n, place = (size_t)l->index * (size_t)r->n_head + (size_t)head;
    const double *x = sh_theory_sample_values(l->sample[head], &n);
    struct sh_theory_seen seen;
    struct sh_powerlaw law, tested;
    struct sh_powerlaw_test test;
    struct sh_powerlaw_rival thin, lognormal;
    struct sh_lomax lomax;
    sh_theory_sample_seen(l->sample[head], &seen);
    sh_powerlaw_scan(x, n, 0, &law);
    sh_powerlaw_scan(x, n, MOST_CANDIDATES, &tested);
    sh_powerlaw_bootstrap(x, n, MOST_CANDIDATES, &tested, l->q->replicas, l->q->seed + place, &test);
    sh_powerlaw_against_exponential(x, n, &law, &thin);
    sh_powerlaw_against_lognormal(x, n, &law, &lognormal);
    sh_lomax_fit(x, n, &lomax);
    double f[SH_N_THEORY_FIGURE] = {
        [SH_T_VALUES] = seen.rows ? (double)seen.values : (double)NAN, [SH_T_SHARE] = seen.share,
        [SH_T_ZEROS] = (double)seen.left_out / (double)(seen.values + seen.left_out),
        [SH_T_LARGEST] = seen.largest, [SH_T_XMIN] = law.xmin, [SH_T_EXPONENT] = law.exponent,
        [SH_T_SIGMA] = law.sigma, [SH_T_TAIL] = law.n_tail ? (double)law.n_tail : (double)NAN, [SH_T_KS] = law.ks,
        [SH_T_P] = test.p, [SH_T_EXPONENTIAL] = thin.ratio, [SH_T_EXPONENTIAL_P] = thin.p,
        [SH_T_LOGNORMAL] = lognormal.ratio, [SH_T_LOGNORMAL_P] = lognormal.p, [SH_T_LOMAX_K] = lomax.k,
        [SH_T_LOMAX_B] = lomax.b};
    memcpy(r->head + place * SH_N_THEORY_FIGURE, f, sizeof f);
    r->verdict[place] = test.verdict;
    for (int i = 0; i < r->n_rho; i++)
        compare(l, head, i, f, r->at + (place * (size_t)r->n_rho + (size_t)i) * SH_N_THEORY_AT);
}

static int begin_layer(struct layer *l, struct sh_err *e)
{
    int n = l->out->n_head;
    l->sample = xcalloc((size_t)n, sizeof(struct sh_theory_sample *));
    l->dropped = xcalloc((size_t)n, sizeof(struct sh_theory_dropped *));
    for (int h = 0; h < n; h++) {
        l->sample[h] = sh_theory_sample_new(SH_THEORY_CAP, l->q->seed + (uint64_t)(l->index * n + h));
        l->dropped[h] = sh_theory_dropped_new(l->q->rho, l->q->n_rho);
        if (!l->dropped[h])
            return sh_misused(e, "--budget: expected increasing fractions, each above 0, at most 1");
    }
    return 0;
}

static void end_layer(struct layer *l)
{
    for (int h = 0; h < l->out->n_head; h++) {
        sh_theory_sample_free(l->sample[h]);
        sh_theory_dropped_free(l->dropped[h]);
    }
    free(l->sample);
    free(l->dropped);
}

struct source {
    struct sh_store *s;
    struct sh_runs runs;
    struct sh_progress progress;
};

static int feed_piece(struct layer *l, struct source *src, int run, int i, struct sh_err *e)
{
    struct piece p = {l, {.store = src->s, .run = &src->runs.run[run], .sequence = &src->runs.sequence[run][i],
                          .layer = l->out->first_layer + l->index}};
    const struct sh_batch *scores = &p.r.scores;
    int done = sh_store_layer(src->s, p.r.sequence->id, p.r.layer, e);
    if (done != SH_LAYER_DONE) {
        l->out->n_unfinished += !done;
        return done < 0 ? -1 : 0;
    }
    int bad = sh_recorded_read(&p.r, strchr(p.r.run->vectors, 'v') != NULL, e) ||
              sh_each_head(p.r.n_head, l->q->threads, feed_head, &p, e);
    for (int b = 0; b < scores->n_block; b++)
        l->n_score += (long long)sh_rows_scores(scores->block[b].first_row, scores->block[b].n_rows,
                                                scores->block[b].window);
    return sh_recorded_end(&p.r, bad, e);
}

static void fit_one(void *arg, int head)
{
    if (!sh_interrupted())
        fit_head(arg, head);
}

static int run_layer(struct layer *l, struct source *src, struct sh_err *e)
{
    char detail[32];
    int bad = begin_layer(l, e);
    for (int r = 0; r < src->runs.n && !bad; r++)
        for (int i = 0; i < src->runs.n_sequence[r] && !bad; i++)
            bad = feed_piece(l, src, r, i, e);
    if (!bad) {
        sh_team_each(l->q->threads, l->out->n_head, fit_one, l);
        snprintf(detail, sizeof detail, "layer %d", l->out->first_layer + l->index);
        sh_progress_at(&src->progress, (l->index + 1) * l->out->n_head, detail);
        bad = sh_interrupted() ? sh_fail(e, "interrupted") : 0;
    }
    end_layer(l);
    return bad;
}

static int check_run(const struct sh_stored_run *r, const char *path, struct sh_err *e)
{
    if (r->record != SH_RECORD_FULL)
        return sh_fail(e, "%s: run %d recorded %s, expected full rows", path, r->id, sh_record_names[r->record]),
               sh_runs_hint(e, "with --record full");
    if (r->n_kv_head < 1 || r->n_head < 1 || r->n_head % r->n_kv_head || r->d_head < 1)
        return sh_fail(e, "%s: run %d: found n_head %d and n_kv_head %d: n_head must be a multiple of n_kv_head", path,
                       r->id, r->n_head, r->n_kv_head);
    return 0;
}

static int open_source(struct source *src, const struct sh_theory_request *q, struct sh_theory_result *out,
                       struct sh_err *e)
{
    if (sh_runs_open(&src->runs, src->s, q->run, e))
        return -1;
    out->has_values = 1;
    for (int r = 0; r < src->runs.n; r++) {
        const struct sh_stored_run *run = &src->runs.run[r];
        if (check_run(run, sh_store_path(src->s), e))
            return -1;
        out->has_values &= strchr(run->vectors, 'v') != NULL;
        for (int i = 0; i < src->runs.n_sequence[r]; i++) {
            int n = src->runs.sequence[r][i].n_tokens;
            out->least_tokens = out->n_sequence && out->least_tokens < n ? out->least_tokens : n;
            out->most_tokens = out->most_tokens > n ? out->most_tokens : n;
            out->n_sequence++;
            out->n_tokens += n;
        }
    }
    return sh_runs_agree(&src->runs, src->s, e);
}

static void begin_result(struct sh_theory_result *out, const struct sh_stored_run *run, int n_rho)
{
    out->model = xstrdup(run->model);
    out->weights = xstrdup(run->weights);
    out->first_layer = run->first_layer;
    out->n_layer = run->last_layer - run->first_layer + 1;
    out->n_head = run->n_head;
    out->n_rho = n_rho;
    size_t n = (size_t)out->n_layer * (size_t)out->n_head;
    out->head = xcalloc(n * SH_N_THEORY_FIGURE, sizeof *out->head);
    out->at = xcalloc(n * (size_t)n_rho * SH_N_THEORY_AT, sizeof *out->at);
    out->verdict = xcalloc(n, sizeof *out->verdict);
}

int sh_theory_run(const struct sh_theory_request *q, struct sh_store *s, struct sh_theory_result *out, struct sh_err *e)
{
    struct source src = {.s = s};
    long long n_score = 0;
    *out = (struct sh_theory_result){0};
    int bad = open_source(&src, q, out, e);
    if (!bad) {
        begin_result(out, src.runs.run, q->n_rho);
        sh_progress_begin(&src.progress, "measuring", "heads", out->n_layer * out->n_head, q->quiet);
        for (int i = 0; i < out->n_layer && !bad; i++) {
            struct layer l = {.q = q, .out = out, .index = i};
            bad = run_layer(&l, &src, e);
            n_score += l.n_score;
        }
        sh_progress_end(&src.progress);
        if (!bad && !n_score)
            bad = sh_fail(e, "%s: no layer is finished", sh_store_path(s));
    }
    sh_runs_close(&src.runs);
    if (bad)
        sh_theory_result_free(out);
    return bad ? -1 : 0;
}

void sh_theory_result_free(struct sh_theory_result *r)
{
    free(r->model);
    free(r->weights);
    free(r->head);
    free(r->at);
    free(r->verdict);
    *r = (struct sh_theory_result){0};
}

/* ---- figures of heads, layers and the whole ---- */

/* The mean over a layer's heads that have the figure. x: that of the first head; those of others are `step` apart. */
static double layer_mean(const double *x, int n_head, size_t step)
{
    double sum = 0;
    int there = 0;
    for (int h = 0; h < n_head; h++, x += step)
        if (!isnan(*x)) {
            sum += *x;
            there++;
        }
    return there ? sum / there : (double)NAN;
}

/* x: the figure of the first head of the first layer. */
static double figure_of(const struct sh_theory_result *r, const double *x, size_t step, int i_layer, int head)
{
    double sum = 0;
    int there = 0;
    if (i_layer >= 0) {
        x += (size_t)(i_layer * r->n_head) * step;
        return head >= 0 ? x[(size_t)head * step] : layer_mean(x, r->n_head, step);
    }
    for (int l = 0; l < r->n_layer; l++, x += (size_t)r->n_head * step) {
        double mean = layer_mean(x, r->n_head, step);
        sum += isnan(mean) ? 0 : mean;
        there += !isnan(mean);
    }
    return there ? sum / there : (double)NAN;
}

double sh_theory_figure(const struct sh_theory_result *r, int i_layer, int head, enum sh_theory_figure f)
{
    return figure_of(r, r->head + f, SH_N_THEORY_FIGURE, i_layer, head);
}

double sh_theory_at(const struct sh_theory_result *r, int i_layer, int head, int i_rho, enum sh_theory_at f)
{
    return figure_of(r, r->at + (size_t)i_rho * SH_N_THEORY_AT + f, (size_t)r->n_rho * SH_N_THEORY_AT, i_layer, head);
}

int sh_theory_has(const struct sh_theory_result *r, int i_layer, int head)
{
    return !isnan(sh_theory_figure(r, i_layer, head, SH_T_VALUES));
}

int sh_theory_heads(const struct sh_theory_result *r, int i_layer)
{
    int n = 0;
    for (int l = i_layer < 0 ? 0 : i_layer; l < (i_layer < 0 ? r->n_layer : i_layer + 1); l++)
        for (int h = 0; h < r->n_head; h++)
            n += sh_theory_has(r, l, h);
    return n;
}

int sh_theory_verdicts(const struct sh_theory_result *r, int i_layer, enum sh_powerlaw_verdict v)
{
    int n = 0;
    for (int l = i_layer < 0 ? 0 : i_layer; l < (i_layer < 0 ? r->n_layer : i_layer + 1); l++)
        for (int h = 0; h < r->n_head; h++)
            n += r->verdict[l * r->n_head + h] == v;
    return n;
}
