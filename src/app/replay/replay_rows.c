/* SPDX-License-Identifier: Apache-2.0 */
/* See replay_rows.h. */
#include "src/app/replay/replay_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/mem.h"

static const char *const names[SH_N_REPLAY_METRIC] = {
    [SH_M_KEPT_MASS] = "kept_mass", [SH_M_KEPT_MASS_NO_SINK] = "kept_mass_no_sink",
    [SH_M_PIVOTAL_RECALL] = "pivotal_recall", [SH_M_OUTPUT_ERROR] = "output_error", [SH_M_STABILITY] = "stability",
    [SH_M_MEAN_TOKENS] = "mean_tokens",
    [SH_M_KEPT_MASS_LOW] = "kept_mass_low", [SH_M_KEPT_MASS_HIGH] = "kept_mass_high",
    [SH_M_OUTPUT_ERROR_LOW] = "output_error_low", [SH_M_OUTPUT_ERROR_HIGH] = "output_error_high",
    [SH_M_PEAK_TOKENS] = "peak_tokens", [SH_M_BUDGET_TOKENS] = "budget_tokens",
    [SH_M_RESIDENT_BYTES] = "resident_bytes"};

static const enum sh_replay_figure figure_of[SH_M_LAYER_METRICS] = {
    [SH_M_KEPT_MASS] = SH_KEPT_MASS, [SH_M_KEPT_MASS_NO_SINK] = SH_KEPT_MASS_NO_SINK,
    [SH_M_PIVOTAL_RECALL] = SH_PIVOTAL_RECALL, [SH_M_OUTPUT_ERROR] = SH_OUTPUT_ERROR,
    [SH_M_STABILITY] = SH_STABILITY, [SH_M_MEAN_TOKENS] = SH_OCCUPANCY};

char *sh_replay_row_settings(const struct sh_replay_row *row, const struct sh_replay_request *q, const char *allocator,
                             const struct sh_stored_run *runs, int n_run)
{
    char knobs[SH_POLICY_TEXT], budget[SH_BUDGET_TEXT];
    long long tokens = 0, done = 0;
    int sequences = 0;
    for (int i = 0; i < n_run; i++) {
        sequences += runs[i].n_sequence;
        tokens += runs[i].n_tokens;
        done += runs[i].n_done;
    }
    return xasprintf("{\"policy\": \"%s\", \"knobs\": \"%s\", \"budget\": \"%s\", \"allocator\": \"%s\", "
                     "\"rows\": \"%s\", \"prefill\": %d, \"error_every\": %d, \"seed\": %llu, \"run\": %d, "
                     "\"model\": \"%s\", \"sequences\": %d, \"tokens\": %lld, \"layers_done\": %lld}",
                     row->spec->policy->name, sh_policy_knobs(row->spec, knobs), sh_budget_text(row->budget, budget),
                     allocator, q->rows == SH_ROWS_RECORDED ? "recorded" : "renormalised", q->prefill, q->error_every,
                     (unsigned long long)q->seed, q->run, runs[0].fingerprint, sequences, tokens, done);
}

static void make_layers(struct sh_replay_row *row, int first_layer, int n_layer)
{
    row->first_layer = first_layer;
    row->n_layer = n_layer;
    row->layer = xcalloc((size_t)n_layer * SH_M_LAYER_METRICS, sizeof *row->layer);
    for (int i = 0; i < n_layer * SH_M_LAYER_METRICS; i++)
        row->layer[i] = (double)NAN;
}

void sh_replay_row_fill(struct sh_replay_row *row, const struct sh_replay_result *r, int cell, uint64_t seed)
{
    const struct sh_replay_total *t = r->total;
    for (int m = 0; m < SH_N_REPLAY_METRIC; m++)
        row->all[m] = (double)NAN;
    make_layers(row, r->first_layer, r->last_layer - r->first_layer + 1);
    for (int m = 0; m < SH_M_LAYER_METRICS; m++) {
        row->all[m] = sh_replay_total_all(t, cell, figure_of[m]);
        for (int l = 0; l < row->n_layer; l++)
            row->layer[l * SH_M_LAYER_METRICS + m] = sh_replay_total_layer(t, cell, figure_of[m], l);
    }
    double low, high;
    if (!sh_replay_total_interval(t, cell, SH_KEPT_MASS, seed, &low, &high)) {
        row->all[SH_M_KEPT_MASS_LOW] = low;
        row->all[SH_M_KEPT_MASS_HIGH] = high;
    }
    if (!sh_replay_total_interval(t, cell, SH_OUTPUT_ERROR, seed, &low, &high)) {
        row->all[SH_M_OUTPUT_ERROR_LOW] = low;
        row->all[SH_M_OUTPUT_ERROR_HIGH] = high;
    }
    enum { F16 = 2, K_AND_V = 2, POSITION = 4 };
    row->all[SH_M_PEAK_TOKENS] = sh_replay_total_peak(t, cell);
    double per_token = K_AND_V * F16 * r->d_head + POSITION;
    row->all[SH_M_RESIDENT_BYTES] = (double)row->n_layer * r->n_kv_head *
        (sh_replay_total_mean_peak(t, cell) * per_token + sh_replay_total_policy_bytes(t, cell));
}

void sh_replay_rows_free(struct sh_replay_row *row, int n)
{
    for (int i = 0; i < n; i++)
        free(row[i].layer);
}

struct point { double x, y; };

static int by_x(const void *a, const void *b)
{
    double x = ((const struct point *)a)->x, y = ((const struct point *)b)->x;
    return (x > y) - (x < y);
}

double sh_replay_rows_area(const struct sh_replay_row *row, int n_budget)
{
    struct point p[SH_MAX_BUDGETS];
    double x[SH_MAX_BUDGETS], y[SH_MAX_BUDGETS];
    int n = 0;
    for (int b = 0; b < n_budget; b++)
        if (!isnan(row[b].all[SH_M_KEPT_MASS]))
            p[n++] = (struct point){row[b].all[SH_M_BUDGET_TOKENS], row[b].all[SH_M_KEPT_MASS]};
    qsort(p, (size_t)n, sizeof *p, by_x);
    for (int b = 0; b < n; b++) {
        x[b] = p[b].x;
        y[b] = p[b].y;
    }
    return sh_area_mean(x, y, n);
}

/* ---- the store ---- */

struct found {
    struct sh_replay_row *row;
    char *const *settings;
    int n, last;                        /* last: where the search begins, since results lie together */
};

static int metric_of(const char *name)
{
    for (int m = 0; m < SH_N_REPLAY_METRIC; m++)
        if (!strcmp(names[m], name))
            return m;
    return -1;
}

static int take(void *to, const struct sh_stored_result *r, struct sh_err *e)
{
    struct found *f = to;
    (void)e;
    int m = metric_of(r->metric), i;
    for (i = 0; i < f->n && strcmp(f->settings[(f->last + i) % f->n], r->settings); i++)
        ;
    if (m < 0 || i == f->n)
        return 0;
    f->last = (f->last + i) % f->n;
    struct sh_replay_row *row = &f->row[f->last];
    if (!row->is_known) {
        row->is_known = 1;
        for (int k = 0; k < SH_N_REPLAY_METRIC; k++)
            row->all[k] = (double)NAN;
    }
    if (r->layer < 0)
        row->all[m] = r->value;
    else if (m < SH_M_LAYER_METRICS && r->layer >= row->first_layer && r->layer < row->first_layer + row->n_layer)
        row->layer[(r->layer - row->first_layer) * SH_M_LAYER_METRICS + m] = r->value;
    return 0;
}

int sh_replay_rows_find(struct sh_replay_row *row, char *const *settings, int n, struct sh_store *s, struct sh_err *e)
{
    struct found f = {row, settings, n, 0};
    struct sh_stored_run *runs;
    int n_run;
    if (sh_store_runs(s, &runs, &n_run, e))
        return -1;
    for (int i = 0; i < n && n_run; i++)
        make_layers(&row[i], runs[0].first_layer, runs[0].last_layer - runs[0].first_layer + 1);
    sh_stored_runs_free(runs, n_run);
    int bad = sh_store_read_results(s, "replay", take, &f, e);
    for (int i = 0; i < n; i++)
        if (bad || !row[i].is_known) {
            free(row[i].layer);
            row[i].layer = NULL;
        }
    return bad;
}

int sh_replay_row_keep(const struct sh_replay_row *row, const char *settings, struct sh_store *s, struct sh_err *e)
{
    int bad = sh_store_results_begin(s, "replay", settings, e);
    for (int m = 0; m < SH_N_REPLAY_METRIC && !bad; m++) {
        bad = sh_store_result(s, "replay", settings, names[m], -1, -1, row->all[m], e);
        for (int l = 0; l < row->n_layer && m < SH_M_LAYER_METRICS && !bad; l++)
            bad = sh_store_result(s, "replay", settings, names[m], row->first_layer + l, -1,
                                  row->layer[l * SH_M_LAYER_METRICS + m], e);
    }
    return bad ? -1 : sh_store_results_end(s, e);
}
