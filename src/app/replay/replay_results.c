/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/replay/replay_results.h"

#include <math.h>
#include <stdlib.h>

#include "src/base/mem.h"
#include "src/app/store/results.h"

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
    return sh_settings_text("replay", (const struct sh_value[]){
        {"policy", .text = row->spec->policy->name}, {"knobs", .text = sh_policy_knobs(row->spec, knobs)},
        {"budget", .text = sh_budget_text(row->budget, budget)}, {"allocator", .text = allocator},
        {"rows", .text = q->rows == SH_ROWS_RECORDED ? "recorded" : "renormalised"}, {"prefill", .whole = q->prefill},
        {"error_every", .whole = q->error_every}, {"seed", .bits = q->seed}, {"run", .whole = q->run},
        {"model", .text = runs[0].fingerprint}, {"sequences", .whole = sequences}, {"tokens", .whole = tokens},
        {"layers_done", .whole = done}, {0}});
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
        row->all[m] = sh_replay_total_mean(t, cell, figure_of[m], -1);
        for (int l = 0; l < row->n_layer; l++)
            row->layer[l * SH_M_LAYER_METRICS + m] = sh_replay_total_mean(t, cell, figure_of[m], l);
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
    row->all[SH_M_RESIDENT_BYTES] = sh_replay_total_heads(t) *
        (sh_replay_total_mean_peak(t, cell) * per_token + sh_replay_total_policy_bytes(t, cell));
}

struct point { double x, y; };

static int by_x(const void *a, const void *b)
{
    const struct point *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
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

static int take(struct sh_replay_row *row, const struct sh_result_row *kept)
{
    int seen = 0;
    sh_result_get(kept, &sh_replay_metrics, row->all);
    for (int i = 0; i < kept->n; i++) {
        int m = sh_metric_index(&sh_replay_metrics, kept->at[i].metric), l = kept->at[i].layer - row->first_layer;
        if (m >= 0 && m < SH_M_LAYER_METRICS && l >= 0 && l < row->n_layer)
            row->layer[l * SH_M_LAYER_METRICS + m] = kept->at[i].value;
        seen |= m >= 0;
    }
    return seen;
}

int sh_replay_rows_find(struct sh_replay_row *row, char *const *settings, int n, int are_new, struct sh_store *s,
                        struct sh_err *e)
{
    struct sh_stored_run *runs;
    int n_run, found = 0;
    if (sh_store_runs(s, &runs, &n_run, e))
        return -1;
    for (int i = 0; i < n && n_run && found >= 0; i++) {
        struct sh_result_row kept;
        if (row[i].is_known)
            continue;
        free(row[i].layer);
        row[i].layer = NULL;
        found = sh_result_find(s, "replay", settings[i], &kept, e);
        if (found > 0) {
            make_layers(&row[i], runs[0].first_layer, runs[0].last_layer - runs[0].first_layer + 1);
            row[i].is_known = take(&row[i], &kept) && !are_new;
        }
        sh_result_free(&kept);
    }
    sh_stored_runs_free(runs, n_run);
    return found < 0 ? -1 : 0;
}

int sh_replay_row_keep(const struct sh_replay_row *row, const char *settings, const struct sh_measured *on,
                       struct sh_store *s, struct sh_err *e)
{
    struct sh_result_row kept = {.on = *on};
    for (int m = 0; m < SH_N_REPLAY_METRIC; m++) {
        const char *key = sh_replay_metrics.metric[m].key;
        sh_result_add(&kept, -1, row->all[m], "%s", key);
        for (int l = 0; l < row->n_layer && m < SH_M_LAYER_METRICS; l++)
            sh_result_add(&kept, row->first_layer + l, row->layer[l * SH_M_LAYER_METRICS + m], "%s", key);
    }
    return sh_result_keep(s, "replay", settings, &kept, e);
}
