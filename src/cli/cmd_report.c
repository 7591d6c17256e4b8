/* SPDX-License-Identifier: Apache-2.0 */
/* shears report: an HTML report of one or more stores. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plots/gnuplot.h"
#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"
#include "src/report/report_rows.h"
#include "src/report/report_style.h"

#define DECLARE(name) extern const struct sh_report_part sh_report_##name;
SH_REPORT_PARTS(DECLARE)

#define ENTRY(name) &sh_report_##name,
const struct sh_report_part *const sh_report_parts[] = {SH_REPORT_PARTS(ENTRY) NULL};

struct report_args {
    struct sh_list db, plan;
    const char *out, *model, *gpu, *gpus;
    long long length;
};

#define F(name) offsetof(struct report_args, name)
static const struct sh_opt opts[] = {
    SH_LIST("db", F(db), "FILE...", "trace stores with results, at most four; a store of random weights serves as\n"
        "the control"),
    {"output", SH_OPT_TEXT, F(out), "FILE.html", "the report", 0, 0, 'o'},
    SH_LIST("plan", F(plan), "FILE...", "plans whose budgets are shown, at most four"),
    SH_TEXT("model", F(model), "NAME|DIR", "model for the capacity section (default: the traced model, if known)"),
    SH_TEXT("gpu", F(gpu), "NAME,...", "GPUs for the capacity section (default: RTX-4090,A100-SXM-80GB,H100-SXM)"),
    SH_GPUS_OPT(F(gpus)),
    SH_INT("length", F(length), "N", 1, 1e9, "tokens per sequence for the capacity section (default: the model's "
        "context\nlength)"),
    {0}};

/* ---- the stores ---- */

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
    for (int i = 0; i < a->db.n; i++)
        if (sh_output_differs("-o", a->out, a->db.at[i], e))
            return -1;
    for (int i = 0; i < a->plan.n; i++)
        if (sh_output_differs("-o", a->out, a->plan.at[i], e))
            return -1;
    return sh_output_differs("-o", a->out, a->gpus, e) || sh_output_differs("-o", a->out, a->model, e) ||
           check_ending(a->out, e) ? -1 : 0;
}

static int open_stores(struct sh_report *r, const struct report_args *a, struct sh_err *e)
{
    for (int i = 0; i < a->db.n; i++) {
        struct sh_report_store *at = &r->store[r->n_store];
        at->path = r->path[r->n_store++] = a->db.at[i];
        struct sh_store *s = sh_store_open(at->path, e);
        int bad = !s || sh_store_runs(s, &at->run, &at->n_run, e);
        sh_store_close(s);
        if (bad)
            return -1;
    }
    return 0;
}

/* ---- the page ---- */

/* Does a store before i have the model of that name, with random weights or with trained ones (random 0)? */
static int is_named(const struct sh_report *r, int i, const char *model, int random)
{
    for (int k = 0; k < i; k++)
        if (r->store[k].n_run && !strcmp(r->store[k].run[0].model, model) &&
            sh_report_is_random(&r->store[k].run[0]) == random)
            return 1;
    return 0;
}

/* "opt-6.7b and random weights; opt-13b": every model once. */
static void title(const struct sh_report *r, FILE *to)
{
    int said = 0;
    for (int i = 0; i < r->n_store; i++) {
        const struct sh_stored_run *run = r->store[i].run;
        if (!r->store[i].n_run)
            continue;
        int random = sh_report_is_random(run), twins = is_named(r, r->n_store, run->model, !random);
        if (is_named(r, i, run->model, random) || (random && twins))
            continue;
        char *label = sh_report_label(run);
        fputs(said++ ? "; " : "", to);
        sh_html_text(to, label);
        fputs(twins ? " and random weights" : "", to);
        free(label);
    }
    if (!said)
        sh_html_text(to, r->store[0].path);
}

static void begin(const struct sh_report *r, const int *lacks, FILE *to)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>shears: ", to);
    title(r, to);
    fprintf(to, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<header>\n<h1>", sh_report_style);
    title(r, to);
    fputs("</h1>\n<p class=\"soft\">How attention persists, what a KV cache of fixed size keeps of it, and what "
          "that costs and saves. Written by shears " PACKAGE_VERSION "; each part ends with the commands that "
          "reproduce it.</p>\n"
          "</header>\n<nav aria-label=\"parts\"><ul>\n", to);
    for (int i = 0; sh_report_parts[i]; i++) {
        if (lacks[i] < 0)
            continue;
        fprintf(to, "<li%s><a href=\"#%s\">%s</a></li>\n", lacks[i] ? " class=\"lacks\"" : "", sh_report_parts[i]->name,
                sh_report_parts[i]->title);
    }
    fputs("<li><a href=\"#commands\">All commands</a></li>\n</ul></nav>\n<main>\n", to);
}

static void end(const struct sh_report *r, const struct sh_common *common, FILE *to)
{
    fputs("<section id=\"commands\"><h2>All commands</h2>\n<p>Run in this order, these commands reproduce this "
          "page.</p>\n"
          "<pre><code>", to);
    for (int i = 0; i < r->n_command; i++) {
        fputs("shears ", to);
        sh_html_text(to, r->command[i]);
        fputc('\n', to);
    }
    fputs("shears ", to);
    sh_html_text(to, common->line);
    fprintf(to, "\n</code></pre>\n</section>\n</main>\n<script>\n%s</script>\n</body>\n</html>\n", sh_report_script);
}

/* Without causal attention, the parts about caches could only say that they do not apply. */
static int has_causal(const struct sh_report *r)
{
    int n_run = 0;
    for (int i = 0; i < r->n_store; i++)
        for (int k = 0; k < r->store[i].n_run; k++, n_run++)
            if (!r->store[i].run[k].orderless)
                return 1;
    return !n_run;
}

static int write_part(struct sh_report *r, const struct sh_report_part *part, int *lacks, struct sh_err *e)
{
    FILE *page = r->to;
    char *text = NULL;
    size_t bytes;
    r->is_missing = 0;
    r->to = xmemstream(&text, &bytes);
    int bad = part->write ? part->write(r, e) : sh_report_results_part(r, part, e);
    xmemclose(r->to, &text, &bytes);
    r->to = page;
    *lacks = bytes ? r->is_missing : -1;
    if (bytes) {
        fprintf(page, "<section id=\"%s\"><h2>%s</h2>\n", part->name, part->title);
        fwrite(text, 1, bytes, page);
        fputs("</section>\n", page);
    }
    free(text);
    return bad;
}

static int write_parts(struct sh_report *r, int *lacks, struct sh_err *e)
{
    struct sh_progress progress;
    int n = 0, bad = 0, caches = has_causal(r);
    while (sh_report_parts[n])
        n++;
    sh_progress_begin(&progress, "writing", "parts", n, r->quiet);
    progress.uneven = 1;
    for (int i = 0; i < n && !bad; i++) {
        const struct sh_report_part *part = sh_report_parts[i];
        int is_of_any = !strcmp(part->name, "traced") || !strcmp(part->name, "orderless");
        lacks[i] = -1;
        bad = caches || is_of_any ? write_part(r, part, &lacks[i], e) : 0;
        sh_progress_at(&progress, i + 1, part->name);
    }
    sh_progress_end(&progress);
    return bad;
}

/* ---- the file ---- */

static struct sh_file *open_page(const char *path, struct sh_err *e)
{
    struct stat s;
    if (!*basename(path))
        return sh_misused(e, "-o %s: is a folder, expected a file", path), NULL;
    if (!lstat(path, &s) && !S_ISREG(s.st_mode))
        return sh_misused(e, "-o %s: exists and is not a regular file", path), NULL;
    return sh_file_begin(path, e);
}

static int make(struct sh_report *r, const struct sh_common *common, const char *out, struct sh_err *e)
{
    int lacks[64] = {0};
    char *body = NULL;
    size_t bytes;
    struct sh_file *f = open_page(out, e);
    if (!f)
        return -1;
    r->to = xmemstream(&body, &bytes);
    int bad = write_parts(r, lacks, e);
    xmemclose(r->to, &body, &bytes);
    if (!bad) {
        begin(r, lacks, sh_file_stream(f));
        fwrite(body, 1, bytes, sh_file_stream(f));
        end(r, common, sh_file_stream(f));
    }
    free(body);
    return sh_file_end(f, bad, e);
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
    if (check(a, positional, e))
        return -1;
    char *what = xasprintf("report %s", a->out), *gnuplot = sh_gnuplot_need(what, e);
    free(what);
    if (!gnuplot)
        return -1;
    free(gnuplot);
    struct sh_report r = {.plan = a->plan.at, .n_plan = a->plan.n, .model = a->model, .gpu = a->gpu, .gpus = a->gpus,
                          .length = a->length, .threads = (int)common->threads, .quiet = common->quiet};
    int bad = open_stores(&r, a, e);
    bad = bad || make(&r, common, a->out, e) || tell(common, a->out, e);
    for (int i = 0; i < r.n_store; i++)
        if (r.store[i].run)
            sh_stored_runs_free(r.store[i].run, r.store[i].n_run);
    for (int i = 0; i < r.n_command; i++)
        free(r.command[i]);
    free(r.command);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_report = {
    .name = "report",
    .usage = "--db FILE... -o FILE.html [--plan FILE...] [--model NAME|DIR]",
    .summary = "write an HTML report of one or more stores",
    .about = "Writes one self-contained file: what was traced, persistence with its control, policies under budgets,\n"
             "plans, evaluation compared with replay, quantised caches, capacity at a stated quality, theory, drift,\n"
             "and the command behind each number. For results that the stores lack, the report gives the command that\n"
             "computes them. Tables sort by a click on a heading; the page follows the reader's light or dark setting\n"
             "and can be printed. Figures are drawn by gnuplot (exit status 3 without it).\n\n"
             "  shears report --db trained.db random.db --plan plan.json -o report.html",
    .opts = opts, .args_bytes = sizeof(struct report_args), .run = run};
