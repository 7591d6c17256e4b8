/* SPDX-License-Identifier: Apache-2.0 */
/* shears recommend: the cheapest deployment, and that with the fewest GPUs, that serve a load within limits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/app/recommend/recommend.h"
#include "src/base/mem.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"

#define F(name) offsetof(struct sh_recommend_args, name)
#define C(name) F(capacity.name)
static const struct sh_opt opts[] = {
    SH_TEXT("model", C(model), "NAME", "name from shears info models, folder with config.json, config.json,\n"
        "or .gguf file"),
    SH_REAL("rate", F(rate), "R", 1e-6, 1e9, "requests per second (Poisson arrivals)"),
    SH_TEXT("prompt", F(prompt), "N", "prompt tokens: 512, 100-900, exp:512 or lognormal:512:0.8"),
    SH_TEXT("output", F(output), "N", "output tokens, in the same form"),
    SH_SECONDS("slo-ttft", F(slo_ttft), 1e-6, 1e9, "limit on the time to first token: 0.5, 500ms"),
    SH_SECONDS("slo-tpot", F(slo_tpot), 1e-6, 1e9, "limit on the mean time per output token after the first"),
    SH_REAL("goal", F(goal), "F", 0.01, 1, "fraction of requests that must meet both limits (default: 0.99)"),
    SH_TEXT("gpu", C(gpu), "NAME,...", "name from shears info gpus, or all (default)"),
    SH_TEXT("price", F(price), "USD|NAME=USD,...", "price per GPU-hour, of all or of each (default: price= of a "
        "--gpus\nFILE; without prices the fewest GPUs come first)"),
    SH_TEXT("engine", F(engine), "NAME|FILE", "use the step times expected of vllm (default), sglang, trtllm or a\n"
                                              "profile written by shears calibrate"),
    SH_TEXT("budget", C(budget), "B,...", "budgets to try in addition to the full cache: 0.2 of the length,\n"
                                          "4096, 64/32/... (one per layer)"),
    SH_TEXT("db", C(db), "FILE", "store with results of shears eval or replay: measured budgets"),
    SH_TEXT("max-ppl-increase", C(max_ppl), "F", "try the smallest measured budget that raises perplexity by at most "
                                                 "F:\n0.01 or 1%"),
    SH_TEXT("min-recall", C(min_recall), "F", "try the smallest measured budget that keeps this fraction of the\n"
                                              "attention mass"),
    SH_TEXT("policy", C(policy), "NAME", "use only budgets measured with this policy"),
    SH_MEASURED_ON_OPT(C(measured_on), ""),
    SH_INT("machine", F(machine), "N", 1, 64, "most GPUs that may share layers and experts (default: 8)"),
    SH_INT("most-gpus", F(most), "N", 1, 100000, "most GPUs of a deployment (default: 1024)"),
    SH_INT("top", F(top), "N", 1, SH_RECOMMEND_TOP, "rows to show, one for each GPU and cache (default: 6)"),
    SH_INT("requests", F(requests), "N", 1, 1e6, "requests to simulate for each replica (default: 1000)"),
    SH_TEXT("kv", C(kv), "TYPE", "cache format (see shears capacity --help; default: f16)"),
    SH_INT("page", C(page), "N", 1, 1 << 20, "tokens per page (default: 16)"),
    SH_INT("chunk", C(chunk), "N", 1, 1 << 20, "tokens per step (default: the engine's)"),
    SH_INT("max-seqs", C(sampled), "N", 1, 1e6, "sequences that run at once (default: the engine's)"),
    SH_HARDWARE_OPTS(C),
    {0}};

static const struct sh_recommend_args defaults = {
    .capacity = {.kv = "f16", .tp = "1", .gpu = "all", .windows = "model", .pp = 1, .ep = 1, .page = 16, .util = -1,
                 .reserve = -1, .bandwidth = -1, .flops = -1, .price = -1},
    .engine = "vllm", .goal = 0.99, .requests = 1000, .machine = 8, .most = 1024, .top = 6};

/* ---- the results ---- */

static void detail(struct sh_out *o, const char *key, const char *label, double x, int digits)
{
    sh_out_real(o, key, label, x, digits);
    sh_out_detail(o);
}

static void count(struct sh_out *o, const char *key, const char *label, long long n)
{
    sh_out_int(o, key, label, n);
    sh_out_detail(o);
}

static void word(struct sh_out *o, const char *key, const char *label, const char *text)
{
    sh_out_text(o, key, label, text);
    sh_out_detail(o);
}

/* Percentiles; tables show that of the goal alone. */
static void times(struct sh_out *o, const char *key, const char *what, const double q[4], double goal,
                  const struct sh_time_unit *u)
{
    static const char *const keys[] = {"p50", "p99", "mean"};
    char label[64];
    sh_out_group(o, key);
    snprintf(label, sizeof label, "%s p%.4g, %s", what, 100 * goal, u->name);
    sh_out_real(o, "at_goal", label, q[3] * u->per_s, u->digits);
    for (int i = 0; i < 3; i++) {
        snprintf(label, sizeof label, "%s %s, %s", what, keys[i], u->name);
        detail(o, keys[i], label, q[i] * u->per_s, u->digits);
    }
    sh_out_group_end(o);
}

static const char *verdict(const struct sh_recommend_row *w)
{
    return !w->error_runs ? "not measured" : w->is_sure ? "within margin" : "margin smaller";
}

static void details(struct sh_out *o, const struct sh_recommend_row *w)
{
    const struct sh_judged *at = &w->of->at;
    count(o, "replicas", "replicas", w->replicas);
    count(o, "tp", "tp", w->layout.tp);
    count(o, "ep", "ep", w->layout.ep);
    count(o, "dp", "dp", w->layout.dp);
    count(o, "pp", "pp", w->layout.pp);
    detail(o, "ttft_error", "TTFT error", w->ttft_error, 3);
    detail(o, "tpot_error", "TPOT error", w->tpot_error, 3);
    count(o, "error_runs", "runs", w->error_runs);
    detail(o, "good_share", "good", at->good, 4);
    detail(o, "capacity_requests_per_s", "requests/s by bound", w->rate, 3);
    detail(o, "busy_share", "busy", at->busy, 4);
    detail(o, "running_mean", "running", at->running, 2);
    detail(o, "kv_occupancy_mean", "KV in use", at->occupancy, 4);
    count(o, "chunk", "chunk", w->chunk);
    count(o, "max_seqs", "sequences", w->sequences);
    detail(o, "util", "memory share", w->util, 3);
    word(o, "evidence", "evidence", w->cache->evidence);
    word(o, "next_smaller", "next smaller", w->next);
    word(o, "vllm", "vLLM", w->vllm);
    word(o, "sglang", "SGLang", w->sglang);
    sh_out_bool(o, "is_cheapest", "cheapest", w->is_cheapest);
    sh_out_detail(o);
    sh_out_bool(o, "is_fewest_gpus", "fewest GPUs", w->is_fewest);
    sh_out_detail(o);
}

static void rows(struct sh_out *o, const struct sh_recommend *r, int is_text)
{
    static const struct sh_time_unit seconds = {"s", "seconds", 1, 4};
    double ttft[SH_RECOMMEND_TOP + 1], tpot[SH_RECOMMEND_TOP + 1], goal = r->args->goal;
    int priced = !is_text;
    for (int i = 0; i < r->n_row; i++) {
        ttft[i] = r->row[i].of->at.ttft[3];
        tpot[i] = r->row[i].of->at.tpot[3];
        priced |= !isnan(r->row[i].usd);
    }
    struct sh_time_unit first = is_text ? sh_time_unit(ttft, r->n_row) : seconds;
    struct sh_time_unit each = is_text ? sh_time_unit(tpot, r->n_row) : seconds;
    sh_out_list(o, "results", "deployments within the limits");
    for (int i = 0; i < r->n_row; i++) {
        const struct sh_recommend_row *w = &r->row[i];
        char layout[SH_LAYOUT_TEXT];
        sh_layout_text(&w->layout, w->replicas, layout);
        sh_out_item(o);
        sh_out_int(o, "rank", "rank", i + 1);
        sh_out_text(o, "gpu", "GPU", w->board->name);
        sh_out_int(o, "gpus", "GPUs", w->gpus);
        sh_out_text(o, "layout", "layout", layout);
        sh_out_text(o, "plan", "cache", w->cache->name);
        if (priced) {
            sh_out_real(o, "usd_per_hour", "USD/h", w->usd_per_hour, 2);
            sh_out_real(o, "usd_per_million_tokens", "USD/Mtoken", w->usd, 3);
        }
        times(o, "ttft_s", "TTFT", w->of->at.ttft, goal, &first);
        sh_out_real(o, "ttft_margin", "margin", w->ttft_margin, 2);
        times(o, "tpot_s", "TPOT", w->of->at.tpot, goal, &each);
        sh_out_real(o, "tpot_margin", "margin", w->tpot_margin, 2);
        sh_out_text(o, "clock_error", "error", verdict(w));
        details(o, w);
    }
    sh_out_end(o);
}

static void refused(struct sh_out *o, const struct sh_recommend *r)
{
    sh_out_list(o, "refused", "layouts that servers refuse");
    for (int i = 0; i < r->layouts.n_refused; i++) {
        sh_out_item(o);
        sh_out_int(o, "tp", "tp", r->layouts.refused[i].tp);
        sh_out_text(o, "why", "why", r->layouts.refused[i].why);
    }
    sh_out_end(o);
}

static void note_row(struct sh_out *o, const struct sh_recommend *r, int i)
{
    const struct sh_recommend_row *w = &r->row[i];
    char text[SH_ENGINE_TEXT];
    const char *what = w->is_cheapest && w->is_fewest ? ", the cheapest and the fewest GPUs"
                       : w->is_cheapest ? ", the cheapest" : w->is_fewest ? ", the fewest GPUs" : "";
    if (w->has_smaller)
        sh_out_note(o, "Rank %d%s: the next smaller one fails, %s.", i + 1, what, w->next);
    else
        sh_out_note(o, "Rank %d%s: %s.", i + 1, what, w->next);
    if (w->cache->evidence)
        sh_out_note(o, "Rank %d: %s", i + 1, w->cache->evidence);
    if (!w->is_cheapest && !w->is_fewest)
        return;
    const char *says = sh_engine_says(&r->engine, w->board, &r->model, text);
    if (!w->error_runs)
        sh_out_note(o, "Rank %d: %s.", i + 1, says);
    else
        sh_out_note(o, "Rank %d: %s (%s).", i + 1, w->is_sure ? "the error of the expected times is within the margin"
                    : "a margin is smaller than the error of the expected times", says);
    sh_out_note(o, "Rank %d, vLLM: %s", i + 1, w->vllm);
    sh_out_note(o, "Rank %d, SGLang: %s", i + 1, w->sglang);
}

static void notes(struct sh_out *o, const struct sh_recommend *r)
{
    double tail = (1 - r->args->goal) * (double)r->args->requests, enough = 0;
    const char *kv = r->settings.kv.at[0];
    int budgets = 0, guessed = 0;
    for (int i = 0; i < r->n_row; i++) {
        note_row(o, r, i);
        enough = fmax(enough, 20 * r->args->slo_ttft * r->args->rate / r->row[i].replicas);
        budgets |= r->row[i].cache->budget != NULL;
        guessed |= r->row[i].cache->budget && !r->row[i].cache->measured;
    }
    sh_out_note(o, "Margin: how far the limit exceeds the expected time, as a share of that time. Each replica gets an "
                "equal part of the requests, at random.");
    if (budgets)
        sh_out_note(o, "Neither vLLM nor SGLang has an option for an eviction budget: these rows need a server that "
                    "evicts.");
    if (guessed)
        sh_out_note(o, "The quality that a budget without evidence costs is not known: measure it with shears eval, "
                    "and use --db FILE.");
    if (strncmp(kv, "f16", 3) && strncmp(kv, "bf16", 4) && strncmp(kv, "f8", 2))
        sh_out_note(o, "The commands have no option for the cache format %s.", kv);
    for (int i = 0; i < r->layouts.n_refused; i++)
        sh_out_note(o, "Servers refuse tp %d: %s.", r->layouts.refused[i].tp, r->layouts.refused[i].why);
    if (isnan(r->row[0].usd))
        sh_out_note(o, "No prices are known, so the fewest GPUs come first; see --price.");
    if (enough > (double)r->args->requests)
        sh_out_note(o, "The runs are short compared with the limit on TTFT, so a queue that grows slowly may go "
                    "unnoticed; --requests %.0f would be enough.", ceil(enough));
    if (tail < 9.5)
        sh_out_note(o, "The share within the limits rests on %.0f of %lld requests; --requests %.0f would be enough.",
                    ceil(tail - 1e-9), r->args->requests, ceil(10 / fmax(1 - r->args->goal, 1e-5) - 1e-6));
}

static int show(const struct sh_recommend *r, const struct sh_common *common, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    int is_text = sh_common_format(common) == SH_OUT_TEXT;
    if (!is_text) {
        sh_out_text(o, "model", "model", r->model.f.name);
        sh_out_int(o, "screened", "servers examined", r->n_candidate);
        sh_out_int(o, "simulations", "simulations", r->simulations);
    }
    rows(o, r, is_text && !common->columns);
    if (!is_text && sh_common_format(common) == SH_OUT_JSON)
        refused(o, r);
    notes(o, r);
    return sh_common_write(common, o, 0, e);
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct sh_recommend_args *a = args;
    const struct sh_need needs[] = {{"--model NAME", a->capacity.model != NULL}, {"--rate R", a->rate > 0},
                                    {"--prompt N", a->prompt != NULL}, {"--output N", a->output != NULL},
                                    {"--slo-ttft S", a->slo_ttft > 0}, {"--slo-tpot S", a->slo_tpot > 0}, {0}};
    if (sh_args_none("recommend", positional, e) || sh_args_need("recommend", needs, e))
        return -1;
    if (a->capacity.link || a->capacity.flops > 0)
        return sh_misused(e, "%s cannot be combined with the times of an engine, which has its own",
                          a->capacity.link ? "--link" : "--flops");
    a->capacity.has_plan = a->capacity.db != NULL;
    a->seed = common->seed;
    struct sh_recommend *r = xcalloc(1, sizeof *r);
    int bad = sh_recommend(r, a, e) || show(r, common, e);
    sh_recommend_clear(r);
    free(r);
    return bad ? -1 : 0;
}

const struct sh_cmd sh_cmd_recommend = {
    .name = "recommend",
    .usage = "--model NAME --rate R --prompt N --output N --slo-ttft S --slo-tpot S [--gpu LIST] [options]",
    .summary = "find the cheapest deployment that serves a load within limits on its times",
    .about = "Goes through GPUs, layouts (tensor, expert, data and pipeline parallelism), numbers of replicas, and\n"
             "caches with and without eviction. Arithmetic rules out deployments that cannot keep up; the others are\n"
             "simulated in the order of their cost (one replica, with its part of the arrivals), until the fewest\n"
             "replicas are found with which --goal of the requests meet both limits. Shows the best deployment of\n"
             "each GPU and cache with its margins, the error of the expected times, the reason why the next smaller\n"
             "one fails, and the commands that start the cheapest and the smallest with vLLM and SGLang\n"
             "(doc/recommend.md).\n"
             "\n"
             "  shears recommend --model llama-3.1-70b --weights f8 --rate 8 --prompt 2000 --output 300 \\\n"
             "      --slo-ttft 2 --slo-tpot 50ms --gpu H100-SXM,H200-SXM --price H100-SXM=2.5,H200-SXM=3.2\n"
             "  shears recommend --model llama-3.1-8b --rate 20 --prompt lognormal:4000:0.8 --output exp:300 \\\n"
             "      --slo-ttft 1 --slo-tpot 50ms --budget 0.2\n"
             "  shears recommend --model opt-6.7b --rate 8 --prompt 400 --output 100 --slo-ttft 1 --slo-tpot 0.05 \\\n"
             "      --db traces.db --max-ppl-increase 5%",
    .opts = opts, .args_bytes = sizeof(struct sh_recommend_args), .defaults = &defaults, .run = run};
