/* SPDX-License-Identifier: Apache-2.0 */
/* shears replay: what eviction policies would have kept of the recorded attention. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"
#include "src/app/replay/replay_job.h"
#include "src/app/store/measured.h"
#include "src/app/store/results.h"
#include "src/app/common/recorded.h"

struct replay_args {
    const char *db, *rows, *dump, *allocator, *shard;
    struct sh_list policy, budget;
    long long prefill, run, dump_every, error_every;
    int force;
    double rank_timeout;
};

#define F(name) offsetof(struct replay_args, name)
static const struct sh_opt opts[] = {
    SH_STORE_OPT(F(db)),
    SH_POLICIES_OPT(F(policy), "eviction policies (see shears info policies); all: every one that the\n"
                    "trace supports (default: full window streaming h2o tova scissorhands)"),
    SH_BUDGETS_OPT(F(budget)),
    SH_PREFILL_OPT(F(prefill), "0"),
    SH_TEXT("allocator", F(allocator), "NAME[:knob=value,...]", "how budgets are split over layers and heads (see "
        "shears plan --help;\ndefault: uniform)"),
    SH_ROWS_OPT(F(rows)),
    SH_INT("error-every", F(error_every), "N", 0, 1 << 22,
        "compute the output error for every N-th row; 0: never (default: 1)"),
    SH_DUMP_OPTS(F),
    SH_RUN_OPT(F(run), 0),
    SH_FORCE_OPT(F(force)),
    SH_PART_OPT(F(shard)),
    SH_CLUSTER_OPT(F(rank_timeout)),
    {0}};

static const struct replay_args defaults = {
    .rows = "renormalised", .allocator = "uniform", .dump_every = 1, .error_every = 1,
    .rank_timeout = SH_RANK_TIMEOUT_S};

/* ---- the request ---- */

static int has_what_it_needs(const struct sh_replay_job *w, const struct sh_policy *p)
{
    int ok = !(p->needs & SH_NEEDS_PROMPT) || w->q.prefill > 0;
    for (int i = 0; i < w->n_run; i++)
        ok &= (!(p->needs & SH_NEEDS_KEYS) || strchr(w->runs[i].vectors, 'k')) &&
              (!(p->needs & SH_NEEDS_VALUES) || strchr(w->runs[i].vectors, 'v')) &&
              (!(p->needs & SH_NEEDS_QUERIES) || strchr(w->runs[i].vectors, 'q'));
    return ok;
}

static int add_policy(struct sh_replay_job *w, const char *text, struct sh_err *e)
{
    if (w->q.n_spec == SH_REPLAY_POLICIES)
        return sh_misused(e, "--policy: more than %d policies", SH_REPLAY_POLICIES);
    return sh_policy_parse_own(text, w->cluster.common.policy, &w->spec[w->q.n_spec], e) ? -1 : (w->q.n_spec++, 0);
}

static int read_policies(struct sh_replay_job *w, const struct sh_list *list, struct sh_err *e)
{
    static const char *const usual[] = {"full", "window", "streaming", "h2o", "tova", "scissorhands"};
    w->q.leave_out_small = list->n != 1;
    for (size_t i = 0; !list->n && i < sizeof usual / sizeof *usual; i++)
        if (add_policy(w, usual[i], e))
            return -1;
    for (int i = 0; i < list->n; i++) {
        if (strcmp(list->at[i], "all")) {
            if (add_policy(w, list->at[i], e))
                return sh_err_prefix(e, "--policy");
            continue;
        }
        w->q.leave_out_small = 1;
        for (int k = 0; sh_policies[k]; k++)
            if (has_what_it_needs(w, sh_policies[k]) && add_policy(w, sh_policies[k]->name, e))
                return -1;
    }
    return 0;
}

/* Of several policies those without room under a budget are left out there; -1: all are, everywhere. */
static int any_has_room(const struct sh_replay_job *w, struct sh_store *s, struct sh_err *e)
{
    struct sh_err first = {.status = SH_OK}, other;
    for (int i = 0; i < w->q.n_spec * w->q.n_budget; i++) {
        struct sh_replay_request one = w->q;
        one.spec += i / w->q.n_budget;
        one.budget += i % w->q.n_budget;
        one.n_spec = one.n_budget = 1;
        one.leave_out_small = 0;
        if (!sh_replay_check(&one, s, i ? &other : &first))
            return 0;
    }
    *e = first;
    return -1;
}

static int read_request(const struct replay_args *a, const struct sh_common *common, struct sh_replay_job *w,
                        struct sh_store *s, struct sh_err *e)
{
    enum sh_rows rows;
    if (sh_read_rows(a->rows, &rows, e))
        return -1;
    if (sh_allocator_parse(a->allocator, &w->allocator, e))
        return sh_err_prefix(e, "--allocator");
    w->q = (struct sh_replay_request){.spec = w->spec, .budget = w->budget, .prefill = (int)a->prefill,
                                      .rows = rows, .error_every = (int)a->error_every,
                                      .seed = (uint64_t)common->seed,
                                      .threads = (int)common->threads, .quiet = common->quiet, .run = (int)a->run,
                                      .dump_every = (int)a->dump_every};
    if (sh_replay_work_runs(w, e) || read_policies(w, &a->policy, e) ||
        sh_read_budgets(&a->budget, w->budget, &w->q.n_budget, e) ||
        (!a->budget.n && sh_budget_parse("0.1,0.2,0.3,0.5", w->budget, &w->q.n_budget, e)))
        return -1;
    return sh_replay_check(&w->q, s, e) || any_has_room(w, s, e) ? -1 : 0;
}

/* Keeps the results in the store if it is writable; a read-only store can still be analysed. */
static void keep_results(const struct sh_replay_job *w, const char *path)
{
    struct sh_err e;
    struct sh_store *s = sh_store_typed(sh_store_update(path, &e), w->cluster.common.line);
    int bad = !s || sh_replay_work_keep(w, 0, w->n_row, s, &e);
    sh_store_close(s);
    if (bad)
        sh_store_tell_unkept("results are", path, w->cluster.common.quiet, &e);
}

static int mark(const struct sh_replay_job *w, struct sh_store *store, int is_whole, struct sh_err *e)
{
    struct sh_part_results r = {.command = "replay", .settings = xcalloc((size_t)w->n_row + 1, sizeof *r.settings),
                                .own = xcalloc((size_t)w->n_row + 1, 1), .n = w->n_row, .has_weights = 1,
                                .model = strtoull(w->runs[0].fingerprint, NULL, 16)};
    for (int i = 0; i < w->n_row; i++) {
        r.settings[i] = w->settings[i];
        r.own[i] = sh_replay_work_is_own(w, i) && (!is_whole || w->row[i].layer);
    }
    int bad = sh_part_mark_results(store, &w->shard, &r, is_whole, e);
    free(r.settings);
    free(r.own);
    return bad;
}

/* ---- the results ---- */

/* The best known for a budget: the kept mass of the oracle in this request, or NaN. */
static double oracle_mass(const struct sh_replay_job *w, int i_budget)
{
    for (int i = 0; i < w->q.n_spec; i++)
        if (!strcmp(w->spec[i].policy->name, "oracle"))
            return w->row[i * w->q.n_budget + i_budget].all[SH_M_KEPT_MASS];
    return (double)NAN;
}

static void write_layers(struct sh_out *o, const struct sh_replay_row *row)
{
    sh_out_list(o, "layers", "layers");
    for (int l = 0; l < row->n_layer; l++) {
        const double *m = row->layer + l * SH_M_LAYER_METRICS;
        sh_out_item(o);
        sh_out_int(o, "layer", "layer", row->first_layer + l);
        sh_metric_write(&sh_replay_metrics, SH_M_OUTPUT_ERROR, m[SH_M_OUTPUT_ERROR], o);
        for (int k = SH_M_KEPT_MASS; k < SH_M_OUTPUT_ERROR; k++)
            sh_metric_write(&sh_replay_metrics, k, m[k], o);
        sh_out_real(o, "mean_tokens", "mean tokens", m[SH_M_MEAN_TOKENS], 1);
    }
    sh_out_end(o);
}

static void write_row(struct sh_out *o, const struct sh_replay_job *w, int i)
{
    static const enum sh_replay_metric shown[] = {
        SH_M_BUDGET_TOKENS, SH_M_OUTPUT_ERROR, SH_M_OUTPUT_ERROR_LOW, SH_M_OUTPUT_ERROR_HIGH, SH_M_KEPT_MASS,
        SH_M_KEPT_MASS_LOW, SH_M_KEPT_MASS_HIGH, SH_M_KEPT_MASS_NO_SINK, SH_M_PIVOTAL_RECALL, SH_M_STABILITY,
        SH_M_PEAK_TOKENS, SH_M_MEAN_TOKENS, SH_M_RESIDENT_BYTES};
    const struct sh_replay_row *row = &w->row[i];
    char allocator[SH_ALLOT_TEXT];
    sh_out_item(o);
    sh_policy_write(row->spec, o);
    sh_out_text(o, "allocator", "allocator", sh_allot_text(&w->allocator, allocator));
    sh_out_detail(o);
    if (row->budget->tokens)
        sh_out_int(o, "budget", "budget", row->budget->tokens);
    else
        sh_out_real(o, "budget", "budget", row->budget->share, 3);
    for (size_t k = 0; k < sizeof shown / sizeof *shown; k++) {
        if (shown[k] == SH_M_STABILITY)
            sh_out_real(o, "gap_to_oracle", "to oracle", oracle_mass(w, i % w->q.n_budget) - row->all[SH_M_KEPT_MASS],
                        4);
        if (shown[k] == SH_M_STABILITY && isnan(oracle_mass(w, i % w->q.n_budget)))
            sh_out_detail(o);
        sh_metric_write(&sh_replay_metrics, shown[k], row->all[shown[k]], o);
    }
    write_layers(o, row);
}

static void write_areas(struct sh_out *o, const struct sh_replay_job *w)
{
    sh_out_list(o, "curves", "kept mass against the budget: mean height of the curve");
    for (int i = 0; i < w->q.n_spec; i++) {
        sh_out_item(o);
        sh_policy_write(&w->spec[i], o);
        sh_out_real(o, "area", "area", sh_replay_rows_area(&w->row[i * w->q.n_budget], w->q.n_budget), 4);
    }
    sh_out_end(o);
}

/* Where a policy has no room beyond what it protects, it has no figures. */
static void note_left_out(struct sh_out *o, const struct sh_replay_job *w)
{
    char *names, *is = "A dash: not replayed, since the tokens that the policy protects alone fill the budget: ";
    size_t bytes;
    int n = 0;
    FILE *to = xmemstream(&names, &bytes);
    for (int i = 0; i < w->q.n_spec; i++) {
        int n_dash = 0, is_bound;
        for (int b = 0; b < w->q.n_budget; b++) {
            const struct sh_replay_row *row = &w->row[i * w->q.n_budget + b];
            n_dash += row->layer && isnan(row->all[SH_M_KEPT_MASS]);
        }
        char knobs[SH_POLICY_TEXT], *full = xasprintf("%s:%s", w->spec[i].policy->name,
                                                      sh_policy_knobs(&w->spec[i], knobs));
        char *label = sh_policy_label(full, &is_bound);
        if (n_dash)
            fprintf(to, "%s%s (%d)", n++ ? ", " : "", label, sh_policy_least_budget(&w->spec[i]) - 1);
        free(label);
        free(full);
    }
    xmemclose(to, &names, &bytes);
    if (n)
        sh_out_note(o, "%s%s.", is, names);
    free(names);
}

static struct sh_out *describe(const struct sh_replay_job *w)
{
    struct sh_out *o = sh_out_new();
    int known = 0, sequences = 0, unfinished = 0;
    long long tokens = 0;
    for (int i = 0; i < w->n_row; i++)
        known += w->row[i].is_known;
    for (int i = 0; i < w->n_run; i++) {
        sequences += w->runs[i].n_sequence;
        tokens += w->runs[i].n_tokens;
        unfinished += w->runs[i].n_sequence * (w->runs[i].last_layer - w->runs[i].first_layer + 1) - w->runs[i].n_done;
    }
    sh_out_text(o, "model", "model", w->runs[0].model);
    sh_out_text(o, "weights", "weights", w->runs[0].weights);
    sh_measured_write(&w->on, o);
    sh_out_int(o, "sequences", "sequences", sequences);
    sh_out_int(o, "tokens", "tokens", tokens);
    sh_out_int(o, "unfinished", "layers not finished", unfinished);
    sh_out_text(o, "rows", "rows", w->q.rows == SH_ROWS_RECORDED ? "recorded" : "renormalised");
    sh_out_int(o, "prefill", "prefill", w->q.prefill);
    sh_out_list(o, "results", "policies and budgets: means over rows, heads, layers");
    for (int i = 0; i < w->n_row; i++)
        if (w->row[i].layer)                    /* else the row of another shard */
            write_row(o, w, i);
    sh_out_end(o);
    write_areas(o, w);
    sh_out_note(o, "Output error compares policies on this trace; kept mass describes what they keep. Neither");
    sh_out_note(o, "predicts perplexity; shears eval measures it.");
    note_left_out(o, w);
    sh_note_one_token(o, w->budget, w->q.n_budget);
    if (known)
        sh_out_note(o, "%d of %d rows were read from the store; --force recomputes them.", known, w->n_row);
    return o;
}

static int replay(const struct replay_args *a, const char *path, struct sh_replay_job *w, struct sh_err *e)
{
    if (w->cluster.ranks)
        return sh_replay_work_ranks(w, path, e);
    if (!a->force && !a->dump && !w->cluster.common.policy &&
        sh_replay_rows_find(w->row, w->settings, w->n_row, 0, w->store, e))
        return -1;
    struct sh_file *f = a->dump ? sh_file_begin(a->dump, e) : NULL;
    if (a->dump && !f)
        return -1;
    w->q.dump = f ? sh_file_stream(f) : NULL;
    return sh_file_end(f, sh_replay_work_alone(w, e), e) ? -1 : 0;
}

/* A shard's results only count if they can be stored, so its store is created before the work. */
static int replay_shard(const struct replay_args *a, const char *path, struct sh_replay_job *w, struct sh_err *e)
{
    char *own = sh_part_path(path, &w->shard);
    struct sh_store *s = sh_store_typed(sh_store_create(own, e), w->cluster.common.line);
    int bad = !s || mark(w, s, 0, e) || replay(a, path, w, e) || sh_replay_work_keep(w, 0, w->n_row, s, e) ||
              mark(w, s, 1, e);
    int is_empty = bad && s && sh_store_was_made(s) && sh_store_is_empty(s);
    sh_store_close(s);
    if (is_empty)
        sh_store_remove(own);
    free(own);
    return bad ? -1 : 0;
}

static int work(const struct replay_args *a, const char *path, struct sh_replay_job *w, struct sh_err *e)
{
    const struct sh_common *common = &w->cluster.common;
    w->cluster.shares = w->cluster.ranks != NULL;
    if (a->dump && (w->shard.parts || w->cluster.ranks))
        return sh_misused(e, "--dump-kept cannot be combined with --shard or mpirun");
    if (!(w->store = sh_store_open(path, e)))
        return -1;
    int bad = read_request(a, common, w, w->store, e);
    if (!bad) {
        sh_replay_work_rows(w);
        bad = w->shard.parts ? replay_shard(a, path, w, e) : replay(a, path, w, e);
    }
    sh_store_close(w->store);
    if (bad || !sh_job_is_first(&w->cluster))
        return bad ? -1 : 0;
    if (!w->shard.parts && !w->cluster.ranks && !common->policy)    /* a policy may change under its name */
        keep_results(w, path);
    return sh_common_write(common, describe(w), 0, e);
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    const struct replay_args *a = args;
    const char *path = sh_store_path_of("replay", a->db, positional, e);
    if (!path || sh_output_differs("--dump-kept", a->dump, path, e))
        return -1;
    struct sh_replay_job *w = xcalloc(1, sizeof *w);
    w->force = a->force;
    int bad = sh_job_enter(&w->cluster, common, path, a->shard, &w->shard, a->rank_timeout, e) ||
              work(a, path, w, e);
    sh_replay_work_clear(w);
    bad = sh_job_leave(&w->cluster, bad ? -1 : 0, e);
    free(w);
    return bad;
}

const struct sh_cmd sh_cmd_replay = {
    .name = "replay",
    .usage = "--db FILE [--policy NAME[:knob=value,...]...] [--budget LIST] [--prefill N] [--allocator NAME]",
    .summary = "replay eviction policies over recorded attention",
    .about = "Feeds every recorded row to one simulated cache per policy and budget.\n"
             "  output error  |o - o'| / |o| of the head's output, if values were recorded (--vectors v): the best\n"
             "                measure for comparing policies on one trace\n"
             "  kept mass     fraction of the full row's attention that falls on kept tokens\n"
             "  no sinks      the same without the first four tokens and the query's own, which otherwise make all\n"
             "                policies look alike\n"
             "  pivotal       fraction of a row's keys with a score above 1/n (n keys) that are kept\n"
             "  to oracle     the oracle's kept mass minus the policy's\n"
             "  stability     Jaccard index of the kept sets of consecutive steps\n"
             "  peak, mean    kept tokens per head\n"
             "Intervals are bootstrapped over sequences. Queries are those of the full cache, so the replay\n"
             "is exact in the first layer and an approximation in later ones. No result of a replay predicts\n"
             "perplexity: depending on model, text and policy, an increase of 1 % corresponds to a kept mass\n"
             "between 0.88 and more than 0.998. shears eval measures perplexity. Results are kept in the store and\n"
             "reused.\n"
             "\n"
             "  shears replay --db traces.db --policy window h2o:recent=10 scissorhands --budget 0.05..0.5/10",
    .opts = opts, .args_bytes = sizeof(struct replay_args), .defaults = &defaults, .run = run};
