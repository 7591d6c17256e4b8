/* SPDX-License-Identifier: Apache-2.0 */
/* shears simulate: a server under load, with the full cache and with budgets. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/app/simulate/simulate_closed.h"
#include "src/app/simulate/simulate_run.h"
#include "src/base/mem.h"
#include "src/base/out.h"
#include "src/cli/options.h"
#include "src/cli/paths.h"
#include "src/cli/simulate_closed_show.h"
#include "src/report/figures/simulate_plot.h"
#include "traces/store.h"

#define F(name) offsetof(struct sh_simulate_args, name)
#define C(name) F(capacity.name)
static const struct sh_opt opts[] = {
    SH_TEXT("model", C(model), "NAME", "name from shears info models, folder with config.json, config.json,\n"
        "or .gguf file"),
    SH_TEXT("gpu", C(gpu), "NAME,...", "name from shears info gpus; each is a separate server"),
    SH_TEXT("workload", F(workload), "FILE", "CSV with arrival_s, prompt_tokens, output_tokens (and session), or a\n"
        "trace as Azure, BurstGPT (CSV) or Mooncake (JSON lines) publish it"),
    SH_TEXT("speed", F(speed), "F,...", "replay the workload F times as fast (default: 1)"),
    SH_TEXT("rate", F(rate), "R,...", "generate R requests per second (Poisson); each rate is one run"),
    SH_TEXT("concurrency", F(concurrency), "N,...", "instead of a rate: N clients, each of which sends its next "
        "request\nwhen its last one is answered; requires --engine"),
    SH_TEXT("engine", F(engine), "NAME|FILE", "use the step times expected of vllm, sglang, trtllm or a profile\n"
                                              "written by shears calibrate (default: the least possible time)"),
    SH_INT("requests", F(requests), "N", 1, 1e9, "requests to generate (default: 1000, or 10 for each client), or to\n"
        "read from the workload (default: all)"),
    SH_TEXT("prompt", F(prompt), "N", "prompt tokens of generated requests: 512, 100-900, exp:512 or\n"
        "lognormal:512:0.8"),
    SH_TEXT("output", F(output), "N", "output tokens of generated requests, in the same form"),
    SH_INT("prefix-tokens", F(prefix_tokens), "N", 1, 1 << 19, "begin each generated prompt with N tokens that it "
        "shares with\nothers"),
    SH_INT("prefixes", F(prefixes), "N", 1, 1e6, "choose these tokens at random from N beginnings (default: 1)"),
    SH_TEXT("prefix-cache", F(prefix_cache), "SIZE", "keep blocks of prompts for later prompts that begin with the "
        "same\ntext: all (what sequences leave free), none (default), BYTES per GPU,\nor a share of the memory for "
        "caches"),
    SH_INT("block", F(block), "N", 1, 1 << 20, "tokens per block of the prefix cache (default: 16; Mooncake: 512)"),
    SH_BYTES("host-cache", F(host_cache), "BYTES", 1, 0x1p62, "host memory per GPU for blocks that the GPU drops"),
    SH_REAL("host-bandwidth", F(host_bandwidth), "BYTES_PER_S", 1, 1e18, "bandwidth from host memory to the GPU"),
    SH_BYTES("disk-cache", F(disk_cache), "BYTES", 1, 0x1p62, "disk space per GPU for blocks that the host drops"),
    SH_REAL("disk-bandwidth", F(disk_bandwidth), "BYTES_PER_S", 1, 1e18, "bandwidth from the disk to the GPU"),
    SH_INT("replicas", F(replicas), "N", 1, 4096, "identical servers, which share a router (default: 1)"),
    SH_TEXT("router", F(router), "HOW", "which replica gets a request: round-robin (default), least-loaded, or\n"
        "prefix: the one whose prefix cache holds most of its prompt"),
    SH_LIST("plan", F(plan), "FILE...", "shears plan files to compare with the full cache"),
    SH_TEXT("budget", C(budget), "B,...", "budgets to compare with the full cache: 0.2 of the length, 4096,\n"
                                          "64/32/... (one per layer)"),
    SH_TEXT("max-ppl-increase", C(max_ppl), "F", "add the smallest measured budget that raises perplexity\n"
                                                 "by at most F: 0.01 or 1%"),
    SH_TEXT("min-recall", C(min_recall), "F", "add the smallest measured budget that keeps this fraction of\n"
                                              "the attention mass"),
    SH_TEXT("quality-db", C(db), "FILE", "store with results of shears eval or replay: the measured budgets (--db\n"
                                         "is for this command's own results; both may be the same file)"),
    SH_TEXT("policy", C(policy), "NAME", "use only budgets measured with this policy"),
    SH_MEASURED_ON_OPT(C(measured_on), ""),
    SH_TEXT("evict", F(evict), "WHEN", "prompt: after the whole prompt (default); chunk: after each chunk"),
    SH_TEXT("allocator", F(memory), "HOW", "paged (default), or slots: reserve a sequence's full cache at its start"),
    SH_INT("page", C(page), "N", 1, 1 << 20, "tokens per page (default: 16)"),
    SH_INT("chunk", C(chunk), "N", 1, 1 << 20, "tokens per step (default: 2048, or the engine's)"),
    SH_INT("max-seqs", F(max_seqs), "N", 1, 1e6, "sequences that run at once (default: 256, or the engine's)"),
    SH_INT("poll", F(poll), "N", 1, 1000, "for sglang with --concurrency: decoding steps between checks for new\n"
                                          "requests (default: the engine's)"),
    SH_INT("speculate", F(draft), "N", 1, 64, "with --concurrency: tokens proposed per sequence in each decoding\n"
        "step, each at the cost of one layer (multi-token prediction)"),
    SH_REAL("accept", F(accept), "F", 0, 1, "probability that a proposed token is accepted if all before it are"),
    SH_INT("prefill-workers", F(prefill_workers), "N", 1, 4096, "with --concurrency: read prompts on N workers of "
        "their own, and\nsend their caches to the workers that decode"),
    SH_INT("prefill-tp", F(prefill_tp), "N", 1, 1024, "tensor parallelism of a prefill worker (default: that of --tp)"),
    SH_INT("prefill-ep", F(prefill_ep), "N", 1, 1024, "ranks that its experts are spread over (default: 1)"),
    SH_INT("prefill-dp", F(prefill_dp), "N", 1, 1024, "copies of its attention (default: 1)"),
    SH_INT("decode-workers", F(decode_workers), "N", 1, 4096, "workers that decode, each of --tp x --dp GPUs (default: "
        "1)"),
    SH_REAL("transfer", F(transfer), "BYTES_PER_S", 1, 1e18, "bandwidth from each GPU of a prefill worker to the\n"
        "decode workers"),
    SH_SECONDS("slo-ttft", F(slo_ttft), 0, 1e9, "limit on the time to first token: 0.5, 500ms"),
    SH_SECONDS("slo-tpot", F(slo_tpot), 0, 1e9, "limit on the mean time per output token after the first"),
    SH_FLAG("max-rate", F(max_rate), "find the highest rate that meets the limits, to within 1 %"),
    SH_REAL("goal", F(goal), "F", 0.01, 1, "fraction of requests that must meet the limits (default: 0.99)"),
    SH_TEXT("efficiency", F(efficiency), "OP=F,...", "achieved fraction of the GPU's peak, by operation: weights, "
        "cache\n(memory), products, attention (compute), link (default: 1)"),
    SH_SECONDS("step-overhead", F(overhead_s), 0, 10, "time added to each step (default: 0)"),
    SH_TEXT("calibrate", F(calibrate), "FILE", "fit --efficiency and --step-overhead to measured steps: CSV with\n"
        "prefill_tokens, decode_sequences, context_tokens, seconds"),
    SH_TEXT("kv", C(kv), "TYPE,...", "cache format (see shears capacity --help; default: f16)"),
    SH_TEXT("tp", C(tp), "N,...", "tensor parallelism: GPUs that share each layer (default: 1)"),
    SH_INT("ep", C(ep), "N", 1, 1024, "with --engine: ranks that experts are spread over (default: 1)"),
    SH_INT("dp", F(dp), "N", 1, 1024, "with --concurrency: copies of attention, tp GPUs each (default: 1)"),
    SH_INT("pp", C(pp), "N", 1, SH_CAPACITY_STAGES, "with --concurrency: pipeline stages (default: 1)"),
    SH_REAL("price", C(price), "USD", 0, 1e6, "with --concurrency: price per GPU-hour"),
    SH_HARDWARE_OPTS(C),
    SH_RESULTS_OPTS(F),
    SH_TEXT("log", F(log), "FILE", "write every request of every run as CSV, in order of completion\n"
        "(not with --concurrency)"),
    SH_FLAG("timeline", F(timeline), "report cache use over time: as part of --json, or as the only table of\n"
        "--csv (not with --concurrency)"),
    SH_TEXT("plot-latency", F(plot_latency), "FILE", "plot TTFT and TPOT against the rate (" SH_GP_NAMES ")"),
    SH_TEXT("plot-occupancy", F(plot_occupancy), "FILE", "plot cache use over time (not with --concurrency)"),
    SH_PAGE_OPTS(C),
    SH_PART_OPT(F(shard)),
    SH_CLUSTER_OPT(F(rank_timeout)),
    {0}};

static const struct sh_simulate_args defaults = {
    .capacity = {.kv = "f16", .tp = "1", .windows = "model", .pp = 1, .ep = 1, .page = 16, .length = 1, .util = -1,
                 .reserve = -1, .bandwidth = -1, .flops = -1, .price = -1},
    .memory = "paged", .evict = "prompt", .slo_ttft = -1, .slo_tpot = -1, .overhead_s = -1, .goal = 0.99,
    .rank_timeout = SH_RANK_TIMEOUT_S, .dp = 1, .accept = -1, .transfer = -1, .host_bandwidth = -1,
    .disk_bandwidth = -1};

/* ---- the results ---- */

/* A count, which a damaged store may lack. */
static void count(struct sh_out *o, const char *key, const char *label, double n)
{
    if (isnan(n))
        sh_out_real(o, key, label, n, 0);
    else
        sh_out_int(o, key, label, llround(n));
}

static const struct sh_time_unit plain_seconds = {"s", "seconds", 1, 4};

/* Percentiles, for people in a suitable unit; tables show only p99, and p50 of what waits in a queue. */
static void shown(struct sh_out *o, const char *key, const char *what, const double q[4], const struct sh_time_unit *u)
{
    static const struct { const char *key; int at, is_extra; } part[] = {
        {"p50", 0, 0}, {"p99", 2, 0}, {"p90", 1, 1}, {"mean", 3, 1}};
    sh_out_group(o, key);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        char *label = xasprintf("%s %s, %s", what, part[i].key, u->name);
        sh_out_real(o, part[i].key, label, q[part[i].at] * u->per_s, u->digits);
        if (part[i].is_extra || (part[i].at == 0 && !strcmp(key, "tpot_s")))
            sh_out_detail(o);
        free(label);
    }
    sh_out_group_end(o);
}

static void details(struct sh_out *o, const struct sh_sim_row *r)
{
    const double *m = r->at;
    count(o, "finished", "finished", m[SH_S_FINISHED]);
    count(o, "refused", "refused", m[SH_S_REFUSED]);
    sh_out_real(o, "speed", "speed", r->speed, 3);
    shown(o, "latency_s", "latency", m + SH_S_LATENCY, &plain_seconds);
    shown(o, "queue_s", "queue", m + SH_S_QUEUE, &plain_seconds);
    sh_out_real(o, "kv_occupancy_peak", "peak", m[SH_S_OCCUPANCY_PEAK], 4);
    sh_out_int(o, "kv_pool_bytes_per_gpu", "pool", (long long)r->cache->pool);
    sh_out_real(o, "running_mean", "running", m[SH_S_RUNNING], 2);
    count(o, "largest_batch", "largest batch", m[SH_S_LARGEST_BATCH]);
    count(o, "steps", "steps", m[SH_S_STEPS]);
    sh_out_real(o, "seconds", "seconds", m[SH_S_SECONDS], 2);
    sh_out_real(o, "busy_share", "busy", m[SH_S_BUSY], 4);
    count(o, "tokens_in", "tokens in", m[SH_S_TOKENS_IN]);
    count(o, "tokens_out", "tokens out", m[SH_S_TOKENS_OUT]);
    count(o, "tokens_recomputed", "recomputed", m[SH_S_RECOMPUTED]);
    sh_out_real(o, "max_speed", "max. speed", m[SH_S_MAX_SPEED], 3);
    sh_out_text(o, "evidence", "evidence", r->cache->evidence);
}

/* Columns that tell the servers of the sweep apart, or all of them. */
static void server(struct sh_out *o, const struct sh_sim_study *s, const struct sh_sim_cache *v, int all)
{
    if (all || s->n_board > 1)
        sh_out_text(o, "gpu", "GPU", v->board->name);
    if (all || s->settings.tp.n > 1)
        sh_out_int(o, "tp", "tp", v->tp);
    if (all || s->settings.kv.n > 1)
        sh_out_text(o, "kv", "kv", v->kv);
}

static void timeline(struct sh_out *o, const struct sh_sim_study *s, const struct sh_sim_row *r)
{
    const struct sh_timeline *t = r->occupancy;
    int n = sh_timeline_count(t);
    sh_out_list(o, "timeline", "cache in use over time");
    for (int i = 0; i < n; i++) {
        sh_out_item(o);
        server(o, s, r->cache, 1);
        sh_out_real(o, "rate_requests_per_s", "offered/s", r->at[SH_S_RATE], 3);
        sh_out_real(o, "from_s", "from s", i * t->width, 3);
        sh_out_real(o, "to_s", "to s", fmin((i + 1) * t->width, t->end), 3);
        sh_out_real(o, "kv_occupancy", "KV in use", sh_timeline_mean(t, i), 4);
    }
    sh_out_end(o);
}

/* The units of TTFT and TPOT, each over all rows. */
struct units {
    struct sh_time_unit ttft, tpot;
    int digits;                         /* of cache use, which is tiny for tiny models            */
    int preempts;                       /* some run did                                           */
};

static struct units units_of(const struct sh_sim_study *s)
{
    double *at = xcalloc(4 * (size_t)s->n_row + 1, sizeof *at);
    int n = 2 * s->n_row;
    for (int i = 0; i < n; i++) {
        at[i] = s->row[i / 2].at[SH_S_TTFT + (i % 2 ? 2 : 0)];
        at[n + i] = s->row[i / 2].at[SH_S_TPOT + (i % 2 ? 2 : 0)];
    }
    struct units u = {sh_time_unit(at, n), sh_time_unit(at + n, n), 4, 0};
    for (int i = 0; i < s->n_row; i++) {
        u.digits = s->row[i].at[SH_S_OCCUPANCY] < 1e-3 ? 7 : u.digits;
        u.preempts |= s->row[i].at[SH_S_PREEMPTIONS] > 0;
    }
    free(at);
    return u;
}

static void row(struct sh_out *o, const struct sh_sim_study *s, const struct sh_sim_row *r, const struct units *u,
                int is_text, int all)
{
    int has_limits = s->args->slo_ttft >= 0 || s->args->slo_tpot >= 0;
    const double *m = r->at;
    sh_out_item(o);
    sh_out_text(o, "plan", "cache", r->cache->name);
    server(o, s, r->cache, all);
    sh_out_real(o, "rate_requests_per_s", "offered/s", m[SH_S_RATE], 3);
    sh_out_real(o, "served_requests_per_s", "served/s", m[SH_S_FINISHED] / m[SH_S_SECONDS], 3);
    count(o, "requests", "requests", m[SH_S_REQUESTS]);
    sh_out_detail(o);
    sh_out_real(o, "throughput_tokens_per_s", "tokens/s", m[SH_S_THROUGHPUT], 1);
    if (has_limits || all) {
        sh_out_real(o, "good_share", "good", m[SH_S_GOOD_SHARE], 4);
        sh_out_real(o, "goodput_requests_per_s", "good/s", m[SH_S_GOODPUT], 3);
        sh_out_detail(o);               /* low where the last requests end late, though they are good */
    }
    shown(o, "ttft_s", "TTFT", m + SH_S_TTFT, is_text ? &u->ttft : &plain_seconds);
    shown(o, "tpot_s", "TPOT", m + SH_S_TPOT, is_text ? &u->tpot : &plain_seconds);
    count(o, "preemptions", "preemptions", m[SH_S_PREEMPTIONS]);
    if (!u->preempts)
        sh_out_detail(o);
    sh_out_real(o, "kv_occupancy_mean", "KV in use", m[SH_S_OCCUPANCY], u->digits);
    if (s->args->max_rate || all)
        sh_out_real(o, "max_rate_requests_per_s", "max. rate",
                    is_text && m[SH_S_MAX_IS_OPEN] > 0 ? (double)INFINITY : m[SH_S_MAX_RATE], 3);
    if (s->ask.prefix.block)
        sh_metrics_write(&sh_simulate_prefix_metrics, r->prefix, o);
    if (all)
        details(o, r);
}

/* The known quality of each cache, which differs among servers only if their formats do. */
static void note_evidence(struct sh_out *o, const struct sh_sim_study *s)
{
    for (int k = 0; k < s->n_each; k++) {
        const char *last = "";
        for (int i = 0; i < s->n_row; i++) {
            const struct sh_sim_cache *v = s->row[i].cache;
            if (!s->row[i].is_there || (int)(v - s->cache) % s->n_each != k || !strcmp(v->evidence, last))
                continue;
            sh_out_note(o, "%s: %s", v->name, v->evidence);
            last = v->evidence;
        }
    }
}

/* What happened to a cache, at the first of its rows. */
static void note_cache(struct sh_out *o, const struct sh_sim_row *r)
{
    const struct sh_sim_cache *v = r->cache;
    if (r->at[SH_S_REFUSED] > 0)
        sh_out_note(o, "%s%s: %.0f requests were refused: their cache does not fit even by itself.", v->name, v->on,
                    r->at[SH_S_REFUSED]);
    if (r->at[SH_S_MAX_IS_OPEN] > 0)
        sh_out_note(o, "%s%s: these requests meet the limits at any rate; use more --requests.", v->name, v->on);
}

/* A tail that a few requests decide moves with the seed. */
static void note_requests(struct sh_out *o, const struct sh_sim_study *s)
{
    const struct sh_simulate_args *a = s->args;
    const int enough = a->max_rate ? 200 : 10;          /* a search takes the luckiest of its runs */
    int has_limits = a->slo_ttft >= 0 || a->slo_tpot >= 0;
    double tail = has_limits && a->goal < 1 ? 1 - a->goal : 0.01, least = INFINITY;
    for (int i = 0; i < s->n_row; i++)
        least = fmin(least, s->row[i].is_there ? s->row[i].at[SH_S_REQUESTS] : (double)INFINITY);
    if (!(tail * least < enough - 0.5))
        return;
    sh_out_note(o, "%s rests on %.0f of %.0f requests; %s %.0f would be enough.", a->max_rate ? "The highest rate" :
                has_limits ? "The share within the limits" : "p99", ceil(tail * least - 1e-9), least,
                s->source.is_file ? "a workload of" : "--requests", ceil(enough / tail - 1e-6));
}

static void note_pool(struct sh_out *o, const struct sh_sim_study *s)
{
    uint64_t last = 0;
    for (int i = 0; i < s->n_cache; i++) {
        const struct sh_sim_cache *v = &s->cache[i];
        if (v->pool != last)
            sh_out_note(o, "%s%sThe cache has %.2f GiB per GPU: what the weights leave within --util, --reserve and "
                           "--overhead.", *v->on ? v->on + 2 : "", *v->on ? ": " : "", (double)v->pool / 0x1p30);
        last = v->pool;
    }
}

static void notes(struct sh_out *o, const struct sh_sim_study *s)
{
    const struct sh_sim_efficiency *f = &s->efficiency;
    const struct sh_sim_cache *last = NULL;
    int known = 0, first = 1;
    note_pool(o, s);
    if (s->n_point)
        sh_out_note(o, "Calibrated on %d steps: memory %.3f, compute %.3f of the GPU's peak, %.3f ms per step; error "
                    "%.1f %% (root mean square), %.1f %% at most.", s->n_point, f->weights, f->products,
                    1e3 * f->overhead_s, 100 * s->fit.rms, 100 * s->fit.worst);
    if (s->fit.is_bound)
        sh_out_note(o, "A measured step is faster than the GPU's peak allows: check model, formats and --tp.");
    if (s->has_engine) {
        char text[SH_ENGINE_TEXT];
        sh_out_note(o, "Expected error of the mean time per token, in a closed loop: %s.",
                    sh_engine_says(&s->engine, s->board, &s->model, text));
    } else if (f->weights == 1 && f->products == 1 && f->overhead_s <= 0)
        sh_out_note(o, "Steps take the least time that bandwidth and compute allow; real steps take longer "
                    "(--efficiency, --step-overhead, or --calibrate FILE).");
    for (int i = 0; i < s->n_row; i++) {
        const struct sh_sim_row *r = &s->row[i];
        known += r->is_known;
        if (!r->is_there)
            continue;
        if (first && r->at[SH_S_SKIPPED] > 0)
            sh_out_note(o, "%.0f rows without prompt or output tokens were skipped.", r->at[SH_S_SKIPPED]);
        first = 0;
        if (r->cache != last)
            note_cache(o, r);
        last = r->cache;
    }
    if (s->model.f.max_pos && s->longest > (uint64_t)s->model.f.max_pos)
        sh_out_note(o, "The longest request has %llu tokens, more than the model's context length of %d: servers "
                    "refuse such requests.", (unsigned long long)s->longest, s->model.f.max_pos);
    note_evidence(o, s);
    note_requests(o, s);
    if (known)
        sh_out_note(o, "%d of %d rows were read from the store; --force recomputes them.", known, s->n_row);
}

/* Rows, remarks. All: everything that --json has, else what people read. */
static void show_results(struct sh_out *o, const struct sh_sim_study *s, int is_text, int all)
{
    struct units u = units_of(s);
    sh_out_list(o, "results", "continuous batching");
    for (int i = 0; i < s->n_row; i++) {
        if (!s->row[i].is_there)                /* computed by another shard */
            continue;
        row(o, s, &s->row[i], &u, is_text, all);
        if (s->args->timeline && !is_text)
            timeline(o, s, &s->row[i]);
    }
    if (s->args->timeline && !is_text)
        sh_out_show(o, "timeline");
    sh_out_end(o);
    notes(o, s);
}

static int show(const struct sh_sim_study *s, const struct sh_common *common, struct sh_err *e)
{
    struct sh_out *o = sh_out_new();
    int is_text = sh_common_format(common) == SH_OUT_TEXT;
    show_results(o, s, is_text, !is_text || common->columns);
    return sh_common_write(common, o, 0, e);
}

/* ---- the work ---- */

/* No output may be an input or another output. */
static int check_paths(const struct sh_simulate_args *a, struct sh_err *e)
{
    const char *measured = a->capacity.db;
    measured = a->db && measured && !strcmp(a->db, measured) ? NULL : measured;     /* one store may be both */
    for (int i = 0; i <= a->plan.n; i++) {
        const struct sh_file_use files[] = {
            {"--db", a->db, 1}, {"--log", a->log, 1}, {"--plot-latency", a->plot_latency, 1},
            {"--plot-occupancy", a->plot_occupancy, 1}, {"--workload", a->workload, 0},
            {"--calibrate", a->calibrate, 0}, {"--quality-db", measured, 0},
            {"--plan", i < a->plan.n ? a->plan.at[i] : NULL, 0}, {0}};
        if (sh_files_apart(files, e))
            return -1;
    }
    return 0;
}

static int read_options(const struct sh_sim_study *s, const struct sh_list *positional, struct sh_err *e)
{
    const struct sh_simulate_args *a = s->args;
    const struct sh_need needs[] = {{"--model NAME", a->capacity.model != NULL},
                                    {"--gpu NAME", a->capacity.gpu != NULL}, {0}};
    if (sh_args_none("simulate", positional, e) || sh_args_need("simulate", needs, e))
        return -1;
    if (!a->engine && a->capacity.ep > 1)
        return sh_misused(e, "--ep requires --engine NAME|FILE");
    const struct { const char *option; int is_given; } closed[] = {
        {"--dp", a->dp > 1}, {"--pp", a->capacity.pp > 1}, {"--poll", a->poll > 0}, {"--speculate", a->draft > 0},
        {"--accept", a->accept >= 0}, {"--prefill-workers", a->prefill_workers > 0},
        {"--prefill-tp", a->prefill_tp > 0}, {"--prefill-ep", a->prefill_ep > 0}, {"--prefill-dp", a->prefill_dp > 0},
        {"--transfer", a->transfer > 0}, {"--decode-workers", a->decode_workers > 0},
        {"--price", a->capacity.price >= 0}};
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++)
        if (closed[i].is_given)
            return sh_misused(e, "%s requires --concurrency N", closed[i].option);
    if (a->force && !a->db)
        return sh_misused(e, "--force requires --db FILE");
    if ((a->log || a->timeline || a->plot_occupancy) && (s->shard.parts || s->cluster.ranks))
        return sh_misused(e, "%s cannot be combined with --shard or mpirun",
                          a->log ? "--log" : a->timeline ? "--timeline" : "--plot-occupancy");
    if (s->shard.parts && a->plot_latency)
        return sh_misused(e, "--plot-latency cannot be combined with --shard"),
               sh_hint(e, "merge the shards, then run the same command without --shard to plot the stored results");
    const struct sh_page_args *page = &a->capacity.paper;
    return check_paths(a, e) ||
                   (sh_job_is_first(&s->cluster) && (sh_check_figure(a->plot_latency, page, e) ||
                                                     sh_check_figure(a->plot_occupancy, page, e)))
               ? -1 : 0;
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
    struct sh_gp_look look;
    return sh_read_page(&a->capacity.paper, &look, e) ||
                   (a->plot_latency && sh_sim_plot_latency(s, a->plot_latency, &look, e)) ||
                   (a->plot_occupancy && sh_sim_plot_occupancy(s, a->plot_occupancy, &look, e)) ||
                   show(s, s->common, e) ? -1 : 0;
}

/* The store is opened before the work, so that a bad path fails early; it is removed if it stays empty. */
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
    if (a->concurrency) {
        const struct sh_need needs[] = {{"--model NAME", a->capacity.model != NULL},
                                        {"--gpu NAME", a->capacity.gpu != NULL}, {0}};
        a->capacity.has_plan = a->plan.n > 0;
        return sh_args_none("simulate", positional, e) || sh_args_need("simulate", needs, e) ||
               sh_simulate_closed(a, common, e) ? -1 : 0;
    }
    struct sh_sim_study *s = xcalloc(1, sizeof *s);
    a->capacity.has_plan = a->plan.n > 0 || a->capacity.db;
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
    .usage = "--model NAME --gpu NAME (--workload FILE.csv | (--rate R | --concurrency N) --prompt N --output N) "
             "[options]",
    .summary = "simulate a server under load: latency, throughput and cache use",
    .about = "Simulates continuous batching on one GPU or a tensor-parallel group: chunked prefill, a paged cache and\n"
             "preemption by recomputation. A step takes the least time that bandwidth and compute allow or, with\n"
             "--engine, the time expected from measurements of that engine (doc/simulate.md gives the rules). The\n"
             "same requests are served with the full cache, each --budget and each --plan, on each server (--gpu,\n"
             "--tp, --kv) and at each rate. With --db, results are kept and reused, and a sweep can be split by\n"
             "--shard or mpirun (doc/scale.md).\n"
             "\n"
             "  shears simulate --model llama-3.1-8b --gpu H100-SXM --rate 4,8,16 --prompt lognormal:4000:0.8 \\\n"
             "      --output exp:300 --budget 0.2 --slo-ttft 1 --slo-tpot 0.05\n"
             "  shears simulate --model llama-3.1-70b --gpu H100-SXM --tp 4 --weights f8 --kv f8 --engine vllm \\\n"
             "      --concurrency 4,16,64 --prompt 819-1024 --output 819-1024\n"
             "  shears simulate --model opt-6.7b --gpu A100-SXM-80GB --workload trace.csv --budget 0.2 \\\n"
             "      --max-rate --slo-ttft 2\n"
             "  shears simulate --model opt-6.7b --gpu A100-SXM-80GB --rate 8 --prompt 400 --output 100 \\\n"
             "      --quality-db traces.db --max-ppl-increase 5%\n"
             "  shears simulate --model llama-3.1-8b --gpu A100-SXM-80GB,H100-SXM --tp 1,2 --rate 2,4,8,16 \\\n"
             "      --prompt 4000 --output 300 --budget 0.2 --db served.db",
    .opts = opts, .args_bytes = sizeof(struct sh_simulate_args), .defaults = &defaults, .run = run};
