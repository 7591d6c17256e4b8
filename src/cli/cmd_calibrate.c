/* SPDX-License-Identifier: Apache-2.0 */
/* shears calibrate: the clock of an engine against benchmarks of real servers. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/app/calibrate/calibrate.h"
#include "src/base/file.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"

struct calibrate_args {
    const char *engine, *model, *gpu, *weights, *attention, *kv, *gpus, *models, *out;
    long long tp, ep, dp, pp, chunk;
    int only_errors, rows;
};

#define F(name) offsetof(struct calibrate_args, name)
static const struct sh_opt opts[] = {
    SH_TEXT("engine", F(engine), "NAME|FILE,...", "start from vllm, sglang, trtllm or a profile (default: the\n"
        "built-in one of each run's engine)"),
    {"output", SH_OPT_TEXT, F(out), "FILE", "write the fitted profile, which --engine FILE takes", 0, 0, 'o'},
    SH_FLAG("only-errors", F(only_errors), "compare without fitting"),
    SH_FLAG("rows", F(rows), "show each run, measured and predicted"),
    SH_TEXT("model", F(model), "NAME", "for JSON files: name from shears info models, or folder with config.json"),
    SH_TEXT("gpu", F(gpu), "NAME", "for JSON files: name from shears info gpus"),
    SH_TEXT("weights", F(weights), "TYPE", "for JSON files: weight format (default: as published)"),
    SH_TEXT("weights-attention", F(attention), "TYPE", "for JSON files: format of the attention matrices (default:\n"
        "that of --weights)"),
    SH_TEXT("kv", F(kv), "TYPE", "for JSON files: cache format (default: f16)"),
    SH_INT("tp", F(tp), "N", 1, 1024, "for JSON files: GPUs that share attention (default: 1)"),
    SH_INT("ep", F(ep), "N", 1, 1024, "for JSON files: ranks that experts are spread over (default: 1)"),
    SH_INT("dp", F(dp), "N", 1, 1024, "for JSON files: copies of attention (default: 1)"),
    SH_INT("pp", F(pp), "N", 1, SH_CAPACITY_STAGES, "for JSON files: pipeline stages (default: 1)"),
    SH_INT("chunk", F(chunk), "N", 1, 1 << 20, "for JSON files: tokens per step (default: the engine's)"),
    SH_GPUS_OPT(F(gpus)),
    SH_TEXT("models", F(models), "FILE", "catalogue of your own models, searched before the built-in one"),
    {0}};

static const struct calibrate_args defaults = {.tp = 1, .ep = 1, .dp = 1, .pp = 1};

static int word(const char *option, const char *text, char *to, size_t bytes, struct sh_err *e)
{
    int n = text ? snprintf(to, bytes, "%s", text) : 0;
    return n >= (int)bytes ? sh_misused(e, "--%s: found %d letters, expected fewer than %zu", option, n, bytes) : 0;
}

/* What JSON files do not say. */
static int read_server(const struct calibrate_args *a, struct sh_serving_run *r, struct sh_err *e)
{
    struct sh_engine g = {.scheduler = SH_SCHED_VLLM};
    *r = (struct sh_serving_run){.tp = (int)a->tp, .ep = (int)a->ep, .dp = (int)a->dp, .pp = (int)a->pp,
                                 .chunk = (int)a->chunk, .ttft_s = (double)NAN};
    if (a->engine && !strchr(a->engine, ',') && sh_engine_open(a->engine, &g, e))
        return -1;
    r->engine = g.scheduler;
    return word("model", a->model, r->model, sizeof r->model, e) || word("gpu", a->gpu, r->gpu, sizeof r->gpu, e) ||
                   word("weights", a->weights, r->weights, sizeof r->weights, e) ||
                   word("weights-attention", a->attention, r->attention, sizeof r->attention, e) ||
                   word("kv", a->kv, r->kv, sizeof r->kv, e)
               ? -1 : 0;
}

static void show_error(struct sh_out *o, const char *key, const char *label, const struct sh_calibrate_error *x)
{
    char tpot[64], ttft[64];
    snprintf(tpot, sizeof tpot, "TPOT %s, off by %%", label);
    snprintf(ttft, sizeof ttft, "TTFT %s, off by %%", label);
    sh_out_group(o, key);
    sh_out_real(o, "tpot_percent", tpot, 100 * x->tpot, 1);
    sh_out_real(o, "ttft_percent", ttft, 100 * x->ttft, 1);
    sh_out_group_end(o);
}

static void show_rows(struct sh_out *o, const struct sh_calibrate *c)
{
    sh_out_list(o, "rows", "runs");
    for (int i = 0; i < c->runs.n; i++) {
        const struct sh_calibrate_run *r = &c->at[i];
        sh_out_item(o);
        sh_out_text(o, "id", "run", r->run->id);
        sh_out_text(o, "model", "model", r->run->model);
        sh_out_text(o, "gpu", "GPU", r->board.name);
        sh_out_text(o, "engine", "engine", sh_scheduler_names[r->run->engine]);
        sh_out_text(o, "kind", "kind", sh_clock_kind(r->shape));
        sh_out_int(o, "concurrency", "clients", r->run->concurrency);
        sh_out_real(o, "tpot_s", "TPOT, s", r->run->tpot_s, 5);
        sh_out_real(o, "tpot_predicted_s", "predicted", r->tpot_s, 5);
        sh_out_real(o, "ttft_s", "TTFT, s", r->run->ttft_s, 4);
        sh_out_real(o, "ttft_predicted_s", "predicted", r->ttft_s, 4);
    }
    sh_out_end(o);
}

static void show_factors(struct sh_out *o, const double factor[SH_N_GROUP])
{
    sh_out_list(o, "factors", "factors by which the fit multiplied the times");
    for (int g = 0; g < SH_N_GROUP; g++) {
        sh_out_item(o);
        sh_out_text(o, "part", "part", sh_calibrate_group_names[g]);
        sh_out_real(o, "factor", "factor", factor[g], 3);
    }
    sh_out_end(o);
}

/* The errors of a profile are those of its own runs: no others are known. */
static int write_profile(const struct calibrate_args *a, const struct sh_calibrate *c,
                         const struct sh_calibrate_error *after, struct sh_err *e)
{
    const struct sh_calibrate_run *first = c->at;
    struct sh_engine g = c->engine[first->run->engine];
    const char *kind = sh_clock_kind(first->shape);
    int k = 0;
    while (k < g.n_error && (g.error[k].generation != first->generation || strcmp(g.error[k].kind, kind)))
        k++;
    if (k < SH_ENGINE_ERRORS) {
        g.n_error = k == g.n_error ? k + 1 : g.n_error;
        g.error[k] = (struct sh_engine_error){first->generation, "", after->tpot_n, after->tpot, after->ttft};
        snprintf(g.error[k].kind, sizeof g.error[k].kind, "%s", kind);
    }
    snprintf(g.fitted, sizeof g.fitted, "%d own runs on %.60s by shears calibrate; the error of their kind is that of "
             "these runs", c->runs.n, first->board.name);
    if (*first->run->version)
        snprintf(g.release, sizeof g.release, "%s", first->run->version);
    struct sh_file *f = sh_file_begin(a->out, e);
    if (!f)
        return -1;
    sh_engine_write(&g, "A profile for --engine FILE; see doc/simulate.md.", sh_file_stream(f));
    return sh_file_end(f, 0, e);
}

static int work(const struct calibrate_args *a, const struct sh_common *common, struct sh_calibrate *c,
                struct sh_err *e)
{
    double factor[SH_N_GROUP];
    if (sh_calibrate_predict(c, a->only_errors, e))
        return -1;
    struct sh_calibrate_error before = sh_calibrate_error(c), after;
    if (!a->only_errors) {
        if (sh_calibrate_fit(c, factor, e))
            return -1;
        after = sh_calibrate_error(c);
        if (a->out && write_profile(a, c, &after, e))
            return -1;
    }
    struct sh_out *o = sh_out_new();
    sh_out_int(o, "runs", "runs", before.tpot_n);
    sh_out_int(o, "runs_left_out", "runs that cannot be simulated", c->runs.n - before.tpot_n);
    show_error(o, "before", "before", &before);
    if (!a->only_errors) {
        show_error(o, "after", "after", &after);
        show_factors(o, factor);
    }
    if (a->rows)
        show_rows(o, c);
    sh_out_note(o, "TPOT and TTFT are off by the mean of |predicted / measured - 1|.");
    return sh_common_write(common, o, 0, e);
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    const struct calibrate_args *a = args;
    struct sh_serving_run server;
    struct sh_calibrate c;
    if (!positional->n)
        return sh_misused(e, "calibrate requires a FILE of benchmarks");
    if (a->only_errors && a->out)
        return sh_misused(e, "--only-errors cannot be combined with --output, which needs a fit");
    for (int i = 0; i < positional->n; i++) {
        const struct sh_file_use files[] = {{"--output", a->out, 1}, {"the benchmark", positional->at[i], 0},
                                            {"--gpus", a->gpus, 0}, {"--models", a->models, 0}, {0}};
        if (sh_files_apart(files, e))
            return -1;
    }
    if (read_server(a, &server, e))
        return -1;
    int bad = sh_calibrate_open(&c, positional, a->engine, &server, a->gpus, a->models, e) || work(a, common, &c, e);
    sh_calibrate_clear(&c);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_calibrate = {
    .name = "calibrate",
    .usage = "FILE... [--engine NAME|FILE] [--model NAME --gpu NAME] [-o PROFILE] [options]",
    .summary = "fit the expected speed to benchmarks of your own server",
    .about = "Compares the times that simulate expects with those that a benchmark measured, fits the constants of\n"
             "the engine to them, and shows the errors before and after. A FILE is a tab-separated table\n"
             "(doc/simulate.md names the columns), or the JSON of vllm bench serve --save-result, of SGLang's\n"
             "bench_serving --output-file, or of GuideLLM with concurrent clients; options say on which server a\n"
             "JSON file was measured.\n"
             "\n"
             "  shears calibrate c8.json c64.json --engine vllm --model llama-3.1-8b --gpu H100-SXM -o mine.tsv\n"
             "  shears simulate --engine mine.tsv --model llama-3.1-8b --gpu H100-SXM --concurrency 16,32 \\\n"
             "      --prompt 1024 --output 512",
    .opts = opts, .args_bytes = sizeof(struct calibrate_args), .defaults = &defaults, .run = run};
