/* SPDX-License-Identifier: Apache-2.0 */
/* shears drift: how far the tokens kept by a live cache drift from those kept in the replay of a trace. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/weight_bits.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/cli/options.h"
#include "src/app/drift/drift_store.h"
#include "src/app/store/results.h"
#include "src/cli/paths.h"
#include "src/app/replay/replay_store.h"
#include "src/app/common/recorded.h"

struct drift_args {
    struct sh_live_options live;
    const char *db, *rows;
    struct sh_list policy, budget;
    long long run, count, every;
};

#define F(name) offsetof(struct drift_args, name)
#define L(name) F(live.name)
static const struct sh_opt opts[] = {
    SH_TEXT("model", F(live.model), "DIR", "checkpoint that was traced"),
    SH_TEXT("db", F(db), "FILE", "its trace with --record full; the results are stored there"),
    SH_POLICIES_OPT(F(policy), "eviction policies"),
    SH_LIST("budget", F(budget), "LIST", SH_BUDGETS),
    SH_PREFILL_OPT(F(live.prefill), "0"),
    SH_ROWS_OPT(F(rows)),
    SH_RUN_OPT(F(run), 0),
    SH_INT("count", F(count), "N", 1, 1e9, "read only the first N sequences (default: all)"),
    SH_INT("every", F(every), "N", 1, 1 << 22, "list every N-th step (default: list 16 steps)"),
    SH_KV_OPTS(L),
    {"dtype", SH_OPT_FORMAT, F(live.dtype), "f32|f16|bf16", "operand type of matrix products (default: as traced)",
     0, 0, 0},
    SH_INT("weight-bits", F(live.weight_bits), "16|8|4", 0, 0, "bits per weight of the layers (default: as traced)"),
    SH_DEVICE_MEMORY_OPT(F(live.device_memory)),
    {0}};

static const struct drift_args defaults = {.rows = "renormalised", .live = {.kv_group = 64}};

enum { MOST_POLICIES = 64, LISTED = 16 };

struct work {
    const struct drift_args *a;
    const struct sh_common *common;
    struct sh_live_options options;     /* a's, completed by what the trace says                  */
    struct sh_live live;
    struct sh_policy_spec spec[MOST_POLICIES];
    struct sh_budget budget[SH_MAX_BUDGETS];
    int n_spec, n_budget, longest;
    enum sh_rows rows;
    struct sh_store *store;
    struct sh_stored_run *runs;
    int n_run, run;                     /* run: the one of --run or --model; 0: all               */
    struct sh_drift *drift;             /* [n_spec * n_budget]                                    */
    struct sh_progress progress;
    double read;
};

static int read_options(struct work *w, const struct sh_list *positional, struct sh_err *e)
{
    const struct drift_args *a = w->a;
    const struct sh_need needs[] = {{"--model DIR", a->live.model != NULL}, {"--db FILE", a->db != NULL},
                                    {"--policy NAME", a->policy.n > 0}, {"--budget LIST", a->budget.n > 0}, {0}};
    return sh_args_none("drift", positional, e) || sh_args_need("drift", needs, e) ||
           sh_read_rows(a->rows, &w->rows, e) || sh_read_policies(&a->policy, w->spec, MOST_POLICIES, &w->n_spec, e) ||
           sh_read_budgets(&a->budget, w->budget, &w->n_budget, e) ? -1 : 0;
}

/* Options that default to what the trace has. */
static int take_settings(struct work *w, struct sh_err *e)
{
    const struct sh_stored_run *run = &w->runs[0];
    int bits = run->weight_bits;
    if (sh_type_of(run->dtype) < 0 || (bits && !sh_code_bits_fit(bits)))
        return sh_fail(e,
                       "%s: damaged: run %d: found dtype \"%.40s\" and %d weight bits, expected f32, f16 or bf16, and "
                       "16, 8 or 4", w->a->db, run->id, run->dtype, bits);
    w->options = w->a->live;
    w->options.dtype = w->options.dtype ? w->options.dtype : run->dtype;
    w->options.weight_bits = w->options.weight_bits ? w->options.weight_bits : bits;
    return 0;
}

/* Refuses what replay refuses, and a trace of another model. */
static int open_trace(struct work *w, struct sh_err *e)
{
    struct sh_replay_request q = {.spec = w->spec, .n_spec = w->n_spec, .budget = w->budget, .n_budget = w->n_budget,
                                  .rows = w->rows, .prefill = (int)w->a->live.prefill, .run = (int)w->a->run};
    if (!(w->store = sh_store_open(w->a->db, e)) || sh_runs_fit(w->store, w->a->live.model, &q.run, e) ||
        sh_runs_choose(w->store, w->run = q.run, &w->runs, &w->n_run, e) || sh_replay_check(&q, w->store, e) ||
        take_settings(w, e))
        return -1;
    for (int i = 0; i < w->n_run; i++) {
        struct sh_stored_sequence *stored;
        int n;
        if (w->runs[i].first_layer != w->runs[0].first_layer || w->runs[i].last_layer != w->runs[0].last_layer)
            return sh_fail(e, "%s: runs %d and %d recorded different layers", w->a->db, w->runs[0].id, w->runs[i].id),
                   sh_hint(e, "select one with --run N");
        if (sh_store_sequences(w->store, w->runs[i].id, &stored, &n, e))
            return -1;
        for (int k = 0; k < n; k++)
            w->longest = stored[k].n_tokens > w->longest ? stored[k].n_tokens : w->longest;
        sh_stored_sequences_free(stored, n);
    }
    return w->longest ? 0 : sh_fail(e, "%s: contains no sequence, expected at least one", w->a->db);
}

static int open_model(struct work *w, struct sh_err *e)
{
    char fingerprint[24];
    if (sh_live_read(&w->live, &w->options, w->common, "drift", e) || sh_live_open(&w->live, w->common, e))
        return -1;
    const struct sh_arch *a = sh_model_arch(w->live.model);
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, sh_model_fingerprint(w->live.model));
    for (int i = 0; i < w->n_run; i++)
        if (strcmp(fingerprint, w->runs[i].fingerprint) || w->runs[i].n_layer != a->n_layer ||
            w->runs[i].n_kv_head != a->n_kv_head)
            return sh_fail(e, "%s: run %d: found model %s (%s), expected that of %s", w->a->db, w->runs[i].id,
                           w->runs[i].model, w->runs[i].weights, w->a->live.model);
    return sh_live_load(&w->live, w->longest, w->longest < 256 ? w->longest : 256, 0, e);
}

static void on_tokens(void *to, int tokens)
{
    struct work *w = to;
    sh_progress_at(&w->progress, w->read += tokens, "");
}

static int compare_all(struct work *w, struct sh_err *e)
{
    int n = w->n_spec * w->n_budget, bad = 0;
    double tokens = 0;
    for (int i = 0; i < w->n_run; i++)
        tokens += (double)w->runs[i].n_tokens;
    w->drift = xcalloc((size_t)n, sizeof *w->drift);
    sh_progress_begin(&w->progress, "comparing", "tokens", tokens * n, w->common->quiet);
    for (int i = 0; i < n && !bad; i++) {
        struct sh_drift_request q = {.live = &w->live, .store = w->store, .run = w->runs, .n_run = w->n_run,
                                     .spec = &w->spec[i / w->n_budget], .budget = &w->budget[i % w->n_budget],
                                     .rows = w->rows, .most = (int)w->a->count, .progress = on_tokens,
                                     .progress_to = w};
        bad = sh_drift_run(&q, &w->drift[i], e);
    }
    sh_progress_end(&w->progress);
    return bad;
}

/* ---- the answer ---- */

/* Every so many steps are listed. */
static int spacing(const struct work *w)
{
    int step = w->longest / LISTED;
    return w->a->every ? (int)w->a->every : step ? step : 1;
}

static char *name_cell(const struct work *w, int i)
{
    char knobs[SH_POLICY_TEXT], budget[SH_BUDGET_TEXT];
    const struct sh_policy_spec *p = &w->spec[i / w->n_budget];
    return sh_settings_text("drift", (const struct sh_value[]){
        {"policy", .text = p->policy->name}, {"knobs", .text = sh_policy_knobs(p, knobs)},
        {"budget", .text = sh_budget_text(&w->budget[i % w->n_budget], budget)}, {"rows", .text = w->a->rows},
        {"prefill", .whole = w->options.prefill}, {"kv_bits", .whole = w->live.format.bits},
        {"group", .whole = w->live.format.bits < 16 ? w->live.format.group : 0}, {"dtype", .text = w->options.dtype},
        {"weight_bits", .whole = w->options.weight_bits}, {"run", .whole = w->run}, {"count", .whole = w->a->count},
        {"every", .whole = spacing(w)}, {"seed", .bits = w->live.seed}, {0}});
}

static void fill_layer(const struct sh_drift_layer *d, double *m)
{
    m[SH_D_JACCARD] = d->steps ? d->sum / (double)d->steps : (double)NAN;
    m[SH_D_LEAST] = d->least;
    m[SH_D_SAME_FIRST] = (double)d->same_first / d->heads;
    m[SH_D_FIRST_DIFFERENCE] = d->first_difference < 0 ? (double)NAN : d->first_difference;
}

static void add_layer(struct sh_result_row *row, const struct sh_drift_layer *d, int n_step, int every)
{
    double at[SH_N_DRIFT_METRIC];
    fill_layer(d, at);
    sh_result_add_all(row, &sh_drift_metrics, d->layer, at);
    for (int t = 0; t < n_step; t += every)
        if (d->n_at[t])
            sh_result_add(row, d->layer, d->at[t] / d->n_at[t], "jaccard_step_%d", t);
}

static double sum_of(const double *x)
{
    double sum = 0;
    for (int b = 0; b < SH_CHANGE_BINS; b++)
        sum += x[b];
    return sum;
}

static void add_change(struct sh_result_row *row, const struct sh_score_change *c)
{
    double pairs = sum_of(c->pairs), mass = sum_of(c->mass);
    char from[16] = "left";
    for (int b = 0; b < SH_CHANGE_BINS && pairs > 0; b++) {
        if (b)
            snprintf(from, sizeof from, "%.1f", sh_score_change_from(b));
        sh_result_add(row, -1, c->pairs[b] / pairs, "score_change@pairs:%s", from);
        sh_result_add(row, -1, c->mass[b] / mass, "score_change@mass:%s", from);
    }
}

/* Keeps the results in the store if it is writable; a read-only store can still be analysed. */
static void keep_results(struct work *w)
{
    struct sh_err e;
    sh_store_close(w->store);
    w->store = sh_store_typed(sh_store_update(w->a->db, &e), w->common->line);
    int bad = !w->store;
    for (int i = 0; i < w->n_spec * w->n_budget && !bad; i++) {
        const struct sh_drift *d = &w->drift[i];
        struct sh_result_row row = {0};
        char *settings = name_cell(w, i);
        for (int l = 0; l < d->n_layer; l++)
            add_layer(&row, &d->layer[l], d->n_step, spacing(w));
        add_change(&row, &d->change);
        bad = sh_result_keep(w->store, "drift", settings, &row, &e);
        free(settings);
    }
    if (bad)
        sh_store_tell_unkept("results are", w->a->db, w->common->quiet, &e);
}

static void write_layer(struct sh_out *o, const struct sh_drift *d, const struct sh_drift_layer *l, int every)
{
    double at[SH_N_DRIFT_METRIC];
    sh_out_item(o);
    sh_out_real(o, "budget_tokens", "tokens", d->budget_tokens, 1);
    sh_out_int(o, "layer", "layer", l->layer);
    fill_layer(l, at);
    for (int m = 0; m < SH_N_DRIFT_METRIC; m++)
        sh_metric_write(&sh_drift_metrics, m, at[m], o);
    sh_out_list(o, "steps", "steps");
    for (int t = 0; t < d->n_step; t += every)
        if (l->n_at[t]) {
            sh_out_item(o);
            sh_out_int(o, "step", "step", t);
            sh_out_real(o, "jaccard", "Jaccard", l->at[t] / l->n_at[t], 4);
        }
    sh_out_end(o);
}

/* Fraction of x in bins with a change of at most 0.2 in either direction. */
static double near_zero(const double *x)
{
    double sum = 0;
    for (int b = 1; b < SH_CHANGE_BINS - 1; b++)
        if (sh_score_change_from(b) > -0.25 && sh_score_change_from(b + 1) < 0.25)
            sum += x[b];
    return sum / sum_of(x);
}

static void write_change(struct sh_out *o, const struct sh_score_change *c)
{
    double pairs = sum_of(c->pairs), mass = sum_of(c->mass);
    sh_out_real(o, "pairs_left", "scores evicted", c->pairs[0] / pairs, 4);
    sh_out_real(o, "mass_left", "their attention", c->mass[0] / mass, 4);
    sh_out_real(o, "pairs_within_0_2", "within 0.2", near_zero(c->pairs), 4);
    sh_out_real(o, "mass_within_0_2", "by attention", near_zero(c->mass), 4);
    sh_out_list(o, "bins", "bins");
    for (int b = 0; b < SH_CHANGE_BINS; b++) {
        sh_out_item(o);
        sh_out_real(o, "from", "from", b ? sh_score_change_from(b) : -1, 1);
        sh_out_real(o, "to", "to", !b ? -1 : b < SH_CHANGE_BINS - 1 ? sh_score_change_from(b + 1) : (double)NAN, 1);
        sh_out_real(o, "pairs", "scores", c->pairs[b] / pairs, 4);
        sh_out_real(o, "mass", "attention", c->mass[b] / mass, 4);
    }
    sh_out_end(o);
}

static void write_cell(struct sh_out *o, const struct work *w, int i)
{
    const struct sh_budget *b = &w->budget[i % w->n_budget];
    sh_out_item(o);
    sh_policy_write(&w->spec[i / w->n_budget], o);
    if (b->tokens)
        sh_out_int(o, "budget", "budget", b->tokens);
    else
        sh_out_real(o, "budget", "budget", b->share, 3);
}

static int report(const struct work *w, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    sh_out_text(o, "model", "model", w->runs[0].model);
    sh_out_int(o, "sequences", "sequences", w->drift[0].n_sequence);
    sh_out_text(o, "rows", "rows of the replay", w->a->rows);
    sh_out_int(o, "prefill", "prefill", w->options.prefill);
    sh_out_show(o, "layers");
    sh_out_list(o, "results", "policies and budgets");
    for (int i = 0; i < w->n_spec * w->n_budget; i++) {
        write_cell(o, w, i);
        sh_out_list(o, "layers", "kept sets: live cache and replay (means over heads, from the first eviction on)");
        for (int l = 0; l < w->drift[i].n_layer; l++)
            write_layer(o, &w->drift[i], &w->drift[i].layer[l], spacing(w));
        sh_out_end(o);
    }
    sh_out_end(o);
    sh_out_list(o, "score_changes", "scores compared with the full cache: (live - recorded) / recorded, at some steps");
    for (int i = 0; i < w->n_spec * w->n_budget; i++) {
        write_cell(o, w, i);
        write_change(o, &w->drift[i].change);
    }
    sh_out_end(o);
    sh_note_one_token(o, w->budget, w->n_budget);
    if (w->runs[0].codec != SH_CODEC_F32)
        sh_out_note(o, "The trace is rounded (%s), so the replay may break near ties differently, even in layer 0.\n"
                    "With shears trace --codec f32, only ties within f32 rounding can differ.",
                    sh_codec_names[w->runs[0].codec]);
    return sh_common_write(w->common, o, 0, e);
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct work *w = xcalloc(1, sizeof *w);
    w->a = args;
    w->common = common;
    int bad = read_options(w, positional, e) || open_trace(w, e) || open_model(w, e) || compare_all(w, e);
    if (!bad) {
        keep_results(w);
        bad = report(w, e);
    }
    for (int i = 0; w->drift && i < w->n_spec * w->n_budget; i++)
        sh_drift_free(&w->drift[i]);
    free(w->drift);
    sh_live_close(&w->live);
    if (w->runs)
        sh_stored_runs_free(w->runs, w->n_run);
    sh_store_close(w->store);
    free(w);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_drift = {
    .name = "drift",
    .usage = "--model DIR --db FILE --policy NAME[:knob=value,...]... --budget LIST [options]",
    .summary = "compare the tokens kept by a live cache with those kept in replay",
    .about = "Runs the model over a trace's tokens with a live cache under a budget and replays the trace with the\n"
             "same policy, then reports the Jaccard index of the two kept sets per layer and step. In the first layer\n"
             "both see the same attention, so any difference there is rounding: that of the codec (or of --rows\n"
             "recorded), or of f32 where a policy accumulates scores and two sums nearly tie. Evicted tokens do not\n"
             "come back. In later layers the live model's own attention also depends on earlier evictions.\n"
             "\n"
             "  shears drift --model opt-125m --db traces.db --policy scissorhands --budget 0.2",
    .opts = opts, .args_bytes = sizeof(struct drift_args), .defaults = &defaults, .run = run};
