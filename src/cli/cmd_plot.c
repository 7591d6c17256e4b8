/* SPDX-License-Identifier: Apache-2.0 */
/* shears plot: a figure from trace stores. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plots/figure.h"
#include "src/base/mem.h"
#include "src/cli/options.h"
#include "src/report/figures/figure_data.h"
#include "src/cli/paths.h"

struct plot_args {
    struct sh_list db, plan;
    struct sh_list names;
    struct sh_page_args paper;
    const char *out, *head, *rows, *layer, *data, *measured_on;
    long long sequence, run;
    double split;
    int script;
};

#define F(name) offsetof(struct plot_args, name)
static const struct sh_opt opts[] = {
    SH_LIST("db", F(db), "FILE...", "trace stores, plotted side by side"),
    SH_LIST("plan", F(plan), "FILE...", "allocation: plan files, plotted one below the other"),
    {"output", SH_OPT_TEXT, F(out), "FILE", SH_FIGURE_FILES, 0, 0, 'o'},
    SH_FLAG("script", F(script), "write the gnuplot script, with its data, instead: -o FILE.pdf writes\n"
        "FILE.pdf.gp, which draws FILE.pdf"),
    SH_TEXT("layer", F(layer), "L,...", "heatmap: layers (default: the middle one that attends)"),
    SH_TEXT("head", F(head), "H,...", "heatmap: heads, one per layer or several of one layer (default: 0)"),
    SH_TEXT("rows", F(rows), "Q,...", "heatmap: queries whose rows are plotted individually"),
    SH_INT("sequence", F(sequence), "S", 0, 1e9, "heatmap: sequence, counted within --run if given (default: 0)"),
    SH_REAL("split", F(split), "F", 1e-6, 1, "boundary between early and late, as a fraction of the length\n"
        "(default: 0.5)"),
    SH_RUN_OPT(F(run), 1),
    SH_MEASURED_ON_OPT(F(measured_on), "results: "),
    SH_TEXT("data", F(data), "FILE.tsv", "also write the plotted data to this file"),
    SH_LIST("name", F(names), "FILE=TEXT...", "name of a store in the figure"),
    SH_PAGE_OPTS(F),
    {0}};

static const struct plot_args defaults = {.split = 0.5};

/* Fails before the work if the path cannot be written. */
static int probe(const char *path, int script, const struct sh_gp_look *look, struct sh_err *e)
{
    struct sh_gp gp;
    if (!sh_gp_open(&gp, path, script, look, e)) {
        sh_gp_abandon(&gp);
        return 0;
    }
    if (e->status == SH_ABSENT)
        return sh_hint(e, "install gnuplot (Debian: gnuplot-nox), or add --script to write the gnuplot script");
    if (e->status == SH_MISUSED && !script && access(path, F_OK))
        return sh_hint(e, "with --script any name will do, such as one ending in .gp");
    return -1;
}

/* FILE=TEXT, FILE one of the stores as typed or its name without the folder. */
static int check_names(const struct plot_args *a, struct sh_err *e)
{
    for (int i = 0; i < a->names.n; i++) {
        int n = 0;
        for (int k = 0; k < a->db.n + a->plan.n; k++)
            n += sh_figure_text(a->names.at[i], k < a->db.n ? a->db.at[k] : a->plan.at[k - a->db.n]) != NULL;
        if (!n)
            return sh_misused(e, "--name %.200s: expected FILE=TEXT, with FILE one of the files to plot",
                              a->names.at[i]);
    }
    return 0;
}

static int check_files(const struct plot_args *a, const char *out, struct sh_err *e)
{
    for (int i = 0; i < a->db.n + a->plan.n; i++) {
        const char *in = i < a->db.n ? a->db.at[i] : a->plan.at[i - a->db.n];
        const struct sh_file_use files[] = {{"-o", out, 1}, {"--data", a->data, 1}, {"--db", in, 0}, {0}};
        if (sh_files_apart(files, e))
            return -1;
    }
    return 0;
}

static int draw(const struct plot_args *a, const struct sh_common *common, const struct sh_figure *f, const char *out,
                const struct sh_gp_look *look, struct sh_err *e)
{
    struct sh_figure_request q = {
        .db = a->db.at, .n_db = a->db.n, .plan = a->plan.at, .n_plan = a->plan.n,
        .name = a->names.at, .n_name = a->names.n, .measured_on = a->measured_on,
        .layer = a->layer, .head = a->head, .rows = a->rows, .sequence = (int)a->sequence, .split = a->split,
        .run = (int)a->run, .threads = (int)common->threads, .quiet = common->quiet};
    struct sh_figure_data *d = sh_figure_data_new(1u << f->number, &q, e);
    int bad = !d || sh_figure_plot(f, &d->out, out, a->script, look, e) ||
              (a->data && sh_figure_plot(f, &d->out, a->data, SH_GP_DATA, NULL, e));
    sh_figure_data_free(d);
    return bad ? -1 : 0;
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    const struct plot_args *a = args;
    if (positional->n != 1)
        return sh_misused(e, "plot requires one FIGURE, such as persistence or budget-curve (see shears plot --help)");
    const struct sh_figure *f = sh_figure_find(positional->at[0], e);
    if (!f)
        return -1;
    if (f->drawn_by)
        return sh_misused(e, "shears plot does not draw %s: shears %s does", f->name, f->drawn_by);
    const struct sh_need needs[] = {{"--db FILE...", a->db.n > 0 || sh_figure_loader(f)->takes_plans},
                                    {"-o FILE", a->out != NULL}, {0}};
    if (sh_args_need("plot", needs, e))
        return -1;
    struct sh_gp_look look;
    char *out = a->script && sh_gp_is_figure(a->out) ? xasprintf("%s.gp", a->out) : xstrdup(a->out);
    int bad = check_files(a, out, e) || check_names(a, e) || sh_read_page(&a->paper, &look, e) ||
              probe(out, a->script, &look, e) || (a->data && probe(a->data, SH_GP_DATA, NULL, e)) ||
              draw(a, common, f, out, &look, e);
    free(out);
    return bad ? -1 : 0;
}

static void list(FILE *to)
{
    fputs("figures:\n", to);
    for (int i = 0; sh_figures[i]; i++)
        if (!sh_figures[i]->drawn_by)
            fprintf(to, "  %-18s %s%s\n", sh_figures[i]->name, sh_figures[i]->summary,
                    sh_figure_loader(sh_figures[i])->takes_plans ? " (--plan FILE...)" : "");
}

const struct sh_cmd sh_cmd_plot = {
    .name = "plot",
    .usage = "FIGURE {--db FILE... | --plan FILE...} -o " SH_FIGURE_FILES " [--width 3.3in] "
             "[--panels N,...] [--data FILE.tsv] [--script]",
    .summary = "draw a figure from trace stores",
    .about = "budget-curve and leaderboard draw the results of shears replay, compression and quant those of shears\n"
             "eval, drift and score-change those of shears drift. From each store they draw the largest group of\n"
             "results of one text whose settings differ only in policy, knobs and budget. heatmap draws the\n"
             "same layers and heads of each store, at most five maps. gnuplot draws the figure; without gnuplot,\n"
             "plot ends with status 3 and --script still writes the script. FILE.tex is TikZ, for \\input in LaTeX.\n"
             "\n"
             "  shears plot persistence --db trained.db random.db -o persistence.svg\n"
             "  shears replay --db traces.db --policy all --budget 0.05..1.0/20\n"
             "  shears plot budget-curve --db traces.db -o budget-curve.svg\n",
    .list = list,
    .opts = opts, .args_bytes = sizeof(struct plot_args), .defaults = &defaults, .run = run};
