/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/plan/allot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/app/persistence/persistence_study.h"
#include "src/base/mem.h"

enum { CURVE_POINTS = 24 };             /* more of them where curves bend: at small budgets */

const char *sh_allot_text(const struct sh_allocator_spec *s, char text[SH_ALLOT_TEXT])
{
    char knobs[SH_POLICY_TEXT];
    sh_allocator_knobs(s, knobs);
    snprintf(text, SH_ALLOT_TEXT, "%s%s%s", s->allocator->name, *knobs ? ":" : "", knobs);
    return text;
}

static int curve_tokens(const struct sh_allot *a, double share, int n_token)
{
    int n = (int)floor(share * n_token + 0.5), least = a->floor < n_token ? a->floor : n_token;
    return n < least ? least : n;
}

static int curve_budget(void *to, int i_budget, int n_token, int layer, int head)
{
    const struct sh_allot *a = to;
    (void)layer;
    (void)head;
    return curve_tokens(a, a->curve_share[i_budget], n_token);
}

/* The policy itself under even budgets, as it will be replayed with others. */
static int measure_curve(struct sh_allot *a, const struct sh_replay_request *q, struct sh_store *s, struct sh_err *e)
{
    struct sh_replay_request grid = *q;
    struct sh_replay_result r = {0};
    struct sh_budget whole[CURVE_POINTS];
    a->n_point = CURVE_POINTS;
    a->curve_share = xcalloc(CURVE_POINTS, sizeof *a->curve_share);
    for (int k = 0; k < CURVE_POINTS; k++) {
        double x = (double)k / (CURVE_POINTS - 1);
        a->curve_share[k] = x * x;
        whole[k] = (struct sh_budget){0, 1};
    }
    grid.budget = whole;
    grid.n_budget = CURVE_POINTS;
    grid.error_every = 0;
    grid.dump = NULL;
    grid.share_out = curve_budget;
    grid.share_to = a;
    int bad = sh_replay_run(&grid, s, &r, e);
    a->curve = xcalloc((size_t)a->n_layer * (size_t)a->n_head * CURVE_POINTS, sizeof *a->curve);
    for (int i = 0; i < a->n_layer * a->n_head * CURVE_POINTS && !bad; i++)
        a->curve[i] = sh_replay_total_head(r.total, i % CURVE_POINTS, SH_KEPT_MASS,
                                           i / CURVE_POINTS / a->n_head, i / CURVE_POINTS % a->n_head);
    sh_replay_result_free(&r);
    return bad;
}

static void take_study(struct sh_allot *a, const struct sh_study *y, int cell)
{
    if (a->spec.allocator->needs & SH_EVIDENCE_PERSISTENCE)
        a->persistence = xcalloc((size_t)a->n_layer, sizeof *a->persistence);
    if (a->spec.allocator->needs & SH_EVIDENCE_ENTROPY)
        a->entropy = xcalloc((size_t)a->n_layer * (size_t)a->n_head, sizeof *a->entropy);
    for (int l = 0; l < a->n_layer; l++) {
        if (a->persistence)
            a->persistence[l] = sh_study_layer(y, cell, l)[SH_RATIO];
        int n_query = sh_study_n_head(y, cell, l), group = n_query / (a->heads[l] ? a->heads[l] : 1);
        for (int h = 0; h < n_query && a->entropy; h++)
            a->entropy[l * a->n_head + h / group] += sh_study_head(y, cell, l, h)[SH_ENTROPY] / group;
    }
}

static int measure_study(struct sh_allot *a, const struct sh_replay_request *q, struct sh_store *s, struct sh_err *e)
{
    int by_ratio = a->spec.allocator->needs & SH_EVIDENCE_PERSISTENCE;
    struct sh_alpha alpha = {SH_ALPHA_ROW, by_ratio ? sh_allocator_knob(&a->spec, "alpha") : 1};
    struct sh_study *y = xcalloc(1, sizeof *y);
    struct sh_stats_spec usual;
    sh_stats_spec_default(&usual);
    *y = (struct sh_study){.window = usual.window, .threads = q->threads, .quiet = q->quiet, .run = q->run};
    int cell = sh_study_add(y, &alpha, by_ratio ? (int)sh_allocator_knob(&a->spec, "recent") : 0, 0.5);
    int bad = sh_study_run(y, s, e);
    const struct sh_persistence *p = bad ? NULL : y->part[0].p;
    if (!bad && sh_persistence_n_layer(p) != a->n_layer)
        bad = sh_fail(e, "%s: found %d finished layers, expected %d: run the same trace command again to finish them",
                      sh_store_path(s), sh_persistence_n_layer(p), a->n_layer);
    if (!bad)
        take_study(a, y, cell);
    sh_study_free(y);
    free(y);
    return bad;
}

static int ascending(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static int take_lengths(struct sh_allot *a, struct sh_store *s, const struct sh_runs *runs, struct sh_err *e)
{
    int all = 0, n = 0;
    for (int i = 0; i < runs->n; i++) {
        int count = runs->n_sequence[i];
        a->length = xreallocarray(a->length, (size_t)(all + count) + 1, sizeof *a->length);
        for (int k = 0; k < count; k++)
            a->length[all++] = runs->sequence[i][k].n_tokens;
    }
    if (!all)
        return sh_fail(e, "%s: contains no sequence, expected at least one", sh_store_path(s));
    qsort(a->length, (size_t)all, sizeof *a->length, ascending);
    for (int i = 0; i < all; i++)
        if (!n || a->length[n - 1] != a->length[i])
            a->length[n++] = a->length[i];
    a->n_length = n;
    return 0;
}

int sh_allot_missing(const struct sh_allocator_spec *s, const int *heads, int n_layer)
{
    unsigned of_all = SH_EVIDENCE_PERSISTENCE | SH_EVIDENCE_ENTROPY | SH_EVIDENCE_SCORE;
    int l = 0;
    while (l < n_layer && heads[l])
        l++;
    return l == n_layer || !(s->allocator->needs & of_all) ? -1 : l;
}

int sh_allot_refuse(const struct sh_allocator_spec *s, int layer, struct sh_err *e)
{
    sh_misused(e, "the allocator %s needs the attention of every layer, but layer %d of this model does not attend",
               s->allocator->name, layer);
    return sh_hint(e, "greedy, uniform, pyramid, funnel and, with --model, loss divide budgets among the layers that "
                   "attend");
}

int sh_allot_open(struct sh_allot *a, const struct sh_allocator_spec *spec, const struct sh_replay_request *q,
                  struct sh_store *s, struct sh_err *e)
{
    if (spec->allocator->needs & SH_EVIDENCE_LOSS) {
        sh_misused(e, "the allocator %s needs the losses of the live model, which a trace does not have",
                   spec->allocator->name);
        return sh_hint(e, "shears plan --model DIR --text FILE --target-ppl-increase 1%% measures them");
    }
    return sh_allot_open_live(a, spec, q, s, e);
}

int sh_allot_open_live(struct sh_allot *a, const struct sh_allocator_spec *spec, const struct sh_replay_request *q,
                       struct sh_store *s, struct sh_err *e)
{
    struct sh_runs runs;
    unsigned needs = spec->allocator->needs;
    if (sh_replay_check(q, s, e) || sh_runs_open(&runs, s, q->run, e))
        return -1;
    const struct sh_stored_run *run = runs.run;
    *a = (struct sh_allot){.spec = *spec, .n_layer = run->last_layer - run->first_layer + 1,
                           .n_head = run->n_kv_head, .first_layer = run->first_layer,
                           .floor = sh_policy_least_budget(&q->spec[0])};
    a->heads = xcalloc((size_t)a->n_layer, sizeof *a->heads);
    int bad = take_lengths(a, s, &runs, e) || sh_runs_agree(&runs, s, e) || sh_runs_layer_heads(&runs, s, a->heads, e);
    int missing = bad ? -1 : sh_allot_missing(spec, a->heads, a->n_layer);
    bad = bad || (missing >= 0 && sh_allot_refuse(spec, a->first_layer + missing, e));
    if (!bad && needs & (SH_EVIDENCE_PERSISTENCE | SH_EVIDENCE_ENTROPY))
        bad = measure_study(a, q, s, e);
    if (!bad && needs & SH_EVIDENCE_CURVE)
        bad = measure_curve(a, q, s, e);
    if (!bad && needs & SH_EVIDENCE_SCORE)
        bad = sh_key_profile(s, &runs, (int)sh_allocator_knob(spec, "window"), q->threads, &a->profile, &a->n_key, e);
    sh_runs_close(&runs);
    if (bad)
        sh_allot_close(a);
    return bad ? -1 : 0;
}

void sh_allot_close(struct sh_allot *a)
{
    free(a->length);
    free(a->persistence);
    free(a->entropy);
    free(a->curve);
    free(a->curve_share);
    free(a->profile);
    free(a->loss);
    free(a->loss_point);
    free(a->table);
    free(a->heads);
    *a = (struct sh_allot){0};
}

/* The curve's points in tokens; points that fall together are one. */
static void scale_curve(const struct sh_allot *a, struct sh_allocation *p, int *point, double *curve)
{
    int *from = xcalloc((size_t)a->n_point, sizeof *from);
    for (int k = 0; k < a->n_point; k++) {
        int tokens = curve_tokens(a, a->curve_share[k], p->n_token);
        if (!p->n_point || point[p->n_point - 1] != tokens)
            p->n_point++;
        point[p->n_point - 1] = tokens;
        from[p->n_point - 1] = k;
    }
    for (int i = 0; i < a->n_layer * a->n_head; i++)
        for (int k = 0; k < p->n_point; k++)
            curve[i * p->n_point + k] = a->curve[i * a->n_point + from[k]];
    p->point = point;
    p->curve = curve;
    free(from);
}

void sh_allot_losses(struct sh_allot *a, const int *point, const double *loss, int n)
{
    size_t all = (size_t)a->n_layer * (size_t)n;
    a->n_loss = n;
    free(a->loss);
    free(a->loss_point);
    a->loss = xmalloc(all * sizeof *loss);
    a->loss_point = xmalloc((size_t)n * sizeof *point);
    memcpy(a->loss, loss, all * sizeof *loss);
    memcpy(a->loss_point, point, (size_t)n * sizeof *point);
}

void sh_allot_layer(const struct sh_allot *a, int layer, int mean, int n_token, int *budget)
{
    struct sh_allocation p = {.n_layer = a->n_layer, .n_head = a->n_head, .mean = mean,
                              .floor = a->floor < n_token ? a->floor : n_token, .n_token = n_token};
    int *point = xcalloc((size_t)a->n_point, sizeof *point);
    double *curve = xcalloc((size_t)a->n_layer * (size_t)a->n_head * (size_t)a->n_point, sizeof *curve);
    scale_curve(a, &p, point, curve);
    p.curve = curve + (size_t)layer * (size_t)a->n_head * (size_t)p.n_point;
    p.n_layer = 1;                      /* the one layer */
    p.heads = &a->heads[layer];
    sh_greedy_layer(&p, 0, (long long)mean * a->heads[layer], budget);
    free(point);
    free(curve);
}

int *sh_allot_heads(const struct sh_allot *a)
{
    int *heads = xmalloc((size_t)a->n_layer * sizeof *heads);
    memcpy(heads, a->heads, (size_t)a->n_layer * sizeof *heads);
    return heads;
}

int sh_allot_longest(const struct sh_allot *a)
{
    return a->length[a->n_length - 1];
}

/* Copies the heads that exist out of x [n_layer][n_head][each]. The caller frees the copy. NULL: x is NULL. */
static double *of_heads(const struct sh_allot *a, const double *x, size_t each)
{
    double *own = x ? xmalloc((size_t)a->n_layer * (size_t)a->n_head * each * sizeof *own) : NULL, *to = own;
    for (int l = 0; l < a->n_layer && x; l++) {
        size_t n = (size_t)a->heads[l] * each;
        memcpy(to, x + (size_t)l * (size_t)a->n_head * each, n * sizeof *to);
        to += n;
    }
    return own;
}

/* Copies the layers that attend out of x [n_layer][each], likewise. */
static double *of_layers(const struct sh_allot *a, const double *x, size_t each)
{
    double *own = x ? xmalloc((size_t)a->n_layer * each * sizeof *own) : NULL;
    for (int l = 0, n = 0; l < a->n_layer && x; l++)
        if (a->heads[l])
            memcpy(own + (size_t)n++ * each, x + (size_t)l * each, each * sizeof *own);
    return own;
}

static int divide(const struct sh_allot *a, struct sh_allocation *p, int *budget, struct sh_err *e)
{
    int *own = xcalloc((size_t)a->n_layer * (size_t)a->n_head, sizeof *own), bad, n = 0;
    int *heads = xcalloc((size_t)a->n_layer * 2, sizeof *heads), *number = heads + a->n_layer;
    for (int l = 0; l < a->n_layer; l++)
        if (a->heads[l]) {
            number[n] = a->first_layer + l;
            heads[n++] = a->heads[l];
        }
    p->n_layer = n;
    p->heads = heads;
    p->number = number;
    bad = sh_allocate(&a->spec, p, own, e);
    for (int l = 0, k = 0; l < a->n_layer && !bad; l++)
        for (int h = 0; h < a->n_head; h++)
            budget[l * a->n_head + h] = h < a->heads[l] ? own[k++] : p->mean;
    free(heads);
    free(own);
    return bad;
}

int sh_allot_solve(const struct sh_allot *a, int mean, int n_token, int *budget, struct sh_err *e)
{
    struct sh_allocation p = {.n_layer = a->n_layer, .n_head = a->n_head, .mean = mean,
                              .floor = a->floor < n_token ? a->floor : n_token, .n_token = n_token,
                              .loss_point = a->loss_point, .n_loss = a->n_loss};
    size_t n = (size_t)a->n_layer * (size_t)a->n_head, each = (size_t)n_token;
    int *point = xcalloc((size_t)a->n_point, sizeof *point);
    double *curve = a->curve ? xcalloc(n * (size_t)a->n_point, sizeof *curve) : NULL;
    double *score = a->profile ? xcalloc(n * each, sizeof *score) : NULL, *own[5];
    for (size_t i = 0; i < n && mean < p.floor; i++)
        budget[i] = mean;
    if (curve)
        scale_curve(a, &p, point, curve);
    for (size_t i = 0; i < n && score; i++)
        memcpy(score + i * each, a->profile + i * (size_t)a->n_key, each * sizeof *score);
    p.persistence = own[0] = of_layers(a, a->persistence, 1);
    p.entropy = own[1] = of_heads(a, a->entropy, 1);
    p.loss = own[2] = of_layers(a, a->loss, (size_t)a->n_loss);
    p.curve = own[3] = of_heads(a, curve, (size_t)p.n_point);
    p.score = own[4] = of_heads(a, score, each);
    int bad = mean < p.floor ? 0 : divide(a, &p, budget, e);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        free(own[i]);
    free(point);
    free(curve);
    free(score);
    return bad;
}

static int look_up(void *to, int i_budget, int n_token, int layer, int head)
{
    const struct sh_allot *a = to;
    const int *at = bsearch(&n_token, a->length, (size_t)a->n_length, sizeof n_token, ascending);
    size_t problem = (size_t)(at - a->length) * (size_t)a->n_budget + (size_t)i_budget;
    return a->table[(problem * (size_t)a->n_layer + (size_t)(layer - a->first_layer)) * (size_t)a->n_head +
                    (size_t)head];
}

int sh_allot_budgets(struct sh_allot *a, struct sh_replay_request *q, struct sh_err *e)
{
    size_t each = (size_t)a->n_layer * (size_t)a->n_head, n = (size_t)q->n_budget;
    free(a->table);
    a->n_budget = q->n_budget;
    a->table = xcalloc((size_t)a->n_length * n * each, sizeof *a->table);
    for (size_t k = 0; k < (size_t)a->n_length; k++)
        for (size_t i = 0; i < n; i++) {
            int mean = sh_budget_tokens(&q->budget[i], a->length[k]);
            mean = mean < a->length[k] ? mean : a->length[k];
            if (sh_allot_solve(a, mean, a->length[k], a->table + (k * n + i) * each, e))
                return -1;
        }
    q->share_out = look_up;
    q->share_to = a;
    return 0;
}
