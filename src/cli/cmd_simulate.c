/* SPDX-License-Identifier: Apache-2.0 */
/* shears simulate: how a server answers requests that come over time, with the whole cache and with budgets. */
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
static const struct sh_opt opts[] = {
    {"model", SH_OPT_TEXT, F(capacity.model), "NAME", "of shears info models, a folder with config.json, such a file,\n"
     "or a .gguf file", 0, 0, 0},
    {"gpu", SH_OPT_TEXT, F(capacity.gpu), "NAME,...", "of shears info gpus; each is a server", 0, 0, 0},
    {"workload", SH_OPT_TEXT, F(workload), "FILE", "CSV with arrival_s, prompt_tokens, output_tokens, or with the\n"
     "columns of the public Azure or BurstGPT traces", 0, 0, 0},
    {"speed", SH_OPT_TEXT, F(speed), "F,...", "the file's requests come so many times as fast (default: 1)", 0, 0, 0},
    {"rate", SH_OPT_TEXT, F(rate), "R,...", "generated requests a second, Poisson; each rate is a run", 0, 0, 0},
    {"requests", SH_OPT_INT, F(requests), "N", "how many are generated (default: 1000)", 1, 1e9, 0},
    {"prompt", SH_OPT_TEXT, F(prompt), "N", "tokens of their prompts: 512, 100-900, exp:512, lognormal:512:0.8", 0, 0,
     0},
    {"output", SH_OPT_TEXT, F(output), "N", "and of their answers", 0, 0, 0},
    {"plan", SH_OPT_LIST, F(plan), "FILE...", "plans of shears plan, beside the whole cache", 0, 0, 0},
    {"budget", SH_OPT_TEXT, F(capacity.budget), "B,...", "budgets beside it: 0.2 of the length, 4096, 64/32/... (each\n"
     "layer)", 0, 0, 0},
    {"evict", SH_OPT_TEXT, F(evict), "WHEN", "prompt: when it is whole (default); chunk: after each chunk", 0, 0, 0},
    {"allocator", SH_OPT_TEXT, F(memory), "HOW", "paged (default), or slots: all that a sequence will need at once", 0,
     0, 0},
    {"page", SH_OPT_INT, F(capacity.page), "N", "tokens of a page (default: 16)", 1, 1 << 20, 0},
    {"chunk", SH_OPT_INT, F(capacity.chunk), "N", "tokens of a step (default: 2048)", 1, 1 << 20, 0},
    {"max-seqs", SH_OPT_INT, F(max_seqs), "N", "sequences that run at once (default: 256)", 1, 1e6, 0},
    {"headroom", SH_OPT_INT, F(capacity.headroom), "N", "tokens that come between two evictions (default: 0)", 0, 1e9,
     0},
    {"state", SH_OPT_INT, F(capacity.state), "BYTES", "of a policy for each token, layer and KV head (default: 0)", 0,
     1e6, 0},
    {"slo-ttft", SH_OPT_REAL, F(slo_ttft), "S", "limit of the time to the first token", 0, 1e9, 0},
    {"slo-tpot", SH_OPT_REAL, F(slo_tpot), "S", "limit of the mean time of each further token", 0, 1e9, 0},
    {"max-rate", SH_OPT_FLAG, F(max_rate), NULL, "find the highest rate at which the limits hold, within 1 %", 0, 0, 0},
    {"goal", SH_OPT_REAL, F(goal), "F", "for this share of the requests (default: 0.99)", 0.01, 1, 0},
    {"efficiency", SH_OPT_TEXT, F(efficiency), "OP=F,...", "of the board's numbers: weights, cache (memory),\n"
     "products, attention (compute), link; default 1", 0, 0, 0},
    {"step-overhead", SH_OPT_REAL, F(overhead_s), "S", "added to each step (default: 0)", 0, 10, 0},
    {"calibrate", SH_OPT_TEXT, F(calibrate), "FILE", "measured steps to find both from: CSV with prefill_tokens,\n"
     "decode_sequences, context_tokens, seconds", 0, 0, 0},
    {"kv", SH_OPT_TEXT, F(capacity.kv), "TYPE,...", "the cache's format (default: f16; shears capacity --help has all)",
     0, 0, 0},
    {"weights", SH_OPT_TEXT, F(capacity.weights), "TYPE", "the weights' (default: as published or stored)", 0, 0, 0},
    {"windows", SH_OPT_TEXT, F(capacity.windows), "HOW", "charge windowed layers: model, ignore, vllm:N, llama:N", 0, 0,
     0},
    {"tp", SH_OPT_TEXT, F(capacity.tp), "N,...", "GPUs that share each layer (default: 1)", 0, 0, 0},
    {"link", SH_OPT_FLAG, F(capacity.link), NULL, "count the time of what they send each other", 0, 0, 0},
    {"memory", SH_OPT_BYTES, F(capacity.memory), "BYTES", "of one GPU, in place of the board's", 1, 0x1p62, 0},
    {"util", SH_OPT_REAL, F(capacity.util), "F", "share of it that may be used (default: 1)", 0, 1, 0},
    {"reserve", SH_OPT_REAL, F(capacity.reserve), "F", "share of it left to the framework: 1 - util", 0, 0.999, 0},
    {"overhead", SH_OPT_BYTES, F(capacity.overhead), "BYTES", "taken by the runtime (default: 0)", 0, 0, 0},
    {"bandwidth", SH_OPT_REAL, F(capacity.bandwidth), "BYTES_PER_S", "of one GPU, in place of the board's", 1, 1e18, 0},
    {"flops", SH_OPT_REAL, F(capacity.flops), "F", "FLOP/s of one GPU, in place of the board's", 1, 1e21, 0},
    {"uneven", SH_OPT_FLAG, F(capacity.uneven), NULL, "take a tp that does not divide the heads, too", 0, 0, 0},
    {"gpus", SH_OPT_TEXT, F(capacity.gpus), "FILE", "rows of your own boards, which come first", 0, 0, 0},
    {"models", SH_OPT_TEXT, F(capacity.models), "FILE", "rows of your own models, which come first", 0, 0, 0},
    {"db", SH_OPT_TEXT, F(db), "FILE", "store that keeps the results; what it has is not run again", 0, 0, 0},
    {"force", SH_OPT_FLAG, F(force), NULL, "run again even what the store has the results of", 0, 0, 0},
    {"log", SH_OPT_TEXT, F(log), "FILE", "every request of every run as CSV, as it ends", 0, 0, 0},
    {"timeline", SH_OPT_FLAG, F(timeline), NULL, "the cache in use over time: with --json, or --csv alone", 0,
     0, 0},
    {"plot-latency", SH_OPT_TEXT, F(plot_latency), "FILE", "draw TTFT and TPOT over the rate (.svg, .png, .pdf)", 0, 0,
     0},
    {"plot-occupancy", SH_OPT_TEXT, F(plot_occupancy), "FILE", "draw the cache in use over time", 0, 0, 0},
    SH_PART_OPT(F(shard)),
    SH_CLUSTER_OPT(F(rank_timeout)),
    {0}};
#undef F

static void preset(void *args)
{
    struct sh_simulate_args *a = args;
    a->capacity = (struct sh_capacity_args){.kv = "f16", .tp = "1", .windows = "model", .pp = 1, .ep = 1, .page = 16,
                                            .length = 1, .util = -1, .reserve = -1, .bandwidth = -1, .flops = -1,
                                            .price = -1};
    a->memory = "paged";
    a->evict = "prompt";
    a->slo_ttft = a->slo_tpot = a->overhead_s = -1;
    a->goal = 0.99;
    a->rank_timeout = SH_RANK_TIMEOUT_S;
}

static void release(void *args)
{
    sh_list_free(&((struct sh_simulate_args *)args)->plan);
}

static int show(const struct sh_sim_study *s, const struct sh_common *common, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    int is_text = sh_common_format(common) == SH_OUT_TEXT;
    sh_sim_show(o, s, is_text, !is_text || common->columns);
    int bad = sh_common_write(common, o, e);
    sh_out_free(o);
    return bad;
}

/* A figure that cannot be written is told before the work. */
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

/* What is written must not be what is read, nor what is written besides. */
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
    if (positional->n)
        return sh_misused(e, "simulate: \"%.80s\" belongs to no option", positional->at[0]);
    const struct sh_need needs[] = {{"--model NAME", a->capacity.model != NULL},
                                    {"--gpu NAME", a->capacity.gpu != NULL}, {0}};
    if (sh_args_need("simulate", needs, e))
        return -1;
    if (a->force && !a->db)
        return sh_misused(e, "--force: no --db is given");
    if ((a->log || a->timeline || a->plot_occupancy) && (s->shard.parts || s->cluster.ranks))
        return sh_misused(e, "%s: one process has all of it, several have not",
                          a->log ? "--log" : a->timeline ? "--timeline" : "--plot-occupancy");
    if (s->shard.parts && a->plot_latency)
        return sh_misused(e, "--plot-latency: a shard has a part of the rows"),
               sh_hint(e, "the same command without --shard draws it from what is merged, and runs nothing again");
    if (check_paths(a, e))
        return -1;
    if (!sh_cluster_is_first(&s->cluster))
        return 0;
    return probe(a->plot_latency, e) || probe(a->plot_occupancy, e) ? -1 : 0;
}

/* FNV-1a over the model's shape: shards of another one are told from others by it. */
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

/* The store is opened before the work, so that a path that cannot be one is told then; one that is made for nothing
 * goes again. */
static int work(struct sh_sim_study *s, struct sh_err *e)
{
    const char *db = s->args->db;
    char *path = sh_part_path(db, &s->shard);
    struct sh_store *store = NULL;
    int is_first = sh_cluster_is_first(&s->cluster);
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
    int bad = sh_cluster_enter(&s->cluster, common, a->db, a->shard, &s->shard, a->rank_timeout, e);
    s->cluster.shares = s->cluster.ranks != NULL;
    bad = bad || read_options(s, positional, e) || sh_sim_study_open(s, e) || work(s, e);
    sh_sim_study_clear(s);
    bad = sh_cluster_leave(&s->cluster, bad ? -1 : 0, e);
    free(s);
    return bad;
}

const struct sh_cmd sh_cmd_simulate = {
    .name = "simulate",
    .usage = "--model NAME --gpu NAME (--workload FILE.csv | --rate R --prompt N --output N) [--plan FILE...] …",
    .summary = "a server under load: latency, throughput and cache over time, whole and with budgets",
    .about = "Steps through continuous batching on one GPU or a tensor-parallel group: chunked prefill, a paged\n"
             "cache, preemption by recomputation; a step takes what bandwidth and compute allow (doc/simulate.md has\n"
             "the rules). The whole cache, each --budget and each --plan are run side by side on the same requests,\n"
             "on each server (--gpu, --tp, --kv) at each rate. With --db what was run is found again, and a sweep\n"
             "can be split: --shard, or mpirun (doc/scale.md).\n\n"
             "  shears simulate --model llama-3.1-8b --gpu H100-SXM --rate 4,8,16 --prompt lognormal:4000:0.8 \\\n"
             "      --output exp:300 --budget 0.2 --slo-ttft 1 --slo-tpot 0.05\n"
             "  shears simulate --model opt-6.7b --gpu A100-SXM-80GB --workload trace.csv --budget 0.2 \\\n"
             "      --max-rate --slo-ttft 2\n"
             "  shears simulate --model llama-3.1-8b --gpu A100-SXM-80GB,H100-SXM --tp 1,2 --rate 2,4,8,16 \\\n"
             "      --prompt 4000 --output 300 --budget 0.2 --db served.db",
    .opts = opts,
    .args_bytes = sizeof(struct sh_simulate_args),
    .preset = preset,
    .run = run,
    .release = release,
};
