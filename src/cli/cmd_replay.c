/* SPDX-License-Identifier: Apache-2.0 */
/* shears replay: what eviction policies would have kept of the recorded attention. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/cli/allot.h"
#include "src/cli/cluster.h"
#include "src/cli/commands.h"
#include "src/cli/part.h"
#include "src/cli/paths.h"
#include "src/cli/replay_rows.h"
#include "src/cli/runs.h"

struct replay_args {
    const char *db, *rows, *dump, *allocator, *shard;
    struct sh_list policy, budget;
    long long prefill, run, dump_every, error_every;
    int force;
    double rank_timeout;
};

#define F(name) offsetof(struct replay_args, name)
static const struct sh_opt opts[] = {
    {"db", SH_OPT_TEXT, F(db), "FILE", "the trace store", 0, 0, 0},
    {"policy", SH_OPT_LIST, F(policy), "NAME[:knob=value,...]...",
     "policies (default: full window streaming h2o tova scissorhands); all: every\n"
     "one that the trace can answer; shears info policies lists them", 0, 0, 0},
    {"budget", SH_OPT_LIST, F(budget), "LIST",
     "tokens per KV head (17), or a share of the sequence (0.2); commas between;\n"
     "0.05..1.0/20: twenty, evenly spaced (default: 0.1,0.2,0.3,0.5)", 0, 0, 0},
    {"prefill", SH_OPT_INT, F(prefill), "N", "the first N tokens see everything, nothing is dropped (default: 0)", 0,
     1 << 22, 0},
    {"allocator", SH_OPT_TEXT, F(allocator), "NAME[:knob=value,...]",
     "who shares the budgets out over layers and heads (default: uniform);\nshears plan --help lists them", 0, 0, 0},
    {"rows", SH_OPT_TEXT, F(rows), "WHAT",
     "renormalised: what the policy would have seen (default); recorded: the\nrows as they are", 0, 0, 0},
    {"error-every", SH_OPT_INT, F(error_every), "N",
     "take the output error of every so many rows; 0: of none (default: 1)", 0, 1 << 22, 0},
    {"dump-kept", SH_OPT_TEXT, F(dump), "FILE",
     "kept positions as JSON lines, one per sequence, layer, KV head and step", 0, 0, 0},
    {"dump-every", SH_OPT_INT, F(dump_every), "N", "only every so many steps (default: 1)", 1, 1 << 22, 0},
    {"run", SH_OPT_INT, F(run), "N", "only this run (default: all, which must be of one model)", 0, 1e9, 0},
    {"force", SH_OPT_FLAG, F(force), NULL, "replay even what the store has the results of", 0, 0, 0},
    SH_PART_OPT(F(shard)),
    SH_CLUSTER_OPT(F(rank_timeout)),
    {0}};
#undef F

static void preset(void *args)
{
    struct replay_args *a = args;
    a->rows = "renormalised";
    a->allocator = "uniform";
    a->dump_every = a->error_every = 1;
    a->rank_timeout = SH_RANK_TIMEOUT_S;
}

static void release(void *args)
{
    struct replay_args *a = args;
    sh_list_free(&a->policy);
    sh_list_free(&a->budget);
}

/* ---- the request ---- */

enum { MOST_POLICIES = 64 };

struct work {
    struct sh_policy_spec spec[MOST_POLICIES];
    struct sh_budget budget[SH_MAX_BUDGETS];
    struct sh_replay_request q;
    struct sh_allocator_spec allocator;
    struct sh_stored_run *runs;
    int n_run;
    struct sh_replay_row *row;          /* [n_spec * n_budget] */
    char **settings;
    int n_row;
    char *part;                         /* the dump under its temporary name */
    struct sh_part shard;
    struct sh_cluster cluster;
    struct sh_store *store;             /* that is read                      */
};

static int has_what_it_needs(const struct work *w, const struct sh_policy *p)
{
    int ok = !(p->needs & SH_NEEDS_PROMPT) || w->q.prefill > 0;
    for (int i = 0; i < w->n_run; i++)
        ok &= (!(p->needs & SH_NEEDS_KEYS) || strchr(w->runs[i].vectors, 'k')) &&
              (!(p->needs & SH_NEEDS_VALUES) || strchr(w->runs[i].vectors, 'v')) &&
              (!(p->needs & SH_NEEDS_QUERIES) || strchr(w->runs[i].vectors, 'q'));
    return ok;
}

static int add_policy(struct work *w, const char *text, struct sh_err *e)
{
    if (w->q.n_spec == MOST_POLICIES)
        return sh_misused(e, "--policy: more than %d policies", MOST_POLICIES);
    return sh_policy_parse(text, &w->spec[w->q.n_spec], e) ? -1 : (w->q.n_spec++, 0);
}

static int read_policies(struct work *w, const struct sh_list *list, struct sh_err *e)
{
    static const char *const usual[] = {"full", "window", "streaming", "h2o", "tova", "scissorhands"};
    w->q.leave_out_small = !list->n;
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

static int read_request(const struct replay_args *a, const struct sh_common *common, struct work *w, struct sh_store *s,
                        struct sh_err *e)
{
    if (strcmp(a->rows, "renormalised") && strcmp(a->rows, "recorded"))
        return sh_misused(e, "--rows %s: expected renormalised or recorded", a->rows);
    if (sh_allocator_parse(a->allocator, &w->allocator, e))
        return sh_err_prefix(e, "--allocator");
    if (sh_runs_choose(s, (int)a->run, &w->runs, &w->n_run, e))
        return -1;
    w->q = (struct sh_replay_request){.spec = w->spec, .budget = w->budget, .prefill = (int)a->prefill,
                                      .rows = strcmp(a->rows, "recorded") ? SH_ROWS_RENORMALISED : SH_ROWS_RECORDED,
                                      .error_every = (int)a->error_every, .seed = (uint64_t)common->seed,
                                      .threads = (int)common->threads, .quiet = common->quiet, .run = (int)a->run,
                                      .dump_every = (int)a->dump_every};
    if (read_policies(w, &a->policy, e))
        return -1;
    if (!a->budget.n && sh_budget_parse("0.1,0.2,0.3,0.5", w->budget, &w->q.n_budget, e))
        return -1;
    for (int i = 0; i < a->budget.n; i++)
        if (sh_budget_parse(a->budget.at[i], w->budget, &w->q.n_budget, e))
            return sh_err_prefix(e, "--budget");
    return sh_replay_check(&w->q, s, e);
}

static void make_rows(struct work *w)
{
    char allocator[SH_ALLOT_TEXT];
    sh_allot_text(&w->allocator, allocator);
    w->n_row = w->q.n_spec * w->q.n_budget;
    w->row = xcalloc((size_t)w->n_row, sizeof *w->row);
    w->settings = xcalloc((size_t)w->n_row, sizeof *w->settings);
    for (int i = 0; i < w->n_row; i++) {
        for (int m = 0; m < SH_N_REPLAY_METRIC; m++)
            w->row[i].all[m] = (double)NAN;
        w->row[i].spec = &w->spec[i / w->q.n_budget];
        w->row[i].budget = &w->budget[i % w->q.n_budget];
        w->settings[i] = sh_replay_row_settings(&w->row[i], &w->q, allocator, w->runs, w->n_run);
    }
}

/* Replay q and fill the rows of its policies: policy i of q is policy of[i] of the request, its budgets are
 * those from `first` on. */
static int run_some(struct work *w, const struct sh_replay_request *q, const int *of, int first, struct sh_store *s,
                    struct sh_err *e)
{
    struct sh_replay_result r = {0};
    int bad = sh_replay_run(q, s, &r, e), n_budget = q->n_budget;
    for (int i = 0; i < q->n_spec * n_budget && !bad; i++) {
        struct sh_replay_row *row = &w->row[of[i / n_budget] * w->q.n_budget + first + i % n_budget];
        free(row->layer);
        sh_replay_row_fill(row, &r, i, q->seed);
        row->all[SH_M_BUDGET_TOKENS] = r.budget_tokens[i % n_budget];
        row->is_known = 0;
    }
    sh_replay_result_free(&r);
    return bad;
}

/* One policy under budgets that an allocator shares out: they depend on what the policy protects, so policies
 * go one by one. */
static int run_shared_out(struct work *w, const struct sh_replay_request *one, int of, struct sh_store *s,
                          struct sh_err *e)
{
    struct sh_replay_request q = *one;
    struct sh_allot a = {0};
    int bad = sh_allot_open(&a, &w->allocator, one, s, e) || sh_allot_budgets(&a, &q, e) ||
              run_some(w, &q, &of, 0, s, e);
    sh_allot_close(&a);
    return bad;
}

static int is_uniform(const struct work *w)
{
    return !strcmp(w->allocator.allocator->name, "uniform");
}

/* Replay these policies (of[n]) under the budgets [first, first + n_budget). */
static int run_policies(struct work *w, const int *of, int n, int first, int n_budget, struct sh_err *e)
{
    struct sh_policy_spec spec[MOST_POLICIES];
    struct sh_replay_request q = w->q;
    int bad = 0;
    for (int i = 0; i < n; i++)
        spec[i] = w->spec[of[i]];
    q.spec = spec;
    q.n_spec = n;
    q.budget = &w->budget[first];
    q.n_budget = n_budget;
    if (is_uniform(w))
        return n ? run_some(w, &q, of, first, w->store, e) : 0;
    q.n_spec = 1;
    for (int i = 0; i < n && !bad; i++) {
        q.spec = &spec[i];
        bad = run_shared_out(w, &q, of[i], w->store, e);
    }
    return bad;
}

/* ---- in parts: some policies under neighbouring budgets are a unit ---- */

struct cut { int groups, pieces, n; };  /* of the policies, of the budgets; units                 */

/* Two units for each of `parts`, if there are so many cells: every unit reads the store once, so more would cost
 * more than they balance. An allocator looks at all budgets. */
static struct cut cut(const struct work *w, int parts)
{
    int wanted = 2 * parts, groups = w->q.n_spec < wanted ? w->q.n_spec : wanted;
    int pieces = is_uniform(w) ? (wanted + w->q.n_spec - 1) / w->q.n_spec : 1;
    pieces = pieces < w->q.n_budget ? pieces : w->q.n_budget;
    return (struct cut){groups, pieces, pieces * groups};
}

/* Neighbours in the list cost alike: a group takes every so many-th policy. */
static int unit_of(const struct cut *c, int i_spec, int piece)
{
    return i_spec % c->groups * c->pieces + piece;
}

static int piece_first(const struct work *w, const struct cut *c, int piece)
{
    return piece * w->q.n_budget / c->pieces;
}

/* Are all rows of a policy under the budgets of a piece in the store? */
static int piece_known(const struct work *w, const struct cut *c, int i_spec, int piece)
{
    int known = 1;
    for (int b = piece_first(w, c, piece); b < piece_first(w, c, piece + 1); b++)
        known &= w->row[i_spec * w->q.n_budget + b].is_known;
    return known;
}

/* The policies of which a row is missing under the budgets of a piece: of[n]; unit -1: those of this shard. */
static int missing(const struct work *w, const struct cut *c, int unit, int piece, int *of)
{
    int n = 0;
    for (int i = 0; i < w->q.n_spec; i++) {
        int u = unit_of(c, i, piece);
        if ((unit < 0 ? sh_part_has(&w->shard, u) : u == unit) && !piece_known(w, c, i, piece))
            of[n++] = i;
    }
    return n;
}

/* Replay what is missing: one walk over the store for each piece. */
static int run_missing(struct work *w, struct sh_err *e)
{
    struct cut c = w->shard.parts ? cut(w, w->shard.parts) : (struct cut){w->q.n_spec, 1, w->q.n_spec};
    int bad = 0;
    for (int piece = 0; piece < c.pieces && !bad; piece++) {
        int of[MOST_POLICIES], n = missing(w, &c, -1, piece, of), first = piece_first(w, &c, piece);
        if (n)
            bad = run_policies(w, of, n, first, piece_first(w, &c, piece + 1) - first, e);
    }
    return bad;
}

static int keep_rows(const struct work *w, int from, int n, struct sh_store *s, struct sh_err *e)
{
    int bad = 0;
    for (int i = from; i < from + n && !bad; i++)
        if (!w->row[i].is_known && w->row[i].layer)
            bad = sh_replay_row_keep(&w->row[i], w->settings[i], s, e);
    return bad;
}

/* One unit on one of several ranks. */
static int run_unit(void *to, int unit, struct sh_err *e)
{
    struct work *w = to;
    struct cut c = cut(w, w->cluster.me.size);
    int piece = unit % c.pieces, first = piece_first(w, &c, piece), n_budget = piece_first(w, &c, piece + 1) - first;
    int of[MOST_POLICIES], n = missing(w, &c, unit, piece, of), bad = 0;
    struct sh_store *own = sh_cluster_own(&w->cluster, e);
    if (!own || run_policies(w, of, n, first, n_budget, e))
        return -1;
    for (int i = 0; i < n && !bad; i++)
        bad = keep_rows(w, of[i] * w->q.n_budget + first, n_budget, own, e);
    return bad ? -1 : 0;
}

/* A larger cache costs more, and every unit reads the store. */
static double work_of(const struct work *w, int first, int n)
{
    double work = 1;
    for (int b = first; b < first + n; b++)
        work += w->budget[b].tokens ? 1 : 0.5 + w->budget[b].share;
    return work;
}

static int share(struct work *w, const struct replay_args *a, struct sh_store *into, struct sh_err *e)
{
    struct cut c = cut(w, w->cluster.me.size);
    double *size = xcalloc((size_t)c.n, sizeof *size);
    unsigned char *known = xcalloc((size_t)c.n, 1);
    for (int u = 0; u < c.n; u++) {
        int of[MOST_POLICIES], piece = u % c.pieces, first = piece_first(w, &c, piece);
        int n = missing(w, &c, u, piece, of);
        size[u] = n * work_of(w, first, piece_first(w, &c, piece + 1) - first);
        known[u] = n == 0;
    }
    struct sh_share s = {.n = c.n, .size = size, .done = known, .run = run_unit, .to = w,
                         .timeout_s = a->rank_timeout, .what = "replaying", .quiet = w->cluster.common.quiet};
    int bad = sh_cluster_run(&w->cluster, &s, into, e);
    free(size);
    free(known);
    return bad;
}

/* Rank 0 joins what all found; it alone has rows to show, those that were there before marked as such. */
static int run_shared(struct work *w, const struct replay_args *a, const char *path, struct sh_err *e)
{
    if (!sh_cluster_is_first(&w->cluster))
        return share(w, a, NULL, e);
    struct sh_store *into = sh_store_update(path, e);
    int bad = !into || sh_cluster_gather(&w->cluster, into, e);
    if (!bad && !a->force)
        bad = sh_replay_rows_find(w->row, w->settings, w->n_row, into, e);
    int *known = xcalloc((size_t)w->n_row, sizeof *known);
    for (int i = 0; i < w->n_row; i++)
        known[i] = w->row[i].is_known;
    bad = bad || share(w, a, into, e);
    for (int i = 0; i < w->n_row; i++) {
        free(w->row[i].layer);
        w->row[i].layer = NULL;
        w->row[i].is_known = 0;
    }
    bad = bad || sh_replay_rows_find(w->row, w->settings, w->n_row, into, e);
    for (int i = 0; i < w->n_row; i++)
        w->row[i].is_known = known[i];
    free(known);
    sh_store_close(into);
    return bad;
}

/* Results are kept in the store where it can be written to; a read-only one is still worth reading. */
static void keep_results(const struct work *w, const char *path, int quiet)
{
    struct sh_err e;
    struct sh_store *s = sh_store_update(path, &e);
    int bad = !s || keep_rows(w, 0, w->n_row, s, &e);
    sh_store_close(s);
    if (bad && !quiet)
        fprintf(stderr, "shears: the results are not kept: %s\n", e.text);
}

/* A shard that cannot be kept is nothing. */
static int keep_shard(const struct work *w, const char *path, struct sh_err *e)
{
    uint64_t job = SH_PART_HASH, model = strtoull(w->runs[0].fingerprint, NULL, 16);
    for (int i = 0; i < w->n_row; i++)
        sh_part_hash(&job, w->settings[i]);
    char *own = sh_part_path(path, &w->shard);
    struct sh_store *s = sh_store_create(own, e);
    int bad = !s || keep_rows(w, 0, w->n_row, s, e) || sh_part_mark(s, &w->shard, "replay", job, model, e);
    sh_store_close(s);
    free(own);
    return bad ? -1 : 0;
}

/* ---- the answer ---- */

/* The best that is known for a budget: kept mass of the oracle in this request, or NaN. */
static double oracle_mass(const struct work *w, int i_budget)
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
        sh_out_real(o, "kept_mass", "kept mass", m[SH_M_KEPT_MASS], 4);
        sh_out_real(o, "kept_mass_no_sink", "no sinks", m[SH_M_KEPT_MASS_NO_SINK], 4);
        sh_out_real(o, "pivotal_recall", "pivotal", m[SH_M_PIVOTAL_RECALL], 4);
        sh_out_real(o, "output_error", "output error", m[SH_M_OUTPUT_ERROR], 4);
        sh_out_real(o, "mean_tokens", "mean tokens", m[SH_M_MEAN_TOKENS], 1);
    }
    sh_out_end(o);
}

static void write_row(struct sh_out *o, const struct work *w, int i)
{
    const struct sh_replay_row *row = &w->row[i];
    char knobs[SH_POLICY_TEXT], allocator[SH_ALLOT_TEXT];
    sh_out_item(o);
    sh_out_text(o, "policy", "policy", row->spec->policy->name);
    sh_out_text(o, "knobs", "knobs", sh_policy_knobs(row->spec, knobs));
    sh_out_text(o, "allocator", "allocator", sh_allot_text(&w->allocator, allocator));
    if (row->budget->tokens)
        sh_out_int(o, "budget", "budget", row->budget->tokens);
    else
        sh_out_real(o, "budget", "budget", row->budget->share, 3);
    sh_out_real(o, "budget_tokens", "tokens", row->all[SH_M_BUDGET_TOKENS], 1);
    sh_out_real(o, "kept_mass", "kept mass", row->all[SH_M_KEPT_MASS], 4);
    sh_out_real(o, "kept_mass_low", "95 % from", row->all[SH_M_KEPT_MASS_LOW], 4);
    sh_out_real(o, "kept_mass_high", "to", row->all[SH_M_KEPT_MASS_HIGH], 4);
    sh_out_real(o, "kept_mass_no_sink", "no sinks", row->all[SH_M_KEPT_MASS_NO_SINK], 4);
    sh_out_real(o, "pivotal_recall", "pivotal", row->all[SH_M_PIVOTAL_RECALL], 4);
    sh_out_real(o, "output_error", "output error", row->all[SH_M_OUTPUT_ERROR], 4);
    sh_out_real(o, "output_error_low", "from", row->all[SH_M_OUTPUT_ERROR_LOW], 4);
    sh_out_real(o, "output_error_high", "to", row->all[SH_M_OUTPUT_ERROR_HIGH], 4);
    sh_out_real(o, "gap_to_oracle", "to oracle", oracle_mass(w, i % w->q.n_budget) - row->all[SH_M_KEPT_MASS], 4);
    sh_out_real(o, "stability", "stability", row->all[SH_M_STABILITY], 4);
    sh_out_real(o, "peak_tokens", "peak", row->all[SH_M_PEAK_TOKENS], 0);
    sh_out_real(o, "mean_tokens", "mean", row->all[SH_M_MEAN_TOKENS], 1);
    sh_out_real(o, "resident_bytes", "bytes", row->all[SH_M_RESIDENT_BYTES], 0);
    write_layers(o, row);
}

static void write_areas(struct sh_out *o, const struct work *w)
{
    sh_out_list(o, "curves", "kept mass over the budgets: mean height of the curve");
    for (int i = 0; i < w->q.n_spec; i++) {
        char knobs[SH_POLICY_TEXT];
        sh_out_item(o);
        sh_out_text(o, "policy", "policy", w->spec[i].policy->name);
        sh_out_text(o, "knobs", "knobs", sh_policy_knobs(&w->spec[i], knobs));
        sh_out_real(o, "area", "area", sh_replay_rows_area(&w->row[i * w->q.n_budget], w->q.n_budget), 4);
    }
    sh_out_end(o);
}

static struct sh_out *describe(const struct work *w)
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
    sh_out_int(o, "sequences", "sequences", sequences);
    sh_out_int(o, "tokens", "tokens", tokens);
    sh_out_int(o, "unfinished", "layers not finished", unfinished);
    sh_out_text(o, "rows", "rows", w->q.rows == SH_ROWS_RECORDED ? "recorded" : "renormalised");
    sh_out_int(o, "prefill", "prefill", w->q.prefill);
    sh_out_list(o, "results", "policies and budgets: means over rows, heads, layers");
    for (int i = 0; i < w->n_row; i++)
        if (w->row[i].layer)                    /* else another shard's */
            write_row(o, w, i);
    sh_out_end(o);
    write_areas(o, w);
    if (w->q.leave_out_small)
        sh_out_note(o, "A budget that the tokens a policy protects would fill is left out (-).");
    if (known)
        sh_out_note(o, "%d of %d rows are from the store; --force replays them.", known, w->n_row);
    return o;
}

static int open_dump(const struct replay_args *a, struct work *w, struct sh_err *e)
{
    if (!a->dump)
        return 0;
    w->part = xasprintf("%s.part", a->dump);
    w->q.dump = fopen(w->part, "w");
    return w->q.dump ? 0 : sh_fail(e, "%s: %s", a->dump, strerror(errno));
}

static int close_dump(const struct replay_args *a, struct work *w, int bad, struct sh_err *e)
{
    if (!w->q.dump)
        return bad;
    int failed = ferror(w->q.dump);
    failed |= fclose(w->q.dump);
    if (!bad && (failed || rename(w->part, a->dump)))
        bad = sh_fail(e, "%s: %s", a->dump, strerror(errno));
    if (bad)
        unlink(w->part);
    return bad;
}

static int replay(const struct replay_args *a, const char *path, struct work *w, struct sh_err *e)
{
    make_rows(w);
    if (w->cluster.ranks)
        return run_shared(w, a, path, e);
    if (!a->force && !a->dump && sh_replay_rows_find(w->row, w->settings, w->n_row, w->store, e))
        return -1;
    return open_dump(a, w, e) || close_dump(a, w, run_missing(w, e), e) ? -1 : 0;
}

static int work(const struct replay_args *a, const char *path, struct work *w, struct sh_err *e)
{
    const struct sh_common *common = &w->cluster.common;
    if (a->dump && (w->shard.parts || w->cluster.ranks))
        return sh_misused(e, "--dump-kept: one process writes it, not several");
    if (!(w->store = sh_store_open(path, e)))
        return -1;
    int bad = read_request(a, common, w, w->store, e) || replay(a, path, w, e);
    sh_store_close(w->store);
    if (bad || !sh_cluster_is_first(&w->cluster))
        return bad ? -1 : 0;
    if (w->shard.parts && keep_shard(w, path, e))
        return -1;
    if (!w->shard.parts && !w->cluster.ranks)
        keep_results(w, path, common->quiet);
    struct sh_out *o = describe(w);
    bad = sh_common_write(common, o, e);
    sh_out_free(o);
    return bad;
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    const struct replay_args *a = args;
    const char *path = sh_store_path_of("replay", a->db, positional, e);
    if (!path)
        return -1;
    if (sh_output_differs("--dump-kept", a->dump, path, e))
        return -1;
    struct work *w = xcalloc(1, sizeof *w);
    int bad = sh_part_parse(a->shard, &w->shard, e) ||
              (w->shard.parts ? sh_cluster_alone(&w->cluster, common)
                              : sh_cluster_join(&w->cluster, common, path, a->rank_timeout, e)) || work(a, path, w, e);
    if (w->runs)
        sh_stored_runs_free(w->runs, w->n_run);
    sh_replay_rows_free(w->row, w->n_row);
    for (int i = 0; i < w->n_row; i++)
        free(w->settings[i]);
    free(w->settings);
    free(w->row);
    free(w->part);
    bad = sh_cluster_leave(&w->cluster, bad ? -1 : 0, e);
    free(w);
    return bad;
}

const struct sh_cmd sh_cmd_replay = {
    .name = "replay",
    .usage = "--db FILE [--policy NAME[:knob=value,...]...] [--budget LIST] [--prefill N] [--allocator NAME]",
    .summary = "what eviction policies would have kept of recorded attention",
    .about = "Every recorded row goes once through a cache for each policy and budget. kept mass: the share of the\n"
             "full row that falls on kept tokens; no sinks: the same without the first four tokens and the query's\n"
             "own, which else make all policies look alike; pivotal: the share of the keys above 1/n that are kept;\n"
             "output error: |o - o'| / |o| of the head's output, where values were recorded (--vectors v).\n"
             "The intervals are a bootstrap over sequences. Queries are those of the uncompressed model: exact in\n"
             "the first layer, an approximation behind. Results are kept in the store and found there again.\n\n"
             "  shears replay --db traces.db --policy window h2o:recent=10 scissorhands --budget 0.05..0.5/10",
    .opts = opts,
    .args_bytes = sizeof(struct replay_args),
    .preset = preset,
    .run = run,
    .release = release,
};
