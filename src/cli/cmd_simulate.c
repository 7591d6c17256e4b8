/* SPDX-License-Identifier: Apache-2.0 */
/* shears simulate: a server under load, with the whole cache and with budgets. */
#include <stdlib.h>

#include "plots/gp.h"
#include "src/base/mem.h"
#include "src/cli/commands.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"
#include "src/report/figures/simulate_plot.h"
#include "src/app/simulate/simulate_run.h"
#include "traces/store.h"

#define F(name) offsetof(struct sh_simulate_args, name)
#define C(name) F(capacity.name)
static const struct sh_opt opts[] = {
    SH_TEXT("model", C(model), "NAME", "name from shears info models, folder with config.json, config.json,\n"
        "or .gguf file"),
    SH_TEXT("gpu", C(gpu), "NAME,...", "name from shears info gpus; each is a separate server"),
    SH_TEXT("workload", F(workload), "FILE", "CSV with arrival_s, prompt_tokens, output_tokens, or with the\n"
        "columns of the public Azure or BurstGPT traces"),
    SH_TEXT("speed", F(speed), "F,...", "replay the workload F times as fast (default: 1)"),
    SH_TEXT("rate", F(rate), "R,...", "generate R requests per second (Poisson); each rate is one run"),
    SH_INT("requests", F(requests), "N", 1, 1e9, "requests to generate (default: 1000)"),
    SH_TEXT("prompt", F(prompt), "N", "prompt tokens of generated requests: 512, 100-900, exp:512 or\n"
        "lognormal:512:0.8"),
    SH_TEXT("output", F(output), "N", "output tokens of generated requests, in the same form"),
    SH_LIST("plan", F(plan), "FILE...", "shears plan files to compare with the whole cache"),
    SH_TEXT("budget", C(budget), "B,...", "budgets to compare with the whole cache: 0.2 of the length, 4096,\n"
        "64/32/... (one per layer)"),
    SH_TEXT("evict", F(evict), "WHEN", "prompt: after the whole prompt (default); chunk: after each chunk"),
    SH_TEXT("allocator", F(memory), "HOW", "paged (default), or slots: reserve a sequence's whole cache at the start"),
    SH_INT("page", C(page), "N", 1, 1 << 20, "tokens per page (default: 16)"),
    SH_INT("chunk", C(chunk), "N", 1, 1 << 20, "tokens per step (default: 2048)"),
    SH_INT("max-seqs", F(max_seqs), "N", 1, 1e6, "sequences that run at once (default: 256)"),
    SH_REAL("slo-ttft", F(slo_ttft), "S", 0, 1e9, "limit on the time to first token"),
    SH_REAL("slo-tpot", F(slo_tpot), "S", 0, 1e9, "limit on the mean time per further output token"),
    SH_FLAG("max-rate", F(max_rate), "find the highest rate that meets the limits, to within 1 %"),
    SH_REAL("goal", F(goal), "F", 0.01, 1, "fraction of requests that must meet the limits (default: 0.99)"),
    SH_TEXT("efficiency", F(efficiency), "OP=F,...", "achieved fraction of the GPU's peak, by operation: weights, "
        "cache\n(memory), products, attention (compute), link (default: 1)"),
    SH_REAL("step-overhead", F(overhead_s), "S", 0, 10, "time added to each step (default: 0)"),
    SH_TEXT("calibrate", F(calibrate), "FILE", "fit --efficiency and --step-overhead to measured steps: CSV with\n"
        "prefill_tokens, decode_sequences, context_tokens, seconds"),
    SH_TEXT("kv", C(kv), "TYPE,...", "cache format (see shears capacity --help; default: f16)"),
    SH_TEXT("tp", C(tp), "N,...", "tensor parallelism: GPUs that share each layer (default: 1)"),
    SH_HARDWARE_OPTS(C),
    SH_RESULTS_OPTS(F),
    SH_TEXT("log", F(log), "FILE", "write every request of every run as CSV, in order of completion"),
    SH_FLAG("timeline", F(timeline), "report cache use over time: in --json, or alone in --csv"),
    SH_TEXT("plot-latency", F(plot_latency), "FILE", "plot TTFT and TPOT against the rate (.svg, .png or .pdf)"),
    SH_TEXT("plot-occupancy", F(plot_occupancy), "FILE", "plot cache use over time"),
    SH_PART_OPT(F(shard)),
    SH_CLUSTER_OPT(F(rank_timeout)),
    {0}};

static const struct sh_simulate_args defaults = {
    .capacity = {.kv = "f16", .tp = "1", .windows = "model", .pp = 1, .ep = 1, .page = 16, .length = 1, .util = -1,
                 .reserve = -1, .bandwidth = -1, .flops = -1, .price = -1},
    .memory = "paged", .evict = "prompt", .slo_ttft = -1, .slo_tpot = -1, .overhead_s = -1, .goal = 0.99,
    .rank_timeout = SH_RANK_TIMEOUT_S};

static int show(const struct sh_sim_study *s, const struct sh_common *common, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    int is_text = sh_common_format(common) == SH_OUT_TEXT;
    sh_sim_show(o, s, is_text, !is_text || common->columns);
    int bad = sh_common_write(common, o, e);
    sh_out_free(o);
    return bad;
}

/* Fails before the work if the figure cannot be written. */
static int probe(const char *path, struct sh_err *e)
{
    struct sh_gp gp;
    if (!path)
        return 0;
    if (sh_gp_open(&gp, path, 0, 0, 0, e))
        return -1;
    sh_gp_abandon(&gp);
    return 0;
}

/* No output may be an input or another output. */
static int check_paths(const struct sh_simulate_args *a, struct sh_err *e)
{
    for (int i = 0; i <= a->plan.n; i++) {
        const struct sh_file_use files[] = {
            {"--db", a->db, 1}, {"--log", a->log, 1}, {"--plot-latency", a->plot_latency, 1},
            {"--plot-occupancy", a->plot_occupancy, 1}, {"--workload", a->workload, 0},
            {"--calibrate", a->calibrate, 0}, {"--plan", i < a->plan.n ? a->plan.at[i] : NULL, 0}, {0}};
        if (sh_files_apart(files, e))
            return -1;
    }
    return 0;
}

static int read_options(const struct sh_sim_study *s, const struct sh_list *positional, struct sh_err *e)
{
    const struct sh_simulate_args *a = s->args;
    if (sh_args_none("simulate", positional, e))
        return -1;
    const struct sh_need needs[] = {{"--model NAME", a->capacity.model != NULL},
                                    {"--gpu NAME", a->capacity.gpu != NULL}, {0}};
    if (sh_args_need("simulate", needs, e))
        return -1;
    if (a->force && !a->db)
        return sh_misused(e, "--force requires --db FILE");
    if ((a->log || a->timeline || a->plot_occupancy) && (s->shard.parts || s->cluster.ranks))
        return sh_misused(e, "%s cannot be combined with --shard or mpirun",
                          a->log ? "--log" : a->timeline ? "--timeline" : "--plot-occupancy");
    if (s->shard.parts && a->plot_latency)
        return sh_misused(e, "--plot-latency cannot be combined with --shard"),
               sh_hint(e, "merge the shards, then run the same command without --shard to plot the stored results");
    if (check_paths(a, e))
        return -1;
    if (!sh_job_is_first(&s->cluster))
        return 0;
    return probe(a->plot_latency, e) || probe(a->plot_occupancy, e) ? -1 : 0;
}

/* FNV-1a over the model's shape, to tell shards of different models apart. */
static uint64_t hash_of_shape(const struct sh_kv_facts *f)
{
    uint64_t h = SH_PART_HASH;
    char *text = xasprintf("%s %d %d %d %d %d %d %d", f->name, f->layers, f->hidden, f->heads, f->kv_heads, f->head_dim,
                           f->ffn, f->vocab);
    sh_part_hash(&h, text);
    free(text);
    return h;
}

static int mark(const struct sh_sim_study *s, struct sh_store *store, int is_whole, struct sh_err *e)
{
    struct sh_part_results r = {.command = "simulate", .settings = xcalloc((size_t)s->n_row, sizeof *r.settings),
                                .own = xcalloc((size_t)s->n_row, 1), .n = s->n_row,
                                .model = hash_of_shape(&s->model.f)};
    for (int i = 0; i < s->n_row; i++) {
        r.settings[i] = s->row[i].settings;
        r.own[i] = sh_sim_is_own(s, i) && (!is_whole || s->row[i].is_there);
    }
    int bad = sh_part_mark_results(store, &s->shard, &r, is_whole, e);
    free(r.settings);
    free(r.own);
    return bad;
}

static int answer(const struct sh_sim_study *s, struct sh_err *e)
{
    const struct sh_simulate_args *a = s->args;
    return (a->plot_latency && sh_sim_plot_latency(s, a->plot_latency, e)) ||
                   (a->plot_occupancy && sh_sim_plot_occupancy(s, a->plot_occupancy, e)) || show(s, s->common, e)
               ? -1 : 0;
}

/* The store is opened before the work, so that a bad path fails early; if it was created in vain, it is removed. */
static int work(struct sh_sim_study *s, struct sh_err *e)
{
    const char *db = s->args->db;
    char *path = sh_part_path(db, &s->shard);
    struct sh_store *store = NULL;
    int is_first = sh_job_is_first(&s->cluster);
    int bad = (db && sh_sim_names(s, e)) ||
              (db && is_first && !(store = sh_store_typed(sh_store_create(path, e), s->common->line))) ||
              (s->shard.parts && mark(s, store, 0, e)) || sh_sim_sweep(s, store, e) ||
              (s->shard.parts && mark(s, store, 1, e)) || (is_first && answer(s, e));
    int is_empty = bad && store && sh_store_was_made(store) && sh_store_is_empty(store);
    sh_store_close(store);
    if (is_empty)
        sh_store_remove(path);
    free(path);
    return bad ? -1 : 0;
}

static int run(const struct sh_common *common, void *args, const struct sh_list *positional, struct sh_err *e)
{
    struct sh_simulate_args *a = args;
    struct sh_sim_study *s = xcalloc(1, sizeof *s);
    a->capacity.has_plan = a->plan.n > 0;
    s->args = a;
    s->common = &s->cluster.common;
    int bad = sh_job_enter(&s->cluster, common, a->db, a->shard, &s->shard, a->rank_timeout, e);
    s->cluster.shares = s->cluster.ranks != NULL;
    bad = bad || read_options(s, positional, e) || sh_sim_study_open(s, e) || work(s, e);
    sh_sim_study_clear(s);
    bad = sh_job_leave(&s->cluster, bad ? -1 : 0, e);
    free(s);
    return bad;
}

const struct sh_cmd sh_cmd_simulate = {
    .name = "simulate",
    .usage = "--model NAME --gpu NAME (--workload FILE.csv | --rate R --prompt N --output N) [options]",
    .summary = "simulate a server under load: latency, throughput and cache use",
    .about = "Simulates continuous batching on one GPU or a tensor-parallel group: chunked prefill, a paged cache and\n"
             "preemption by recomputation. A step takes the least time that bandwidth and compute allow\n"
             "(doc/simulate.md gives the rules). The whole cache, each --budget and each --plan serve the same\n"
             "requests, on each server (--gpu, --tp, --kv) and at each rate. With --db, results are kept and reused,\n"
             "and a sweep can be split by --shard or mpirun (doc/scale.md).\n\n"
             "  shears simulate --model llama-3.1-8b --gpu H100-SXM --rate 4,8,16 --prompt lognormal:4000:0.8 \\\n"
             "      --output exp:300 --budget 0.2 --slo-ttft 1 --slo-tpot 0.05\n"
             "  shears simulate --model opt-6.7b --gpu A100-SXM-80GB --workload trace.csv --budget 0.2 \\\n"
             "      --max-rate --slo-ttft 2\n"
             "  shears simulate --model llama-3.1-8b --gpu A100-SXM-80GB,H100-SXM --tp 1,2 --rate 2,4,8,16 \\\n"
             "      --prompt 4000 --output 300 --budget 0.2 --db served.db",
    .opts = opts, .args_bytes = sizeof(struct sh_simulate_args), .defaults = &defaults, .run = run};
