/* SPDX-License-Identifier: Apache-2.0 */
/* See theory_run.h. */
#include "src/app/theory/theory_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/theory/bound.h"
#include "planner/theory/lomax.h"
#include "planner/theory/powerlaw_rival.h"
#include "planner/theory/theory_dropped.h"
#include "planner/theory/theory_sample.h"
#include "src/base/interrupt.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/base/common.h"
#include "src/app/common/head_rows.h"
#include "src/app/common/runs.h"
#include "src/app/common/vector_set.h"
#include "src/base/read_number.h"

/* Of the scans for xmin that p rests on, one a replica (powerlaw.h): of 65536 values every candidate costs ten times as
 * much. The sample is scanned so as well for it; the law that is shown is the best of all. */
enum { MOST_CANDIDATES = 1000 };

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int sh_theory_shares(const char *text, double *rho, int *n, struct sh_err *e)
{
    if (sh_read_reals("--budget", text, rho, SH_THEORY_BUDGETS, n, e))
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
    const struct sh_stored_run *run;
    const struct sh_stored_sequence *sequence;
    struct sh_batch scores;
    struct sh_vector_set vectors;
};

int sh_theory_scores(struct sh_store *s, int sequence, int layer, struct sh_batch *out, struct sh_err *e)
{
    return sh_store_blocks(s, SH_BLOCK_SCORES, sequence, layer, -1, sh_store_keep, out, e);
}

static int feed_head(struct layer *l, const struct piece *p, int head, struct sh_err *e)
{
    struct sh_head_rows rows;
    int bad = 0, n = p->sequence->n_tokens, group = p->run->n_head / p->run->n_kv_head;
    const float *v = sh_vector_set_of(&p->vectors, 'v', head / group);
    sh_head_rows_begin(&rows, &p->scores, head);
    for (int t = 0; t < n && !bad; t++) {
        const float *score;
        int first;
        bad = sh_head_rows_next(&rows, t, &score, &first, e);
        if (bad || t < n / 2)
            continue;
        sh_theory_sample_row(l->sample[head], n / 2, t, t + 1 - first, score);
        sh_theory_dropped_row(l->dropped[head], n / 2, t, t + 1 - first, score,
                              v ? v + (size_t)first * (size_t)p->run->d_head : NULL, p->run->d_head);
    }
    sh_head_rows_end(&rows);
    return bad ? sh_err_prefix(e, "head %d", head) : 0;
}

static int feed_sequence(struct layer *l, const struct piece *p, struct sh_err *e)
{
    int bad = 0;
#pragma omp parallel for schedule(dynamic, 1) num_threads(l->q->threads)
    for (int h = 0; h < l->out->n_head; h++) {
        struct sh_err mine;
        if (!sh_interrupted() && feed_head(l, p, h, &mine)) {
#pragma omp critical
            if (!bad) {
                bad = -1;
                *e = mine;
            }
        }
    }
    return bad;
}

/* What the law and the printed theorem say at one share, beside what was measured. */
static void compare(const struct layer *l, int head, int i_rho, const double *f, double *at)
{
    const struct sh_theory_request *q = l->q;
    const struct sh_theory_result *r = l->out;
    struct sh_dropped d;
    struct sh_bound printed;
    double k = f[SH_T_LOMAX_K], b = f[SH_T_LOMAX_B];
    sh_theory_dropped_get(l->dropped[head], i_rho, k, b, &d);
    sh_bound_at(q->rho[i_rho], k, q->epsilon, &printed);
    at[SH_TA_BUDGET] = d.budget;
    at[SH_TA_DROPPED] = d.dropped;
    at[SH_TA_LAW] = d.law;
    at[SH_TA_LAW_CUT] = d.law_cut;
    at[SH_TA_TWICE] = 2 * d.law_cut;
    at[SH_TA_PRINTED] = printed.informative ? printed.bound : (double)NAN;
    at[SH_TA_INFORMATIVE] = d.rows ? printed.informative : (double)NAN;
    at[SH_TA_FAILURE] = sh_bound_failure(q->rho[i_rho], k, q->epsilon, b, f[SH_T_LARGEST] + b,
                                         fmax(r->least_tokens, 1), fmax(r->most_tokens, 1));
    at[SH_TA_ERROR] = d.error;
    at[SH_TA_ERROR_BOUND] = d.bound;
}

static void fit_head(const struct layer *l, int head)
{
    struct sh_theory_result *r = l->out;
    size_t n, place = (size_t)l->index * (size_t)r->n_head + (size_t)head;
    double *f = r->head + place * SH_N_THEORY_FIGURE;
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
    double figure[SH_N_THEORY_FIGURE] = {
        [SH_T_VALUES] = seen.rows ? (double)seen.values : (double)NAN, [SH_T_SHARE] = seen.share,
        [SH_T_ZEROS] = (double)seen.left_out / (double)(seen.values + seen.left_out),
        [SH_T_LARGEST] = seen.largest, [SH_T_XMIN] = law.xmin, [SH_T_EXPONENT] = law.exponent,
        [SH_T_SIGMA] = law.sigma, [SH_T_TAIL] = law.n_tail ? (double)law.n_tail : (double)NAN, [SH_T_KS] = law.ks,
        [SH_T_P] = test.p, [SH_T_EXPONENTIAL] = thin.ratio, [SH_T_EXPONENTIAL_P] = thin.p,
        [SH_T_LOGNORMAL] = lognormal.ratio, [SH_T_LOGNORMAL_P] = lognormal.p, [SH_T_LOMAX_K] = lomax.k,
        [SH_T_LOMAX_B] = lomax.b};
    memcpy(f, figure, sizeof figure);
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

/* ---- all of it ---- */

struct source {                         /* every sequence of the chosen runs */
    struct sh_store *s;
    struct sh_stored_run *runs;
    int n_run;
    struct sh_stored_sequence **sequence;   /* [n_run] */
    int *n_sequence;
    struct sh_progress progress;
};

static int feed_piece(struct layer *l, struct source *src, int run, int i, struct sh_err *e)
{
    struct piece p = {.run = &src->runs[run], .sequence = &src->sequence[run][i]};
    int layer = l->out->first_layer + l->index, id = p.sequence->id, done = sh_store_is_done(src->s, id, layer, e);
    if (done <= 0) {
        l->out->n_unfinished += !done;
        return done;
    }
    int bad = sh_theory_scores(src->s, id, layer, &p.scores, e) ||
              (strchr(p.run->vectors, 'v') && sh_vector_set_read(&p.vectors, src->s, p.sequence, layer, p.run, e)) ||
              feed_sequence(l, &p, e);
    for (int b = 0; b < p.scores.n_block; b++)
        l->n_score += (long long)sh_rows_scores(p.scores.block[b].first_row, p.scores.block[b].n_rows,
                                                p.scores.block[b].window);
    sh_batch_clear(&p.scores);
    sh_vector_set_free(&p.vectors);
    if (bad)
        return sh_err_prefix(e, "%s: sequence %d, layer %d", sh_store_path(src->s), id, layer);
    return sh_interrupted() ? sh_fail(e, "interrupted") : 0;
}

static int run_layer(struct layer *l, struct source *src, struct sh_err *e)
{
    char detail[32];
    int bad = begin_layer(l, e);
    for (int r = 0; r < src->n_run && !bad; r++)
        for (int i = 0; i < src->n_sequence[r] && !bad; i++)
            bad = feed_piece(l, src, r, i, e);
    if (!bad) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(l->q->threads)
        for (int h = 0; h < l->out->n_head; h++)
            if (!sh_interrupted())
                fit_head(l, h);
        snprintf(detail, sizeof detail, "layer %d", l->out->first_layer + l->index);
        sh_progress_at(&src->progress, (l->index + 1) * l->out->n_head, detail);
        bad = sh_interrupted() ? sh_fail(e, "interrupted") : 0;
    }
    end_layer(l);
    return bad;
}

static int check_run(const struct sh_stored_run *r, const struct sh_stored_run *first, const char *path,
                     struct sh_err *e)
{
    if (r->record != SH_RECORD_FULL) {
        sh_fail(e, "%s: run %d recorded %s, expected full rows", path, r->id, sh_record_names[r->record]);
        return sh_runs_hint(e, "with --record full");
    }
    if (r->n_kv_head < 1 || r->n_head < 1 || r->n_head % r->n_kv_head || r->d_head < 1)
        return sh_fail(e, "%s: run %d: found n_head %d and n_kv_head %d: n_head must be a multiple of n_kv_head", path,
                       r->id, r->n_head, r->n_kv_head);
    if (r->first_layer != first->first_layer || r->last_layer != first->last_layer || r->n_head != first->n_head) {
        sh_misused(e, "%s: run %d has layers %d-%d, but run %d has layers %d-%d", path, first->id, first->first_layer,
                   first->last_layer, r->id, r->first_layer, r->last_layer);
        return sh_hint(e, "select one with --run N");
    }
    return 0;
}

static int open_source(struct source *src, const struct sh_theory_request *q, struct sh_theory_result *out,
                       struct sh_err *e)
{
    if (sh_runs_choose(src->s, q->run, &src->runs, &src->n_run, e))
        return -1;
    src->sequence = xcalloc((size_t)src->n_run, sizeof(struct sh_stored_sequence *));
    src->n_sequence = xcalloc((size_t)src->n_run, sizeof *src->n_sequence);
    out->has_values = 1;
    for (int r = 0; r < src->n_run; r++) {
        const struct sh_stored_run *run = &src->runs[r];
        if (check_run(run, src->runs, sh_store_path(src->s), e) ||
            sh_store_sequences(src->s, run->id, &src->sequence[r], &src->n_sequence[r], e))
            return -1;
        out->has_values &= strchr(run->vectors, 'v') != NULL;
        for (int i = 0; i < src->n_sequence[r]; i++) {
            int n = src->sequence[r][i].n_tokens;
            out->least_tokens = out->n_sequence && out->least_tokens < n ? out->least_tokens : n;
            out->most_tokens = out->most_tokens > n ? out->most_tokens : n;
            out->n_sequence++;
            out->n_tokens += n;
        }
    }
    return 0;
}

static void close_source(struct source *src)
{
    for (int r = 0; r < src->n_run && src->sequence; r++)
        if (src->sequence[r])
            sh_stored_sequences_free(src->sequence[r], src->n_sequence[r]);
    free(src->sequence);
    free(src->n_sequence);
    if (src->runs)
        sh_stored_runs_free(src->runs, src->n_run);
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

int sh_theory_run(const struct sh_theory_request *q, struct sh_store *s, struct sh_theory_result *out,
                  struct sh_err *e)
{
    struct source src = {.s = s};
    long long n_score = 0;
    *out = (struct sh_theory_result){0};
    int bad = open_source(&src, q, out, e);
    if (!bad) {
        begin_result(out, src.runs, q->n_rho);
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
    close_source(&src);
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
