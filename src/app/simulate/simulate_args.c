/* SPDX-License-Identifier: Apache-2.0 */
#include "src/app/simulate/simulate_args.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/read_number.h"

static int reals(const char *option, const char *text, double *to, int *n, struct sh_err *e)
{
    if (sh_read_reals(option, text, 0, to, SH_SIM_RATES, n, e))
        return -1;
    for (int i = 0; i < *n; i++)
        if (!(to[i] > 0) || !(to[i] <= 1e9))
            return sh_misused(e, "%s: found %g, expected more than 0", option, to[i]);
    return 0;
}

static int from_file(const struct sh_simulate_args *a, struct sh_sim_source *out, struct sh_err *e)
{
    if (a->rate || a->prompt || a->output || a->prefix_tokens)
        return sh_misused(e, "%s cannot be combined with --workload: it is for generated requests",
                          a->rate ? "--rate" : a->prompt ? "--prompt" : a->output ? "--output" : "--prefix-tokens");
    out->is_file = 1;
    out->n = 1;
    out->speed[0] = 1;
    if (a->speed && reals("--speed", a->speed, out->speed, &out->n, e))
        return -1;
    if (sh_workload_open(&out->file, a->workload, e))
        return -1;
    out->file.most = a->requests;
    return 0;
}

static int generated(const struct sh_simulate_args *a, uint64_t seed, struct sh_sim_source *out, struct sh_err *e)
{
    if (a->speed)
        return sh_misused(e, "--speed requires --workload FILE; use --rate for generated requests");
    if (!a->prompt || !a->output || (!a->rate && !a->max_rate && !a->concurrency))
        return sh_misused(e, "simulate requires --workload FILE, or --rate R, --prompt N and --output N");
    if (a->prefixes && !a->prefix_tokens)
        return sh_misused(e, "--prefixes requires --prefix-tokens N");
    if (sh_lengths_parse("--prompt", a->prompt, &out->random.prompt, e) ||
        sh_lengths_parse("--output", a->output, &out->random.output, e) ||
        reals("--rate", a->rate ? a->rate : "1", out->speed, &out->n, e))
        return -1;
    out->random.prefixes = (uint32_t)(!a->prefix_tokens ? 0 : a->prefixes ? a->prefixes : 1);
    out->random.prefix_tokens = (uint32_t)a->prefix_tokens;
    out->seed = seed;
    out->rate = out->speed[0];
    for (int i = 0; i < out->n; i++)
        out->speed[i] /= out->rate;
    return 0;
}

int sh_sim_source(const struct sh_simulate_args *a, uint64_t seed, struct sh_sim_source *out, struct sh_err *e)
{
    *out = (struct sh_sim_source){.requests = a->requests ? a->requests : 1000};
    return a->workload ? from_file(a, out, e) : generated(a, seed, out, e);
}

static int next(struct sh_workload *base, struct sh_request *out, struct sh_err *e)
{
    struct sh_sim_source *s = (struct sh_sim_source *)base;
    struct sh_workload *from = s->is_file ? &s->file.base : &s->random.base;
    if (s->moved && ++s->given % 256 == 0)
        s->moved(s->to, !s->is_file ? (double)s->given / (double)s->requests
                        : s->file.whole ? (double)ftello(s->file.file) / (double)s->file.whole : 0);
    from->block = base->block;
    int got = from->next(from, out, e);
    base->key = from->key;
    base->n_key = from->n_key;
    return got;
}

struct sh_workload *sh_sim_source_again(void *from, struct sh_err *e)
{
    struct sh_sim_source *s = from;
    if (s->is_file && sh_workload_again(&s->file, e))
        return NULL;
    if (!s->is_file)
        sh_workload_random(&s->random, s->rate, (uint64_t)s->requests, s->seed);
    s->base.next = next;
    s->given = 0;
    return &s->base;
}

void sh_sim_source_close(struct sh_sim_source *s)
{
    sh_workload_close(&s->file);
    free(s->random.keys.at);
    s->random.keys.at = NULL;
}

/* ---- the prefix cache ---- */

static int read_size(const char *text, struct sh_prefix_ask *out, struct sh_err *e)
{
    double share;
    size_t bytes;
    out->share = 1;
    out->bytes[SH_TIER_GPU] = (double)INFINITY;
    if (!strcmp(text, "all"))
        return 0;
    if (strpbrk(text, ".%") && !sh_read_real("--prefix-cache", text, 0, 1, &share, e)) {
        out->share = share;
        return 0;
    }
    if (sh_read_bytes("--prefix-cache", text, 0, 0, &bytes, e))
        return sh_misused(e, "--prefix-cache: found \"%.40s\", expected none, all, bytes such as 16G, or a share of "
                          "the memory for caches such as 0.5 or 50%%", text);
    out->bytes[SH_TIER_GPU] = (double)bytes;
    return 0;
}

static int read_tiers(const struct sh_simulate_args *a, struct sh_prefix_ask *out, struct sh_err *e)
{
    const struct { const char *name; size_t bytes; double bandwidth; } tier[SH_N_TIER] = {
        [SH_TIER_HOST] = {"host", a->host_cache, a->host_bandwidth},
        [SH_TIER_DISK] = {"disk", a->disk_cache, a->disk_bandwidth}};
    for (int t = SH_TIER_HOST; t < SH_N_TIER; t++) {
        if (!tier[t].bytes != !(tier[t].bandwidth > 0))
            return sh_misused(e, "--%s-cache BYTES and --%s-bandwidth BYTES_PER_S must be given together", tier[t].name,
                              tier[t].name);
        out->bytes[t] = (double)tier[t].bytes;
        out->bandwidth[t] = tier[t].bandwidth;
    }
    return 0;
}

/* Blocks must lie within the pieces of a prompt that the file names, or be made of whole ones. */
static int read_block(const struct sh_simulate_args *a, const struct sh_sim_source *s, struct sh_prefix_ask *out,
                      struct sh_err *e)
{
    enum { PIECE = SH_MOONCAKE_PIECE };
    out->block = (uint32_t)(a->block ? a->block : s->file.is_mooncake ? PIECE : 16);
    if (s->file.is_mooncake && PIECE % out->block && out->block % PIECE)
        return sh_misused(e, "--block: found %u, expected a divisor or a multiple of %d, the block size of %s",
                          out->block, PIECE, a->workload);
    if (!s->is_file && !a->prefix_tokens)
        return sh_misused(e, "--prefix-cache requires --prefix-tokens N, or a workload that names its texts");
    if (s->is_file && !s->file.is_mooncake && s->file.columns.session < 0)
        return sh_misused(e, "--prefix-cache: %s does not say which prompts begin with the same text: expected a "
                          "column \"session\", or Mooncake's hash_ids", a->workload);
    return 0;
}

int sh_sim_prefix(const struct sh_simulate_args *a, const struct sh_sim_source *s, struct sh_prefix_ask *out,
                  struct sh_err *e)
{
    int is_on = a->prefix_cache && strcmp(a->prefix_cache, "none");
    *out = (struct sh_prefix_ask){0};
    if (!is_on && (a->block || a->host_cache || a->disk_cache))
        return sh_misused(e, "%s requires --prefix-cache", a->block ? "--block" : a->host_cache ? "--host-cache"
                          : "--disk-cache");
    if (!is_on)
        return 0;
    if (strcmp(a->memory, "paged") || strcmp(a->evict, "prompt"))
        return sh_misused(e, "--prefix-cache cannot be combined with --allocator slots or --evict chunk: blocks that "
                          "others reuse are whole pages of whole prompts");
    return read_size(a->prefix_cache, out, e) || read_tiers(a, out, e) || read_block(a, s, out, e) ? -1 : 0;
}

int sh_sim_prefix_suits(const struct sh_capacity_ask *ask, struct sh_err *e)
{
    struct sh_capacity_ask plain = *ask;
    uint64_t tokens = 1024 * ask->rule.page;
    plain.rule.budget = SH_BUDGET_NONE;
    struct sh_kv_bytes b = sh_split_cache(&plain, 0, tokens);
    if (!b.states && b.sequence == b.token * tokens && b.token)
        return 0;
    return sh_misused(e, "--prefix-cache: %s has %s", ask->shape->f.name, b.states
                      ? "layers with a recurrent state, which holds all of the text and cannot be reused in blocks"
                      : "sliding-window layers, counted with --windows, which drop blocks that later prompts would "
                        "need; use --windows ignore");
}

static int choice(const char *option, const char *word, const char *first, const char *second, int *out,
                  struct sh_err *e)
{
    *out = !strcmp(word, second);
    if (*out || !strcmp(word, first))
        return 0;
    return sh_misused(e, "%s: found \"%.40s\", expected %s or %s", option, word, first, second);
}

int sh_sim_router(const struct sh_simulate_args *a, enum sh_router *out, struct sh_err *e)
{
    static const char *const names[] = {"round-robin", "least-loaded", "prefix", NULL};
    if (a->router && !a->replicas)
        return sh_misused(e, "--router requires --replicas N");
    int router = sh_read_name("router", a->router, names, e);
    if (router < 0)
        return -1;
    if (router == SH_ROUTE_PREFIX && (!a->prefix_cache || !strcmp(a->prefix_cache, "none")))
        return sh_misused(e, "--router prefix requires --prefix-cache");
    *out = (enum sh_router)router;
    return 0;
}

int sh_sim_settings(const struct sh_simulate_args *a, struct sh_sim_ask *out, struct sh_err *e)
{
    enum sh_router router;
    int slots, by_chunk;
    int has_limits = a->slo_ttft >= 0 || a->slo_tpot >= 0;
    if (choice("--allocator", a->memory, "paged", "slots", &slots, e) ||
        choice("--evict", a->evict, "prompt", "chunk", &by_chunk, e) || sh_sim_router(a, &router, e))
        return -1;
    if (a->replicas > 1 && (a->timeline || a->plot_occupancy))
        return sh_misused(e, "--replicas cannot be combined with %s: each replica has a cache of its own",
                          a->timeline ? "--timeline" : "--plot-occupancy");
    if (a->max_rate && !has_limits)
        return sh_misused(e, "--max-rate requires --slo-ttft S or --slo-tpot S");
    if (a->calibrate && (a->efficiency || a->overhead_s >= 0))
        return sh_misused(e, "--calibrate cannot be combined with --efficiency or --step-overhead, which it fits");
    *out = (struct sh_sim_ask){.step_tokens = (uint32_t)(a->capacity.chunk ? a->capacity.chunk : 2048),
                               .max_running = (uint32_t)(a->max_seqs ? a->max_seqs : 256),
                               .replicas = (uint32_t)a->replicas, .router = router,
                               .memory = slots ? SH_SIM_SLOTS : SH_SIM_PAGED,
                               .evict = by_chunk ? SH_EVICT_CHUNK : SH_EVICT_PROMPT,
                               .slo_ttft_s = a->slo_ttft >= 0 ? a->slo_ttft : (double)INFINITY,
                               .slo_tpot_s = a->slo_tpot >= 0 ? a->slo_tpot : (double)INFINITY, .speed = 1};
    return 0;
}

int sh_sim_engine_settings(const struct sh_simulate_args *a, const struct sh_engine *g, const struct sh_gpu *b,
                           struct sh_sim_ask *out, struct sh_err *e)
{
    enum sh_generation gen;
    if (a->efficiency || a->overhead_s >= 0 || a->calibrate)
        return sh_misused(e, "--engine cannot be combined with %s: it has its own times",
                          a->efficiency ? "--efficiency" : a->calibrate ? "--calibrate" : "--step-overhead");
    sh_clock_generation(b, &gen);
    if (!a->capacity.chunk)
        out->step_tokens = (uint32_t)g->rule[gen][SH_RULE_CHUNK];
    if (!a->max_seqs)
        out->max_running = (uint32_t)g->rule[gen][SH_RULE_SEQUENCES];
    return 0;
}

int sh_sim_efficiency_parse(const char *text, struct sh_sim_efficiency *out, struct sh_err *e)
{
    static const char *const names[] = {"weights", "cache", "products", "attention", "link"};
    double value[5] = {1, 1, 1, 1, 1};
    char *end;
    for (const char *at = text;;) {
        size_t n = strcspn(at, "=,");
        int k = 0;
        while (k < 5 && (strlen(names[k]) != n || strncmp(names[k], at, n)))
            k++;
        if (k == 5 || at[n] != '=')
            return sh_misused(e, "--efficiency: found \"%.60s\", expected weights=F, cache=F, products=F, attention=F "
                              "or link=F, separated by commas", at);
        value[k] = strtod(at + n + 1, &end);
        if (end == at + n + 1 || (*end && *end != ',') || !(value[k] >= 0.001 && value[k] <= 1))
            return sh_misused(e, "--efficiency: found \"%.40s\", expected a fraction from 0.001 to 1", at);
        if (!*end)
            break;
        at = end + 1;
    }
    *out = (struct sh_sim_efficiency){value[0], value[1], value[2], value[3], value[4], 0};
    return 0;
}
