/* SPDX-License-Identifier: Apache-2.0 */
/* shears reproduce: the paper's experiments on the user's models and texts, as ordinary commands whose
 * results go to a folder per model. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"
#include "src/report/report.h"
#include "src/report/reproduce_show.h"
#include "src/cli/steps.h"
#include "src/model/model.h"

/* The steps of the paper's experiments for one model, in order. %d: the model's folder of results, %m: the model,
 * %t: --text FILE... or --jsonl FILE --field NAME, %j: the latter alone, %l: --length, %n: --count, %c: --count of
 * documents, %b: budgets, %i: --count of a task's questions, %s: --shots, %q: the policy for them, %v: --model DIR
 * if Theorem 3.1 can be tested, %k: the folder of the tasks, %r: tokens to write. The command skips a step that needs
 * %j or a file of %k that is missing, and says so. */
#define T " --db %d/trained.db"
#define READ "eval --model %m %t --length %l --count %n" T
#define TASK(name, file) {"task-" name ".txt", "eval --model %m --task " name " --data %k/" file " --shots %s " \
                          "--count %i --policy full window %q --budget 0.5,0.2" T, 0}

#define PAPER " --model opt-175b,llama-65b,bloom-176b --gpu A100-SXM-80GB --tp 8 --length 2048"

static const struct sh_command_step reproduce_steps[] = {
    {"trace.txt", "trace --model %m" T " %t --length %l --count %n --vectors qkv", 0},
    {"trace-random.txt", "trace --model %m --db %d/random.db %t --length %l --count %n --random-weights", 0},
    {"persistence.txt", "persistence" T, 0},
    {"persistence-beyond.txt", "persistence" T " --alpha 5/t --recent 10", 0},
    {"persistence-random.txt", "persistence --db %d/random.db", 0},
    {"replay.txt", "replay" T " --policy all --budget %b", 0},
    {"plan.txt", "plan" T " --policy scissorhands --target-recall 0.9 --allocator greedy -o %d/plan.json", 0},
    {"eval.txt", READ " --policy window streaming h2o scissorhands --budget %b", 0},
    {"eval-4bit.txt", READ " --policy full scissorhands --budget 0.5 --kv-bits 4", 0},
    {"eval-weights-4bit.txt", READ " --policy full scissorhands --budget 0.5 --weight-bits 4", 0},
    {"eval-weights-pruned.txt", READ " --policy full scissorhands --budget 0.5 --weight-prune 0.5", 0},
    {"eval-length.txt", "eval --model %m %j --count %c --policy window scissorhands --budget 0.5 --by length" T, 0},
    TASK("hellaswag", "hellaswag.jsonl"),
    {"task-hellaswag-4bit.txt", "eval --model %m --task hellaswag --data %k/hellaswag.jsonl --shots %s --count %i "
     "--policy full %q --budget 0.5 --kv-bits 4" T, 0},
    TASK("mathqa", "math_qa.jsonl"),
    TASK("piqa", "piqa.jsonl"),
    TASK("winogrande", "winogrande.jsonl"),
    TASK("openbookqa", "openbook_qa.jsonl"),
    {"drift.txt", "drift --model %m" T " --policy scissorhands --budget 0.3333 --count 1", 0},
    {"theory.txt", "theory" T " %v", 0},
    {"repetition.txt", "repetition --model %m %t --length %l --count %n --max-tokens %r --policy scissorhands "
     "--budget 0.5" T, 0},
    {"table-1.txt", "capacity" PAPER " --batch 128", 0},
    {"table-2.txt", "capacity" PAPER, 0},
    {"figure-1.txt", "plot heatmap" T " -o %d/figure-1-attention-map.svg", 1},
    {"figure-2.txt", "plot persistence" T " %d/random.db -o %d/figure-2-persistence.svg", 1},
    {"figure-3.txt", "plot compression" T " -o %d/figure-3-compression.svg", 1},
    {"figure-4.txt", "plot score-change" T " -o %d/figure-4-score-change.svg", 1},
    {"figure-5.txt", "plot heatmap --db %d/random.db -o %d/figure-5-random-weights.svg", 1},
    {"leaderboard.txt", "plot leaderboard" T " -o %d/leaderboard.svg", 1},
    {"report.txt", "report" T " %d/random.db --plan %d/plan.json --model %m -o %d/report.html", 1},
    {0}};

enum { MOST_MODELS = 8, MANY_POSITIONS = 2048, ROOM_FOR_TENTH = 120 };

/* Tokens of a text of which a fifth, or a tenth, holds Scissorhands' newest ten tokens and one more. */
#define LEAST "55"
#define LEAST_FOR_TENTH "110"

struct reproduce_args {
    struct sh_list model, text;
    const char *out, *jsonl, *field, *tasks, *size;
    long long length, count, items, shots;
};

#define F(name) offsetof(struct reproduce_args, name)
static const struct sh_opt opts[] = {
    SH_LIST("model", F(model), "DIR...", "checkpoint folders or .gguf files, at most eight"),
    {"output", SH_OPT_TEXT, F(out), "DIR", "output folder, with one folder per model", 0, 0, 'o'},
    SH_TEXT_OPT(F(text)),
    SH_JSONL_OPT(F(jsonl)),
    SH_FIELD_OPT(F(field)),
    SH_TEXT("tasks", F(tasks), "DIR", "folder with any of hellaswag.jsonl, math_qa.jsonl, piqa.jsonl,\n"
        "winogrande.jsonl, openbook_qa.jsonl"),
    SH_TEXT("size", F(size), "small|medium|full", "small (default): 2 sequences of 256 tokens, 20 questions per task\n"
        "medium: 8 of 512, 200 questions\nfull: 32 of the whole context length, 1000 questions"),
    SH_INT("length", F(length), "N", 64, 1 << 22, "tokens per sequence, overriding --size"),
    SH_INT("count", F(count), "N", 1, 1e9, "sequences, overriding --size"),
    SH_INT("items", F(items), "N", 1, 1e9, "questions per task, overriding --size"),
    SH_INT("shots", F(shots), "N", 0, 1000, "examples before each question (default: 5 as in the paper; 0 for models\n"
        "with fewer than 2048 positions)"),
    {0}};

static const struct size { const char *name; int length, count, documents, items, made; } sizes[] = {
    {"small", 256, 2, 8, 20, 32}, {"medium", 512, 8, 64, 200, 64}, {"full", 1 << 30, 32, 500, 1000, 128}};

static const struct reproduce_args defaults = {.field = "text", .size = "small", .shots = -1};

struct subject {
    const char *path;
    char *name, *folder;
    int positions, is_plain;            /* plain: scores are of x W_Q and x W_K themselves         */
    double parameters;
};

struct left_out {
    char *part, *why;                   /* owned                                                  */
};

struct work {
    const struct reproduce_args *a;
    const struct sh_common *common;
    struct size size;
    struct subject model[MOST_MODELS];
    int n_model;
    struct left_out *left;              /* [n_left] */
    int n_left, done, known, failed, gnuplot_absent;
};

/* ---- the request ---- */

static int check(struct work *w, const struct sh_list *positional, struct sh_err *e)
{
    const struct reproduce_args *a = w->a;
    size_t i = 0;
    const struct sh_need needs[] = {{"--model DIR...", a->model.n > 0}, {"-o DIR", a->out != NULL}, {0}};
    if (sh_args_none("reproduce", positional, e) || sh_args_need("reproduce", needs, e))
        return -1;
    if (a->model.n > MOST_MODELS)
        return sh_misused(e, "--model: found %d models, expected at most %d", a->model.n, MOST_MODELS);
    if (!a->text.n == !a->jsonl)
        return sh_misused(e, "reproduce requires either --text FILE... or --jsonl FILE");
    while (i < 2 && strcmp(sizes[i].name, a->size))
        i++;
    w->size = sizes[i];
    if (strcmp(w->size.name, a->size))
        return sh_misused(e, "--size: unknown value \"%s\", expected one of small, medium, full", a->size);
    w->size.length = a->length ? (int)a->length : w->size.length;
    w->size.count = a->count ? (int)a->count : w->size.count;
    w->size.items = a->items ? (int)a->items : w->size.items;
    for (int k = 0; k < a->text.n; k++)
        if (access(a->text.at[k], R_OK))
            return sh_fail(e, "%s: cannot be read: %s", a->text.at[k], strerror(errno));
    if (a->jsonl && access(a->jsonl, R_OK))
        return sh_fail(e, "%s: cannot be read: %s", a->jsonl, strerror(errno));
    if (a->tasks && access(a->tasks, R_OK | X_OK))
        return sh_fail(e, "%s: cannot be read: %s", a->tasks, strerror(errno));
    return 0;
}

/* Opens every model before anything is run; models of the same name get a number. */
static int look(struct work *w, struct sh_err *e)
{
    for (int i = 0; i < w->a->model.n; i++) {
        struct subject *s = &w->model[w->n_model];
        struct sh_model *m = sh_model_open(s->path = w->a->model.at[i], e);
        if (!m)
            return -1;
        w->n_model++;
        s->name = xstrdup(sh_model_name(m));
        for (int k = 0; k < i; k++)
            if (!strcmp(w->model[k].name, s->name)) {
                free(s->name);
                s->name = xasprintf("%s-%d", sh_model_name(m), i + 1);
            }
        const struct sh_arch *arch = sh_model_arch(m);
        s->positions = arch->max_pos;
        s->is_plain = arch->pos != SH_POS_ROTARY && !(arch->flags & SH_HAS_QK_NORM);
        s->parameters = (double)sh_model_parameters(m);
        s->folder = xasprintf("%s/%s", w->a->out, basename(s->name));
        sh_model_close(m);
    }
    int bad = sh_folder_hold(w->a->out, e);
    for (int i = 0; i < w->n_model && !bad; i++)
        bad = sh_folder_make(w->model[i].folder, e);
    return bad;
}

/* ---- the steps ---- */

/* A step skipped for several models is one line that names them all. */
static void leave(struct work *w, const struct subject *m, const char *output, const char *why)
{
    int bytes = (int)(strstr(output, ".txt") ? strlen(output) - 4 : strlen(output));
    for (int i = 0; i < w->n_left; i++) {
        struct left_out *l = &w->left[i];
        size_t n = strlen(l->part);
        if (strcmp(l->why, why) || n < (size_t)bytes + 2 || strncmp(l->part + n - bytes, output, (size_t)bytes))
            continue;
        char *part = xasprintf("%s, %s", m->name, l->part);
        free(l->part);
        l->part = part;
        return;
    }
    w->left = xreallocarray(w->left, (size_t)w->n_left + 1, sizeof *w->left);
    w->left[w->n_left++] = (struct left_out){
        xasprintf("%s, %.*s", m->name, bytes, output), xstrdup(why)};
}

/* Why a step cannot be run with the given options; NULL: it can. Caller frees. */
static char *lacks(const struct work *w, const struct sh_command_step *s)
{
    const char *file = strstr(s->line, "%k/");
    if (strstr(s->line, "%j") && !w->a->jsonl)
        return xstrdup("requires documents of different lengths: --jsonl FILE");
    if (!file)
        return NULL;
    if (!w->a->tasks)
        return xstrdup("requires the tasks' questions: --tasks DIR");
    char *path = xasprintf("%s/%.*s", w->a->tasks, (int)strcspn(file + 3, " "), file + 3);
    char *why = access(path, R_OK) ? xasprintf("needs %s", path) : NULL;
    free(path);
    return why;
}

static int run_steps(struct work *w, const struct subject *m, const struct sh_step_name *names, struct sh_err *e)
{
    struct sh_steps run = {.common = w->common, .folder = m->folder, .name = names,
                           .again = "the same command", .keeps = 1, .gnuplot_absent = w->gnuplot_absent};
    int bad = 0;
    for (const struct sh_command_step *s = reproduce_steps; s->line && !bad; s++) {
        char *why = lacks(w, s);
        int status = why ? SH_OK : sh_steps_run(&run, s, e);
        bad = status < 0;
        if (why)
            leave(w, m, s->output, why);
        else if (s->draws && status == SH_ABSENT)
            leave(w, m, s->output, "gnuplot is not installed");
        else if (status > 0)
            leave(w, m, s->output, "failed (see the message above)");
        w->failed += status > 0 && !(s->draws && status == SH_ABSENT);
        free(why);
        if (s == reproduce_steps && status > 0)
            bad = sh_fail(e, "reproduce: %s was not traced; all further steps require its trace", m->name);
    }
    w->gnuplot_absent = run.gnuplot_absent;
    w->done += run.done;
    w->known += run.known;
    return bad;
}

static int run_model(struct work *w, const struct subject *m, struct sh_err *e)
{
    const struct reproduce_args *a = w->a;
    char number[6][24];
    const char **text = xcalloc((size_t)a->text.n + 6, sizeof *text), *at[6];
    int length = w->size.length < m->positions ? w->size.length : m->positions, n = 0;
    long long shots = a->shots >= 0 ? a->shots : m->positions < MANY_POSITIONS ? 0 : 5;
    const long long value[6] = {length, w->size.count, w->size.documents, w->size.items, shots,
                                w->size.made < length / 2 ? w->size.made : length / 2};
    int has_tenth = length >= ROOM_FOR_TENTH;
    const char *least = has_tenth ? LEAST_FOR_TENTH : LEAST;
    const char *budgets = has_tenth ? "0.1,0.2,0.3333,0.5,0.75,1.0" : "0.2,0.3333,0.5,0.75,1.0";
    n = sh_step_texts(&a->text, a->jsonl, a->field, text);
    text[n++] = "--min-tokens";
    text[n++] = least;
    for (int i = 0; i < 6; i++) {
        snprintf(number[i], sizeof number[i], "%lld", value[i]);
        at[i] = number[i];
    }
    const char *folder = m->folder, *theorem[] = {"--model", m->path};
    /* A prompt without examples is short; a fifth of it must hold more than the newest tokens. */
    const char *policy = shots ? "scissorhands" : "scissorhands:recent=2";
    if (!m->is_plain)
        leave(w, m, "Theorem 3.1",
              "covers plain x W_Q and x W_K (OPT, GPT-2, BLOOM); this model rotates or normalises them");
    const struct sh_step_name names[] = {
        {'d', &folder, 1}, {'m', &m->path, 1}, {'t', text, n}, {'j', text, a->jsonl ? n : 0}, {'k', &a->tasks, 1},
        {'b', &budgets, 1}, {'l', &at[0], 1}, {'n', &at[1], 1}, {'c', &at[2], 1}, {'i', &at[3], 1}, {'s', &at[4], 1},
        {'r', &at[5], 1}, {'q', &policy, 1}, {'v', theorem, m->is_plain ? 2 : 0}, {0}};
    int bad = run_steps(w, m, names, e);
    free(text);
    return bad;
}

/* One report of several models side by side, as many as a report shows. */
static int run_page(struct work *w, struct sh_err *e)
{
    static const struct sh_command_step page[] = {{"report.txt", "report --db %x -o %o/report.html", 1}, {0}};
    const char *db[MOST_MODELS];
    int n = w->n_model < SH_REPORT_STORES ? w->n_model : SH_REPORT_STORES;
    if (w->n_model < 2 || w->gnuplot_absent)
        return 0;
    for (int i = 0; i < n; i++)
        db[i] = xasprintf("%s/trained.db", w->model[i].folder);
    const struct sh_step_name names[] = {{'x', db, n}, {'o', &w->a->out, 1}, {0}};
    struct sh_steps run = {.common = w->common, .folder = w->a->out, .name = names, .again = "the same command",
                           .keeps = !w->done};
    int status = sh_steps_run(&run, page, e);
    w->done += run.done;
    w->known += run.known;
    w->failed += status > 0;
    for (int i = 0; i < n; i++)
        free((char *)(uintptr_t)db[i]);
    return status < 0;
}

/* ---- the results ---- */

/* Experiments of the paper and its successors that are not run, and how to run them. */
static const char *const elsewhere[][2] = {
    {"over the training of a model",
     "pass its checkpoints as --model A B C; demo/README.md says how to make those of the embedded model"},
    {"other domains (vision, audio)", "shears import --attention, then shears persistence and replay on that store"},
    {"distilled models", "pass both checkpoints to --model"},
    {"measured batches and rates", "shears generate on the GPU; Tables 1 and 2 are computed"}};

static int conclude(struct work *w, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    int bad = 0;
    sh_out_list(o, "models", "models (cache, weights: change of nats per token; see below)");
    for (int i = 0; i < w->n_model && !bad; i++)
        bad = sh_reproduce_row(o, w->model[i].name, w->model[i].parameters, w->model[i].folder, e);
    sh_out_end(o);
    sh_out_list(o, "left_out", "skipped");
    for (int i = 0; i < w->n_left; i++) {
        sh_out_item(o);
        sh_out_text(o, "part", "part", w->left[i].part);
        sh_out_text(o, "why", "reason or remedy", w->left[i].why);
    }
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        sh_out_item(o);
        sh_out_text(o, "part", "part", elsewhere[i][0]);
        sh_out_text(o, "why", "reason or remedy", elsewhere[i][1]);
    }
    sh_out_end(o);
    sh_out_int(o, "steps_done", "steps run", w->done);
    sh_out_int(o, "steps_known", "steps already done", w->known);
    sh_out_int(o, "steps_failed", "failed", w->failed);
    sh_out_note(o, "ratio: of the tokens that matter late, the share that mattered early (scores above 1/t, t keys");
    sh_out_note(o, "in a row); chance: the ratio for random tokens; lift beyond: ratio / chance for scores above");
    sh_out_note(o, "5/t, query and key 10 tokens apart; random: the ratio with random weights; cache 2x, 5x:");
    sh_out_note(o, "Scissorhands; held to: the largest measured compression that raises perplexity by at most 1 %%;");
    sh_out_note(o, "4-bit w., pruned (half of the weights): with the full cache; beyond sum: how much more halving");
    sh_out_note(o, "the cache costs with these weights than with the original ones (0: losses add up).");
    for (int i = 0; i < w->n_model && !w->gnuplot_absent; i++)
        sh_out_note(o, "Open %s/report.html; next to it are the output of each step and the figures.",
                    w->model[i].folder);
    if (w->n_model > 1 && !w->gnuplot_absent)
        sh_out_note(o, "Open %s/report.html to compare the models.", w->a->out);
    bad = sh_common_write(w->common, o, bad, e);
    if (!bad && w->failed)
        bad = sh_fail(e, "reproduce: %d step%s failed; run the same command again to retry", w->failed,
                      w->failed > 1 ? "s" : "");
    return bad;
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct work w = {.a = args, .common = common};
    int bad = check(&w, positional, e) || look(&w, e);
    for (int i = 0; i < w.n_model && !bad; i++)
        bad = run_model(&w, &w.model[i], e);
    bad = bad || run_page(&w, e) || conclude(&w, e);
    for (int i = 0; i < w.n_model; i++) {
        free(w.model[i].name);
        free(w.model[i].folder);
    }
    for (int i = 0; i < w.n_left; i++) {
        free(w.left[i].part);
        free(w.left[i].why);
    }
    free(w.left);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_reproduce = {
    .name = "reproduce",
    .usage = "--model DIR... -o DIR (--text FILE... | --jsonl FILE [--field NAME]) [--tasks DIR] [--size NAME]",
    .summary = "reproduce the Scissorhands paper's figures and tables on your own models",
    .about = "Runs all experiments of the paper on each model: attention maps with trained and random weights (Fig.\n"
             "1, 5), persistence (Fig. 2), perplexity and accuracy under compression (Fig. 3, Table 3, C4 by\n"
             "length), the change of scores (Fig. 4) and memory (Tables 1, 2); and in addition a leaderboard of\n"
             "policies, a test of the theorems, repetition, and compression combined with 4-bit and pruned weights.\n"
             "Each step is an ordinary command, shown as it runs, and its output is kept. A finished step is not run\n"
             "again: run the same command again to resume. It ends with an HTML report (shears report), a table of\n"
             "the models, and a list of what was skipped and why. Changes to input files are not detected: after\n"
             "changing one, use a new output folder.\n"
             "\n"
             "  shears reproduce --model opt-125m opt-1.3b --jsonl c4.jsonl --tasks tasks --size medium -o paper",
    .opts = opts, .args_bytes = sizeof(struct reproduce_args), .defaults = &defaults, .run = run};
