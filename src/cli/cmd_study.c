/* SPDX-License-Identifier: Apache-2.0 */
/* shears study: how small the cache of the user's own model can be, from its trace to the page that answers it, as
 * ordinary commands whose results go to one folder. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/app/capacity/capacity_ask.h"
#include "src/app/capacity/capacity_names.h"
#include "src/app/capacity/capacity_study.h"
#include "src/app/common/quality_limit.h"
#include "src/app/common/text_source.h"
#include "src/app/plan/judged_count.h"
#include "src/base/file.h"
#include "src/base/mem.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"
#include "src/cli/steps.h"
#include "src/model/model.h"
#include "src/report/answer.h"
#include "traces/store.h"

/* The steps in order. %d: the folder of results, %m: the model, %t: --text FILE... or --jsonl FILE --field NAME, and
 * --min-tokens, %e: the texts that are evaluated, the ones that judged the plan or else %t, %l: --length, %n: sequences
 * that are evaluated, %j: --sequences N if their number was given, %c: those that are traced, %b: budgets, %g: GPUs,
 * %h: the first of them, %r: tokens to write, %q: tokens of a prompt, %a: requests per second, %p: the target, %v:
 * --model DIR if Theorem 3.1 can be tested, %k: --plan FILE if the plan was made, %s: that, or else a budget. The
 * policies that are evaluated without a plan include all that plan tries by default, so that the plan's own is among
 * them. The evaluations come after the plan: they read the sequences that judged it, so that budgets and plan can be
 * compared. Another target repeats the plan and what follows it. */
#define T " --db %d/trained.db"
#define PLAN_OUTPUT "plan.txt"
#define READ "eval --model %m %e --length %l --count %n" T

static const struct sh_command_step study_steps[] = {
    {"trace.txt", "trace --model %m" T " %t --length %l --count %c --vectors qkv", 0},
    {"trace-random.txt", "trace --model %m --db %d/random.db %t --length %l --count %c --random-weights", 0},
    {"persistence.txt", "persistence" T " --alpha 5/t --recent 10", 0},
    {"persistence-random.txt", "persistence --db %d/random.db --alpha 5/t --recent 10", 0},
    {"replay.txt", "replay" T " --policy all h2o:recent=0.5 roco:recent=0.5 --budget %b,1.0", 0},
    {"drift.txt", "drift --model %m" T " --policy h2o:recent=0.5 --budget 0.35 --count 1", 0},
    {"theory.txt", "theory" T " %v", 0},
    {"repetition.txt", "repetition --model %m %t --length %l --count 4 --max-tokens %r --policy h2o:recent=0.5 "
     "--budget 0.5" T, 0},
    {PLAN_OUTPUT, "plan --model %m %t --length %l %j --search-first %c --target-ppl-increase %p --compare bytes" T
     " -o %d/plan.json --judged %d/judged.jsonl", 0},
    {"eval.txt", READ " --policy window streaming h2o:recent=0.5 roco:recent=0.5 tova scissorhands "
     "scissorhands:counts=rate,drop=1,recent=0.5 --budget %b %k", 0},
    {"eval-4bit.txt", READ " --policy full h2o:recent=0.5 --budget 0.5 --kv-bits 4", 0},
    {"eval-weights-4bit.txt", READ " --policy full h2o:recent=0.5 --budget 0.5 --weight-bits 4", 0},
    {"capacity.txt", "capacity --model %m --gpu %g --length %l --policy-state" T, 0},
    {"simulate.txt", "simulate --model %m --gpu %h --rate %a --prompt %q --output %r %s" T, 0},
    {"report.txt", "report" T " %d/random.db %k --model %m --gpu %g --target-ppl-increase %p "
     "-o %d/report.html", 1},
    {0}};

enum { LENGTH = 512, TRACED = 6, SEQUENCES = 24, ROOM_FOR_TENTH = 120,
       LEAST_FOR_TENTH = 110, LEAST_FOR_FIFTH = 55 };   /* tokens of a text: a tenth holds the newest ten, one more */

struct study_args {
    struct sh_list text;
    const char *model, *jsonl, *field, *gpu, *out, *target;
    long long length, count;            /* count 0: as many as is usual                           */
};

#define F(name) offsetof(struct study_args, name)
static const struct sh_opt opts[] = {
    SH_MODEL_OPT(F(model)),
    SH_TEXT_OPT(F(text)),
    SH_JSONL_OPT(F(jsonl)),
    SH_FIELD_OPT(F(field)),
    SH_TEXT("gpu", F(gpu), "NAME,...", "GPUs to answer for; the text of the answer names the first one (default:\n"
                                       "H100-SXM)"),
    SH_TEXT("target-ppl-increase", F(target), "F", "largest allowed increase of the perplexity, such as 2% (default: "
                                                   "1%)"),
    SH_INT("length", F(length), "N", 64, 1 << 22, "tokens per sequence (default: 512, or the model's context length)"),
    SH_INT("count", F(count), "N", 1, 1e9, "sequences to evaluate, and to judge the plan on\n"
           "(default: 24 to evaluate, and as many to judge as\n"
           "shears plan decides; it needs at least 12)"),
    {"output", SH_OPT_TEXT, F(out), "DIR", "output folder (default: shears-study)", 0, 0, 'o'},
    {0}};

static const struct study_args defaults = {.field = "text", .gpu = "H100-SXM", .target = "1%", .out = "shears-study"};

struct study {
    const struct study_args *a;
    const struct sh_common *common;
    double target;
    char fingerprint[24];               /* of the model                                           */
    int length, is_plain;               /* plain: scores are of x W_Q and x W_K themselves         */
    int traced, is_single, is_planned;  /* sequences that are traced; there is one; the plan was made */
    char *left[sizeof study_steps / sizeof *study_steps];       /* "theory: why", owned           */
    int n_left, failed, done, known, gnuplot_absent;
};

static int readable(const char *path, struct sh_err *e)
{
    return path && access(path, R_OK) ? sh_fail(e, "%s: cannot be read: %s", path, strerror(errno)) : 0;
}

static int least(const struct study *y)
{
    return y->length >= ROOM_FOR_TENTH ? LEAST_FOR_TENTH : LEAST_FOR_FIFTH;
}

/* At most a third of the sequences are traced: no plan is judged on those, and of a single one none is made. */
static int count_texts(struct study *y, struct sh_err *e)
{
    const struct study_args *a = y->a;
    struct sh_text_source s = {.path = a->model, .text = &a->text, .jsonl = a->jsonl, .field = a->field,
                               .length = y->length, .count = 3 * TRACED, .least = least(y)};
    int bad = sh_text_source_open(&s, e);
    y->is_single = s.texts.n < 2;
    y->traced = s.texts.n / 3 > 1 ? s.texts.n / 3 : 1;
    y->traced = a->count && a->count < y->traced ? (int)a->count : y->traced;
    sh_text_source_close(&s);
    return bad;
}

/* All names, before a step has taken hours. */
static int check_gpus(const char *gpus, struct sh_err *e)
{
    struct sh_capacity_names names;
    struct sh_capacity_words list;
    struct sh_gpu board;
    int bad = sh_capacity_names_open(&names, NULL, NULL, e) || sh_capacity_split("--gpu", gpus, &list, e);
    for (int i = 0; i < list.n && !bad && strcmp(gpus, "all"); i++)
        bad = sh_capacity_board(&names, list.at[i], 0, &board, e) != 0;
    sh_capacity_names_close(&names);
    return bad ? -1 : 0;
}

/* A folder belongs to one model: another's traces in the same store would make every step after them fail. */
static int check_folder(const struct study *y, struct sh_err *e)
{
    char *db = xasprintf("%s/trained.db", y->a->out);
    struct sh_store *s = access(db, F_OK) ? NULL : sh_store_open(db, e);
    struct sh_stored_run *run = NULL;
    int n = 0, bad = !access(db, F_OK) && (!s || sh_store_runs(s, &run, &n, e));
    for (int i = 0; i < n && !bad; i++)
        if (strcmp(run[i].fingerprint, y->fingerprint)) {
            sh_misused(e, "%s: holds a study of another model (%s)", y->a->out, run[i].model);
            bad = sh_hint(e, "give each study its own folder with -o DIR");
        }
    sh_stored_runs_free(run, n);
    sh_store_close(s);
    free(db);
    return bad ? -1 : 0;
}

/* And to the same texts: evaluations of others in its store would be taken for these. */
static int check_texts(const struct study *y, struct sh_err *e)
{
    const struct study_args *a = y->a;
    const char **text = xcalloc((size_t)a->text.n + 6, sizeof *text);
    int n = sh_step_texts(&a->text, a->jsonl, a->field, text);
    char *path = xasprintf("%s/%s", a->out, study_steps->output), *typed = sh_args_typed("", n, (char *const *)text);
    char *words = xasprintf("%s --min-tokens ", typed), *line = NULL;
    size_t room = 0;
    FILE *f = sh_stream_open(path, NULL);
    int bad = f && xgetline(&line, &room, 1 << 20, f) > 0 && !strstr(line, words);
    if (f)
        fclose(f);
    if (bad) {
        line[strcspn(line, "\n")] = '\0';
        sh_misused(e, "%s: holds a study of other texts (%.400s)", a->out, line);
        sh_hint(e, "give each study its own folder with -o DIR, or name the texts as before");
    }
    free(line);
    free(words);
    free(typed);
    free(path);
    free(text);
    return bad ? -1 : 0;
}

static int check(struct study *y, const struct sh_list *positional, struct sh_err *e)
{
    const struct study_args *a = y->a;
    const struct sh_need needs[] = {{"--model DIR", a->model != NULL}, {0}};
    if (sh_args_none("study", positional, e) || sh_args_need("study", needs, e))
        return -1;
    if (!a->text.n == !a->jsonl)
        return sh_misused(e, "study requires either --text FILE... or --jsonl FILE");
    if (sh_quality_increase("--target-ppl-increase", a->target, &y->target, e) || readable(a->jsonl, e))
        return -1;
    if (!(y->target > 0 && y->target <= 1))
        return sh_misused(e, "--target-ppl-increase: found %s, expected more than 0 and at most 100%%, such as 1%%",
                          a->target);
    for (int i = 0; i < a->text.n; i++)
        if (readable(a->text.at[i], e))
            return -1;
    struct sh_model *m = sh_model_open(a->model, e);
    if (!m)
        return -1;
    const struct sh_arch *arch = sh_model_arch(m);
    int too_long = a->length > arch->max_pos, positions = arch->max_pos;
    y->length = a->length ? (int)a->length : LENGTH < positions ? LENGTH : positions;
    y->is_plain = arch->pos != SH_POS_ROTARY && !(arch->flags & SH_HAS_QK_NORM);
    snprintf(y->fingerprint, sizeof y->fingerprint, "%016" PRIx64, sh_model_fingerprint(m));
    sh_model_close(m);
    if (too_long)
        return sh_misused(e, "--length: found %lld, expected at most the model's %d positions", a->length, positions);
    return check_gpus(a->gpu, e) || check_folder(y, e) || check_texts(y, e) || count_texts(y, e) ||
           sh_folder_hold(a->out, e);
}

/* ---- the steps ---- */

static void leave(struct study *y, const struct sh_command_step *s, const char *why)
{
    y->left[y->n_left++] = xasprintf("%.*s: %s", (int)strcspn(s->output, "."), s->output, why);
}

/* The first three of the names: the plan's words are left out if it could not be made, a server has a budget then, and
 * the texts themselves are evaluated. */
static int run_steps(struct study *y, struct sh_step_name *names, struct sh_err *e)
{
    static const char *const half[] = {"--budget", "0.5"};
    struct sh_step_name *plan = &names[0], *served = &names[1], *read = &names[2], text = names[3];
    struct sh_steps run = {.common = y->common, .folder = y->a->out, .name = names, .again = "the same command",
                           .keeps = 1};
    int bad = 0;
    for (const struct sh_command_step *s = study_steps; s->line && !bad; s++) {
        if (!strcmp(s->output, PLAN_OUTPUT) && y->is_single) {
            plan->n = 0;
            *read = (struct sh_step_name){'e', text.value, text.n};
            *served = (struct sh_step_name){'s', half, 2};
            leave(y, s, "found 1 sequence, expected at least 2: one to trace, one to judge on");
            continue;
        }
        int status = sh_steps_run(&run, s, e);
        bad = status < 0;
        if (!strcmp(s->output, PLAN_OUTPUT)) {
            y->is_planned = status == SH_OK;
            plan->n = y->is_planned ? 2 : 0;
            if (!y->is_planned) {
                *read = (struct sh_step_name){'e', text.value, text.n};
                *served = (struct sh_step_name){'s', half, 2};
            }
        }
        if (s->draws && status == SH_ABSENT)
            leave(y, s, "gnuplot is not installed");
        else if (status > 0)
            leave(y, s, "failed (see the message above)");
        y->failed += status > 0 && !(s->draws && status == SH_ABSENT);
        if (s == study_steps && status > 0) {
            rmdir(y->a->out);                           /* unless something is in it */
            bad = sh_fail(e, "study: the model was not traced; all further steps require its trace");
        }
    }
    y->gnuplot_absent = run.gnuplot_absent;
    y->done = run.done;
    y->known = run.known;
    return bad;
}

static double three_digits(double x)
{
    double unit = pow(10, floor(log10(x)) - 2);
    return round(x / unit) * unit;
}

/* The rates of the server: shares of the one at which the full cache has no time left, so that it is seen under little
 * load and under all that it bears. Where that is not known (the model needs several GPUs): 4 and 8. */
static void choose_rates(const struct study *y, const char *gpu, int prompt, int output, char to[96])
{
    static const double share[] = {0.25, 0.5, 0.75, 1};
    struct sh_capacity_args args = sh_capacity_defaults;
    struct sh_capacity_study s;
    struct sh_err ignored;
    args.model = y->a->model;
    args.gpu = gpu;
    args.length = y->length;
    int n = 0, is_known = !sh_capacity_study(&s, &args, &ignored) && s.n_row && s.row[0].fits;
    double busy = is_known ? prompt / s.row[0].prefill_rate + output / s.row[0].decode_rate : (double)NAN;
    sh_capacity_study_clear(&s);
    snprintf(to, 96, "4,8");
    for (size_t i = 0; i < sizeof share / sizeof *share && busy > 0 && isfinite(busy); i++)
        n += snprintf(to + n, 96 - (size_t)n, "%s%.6g", i ? "," : "", three_digits(share[i] / busy));
}

static int steps(struct study *y, struct sh_err *e)
{
    const struct study_args *a = y->a;
    const char **text = xcalloc((size_t)a->text.n + 6, sizeof *text);
    int n = 0, has_tenth = y->length >= ROOM_FOR_TENTH;
    n = sh_step_texts(&a->text, a->jsonl, a->field, text);
    text[n++] = "--min-tokens";
    char number[6][24], rates[96], *plan = xasprintf("%s/plan.json", a->out);
    char *tokens = xasprintf("%s/judged.jsonl", a->out);
    char *first = xasprintf("%.*s", (int)strcspn(a->gpu, ","), a->gpu);
    const int made = y->length / 4 < 64 ? y->length / 4 : 64;
    const long long value[] = {y->length, a->count ? a->count : SEQUENCES, y->traced, made, y->length - made, least(y)};
    const char *at[6], *budgets = has_tenth ? "0.1,0.2,0.35,0.5,0.75" : "0.2,0.35,0.5,0.75",
               *theorem[] = {"--model", a->model}, *planned[] = {"--plan", plan, "--policy-state"},
               *judged[] = {"--sequences", number[1]}, *read[] = {"--tokens", tokens},
               *const gpu = first, *const rate = rates;
    for (int i = 0; i < 6; i++) {
        snprintf(number[i], sizeof number[i], "%lld", value[i]);
        at[i] = number[i];
    }
    text[n++] = at[5];
    choose_rates(y, gpu, y->length - made, made, rates);
    struct sh_step_name names[] = {
        {'k', planned, 2}, {'s', planned, 3}, {'e', read, 2}, {'t', text, n},
        {'d', &a->out, 1}, {'m', &a->model, 1}, {'b', &budgets, 1}, {'l', &at[0], 1}, {'n', &at[1], 1},
        {'c', &at[2], 1}, {'r', &at[3], 1}, {'q', &at[4], 1}, {'j', judged, a->count ? 2 : 0},
        {'g', &a->gpu, 1}, {'h', &gpu, 1}, {'a', &rate, 1}, {'p', &a->target, 1}, {'v', theorem, y->is_plain ? 2 : 0},
        {0}};
    int bad = run_steps(y, names, e);
    free(first);
    free(tokens);
    free(plan);
    free(text);
    return bad;
}

/* ---- the answer ---- */

static void put_numbers(struct sh_out *o, const struct sh_answer *a)
{
    const struct sh_answer_row none = {.share = (double)NAN, .increase = (double)NAN, .bound = (double)NAN};
    const struct sh_answer_row *row = &none;
    for (int i = 0; i < a->n_row; i++)
        row = a->row[i].is_chosen ? &a->row[i] : row;
    char *name = row->policy ? xasprintf("%.*s", (int)strcspn(row->policy, ":"), row->policy) : NULL;
    sh_out_text(o, "policy", "policy", name);
    if (name)
        sh_out_shown(o, row->policy);   /* with knobs */
    free(name);
    sh_out_real(o, "share", "share of the cache", row->share, 4);
    sh_out_real(o, "ppl_increase", "perplexity up by", row->increase, 4);
    sh_out_real(o, "ppl_increase_bound", "at most", row->bound, 4);
    sh_out_real(o, "confidence", "confidence", a->n_row ? a->confidence : (double)NAN, 4);
    sh_out_int(o, "sequences", "judged sequences", a->sequences);
}

/* A sentence, of which text leaves out the words that its label says. */
static void put_sentence(struct sh_out *o, const char *key, const char *label, const char *words, const char *sentence)
{
    sh_out_text(o, key, label, sentence);
    if (sentence && !strncmp(sentence, words, strlen(words)))
        sh_out_shown(o, sentence + strlen(words));
}

/* found: an answer was found (1), or none (0), or it failed (-1). */
static struct sh_out *describe(const struct study *y, const struct sh_answer *answer, int found)
{
    struct sh_out *o = sh_out_new();
    sh_out_text(o, "status", "status", found <= 0 ? NULL : isnan(answer->target) ? "not_shown" : "met");
    sh_out_text(o, "answer", "answer", answer->small);
    sh_out_text(o, "buys", "what it buys", answer->buys);
    put_sentence(o, "measured", "measured on", "Measured on ", answer->on);
    put_sentence(o, "not_shown", "not shown", "Not shown: ", answer->lacks);
    put_sentence(o, "how", "how", "How: ", answer->how);
    put_numbers(o, answer);
    sh_out_list(o, "left_out", "left out");
    for (int i = 0; i < y->n_left; i++) {
        sh_out_item(o);
        sh_out_text(o, "step", "step and why", y->left[i]);
    }
    sh_out_end(o);
    sh_out_int(o, "steps_run", "steps run now", y->done);
    sh_out_int(o, "steps_known", "steps already done", y->known);
    sh_out_int(o, "steps_failed", "failed", y->failed);
    return o;
}

static int conclude(const struct study *y, struct sh_err *e)
{
    const struct study_args *a = y->a;
    char *plan = xasprintf("%s/plan.json", a->out);
    const char *const plans[] = {plan};
    struct sh_report r = {.model = a->model, .gpu = a->gpu, .target = y->target, .plan = plans,
                          .n_plan = y->is_planned, .quiet = 1};
    struct sh_answer answer = {0};
    char *db = xasprintf("%s/trained.db", a->out);
    int found = sh_report_open(&r, (const char *const[]){db}, 1, e) ? -1 : sh_answer_read(&answer, &r, e);
    struct sh_out *o = describe(y, &answer, found);
    if (!y->gnuplot_absent)
        sh_out_note(o, "Open %s/report.html; next to it is the output of each step.", a->out);
    if (found > 0 && isnan(answer.target) && a->count && a->count < SH_JUDGED_LEAST)
        sh_out_note(o, "Fewer than %d sequences show little: give a larger --count.", SH_JUDGED_LEAST);
    sh_answer_clear(&answer);
    sh_report_close(&r);
    free(db);
    free(plan);
    int bad = sh_common_write(y->common, o, found < 0, e);
    if (!bad && y->failed)
        bad = sh_fail(e, "study: %d step%s failed; run the same command again to retry", y->failed,
                      y->failed > 1 ? "s" : "");
    return bad;
}

/* The names of --columns, before a step has taken hours. */
static int check_columns(const struct study *y, struct sh_err *e)
{
    const struct sh_answer none = {0};
    struct sh_out *o = describe(y, &none, 0);
    sh_out_columns(o, y->common->columns);
    int bad = !y->common->json && sh_out_check_columns(o, e);
    sh_out_free(o);
    return bad ? -1 : 0;
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct study y = {.a = args, .common = common};
    int bad = check_columns(&y, e) || check(&y, positional, e) || steps(&y, e) || conclude(&y, e);
    for (int i = 0; i < y.n_left; i++)
        free(y.left[i]);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_study = {
    .name = "study",
    .usage = "--model DIR (--text FILE... | --jsonl FILE [--field NAME]) [--gpu LIST] [--target-ppl-increase F]\n"
             "        [-o DIR]",
    .summary = "answer how small the cache of your own model can be, on one page",
    .about = "Traces the model and the same model with random weights, measures persistence, replays policies,\n"
             "evaluates budgets in the live model, computes what fits on the GPUs, makes a plan for the target (see\n"
             "shears plan), simulates a server with it, and writes a page that begins with the answer: how small\n"
             "the cache can be by this plan, what that costs with its 95 % bound, how many more requests then fit,\n"
             "on which texts, and what was not shown. The plan is judged on texts that were not traced. Each step is\n"
             "an ordinary command, shown as it runs, and its output is kept. Run the same command again to resume: a\n"
             "finished step is not run again, and one that was stopped goes on from what it kept in the stores\n"
             "trained.db and random.db of that folder (so there is no --db). Changes to input files are not\n"
             "detected: after changing one, use a new output folder.\n"
             "\n"
             "  shears study --model opt-125m --text book.txt --gpu H100-SXM --target-ppl-increase 1%",
    .opts = opts, .args_bytes = sizeof(struct study_args), .defaults = &defaults, .run = run};
