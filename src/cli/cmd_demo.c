/* SPDX-License-Identifier: Apache-2.0 */
/* shears demo: the main commands on the embedded model and on the same model with random weights. Each
 * command is shown as it runs, so that every step can be repeated by hand. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demo/embed.h"
#include "src/app/persistence/persistence_study.h"
#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/base/progress.h"
#include "src/cli/paths.h"
#include "src/cli/steps.h"
#include "src/report/answer.h"

/* The steps in their order: commands with %f for the folder, and the file that the output of each goes to. */
#define SIZE " --length 512 --count 6"
#define VALUES " --vectors v"
#define READ " --model %f/demo-opt --text %f/natural.txt --length 512 --count 12 --db %f/trained.db"
#define POLICIES " --policy h2o:recent=10 scissorhands streaming"

static const struct sh_command_step demo_steps[] = {
    {"trained-natural.txt", "trace --model %f/demo-opt --db %f/trained.db --text %f/natural.txt" SIZE VALUES, 0},
    {"trained-recall.txt", "trace --model %f/demo-opt --db %f/trained.db --jsonl %f/recall.jsonl" SIZE VALUES, 0},
    {"random-natural.txt", "trace --model %f/demo-opt --db %f/random.db --text %f/natural.txt" SIZE " "
     "--random-weights", 0},
    {"random-recall.txt", "trace --model %f/demo-opt --db %f/random.db --jsonl %f/recall.jsonl" SIZE " "
     "--random-weights", 0},
    {"persistence-trained.txt", "persistence --db %f/trained.db", 0},
    {"persistence-random.txt", "persistence --db %f/random.db", 0},
    {"replay.txt", "replay --db %f/trained.db --policy all h2o:recent=10 --budget 0.1,0.2,0.35,0.5,1.0", 0},
    {"plan.txt", "plan --model %f/demo-opt --text %f/natural.txt --length 512 --target-ppl-increase 1%% --policy "
                 "h2o:recent=10 --allocator greedy --sequences 12 --db %f/judged.db -o %f/plan.json", 0},
    {"eval.txt", "eval" READ POLICIES " --budget 0.1,0.2,0.35,0.5,0.75", 0},
    {"eval-4bit.txt", "eval" READ " --policy full h2o:recent=10 --budget 0.2 --kv-bits 4", 0},
    {"drift.txt", "drift --model %f/demo-opt --db %f/trained.db --policy h2o:recent=10 --budget 0.2 --run 1 "
                  "--count 1", 0},
    {"capacity.txt", "capacity --model %f/demo-opt --gpu RTX-4090,H100-SXM --length 512 --db %f/trained.db "
     "--max-ppl-increase 5%%", 0},
    {"simulate.txt", "simulate --model %f/demo-opt --gpu RTX-4090 --rate 50,200 --prompt 400 --output 100 "
                     "--budget 0.2 --db %f/trained.db", 0},
    {"plot.txt", "plot persistence --db %f/trained.db %f/random.db -o %f/persistence.svg", 1},
    {"plot.txt", "plot persistence-grid --db %f/trained.db %f/random.db -o %f/persistence-grid.svg", 1},
    {"plot.txt", "plot heads --db %f/trained.db %f/random.db -o %f/heads.svg", 1},
    {"plot.txt", "plot heatmap --db %f/trained.db -o %f/heatmap.svg", 1},
    {"report.txt",
     "report --db %f/trained.db %f/random.db --plan %f/plan.json --model %f/demo-opt -o %f/report.html", 1},
    {0}};

struct demo {
    const struct sh_common *common;
    const char *folder;
    int gnuplot_absent;
    int stale;                          /* the folder holds the demo of another version: its stores are deleted */
    double lift[2];                     /* beyond recency: trained, random */
};

/* 1: the file has this content, 0: it has other content, -1: it does not exist. */
static int same(const char *path, const unsigned char *at, size_t bytes)
{
    FILE *f = sh_stream_open(path, NULL);
    if (!f)
        return -1;
    unsigned char *there = xmalloc(bytes + 1);
    size_t n = fread(there, 1, bytes + 1, f);
    fclose(f);
    int equal = n == bytes && !memcmp(there, at, bytes);
    free(there);
    return equal;
}

static int write_file(struct demo *d, const struct sh_demo_file *f, struct sh_err *e)
{
    char *path = xasprintf("%s/%s", d->folder, f->path);
    size_t bytes = (size_t)(f->end - f->begin);
    int known = same(path, f->begin, bytes), bad = 0;
    d->stale |= known == 0;
    struct sh_file *to = known == 1 ? NULL : sh_file_begin(path, e);
    if (to)
        fwrite(f->begin, 1, bytes, sh_file_stream(to));
    if (known != 1)
        bad = to ? sh_file_end(to, 0, e) : -1;
    free(path);
    return bad;
}

/* Only an empty folder, or one that an earlier demo made, is written to. */
static int is_ours(const struct demo *d, struct sh_err *e)
{
    char *mark = xasprintf("%s/demo-opt/config.json", d->folder);
    int marked = access(mark, F_OK) == 0, others = 0;
    free(mark);
    DIR *folder = marked ? NULL : opendir(d->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        others += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    if (folder)
        closedir(folder);
    if (others)
        sh_fail(e, "%s: contains other files, expected a new folder or that of an earlier demo", d->folder);
    return !others;
}

static int unpack(struct demo *d, struct sh_err *e)
{
    if (!sh_demo_files[0].path)
        return sh_absent(e, "demo: this program was built without the embedded model");
    if (!is_ours(d, e))
        return -1;
    char *model = xasprintf("%s/demo-opt", d->folder);
    int bad = sh_folder_hold(d->folder, e) || sh_folder_make(model, e);
    free(model);
    for (int i = 0; sh_demo_files[i].path && !bad; i++)
        bad = write_file(d, &sh_demo_files[i], e);
    static const char *const stores[] = {"trained.db", "random.db", "judged.db"};
    for (int i = 0; i < 3 && d->stale; i++) {
        char *store = xasprintf("%s/%s", d->folder, stores[i]);
        unlink(store);
        free(store);
    }
    return bad;
}

static int steps(struct demo *d, struct sh_err *e)
{
    const struct sh_step_name names[] = {{'f', &d->folder, 1}, {0}};
    char *again = xasprintf("shears demo %s", d->folder);
    struct sh_steps run = {.common = d->common, .folder = d->folder, .name = names, .again = again};
    int bad = 0;
    for (const struct sh_command_step *s = demo_steps; s->line && !bad; s++) {
        int status = sh_steps_run(&run, s, e);
        bad = status < 0;
        if (status == SH_FAILED || status == SH_MISUSED)
            bad = sh_fail(e, "demo: the step above failed");
    }
    d->gnuplot_absent = run.gnuplot_absent;
    free(again);
    return bad;
}

static int compare(struct demo *d, const char *who, struct sh_out *o, struct sh_err *e)
{
    char *path = xasprintf("%s/%s.db", d->folder, who);
    struct sh_study *y = xcalloc(1, sizeof *y);
    struct sh_alpha literal, beyond;
    y->window = 400;
    y->threads = (int)d->common->threads;
    y->quiet = 1;
    sh_alpha_parse("row", &literal, e);
    sh_alpha_parse("5/t", &beyond, e);
    int a = sh_study_add(y, &literal, 0, 0.5), b = sh_study_add(y, &beyond, 10, 0.5);
    struct sh_store *s = sh_store_open(path, e);
    int bad = !s || sh_study_run(y, s, e);
    sh_store_close(s);
    for (int i = 0; i < 2 && !bad; i++) {
        const double *f = sh_study_all(y, i ? b : a);
        sh_out_item(o);
        sh_out_text(o, "weights", "weights", who);
        sh_out_text(o, "alpha", "alpha", i ? "5/t" : "1/t");
        sh_out_int(o, "recent", "R", i ? 10 : 0);
        sh_out_real(o, "ratio", "ratio", f[SH_RATIO], 4);
        sh_out_real(o, "density", "density = chance", f[SH_DENSITY], 4);
        sh_out_real(o, "lift", "lift", f[SH_LIFT], 3);
        sh_out_real(o, "relative_risk", "rel. risk", f[SH_RELATIVE_RISK], 3);
        sh_out_real(o, "auc", "AUC", f[SH_AUC], 3);
        d->lift[!strcmp(who, "random")] = f[SH_LIFT];
    }
    sh_study_free(y);
    free(y);
    free(path);
    return bad;
}

static void explain(const struct demo *d, struct sh_out *o)
{
    sh_out_note(o, "The literal ratio (alpha 1/t, where t is the number of keys that a query sees; every pair) says");
    sh_out_note(o, "little: nearly every token gets a score above 1/t at least once, when it is the newest, so the");
    sh_out_note(o, "ratio is high for random weights as well. Lift is the ratio divided by chance, which is the");
    sh_out_note(o, "ratio for tokens drawn at random.");
    sh_out_note(o, "Beyond recency (alpha 5/t, query and key at least 10 tokens apart):");
    sh_out_note(o, "  trained: a token that matters late is on average %.2f times as likely to have mattered early as",
                d->lift[0]);
    sh_out_note(o, "  a token chosen at random;");
    if (isnan(d->lift[1]))
        sh_out_note(o, "  random: no token is pivotal (-), so there is no such pattern.");
    else
        sh_out_note(o, "  random: %.2f times.", d->lift[1]);
    sh_out_note(o, "%s", "");
    if (d->gnuplot_absent)
        sh_out_note(o, "No figures: gnuplot is not installed. Open %s/persistence-trained.txt", d->folder);
    else
        sh_out_note(o, "Open %s/report.html. The same folder contains the output of each step and the figures (.svg).",
                    d->folder);
}

/* The demonstration ends with what a reader wants to know first. */
static void put_answer(const struct demo *d, struct sh_out *o)
{
    struct sh_report r = {.gpu = "H100-SXM", .quiet = 1};
    struct sh_answer a;
    struct sh_err ignored;
    char *db = xasprintf("%s/trained.db", d->folder), *model = xasprintf("%s/demo-opt", d->folder);
    char *plan = xasprintf("%s/plan.json", d->folder);
    r.model = model;
    r.plan = (const char *const[]){plan};
    r.n_plan = 1;
    if (!sh_report_open(&r, (const char *const[]){db}, 1, &ignored) &&
        sh_answer_read(&a, &r, &ignored) > 0) {
        const char *const says[] = {a.small, a.buys, a.on, a.lacks, a.how};
        sh_out_note(o, "%s", "");
        for (int i = 0; i < 5; i++)
            if (says[i])
                sh_out_note(o, "%s", says[i]);
        sh_out_note(o, "This search was short: shears study compares several policies on more texts.");
        sh_answer_clear(&a);
    }
    sh_report_close(&r);
    free(db);
    free(model);
    free(plan);
}

static int conclude(struct demo *d, double began, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    sh_out_list(o, "comparison", "persistence of importance, mean over layers: trained and random weights");
    int bad = compare(d, "trained", o, e) || compare(d, "random", o, e);
    sh_out_end(o);
    sh_out_real(o, "seconds", "seconds", sh_now_s() - began, 1);
    sh_out_text(o, "folder", "folder", d->folder);
    explain(d, o);
    put_answer(d, o);
    return sh_common_write(d->common, o, bad, e);
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct demo d = {.common = common, .folder = positional->n ? positional->at[0] : "shears-demo"};
    (void)args;
    if (positional->n > 1)
        return sh_misused(e, "demo: found %d arguments, expected one folder", positional->n);
    if (strchr(d.folder, ' ') || strchr(d.folder, '%'))
        return sh_misused(e, "demo: folder \"%.200s\": expected a name without spaces or %%", d.folder);
    double began = sh_now_s();
    return unpack(&d, e) || steps(&d, e) || conclude(&d, began, e) ? -1 : 0;
}

const struct sh_cmd sh_cmd_demo = {
    .name = "demo",
    .usage = "[DIR]",
    .summary = "run the main commands on an embedded small model",
    .about = "Writes to DIR (default: shears-demo) the embedded model, recall documents and a text that the model\n"
             "was not trained on, traces the model on them with trained and with random weights, measures\n"
             "persistence, replays eviction policies, plans a cache and judges the plan on texts of its own,\n"
             "evaluates budgets and a 4-bit cache, computes capacity, simulates a server, and writes an HTML report.\n"
             "The output ends with how small the cache can be. Every command is shown as it runs; --threads and\n"
             "--seed are passed on. Run the same command again to resume.\n"
             "\n"
             "  shears demo /tmp/demo",
    .run = run,
};
