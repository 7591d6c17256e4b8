/* SPDX-License-Identifier: Apache-2.0 */
/* shears persistence: do tokens that mattered early matter late? */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/app/persistence/persistence_study.h"
#include "src/app/store/results.h"
#include "src/base/mem.h"
#include "src/base/read_number.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"

struct persistence_args {
    const char *db, *recent, *split, *per;
    struct sh_list alpha;
    long long run, window;
};

#define F(name) offsetof(struct persistence_args, name)
static const struct sh_opt opts[] = {
    SH_STORE_OPT(F(db)),
    SH_TEXT("split", F(split), "F,...", "boundary between early and late, as a fraction of the length\n(default: 0.5)"),
    SH_LIST("alpha", F(alpha), "A...", "threshold of a pivotal score: row = 1/t for a row that sees t keys\n"
        "(default), K/t, split = 1/(split point), or a number"),
    SH_TEXT("recent", F(recent), "R,...", "ignore pairs with query - key < R (default: 0)"),
    SH_PER_OPT(F(per)),
    SH_RUN_OPT(F(run), 1),
    SH_INT("window", F(window), "W", 1, 1 << 22, "rows before the split used for prediction (default: 400)"),
    {0}};

static const struct persistence_args defaults = {.per = "layer", .window = 400, .recent = "0", .split = "0.5"};

/* The request: every alpha x recent x split, the first of them shown layer by layer, and the literal
 * definition, always first. */
struct request {
    struct sh_alpha alpha[SH_STATS_MAX];
    int recent[SH_STATS_MAX];
    double split[SH_STATS_MAX];
    int n_alpha, n_recent, n_split;
    int literal, main;                  /* cells */
};

static int read_request(const struct persistence_args *a, struct request *q, struct sh_err *e)
{
    if (a->alpha.n > SH_STATS_MAX)
        return sh_misused(e, "--alpha: found %d thresholds, expected at most %d", a->alpha.n, SH_STATS_MAX);
    for (int i = 0; i < a->alpha.n; i++)
        if (sh_alpha_parse(a->alpha.at[i], &q->alpha[i], e))
            return sh_err_prefix(e, "--alpha");
    q->n_alpha = a->alpha.n;
    if (!q->n_alpha)
        sh_alpha_parse("row", &q->alpha[q->n_alpha++], e);
    if (sh_read_ints("--recent", a->recent, q->recent, SH_STATS_MAX, &q->n_recent, e) ||
        sh_read_reals("--split", a->split, 1, q->split, SH_STATS_MAX, &q->n_split, e))
        return -1;
    for (int i = 0; i < q->n_split; i++)
        if (!(q->split[i] > 0 && q->split[i] < 1))
            return sh_misused(e, "--split: found %g, expected a fraction between 0 and 1", q->split[i]);
    if (strcmp(a->per, "layer") && strcmp(a->per, "head"))
        return sh_misused(e, "--per: \"%s\", expected layer or head", a->per);
    return 0;
}

/* The statistics hold a limited number of thresholds and recent windows; those requested come first. */
static int literal_fits(const struct request *q)
{
    int has_alpha = q->n_alpha < SH_STATS_MAX, has_recent = q->n_recent < SH_STATS_MAX;
    for (int i = 0; i < q->n_alpha; i++)
        has_alpha |= q->alpha[i].kind == SH_ALPHA_ROW && q->alpha[i].value == 1;
    for (int i = 0; i < q->n_recent; i++)
        has_recent |= q->recent[i] == 0;
    return has_alpha && has_recent;
}

/* Requested cells must be available; the grid beyond recency shows what the store has. */
static int add_cells(struct sh_study *y, struct sh_store *s, struct request *q, struct sh_err *e)
{
    static const char *const grid_alpha[] = {"row", "2/t", "5/t", "10/t"};
    static const int grid_recent[] = {0, 1, 10, 50};
    struct sh_persistence_cell more = {.split = q->split[0]};
    int unused;
    sh_alpha_parse("row", &more.alpha, e);
    q->literal = -1;
    if (literal_fits(q) && sh_study_add_if(y, s, &more, &q->literal, e))
        return -1;
    for (int f = 0; f < q->n_split; f++)
        for (int i = 0; i < q->n_alpha; i++)
            for (int r = 0; r < q->n_recent; r++) {
                struct sh_persistence_cell c = {q->alpha[i], q->recent[r], q->split[f]};
                if (sh_collect_can(s, y->run, &c, y->window, e))
                    return -1;
                int at = sh_study_add(y, &c.alpha, c.recent, c.split);
                if (at < 0)
                    return sh_misused(e, "more than %d combinations of --alpha, --recent and --split", SH_STUDY_CELLS);
                if (!f && !i && !r)
                    q->main = at;
            }
    for (int i = 0; i < 4 && q->n_alpha * q->n_recent * q->n_split == 1; i++)
        for (int r = 0; r < 4; r++) {
            sh_alpha_parse(grid_alpha[i], &more.alpha, e);
            more.recent = grid_recent[r];
            if (sh_study_add_if(y, s, &more, &unused, e))
                return -1;
        }
    return 0;
}

/* Tables leave out the chance, which equals the density. */
static void figures(struct sh_out *o, const double *f, int is_table)
{
    sh_out_real(o, "ratio", "ratio", f[SH_RATIO], 4);
    sh_out_real(o, "density", is_table ? "density = chance" : "density", f[SH_DENSITY], 4);
    if (!is_table)
        sh_out_real(o, "chance", "chance", f[SH_CHANCE], 4);
    sh_out_real(o, "lift", "lift", f[SH_LIFT], 3);
    sh_out_real(o, "relative_risk", "rel. risk", f[SH_RELATIVE_RISK], 3);
    sh_out_real(o, "phi", "phi", f[SH_PHI], 3);
    sh_out_detail(o);
    sh_out_real(o, "auc", "AUC", f[SH_AUC], 3);
}

static void likeness(struct sh_out *o, const double *f)
{
    for (int i = 0; i < SH_STATS_LAGS; i++) {
        char key[40], label[24];
        snprintf(key, sizeof key, "jaccard_%d", sh_stats_lag[i]);
        snprintf(label, sizeof label, "J(%d)", sh_stats_lag[i]);
        sh_out_real(o, key, label, f[SH_JACCARD + i], 3);
        snprintf(key, sizeof key, "jaccard_%d_chance", sh_stats_lag[i]);
        sh_out_real(o, key, "chance", f[SH_JACCARD_CHANCE + i], 3);
    }
}

/* As people write it (tables), or as in JSON. */
static const char *alpha_name(const struct sh_alpha *a, int is_table, char to[SH_ALPHA_NAME])
{
    sh_alpha_name(a, to);
    return is_table && !strcmp(to, "row") ? "1/t" : to;
}

static void name_cell(struct sh_out *o, const struct sh_persistence_cell *c, int is_table)
{
    char name[SH_ALPHA_NAME];
    sh_out_text(o, "alpha", "alpha", alpha_name(&c->alpha, is_table, name));
    sh_out_int(o, "recent", "R", c->recent);
    sh_out_real(o, "split", "split", c->split, 3);
}

static void write_heads(struct sh_out *o, const struct sh_study *y, int cell, int layer, int is_table)
{
    const struct sh_persistence *p = y->part[0].p;
    sh_out_list(o, "heads", "per head");
    for (int h = 0; h < sh_persistence_n_head(p, layer); h++) {
        sh_out_item(o);
        sh_out_int(o, "head", "head", sh_persistence_head_at(p, layer, h));
        figures(o, sh_study_head(y, cell, layer, h), is_table);
    }
    sh_out_end(o);
}

static void write_layers(struct sh_out *o, const struct sh_study *y, int cell, int is_table)
{
    const struct sh_persistence *p = y->part[0].p;
    char name[SH_ALPHA_NAME], label[160];
    snprintf(label, sizeof label, "layer by layer: alpha %s, recent %d, split %g",
             alpha_name(&y->cell[cell].alpha, 1, name), y->cell[cell].recent, y->cell[cell].split);
    sh_out_list(o, "layers", label);
    for (int i = 0; i < sh_persistence_n_layer(p); i++) {
        int min = sh_study_min_head(y, cell, i);
        sh_out_item(o);
        sh_out_int(o, "layer", "layer", sh_persistence_layer_at(p, i));
        figures(o, sh_study_layer(y, cell, i), is_table);
        sh_out_real(o, "min_head", "min. head", min < 0 ? NAN : sh_study_head(y, cell, i, min)[SH_RATIO], 4);
        sh_out_int(o, "min_head_index", "which", min < 0 ? -1 : sh_persistence_head_at(p, i, min));
        write_heads(o, y, cell, i, is_table);
    }
    sh_out_end(o);
    sh_out_list(o, "rows",
                "spread of attention: means over rows; Jaccard index J(d) of the pivotal sets of rows d apart");
    for (int i = 0; i < sh_persistence_n_layer(p); i++) {
        const double *f = sh_study_layer(y, cell, i);
        sh_out_item(o);
        sh_out_int(o, "layer", "layer", sh_persistence_layer_at(p, i));
        sh_out_real(o, "entropy_nats", "entropy", f[SH_ENTROPY], 3);
        sh_out_real(o, "normalised_entropy", "normalised", f[SH_NORMALISED_ENTROPY], 4);
        sh_out_real(o, "mass_top20pct", "top 20 %", f[SH_MASS_TOP], 4);
        sh_out_real(o, "below_mean", "< mean", f[SH_BELOW_MEAN], 4);
        sh_out_real(o, "below_1pct_of_max", "< 1 % of max", f[SH_BELOW_1PCT], 4);
        likeness(o, f);
    }
    sh_out_end(o);
}

/* People read a line, programs an object of numbers. */
static void write_literal(struct sh_out *o, const struct sh_study *y, int cell, int is_table)
{
    char line[200];
    const double *f = cell < 0 ? NULL : sh_study_all(y, cell);
    if (!f || isnan(f[SH_RATIO])) {
        sh_out_text(o, "literal", "literal", NULL);
        return;
    }
    if (!is_table) {
        sh_out_group(o, "literal");
        sh_out_real(o, "ratio", "literal ratio", f[SH_RATIO], 4);
        sh_out_real(o, "density", "literal density", f[SH_DENSITY], 4);
        sh_out_real(o, "lift", "literal lift", f[SH_LIFT], 3);
        sh_out_real(o, "split", "literal split", y->cell[cell].split, 3);
        sh_out_group_end(o);
        return;
    }
    snprintf(line, sizeof line, "ratio %.4f, density %.4f, lift %.3f (alpha 1/t, every pair, split %g)", f[SH_RATIO],
             f[SH_DENSITY], f[SH_LIFT], y->cell[cell].split);
    sh_out_text(o, "literal", "literal", line);
}

static struct sh_out *describe(const struct sh_study *y, const struct request *q, const char *per, int is_table)
{
    const struct sh_collect *g = &y->part[0];
    const struct sh_persistence_cell *c = &y->cell[q->main];
    struct sh_out *o = sh_out_new();
    write_literal(o, y, q->literal, is_table);
    sh_out_text(o, "model", "model", g->model);
    sh_out_text(o, "weights", "weights", g->weights);
    sh_out_int(o, "sequences", "sequences", g->n_sequence);
    sh_out_int(o, "tokens", "tokens", g->n_tokens);
    sh_out_int(o, "unfinished", "layers not finished", g->n_unfinished);
    name_cell(o, c, is_table);
    sh_out_int(o, "window", "window", y->window);
    write_layers(o, y, q->main, is_table);
    sh_out_list(o, "grid", "whole model: means over layers");
    for (int i = 0; i < y->n_cell; i++) {
        sh_out_item(o);
        name_cell(o, &y->cell[i], is_table);
        figures(o, sh_study_all(y, i), is_table);
        likeness(o, sh_study_all(y, i));
    }
    sh_out_end(o);
    if (!strcmp(per, "head"))
        sh_out_show(o, "heads");
    return o;
}

static int store_cell(struct sh_store *s, const struct sh_study *y, int cell, struct sh_err *e)
{
    static const enum sh_persistence_figure of[SH_N_PERSISTENCE_METRIC] = {
        [SH_PM_RATIO] = SH_RATIO, [SH_PM_DENSITY] = SH_DENSITY, [SH_PM_LIFT] = SH_LIFT,
        [SH_PM_RELATIVE_RISK] = SH_RELATIVE_RISK, [SH_PM_PHI] = SH_PHI, [SH_PM_AUC] = SH_AUC,
        [SH_PM_ENTROPY] = SH_ENTROPY, [SH_PM_MASS_TOP] = SH_MASS_TOP};
    const struct sh_persistence *p = y->part[0].p;
    const struct sh_persistence_cell *c = &y->cell[cell];
    struct sh_result_row row = {0};
    char name[SH_ALPHA_NAME];
    sh_alpha_name(&c->alpha, name);
    for (int k = 0; k < SH_N_PERSISTENCE_METRIC; k++) {
        const char *key = sh_persistence_metrics.metric[k].key;
        sh_result_add(&row, -1, sh_study_all(y, cell)[of[k]], "%s", key);
        for (int i = 0; i < sh_persistence_n_layer(p); i++)
            sh_result_add(&row, sh_persistence_layer_at(p, i), sh_study_layer(y, cell, i)[of[k]], "%s", key);
    }
    char *settings = sh_settings_text("persistence", (const struct sh_value[]){
        {"alpha", .text = name}, {"recent", .whole = c->recent}, {"split", .real = c->split},
        {"window", .whole = y->window}, {"run", .whole = y->run}, {0}});
    int bad = sh_result_keep(s, "persistence", settings, &row, e);
    free(settings);
    return bad;
}

/* Keeps the results in the store if it is writable; a read-only store can still be analysed. */
static void keep_results(const char *path, const struct sh_study *y, const struct sh_common *common)
{
    struct sh_err e;
    struct sh_store *s = sh_store_typed(sh_store_update(path, &e), common->line);
    int bad = !s;
    for (int i = 0; i < y->n_cell && !bad; i++)
        bad = store_cell(s, y, i, &e);
    sh_store_close(s);
    if (bad)
        sh_store_tell_unkept("results are", path, common->quiet, &e);
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    const struct persistence_args *a = args;
    const char *path = sh_store_path_of("persistence", a->db, positional, e);
    struct request q = {0};
    if (!path || read_request(a, &q, e))
        return -1;
    struct sh_study *y = xcalloc(1, sizeof *y);
    y->window = (int)a->window;
    y->threads = (int)common->threads;
    y->quiet = common->quiet;
    y->run = (int)a->run;
    struct sh_store *s = sh_store_open(path, e);
    int bad = !s || add_cells(y, s, &q, e) || sh_study_run(y, s, e);
    sh_store_close(s);
    if (!bad) {
        int is_table = sh_common_format(common) == SH_OUT_TEXT && !common->columns;
        bad = sh_common_write(common, describe(y, &q, a->per, is_table), 0, e);
    }
    if (!bad)
        keep_results(path, y, common);
    sh_study_free(y);
    free(y);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_persistence = {
    .name = "persistence",
    .usage = "--db FILE [--split F] [--alpha row|split|VALUE|K/t] [--recent R] [--per layer|head]",
    .summary = "measure persistence of importance per layer and head",
    .about = "A token is pivotal for a query if its score is above alpha. For each head, S1 is the set of tokens\n"
             "before the split that are pivotal for some query before it, and S2 the set of those that are pivotal\n"
             "for some query after it.\n"
             "  ratio      |S1 and S2| / |S2|: of the tokens that matter late, the share that mattered early\n"
             "  density    |S1| / split: the ratio expected of a random set of that size (chance)\n"
             "  lift       ratio / density\n"
             "  rel. risk  P(S2 | S1) / P(S2 | not S1)\n"
             "  phi        correlation of the two sets\n"
             "  AUC        how well the number of low scores before the split predicts S2 (0.5: not at all)\n"
             "  min. head  the smallest ratio among the layer's heads, and the head that has it\n"
             "All are computed per head and text and then averaged, so a mean lift is not the quotient of the means.\n"
             "A dash marks an undefined value. With the default alpha 1/t and R = 0, the ratio is close to 1 for\n"
             "almost any model, because nearly every token is pivotal once: when it is the newest. --recent ignores\n"
             "the tokens that a recent window keeps anyway; --alpha K/t raises the threshold.\n"
             "\n"
             "  shears persistence --db traces.db --recent 10 --alpha 5/t",
    .opts = opts, .args_bytes = sizeof(struct persistence_args), .defaults = &defaults, .run = run};
