/* SPDX-License-Identifier: Apache-2.0 */
/* shears report: an HTML report of one or more stores. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "plots/gnuplot.h"
#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/app/common/quality_limit.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"
#include "src/report/report.h"
#include "src/report/report_results.h"

struct report_args {
    struct sh_list db, plan;
    const char *out, *model, *gpu, *gpus, *measured_on, *target;
    long long length;
};

#define F(name) offsetof(struct report_args, name)
static const struct sh_opt opts[] = {
    SH_LIST("db", F(db), "FILE...", "trace stores with results, at most four; a store of random weights serves as\n"
        "the control"),
    {"output", SH_OPT_TEXT, F(out), "FILE.html", "the report", 0, 0, 'o'},
    SH_TEXT("measured-on", F(measured_on), "TEXT", "show only evaluations and replays of this text, such as book.txt\n"
        "(default: every text, with figures of its own)"),
    SH_LIST("plan", F(plan), "FILE...", "plans whose budgets are shown, at most four"),
    SH_TEXT("model", F(model), "NAME|DIR", "model for the capacity section (default: the traced model, if known)"),
    SH_TEXT("gpu", F(gpu), "NAME,...", "GPUs for the capacity section (default: RTX-4090,A100-SXM-80GB,H100-SXM)"),
    SH_GPUS_OPT(F(gpus)),
    SH_TEXT("target-ppl-increase", F(target), "F", "increase of the perplexity that the answer allows, such as 1% "
                                                   "(default:\n"
                                                   "the smallest of 1, 2, 5 and 10 % that some budget is shown to "
                                                   "meet)"),
    SH_INT("length", F(length), "N", 1, 1e9, "tokens of a request (default: those of the texts that the answer was\n"
        "measured on, or the model's context length)"),
    {0}};

/* The page is always HTML, so another ending would mislead. A folder is refused later. */
static int check_ending(const char *out, struct sh_err *e)
{
    const char *name = basename(out), *dot = strrchr(name, '.');
    if (!*name || (dot && dot > name && (!strcmp(dot, ".html") || !strcmp(dot, ".htm"))))
        return 0;
    return sh_misused(e, "-o %s: expected a name ending in .html or .htm", out);
}

static int check(const struct report_args *a, const struct sh_list *positional, struct sh_err *e)
{
    const struct sh_need needs[] = {{"--db FILE...", a->db.n > 0}, {"-o FILE.html", a->out != NULL}, {0}};
    if (sh_args_none("report", positional, e) || sh_args_need("report", needs, e))
        return -1;
    if (a->db.n > SH_REPORT_STORES || a->plan.n > SH_REPORT_STORES)
        return sh_misused(e, "report: expected at most %d %s, found %d", SH_REPORT_STORES,
                          a->db.n > SH_REPORT_STORES ? "stores" : "plans",
                          a->db.n > SH_REPORT_STORES ? a->db.n : a->plan.n);
    for (int i = 0; i < a->db.n + a->plan.n; i++)
        if (sh_output_differs("-o", a->out, i < a->db.n ? a->db.at[i] : a->plan.at[i - a->db.n], e))
            return -1;
    return sh_output_differs("-o", a->out, a->gpus, e) || sh_output_differs("-o", a->out, a->model, e) ||
           check_ending(a->out, e) ? -1 : 0;
}

static struct sh_file *open_page(const char *path, struct sh_err *e)
{
    struct stat s;
    if (!*basename(path))
        return sh_misused(e, "-o %s: found a folder, expected a file", path), NULL;
    if (!lstat(path, &s) && !S_ISREG(s.st_mode))
        return sh_misused(e, "-o %s: exists but is not a regular file", path), NULL;
    return sh_file_begin(path, e);
}

static int tell(const struct sh_common *common, const char *out, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    struct stat s;
    sh_out_text(o, "report", "report", out);
    sh_out_int(o, "bytes", "bytes", stat(out, &s) ? 0 : (long long)s.st_size);
    return sh_common_write(common, o, 0, e);
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    const struct report_args *a = args;
    double target = 0;
    if (check(a, positional, e) ||
        (a->target && sh_quality_increase("--target-ppl-increase", a->target, &target, e)))
        return -1;
    if (a->target && !(target > 0))
        return sh_misused(e, "--target-ppl-increase: found %.40s, expected more than 0, such as 1%%", a->target);
    char *what = xasprintf("report %s", a->out), *gnuplot = sh_gnuplot_need(what, e);
    free(what);
    if (!gnuplot)
        return -1;
    free(gnuplot);
    struct sh_report r = {.target = target, .plan = a->plan.at, .n_plan = a->plan.n, .model = a->model,
                          .gpu = a->gpu, .gpus = a->gpus,
                          .measured_on = a->measured_on, .length = a->length, .threads = (int)common->threads,
                          .quiet = common->quiet};
    struct sh_file *page = sh_report_open(&r, a->db.at, a->db.n, e) || sh_report_check_text(&r, e)
                               ? NULL : open_page(a->out, e);
    int bad = !page || sh_file_end(page, sh_report_page(&r, common->line, sh_file_stream(page), e), e) ||
              tell(common, a->out, e);
    sh_report_close(&r);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_report = {
    .name = "report",
    .usage = "--db FILE... -o FILE.html [--plan FILE...] [--model NAME|DIR]",
    .summary = "write an HTML report of one or more stores",
    .about = "Writes one self-contained file: what was traced, persistence with its control, policies under budgets,\n"
             "plans, evaluation compared with replay, quantised caches, capacity at a required quality, theory,\n"
             "drift, and the command for each number. For results that the stores lack, the report gives the\n"
             "command that computes them. Clicking a heading sorts its table; the page follows the reader's light or\n"
             "dark setting and can be printed. Figures are drawn by gnuplot (exit status 3 without it).\n"
             "\n"
             "  shears report --db trained.db random.db --plan plan.json -o report.html",
    .opts = opts, .args_bytes = sizeof(struct report_args), .run = run};
